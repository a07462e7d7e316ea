"""``--help`` of every command: it is printed within a second, from a file that is what its parser says.

``python -m tests.commands.test_help`` writes the files again.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from tests.end_to_end.commands import PLUGIN, run_in_process, script
from tree_fairseq.__main__ import COMMANDS
from tree_fairseq.scoring.__main__ import SCORERS

FOLDER = PLUGIN / "commands" / "help"
WITHOUT_TORCH = {"path", "parse", "repairs"}
STORED = [*({*COMMANDS} - WITHOUT_TORCH), *(f"score-{name}" for name in SCORERS)]


def said_by_parser(name: str) -> str:
    """What the parser of a command prints, on a terminal of 80 columns: the stored text is for one ``--help`` alone."""
    command = [script("tree-fairseq"), *name.split("-"), "--help", "--help"]
    done = run_in_process(command, env={"COLUMNS": "80"})
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse of other versions has other words")
def test_the_files_say_what_the_parsers_say():
    assert {path.stem for path in FOLDER.iterdir()} == {*STORED}
    for name in STORED:
        stored = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        assert stored == said_by_parser(name), "write them again: python -m tests.commands.test_help"
        assert str(PLUGIN.parent) not in stored


def test_the_help_of_every_command_comes_within_a_second(tmp_path):
    """A second of the processor: others may have it, too."""
    for name in [*COMMANDS, "score bleu"]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "tree_fairseq", *name.split(), "--help"]
        environment = {**os.environ, "PYTHONPATH": str(PLUGIN.parent)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0 and (name == "path" or f"usage: tree-fairseq {name}" in done.stdout), done.stderr
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1, name


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in STORED:
        (FOLDER / f"{name}.txt").write_text(said_by_parser(name), encoding="utf-8")
