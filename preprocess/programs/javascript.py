"""Translates CoffeeScript to JavaScript with the CoffeeScript compiler and a JavaScript parser, both run by Node.

They are the npm packages ``coffeescript`` and ``acorn``, in the versions of ``package.json`` beside this file.
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

_HERE = Path(__file__).resolve().parent
_PACKAGE_FILES = ("package.json", "package-lock.json")


class NodeError(RuntimeError):
    """Node or npm is not installed, fails, or cannot download its packages. The message names an alternative."""


def default_modules() -> Path:
    """Returns the default folder for the npm packages."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tree_fairseq" / "programs"


def fetch_modules(folder: Path) -> None:
    """Downloads the npm packages into ``folder`` unless they exist there.

    Raises NodeError if npm is not installed or fails, or the folder contains another package.
    """
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

    Raises NodeError if Node or npm is not installed, or the packages cannot be downloaded.

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
        """Returns the bracketed tree and the tokens of the translation of each program.

        Raises NodeError if Node fails, or a program is not valid CoffeeScript.
        """
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
