"""The package has few flags: a new one takes the place of one that nobody uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "tree_fairseq"
MOST_FLAGS = 150
FLAG = re.compile(r"--[a-z][a-z0-9-]+")


def option_names(tree: ast.AST) -> Iterator[str]:
    """Fields of dataclasses whose default is an ``option``; fairseq makes a flag of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "option":
                yield "--" + node.target.id.replace("_", "-")


def argument_names(tree: ast.AST) -> Iterator[str]:
    """First arguments of calls, such as ``add_argument("--output", ...)``, and keys of tables of flags."""
    for node in ast.walk(tree):
        named = []
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            named = node.args[:1] if name in ("add_argument", "add", "_flag") else []
        elif isinstance(node, ast.Dict) and any(isinstance(value, ast.Dict) for value in node.values):
            named = node.keys
        for each in named:
            if isinstance(each, ast.Constant) and FLAG.fullmatch(str(each.value)):
                yield each.value


def flags(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {*option_names(tree), *argument_names(tree)}


def test_the_package_has_few_flags():
    files = {str(path.relative_to(PACKAGE)): flags(path) for path in sorted(PACKAGE.rglob("*.py"))}
    found = set().union(*files.values())
    listing = "\n".join(f"{name}: {' '.join(sorted(own))}" for name, own in files.items() if own)
    assert len(found) <= MOST_FLAGS, f"{len(found)} flags\n{listing}"
