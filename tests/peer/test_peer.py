"""The script that runs fairseq's own tests twice: it finds what a plugin changes, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peer.__main__ import differences, main

TESTS = """
import os, sys, unittest
from tests.utils import answer

class Test(unittest.TestCase):
    def test_same(self):
        assert answer() == 42
    def test_changed(self):
        assert "some_plugin" not in sys.modules
    def test_mended(self):
        assert "some_plugin" in sys.modules
    def test_failing(self):
        assert False
    @unittest.skip("as in fairseq")
    def test_skipped(self):
        pass
    def test_once(self):
        with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "runs"), "a+") as file:
            file.write("x")
            assert file.tell() != 2, "in the second run alone"
"""


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A folder with tests like fairseq's, and packages that must not be imported."""
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "utils.py").write_text("def answer():\n    return 42\n")
    (folder / "tests" / "test_all.py").write_text(TESTS)
    (folder / "tests" / "test_other.py").write_text("import fairseq.no_such_module\n")
    (folder / "fairseq").mkdir()
    (folder / "fairseq" / "__init__.py").write_text("raise RuntimeError('the checkout is not built')\n")
    (tmp_path / "some_plugin.py").write_text("")
    return folder


def test_what_differs_is_named(checkout, tmp_path, capsys):
    arguments = ["--fairseq", str(checkout), "--only", "test_all.py", "--output", str(tmp_path / "outcomes.json")]
    assert main(arguments, tmp_path / "some_plugin.py") == 1
    output = capsys.readouterr().out
    assert "6 tests without the plugin: 2 failed, 3 passed, 1 skipped" in output
    assert "Test::test_changed: passed without the plugin, failed with it" in output
    assert "Test::test_mended: failed without the plugin, passed with it" in output
    assert "3 tests differ and are run again" in output and output.endswith("2 tests differ\n")
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert len(outcomes["without"]) == len(outcomes["with"]) == 6


def test_a_folder_without_tests_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--fairseq", str(tmp_path)])
    assert "has no folder tests" in capsys.readouterr().err


def test_missing_tests_are_differences():
    assert differences({"a": "passed", "b": "passed"}, {"b": "passed", "c": "failed"}) == {
        "a": ("passed", "missing"),
        "c": ("missing", "failed"),
    }
