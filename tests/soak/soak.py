"""The course of a soak: two trainings at the same pace, one of them unbroken, and the comparison at the end."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.processes import fill, in_groups, memory, mount_memory, own_mounts, slope, workers_of
from tests.soak.trainings import Training

TOLERANCE = 1e-4
SLOPE_LIMIT = 1e6  # Bytes an hour
# Loading processes look for their parent every five seconds.
_SECONDS_TO_END = 30


@dataclass(frozen=True)
class Fault:
    """A disturbance: from which update on, how many seconds later, and its kind: training, worker or disk."""

    update: int
    delay: float
    kind: str


@dataclass
class Course:
    arguments: Sequence[object]  # of ``fairseq-train``, but for its ``--save-dir``, ``--user-dir`` and ``--max-update``
    updates: int  # of each training
    interval: float  # seconds of an update
    faults: Sequence[Fault]  # in their order
    silence: float = 900.0  # seconds after which a training that records nothing is said to hang
    disk_bytes: int = 64 << 20  # size of the disk for the checkpoints
    warm_up: float = 0.25  # share of the run before memory is compared
    seed: int = 1
    is_fork: bool = False


def draw_faults(updates: int, apart: tuple[int, int], seed: int) -> list[Fault]:
    """Draws faults at random updates, so far apart: kills of the training and of workers in turn, one full disk."""
    chooser, faults, update = random.Random(seed), [], 0
    while (update := update + chooser.randint(*apart)) < updates - apart[0] // 2:
        faults.append(Fault(update, chooser.uniform(0, 5), "worker" if len(faults) % 3 == 1 else "training"))
    middle = len(faults) // 2
    faults[middle : middle + 1] = [Fault(faults[middle].update, 0.0, "disk")] if faults else []
    return faults


@dataclass
class Outcome:
    # sentences about everything that should not have happened; empty if all went well
    problems: list[str] = field(default_factory=list)
    # second, kind and further facts of each fault and each end
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    updates: int = 0
    starts: int = 0
    compared: int = 0  # number of losses that both have; ``computed_twice`` were computed again after a kill
    computed_twice: int = 0
    loss_difference: float = math.nan  # the largest between the two trainings at an equal update
    first_loss: float = math.nan
    last_loss: float = math.nan
    weight_difference: float = math.nan  # the largest between the weights at the end
    # slope of the memory of the unbroken training after its warm-up, without pages of files
    bytes_per_hour: float = math.nan
    resident_bytes_per_hour: float = math.nan  # the same with pages of files
    worker_bytes_per_hour: float = math.nan  # the same of a loading process
    # second; bytes of the unbroken training, those of them that are not pages of files, and the latter of one of its
    # loading processes
    memory: list[tuple[float, int, int, int]] = field(default_factory=list)
    has_small_disk: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Soak:
    """One run; see :class:`Course`."""

    def __init__(self, course: Course, folder: Path):
        self.course, self.folder, self.outcome = course, folder, Outcome()
        self._chooser = random.Random(course.seed)
        self._filler: Path | None = None
        self._hurt = False

    def run(self) -> Outcome:
        """Runs both trainings to their end, disturbs one of them, and compares."""
        course, outcome = self.course, self.outcome
        small = self.folder / "small-disk"
        small.mkdir(parents=True)
        outcome.has_small_disk = own_mounts() and mount_memory(small, course.disk_bytes)
        self._begin = time.time()
        pace = (self._begin + 20 * (not course.is_fork), course.interval)
        arguments = [*course.arguments, "--max-update", course.updates]
        self.unbroken = Training(self.folder / "unbroken", arguments, pace, is_fork=course.is_fork)
        self.broken = Training(self.folder / "broken", arguments, pace, small / "checkpoints", is_fork=course.is_fork)
        trainings = (self.unbroken, self.broken)
        try:
            for training in trainings:
                training.start()
            self._watch()
        finally:
            self._note_leaks()
            for training in trainings:
                training.end()
        outcome.seconds = time.time() - self._begin
        self._compare()
        return outcome

    def _watch(self) -> None:
        faults = [each for each in self.course.faults if each.kind != "disk" or self.outcome.has_small_disk]
        running = {"unbroken": self.unbroken, "broken": self.broken}
        self._progress = {name: (0, time.time()) for name in running}
        next_sample, due = 0.0, None
        while running:
            for name, training in list(running.items()):
                status = training.status()
                if status is not None:
                    if self._has_ended(name, training, status):
                        del running[name]
                elif self._is_silent(name, training):
                    self._problem(f"the {name} training hangs after update {training.updates()}")
                    training.kill()
                    self._progress[name] = (self._progress[name][0], time.time())
            # One fault at a time: a process that loads for the validation is missed only when the next one begins.
            if "broken" in running and faults and not self._hurt:
                if due is None and self.broken.updates() >= faults[0].update:
                    due = time.time() + faults[0].delay
                if due is not None and time.time() >= due and self._disturb(faults[0].kind):
                    faults.pop(0)
                    due = None
            if "unbroken" in running and time.time() >= next_sample:
                self._sample()
                next_sample = time.time() + max(0.2, min(5.0, self.course.updates * self.course.interval / 500))
            time.sleep(min(0.5, self.course.interval / 2))
        for fault in faults:
            self._problem(f"the {fault.kind} was not disturbed at update {fault.update}")

    def _has_ended(self, name: str, training: Training, status: int) -> bool:
        """Notes an end; starts the disturbed training again unless it has done all its updates."""
        last = training.updates()
        self._event("end", training=name, status=status, update=last, reason=training.reason() if status > 0 else "")
        if torn := training.torn_checkpoints():
            self._problem(f"not complete under their final names: {torn}")
        if self._filler is not None and name == "broken":
            self._filler.unlink()
            self._filler = None
        if status == 0:
            if training.furthest != self.course.updates:
                self._problem(f"the {name} training ended by itself at update {training.furthest}")
            return True
        if name == "unbroken" or not self._hurt:
            self._problem(f"the {name} training ended with {status}: {training.reason()}")
            return True
        self._hurt = False
        training.start()
        self._progress[name] = (training.starts, time.time())
        return False

    def _is_silent(self, name: str, training: Training) -> bool:
        size = training.record.stat().st_size if training.record.exists() else 0
        if size != self._progress[name][0]:
            self._progress[name] = (size, time.time())
        return time.time() - self._progress[name][1] > self.course.silence

    def _disturb(self, kind: str) -> bool:
        """Does harm, or returns False if there is nothing to harm at the moment."""
        training = self.broken
        if kind == "worker":
            workers = workers_of(training.pid)
            if not workers:
                return False
            victim = self._chooser.choice(workers)
            os.kill(victim, signal.SIGKILL)
            self._event("worker", pid=victim, update=training.updates())
        elif kind == "disk":
            self._filler = training.checkpoints.parent / "filler"
            self._event("disk", filled=fill(self._filler), update=training.updates())
        else:
            self._event("training", pid=training.pid, update=training.updates())
            training.kill()
        self._hurt = True
        return True

    def _sample(self) -> None:
        workers = workers_of(self.unbroken.pid)
        resident, own = memory(self.unbroken.pid)
        if own and self.unbroken.updates():
            of_workers = [memory(pid)[1] for pid in workers]
            second = round(time.time() - self._begin, 1)
            self.outcome.memory.append((second, resident, own, sum(of_workers) // max(1, len(of_workers))))

    def _note_leaks(self) -> None:
        """Notes processes that are left after both have ended, and files that are no checkpoints."""
        groups = [*self.unbroken.groups, *self.broken.groups]
        deadline = time.time() + _SECONDS_TO_END
        while (left := in_groups(groups)) and time.time() < deadline:
            time.sleep(0.2)
        if left:
            self._problem(f"processes are left: {left}")
        unfinished = [path.name for path in self.broken.checkpoints.glob("*") if path.suffix != ".pt"]
        if unfinished:
            self._event("left", files=unfinished)

    def _compare(self) -> None:
        outcome, expected, found = self.outcome, self.unbroken.losses(), self.broken.losses()
        outcome.starts, outcome.updates = self.broken.starts, self.broken.furthest
        outcome.compared = len(expected.keys() & found.keys())
        outcome.computed_twice = sum(len(values) > 1 for values in found.values())
        if missing := expected.keys() ^ found.keys():
            self._problem(f"one training lacks losses of the other: {sorted(missing)[:5]}")
        differences = [abs(value - expected[key][0]) for key in expected.keys() & found.keys() for value in found[key]]
        outcome.loss_difference = max(differences, default=math.nan)
        if not outcome.loss_difference <= TOLERANCE:
            self._problem(f"losses at equal updates differ by {outcome.loss_difference}")
        updates = sorted(key for key in expected if key[0] == "train")
        if updates:
            outcome.first_loss, outcome.last_loss = expected[updates[0]][0], expected[updates[-1]][0]
        outcome.weight_difference = self._weight_difference()
        if not outcome.weight_difference <= TOLERANCE:
            self._problem(f"weights differ by {outcome.weight_difference} at the end")
        after = outcome.memory[int(self.course.warm_up * len(outcome.memory)) :]
        if len(after) > 1:
            seconds, residents, own, of_workers = zip(*after)
            outcome.resident_bytes_per_hour = 3600 * slope(list(zip(seconds, residents)))
            outcome.bytes_per_hour = 3600 * slope(list(zip(seconds, own)))
            outcome.worker_bytes_per_hour = 3600 * slope(list(zip(seconds, of_workers)))
            # A shorter run says nothing about an hour.
            if after[-1][0] - after[0][0] > 1800:
                for name, growth in (("training", outcome.bytes_per_hour), ("worker", outcome.worker_bytes_per_hour)):
                    if growth > SLOPE_LIMIT:
                        self._problem(f"memory of a {name} grows by {growth:.0f} bytes an hour")

    def _weight_difference(self) -> float:
        import torch

        paths = [each.checkpoints / "checkpoint_last.pt" for each in (self.unbroken, self.broken)]
        if not all(path.exists() for path in paths):
            return math.nan
        # The allowed classes of fairseq's checkpoints are the plugin's.
        import fairseq  # noqa: F401

        import tree_fairseq

        tree_fairseq.register()
        first, second = (torch.load(path, weights_only=True)["model"] for path in paths)
        return max(float((first[name].double() - second[name].double()).abs().max()) for name in first)

    def _event(self, kind: str, **facts: object) -> None:
        event = {"second": round(time.time() - self._begin, 1), "kind": kind, **facts}
        self.outcome.events.append(event)
        print(" ".join(f"{name}={value}" for name, value in event.items()), flush=True)

    def _problem(self, text: str) -> None:
        self.outcome.problems.append(text)
        print(f"PROBLEM {text}", flush=True)
