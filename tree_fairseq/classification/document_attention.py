"""Self-attention over documents of several trees, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.classification.document_structure import DocumentStructure, Placement
from tree_fairseq.tree_transformer.attention import TreeSelfAttention
from tree_fairseq.tree_transformer.structure import TreeStructure


class DocumentAttention(TreeSelfAttention):
    """Subtree-masked attention of sentences as rows, whose leaves see all leaves of their document.

    It computes what :class:`TreeSelfAttention` computes on a forest of all trees of a document. Nodes see
    nothing outside their tree, so they and their accumulation stay within a row, and only the leaves are
    brought together: there is no tensor of all nodes by all leaves or by all nodes of a document.

    A super-root stands last in the first row of its document. It is the one node above all trees and
    sees all of them.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Union[DocumentStructure, TreeStructure],
        need_weights: bool = False,
        attn_mask: Optional[Tensor] = None,
    ) -> tuple[Tensor, None]:
        """Attends within a batch of documents.

        Args:
            query: ``[S, R, D]``, leaves then nodes, or ``[S + 1, R, D]`` with super-roots
            key: the same; unread
            value: the same; unread
            key_padding_mask: the documents, or trees that each are a document of their own
            need_weights: unread, weights are never returned
            attn_mask: unread

        Returns:
            the shape of ``query``, and None
        """
        structure = key_padding_mask
        if isinstance(structure, TreeStructure):
            return super().forward(query, key, value, structure, need_weights, attn_mask)
        projected = self.q_proj(query), self.k_proj(query), self._accumulate(query, structure)
        if structure.join_leaves and not structure.mask_subtrees:
            output = structure.everything.to_rows(self._across(projected, structure.everything))
        else:
            output = self._masked(projected, structure)
        return self.out_proj(output), None

    def _masked(self, projected: tuple[Tensor, Tensor, Tensor], structure: DocumentStructure) -> Tensor:
        """Leaves, nodes and super-roots, each with what they see."""
        rows, query = structure.rows, projected[0]
        within = (self._split_heads(tensor[: rows.padding.size(1)]) for tensor in projected)
        output = [self.look(*within, rows.sights[1:] if structure.join_leaves else rows.sights)]
        if structure.join_leaves:
            output.insert(0, structure.leaves.to_rows(self._across(projected, structure.leaves)))
        if structure.super_roots is not None:
            first_row = structure.super_roots.first_row
            own = query[-1].index_select(0, first_row).unsqueeze(1)  # B x 1 x D
            seen = self._across(projected, structure.everything, own).squeeze(1)
            output.append(torch.zeros_like(query[-1:], dtype=seen.dtype).index_copy(1, first_row, seen.unsqueeze(0)))
        return torch.cat(output)

    def _accumulate(self, states: Tensor, structure: DocumentStructure) -> Tensor:
        """Projects states to values and accumulates those of nodes and super-roots: the shape of ``states``."""
        rows, roots = structure.rows, structure.super_roots
        leaves = states[: rows.num_leaves]
        heads = self._split_heads(self.v_proj(states))  # R x H x S x D/H
        within = heads[:, :, : rows.padding.size(1)]
        values = self.accumulation(leaves, within, rows).permute(2, 0, 1, 3).flatten(2)  # S x R x D
        if roots is None:
            return values
        own = heads[:, :, -1].index_select(0, roots.first_row)
        accumulated = roots.accumulate(self.accumulation, leaves, within, own, rows).flatten(1)  # B x D
        return torch.cat(
            [values, torch.zeros_like(values[:1]).index_copy(1, roots.first_row, accumulated.unsqueeze(0))]
        )

    def _across(
        self, projected: tuple[Tensor, Tensor, Tensor], places: Placement, query: Optional[Tensor] = None
    ) -> Tensor:
        """Attends within documents, from the same places or from a query ``[B, T, D]``: ``[B, T, D]``."""
        if query is None:
            query = places.to_documents(projected[0])
        keys_and_values = (places.to_documents(tensor) for tensor in projected[1:])
        heads = [tensor.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for tensor in (query, *keys_and_values)]
        return self.attend(*heads, places.attention_bias).transpose(1, 2).flatten(2)


