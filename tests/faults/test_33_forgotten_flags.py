"""Flags that were forgotten: those that make the trees of a task, those of a tokeniser, and the language of a text."""

from __future__ import annotations

import pytest
from fairseq.tasks import TASK_REGISTRY

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import with_kind_of

PARSER = ("--tree-parser", "right-branching")
FORGOTTEN = [
    ("tree_translation", (), "needs constituency trees", "Add --tree-parser stanza"),
    ("tree_translation", ("--learn-subwords", 10), "needs constituency trees", "Add --tree-parser stanza"),
    ("tree_translation", ("--target-modality", "tree"), "needs constituency trees", "Add --tree-parser stanza"),
    ("tree_translation", (*PARSER, "--source-modality", "constituency"), "needs constituency trees", "Add"),
    ("structural_translation", (), "needs symbol trees", "Add --source-modality tree"),
    ("structural_translation", PARSER, "needs symbol trees", "Add --source-modality tree"),
    ("tree_classification", (), "--input-format tsv needs the trees of a parser", "Give --tree-parser"),
]


@pytest.mark.parametrize("task, flags, problem, hint", FORGOTTEN)
def test_a_task_without_its_trees_is_refused_before_anything_is_written(tmp_path, task, flags, problem, hint):
    for language in ("en", "de"):
        write_lines(tmp_path / f"train.{language}", ["a boat sinks"])
    write_lines(tmp_path / "train.tsv", ["a boat sinks\tsad"])
    sides = () if task == "tree_classification" else ("-s", "en", "-t", "de")
    with pytest.raises(InputError, match=problem) as caught:
        run("preprocess", *sides, *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin", "--task", task, *flags)
    assert hint in str(caught.value)
    assert not list(tmp_path.glob("bin*"))


def test_every_task_that_reads_trees_is_tried_here():
    """Targets of ``tree_insertion`` are always trees; the other two tasks read none."""
    ours = {name for name, task in TASK_REGISTRY.items() if task.__module__.startswith("tree_fairseq")}
    without = {"tree_insertion", "autocast_translation", "tree_sentence_classification"}
    assert ours - without == {task for task, *_ in FORGOTTEN}


@pytest.mark.parametrize("end", [" .", "."])
@pytest.mark.parametrize("flags", [(), ("--tokenizer", "moses"), ("--tokenizer", "moses", "--apply-tokenizer")])
def test_raw_text_without_a_tokenizer_is_a_warning(tmp_path, caplog, end, flags):
    """The words of the validation set stand at ends of lines that training does not have."""
    pytest.importorskip("sacremoses")
    nouns = ["boat", "ship", "raft", "tug", "ferry"]
    for language in ("en", "de"):
        write_lines(tmp_path / f"train.{language}", [f"the {noun} sinks near the shore{end}" for noun in nouns])
        write_lines(tmp_path / f"valid.{language}", [f"near the shore sinks the {noun}{end}" for noun in nouns])
    arguments = ("-s", "en", "-t", "de", *prefixes(tmp_path, "train", "valid"), "--destdir", tmp_path / "bin")
    run("preprocess", *arguments, "--task", "tree_translation", *PARSER, *flags)
    said = [message for message in caplog.messages if "unknown to the dictionary" in message]
    assert len(said) == (2 if end == "." and "--apply-tokenizer" not in flags else 0)
    assert all("33 % of the words" in message and "Add --tokenizer moses --apply" in message for message in said)


@pytest.mark.parametrize(("lang", "warns"), [("en", True), ("de", False), ("ja", False)])
def test_text_of_another_language_than_that_of_its_parser_is_a_warning(caplog, lang, warns):
    lines = ["der alte Mann sieht das Boot , und die Frau ist nicht auf dem Schiff ."] * 10
    with_kind_of(ParserOptions(name="stanza", lang=lang), lines, "train.en")
    assert bool(caplog.messages) == warns
    if warns:
        assert caplog.messages[0].startswith("train.en looks like de, and its parser is for en: 50 % of the words")
        assert "Give --tree-lang de" in caplog.messages[0]
    with_kind_of(ParserOptions(name="right-branching", lang="en"), lines, "train.en")
    assert len(caplog.messages) == warns
