"""Decoder of partial trees, which scores the labels of all slots (Lukovnikov & Fischer 2021, section 3.2).

What a slot sees of the nodes is in :mod:`tree_fairseq.tree_insertion.slots`. n is the number of nodes of all trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Union

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.copying import PointedMemory, SourcePointer
from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.shared_memory import FAST_ROW, PackedRows, ProjectedMemory, cross_attention_options
from tree_fairseq.nn.tensors import attention_options
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.slots import SlotNeighbours, SlotTokens, SlotVectors
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import ACROSS, CHILD, CHILD_OF, CLOSING, DOWN, OPENING, RELATIONS, UP


def without_child_relations(rows: Tensor) -> Tensor:
    """Treats parents and children like all other pairs, an ablation: rows ``[K, 3]`` int64 of relations."""
    up, down, across = rows.unbind(1)
    is_child, is_parent = (up >= CHILD) & (up < CHILD_OF), up >= CHILD_OF
    is_family = is_child | is_parent
    return torch.stack(
        [
            torch.where(is_family, UP + is_parent.long(), up),
            torch.where(is_family, DOWN + is_child.long(), down),
            across.masked_fill(is_family, ACROSS),
        ],
        dim=1,
    )


@dataclass(frozen=True)
class PairRelations:
    """The relations of a batch as attention reads them."""

    # ``[B, 1, M, M]`` int64, of the relation of each pair; 0 where the other node is padding, of which there may be
    # more
    numbers: Tensor
    # keys, values: ``[K, D / H]``, added to keys and values of nodes in each relation; row 0 is zero
    keys: Tensor
    values: Tensor
    nodes: PackedRows  # where the nodes are among the B * M places


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (Equation 3)."""

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (RELATIONS if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, numbers: Tensor, rows: Tensor, nodes: PackedRows) -> PairRelations:
        """Embeds the relations of a batch, ``[B, M, M]`` and ``[K, 3]``, as ``pair_relations`` returns them."""
        rows = rows if self.child_relations else without_child_relations(rows)
        tables = functional.pad(torch.cat([self.keys, self.values], dim=1), (0, 0, 1, 0))
        embedded = functional.embedding_bag(rows, tables, mode="sum")
        if not self.training:
            numbers = functional.pad(numbers, (0, max(0, FAST_ROW - numbers.size(2))))
        return PairRelations(numbers.long().unsqueeze(1), *embedded.chunk(2, dim=1), nodes)