# FROM modules/shared_rows: Several sentences in one row: documents have short sentences and long ones, and rows are as long as the longest.


@dataclass(frozen=True)
class SharedRows:
    """Consecutive sentences of one document as the trees of a forest that fills a row.

    R sentences with N leaves and M nodes go into P rows with as many leaves and nodes, as long as they fit. Padded one by
    one, most of a batch of sentences would be padding.

    Attributes:
        leaves: ``[R, N]`` int64, where each leaf stands in flattened ``[P, N]``; the place after the last at padding
        nodes: ``[R, M]`` int64, the same of nodes
        first_leaf: ``[R]`` int64, column of the first leaf of each sentence
        document: ``[P]`` int64, document of each row, ascending
    """

    leaves: Tensor
    nodes: Tensor
    first_leaf: Tensor
    document: Tensor

    @classmethod
    def build(cls, is_leaf: Tensor, is_node: Tensor, document: Tensor) -> SharedRows:
        """Fills row after row, in the order of the sentences.

        Args:
            is_leaf: ``[R, N]`` bool, false at padding, which is on the right
            is_node: ``[R, M]`` bool, the same of nodes
            document: ``[R]`` int64, document of each sentence, ascending
        """
        num_leaves, num_nodes = is_leaf.size(1), is_node.size(1)
        sizes = torch.stack([is_leaf.sum(1), is_node.sum(1), document], dim=1)
        placed, documents = [], []
        leaves = nodes = 0
        for own_leaves, own_nodes, own_document in sizes.tolist():
            fits = leaves + own_leaves <= num_leaves and nodes + own_nodes <= num_nodes
            if not documents or documents[-1] != own_document or not fits:
                documents.append(own_document)
                leaves = nodes = 0
            placed.append((len(documents) - 1, leaves, nodes))
            leaves, nodes = leaves + own_leaves, nodes + own_nodes
        row, first_leaf, first_node = torch.tensor(placed, device=document.device).unbind(1)
        return cls(
            leaves=_places(is_leaf, row * num_leaves + first_leaf, len(documents)),
            nodes=_places(is_node, row * num_nodes + first_node, len(documents)),
            first_leaf=first_leaf,
            document=document.new_tensor(documents),
        )

    def pack(self, sentences: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
        """Lays out collated sentences.

        Args:
            sentences: ``tokens`` ``[R, N]``, padded on the right; ``label``, ``start``, ``end`` and ``depth`` ``[R, M]``
            pad: id of padding leaves and labels

        Returns:
            the same of the rows, ``[P, N]`` and ``[P, M]``, and ``document`` ``[P]``
        """
        shift = self.first_leaf.unsqueeze(1)
        return {
            "tokens": self._fill(sentences["tokens"], self.leaves, pad),
            "label": self._fill(sentences["label"], self.nodes, pad),
            "start": self._fill(sentences["start"] + shift, self.nodes, 0),
            "end": self._fill(sentences["end"] + shift, self.nodes, 0),
            "depth": self._fill(sentences["depth"], self.nodes, 0),
            "document": self.document,
        }

    def _fill(self, values: Tensor, places: Tensor, padding: int) -> Tensor:
        """Puts what stands at places into rows that are empty elsewhere."""
        flat = values.new_full((len(self.document) * places.size(1) + 1,), padding)
        return flat.index_copy(0, places.flatten(), values.flatten())[:-1].view(len(self.document), places.size(1))

    def unpack(self, rows: Tensor, places: Tensor) -> Tensor:
        """States of rows ``[P, N or M, D]`` at the places of sentences: ``[R, N or M, D]``, zero at padding."""
        return (
            functional.pad(rows.flatten(0, 1), (0, 0, 0, 1))
            .index_select(0, places.flatten())
            .unflatten(0, places.shape)
        )


def _places(real: Tensor, first: Tensor, num_rows: int) -> Tensor:
    """Consecutive places from the first of each sentence, ``[R, columns]``."""
    columns = torch.arange(real.size(1), device=real.device)
    return torch.where(real, first.unsqueeze(1) + columns, num_rows * real.size(1))
