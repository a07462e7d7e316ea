"""The rooms of trees and parsing work without torch and fairseq: a new interpreter that imports them loads neither."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import tree_fairseq.parsing
import tree_fairseq.trees

ROOT = Path(__file__).resolve().parent.parent
PROBE = """
import sys
for module in sys.argv[1:]:
    __import__(module)
    found = {"torch", "fairseq", "fairseq_cli", "stanza", "transformers"} & set(sys.modules)
    if found:
        sys.exit(f"{module} loads {', '.join(sorted(found))}")
"""


def modules_of(package) -> list[str]:
    return [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


def test_importing_trees_and_parsers_loads_neither_torch_nor_fairseq():
    modules = [*modules_of(tree_fairseq.trees), *modules_of(tree_fairseq.parsing), "tree_fairseq.commands.parse"]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *modules], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert len(modules) > 16 and done.returncode == 0, done.stderr
