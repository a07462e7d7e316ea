"""Baselines of insertion-based decoding through fairseq's own commands, on the folders of the task that grows trees."""

from __future__ import annotations

import json

import pytest

from tests.end_to_end.commands import hypotheses, logged
from tests.end_to_end.insertion import (
    BASELINES,
    BRACKET,
    CROSS_ENTROPY,
    TASK,
    generate,
    steps_and_marks,
    system_of,
    train,
)  # fmt: skip
from tests.end_to_end.roads import take_all
from tree_fairseq.errors import InputError, StructuralSearchError, SymbolTreeError
from tree_fairseq.scoring.tree_runs import TreeSet
from tree_fairseq.trees.notations.notation import GROUP
from tree_fairseq.trees.tree import Tree


@pytest.fixture(params=list(BASELINES))
def system(request, shared):
    return system_of(shared, request.param)


def tree_of(text: str) -> Tree | None:
    try:
        return BRACKET.read(text)
    except SymbolTreeError:
        return None


def test_it_learns_and_generates_everywhere_the_same(system, tmp_path):
    losses = logged("loss", system.log)
    assert losses[-1] < 0.9 * losses[0]
    lines = (system.text / "test.nl").read_text(encoding="utf-8").splitlines()
    roads = take_all(system.data, system.best, TASK, lines, tmp_path)
    assert min(steps for steps, _ in steps_and_marks(roads.generated).values()) >= 1
    # Trees are printed without numbers, other outputs word by word.
    trees = {best["text"]: tree_of(best["text"]) for best in roads.best if "::" not in best["text"]}
    assert all(BRACKET.write(tree) == text for text, tree in trees.items() if tree is not None)


@pytest.mark.parametrize("system", ["left to right", "binary"], indirect=True)
def test_what_does_not_go_together_is_refused(system, tmp_path):
    for options in (("--print-alignment", "hard"), ("--prefix-size", 1), ("--retain-iter-history",)):
        with pytest.raises(StructuralSearchError, match=options[0]):
            generate(system, *options)
    is_left_to_right = "label_smoothed" in system.log
    for options in (("--nbest", 2), ("--lenpen", 0.6)):
        if is_left_to_right:
            generate(system, *options)
        else:
            with pytest.raises(StructuralSearchError, match=f"{options[0]} does not work with sequences of trees"):
                generate(system, *options)
    arch = "tree_gru_tiny" if is_left_to_right else "sequence_insertion_transformer_tiny"
    with pytest.raises(InputError, match="--criterion"):
        train(system.data, tmp_path / "run", "--arch", arch, *(() if is_left_to_right else CROSS_ENTROPY))


@pytest.mark.parametrize("system", ["left to right", "binary"], indirect=True)
def test_sequences_that_are_no_trees_are_invalid(system, tmp_path):
    """Brackets that are completed can make a group, which the notation reads and the model's labels never are."""
    generate(system, "--results-path", tmp_path)
    output = (tmp_path / "generate-test.txt").read_text(encoding="utf-8")
    said, trees = steps_and_marks(output), {number: tree_of(text) for number, (text, _) in hypotheses(output).items()}
    for number, tree in trees.items():
        is_tree = tree is not None and all("::" not in node.label and node.label != GROUP for node in tree.preorder())
        assert ("invalid" in said[number][1]) is not is_tree
    arguments = ["--run", tmp_path, "--references", system.text, "--data", system.data]
    assert TreeSet.main(list(map(str, arguments))) == 0
    metrics = json.loads((tmp_path / "score.json").read_text())["metrics"]
    assert metrics["validity"] == 1 - sum("invalid" in marks for _, marks in said.values()) / 16
    assert metrics["steps"] == sum(steps for steps, _ in said.values()) / 16
