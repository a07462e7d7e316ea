"""Decoder of partial trees, which scores the labels of all slots (Lukovnikov & Fischer 2021, section 3.2).

A slot sees only its immediate neighbours, each through a linear map of its own (section 3.2.3):

=================  =============================================================
slot of node u     sum of
=================  =============================================================
`DESCENDANT`       u as ancestor
`ANCESTOR`         u as descendant
`FIRST_CHILD`      u as parent, its first child as right neighbour
`NEXT_SIBLING`     u's parent as parent, u as left and, if it has one, its next
                   sibling as right neighbour
=================  =============================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Union

import torch
from fairseq.models.transformer import Embedding, TransformerDecoderBase
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.shared_memory import PackedRows, ProjectedMemory, cross_attention_options
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.relations import PairRelations, TreeRelationAttention, TreeRelations
from tree_fairseq.tree_insertion.tree_shapes import CLOSING, NO_NEIGHBOUR, OPENING, ROLES


class SlotVectors(nn.Module):
    """Vectors of all slots of a batch, of width D."""

    def __init__(self, width: int):
        super().__init__()
        self.maps = nn.Linear(width, ROLES * width)
        for matrix in self.maps.weight.split(width):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.maps.bias)

    def forward(self, states: Tensor, neighbours: Tensor) -> Tensor:
        """Adds up the mapped states ``[n, D]`` of the neighbours ``[Z, 3]`` of each slot; returns ``[Z, D]``.

        See :func:`tree_fairseq.tree_insertion.tree_shapes.slot_neighbours`.
        """
        mapped = self.maps(states).view(-1, states.size(1))  # (n, 5 D) -> (5 n, D)
        return functional.embedding_bag(neighbours, mapped, mode="sum", padding_idx=NO_NEIGHBOUR)


@dataclass(frozen=True)
class DecoderMemory:
    """Keys and values of R rows for each layer of a decoder, projected once; rows leave them during decoding.

    ``merged`` are the weights of :meth:`TreeRelationAttention.merged` for each layer; None in training.
    """

    layers: tuple[ProjectedMemory, ...]
    merged: tuple[Optional[tuple[Tensor, Tensor]], ...]

    def select(self, rows: Tensor) -> DecoderMemory:
        """Selects rows, ``[R']`` int64; they may be permuted, repeated and left out."""
        return replace(self, layers=tuple(layer.select(rows) for layer in self.layers))


class TreeInsertionDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder over nodes, which attend to all nodes of their tree by their relations.

    With absolute positions it reads the tree as a sequence of labels and brackets instead, without relations.
    """

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn: bool = False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.memory_type = encoder_of(cfg).memory
        self.relations = self.embed_brackets = None
        if cfg.absolute_positions:
            self.embed_brackets = Embedding(2, embed_tokens.embedding_dim, None)
        else:
            self.embed_positions = None
            self.relations = TreeRelations(self.embed_dim // cfg.decoder.attention_heads, not cfg.no_child_relations)
        self.slots = SlotVectors(self.embed_dim)

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        cross = cross_attention_options(cfg)
        if not cfg.absolute_positions:
            own = {name: cross[name] for name in ("embed_dim", "num_heads", "dropout", "q_noise", "qn_block_size")}
            layer.self_attn = TreeRelationAttention(self_attention=True, **own)
        layer.encoder_attn = encoder_of(cfg).memory.attention(cfg, **cross)
        return layer

    def project(self, encoder_out: dict[str, list]) -> DecoderMemory:
        states, memory = self.memory_type.view(encoder_out)
        projected = tuple(layer.encoder_attn.project(states, memory) for layer in self.layers)
        reads_once = self.training or self.relations is None
        return DecoderMemory(
            projected, tuple(None if reads_once else layer.self_attn.merged() for layer in self.layers)
        )

    def forward(self, partial_tree: dict[str, Tensor], memory: DecoderMemory) -> dict[str, Tensor]:
        """Scores what may be inserted in partial trees; see :meth:`TreeInsertionTransformerModel.forward`."""
        labels = partial_tree["labels"]
        nodes = PackedRows(partial_tree["nodes"], tuple(labels.shape))
        states = self._node_states(partial_tree, nodes, memory)  # n x D
        vectors = self.slots(states, partial_tree["neighbours"])
        if self.project_out_dim is not None:
            vectors = self.project_out_dim(vectors)
        return {"slot": partial_tree["slots"], "logits": self.output_layer(vectors)}

    def _node_states(self, partial_tree: dict[str, Tensor], nodes: PackedRows, memory: DecoderMemory) -> Tensor:
        if self.relations is not None:
            packed = nodes.pack(partial_tree["labels"]).unsqueeze(1)  # (R, M) -> (n, 1)
            relations = self.relations(partial_tree["relations"], partial_tree["relation_rows"], nodes)
            return self._states(packed, self.embed_tokens.weight, memory, relations).squeeze(1)  # (n, 1, D) -> (n, D)
        tokens = self._bracketed(partial_tree)
        table = torch.cat([self.embed_tokens.weight, self.embed_brackets.weight])
        states = self._states(tokens.t(), table, memory, tokens.eq(self.padding_idx))
        states = states.transpose(0, 1).flatten(0, 1)  # (T, R, D) -> (R T, D)
        return states.index_select(0, partial_tree["bracket_places"])  # (n, D)

    def _bracketed(self, partial_tree: dict[str, Tensor]) -> Tensor:
        """Returns the trees as labels and brackets, ``[R, T]`` int64. Brackets are the last two rows of the table."""
        brackets, places = partial_tree["brackets"], partial_tree["bracket_places"]
        labels = partial_tree["labels"].flatten().index_select(0, partial_tree["nodes"])
        tokens = labels.new_full(brackets.shape, self.padding_idx).view(-1).index_copy(0, places, labels)
        tokens = tokens.view_as(brackets)
        count = self.embed_tokens.num_embeddings
        return tokens.masked_fill(brackets == OPENING, count).masked_fill(brackets == CLOSING, count + 1)

    def _states(
        self, tokens: Tensor, table: Tensor, memory: DecoderMemory, padding: Union[Tensor, PairRelations]
    ) -> Tensor:
        """Returns the states ``[T, R, D]`` after all layers of tokens ``[T, R]``, which are rows of a table.

        With relations, tokens are packed nodes ``[n, 1]``. fairseq's layers then get nodes and relations in the place
        of masks, and hand them on unread.
        """
        rows = padding.nodes if isinstance(padding, PairRelations) else None
        x = self.embed_scale * functional.embedding(tokens, table, self.padding_idx)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(tokens.t()).transpose(0, 1)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x)
        for layer, projected, merged in zip_equal(self.layers, memory.layers, memory.merged):
            mask = padding if rows is None else replace(padding, projection=merged)
            x, _, _ = layer(x, encoder_out=projected, encoder_padding_mask=rows, self_attn_padding_mask=mask)
        return x if self.layer_norm is None else self.layer_norm(x)
