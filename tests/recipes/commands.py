"""Runs recipes and reads the commands that they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from fairseq import options

import tree_fairseq  # noqa: F401  registers tasks and architectures
from tests.fork_server import environment as served

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LIBRARY = EXAMPLES / "lib"
SCRIPTS = [
    path.relative_to(EXAMPLES)
    for path in sorted(EXAMPLES.glob("*/*.sh"))
    if path.parent not in (LIBRARY, EXAMPLES / "quickstart") and "lib/recipe.sh" in path.read_text(encoding="utf-8")
]
NAMES = sorted({script.parent.name for script in SCRIPTS})
PARSERS = {"fairseq-train": options.get_training_parser, "fairseq-generate": options.get_generation_parser}


def environment(is_served: bool = True) -> dict[str, str]:
    """The variables of a reader's shell; where nothing is imported, programs need no fork server."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return served() if is_served else {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def run(script: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(EXAMPLES / script), *map(str, arguments)]
    return subprocess.run(command, env={**environment(), **variables}, capture_output=True, text=True)


def recipe(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = run(Path(name) / "run.sh", *arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def dry_run(script: Path, *arguments: object) -> list[list[str]]:
    place = arguments.index("--") if "--" in arguments else len(arguments)
    done = run(script, *arguments[:place], "--dry-run", *arguments[place:])
    assert done.returncode == 0, done.stderr
    return commands_in(done.stdout)


def commands_in(printed: str) -> list[list[str]]:
    """Returns printed commands as lists of words; a backslash continues a line."""
    return [shlex.split(line) for line in printed.replace("\\\n", " ").splitlines() if line.strip()]


def declared(script: Path) -> dict[str, str]:
    return dict(re.findall(r'"\$\{([A-Z_]+):=(.*?)\}"', (EXAMPLES / script).read_text(encoding="utf-8")))


def parsed(command: list[str]) -> dict:
    """Returns the arguments of one of fairseq's commands as fairseq itself reads them; exits on an unknown flag."""
    words = command[1:]
    if "--user-dir" in words:
        place = words.index("--user-dir")
        assert words[place + 1] == str(ROOT / "tree_fairseq")
        del words[place : place + 2]  # imported already
    if command[0] == "fairseq-preprocess":
        return vars(options.get_preprocessing_parser().parse_args(words))
    parser = PARSERS[command[0]](default_task="translation")
    return vars(options.parse_args_and_arch(parser, input_args=words))
