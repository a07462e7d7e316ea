"""Binary Tree-LSTM (Tai, Socher & Manning 2015) for classification: trees in binary form, the encoder and the model."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, register_model, register_model_architecture
from fairseq.models.transformer import Embedding
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.classification import classifier
from tree_fairseq.nn.published import set_defaults
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.nn.tree_lstm import MAX_POSITIONS, TreeLSTM, level_sizes


@dataclass(frozen=True)
class BinaryBranches:
    """The right-branching binary forms of R trees of N leaves and M nodes, with their leaves as nodes; S = N + M.

    Column j is leaf j, column N + t is node t. A node of more than two children keeps the first on branch 0; an
    intermediate node over the others is on branch 1, as in ``(A b (@A c d))`` for ``(A b c d)``. The intermediate node
    whose first child is column s is column S + s.
    """

    parents: Tensor  # ``[R, 2 S]`` int64, column of each node's parent; -1 at roots and padding
    # ``[R, 2 S]`` int64, the branch of its parent on which each node is, 0 or 1; -1 at roots and padding
    branches: Tensor
    mask: Tensor  # ``[R, 2 S]`` bool, true for columns that hold nodes
    # ``[R, S]`` int64, the node, less than M, whose children each intermediate node divides; 0 in other columns
    divided: Tensor
    root: Tensor  # ``[R]`` int64, column of the root, the first if there are several

    @classmethod
    def of(cls, batch: TreeBatch) -> "BinaryBranches":
        """Binarises all trees at once, in the time of a sort; they are padded on the right and have no EOS."""
        num_leaves = batch.is_leaf.size(1)
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)  # R x S
        num_columns = real.size(1)
        # In order of depth, then from left to right, siblings are neighbours, and the parent of a node is the last node
        # of the level above that does not begin later.
        keys, order = _by_level(batch).masked_fill(~real, torch.iinfo(torch.int64).max).sort(dim=1)
        above = (torch.searchsorted(keys, keys - num_leaves, right=True) - 1).masked_fill(~real.gather(1, order), -1)
        is_child = above >= 0
        parent = order.gather(1, above.clamp(min=0)).masked_fill(~is_child, -1)
        # A node without a parent is a family of its own.
        family = torch.where(is_child, above, -1 - torch.arange(num_columns, device=above.device))
        border = family.diff(dim=1) != 0
        is_first, is_last = (functional.pad(border, side, value=True) for side in ((1, 0), (0, 1)))

        intermediate = num_columns + order  # over each child and its later siblings
        is_divider = ~is_first & ~is_last
        # The second sibling is under the parent, later ones under the intermediate node of the sibling before.
        holder = torch.where(is_first.roll(1, dims=1), parent, intermediate.roll(1, dims=1))
        parents = [
            torch.where(is_first, parent, torch.where(is_last, holder, intermediate)),
            holder.masked_fill(~is_divider, -1),
        ]
        branches = [(is_last & ~is_first).long().masked_fill(~is_child, -1), torch.where(is_divider, 1, -1)]
        columns = torch.cat([order, intermediate], dim=1)
        return cls(
            parents=_put(torch.cat(parents, dim=1), columns),
            branches=_put(torch.cat(branches, dim=1), columns),
            mask=torch.cat([real, _put(is_divider, order)], dim=1),
            divided=_put((parent - num_leaves).masked_fill(~is_divider, 0), order),
            root=order[:, 0],
        )


def _by_level(batch: TreeBatch) -> Tensor:
    """Returns keys ``[R, N + M]`` int64 that sort leaves and nodes by their depth, then from left to right."""
    width = batch.is_leaf.size(1)
    leaf = torch.arange(width, device=batch.start.device).expand_as(batch.is_leaf)
    is_node = batch.is_node.long()
    # The depth of a leaf is the number of nodes that have begun and not yet ended there.
    covers = is_node.new_zeros(len(leaf), width + 1)
    covers = covers.scatter_add(1, batch.start, is_node).scatter_add(1, batch.end, -is_node)
    depth = torch.cat([covers.cumsum(1)[:, :-1], batch.depth], dim=1)
    return depth * width + torch.cat([leaf, batch.start], dim=1)


def _put(values: Tensor, columns: Tensor) -> Tensor:
    """Moves the values of each row to the given columns, a permutation of all columns."""
    return torch.empty_like(values).scatter(1, columns, values)


BINARY_LEVELS = "binary_levels"


def with_binary_levels(sentence_trees: dict[str, Any], pad: int) -> dict[str, Any]:
    """Adds the levels of the binary trees to collated documents, so that the encoder need not ask the device."""
    tree = BinaryBranches.of(TreeBatch.from_net_input(sentence_trees, sentence_trees["tokens"], pad))
    sizes = level_sizes(*(values.numpy() for values in (tree.parents, tree.branches, tree.mask)), degree=2)
    return {**sentence_trees, BINARY_LEVELS: sizes}


class TreeLSTMEncoder(FairseqEncoder):
    """Tai et al.'s binary Tree-LSTM over documents of many trees, which are binarised to the right.

    The features of a leaf are the vector of its word, those of a node the vector of its label. The features of an
    intermediate node are the label of the node that it divides plus a vector of their own; without that, ``(A b c d)``
    would equal ``(A b (A c d))``.

    A document is read at the root of its first tree, or at the mean of the roots of all (``document_root``). The root
    of a tree of one leaf is the leaf.
    """

    def __init__(self, cfg, dictionary: Dictionary, num_labels: int, embed_tokens: nn.Embedding):
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.document_root = cfg.document_root
        self.embed_tokens = embed_tokens
        self.embed_labels = Embedding(num_labels, embed_tokens.embedding_dim, self.padding_idx)
        self.intermediate = nn.Parameter(torch.empty(embed_tokens.embedding_dim))
        nn.init.normal_(self.intermediate, std=embed_tokens.embedding_dim**-0.5)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self.tree_lstm = TreeLSTM(embed_tokens.embedding_dim, cfg.encoder_hidden_size, 2)

    def forward(self, sentence_trees: dict[str, Any]) -> classifier.DocumentStates:
        """Computes h of leaves and nodes, zero at padding, and of the roots."""
        tokens = sentence_trees["tokens"]
        batch = TreeBatch.from_net_input(sentence_trees, tokens, self.padding_idx)
        tree = BinaryBranches.of(batch)
        # One more column, as the batch may have no nodes.
        label = functional.pad(batch.label, (0, 1), value=self.padding_idx).gather(1, tree.divided)
        features = [
            self.embed_tokens(tokens),
            self.embed_labels(batch.label),
            self.embed_labels(label) + self.intermediate,
        ]
        x = self.dropout(torch.cat(features, dim=1))  # (R, 2 S, E)
        h, _ = self.tree_lstm(x, tree.parents, tree.branches, tree.mask, sentence_trees.get(BINARY_LEVELS))
        own = h[torch.arange(len(h), device=h.device), tree.root]  # (R, D)
        documents = sentence_trees["document"], sentence_trees["num_documents"]
        roots = classifier.pool_roots(own, *documents, self.document_root)
        leaves, nodes, _ = h.tensor_split([tokens.size(1), tree.divided.size(1)], dim=1)
        return classifier.DocumentStates(leaves, nodes, roots)

    def max_positions(self) -> int:
        return MAX_POSITIONS


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeLSTMClassifierConfig(classifier.RecurrentConfig, classifier.TreeReadoutConfig):
    """All options of the model."""


@register_model("tree_lstm_classifier", dataclass=TreeLSTMClassifierConfig)
class TreeLSTMClassifier(classifier.TreeClassifier):
    """A Tree-LSTM from the leaves up and a readout of its roots, nodes and leaves."""

    config = TreeLSTMClassifierConfig
    complete_trees = staticmethod(with_binary_levels)

    @classmethod
    def build_encoder(cls, cfg, task, embeddings):
        encoder = TreeLSTMEncoder(cfg, task.source_dictionary, len(task.label_dictionary), embeddings)
        return encoder, cfg.encoder_hidden_size


# 70,000 weights, as in tree_transformer_classifier_tiny, vectors apart.
register_model_architecture("tree_lstm_classifier", "tree_lstm_classifier_tiny")(
    partial(set_defaults, config=TreeLSTMClassifierConfig, encoder_embed_dim=64, encoder_hidden_size=72)
)
