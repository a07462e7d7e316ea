"""Translates CoffeeScript to JavaScript with the CoffeeScript compiler and a JavaScript parser, both run by Node.

They are the npm packages ``coffeescript`` and ``acorn``, in the versions of ``package.json`` beside this file.
Without Node, `translate_easy` translates programs that have no chains of comparisons and no loops inside of conditions,
as the compiler does. The translation of other programs needs auxiliary variables and functions.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

_HERE = Path(__file__).resolve().parent
_PACKAGE_FILES = ("package.json", "package-lock.json")


class NodeError(RuntimeError):
    """Node or npm is not installed, fails, or cannot download its packages. The message names an alternative."""


def default_modules() -> Path:
    """Returns the default folder for the npm packages."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tree_fairseq" / "programs"


def fetch_modules(folder: Path) -> None:
    """Downloads the npm packages into ``folder`` unless they exist there."""
    # npm writes this file last.
    if (folder / "node_modules" / ".package-lock.json").exists() and _is_ours(folder):
        return
    if (folder / "package.json").exists() and not _is_ours(folder):
        raise NodeError(
            f"{folder} contains another package, whose modules would be lost; give --node-modules an empty folder"
        )
    npm = _program("npm")
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PACKAGE_FILES:
        shutil.copyfile(_HERE / name, folder / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if result.returncode:
        raise NodeError(
            f"npm cannot install the packages coffeescript and acorn in {folder}: {_last_line(result.stderr)}"
        )


class JavaScriptCompiler:
    """A context manager with a Node process that translates programs.

    Args:
        folder: folder for the npm packages, which are downloaded if they are missing
    """

    def __init__(self, folder: Path):
        node = _program("node")
        fetch_modules(folder)
        command = [node, str(_HERE / "compile.js"), str(folder.resolve())]
        self._complaints = TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, encoding="utf-8"
        )

    def __enter__(self) -> JavaScriptCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._complaints.close()

    def translate(self, programs: Sequence[str]) -> list[tuple[str, str]]:
        """Returns the bracketed tree and the tokens of the translation of each program."""
        try:
            self._process.stdin.write(json.dumps(list(programs)) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            self._process.wait()
            self._complaints.seek(0)
            raise NodeError(f"Node ended early: {_last_line(self._complaints.read())}")
        results = json.loads(answer)
        for program, result in zip_equal(programs, results):
            if "error" in result:
                raise NodeError(f"the compiler refuses {program!r}: {result['error']}")
        return [(result["tree"], result["tokens"]) for result in results]


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NodeError(f"{name} is not installed: install Node (https://nodejs.org), or draw easier programs (--toy)")
    return path


def _is_ours(folder: Path) -> bool:
    try:
        return all((folder / name).read_bytes() == (_HERE / name).read_bytes() for name in _PACKAGE_FILES)
    except OSError:
        return False


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines() or ["no message"]
    return lines[0].strip()


_HEADS = ("If", "While")


def translate_easy(program: Tree) -> tuple[str, str]:
    """Returns the bracketed tree and the tokens of the translation of an easy program."""
    names = _assigned(program)
    return notation_named("bracket").write(_script_tree(program, names)), _script_tokens(program, names)


def is_easy(program: Tree) -> bool:
    """Returns whether a program can be translated without the compiler."""
    for node in program.preorder():
        if node.label == "Op_===" and node.children[0].label == "Op_===":
            return False
        if node.label in _HEADS and node.children[0].label in _HEADS:
            return False
    return True


def _assigned(program: Tree) -> list[str]:
    """Returns the variables that are assigned, in the order in which the compiler declares them."""
    return sorted({node.children[0].children[0].label for node in program.preorder() if node.label == "Assign"})


def _leading_values(program: Tree) -> int:
    """Returns the number of names and numbers that begin a program; the compiler declares variables after them."""
    is_value = [child.label.startswith("Value_") for child in program.children]
    return is_value.index(False) if False in is_value else len(is_value)


def _script_tree(program: Tree, names: list[str]) -> Tree:
    def translate(node: Tree, children: list[Tree]) -> Tree:
        if node.label == "Block":
            is_compound = ("IfStatement", "WhileStatement")
            return Tree(
                "BlockStatement",
                [child if child.label in is_compound else Tree("ExpressionStatement", (child,)) for child in children],
            )
        if node.label in _HEADS:
            return Tree(f"{node.label}Statement", children)
        if not node.children:
            return node
        label = {"Value_IdentifierLiteral": "Identifier", "Value_NumberLiteral": "Literal", "Assign": "="}.get(
            node.label
        )
        return Tree(label or node.label.removeprefix("Op_"), children)

    statements = list(program.fold(translate).children)
    if names:
        declarators = [Tree("VariableDeclarator", (Tree("Identifier", (Tree(name),)),)) for name in names]
        statements.insert(_leading_values(program), Tree("VariableDeclaration", declarators))
    return Tree("BlockStatement", statements)


def _script_tokens(program: Tree, names: list[str]) -> str:
    def translate(node: Tree, children: list[str]) -> str:
        if node.label == "Block":
            return " ".join(
                text if child.label in _HEADS else f"{text} ;" for child, text in zip_equal(node.children, children)
            )
        if node.label in _HEADS:
            condition, *blocks = children
            return f"{node.label.lower()} ( {condition} ) " + " else ".join(f"{{ {block} }}" for block in blocks)
        if not node.children:
            return node.label
        if len(children) == 1:
            return children[0]
        return f" {node.label.removeprefix('Op_').replace('Assign', '=')} ".join(children)

    statements = [translate(Tree("Block", (child,)), [child.fold(translate)]) for child in program.children]
    if names:
        statements.insert(_leading_values(program), f"var {' , '.join(names)} ;")
    return " ".join(statements)
