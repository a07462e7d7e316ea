"""Encoder of the Tree-Transformer over documents: sentences are rows, and documents are read at their root."""

from __future__ import annotations

from typing import NamedTuple, Union

import torch
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

from tree_fairseq.classification.document_attention import DocumentAttention, SharedRows
from tree_fairseq.classification.document_structure import READINGS, DocumentStructure
from tree_fairseq.errors import InputError
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.encoder import TreeTransformerEncoder
from tree_fairseq.tree_transformer.structure import TreeStructure


class DocumentStates(NamedTuple):
    """What the encoder makes of B documents of R sentences.

    Attributes:
        leaves: ``[R, N, D]``, any values at padding
        nodes: ``[R, M, D]``, any values at padding
        roots: ``[B, D]``, the states that documents are read at
    """

    leaves: Tensor
    nodes: Tensor
    roots: Tensor


class DocumentEncoder(TreeTransformerEncoder):
    """The Tree-Transformer's encoder over documents of many trees.

    A row is a sentence, or a few sentences of a document where leaves look beyond theirs: nodes and their accumulation never
    leave it, so time and memory grow linearly with the number of sentences. With ``leaf_attention`` of ``document`` leaves see all leaves
    of their document and count their positions from its start: all is as if the trees of a document were
    one forest. With ``sentence`` all is as if every sentence were alone.

    A document is read at the root of its first sentence (the paper), at the mean of the roots of all, or at a super-root above
    all of its trees, which is embedded as the label ``<s>``, accumulates the whole document and sees all of it.
    The root of a sentence of one leaf is the leaf.

    Args:
        cfg: that of a Tree-Transformer, with ``leaf_attention`` (``document`` or ``sentence``) and
            ``document_root`` (``first``, ``mean`` or ``super``)
        dictionary: of the leaves
        embed_tokens: table of the leaves
    """

    attention = DocumentAttention

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.join_leaves = cfg.leaf_attention == "document"
        self.super_root = cfg.document_root == "super"
        self.read_documents = READINGS.get(cfg.document_root)

    def forward(self, sentence_trees: dict[str, Tensor]) -> DocumentStates:
        """Encodes a batch of documents.

        Args:
            sentence_trees: ``tokens`` ``[R, N]``, padded on the right and without EOS; ``label``, ``start``,
                ``end`` and ``depth`` ``[R, M]`` as :func:`tree_fairseq.nn.tree_batch.collate_trees` makes them,
                the node of a sentence's root first; ``document`` ``[R]``, the document of each row, ascending
                from 0 and none left out. All int64

        Raises:
            InputError: learned positions do not reach the end of the text
        """
        sentences, shared = sentence_trees, None
        if self.join_leaves and not _single(sentence_trees["document"]):
            # What leaves see does not end with their sentence, and nodes see no other tree of their row.
            is_node = sentence_trees["end"] > sentence_trees["start"]
            shared = SharedRows.build(
                sentence_trees["tokens"].ne(self.padding_idx), is_node, sentence_trees["document"]
            )
            sentences = shared.pack(sentence_trees, self.padding_idx)
        tokens, document = sentences["tokens"], sentences["document"]
        batch = TreeBatch.from_net_input(sentences, tokens, self.padding_idx)
        structure = self._documents(batch, document)
        embedded = [self._embed_leaves(tokens, structure), self.forward_labels(batch.label)]
        if self.super_root:
            label = torch.full_like(document, self.dictionary.bos()).unsqueeze(1)
            embedded.append(self.forward_labels(label))
        x, _ = self.forward_layers(torch.cat(embedded, dim=1), structure.padding, structure)
        num_leaves, num_nodes = tokens.size(1), batch.label.size(1)
        leaves, nodes = x[: num_leaves + num_nodes].transpose(0, 1).split([num_leaves, num_nodes], dim=1)
        if shared is not None:
            leaves, nodes = shared.unpack(leaves, shared.leaves), shared.unpack(nodes, shared.nodes)
        if self.super_root:
            roots = x[-1].index_select(0, structure.super_roots.first_row)
        else:
            has_node = (sentence_trees["end"] > sentence_trees["start"]).any(1)
            states = torch.cat([leaves, nodes], dim=1)  # R x (N + M) x D
            own = states[torch.arange(len(states), device=x.device), has_node * leaves.size(1)]
            roots = self.read_documents(own, sentence_trees["document"])
        return DocumentStates(leaves, nodes, roots)

    def _documents(self, batch: TreeBatch, document: Tensor) -> Union[DocumentStructure, TreeStructure]:
        """What the layers need to know; of sentences that nothing joins, the trees alone."""
        rows = self.build_structure(batch)
        if not self.super_root and (_single(document) or not self.join_leaves):
            return rows
        return DocumentStructure.build(
            batch,
            rows,
            document,
            super_root=self.super_root,
            join_leaves=self.join_leaves,
            mask_subtrees=not self.cfg.no_subtree_mask,
            count_leaf=self.cfg.accumulation_denominator == "with-leaf",
        )

    def _embed_leaves(self, tokens: Tensor, structure: Union[DocumentStructure, TreeStructure]) -> Tensor:
        """Embeds leaves ``[R, N]`` with their positions in what they are joined to: ``[R, N, D]``."""
        if not self.join_leaves or isinstance(structure, TreeStructure):
            self._check_length(tokens, "sentence")
            return self.forward_embedding(tokens)[0]
        text = structure.leaves.to_documents(
            tokens.t()
        )  # B x leaves of a document; what stands at padding is never read
        self._check_length(text, "document")
        return structure.leaves.to_rows(self.forward_embedding(text)[0]).transpose(0, 1)

    def _check_length(self, tokens: Tensor, name: str) -> None:
        """Sinusoidal positions are made as far as they are needed, learned ones are not."""
        positions = self.embed_positions
        if isinstance(positions, LearnedPositionalEmbedding) and tokens.size(1) > positions.max_positions:
            raise InputError(
                f"a {name} has {tokens.size(1)} leaves, but learned positions end at {positions.max_positions}",
                hint="Give a greater --max-source-positions, or leave out --encoder-learned-pos.",
            )


def _single(document: Tensor) -> bool:
    """Whether each document is one row, of the document of each row, ascending."""
    return len(document) == int(document[-1]) + 1
