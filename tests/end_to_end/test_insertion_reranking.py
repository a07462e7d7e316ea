"""Several trees for each sentence, ranked by a left-to-right model, through fairseq's commands; faults of options."""

from __future__ import annotations

import re

import pytest
import torch
from torch.nn import functional

from tests.end_to_end.insertion import BRACKET, TASK, System, generate, steps_and_marks, system_of, train
from tests.end_to_end.roads import take_all
from tests.tree_insertion.test_task import batches, task_of
from tree_fairseq import hub
from tree_fairseq.errors import DictionaryMismatchError, InputError, StructuralSearchError
from tree_fairseq.tree_insertion.sampled_search import LeftToRightScorer, SampledInsertionGenerator
from tree_fairseq.tree_insertion.search import InsertionGenerator

SAMPLES = ("--insertion-samples", 8, "--insertion-temperature", 2)


@pytest.fixture
def system(shared):
    return system_of(shared, "numbered")


@pytest.fixture
def scorer(shared):
    return system_of(shared, "left to right").best


def ranked(output: str) -> dict[int, list[tuple[str, float]]]:
    """All hypotheses of each sentence, as they are printed."""
    found: dict[int, list[tuple[str, float]]] = {}
    for number, score, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE):
        found.setdefault(int(number), []).append((text, float(score)))
    return found


@pytest.mark.parametrize("is_reranked", [False, True])
def test_lists_agree_on_all_roads(system, scorer, is_reranked, tmp_path):
    options = {"insertion_samples": 8, "insertion_temperature": 2.0}
    if is_reranked:
        options |= {"rerank_path": str(scorer)}
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    flags += ["--seed", 7]  # that of training, which the hub takes
    output = generate(system, *flags, "--nbest", 3)
    found = ranked(output)
    assert len(found) == 16 and any(len(trees) > 1 for trees in found.values())
    for trees in found.values():
        assert 1 <= len(trees) <= 3 and len(dict(trees)) == len(trees)
        assert all(BRACKET.write(BRACKET.read(text)) == text for text, _ in trees)
    lines = (system.text / "test.nl").read_text(encoding="utf-8").splitlines()
    roads = take_all(system.data, system.best, TASK, lines, tmp_path, *flags, "--nbest", 3)
    translated = hub.from_pretrained(system.folder, data_name_or_path=system.data, **options).translate(lines)
    for number, trees in found.items():
        for output in (roads.typed, roads.translated):
            listed = ranked(output)[number]
            assert [text for text, _ in listed] == [text for text, _ in trees]
            assert [score for _, score in listed] == pytest.approx([score for _, score in trees], abs=1e-4)
        assert translated[number] == trees[0][0]
    again = generate(system, *flags, "--nbest", 3, "--batch-size", 3)
    assert {number: [text for text, _ in trees] for number, trees in ranked(again).items()} == {
        number: [text for text, _ in trees] for number, trees in found.items()
    }


def test_the_seed_changes_the_draws(system):
    def texts(*flags):
        return {
            text for trees in ranked(generate(system, *SAMPLES, "--nbest", 8, *flags)).values() for text, _ in trees
        }

    assert texts("--seed", 5) != texts("--seed", 6)


def test_references_are_scored_as_training_reads_them(system, scorer):
    loaded = hub.from_pretrained(scorer.parent, data_name_or_path=system.data)
    [model], dictionary = loaded.models, loaded.task.target_dictionary
    for batch in batches(loaded.task, "test"):
        given = batch["target"]
        trees = [dictionary.renumbered(row[row != dictionary.pad()]) for row in given]
        found = LeftToRightScorer(model).score(batch["net_input"], torch.arange(len(trees)), trees)
        with torch.no_grad():
            logits, _ = model(**batch["net_input"])
        losses = functional.cross_entropy(
            logits.transpose(1, 2), batch["bracketed_target"], ignore_index=dictionary.pad(), reduction="none"
        )
        torch.testing.assert_close(found.float(), -losses.sum(1), atol=1e-4, rtol=1e-5)


def test_trajectories_may_end_with_the_best_one(system):
    plain = steps_and_marks(generate(system))
    found = steps_and_marks(generate(system, *SAMPLES, "--insertion-extra-steps", 0))
    assert all(steps == plain[number][0] for number, (steps, marks) in found.items() if not marks)


def test_validation_ranks_too(system, tmp_path):
    log = train(system.data, tmp_path, "--eval-accuracy", *SAMPLES, "--max-epoch", 1)
    assert re.search(r"valid on 'valid' subset.*? accuracy ", log)
    loaded = hub.from_pretrained(tmp_path, data_name_or_path=system.data)
    assert isinstance(loaded.task.build_generator(loaded.models, loaded.cfg.generation), SampledInsertionGenerator)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"insertion_temperature": 2.0}, "--insertion-temperature needs .*--insertion-samples N"),
        ({"insertion_extra_steps": 0}, "--insertion-extra-steps needs .*--insertion-samples N"),
        ({"rerank_path": "a.pt"}, "--rerank-path needs .*--insertion-samples N"),
        ({"insertion_samples": 4, "insertion_temperature": 0.0}, "--insertion-temperature is above 0, not 0.0"),
    ],
)
def test_options_that_do_not_go_together(system, options, message):
    with pytest.raises(InputError, match=message):
        task_of(system.data, **options)


def changed(checkpoint, destination, change):
    state = torch.load(checkpoint, weights_only=False)
    change(state)
    torch.save(state, destination)
    return destination


def test_other_models_cannot_rank(system, scorer, tmp_path):
    def refused(path, error, message):
        with pytest.raises(error, match=message):
            generate(system, *SAMPLES, "--rerank-path", path)

    refused(system.best, InputError, "has a model that does not write from left to right")

    def has_other_labels(state):
        state["task_state"]["insertion_labels"] = state["task_state"]["insertion_labels"][::-1]

    other = changed(scorer, tmp_path / "labels.pt", has_other_labels)
    refused(other, DictionaryMismatchError, "labels of the targets")


def test_sequences_have_one_trajectory(system, scorer):
    with pytest.raises(StructuralSearchError, match="--insertion-samples does not work with sequences of trees"):
        generate(System(system.text, system.data, scorer.parent, ""), "--insertion-samples", 4)


def test_paths_in_a_checkpoint_are_not_used(system, scorer, tmp_path):
    def names_a_scorer(state):
        state["cfg"]["task"].update(insertion_samples=4, rerank_path="/of/another/machine.pt")

    changed(system.best, tmp_path / "checkpoint_best.pt", names_a_scorer)
    loaded = hub.from_pretrained(tmp_path, data_name_or_path=system.data, insertion_samples=1)
    generator = loaded.task.build_generator(loaded.models, loaded.cfg.generation)
    assert type(generator) is InsertionGenerator and loaded.task.cfg.rerank_path is None
