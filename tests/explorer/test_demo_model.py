"""The model that comes with the package: it translates, it is small, and its card says how it was made."""

from __future__ import annotations

import pytest

from tree_fairseq import hub
from tree_fairseq.commands.explore import main

stanza = pytest.importorskip("stanza", reason="the demo model parses with Stanza: pip install tree-fairseq[stanza]")


def test_it_translates_the_sentences_of_its_grammar():
    model = hub.demo()
    assert model.translate(["has the father lived in the museum?"]) == ["hat der Vater im Museum gewohnt?"]
    (tree,) = model.parse(["Thomas turned a clock on."])[0]
    assert tree.leaves()[0].startswith("Th") or tree.leaves()[0] == "Thomas"


def test_it_takes_at_most_five_megabytes():
    assert sum(path.stat().st_size for path in hub.DEMO.rglob("*") if path.is_file()) < 5_000_000


def test_its_card_says_how_it_was_made_and_what_it_cannot_do():
    card = (hub.DEMO / "README.md").read_text(encoding="utf-8")
    for heading in ("licence", "## Scores", "## Limits", "## Made by"):
        assert heading in card


def test_the_explorer_shows_it_without_further_arguments(tmp_path):
    page = tmp_path / "explore.html"
    assert main(["--demo", "--sentences", "3", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    first = (hub.DEMO / "sentences.txt").read_text(encoding="utf-8").splitlines()[0]
    assert first in text and page.stat().st_size < 2_000_000
