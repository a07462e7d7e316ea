"""The code runs on Python 3.9: its syntax, the names that it uses, and what stands in for later ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tree_fairseq.support import python_versions
from tree_fairseq.support.python_versions import zip_equal

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path for room in ("tree_fairseq", "preprocess", "examples", "tests") for path in ROOT.glob(f"{room}/**/*.py")
)
# What Python has had only since 3.10: attributes by their name, anywhere, and names of modules.
LATER_ATTRIBUTES = set("add_note bit_count file_digest hardlink_to orig_argv pairwise stdlib_module_names".split())
LATER_NAMES = {
    ("contextlib", "chdir"),
    ("enum", "StrEnum"),
    ("hashlib", "file_digest"),
    ("itertools", "batched"),
    ("itertools", "pairwise"),
    ("operator", "call"),
    ("types", "NoneType"),
    ("types", "UnionType"),
    *(
        ("typing", name)
        for name in ("Concatenate", "NotRequired", "ParamSpec", "Required", "Self", "TypeAlias", "TypeGuard", "Unpack")
    ),
    ("typing", "assert_never"),
    ("typing", "override"),
}
# By the last name of the function.
LATER_ARGUMENTS = {
    ("zip", "strict"),
    ("write_text", "newline"),
    ("bisect_left", "key"),
    ("bisect_right", "key"),
    ("dataclass", "slots"),
    ("dataclass", "kw_only"),
    ("field", "kw_only"),
    ("TemporaryDirectory", "ignore_cleanup_errors"),
    ("NamedTemporaryFile", "delete_on_close"),
    ("rmtree", "onexc"),
}
LATER_MODULES = {"tomllib"}


def later_than_3_9(source: str) -> list[str]:
    """The places in which a program uses what Python 3.9 does not have; raises SyntaxError for its syntax."""
    tree = ast.parse(source, feature_version=(3, 9))
    found = []
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if annotation is not None
        for part in ast.walk(annotation)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in LATER_MODULES]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if (node.module, alias.name) in LATER_NAMES]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in LATER_ATTRIBUTES or (node.value.id, node.attr) in LATER_NAMES:
                names = [node.attr]
        elif isinstance(node, ast.Call):
            function = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            names = [f"{function}({word.arg}=)" for word in node.keywords if (function, word.arg) in LATER_ARGUMENTS]
            if function in ("isinstance", "issubclass") and isinstance(node.args[1], ast.BinOp):
                names = [f"{function}(..., X | Y)"]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in annotations:
            if any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right)):
                names = ["X | None as a value"]
            elif any(
                isinstance(side, ast.Name) and side.id in ("str", "int", "bool", "float")
                for side in (node.left, node.right)
            ):
                names = ["X | Y as a value"]
        found += [f"line {node.lineno}: {name}" for name in names]
    return found


@pytest.mark.parametrize(
    "source",
    [
        "zip([1], [2], strict=True)",
        "import itertools\nitertools.pairwise([1])",
        "from typing import Self",
        "import hashlib\nhashlib.file_digest(file, 'md5')",
        "error.add_note('here')",
        "Path('a').write_text('b', newline='')",
        "isinstance(1, int | str)",
        "Piece = str | tuple[int, int]",
        "Some = tuple[Tree | None, int]",
        "@dataclass(slots=True)\nclass A: pass",
    ],
)
def test_later_names_are_found(source):
    assert later_than_3_9(source)


def test_the_code_uses_nothing_later():
    found = {str(path.relative_to(ROOT)): later_than_3_9(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize("zipped", [zip_equal, python_versions._zip_equal])
def test_zip_equal_loses_nothing(zipped):
    assert list(zipped()) == list(zipped([])) == list(zipped([], ())) == []
    assert list(zipped("ab", [1, None], iter([0, 2]))) == [("a", 1, 0), ("b", None, 2)]
    for one, other in (("ab", "a"), ("a", "ab"), ("", "a"), ("a", "")):
        with pytest.raises(ValueError, match="shorter|longer"):
            list(zipped(one, other))
