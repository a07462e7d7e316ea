"""The models that come with the package: they translate and write SQL, they are small, and their page needs none."""

from __future__ import annotations

import sys

import pytest

from tree_fairseq import hub
from tree_fairseq.commands import demo_models, explore
from tree_fairseq.errors import InputError, MissingLibraryError
from tree_fairseq.explorer.document import OutputRecord
from tree_fairseq.explorer.systems import System
from tree_fairseq.trees.notations import notation_named

DATABASE = hub.DEMO / "archipelago/archipelago.sqlite"


@pytest.fixture(scope="module")
def shown():
    return explore.demo_document(hub.DEMO)


@pytest.fixture(scope="module")
def questions():
    pytest.importorskip("sqlglot", reason="typed questions need sqlglot: pip install tree-fairseq[code]")
    return demo_models.questions()


def test_the_translator_translates_the_sentences_of_its_grammar():
    pytest.importorskip("stanza", reason="the demo model parses with Stanza: pip install tree-fairseq[stanza]")
    model = hub.from_pretrained(hub.DEMO)
    assert model.translate(["has the father lived in the museum?"]) == ["hat der Vater im Museum gewohnt?"]
    (tree,) = model.parse(["Thomas turned a clock on."])[0]
    assert tree.leaves()[0].startswith("Th") or tree.leaves()[0] == "Thomas"


def test_the_first_example_of_the_hub_needs_no_extra(monkeypatch):
    for name in ("stanza", "sacremoses", "subword_nmt", "sentencepiece", "transformers", "sqlglot"):
        monkeypatch.setitem(sys.modules, name, None)
    assert hub.demo().translate("has the father lived in the museum?") == "hat der Vater im Museum gewohnt?"


def test_they_are_small_and_their_cards_say_how_they_were_made_and_what_they_cannot_do():
    sizes = {path: path.stat().st_size for path in hub.DEMO.rglob("*") if path.is_file()}
    assert sum(size for path, size in sizes.items() if DATABASE.parent in path.parents) < 3_000_000
    assert sum(sizes.values()) < 7_000_000
    for card in hub.DEMO.rglob("README.md"):
        for heading in ("licence", "## Scores", "## Limits", "## Made by"):
            assert heading in card.read_text(encoding="utf-8")


def test_the_page_opens_without_loading_any_model(tmp_path, monkeypatch, shown):
    monkeypatch.setattr(hub, "from_pretrained", None)
    monkeypatch.chdir(tmp_path)
    assert explore.main(["--demo"]) == 0
    text = (tmp_path / "explore.html").read_text(encoding="utf-8")
    for tab in (shown, *shown["more"]):
        assert tab["sentences"][0]["source"] in text and tab["words"]
    assert len(text) < 2_000_000 and '"live":false' in text and '"live":true' not in text


def test_the_search_never_chooses_an_illegal_symbol_and_its_queries_run(shown):
    outputs = [output for sentence in shown["sentences"] for output in sentence["systems"]]
    steps = [step for output in outputs for step in output["views"].get("beam", {"steps": ()})["steps"]]
    candidates = [each for step in steps for found in step["hypotheses"] for each in found["candidates"]]
    assert any(each["chosen"] for each in candidates) and any(not each["legal"] for each in candidates)
    assert all(each["legal"] and not each["why"] for each in candidates if each["chosen"])
    searched = [output["views"]["query"] for output in outputs if "beam" in output["views"]]
    assert len(searched) == 2 * len(shown["sentences"])
    assert all(each["parses"] and not each["problem"] for each in searched)
    assert not all(output["views"]["query"]["parses"] for output in outputs)  # some of the other system are red


def test_the_page_shows_what_the_models_write(questions, shown):
    record = shown["sentences"][0]
    found = questions.explain_line(record["source"], record["id"])
    for ours, theirs in zip(found.systems, record["systems"]):
        assert (ours.hypothesis, ours.views["query"]) == (theirs["hypothesis"], theirs["views"]["query"])


@pytest.mark.parametrize(
    "query", ["DROP TABLE city", "ATTACH 'x' AS y", "SELECT load_extension('x')", "SELECT name FROM"]
)
def test_a_hostile_query_does_no_harm(questions, monkeypatch, query):
    before = DATABASE.read_bytes()
    monkeypatch.setattr(System, "explain", lambda *_: OutputRecord(query))
    record = questions.explain_line("which cities are there")
    for output in record.systems:
        found = output.views["query"]
        assert found["parses"] == query.startswith(("DROP", "SELECT load")) and found["problem"] and not found["rows"]
    assert DATABASE.read_bytes() == before and not list(DATABASE.parent.glob("*-journal"))


def test_a_hostile_question_is_only_words(questions):
    with pytest.raises(InputError, match="do not know drop, table, script"):
        questions.explain_line("which cities'); DROP TABLE city; -- <script>")
    assert questions.explain_line("WHICH cities are there?!").systems[0].views["query"]["rows"]


def test_typing_names_the_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    notation_named.cache_clear()
    with pytest.raises(MissingLibraryError, match=r"tree-fairseq\[code\]"):
        demo_models.questions()
