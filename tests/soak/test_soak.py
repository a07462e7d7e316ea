"""The short form of the soak, in the suite: seconds in place of hours, and forks in place of new processes.

``make soak MINUTES=120`` is the long one.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.fork_server import import_optimisers
from tests.soak.soak import Course, Fault, Soak
from tests.soak.trainings import Training


def in_fork(action) -> int:
    """Runs a function in a fork, for file systems of its own; returns the exit status."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            status = action()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_the_disturbed_training_is_the_unbroken_one(data_bin, tmp_path):
    arguments = [
        data_bin, "--task", "tree_translation", "--arch", "tree_transformer_tiny", "--cpu", "--optimizer", "adam",
        "--lr", "5e-3", "--dropout", 0.1, "--criterion", "label_smoothed_cross_entropy", "--max-tokens", 160,
        "--num-workers", 1, "--seed", 7, "--log-format", "json", "--save-interval-updates", 6,
        "--validate-interval-updates", 6, "--keep-interval-updates", 2, "--keep-last-epochs", 1,
    ]  # fmt: skip
    faults = [Fault(8, 0.05, "training"), Fault(14, 0.0, "worker"), Fault(20, 0.0, "disk")]
    course = Course(arguments, 30, 0.15, faults, is_fork=True)

    def action() -> int:
        outcome = Soak(course, tmp_path / "soak").run()
        (tmp_path / "outcome").write_text(json.dumps(outcome.to_json()))
        return 0

    import_optimisers()
    assert in_fork(action) == 0
    outcome = json.loads((tmp_path / "outcome").read_text())
    assert outcome["problems"] == []
    kinds = [event["kind"] for event in outcome["events"] if event["kind"] not in ("end", "left")]
    assert kinds == ["training", "worker", *["disk"] * outcome["has_small_disk"]]
    ends = [event for event in outcome["events"] if event["kind"] == "end" and event["training"] == "broken"]
    assert [event["status"] for event in ends] == [-9, *[1] * (len(kinds) - 1), 0]
    # torch says so in the main process, or this package where a batch is taken.
    assert "DataLoader worker" in ends[1]["reason"] or "was killed by SIGKILL" in ends[1]["reason"]
    if outcome["has_small_disk"]:
        assert "No space left on device" in ends[2]["reason"]
    assert outcome["updates"] == 30 and outcome["starts"] == len(ends) and outcome["computed_twice"] > 0
    assert outcome["compared"] > 30 and outcome["loss_difference"] == outcome["weight_difference"] == 0


def test_a_difference_is_noticed(tmp_path):
    """The comparison, on records that disagree, or of which one is shorter."""
    soak = Soak(Course([tmp_path], 3, 1.0, []), tmp_path)
    for name, last in (("unbroken", "train\t3\t2.0"), ("broken", "train\t3\t2.001\ntrain\t4\t1.0")):
        training = Training(tmp_path / name, [], (0.0, 1.0))
        training.record.write_text(f"start\t1\t0\ntrain\t2\t3.0\nstart\t2\t0\ntrain\t2\t3.0\n{last}\ntorn")
        setattr(soak, name, training)
    soak._compare()
    assert soak.outcome.compared == 2 and soak.outcome.computed_twice == 1 and soak.outcome.starts == 2
    assert soak.outcome.updates == 4
    assert soak.outcome.loss_difference == pytest.approx(0.001)
    assert [problem.split(" differ")[0].split(":")[0] for problem in soak.outcome.problems] == [
        "one training lacks losses of the other",
        "losses at equal updates",
        "weights",
    ]
