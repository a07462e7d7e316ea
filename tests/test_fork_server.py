"""Commands that run in the fork server behave as in processes of their own."""

from __future__ import annotations

import io
import subprocess
from unittest import mock

import pytest

from tests import fork_server
from tests.fork_server import environment, programs


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


def test_a_script_can_import_files_beside_it(tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    (tmp_path / "script.py").write_text("import neighbour, sys\nprint(neighbour.VALUE, sys.argv[1:])\n")
    assert command("python", str(tmp_path / "script.py"), "x").stdout == "7 ['x']\n"


def test_commands_do_not_affect_each_other():
    command("python", "-c", "import tree_fairseq; tree_fairseq.mark = 1")
    assert command("python", "-c", "import tree_fairseq; print(hasattr(tree_fairseq, 'mark'))").stdout == "False\n"


def test_programs_import_what_they_need_as_in_a_process_of_their_own():
    code = (
        "import sys; print([name for name in sys.modules if name.startswith('tree_fairseq')], 'fairseq' in sys.modules)"
    )
    assert command("python", "-c", code).stdout == "[] True\n"


def test_the_server_does_not_keep_the_settings_of_the_test_that_starts_it(monkeypatch):
    """Its environment is that of the session; the forks of a server with another one would have that, too."""
    given = {}

    def start(command, **options):
        given.update(options)
        return mock.Mock(stdout=io.BytesIO(b"ready\n"))

    monkeypatch.setenv("PYTHONPATH", "of this test")
    monkeypatch.setattr(fork_server.subprocess, "Popen", start)
    assert (programs.__wrapped__() / "python").is_file()
    assert given["env"]["OMP_NUM_THREADS"] == "1" and given["env"].get("PYTHONPATH") != "of this test"
