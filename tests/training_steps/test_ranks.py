"""Processes that train together do what one does with as many batches an update, whatever the task and the criterion.

The suite has two processes and a case of each architecture, criterion, kind of folder and encoder. With
``TREE_FAIRSEQ_LONG_TESTS=1`` it has all cases, two and four processes, and both of fairseq's ways to share gradients.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from typing import Callable

import pytest
import torch

from tests.training_steps.cases import CASES, Case
from tests.training_steps.ranks import MEASURES, Outcome, Ranks, arguments_of

IS_LONG = os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0"
BACKENDS = ("c10d", "legacy_ddp")
BATCHES = {"uneven": ("--batch-size", "5"), "one batch": ("--batch-size", "40", "--batch-size-valid", "3")}
"""Of 24 sentences, the last batch has 4 and some processes have none; or only the first process has any."""


def _of_interest(cases: list[Case]) -> list[Case]:
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


SHORT = _of_interest(CASES)


@pytest.fixture(scope="module")
def ranks() -> Iterator[Callable[[int], Ranks]]:
    """Waiting processes by their number; new ones if those of an earlier test have failed."""
    running: dict[int, Ranks] = {}

    def get(count: int) -> Ranks:
        if count not in running or not running[count].is_alive:
            running[count] = Ranks(count)
        return running[count]

    yield get
    for group in running.values():
        group.close()


@pytest.fixture(scope="module")
def alone(ranks, folders) -> Callable[[Case, int, tuple[str, ...]], Outcome]:
    """The outcome of a case in one process, with a number of batches an update."""

    @functools.cache
    def train(case: Case, batches: int, flags: tuple[str, ...]) -> Outcome:
        return ranks(2).alone([*arguments_of(case, folders), "--update-freq", str(batches), *flags])

    return train


def compare(together: list[Outcome], alone: Outcome) -> None:
    """Holds the processes to each other and the first to the one alone."""
    first = together[0]
    for other in together[1:]:
        assert all(torch.equal(weight, first.weights[name]) for name, weight in other.weights.items())
    moved = max((alone.weights[name] - weight).abs().max().item() for name, weight in alone.start.items())
    assert moved > 1e-3  # otherwise equal weights would mean nothing
    assert first.weights.keys() == alone.weights.keys()
    for name, weight in alone.weights.items():
        torch.testing.assert_close(first.start[name], alone.start[name], rtol=0, atol=0)
        torch.testing.assert_close(first.weights[name], weight, rtol=1e-5, atol=1e-5)
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
def test_two_processes_are_as_one(case, ranks, alone, folders):
    backend = BACKENDS[SHORT.index(case) % 4 == 3]
    command = [*arguments_of(case, folders), "--ddp-backend", backend, *BATCHES["uneven"]]
    compare(ranks(2).together(command), alone(case, 2, BATCHES["uneven"]))


@pytest.mark.skipif(not IS_LONG, reason="takes many minutes; set TREE_FAIRSEQ_LONG_TESTS=1 to run it")
@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_more_processes_are_as_one(case, batches, ranks, alone, folders):
    flags = BATCHES[batches]
    for count in (2, 4):
        for backend in BACKENDS:
            outcomes = ranks(count).together([*arguments_of(case, folders), "--ddp-backend", backend, *flags])
            compare(outcomes, alone(case, count, flags))