class TreeRelationAttention(MultiheadAttention):
    """fairseq's multi-head self-attention in which each node attends to all nodes of its tree, with their relations:

        e_ij = (q_i k_j + q_i a^K_ij) / sqrt(D / H),    z_i = sum_j alpha_ij (v_j + a^V_ij)

    a_ij is the sum of up to three relation embeddings. Queries are multiplied with those of the K relations of the
    batch once, and each pair picks its score from the result; weights are added up by relation before they are
    multiplied with the embeddings of values. So no vector is made for a pair.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Union[PairRelations, SlotNeighbours],
        **kwargs,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends within the trees of a batch, whose nodes are packed, ``[n, 1, D]``; weights are never returned.

        ``key`` and ``value`` are not read. ``key_padding_mask`` holds the relations, and the padding; fairseq's decoder
        layer passes it on unread. With neighbours in its place, the queries are slots, ``[Z, 1, D]``.
        """
        if isinstance(key_padding_mask, SlotNeighbours):
            return self._to_neighbours(query, key_padding_mask), None
        relations, nodes = key_padding_mask, key_padding_mask.nodes
        projected = (project(query) for project in (self.q_proj, self.k_proj, self.v_proj))
        queries, keys, values = (nodes.split(states, self.num_heads) for states in projected)  # B x H x M x D/H
        queries = queries * self.scaling
        # Scores, their softmax and sums of weights are in single precision at least.
        exact = torch.promote_types(values.dtype, torch.float32)
        numbers = relations.numbers.expand(-1, self.num_heads, -1, -1)
        by_relation = (queries @ relations.keys.t()).to(exact)  # B x H x M x K
        by_relation.select(3, 0).fill_(-torch.inf)  # padding
        scores = (queries @ keys.transpose(2, 3)).to(exact)  # B x H x M x M
        if more := numbers.size(3) - scores.size(3):
            scores = functional.pad(scores, (0, more))
        weights = self.dropout_module((scores + by_relation.gather(3, numbers)).softmax(3))
        sums = torch.zeros_like(by_relation).scatter_add_(3, numbers, weights).to(values.dtype)
        output = weights[..., : values.size(2)].to(values.dtype) @ values + sums @ relations.values
        return self.out_proj(nodes.join(output)), None

    def _to_neighbours(self, slots: Tensor, seen: SlotNeighbours) -> Tensor:
        """The same equations for slots, which see up to three nodes and no slot, not even themselves."""
        queries = self.q_proj(slots).view(-1, 1, self.num_heads, self.head_dim) * self.scaling  # Z x 1 x H x D/H
        read = (project(seen.states).view(-1, self.num_heads, self.head_dim) for project in (self.k_proj, self.v_proj))
        keys, values = (
            states[seen.node] + of_roles[seen.role].unsqueeze(2)  # Z x 3 x H x D/H
            for states, of_roles in zip_equal(read, (seen.keys, seen.values))
        )
        scores = (queries * keys).sum(3)  # Z x 3 x H
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(
            seen.missing[..., None], -torch.inf
        )
        weights = self.dropout_module(exact.softmax(1)).to(values.dtype)
        return self.out_proj((weights.unsqueeze(3) * values).sum(1).flatten(1)).unsqueeze(1)  # Z x 1 x D


@dataclass(frozen=True)
class DecoderMemory:
    """Keys and values of R rows for each layer of a decoder, projected once; rows leave them during decoding."""

    layers: tuple[ProjectedMemory, ...]
    pointed: Optional[PointedMemory] = None

    def select(self, rows: Tensor) -> DecoderMemory:
        """Selects rows, ``[R']`` int64; they may be permuted, repeated and left out."""
        pointed = None if self.pointed is None else self.pointed.select(rows)
        return replace(self, layers=tuple(layer.select(rows) for layer in self.layers), pointed=pointed)


class TreeInsertionDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder over nodes, which attend to all nodes of their tree by their relations.

    With absolute positions it reads the tree as a sequence of labels and brackets instead, without relations.
    """

    def __init__(self, cfg, dictionary, embed_tokens):
        super().__init__(cfg, dictionary, embed_tokens)
        self.memory_type = encoder_of(cfg).memory
        self.relations = self.embed_brackets = None
        if cfg.absolute_positions:
            self.embed_brackets = nn.Embedding(2, embed_tokens.embedding_dim)
            nn.init.normal_(self.embed_brackets.weight, std=embed_tokens.embedding_dim**-0.5)  # as fairseq's labels
        else:
            self.embed_positions = None
            self.relations = TreeRelations(self.embed_dim // cfg.decoder.attention_heads, not cfg.no_child_relations)
        self.slots: Union[SlotVectors, SlotTokens] = SlotVectors(self.embed_dim)
        if cfg.as_published:
            self.slots = SlotTokens(embed_tokens.embedding_dim, self.embed_dim // cfg.decoder.attention_heads)
        self.pointer: Optional[SourcePointer] = None

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        if not cfg.absolute_positions:
            sizes, options = (cfg.decoder.embed_dim, cfg.decoder.attention_heads), attention_options(cfg)
            layer.self_attn = TreeRelationAttention(*sizes, self_attention=True, **options)
        layer.encoder_attn = encoder_of(cfg).memory.attention(cfg, **cross_attention_options(cfg))
        return layer

    def project(self, encoder_out: dict[str, list]) -> DecoderMemory:
        states, memory = self.memory_type.view(encoder_out)
        projected = tuple(layer.encoder_attn.project(states, memory) for layer in self.layers)
        return DecoderMemory(projected, None if self.pointer is None else self.pointer.project(encoder_out))

    def forward(self, partial_tree: dict[str, Tensor], memory: DecoderMemory) -> dict[str, Tensor]:
        """Scores what may be inserted in partial trees; see :meth:`TreeInsertionTransformerModel.forward`."""
        labels = partial_tree["labels"]
        nodes = PackedRows(partial_tree["nodes"], tuple(labels.shape))
        states = self._node_states(partial_tree, nodes, memory)  # n x D, or of slots Z x D
        vectors = self.slots(states, partial_tree["neighbours"]) if isinstance(self.slots, SlotVectors) else states
        if self.project_out_dim is not None:
            vectors = self.project_out_dim(vectors)
        slots, logits = partial_tree["slots"], self.output_layer(vectors)
        if self.pointer is not None:
            places = PackedRows(slots, (len(labels), KINDS * labels.size(1)))
            logits = self.pointer.mix_places(logits, vectors, memory.pointed, places)
        return {"slot": slots, "logits": logits}

    def _node_states(self, partial_tree: dict[str, Tensor], nodes: PackedRows, memory: DecoderMemory) -> Tensor:
        if self.relations is not None:
            packed = nodes.pack(partial_tree["labels"]).unsqueeze(1)  # (R, M) -> (n, 1)
            relations = self.relations(partial_tree["relations"], partial_tree["relation_rows"], nodes)
            if isinstance(self.slots, SlotTokens):
                return self._slot_states(self.slots, packed, partial_tree, memory, relations)
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
        # R * T, where labels fill their places -> R x T
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
        x = self._embedded(tokens, table)
        for layer, projected in zip_equal(self.layers, memory.layers):
            x, _, _ = layer(x, encoder_out=projected, encoder_padding_mask=rows, self_attn_padding_mask=padding)
        return x if self.layer_norm is None else self.layer_norm(x)

    def _slot_states(
        self,
        tokens: SlotTokens,
        packed: Tensor,
        partial_tree: dict[str, Tensor],
        memory: DecoderMemory,
        relations: PairRelations,
    ) -> Tensor:
        """Returns the states ``[Z, D]`` of slots after all layers, beside nodes ``[n, 1]``, which do not see them."""
        slots, shape = partial_tree["slots"], partial_tree["labels"].shape
        table = torch.cat([self.embed_tokens.weight, tokens.embed])
        x = self._embedded(packed, table)
        of_slots = self._embedded((self.embed_tokens.num_embeddings + tokens.tokens(slots)).unsqueeze(1), table)
        rows = PackedRows(slots, (shape[0], KINDS * shape[1]))
        for number, (layer, projected) in enumerate(zip_equal(self.layers, memory.layers), 1):
            read = layer.self_attn_layer_norm(x) if layer.normalize_before else x
            seen = tokens.neighbours(read, partial_tree["neighbours"])
            of_slots, _, _ = layer(
                of_slots, encoder_out=projected, encoder_padding_mask=rows, self_attn_padding_mask=seen
            )
            if number < len(self.layers):  # nobody reads the last states of nodes
                x, _, _ = layer(
                    x, encoder_out=projected, encoder_padding_mask=relations.nodes, self_attn_padding_mask=relations
                )
        of_slots = of_slots.squeeze(1)
        return of_slots if self.layer_norm is None else self.layer_norm(of_slots)

    def _embedded(self, tokens: Tensor, table: Tensor) -> Tensor:
        """Embeds tokens ``[T, R]``, rows of a table, as ``[T, R, D]``."""
        x = self.embed_scale * functional.embedding(tokens, table, self.padding_idx)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(tokens.t()).transpose(0, 1)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)
