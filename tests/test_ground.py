"""The rooms of trees and parsing work without torch and fairseq: a new interpreter that imports them loads neither."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tree_fairseq.parsing
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
    """Returns the names of all modules of a package and its subpackages."""
    return [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


CASES = {
    "bracket": ["tree_fairseq.trees.bracket"],
    "trees": modules_of(tree_fairseq.trees),
    "parsing": modules_of(tree_fairseq.parsing),
}


@pytest.mark.parametrize("modules", CASES.values(), ids=CASES)
def test_importing_a_room_loads_neither_torch_nor_fairseq(modules):
    assert modules
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
