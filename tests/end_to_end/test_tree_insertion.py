"""Trees that grow by insertions through fairseq's own commands: preprocess, train, generate, interactive, hub."""

from __future__ import annotations

import json
import re

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, logged, run
from tests.end_to_end.insertion import BRACKET, TASK, TREES, generate, steps_and_marks, system_of
from tests.end_to_end.roads import take_all
from tree_fairseq import hub
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.scoring.tree_runs import TreeSet
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.task import TreeInsertionTask


@pytest.fixture(params=list(TREES))
def system(request, shared):
    return system_of(shared, request.param)


def test_it_learns(system):
    losses, accuracies = logged("loss", system.log), logged("slot_accuracy", system.log)
    assert losses[-1] < 0.8 * losses[0]
    assert accuracies[-1] > accuracies[0]


def test_all_roads_agree(system, caplog, tmp_path):
    lines = (system.text / "test.nl").read_text(encoding="utf-8").splitlines()
    roads = take_all(system.data, system.best, TASK, lines, tmp_path)
    for text, probability in hypotheses(roads.generated).values():
        assert BRACKET.write(BRACKET.read(text)) == text and "::" not in text and probability <= 0
    steps = steps_and_marks(roads.generated)
    assert sorted(steps) == list(range(16)) and all(1 <= count <= 50 for count, _ in steps.values())
    for number, best in enumerate(roads.best):
        assert (best["steps"], best.get("unfinished", [])) == steps[number]
        assert BRACKET.read(best["brackets"]) == BRACKET.read(best["text"])
    targets = (system.text / "test.lf").read_text(encoding="utf-8").splitlines()
    assert [BRACKET.write(BRACKET.read(line)) for line in targets] == [
        text for _, text in sorted(lines_of("T", roads.generated).items())
    ]
    model = hub.from_pretrained(system.folder, data_name_or_path=system.data)
    trees = model.translate_to_trees(lines)
    assert [BRACKET.read(best["text"]) for best in roads.best] == trees
    assert model.translate_to_trees(lines[0]) == trees[0]


@pytest.mark.parametrize("system", ["numbered"], indirect=True)
def test_every_step_is_printed(system):
    output = generate(system, "--retain-iter-history")
    steps = steps_and_marks(output)
    history = re.findall(r"^E-(\d+)_(\d+)\t(.*)$", output, re.MULTILINE)
    for number, (text, _) in hypotheses(output).items():
        trees = [tree for owner, _, tree in history if int(owner) == number]
        assert len(trees) == steps[number][0] and trees[-1] == text


@pytest.mark.parametrize("system", ["numbered"], indirect=True)
def test_options_of_beams_are_refused(system):
    with pytest.raises(StructuralSearchError, match="--nbest does not work with insertions"):
        generate(system, "--nbest", 2)
    with pytest.raises(StructuralSearchError, match="--lenpen does not work with insertions"):
        generate(system, "--lenpen", 0.6)


@pytest.mark.parametrize("system", ["numbered"], indirect=True)
def test_validation_generates(system):
    accuracies = logged("accuracy", system.log)
    assert len(accuracies) == 4 and all(0 <= accuracy <= 100 for accuracy in accuracies)
    assert logged("best_accuracy", system.log) == [max(accuracies[: count + 1]) for count in range(1, 4)]


@pytest.mark.parametrize("system", ["parsed source"], indirect=True)
def test_partial_trees_are_counted(system, tmp_path, monkeypatch):
    arguments = ["--run", tmp_path, "--references", system.text, "--data", system.data]
    for is_partial in (False, True):
        if is_partial:
            monkeypatch.setattr(TreeInsertionTask, "_limits", lambda task, models: InsertionLimits(nodes=1))
        generate(system, "--results-path", tmp_path)
        assert TreeSet.main(list(map(str, arguments))) == 0
        result = json.loads((tmp_path / "score.json").read_text())
        found = steps_and_marks((tmp_path / "generate-test.txt").read_text())
        assert result["metrics"]["steps"] == sum(steps for steps, _ in found.values()) / 16
        assert 0 <= result["metrics"]["validity"] <= 1
        assert result["partial"] == {"test": sum("partial" in marks for _, marks in found.values())}
        assert (result["partial"]["test"] > 0) is is_partial


@pytest.mark.parametrize("system", ["numbered"], indirect=True)
def test_options_of_other_searches_are_refused(system):
    for options in (("--sampling", "--beam", 1), ("--print-alignment", "hard"), ("--prefix-size", 1)):
        with pytest.raises(StructuralSearchError, match=options[0]):
            generate(system, *options)


@pytest.mark.parametrize("system", ["numbered"], indirect=True)
def test_an_ensemble(system):
    paths = ":".join(str(system.folder / f"checkpoint{epoch}.pt") for epoch in (3, 4))
    output = run("generate", system.data, *TASK, "--path", paths, "--cpu")
    assert len(hypotheses(output)) == 16


@pytest.mark.parametrize(
    ("system", "nodes"), [("numbered", 2 * 8), ("absolute positions", (40 + 2) // 3 - 1)], indirect=["system"]
)
def test_trees_stay_as_small_as_they_have_to(system, nodes):
    model = hub.from_pretrained(system.folder, data_name_or_path=system.data)
    assert model.task.build_generator(model.models, model.cfg.generation).limits.nodes == nodes
    with pytest.raises(StructuralSearchError, match="ensemble"):
        model.task.build_generator([*model.models, None], model.cfg.generation)
