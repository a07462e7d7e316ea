"""Insertion-based decoding: targets that are no trees, labels that cannot be, dictionaries and trajectories that do not
belong together.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data_bin.corpora import prefixes
from tests.tree_insertion.test_preprocessing import exported, preprocess
from tests.tree_insertion.test_task import batches, task_of
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import (
    EmptySymbolTreeError,
    FaultyLinesError,
    MissingTreesError,
    MultipleRootsError,
    NotationError,
    ReservedMarkError,
    SymbolTreeError,
)
from tree_fairseq.tree_insertion.folder import InsertionRecord

GOOD = ("( f ( g a ) b )", "( f b )", "a")


def corpus_of(folder: Path, train=GOOD, test=GOOD) -> Path:
    folder.mkdir()
    for split, lines in (("train", train), ("valid", GOOD), ("test", test)):
        (folder / f"{split}.nl").write_text("say it\n" * len(lines), encoding="utf-8")
        (folder / f"{split}.lf").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path):
    return preprocess(corpus_of(tmp_path / "text"), tmp_path / "bin")


@pytest.mark.parametrize("line, error", [
    ("( f a", NotationError), ("( f a ) )", NotationError), ("", EmptySymbolTreeError), ("a b", MultipleRootsError),
    ("()", EmptySymbolTreeError),
    ("( f @R@ )", ReservedMarkError), ("</s>", ReservedMarkError), ("( f <unk> a )", ReservedMarkError),
    ("( f a::2 b )", ReservedMarkError),
])  # fmt: skip
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_line_that_is_no_tree_is_named_and_nothing_is_written(tmp_path, line, error, split):
    text = corpus_of(tmp_path / "text", **{split: (*GOOD, line)})
    with pytest.raises(error, match=rf"{split}\.lf:4\b"):
        preprocess(text, tmp_path / "bin")
    assert not (tmp_path / "bin").exists()


def test_all_faulty_lines_are_named(tmp_path):
    text = corpus_of(tmp_path / "text", train=("( f a", *GOOD, "( f a::2 b )", ""))
    with pytest.raises(FaultyLinesError) as caught:
        preprocess(text, tmp_path / "bin")
    assert [(type(error), error.line) for error in caught.value.errors] == [
        (NotationError, 1),
        (ReservedMarkError, 5),
        (EmptySymbolTreeError, 6),
    ]


def test_a_tree_that_is_too_large_is_named(tmp_path, monkeypatch):
    text = corpus_of(tmp_path / "text", train=(*GOOD, "( f " + "a " * 30 + ")"))
    with pytest.raises(SymbolTreeError, match=r"train\.lf:4: a tree of 31 nodes, more than 30"):
        monkeypatch.setattr("tree_fairseq.tree_insertion.preprocessing.MOST_NODES", 30)
        preprocess(text, tmp_path / "bin")
    monkeypatch.undo()
    assert check_folder(preprocess(text, tmp_path / "bin")) == []


def test_a_label_that_only_the_test_set_has_is_unknown(tmp_path):
    text = corpus_of(tmp_path / "text", test=("( f strange b )", "strange", "( f a a )"))
    data = preprocess(text, tmp_path / "bin")
    record = Manifest.load(data).section(InsertionRecord)
    assert record.splits["test"].unknown == 3 and record.splits["train"].unknown == 0
    assert exported(data, "test", tmp_path / "out") == ["( f <unk> b )", "<unk>", "( f a <unk> )"]
    assert check_folder(data) == []
    task = task_of(data)
    found = {label for batch in batches(task, "test") for label in batch["target"].flatten().tolist()}
    assert task.target_dictionary.unk() in found


def test_a_folder_without_trajectories(tmp_path):
    from tests.end_to_end.commands import run

    text = corpus_of(tmp_path / "text")
    data = tmp_path / "bin"
    flags = ("--destdir", data, "--tree-parser", "right-branching")
    run("preprocess", "-s", "nl", "-t", "lf", *prefixes(text, "train", "valid"), *flags)
    with pytest.raises(MissingTreesError, match="--task tree_insertion"):
        task_of(data)


def test_a_split_without_trajectories(tmp_path):
    data = preprocess(corpus_of(tmp_path / "text"), tmp_path / "bin", splits=("train", "valid"))
    with pytest.raises(MissingTreesError, match="trajectories for train, valid, but not for test"):
        task_of(data).load_dataset("test")
