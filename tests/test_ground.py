"""The ground is importable alone: trees and parsing load neither torch nor fairseq."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tree_fairseq.trees

ROOT = Path(__file__).resolve().parent.parent
PROBE = """
import sys
for module in sys.argv[1:]:
    __import__(module)
    found = {"torch", "fairseq", "fairseq_cli", "stanza"} & set(sys.modules)
    if found:
        sys.exit(f"{module} loads {', '.join(sorted(found))}")
"""


def modules_of(package) -> list[str]:
    """The names of all modules of a package, with its subpackages."""
    return [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


@pytest.mark.parametrize(
    "modules", [["tree_fairseq.trees.bracket"], modules_of(tree_fairseq.trees)], ids=["bracket", "trees"]
)
def test_it_loads_neither_torch_nor_fairseq(modules):
    assert modules
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
