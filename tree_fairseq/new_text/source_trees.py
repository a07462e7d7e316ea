"""Trees of sources in brackets: those of typed lines, and those that a preprocessed folder holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named


def typed_trees(task: Any, lines: Sequence[str], encode_fn: Callable[[str], str]) -> list[Optional[str]]:
    """Returns the tree of each line as the task reads it; None for tasks that read no trees."""
    if not hasattr(task, "source_forests"):
        return [None for _ in lines]
    forests = task.source_forests(lines, encode_fn)
    if isinstance(task.source_dictionary, TreeDictionary):
        return [" ".join(map(notation_named("bracket").write, forest)) for forest in forests]
    return [write_forest(forest) if forest else None for forest in forests]


def stored_tree(task: Any, split: str, number: int) -> Optional[str]:
    """Returns the whole tree of a source of a split that the task has loaded; None without one.

    A text that is longer than the model's input is read in part, and has none.
    """
    dataset, dictionary = task.dataset(split), task.source_dictionary
    words = dataset[number]["source"].tolist()
    if isinstance(dictionary, TreeDictionary):
        return notation_named("bracket").write(dictionary.tree(words))
    while dataset is not None and not hasattr(dataset, "trees"):
        dataset = getattr(dataset, "dataset", None)
    if dataset is None:
        return None
    stored = getattr(dataset.trees, "stored", dataset.trees)[number]
    labels = getattr(task, "label_dictionary", None) or task.source_side.labels
    leaves = [dictionary[index] for index in words[: stored.num_leaves]]
    return write_forest(stored.forest(labels, leaves)) if len(leaves) == stored.num_leaves else None
