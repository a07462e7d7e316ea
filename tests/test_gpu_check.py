"""The check of a GPU runs from end to end on the CPU; its runner survives parts that fail or hang."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings

import pytest
import torch

from tests.benchmarks.figures import Figure
from tests.end_to_end.commands import run_in_process
from tests.fork_server import programs
from tests.gpu import synchronisations
from tests.gpu.__main__ import main
from tests.gpu.cases import Outcome
from tests.gpu.device import Device
from tests.gpu.parts import PARTS, Result
from tests.gpu.processes import OUT_OF_TIME, ended_in_time
from tests.gpu.runner import Runner


def test_every_part_runs_on_the_cpu(tmp_path):
    pytest.importorskip("stanza", reason="Stanza is not installed")
    python = programs() / "python"
    command = [python, "-m", "tests.gpu", "--device", "cpu", "--quick", "--output", tmp_path, "--python", python]
    done = run_in_process([*command, "--train-seconds", 20], timeout=580)
    assert done.returncode == 0, done.stdout
    record = json.loads((tmp_path / "gpu.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert list(record["parts"]) == list(PARTS) and record["quick"]
    assert {part["status"] for part in record["parts"].values()} == {"done"}
    figures = {name: {row["figure"]: row for row in part["figures"]} for name, part in record["parts"].items()}
    assert all(figures.values()) and all(row["what"] for rows in figures.values() for row in rows.values())
    # The CPU agrees with itself, so these hold at any size.
    for name in ("loss_fp32", "gradients_fp32", "same_outputs", "ran", "loss_bf16", "gradients_bf16"):
        assert figures["correctness"][name]["met"], figures["correctness"][name]
    assert figures["parsing"]["same_trees"]["met"] and figures["two_processes"]["difference"]["met"]
    assert record["parts"]["training"]["details"]["updates"] == 2
    page = (tmp_path / "gpu.md").read_text()
    assert "| benchmark | ours | stock or peer | ratio | goal | met? |" in page
    assert page.count("\n| ") == sum(map(len, figures.values())) + 2
    assert "benchmark" in done.stdout and "written:" in done.stdout


def script(text: str) -> list[str]:
    """The command of a part: a few lines of Python, which start fast without packages."""
    return [sys.executable, "-S", "-c", text]


@pytest.mark.parametrize("words", [["--", "--device", "cpu", "--quick"], ["OPTIONS=--device cpu --quick"]], ids=str)
def test_make_passes_options_on(words):
    # The environment is taken as it is.
    done = run_in_process(["make", "--dry-run", "--old-file=environment", "gpu", *words])
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "tests.gpu" in line]
    assert line.split()[1:] == ["-m", "tests.gpu", "--device", "cpu", "--quick"]


SAVED = Result(figures=[Figure("x", 2.0, 1.0, what="a ratio")], notes=["A note."], device={"name": "a device"})


def test_a_part_that_fails_or_hangs_is_reported_and_the_next_one_runs(tmp_path):
    saved = tmp_path / "saved.json"
    SAVED.save(saved)

    def command(name, path, seconds):
        copy = f"import shutil; shutil.copy({str(saved)!r}, {str(path)!r})\n"
        endings = {
            "good": copy,
            "failing": copy + "raise SystemExit('CUDA error: no kernel image')",
            "hanging": copy + "import time; print('so far', flush=True); time.sleep(60)",
            "silent": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        }
        seen.append((name, (tmp_path / "out" / "gpu.json").exists()))
        return script(endings[name])

    seen, said = [], []
    runner = Runner(tmp_path / "out", command, 60)
    limits = {"failing": 20, "hanging": 2, "silent": 20, "good": 20}
    assert not runner.run(limits, said.append)
    record = json.loads((tmp_path / "out" / "gpu.json").read_text())
    parts = record["parts"]
    assert {name: part["status"] for name, part in parts.items()} == {
        "failing": "failed", "hanging": "out of time", "silent": "failed", "good": "done"
    }  # fmt: skip
    assert "no kernel image" in parts["failing"]["error"] and "2 s" in parts["hanging"]["error"]
    assert parts["silent"]["error"] == "status -9" and parts["silent"]["figures"] == []
    # Partial results are kept, and written after each part.
    assert all(parts[name]["figures"][0]["figure"] == "x" for name in ("failing", "hanging", "good"))
    assert seen == [("failing", False), ("hanging", True), ("silent", True), ("good", True)]
    assert record["device"] == {"name": "a device"}
    assert "so far" in (tmp_path / "out" / "hanging.log").read_text()
    assert "**failing: failed**: CUDA error: no kernel image" in (tmp_path / "out" / "gpu.md").read_text()
    assert said[0].startswith("failing: failed") and said[-1].startswith("good: done")


def test_a_process_ends_with_all_that_it_started():
    child = "import time; time.sleep(60)"
    text = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])"
    start = time.monotonic()
    assert ended_in_time(script(text), 1.0).returncode == OUT_OF_TIME
    # The grandchild held the pipe of the output: had it stayed, reading would have lasted a minute.
    assert time.monotonic() - start < 30
    done = ended_in_time(script("print('out'); raise SystemExit(3)"), 20)
    assert (done.returncode, done.stdout) == (3, "out\n")


def test_a_machine_without_a_gpu_is_told_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--device", "cuda"]) == 2
    assert "finds 0 GPUs. Without a GPU, --device cpu --quick shows" in capsys.readouterr().err
    assert main(["--device", "card"]) == 2
    assert "--device card" in capsys.readouterr().err


def test_differences_are_relative_and_find_what_is_missing_or_no_number():
    weight, zero = torch.tensor([3.0, 4.0]), torch.zeros(1)
    reference = Outcome(10.0, {"w": weight, "b": zero})
    assert reference.difference(reference) == (0, 0)
    loss, gradients = Outcome(10.1, {"w": weight * 1.1, "b": zero}).difference(reference)
    assert loss == pytest.approx(0.01) and gradients == pytest.approx(0.1)
    # A gradient that ought to be zero is compared with a hundredth of all gradients.
    assert Outcome(10.0, {"w": weight, "b": zero + 0.05}).difference(reference)[1] == pytest.approx(1)
    assert Outcome(10.0, {"w": weight}).difference(reference)[1] == math.inf
    assert Outcome(math.nan, {"w": weight * math.nan, "b": zero}).difference(reference) == (math.inf, math.inf)


class FakeGPU:
    """Stands for a device that warns of synchronisations as CUDA does."""

    is_gpu = True


def test_synchronisations_are_counted_by_place(monkeypatch):
    modes = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    with synchronisations.counted(FakeGPU()) as places:
        for _ in range(3):
            warnings.warn("called a synchronizing CUDA operation")
        warnings.warn("something else")
    assert modes == ["warn", "default"]
    ((place, count),) = places.items()
    assert count == 3 and place.startswith("tests/test_gpu_check.py:")
    with synchronisations.counted(Device("cpu")) as places:
        torch.ones(3).sum().item()
        torch.ones(3).nonzero()
        torch.ones(3).sum()
    assert places == {"_local_scalar_dense": 1, "nonzero": 1}
