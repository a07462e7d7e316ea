"""The short form of the soak, in the suite: seconds in place of hours, and forks in place of new processes.

``make soak MINUTES=120`` is the long one.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.soak.processes import fill, mount_memory, own_mounts, slope
from tests.soak.soak import Course, Fault, Soak, draw_faults
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


def test_a_fault_waits_for_the_end_of_the_one_before(tmp_path):
    """A training may go on for some updates before it misses a loading process, and come by the next fault."""

    class Slow(Training):
        """Does an update whenever it is asked for its status, and ends by itself 5 updates after it was hurt."""

        update = end = 0

        def status(self):
            self.update += 1
            self.furthest = max(self.furthest, self.update)
            return 0 if self.update == 30 else 1 if self.update == self.end else None

        def updates(self):
            return self.update

        def start(self):
            self.update, self.end = 5, 0

    course = Course([tmp_path], 30, 0.001, [Fault(8, 0.0, "training"), Fault(10, 0.0, "worker")])
    soak = Soak(course, tmp_path)
    soak.unbroken, soak.broken = (Slow(tmp_path / name, [], (0.0, 1.0)) for name in ("unbroken", "broken"))

    def disturb(kind):
        soak._event(kind, update=soak.broken.update)
        soak.broken.end, soak._hurt = soak.broken.update + 5, True
        return True

    soak._begin, soak._disturb, soak._sample = 0.0, disturb, lambda: None
    soak._watch()
    assert soak.outcome.problems == []
    events = [(event["kind"], event["update"]) for event in soak.outcome.events if event.get("training") != "unbroken"]
    assert events == [("training", 8), ("end", 13), ("worker", 10), ("end", 15), ("end", 30)]


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


def test_a_slope_is_that_of_the_trend():
    noise = random.Random(3)
    samples = [(second, 1e8 + 50 * second + noise.gauss(0, 1e4)) for second in range(0, 3600, 5)]
    samples[100] = (500, 2e8)
    assert slope(samples) == pytest.approx(50, rel=0.05)
    assert slope(samples[:1]) == 0


def test_faults_are_of_every_kind_and_apart():
    faults = draw_faults(14_400, (600, 1200), seed=1)
    assert {fault.kind for fault in faults} == {"training", "worker", "disk"} and len(faults) >= 12
    updates = [0, *(fault.update for fault in faults)]
    assert all(600 <= after - before <= 1200 for before, after in zip(updates, updates[1:]))


def test_a_small_disk_gets_full(tmp_path):
    def action() -> int:
        if not (own_mounts() and mount_memory(tmp_path, 1 << 20)):
            return 77
        return 0 if fill(tmp_path / "filler") == 1 << 20 else 1

    status = in_fork(action)
    if status == 77:
        pytest.skip("mounting is not permitted here")
    assert status == 0 and not (tmp_path / "filler").exists()
