"""--user-dir may be relative, a link, or beside another copy of the package that is installed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.end_to_end.commands import PLUGIN, ROOT, run_in_process
from tree_fairseq import plugin

# One process imports fairseq, and a child of it runs each case: the command as its console script has it.
DRIVER = """
import json, os, sys, traceback
sys.path.remove("")  # the folder where the driver runs
from fairseq_cli import preprocess

for case in json.load(sys.stdin):
    if os.fork():
        os.wait()
        continue
    log = os.open(case["log"], os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(case["cwd"])
    sys.path[:0] = case["path"]
    sys.argv = ["fairseq-preprocess", *case["arguments"]]
    try:
        preprocess.cli_main()
        print("PLUGIN", sys.modules["tree_fairseq"].__file__, flush=True)
    except BaseException:
        traceback.print_exc()
    os._exit(0)
"""


def cases(folder: Path) -> dict[str, dict]:
    """(working directory, --user-dir, further folders on the path, where the package must come from)"""
    same_name, other_name = folder / "links" / "tree_fairseq", folder / "renamed" / "plugin"
    same_name.parent.mkdir()
    same_name.symlink_to(PLUGIN)
    other_name.parent.mkdir()
    other_name.symlink_to(PLUGIN)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    installed = folder / "site-packages" / "tree_fairseq"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("raise RuntimeError('the other copy was imported')\n")
    made = {
        "relative": (ROOT, "tree_fairseq", [], PLUGIN),
        "relative from elsewhere": (elsewhere, os.path.relpath(PLUGIN, elsewhere), [], PLUGIN),
        "absolute with a slash": (elsewhere, f"{PLUGIN}/", [], PLUGIN),
        "link": (elsewhere, str(same_name), [], same_name),
        "relative link": (folder, "links/tree_fairseq", [], same_name),
        "link of another name": (elsewhere, str(other_name), [], PLUGIN),
        "installed elsewhere": (elsewhere, str(PLUGIN), [str(installed.parent)], PLUGIN),
        "link of another name, installed elsewhere": (folder, "renamed/plugin", [str(installed.parent)], PLUGIN),
    }
    names = ("cwd", "user_dir", "path", "expected")
    return {
        name: dict(zip(names, (str(cwd), user_dir, path, str(source))))
        for name, (cwd, user_dir, path, source) in made.items()
    }


@pytest.fixture(scope="module")
def outcomes(corpus, tmp_path_factory) -> dict[str, tuple[dict, str, Path]]:
    folder = tmp_path_factory.mktemp("user_dir")
    outcomes, requests = {}, []
    for number, (name, case) in enumerate(cases(folder).items()):
        destination, log = folder / f"data-bin{number}", folder / f"log{number}"
        arguments = ["--task", "tree_translation", "-s", "en", "-t", "de", "--trainpref", str(corpus / "valid")]
        arguments += [
            "--workers", "2", "--destdir", str(destination), "--tree-parser", "brackets", "--user-dir",
            case["user_dir"],
        ]  # fmt: skip
        requests.append({"cwd": case["cwd"], "path": case["path"], "arguments": arguments, "log": str(log)})
        outcomes[name] = (case, log, destination)
    finished = run_in_process([sys.executable, "-c", DRIVER], input=json.dumps(requests), cwd=folder)
    assert finished.returncode == 0, finished.stdout
    return {name: (case, log.read_text(encoding="utf-8"), made) for name, (case, log, made) in outcomes.items()}


def test_the_plugin_is_found_and_works(outcomes):
    for name, (case, log, made) in outcomes.items():
        assert (made / "train.en-de.en.tree.idx").exists(), (name, log)
        assert f"PLUGIN {case['expected']}/__init__.py" in log, name


def test_another_copy_is_not_taken_for_this_one(tmp_path):
    (tmp_path / "__init__.py").touch()
    with pytest.raises(ImportError, match=str(PLUGIN)):
        plugin.be_one_package("plugin", str(tmp_path / "__init__.py"))
    assert "plugin" not in sys.modules


def test_the_module_prints_the_path_to_give(tmp_path):
    """Where the package was installed, links resolved."""
    package = shutil.copytree(
        PLUGIN, tmp_path / "installed" / "tree_fairseq", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "link").symlink_to(tmp_path / "installed")
    command = [sys.executable, "-W", "ignore", "-m", "tree_fairseq"]
    finished = run_in_process(command, env={"PYTHONPATH": str(tmp_path / "link")}, cwd=tmp_path)
    assert finished.returncode == 0 and finished.stdout.strip().splitlines()[-1] == str(package)
