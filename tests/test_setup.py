"""The environments that ``make`` builds: the lock files, the order of installation, the path for ``--user-dir``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tree_fairseq.__main__ import unusable_environment

ROOT = Path(__file__).resolve().parent.parent

# A replacement of python that records its arguments and only pretends to make environments and to install.
FAKE_PYTHON = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
echo "$*" >> "$CALLS"
case "$*" in
    "-m venv --clear "*)
        rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
    *"--requirement requirements"*)
        echo "$*, constraints: ${PIP_CONSTRAINT#"$PWD"/}" >> "$CALLS"
        if [ -e "$FAIL" ]; then exit 1; fi ;;
    *"print("*)
        echo "$VERSION" ;;
esac
"""


@pytest.fixture
def house(tmp_path):
    """A copy of the Makefile and the lock file with a fake Python: folder, function of make and of its calls."""
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    python = tmp_path / "fake-python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    # Without the variables of an outer make that runs this test.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    environment = {**clean, "CALLS": str(tmp_path / "calls"), "FAIL": str(tmp_path / "fail")}

    def make(*arguments: str, version: str = "3.11") -> subprocess.CompletedProcess:
        command, env = ["make", f"PYTHON={python}", *arguments], {**environment, "VERSION": version}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)

    def calls() -> list[str]:
        path = tmp_path / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        made = [line for line in lines if "constraints:" not in line]
        return [line for line in made if " install " in f" {line} " or "venv" in line]

    return tmp_path, make, calls


def test_make_installs_in_order_and_once_for_each_lock_file(house):
    folder, make, calls = house
    done = make()
    assert done.returncode == 0
    assert f'export PATH="{folder}/.venv/bin:$PATH"' in done.stdout
    steps = calls()
    assert len(steps) == 4 and "venv --clear .venv" in steps[0]
    assert re.search(r"--constraint requirements.lock setuptools wheel cython numpy torch$", steps[1])
    assert "--no-build-isolation" in steps[2] and steps[2].endswith("--requirement requirements.lock")
    assert steps[3].endswith("--no-build-isolation --no-deps --editable .")
    assert make().returncode == 0
    assert calls() == []
    with open(folder / "requirements.lock", "a") as lock:
        lock.write("another==1.0\n")
    assert make().returncode == 0
    assert len(calls()) == 4


@pytest.mark.parametrize("version", ["3.9", "3.10"])
def test_fairseq_of_its_authors_is_built_under_constraints(house, version):
    folder, make, _ = house
    done = make(version=version)
    assert done.returncode == 0 and f'export PATH="{folder}/.venv-{version}/bin:$PATH"' in done.stdout
    lock = f"requirements/python{version}.txt"
    steps = [line for line in (folder / "calls").read_text().splitlines() if "print(" not in line]
    assert any(step.endswith(f"--constraint {lock} pip<24.1 setuptools wheel numpy torch") for step in steps)
    (built,) = [step for step in steps if "constraints:" in step]
    assert built.endswith(f"--requirement {lock}, constraints: {lock}") and "isolation" not in built


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_each_python_has_an_environment_of_its_own(house, version):
    folder, make, calls = house
    make(version=version)
    steps = calls()
    assert f"venv --clear .venv-{version}" in steps[0] and steps[2].endswith("--requirement requirements.lock")
    make(version="3.11")
    assert "venv --clear .venv" in calls()[0]
    assert {path.name for path in folder.glob(".venv*")} == {".venv", f".venv-{version}"}
    make(version=version)
    assert calls() == []
    make("clean")
    assert not list(folder.glob(".venv*"))


def test_an_interrupted_installation_and_a_broken_environment_are_replaced(house):
    folder, make, calls = house
    (folder / "fail").touch()
    assert make().returncode != 0
    calls()
    (folder / "fail").unlink()
    assert make().returncode == 0
    assert len(calls()) == 4
    (folder / ".venv/bin/python").unlink()
    assert make().returncode == 0
    assert len(calls()) == 4


def test_an_old_python_is_refused_with_a_clear_message(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.lock").touch()
    old = tmp_path / "bin"
    old.mkdir()
    for name in ("python3", "python3.11"):
        (old / name).write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "Python 3.8.10"; exit 0; }\nexit 1\n')
        (old / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{old}:{os.environ['PATH']}", "MAKEFLAGS": "", "PYTHON": ""}
    command = ["make", "PYTHON="]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Python 3.9 or later is needed; python3 is: Python 3.8.10" in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", {"torch==2.13.0", "fairseq-fixed==0.12.3.1", "stanza==1.15.0", "torchaudio==2.11.0"}),
        ("requirements/python3.9.txt", {"torch==2.5.1", "fairseq==0.12.2", "omegaconf==2.0.6", "numpy==1.26.4"}),
        ("requirements/python3.10.txt", {"torch==2.5.1", "fairseq==0.12.2", "omegaconf==2.0.6", "numpy==1.26.4"}),
    ],
)
def test_all_requirements_are_pinned(lock, wanted):
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    names = [line.partition("==")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
    assert wanted <= set(lines)
    needed = """cython hypothesis matplotlib numpy pytest pytest-xdist sacrebleu sacremoses scikit-learn scipy
        sentencepiece setuptools stanza subword-nmt tqdm transformers wheel"""
    assert set(needed.split()) <= set(names)


def test_continuous_integration_runs_the_commands_for_newcomers():
    commands = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands[-1] == "exec make test"
    assert [line for line in commands if "make" in line] == ["make lint", "exec make test"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


WITHOUT = """import sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder)
from tree_fairseq.__main__ import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("name", ["torch", "fairseq"])
def test_a_missing_library_is_named_with_the_command_that_installs_it(name):
    done = subprocess.run([sys.executable, "-c", WITHOUT, name, "options"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"tree-fairseq needs {name}, which is not installed: pip install torch"), done.stderr
    page = (ROOT / "docs/installation.md").read_text().partition("## A new environment for a wheel")[2].split("```")[1]
    for command in page.splitlines():  # a wheel brings no pages: the message has all commands of this one
        if "pip install" in command and ".whl" not in command:
            assert all(word in done.stderr for word in command.split()), (command, done.stderr)


@pytest.mark.parametrize("name", ["torch", "fairseq"])
def test_the_demo_opens_without_it(name, tmp_path):
    page = tmp_path / "demo.html"
    subprocess.run([sys.executable, "-c", WITHOUT, name, "explore", "--demo", "--output", page], check=True, cwd=ROOT)
    assert "SELECT" in page.read_text(encoding="utf-8")


def test_a_fairseq_of_another_python_is_named():
    error = ValueError("mutable default <class 'fairseq.dataclass.configs.CommonConfig'> for field common")
    assert "pip install --no-build-isolation fairseq-fixed" in unusable_environment(error)
    assert unusable_environment(ValueError("another")) is None
