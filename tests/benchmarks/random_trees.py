"""Random trees of a given size whose branches are as long as those of parsed English."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from tree_fairseq.nn.tree_batch import NodeArrays
from tree_fairseq.trees.spans import reduced_depth

_SHORT_FIRST_CHILD = 0.7


def random_spans(generator: random.Random, num_leaves: int, num_nodes: int) -> list[tuple[int, int]]:
    """Returns different nested spans in preorder; the first covers all leaves.

    They are those of a binary tree whose first children are mostly short, without some of its nodes. With 30 leaves and
    20 nodes, a leaf lies under 5.7 nodes on average; in the GUM treebank, sentences of 28 to 32 words have 19 such
    nodes, and a leaf lies under 5.6 of them. ``num_leaves`` is at least 2, and ``num_nodes`` from 1 to one less.
    """
    spans, stack = [], [(0, num_leaves)]
    while stack:
        start, end = stack.pop()
        if end - start < 2:
            continue
        spans.append((start, end))
        cut = start + 1
        if generator.random() < _SHORT_FIRST_CHILD:
            while cut < min(end - 1, start + 4) and generator.random() < 0.5:
                cut += 1
        else:
            cut = generator.randint(start + 1, end - 1)
        stack += [(cut, end), (start, cut)]
    kept = [0, *sorted(generator.sample(range(1, len(spans)), num_nodes - 1))]
    return [spans[k] for k in kept]


def random_tree(generator: random.Random, num_leaves: int, num_nodes: int, num_labels: int) -> NodeArrays:
    spans = random_spans(generator, num_leaves, num_nodes)
    start, end = np.array(spans, np.int32).T
    label = [generator.randrange(4, num_labels) for _ in spans]
    return NodeArrays(np.array(label, np.int32), start, end, reduced_depth(start, end))


def bracketed(generator: random.Random, words: Sequence[str], num_nodes: int) -> str:
    """Writes a bracketed tree over words as a parser does: with tags, unary chains and a root.

    With 30 words and 20 nodes it has 56 brackets on average, as in GUM.
    """
    opened, closed = [""] * len(words), [""] * len(words)
    spans = random_spans(generator, len(words), num_nodes)
    single = [(k, k + 1) for k in range(len(words)) if generator.random() < _CHAIN_OVER_TAG]
    for start, end in [(0, len(words)), *spans, *single]:
        opened[start] += f"({generator.choice(PHRASES)} "
        closed[end - 1] += ")"
    tagged = (f"({generator.choice(TAGS)} {word})" for word in words)
    return " ".join(f"{before}{leaf}{after}" for before, leaf, after in zip(opened, tagged, closed))


_CHAIN_OVER_TAG = 5 / 30
PHRASES = ("S", "NP", "VP", "PP", "SBAR", "ADJP", "ADVP", "WHNP", "PRN", "FRAG", "NML", "QP")
TAGS = ("NN", "NNS", "NNP", "DT", "IN", "JJ", "RB", "VB", "VBD", "VBZ", "PRP", "CC", "TO", "CD", ".", ",")
