"""Trees as data: reading, writing and transforming them, and encoding them as arrays and symbols.

Pure Python and numpy. A *line* of a corpus holds a *forest*, one tree for each sentence, and the leaves of the forest
are the tokens of the line.
"""

from __future__ import annotations

from tree_fairseq.trees.bracket import read_forest, read_tree, write_forest
from tree_fairseq.trees.tree import Forest, Tree

__all__ = ["Forest", "Tree", "read_forest", "read_tree", "write_forest"]
