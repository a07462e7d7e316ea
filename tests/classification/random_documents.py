"""Documents of random sentences, as rows and as the forests that they are together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn import functional

from tests.nn.tiny import random_tree
from tree_fairseq.classification.dataset import SentenceTree, collate_sentences
from tree_fairseq.nn.tree_batch import Branches, NodeArrays, collate_trees

PAD, SYMBOLS = 1, 9


def lengths(max_documents: int = 3, max_sentences: int = 4, max_leaves: int = 6):
    return st.lists(
        st.lists(st.integers(1, max_leaves), min_size=1, max_size=max_sentences), min_size=1, max_size=max_documents
    )


def completed(rows: dict[str, Any]) -> dict[str, Any]:
    count = int(rows["document"][-1]) + 1
    documents: list[tuple[list, list]] = [([], []) for _ in range(count)]
    for row, document in enumerate(rows["document"].tolist()):
        text, trees = documents[document]
        tokens, real = rows["tokens"][row], rows["end"][row] > rows["start"][row]
        arrays = (rows[name][row][real].int().numpy() for name in ("label", "start", "end", "depth"))
        trees.append(SentenceTree(sum(map(len, text)), int(tokens.ne(PAD).sum()), NodeArrays(*arrays)))
        text.append(tokens[tokens.ne(PAD)])
    collated = collate_sentences([(torch.cat(text), trees) for text, trees in documents], PAD, PAD)
    return {**rows, **{name: collated[name] for name in ("num_documents", "packed") if name in collated}}


class Documents:
    """A batch of documents.

    Each document's tokens, labels and trees are drawn apart from the others'; ``rows`` are what encoders read.
    """

    def __init__(self, lengths: Sequence[Sequence[int]], seed: int = 0, extra: int = 0, nodes: int = 0):
        self.documents = []
        for sizes in lengths:
            random = np.random.default_rng([seed, *sizes])
            self.documents.append([(random.integers(4, SYMBOLS, n), random_tree(random, n, SYMBOLS)) for n in sizes])
        self.document = torch.tensor([b for b, document in enumerate(self.documents) for _ in document])
        self.rows = self._collate([sentence for document in self.documents for sentence in document], extra, nodes)
        self.rows = completed({**self.rows, "document": self.document})

    @classmethod
    def _collate(cls, sentences, extra: int = 0, nodes: int = 0) -> dict[str, torch.Tensor]:
        """``tokens`` and trees of sentences as rows."""
        trees = collate_trees([tree for _, tree in sentences], PAD)
        del trees["branches"]  # padding is added to them
        missing = max(extra, nodes - trees["label"].size(1))
        padded = {
            name: functional.pad(column, (0, missing), value=PAD if name == "label" else 0)
            for name, column in trees.items()
        }
        branches = Branches.list(*(padded[name].numpy() for name in ("start", "end", "depth"))).as_dict()
        return {"tokens": cls._stack([tokens for tokens, _ in sentences], extra), **padded, "branches": branches}

    def sentences(self) -> Iterator[tuple[bool, torch.Tensor, dict[str, torch.Tensor]]]:
        """Every sentence alone: whether it is the first of its document, ``[1, N]`` leaves, and its collated tree."""
        for document in self.documents:
            for k, sentence in enumerate(document):
                columns = self._collate([sentence])
                yield k == 0, columns.pop("tokens"), columns

    @staticmethod
    def _stack(texts: list[np.ndarray], extra: int = 0) -> torch.Tensor:
        tokens = torch.full((len(texts), max(map(len, texts)) + extra), PAD)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = torch.from_numpy(text)
        return tokens

    def forests(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """``[B, N]`` leaves and the collated trees of whole documents."""
        trees = []
        for document in self.documents:
            columns, offset = [], 0
            for tokens, tree in document:
                columns += zip(tree.label, tree.start + offset, tree.end + offset, tree.depth)
                offset += len(tokens)
            trees.append(NodeArrays(*np.array(columns, np.int32).reshape(-1, 4).T))
        texts = [np.concatenate([tokens for tokens, _ in document]) for document in self.documents]
        return self._stack(texts), collate_trees(trees, PAD)

    def pairs(self) -> torch.Tensor:
        """Which position of which row is which position of which document, ``[4, positions]``.

        Leaves count from 0, nodes from N of the rows or of the documents.
        """
        row_leaves, (text, _) = self.rows["tokens"].size(1), self.forests()
        found, row = [], 0
        for b, document in enumerate(self.documents):
            leaf, node = 0, text.size(1)
            for tokens, tree in document:
                found += [(j, row, leaf + j, b) for j in range(len(tokens))]
                found += [(row_leaves + i, row, node + i, b) for i in range(len(tree))]
                leaf, node, row = leaf + len(tokens), node + len(tree), row + 1
        return torch.tensor(found).T
