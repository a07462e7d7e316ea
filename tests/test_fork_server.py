"""Commands that run in the fork server behave as in processes of their own."""

from __future__ import annotations

import subprocess

import pytest

from tests.fork_server import environment


def command(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(words, env=environment(MARK="set"), capture_output=True, text=True, timeout=120, **options)


def test_streams_folder_environment_and_exit_status_are_passed_on(tmp_path):
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['MARK'], sys.argv); sys.exit('no')"
    done = command("python", "-c", code, "a b", input="text", cwd=tmp_path)
    assert done.stdout.split("\n")[0] == f"text {tmp_path} set ['-c', 'a b']"
    assert done.returncode == 1 and done.stderr == "no\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["python", "-m", "tree_fairseq"], 0),
        (["tree-fairseq", "path"], 0),
        (["tree-fairseq", "nonsense"], 2),
        (["fairseq-train", "--help"], 0),
        (["fairseq-preprocess", "--no-such-flag"], 2),
        (["python", "-m", "no_such_module"], 1),
        (["python", "-c", "import os; os.kill(os.getpid(), 9)"], 137),
        (["python", "--version"], 0),
    ],
)
def test_exit_status(words, status):
    assert command(*words).returncode == status
