"""Decodes by insertion in the plainest way: one sentence at a time, with a list for the tree and a loop over slots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tests.tree_insertion.partial_trees import insert, slot_mask
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees


class GrownTree(NamedTuple):
    labels: list[int]  # dictionary ids of the nodes in preorder; the first is the root with which decoding begins
    parents: list[int]  # indices of the parents, -1 for the root
    steps: int  # number of steps, with the last one, which changes nothing


@torch.no_grad()
def grow(model, net_input: dict, dictionary: InsertionDictionary, max_steps: int, max_nodes: int) -> list[GrownTree]:
    """Grows the trees of a batch that is padded on the left, sentence by sentence.

    A tree that is not finished after ``max_steps``, or that would get more than ``max_nodes`` nodes without its first
    root, is returned as it was before.
    """
    found = []
    answers = [dictionary.keep, *dictionary.label_ids.tolist()]
    for tokens, length in zip_equal(net_input["src_tokens"], net_input["src_lengths"].tolist()):
        memory = model.encode(tokens[None, -length:], torch.tensor([length]))
        labels, parents = [dictionary.root], [-1]
        for step in range(1, max_steps + 1):
            tree = {"labels": torch.tensor([labels]), "parents": torch.tensor([parents])}
            output = model.decode(memory, read_partial_trees(tree, dictionary.pad()))
            chosen = {}
            slots = np.flatnonzero(slot_mask(np.array(parents)))
            for slot, logits in zip_equal(slots.tolist(), output["logits"].tolist()):
                best = max(answers, key=logits.__getitem__)
                if best != dictionary.keep:
                    chosen[slot] = best
            if not chosen or len(labels) + len(chosen) > max_nodes + 1:
                break
            known = labels + list(chosen.values())
            sources, above = insert(np.array(parents), list(chosen))
            labels, parents = [known[source] for source in sources.tolist()], above.tolist()
        found.append(GrownTree(labels, parents, step))
    return found
