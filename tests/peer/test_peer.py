"""The script that runs fairseq's own tests twice: it finds what a plugin changes, and nothing else."""

from __future__ import annotations

import json

import pytest

from tests.peer import __main__ as peer

TESTS = """
import sys, unittest
from tests.utils import answer

class Test(unittest.TestCase):
    def test_same(self):
        assert answer() == 42
    def test_mended(self):
        assert "some_plugin" in sys.modules
    def test_failing(self):
        assert False
    @unittest.skip("as in fairseq")
    def test_skipped(self):
        pass
"""


def test_tests_of_a_checkout_run_with_the_installed_package_and_the_plugin(tmp_path):
    checkout, folder = tmp_path / "checkout", tmp_path / "folder"
    for path, text in {
        "tests/utils.py": "def answer():\n    return 42\n",
        "tests/test_all.py": TESTS,
        "fairseq/__init__.py": "raise RuntimeError('the checkout is not built')\n",
        "some_plugin.py": "",
    }.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    folder.mkdir()
    peer.link_checkout(checkout, folder)
    outcomes = peer.run_tests(folder, ["test_all.py"], checkout / "some_plugin.py", 120)
    assert {name.rpartition("::")[2]: outcome for name, outcome in outcomes.items()} == {
        "test_same": "passed", "test_mended": "passed", "test_failing": "failed", "test_skipped": "skipped",
    }  # fmt: skip


def test_what_differs_twice_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "tests").mkdir()
    runs = iter([
        {"t::same": "passed", "t::changed": "passed", "t::once": "passed"},
        {"t::same": "passed", "t::changed": "failed", "t::once": "failed"},
        {"t::changed": "passed", "t::once": "passed"},
        {"t::changed": "failed", "t::once": "passed"},
    ])  # fmt: skip
    monkeypatch.setattr(peer, "run_tests", lambda *arguments: next(runs))
    assert peer.main(["--fairseq", str(tmp_path), "--output", str(tmp_path / "outcomes.json")]) == 1
    output = capsys.readouterr().out
    assert "3 tests without the plugin: 3 passed" in output and "2 tests differ and are run again" in output
    assert "t::changed: passed without the plugin, failed with it" in output and output.endswith("1 tests differ\n")
    assert len(json.loads((tmp_path / "outcomes.json").read_text())["with"]) == 3


def test_a_folder_without_tests_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        peer.main(["--fairseq", str(tmp_path)])
    assert "has no folder tests" in capsys.readouterr().err
    assert peer.differences({"a": "passed"}, {"b": "failed"}) == {
        "a": ("passed", "missing"),
        "b": ("missing", "failed"),
    }
