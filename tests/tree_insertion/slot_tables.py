"""Models of insertions that are tables: random answers for every source, partial tree and slot; and decoding one
sentence at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tests.tree_insertion.partial_trees import insert, slot_mask
from tests.tree_insertion.slot_batches import DICTIONARY, PAD
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees


@dataclass(frozen=True)
class Sources:
    """A memory that is the sources themselves."""

    tokens: Tensor

    def select(self, rows: Tensor) -> Sources:
        return Sources(self.tokens.index_select(0, rows))


class SlotTable(nn.Module):
    """A model without parameters whose answers depend on the whole partial tree, and on nothing else in the batch.

    Args:
        seed: chooses the table
        keep: added to the logits of leaving slots as they are, times the number of nodes under the root
    """

    def __init__(self, seed: int = 0, keep: float = 0.6):
        super().__init__()
        self.seed, self.keep = seed, keep

    def encode(self, src_tokens: Tensor, src_lengths: Tensor, source_symbol_tree=None) -> Sources:
        return Sources(src_tokens)

    def decode(self, memory: Sources, partial_tree: dict[str, Tensor]) -> dict[str, Tensor]:
        labels, parents = partial_tree["labels"], partial_tree["parents"]
        slots = torch.zeros(*labels.shape, KINDS, dtype=torch.bool)
        slots.view(-1)[partial_tree["slots"]] = True
        logits = []
        for row, source in enumerate(memory.tokens.tolist()):
            count = int((labels[row] != PAD).sum())
            tree = [*labels[row, :count].tolist(), *parents[row, :count].add(1).tolist()]
            random = np.random.default_rng([self.seed, *(token for token in source if token != PAD), *tree])
            drawn = random.normal(size=(count, KINDS, len(DICTIONARY))) * 2
            drawn[..., DICTIONARY.keep] += self.keep * (count - 1)
            logits.append(torch.from_numpy(drawn)[slots[row, :count]])
        return {"slot": partial_tree["slots"], "logits": torch.cat(logits)}

    def forward(self, src_tokens, src_lengths, partial_tree, source_symbol_tree=None):
        return self.decode(self.encode(src_tokens, src_lengths), partial_tree)


@dataclass
class Decoded:
    labels: list[int]
    parents: list[int]
    scores: list[float]
    score: float
    steps: int
    trees: list[tuple[list[int], list[int]]]


def decode_alone(models, net_input: dict, max_steps: int = 50, max_nodes: int = 250, dictionary=DICTIONARY) -> Decoded:
    """Grows the tree of one sentence, everything anew in each step and node by node.

    Args:
        net_input: of a batch of one
        dictionary: of labels
    """
    labels, parents, scores, said, trees = [dictionary.root], [-1], [0.0], [], []
    legal = torch.tensor([dictionary.keep, *dictionary.label_ids.tolist()])
    for step in range(1, max_steps + 1):
        partial = read_partial_trees(
            {"labels": torch.tensor([labels]), "parents": torch.tensor([parents])}, dictionary.pad()
        )
        outputs = [model(**net_input, partial_tree=partial) for model in models]
        slots = np.flatnonzero(slot_mask(np.array(parents)).reshape(-1)).tolist()
        assert outputs[0]["slot"].tolist() == slots
        chosen = []
        for place, slot in enumerate(slots):
            shares = sum(torch.softmax(output["logits"][place].double(), 0) for output in outputs) / len(outputs)
            best = int(legal[shares[legal].argmax()])
            said.append(math.log(shares[best]))
            if best != dictionary.keep:
                chosen.append((slot, best, said[-1]))
        is_finished = not chosen
        if len(labels) + len(chosen) > max_nodes + 1 or is_finished:
            trees.append((labels, parents))
            break
        count = len(labels)
        sources, above = insert(np.array(parents), [slot for slot, _, _ in chosen])
        labels = [labels[old] if old < count else chosen[old - count][1] for old in sources.tolist()]
        scores = [scores[old] if old < count else chosen[old - count][2] for old in sources.tolist()]
        parents = above.tolist()
        trees.append((labels, parents))
    return Decoded(labels, parents, scores, sum(said) / len(said), step, trees)
