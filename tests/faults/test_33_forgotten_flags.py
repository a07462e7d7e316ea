"""A task that needs trees, in ``fairseq-preprocess`` without the flags that make them."""

from __future__ import annotations

import pytest
from fairseq.tasks import TASK_REGISTRY

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq.errors import InputError

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
