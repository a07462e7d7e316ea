"""Encoder of documents of trees by a binary Tree-LSTM."""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import Embedding
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data.batch import TreeBatch
from tree_fairseq.models.document_encoder import DocumentStates
from tree_fairseq.modules.binary_branches import BinaryBranches
from tree_fairseq.modules.document_roots import READINGS
from tree_fairseq.modules.tree_lstm import TreeLSTM

# A recurrent network has no limit of its own; fairseq's is this.
MAX_POSITIONS = 100_000


class TreeLSTMEncoder(FairseqEncoder):
    """Tai et al.'s binary Tree-LSTM over documents of many trees, which are binarised to the right.

    The features of a leaf are its word's vector, those of a node its label's. A node that binarisation puts in has the label of
    the one it is put in for, and a vector that says so, without which ``(A b c d)`` would be ``(A b (A c d))``.

    A document is read at the root of its first tree, at the mean of the roots of all, or at a super-root of label ``<s>`` over all
    of its trees. The root of a tree of one leaf is the leaf.

    Args:
        cfg (TreeLSTMClassifierConfig): sizes, dropout and ``document_root`` (``first``, ``mean`` or ``super``)
        dictionary: of the leaves
        num_labels: of nodes
        embed_tokens: table of the leaves
    """

    def __init__(self, cfg, dictionary: Dictionary, num_labels: int, embed_tokens: nn.Embedding):
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.super_root = cfg.document_root == "super"
        self.read_documents = READINGS.get(cfg.document_root)
        self.embed_tokens = embed_tokens
        self.embed_labels = Embedding(num_labels, embed_tokens.embedding_dim, self.padding_idx)
        self.intermediate = nn.Parameter(torch.empty(embed_tokens.embedding_dim))
        nn.init.normal_(self.intermediate, std=embed_tokens.embedding_dim**-0.5)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self.tree_lstm = TreeLSTM(embed_tokens.embedding_dim, cfg.encoder_hidden_size, 2)

    def forward(self, sentence_trees: dict[str, Tensor]) -> DocumentStates:
        """Encodes a batch of B documents of R sentences.

        Args:
            sentence_trees: ``tokens`` ``[R, N]``, padded on the right and without EOS; ``label``, ``start``, ``end`` and
                ``depth`` ``[R, M]`` as :func:`tree_fairseq.data.batch.collate_trees` makes them; ``document`` ``[R]``, the
                document of each row, ascending from 0 and none left out. All int64

        Returns:
            h of leaves and nodes, zero at padding, and of the roots
        """
        tokens, document = sentence_trees["tokens"], sentence_trees["document"]
        batch = TreeBatch.from_net_input(sentence_trees, tokens, self.padding_idx)
        tree = BinaryBranches.of(batch)
        # One column more, as there may be no node at all.
        label = functional.pad(batch.label, (0, 1), value=self.padding_idx).gather(1, tree.divided)
        features = [self.embed_tokens(tokens), self.embed_labels(batch.label), self.embed_labels(label) + self.intermediate]
        if self.super_root:
            is_first = functional.pad(document.diff() > 0, (1, 0), value=True)
            own = self.embed_labels(torch.full_like(document, self.dictionary.bos()))
            features.append(torch.where(is_first.unsqueeze(1), own, own + self.intermediate).unsqueeze(1))
        x = self.dropout(torch.cat(features, dim=1))
        if self.super_root:
            joined = tree.under_super_roots(document)
            flat, _ = self.tree_lstm(x.view(1, -1, x.size(2)), joined.parents, joined.branches, joined.mask)
            h, roots = flat.view(*x.shape[:2], -1), flat[0, joined.root]
        else:
            h, _ = self.tree_lstm(x, tree.parents, tree.branches, tree.mask)
            own = h[torch.arange(len(h), device=h.device), tree.root]
            roots = self.read_documents(own, document)
        leaves, nodes, _ = h.tensor_split([tokens.size(1), tree.divided.size(1)], dim=1)
        return DocumentStates(leaves, nodes, roots)

    def max_positions(self) -> int:
        """Maximum length of a document."""
        return MAX_POSITIONS
