"""A task that needs trees, in ``fairseq-preprocess`` without the flags that make them."""

from __future__ import annotations

import pytest

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq.errors import InputError


@pytest.mark.parametrize(
    "task, hint",
    [("tree_translation", "Add --tree-parser stanza"), ("structural_translation", "Add --source-modality tree")],
)
def test_a_task_without_its_trees_is_refused_before_anything_is_written(tmp_path, task, hint):
    for language in ("en", "de"):
        write_lines(tmp_path / f"train.{language}", ["a boat sinks"])
    command = ("preprocess", "-s", "en", "-t", "de", *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin")
    with pytest.raises(InputError, match=f"--task {task} needs trees") as caught:
        run(*command, "--task", task)
    assert hint in str(caught.value)
    assert not (tmp_path / "bin").exists()


def test_stock_tasks_need_no_trees(tmp_path):
    for language in ("en", "de"):
        write_lines(tmp_path / f"train.{language}", ["a boat sinks"])
    run("preprocess", "-s", "en", "-t", "de", *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin")
    assert (tmp_path / "bin" / "dict.en.txt").exists()
