"""The models that come with the package: they are small, and their page needs none."""

from __future__ import annotations

import pytest

from tests.commands.test_explore import explored
from tree_fairseq import hub
from tree_fairseq.commands import explore


@pytest.fixture(scope="module")
def shown():
    """What the page of the demo shows."""
    return explore.demo_document(hub.DEMO)


def test_the_translator_translates_the_sentences_of_its_grammar():
    pytest.importorskip("stanza", reason="the demo model parses with Stanza: pip install tree-fairseq[stanza]")
    model = hub.demo()
    assert model.translate(["has the father lived in the museum?"]) == ["hat der Vater im Museum gewohnt?"]
    (tree,) = model.parse(["Thomas turned a clock on."])[0]
    assert tree.leaves()[0].startswith("Th") or tree.leaves()[0] == "Thomas"


def test_they_are_small_and_their_cards_say_how_they_were_made_and_what_they_cannot_do():
    sizes = {path: path.stat().st_size for path in hub.DEMO.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 4_000_000
    for heading in ("licence", "## Scores", "## Limits", "## Made by"):
        assert heading in (hub.DEMO / "README.md").read_text(encoding="utf-8")


def test_the_page_opens_without_loading_any_model(tmp_path, monkeypatch, shown):
    monkeypatch.setattr(hub, "from_pretrained", None)
    monkeypatch.chdir(tmp_path)
    assert explore.main(["--demo"]) == 0
    text = (tmp_path / "explore.html").read_text(encoding="utf-8")
    for tab in (shown, *shown["more"]):
        assert tab["sentences"][0]["source"] in text and tab["words"]
    assert len(text) < 2_000_000 and '"live":false' in text and '"live":true' not in text


def test_other_flags_explore_the_translator(tmp_path):
    pytest.importorskip("stanza", reason="the demo model parses with Stanza: pip install tree-fairseq[stanza]")
    document = explored(tmp_path, "--demo", "--beam", 1, "--sentences", 1)
    assert document["systems"][0]["architecture"] == "tree_transformer_tiny" and "more" not in document
