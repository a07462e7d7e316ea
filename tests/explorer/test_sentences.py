"""Sentences of splits and typed lines: parses, references, and those that a model cannot read."""

from __future__ import annotations

import pytest

from tests.explorer.untrained import untrained
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.systems import System
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree


def test_a_split_has_its_parses_and_references(tree_system, corpus):
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()
    targets = (corpus / "test.de").read_text(encoding="utf-8").splitlines()
    read = list(tree_system.reader.read_split("test", 5))
    assert [sentence.number for sentence in read] == list(range(5))
    for sentence, line, target in zip(read, lines, targets):
        assert write_forest(sentence.forest) == line
        assert tree_system.reference(sentence) == target.replace("@@ ", "")
        assert sentence.depth == read_forest(line)[0].height()


def test_words_are_joined_for_people_and_split_for_models(tree_system):
    sentence = tree_system.reader.read_line("(S (NP (NN (NN_sub light@@) (NN_sub house))) (VP (VBZ sings)))")
    assert sentence.tokens == ["light@@", "house", "sings"] and sentence.length == 2
    assert sentence.source == "lighthouse sings"
    split = next(each for each in tree_system.reader.read_split("test") if "@@" in " ".join(each.tokens))
    assert "@@" not in split.source and split.length < len(split.tokens)


def test_a_model_without_trees_shows_those_of_its_folder(chart_system, tree_system):
    theirs, ours = (next(system.reader.read_split("test")) for system in (tree_system, chart_system))
    assert ours.forest == theirs.forest and ours.forest


@pytest.mark.parametrize("line", ["", "  \t "])
def test_a_blank_line_is_an_error_of_that_line_alone(tree_system, line):
    record = Comparison([tree_system]).explain_line(line, 3)
    assert record.id == 3 and record.tokens == [] and record.parse is None
    assert record.systems[0].error == "the line is blank" and record.systems[0].views == {}


def test_a_malformed_tree_is_an_error_of_that_line_alone(tree_system, caplog):
    document = Comparison([tree_system]).document_of_lines(["(S (VP (VBZ sings)))", "(S (VP (VBZ sings)"])
    first, second = document.sentences
    assert first.systems[0].error is None and first.systems[0].views
    assert second.systems[0].error.startswith("line 2, column 1: 2 brackets are never closed")
    assert "has no output for 1 of 2 sentences; the first is 1" in caplog.text


def test_unknown_words_are_shown_as_the_model_reads_them(tree_system):
    record = Comparison([tree_system]).explain_line("(S (NP (NN zebra)) (VP (VBZ sings)))")
    assert record.tokens == ["<unk>", "sings"] and "zebra" in record.parse["labels"]
    assert record.systems[0].error is None


@pytest.mark.parametrize("line", ["word " * 12_000, "(S " + "(NN word) " * 12_000 + ")", "( " * 12_000])
def test_a_typed_line_beyond_the_positions_is_not_parsed(tree_system, line, monkeypatch):
    monkeypatch.setattr(tree_system.task, "get_interactive_tokens_and_lengths", None)
    assert "reads at most 1024" in tree_system.reader.read_line(line).error


def test_a_sentence_beyond_the_positions_of_a_model_is_named(data_bin):
    flags = "--max-source-positions", 6
    system = System(untrained(data_bin, "translation", "treeformer_tiny", *flags), beam=1, max_len_b=3)
    record = Comparison([system]).explain_line("she sees it in the garden .")
    assert record.systems[0].error == "the sentence has 8 tokens, and the model reads at most 6"
    assert record.length == 7 and record.tokens[0] == "she"
    assert Comparison([system]).explain_line("she sees it .").systems[0].error is None


def test_deep_trees_and_forests_have_all_views(tree_system):
    tree = Tree("NN", [Tree("dog")])
    for _ in range(60):
        tree = Tree("NP", [Tree("DT", [Tree("the")]), tree])
    line = f"{write_forest((tree,))} (S (VP (VBZ sings)))"
    record = Comparison([tree_system]).explain_line(line)
    assert record.depth == 61 and len(record.tokens) == 62
    assert len(record.systems[0].views["accumulation"]["nodes"]) == 60
    assert record.parse["children"].count(2) == 60


def test_a_single_word_has_no_nodes(tree_system):
    views = Comparison([tree_system]).explain_line("(S (VP (VBZ sings)))").systems[0].views
    assert "accumulation" not in views and "cross_attention" in views
