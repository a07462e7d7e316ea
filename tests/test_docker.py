"""The container image: what can be checked where no docker engine runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, with continued lines joined and comments left out."""
    lines = "\n".join(line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", lines)
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line]


def test_the_base_is_an_argument_and_the_image_is_made_by_make():
    steps = instructions()
    assert steps[0][0] == "ARG" and steps[0][1].startswith("BASE=") and steps[1] == ("FROM", "${BASE}")
    assert all(name in ("ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "CMD") for name, _ in steps)
    (made,) = [text for name, text in steps if name == "RUN" and re.search(r"\bmake\b", text)]
    assert made.endswith(" make")
    assert ("CMD", '["make", "quickstart"]') in steps
    folder = dict(steps)["WORKDIR"]
    assert f"PATH={folder}/.venv/bin:$PATH" in dict(steps)["ENV"]


def run(tmp_path: Path, engine_answers: bool, linter_finds: int | None, *arguments: str):
    """Runs the script with programs that stand in for docker and, unless None is its status, for the linter."""
    calls = tmp_path / "calls"
    scripts = {"docker": f'[ "$1" != info ] || exit {int(not engine_answers)}\necho "$*" >> {calls}'}
    if linter_finds is not None:
        scripts["hadolint"] = f'echo "lint $*" >> {calls}\nexit {linter_finds}'
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [ROOT / "docker/build.sh", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done, calls.read_text().splitlines() if calls.exists() else []


@pytest.mark.parametrize(("kind", "base"), [("cpu", "debian"), ("cuda", "nvidia/cuda")])
def test_an_engine_builds_and_tries_the_image(tmp_path, kind, base):
    done, calls = run(tmp_path, True, None, kind)
    assert done.returncode == 0 and "built" in done.stdout
    assert [call.split()[0] for call in calls] == ["build", "run"]
    assert f"BASE={base}" in calls[0] and f"--tag tree-fairseq:{kind}" in calls[0]
    assert calls[1].endswith(f"tree-fairseq:{kind} tree-fairseq path")


@pytest.mark.parametrize(("linter_finds", "status"), [(0, 0), (3, 3), (None, 1)])
def test_without_an_engine_the_recipe_is_linted_and_the_script_says_so(tmp_path, linter_finds, status):
    done, calls = run(tmp_path, False, linter_finds)
    assert done.returncode == status and [call.split()[0] for call in calls] == ["lint"] * (linter_finds is not None)
    assert ("nothing was built" in done.stdout + done.stderr) == (linter_finds != 3)


def test_an_unknown_kind_is_refused(tmp_path):
    assert run(tmp_path, True, None, "tpu")[0].returncode == 2
