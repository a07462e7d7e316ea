"""Processes that train together do what one does with as many batches an update, whatever the task and the criterion.

The suite has two processes and a case of each architecture, criterion, kind of folder and encoder. With
``TREE_FAIRSEQ_LONG_TESTS=1`` it has all cases, two and four processes, and both of fairseq's ways to share gradients.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Callable

import numpy as np
import pytest
from omegaconf import DictConfig

from tests.training_steps.cases import CASES, Case
from tests.training_steps.ranks import MEASURES, Outcome, Ranks, configuration_of

IS_LONG = os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0"
BACKENDS = ("c10d", "legacy_ddp")
BATCHES = {
    "uneven": {"dataset.batch_size": 5, "dataset.batch_size_valid": 5},
    "one epoch": {"dataset.batch_size": 5, "dataset.batch_size_valid": 5, "optimization.max_epoch": 1},
    "one batch": {"dataset.batch_size": 40, "dataset.batch_size_valid": 3},
}
"""Of 24 sentences, the last batch has 4, and some processes have none; or only the first process ever has a batch."""


def of_interest(cases: list[Case]) -> list[Case]:
    """The first cases with a new architecture, folder, criterion or encoder."""
    seen: set[str] = set()
    chosen = []
    for case in cases:
        flags = dict(zip(case.flags, case.flags[1:]))
        marks = {
            case.arch,
            case.folder,
            flags["--criterion"],
            flags.get("--task", ""),
            flags.get("--source-encoder", ""),
        }
        if not marks <= seen:
            chosen.append(case)
        seen |= marks
    return chosen


_GENERATING = (
    ("translation", "tree_transformer_tiny", "--eval-bleu"),
    ("tree-to-tree", "tree_positional_transformer_tiny", "--eval-accuracy"),
    ("insertion", "tree_insertion_transformer_tiny", "--eval-accuracy"),
)
VALIDATED = [
    replace(case, name=f"{case.name}, {flag}", flags=(*case.flags, flag))
    for folder, arch, flag in _GENERATING
    for case in [next(case for case in CASES if (case.folder, case.arch) == (folder, arch))]
]
"""Cases that generate when they validate: their logs have sums of another kind."""
ALL = [*CASES, *VALIDATED]
SHORT = [*of_interest(CASES), *VALIDATED]


@pytest.fixture(scope="module")
def ranks(folders) -> Iterator[Callable[[int], Ranks]]:
    """Waiting processes by their number; new ones if those of an earlier test have failed."""
    folders.pretrained()  # imports transformers, once for all of them
    running: dict[int, Ranks] = {}

    def get(count: int) -> Ranks:
        if count not in running or not running[count].is_alive:
            running[count] = Ranks(count)
        return running[count]

    yield get
    for group in running.values():
        group.close()


@pytest.fixture(scope="module")
def configured(folders) -> Callable[[Case], DictConfig]:
    return functools.cache(lambda case: configuration_of(case, folders))


@pytest.fixture(scope="module")
def alone(ranks, configured) -> Callable[[Case, int, str], Outcome]:
    @functools.cache
    def train(case: Case, count: int, batches: str) -> Outcome:
        return ranks(2).alone(configured(case), {**BATCHES[batches], "optimization.update_freq": [count]})

    return train


def compare(together: list[Outcome], alone: Outcome) -> None:
    first = together[0]
    for other in together[1:]:
        assert all(np.array_equal(weight, first.weights[name]) for name, weight in other.weights.items())
    moved = max(abs(alone.weights[name] - weight).max() for name, weight in alone.start.items())
    assert moved > 1e-3  # otherwise equal weights would mean nothing
    assert first.weights.keys() == alone.weights.keys()
    for name, weight in alone.weights.items():
        np.testing.assert_array_equal(first.start[name], alone.start[name])
        np.testing.assert_allclose(first.weights[name], weight, rtol=1e-5, atol=1e-5)
    assert len(first.updates) == len(alone.updates) > 1
    for ours, expected in zip([*first.updates, first.validation], [*alone.updates, alone.validation]):
        assert ours == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert len(first.reported) == len(alone.reported) > 1
    for ours, expected in zip(map(json.loads, first.reported), map(json.loads, alone.reported)):
        assert ours.keys() == expected.keys()
        for name, value in expected.items():
            if not name.endswith(MEASURES):
                assert float(ours[name]) == pytest.approx(float(value), rel=1e-3, abs=2e-3), name


@pytest.mark.parametrize("case", SHORT, ids=[case.name for case in SHORT])
def test_two_processes_are_as_one(case, ranks, alone, configured):
    backend = BACKENDS[SHORT.index(case) % 4 == 3]
    changes = {**BATCHES["one epoch"], "distributed_training.ddp_backend": backend}
    compare(ranks(2).together(configured(case), changes), alone(case, 2, "one epoch"))


@pytest.mark.skipif(not IS_LONG, reason="takes many minutes; set TREE_FAIRSEQ_LONG_TESTS=1 to run it")
@pytest.mark.parametrize("batches", ["uneven", "one batch"])
@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_more_processes_are_as_one(case, batches, ranks, alone, configured):
    for count in (2, 4):
        for backend in BACKENDS:
            changes = {**BATCHES[batches], "distributed_training.ddp_backend": backend}
            compare(ranks(count).together(configured(case), changes), alone(case, count, batches))


@pytest.mark.parametrize("backend", BACKENDS if IS_LONG else BACKENDS[:1])
def test_a_loss_that_is_not_finite_ends_all_of_them(backend, ranks, configured):
    """None waits for another one."""
    changes = {"distributed_training.ddp_backend": backend, "criterion.label_smoothing": math.nan}
    with pytest.raises(AssertionError) as caught:
        ranks(2).together(configured(SHORT[0]), {**BATCHES["one epoch"], **changes})
    for rank in range(2):
        assert re.search(rf"NonFiniteError: training stopped at update .*crash-{rank}.json", str(caught.value))
