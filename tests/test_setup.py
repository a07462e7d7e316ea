"""Installation: the lock file, ``make``, ``pip install .``, the path for ``--user-dir``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A replacement of python that records its arguments and only pretends to make environments and to install.
FAKE_PYTHON = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
echo "$*" >> "$CALLS"
case "$*" in
    "-m venv --clear "*)
        rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
    *"--requirement requirements.lock"*)
        if [ -e "$FAIL" ]; then exit 1; fi ;;
esac
"""


@pytest.fixture
def house(tmp_path):
    """A copy of the Makefile and the lock file with a fake Python: folder, function of make and of its calls."""
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "fake-python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    # Without the variables of an outer make that runs this test.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    environment = {**clean, "CALLS": str(tmp_path / "calls"), "FAIL": str(tmp_path / "fail")}

    def make(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", f"PYTHON={python}", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls() -> list[str]:
        path = tmp_path / "calls"
        lines = (
            [line for line in path.read_text().splitlines() if " install " in f" {line} " or "venv" in line]
            if path.exists()
            else []
        )
        path.unlink(missing_ok=True)
        return lines

    return tmp_path, make, calls


def test_make_installs_in_order_and_once_for_each_lock_file(house):
    folder, make, calls = house
    assert make().returncode == 0
    steps = calls()
    assert len(steps) == 3 and "venv --clear .venv" in steps[0]
    assert re.search(r"--constraint requirements.lock setuptools wheel cython numpy torch$", steps[1])
    assert "--no-build-isolation" in steps[2] and steps[2].endswith("--requirement requirements.lock")
    assert make().returncode == 0
    assert calls() == []
    with open(folder / "requirements.lock", "a") as lock:
        lock.write("another==1.0\n")
    assert make().returncode == 0
    assert len(calls()) == 3


def test_an_interrupted_installation_is_repeated(house):
    folder, make, calls = house
    (folder / "fail").touch()
    assert make().returncode != 0
    calls()
    (folder / "fail").unlink()
    assert make().returncode == 0
    assert len(calls()) == 3


def test_a_broken_environment_is_replaced(house):
    folder, make, calls = house
    make()
    calls()
    (folder / ".venv/bin/python").unlink()
    assert make().returncode == 0
    assert len(calls()) == 3


def test_an_old_python_is_refused_with_a_clear_message(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.lock").touch()
    old = tmp_path / "bin"
    old.mkdir()
    for name in ("python3", "python3.11"):
        (old / name).write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "Python 3.8.10"; exit 0; }\nexit 1\n')
        (old / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{old}:{os.environ['PATH']}", "MAKEFLAGS": "", "PYTHON": ""}
    done = subprocess.run(
        ["make", "PYTHON="], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "Python 3.11 or later is needed; python3 is: Python 3.8.10" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_all_requirements_are_pinned():
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    names = [line.partition("==")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
    wanted = {"torch==2.13.0", "fairseq-fixed==0.12.3.1", "stanza==1.15.0", "torchaudio==2.11.0"}
    assert wanted <= set(lines)
    assert {
        "sacremoses",
        "subword-nmt",
        "sentencepiece",
        "sacrebleu",
        "pytest",
        "hypothesis",
        "setuptools",
        "wheel",
        "cython",
        "numpy",
    } <= set(names)


def test_continuous_integration_runs_the_commands_for_newcomers():
    commands = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert commands[-1] == "exec make test"
    assert [line for line in commands if "make" in line] == ["make lint", "exec make test"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_path_for_user_dir(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tree_fairseq"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f"{ROOT / 'tree_fairseq'}\n"


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that `pip install .` reads, because building in the checkout would leave files there."""
    for name in ("setup.py", "requirements.lock", "MANIFEST.in"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tree_fairseq", tmp_path / "tree_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_pip_install_leaves_fairseq_and_torch_alone(checkout, tmp_path_factory):
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=120)
    python = environment / "bin/python"
    paths = sysconfig.get_paths(vars={"base": str(environment), "platbase": str(environment)})
    # The environment already has fairseq and torch: it sees the packages of the environment of this test.
    Path(paths["purelib"], "outer.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    install = [python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "."]
    done = subprocess.run(install, cwd=checkout, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Without an index, pip would have failed if it had tried to download anything.
    assert re.search(r"^Successfully installed tree-fairseq-[\d.]+$", done.stdout, re.MULTILINE)
    printed = subprocess.run(
        [python, "-m", "tree_fairseq"], cwd=environment, capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert printed == f"{Path(paths['purelib'], 'tree_fairseq').resolve()}\n"
    sources = {path.relative_to(ROOT / "tree_fairseq") for path in (ROOT / "tree_fairseq").rglob("*.py")}
    installed = {path.relative_to(printed.strip()) for path in Path(printed.strip()).rglob("*.py")}
    assert sources == installed
    assert Path(printed.strip(), "py.typed").is_file()  # type checkers read the annotations of the package


def test_no_requirement_names_fairseq_or_torch(checkout):
    subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info"], cwd=checkout, check=True, capture_output=True, timeout=120
    )
    text = (checkout / "tree_fairseq.egg-info/PKG-INFO").read_text()
    required = [line.partition(": ")[2].lower() for line in text.splitlines() if line.startswith("Requires-Dist: ")]
    assert required and not [line for line in required if re.match(r"(fairseq|torch)", line)]
    assert "Requires-Python: >=3.11" in text
    extras = {line.partition(": ")[2] for line in text.splitlines() if line.startswith("Provides-Extra: ")}
    assert extras == {"all", "pretrained", "stanza", "subwords", "summarization", "test"}
