"""The table of repairs is all that the package changes in fairseq and torch, and every row is needed."""

from __future__ import annotations

import argparse
import ast
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import options

from tests.end_to_end.ranks import IS_LONG
from tree_fairseq.repairs import REPAIRS, Repair, table

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tree_fairseq"
OTHERS = {"fairseq", "fairseq_cli", "torch", "hydra", "omegaconf", "builtins", "sys"}
# sys.argv of a process that does a part of a command's work, sys.modules of the package's second name, and sys.path.
ALLOWED = {"argv", "modules", "path"}
# Prints the functions that are others after the plugin is imported.
PROGRAM = """
import argparse, importlib, inspect, json, pkgutil, sys
import fairseq, torch, fairseq_cli.generate, fairseq_cli.interactive, fairseq_cli.preprocess, fairseq_cli.train
import fairseq_cli.validate, torch.utils.data.dataloader

def functions():
    found = {"sys.excepthook": sys.excepthook}
    names = ("fairseq", "torch.utils.data", "torch.serialization", "torch.nn.parallel", "builtins", "argparse")
    for name, module in [*sys.modules.items()]:
        if name == "torch" or name.startswith(names):
            for attribute, value in [*vars(module).items()]:
                found[f"{name}.{attribute}"] = value
                if inspect.isclass(value) and value.__module__ == name and name.startswith(("fairseq", "argparse")):
                    found.update({f"{name}.{attribute}.{part}": member for part, member in vars(value).items()})
    kinds = (property, classmethod)
    return {name: value for name, value in found.items() if callable(value) or isinstance(value, kinds)}

before = functions()
import tree_fairseq
after = functions()
print(json.dumps([name for name in before if after.get(name) is not before[name]]))
"""


def attributes_that_are_set(path: Path) -> list[str]:
    """Assignments to attributes of other packages, and calls of ``setattr`` and the like for them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                module = node.module if isinstance(node, ast.ImportFrom) else alias.name
                imported[(alias.asname or alias.name).split(".")[0]] = module.split(".")[0]
    found = []
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
        for target in targets:
            first = target
            while isinstance(first, (ast.Attribute, ast.Subscript)):
                attribute, first = getattr(first, "attr", None), first.value
            if first is not target and isinstance(first, ast.Name) and imported.get(first.id) in OTHERS:
                found.append(f"{path.name}:{node.lineno} sets {first.id}.{attribute}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            if isinstance(node.args[0], ast.Name) and imported.get(node.args[0].id) in OTHERS:
                found.append(f"{path.name}:{node.lineno} calls {node.func.id}")
    return [line for line in found if line.rpartition(".")[2] not in ALLOWED]


def test_there_are_few_repairs_and_all_say_why():
    assert len(REPAIRS) <= 20
    assert len({repair.target for repair in REPAIRS}) == len(REPAIRS)
    for repair in REPAIRS:
        assert all(vars(repair).values()), repair
        file, _, name = repair.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), repair.test


def test_the_test_of_a_row_fails_without_the_row():
    """With ``TREE_FAIRSEQ_LONG_TESTS=1`` all rows, otherwise those with a quick test in this folder."""
    is_here = [repair.test.startswith("tests/repairs/") and "killed" not in repair.test for repair in REPAIRS]
    tried = [repair.target for repair, quick in zip(REPAIRS, is_here) if (quick or IS_LONG) and is_needed(repair)]
    command = [sys.executable, "-m", "tests.repairs.without_a_row", *tried]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    statuses = dict(line.split() for line in done.stdout.splitlines())
    assert [*statuses] == tried
    failed = (str(int(pytest.ExitCode.TESTS_FAILED)), str(-signal.SIGALRM))
    assert {target: status for target, status in statuses.items() if status not in failed} == {}


def is_needed(repair: Repair) -> bool:
    return any(hasattr(getattr(owner, repair.name), table._MARK) for owner in repair.owners())


def test_nothing_else_sets_attributes_of_other_packages():
    wrong = [line for path in sorted(PACKAGE.rglob("*.py")) for line in attributes_that_are_set(path)]
    assert wrong == []


def test_the_plugin_changes_the_functions_of_the_table_alone():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = json.loads(done.stdout)
    last = {repair.name for repair in REPAIRS}
    # A module that has imported a function by its name keeps the stock one.
    assert {name.rpartition(".")[2] for name in changed} <= last, changed
    assert {repair.target for repair in REPAIRS if repair.versions != table._OFFICIAL} <= {
        name.replace("fairseq.modules.sinusoidal_positional_embedding", "fairseq.modules") for name in changed
    }


def as_markdown() -> list[str]:
    rows = ["| function | fault | versions |", "|---|---|---|"]
    return rows + [
        f"| `{each.target.replace('fairseq.', '', 1)}` | {each.wrong} | {each.versions} |" for each in REPAIRS
    ]


def test_the_command_and_the_page_have_every_row(capsys):
    assert table.main([]) == 0
    printed = capsys.readouterr().out
    assert all(repair.wrong in printed and repair.remove_when in printed for repair in REPAIRS)
    page = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    table_of_page = "\n".join(as_markdown())
    assert table_of_page in page, f"paste these lines into docs/repairs.md:\n{table_of_page}"


def test_wrapping_twice_changes_nothing():
    module = SimpleNamespace(function=lambda: 1)
    for _ in range(2):
        table.wrap(module, "function", lambda stock: lambda: stock() + 1)
    assert module.function() == 2 and module.function.__wrapped__() == 1


def test_preprocessing_has_arguments_about_trees():
    parser = argparse.ArgumentParser()
    options.add_preprocess_args(parser)
    assert "--trainpref" in parser.format_help() and "--tree-parser" in parser.format_help()
