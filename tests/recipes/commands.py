"""Running the recipes, and reading the commands that they print."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.fork_server import programs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
RECIPES = (
    "generated_en_de", "iwslt13_en_fr", "iwslt13_fr_en", "iwslt14_de_en", "iwslt14_en_de", "multi30k_en_de",
    "wmt14_en_de",
)  # fmt: skip
STRUCTURAL = ("active_logical", "atis", "coffeescript_javascript", "for2lam", "geo", "ifttt", "jobs")
INSERTION = ("overnight",)
CLASSIFICATION = ("imdb", "movie_reviews", "sst2", "sst5", "sva")
TREEFORMER = ("cogs", "cognition", "gigaword", "iwslt14_en_fr")
_BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def environment(**more: str) -> dict[str, str]:
    """This interpreter's programs first, by way of the fork server; one thread; the given variables."""
    path = os.pathsep.join([str(programs()), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **more}


def bash(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script from the project's root, as a reader of the README does."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, env=environment(**more), capture_output=True, text=True
    )


def recipe(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a recipe."""
    return bash(shlex.join([f"examples/{name}/run.sh", *map(str, arguments)]))


def run_without_reader(stream, *command):
    """Runs a command whose standard output, or standard error, nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writing}
    try:
        return subprocess.run(command, text=True, env=environment(), **streams)
    finally:
        os.close(writing)


def printed_commands(name: str, *arguments: str) -> list[list[str]]:
    """The commands that a recipe would run, as lists of words."""
    done = recipe(name, "--dry-run", *arguments)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return commands_in(done.stdout)


def commands_in(printed: str) -> list[list[str]]:
    """The commands that were printed, as lists of words: a backslash continues a line, comments are left out."""
    lines = printed.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if not line.startswith("#")]


def library(name: str):
    """A module of examples/lib, whose modules import each other as scripts do."""
    sys.path.insert(0, str(EXAMPLES / "lib"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES / "lib"))


def settings_of(name: str, *arguments: str):
    """The settings of a recipe under these options."""
    return library("run").settings_of(EXAMPLES / name, [str(word) for word in arguments], "run.sh")[0]


def compared(settings, run: Path) -> list[str]:
    """The names of the runs that a recipe compares a run with."""
    return [Path(other).name for other in library("runner").others_scored(settings, run)]


def readme(name: str) -> str:
    """The text of a recipe's README."""
    return (EXAMPLES / name / "README.md").read_text(encoding="utf-8")


def readme_blocks(name: str) -> list[str]:
    """The bash blocks of a recipe's README, in order."""
    return _BLOCK.findall(readme(name))
