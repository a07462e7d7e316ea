"""The memory that encoders leave for decoders, and cross-attention to it with one copy of a sentence for all beams.

Beam search repeats and permutes rows. It moves the index ``order`` of the sentence that each row reads, not the states.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional, Union

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.phrase_bias import PhraseBias
from tree_fairseq.nn.stock_weights import built_in_place
from tree_fairseq.nn.tensors import attention_options, dropout_of_weights, split_heads

FAST_ROW = 16
"""torch's softmax on a CPU takes six times as long for a shorter row: one that does not fill a vector of numbers."""


def row_order(encoder_out: dict[str, list]) -> Optional[Tensor]:
    """``[R]`` int64, the sentence that each row of the decoder reads; None if row i reads sentence i."""
    order = encoder_out.get("order")
    return order[0] if order else None


def with_rows_moved(encoder_out: dict[str, list], new_order: Tensor) -> dict[str, list]:
    """Returns the memory of the same sentences for other rows: ``new_order``, ``[R']`` int64, has their old rows."""
    order = [held.index_select(0, new_order) for held in encoder_out["order"]] or [new_order]
    return {**encoder_out, "order": order}


def read_together(order: Optional[Tensor], count: int) -> tuple[Optional[Tensor], int]:
    """Finds which of ``count`` sentences a decoder reads, given the :func:`row_order`.

    Returns ``[R / K]`` int64, or None for all B in order; and K, the beams that read each, or 1 if they differ.
    """
    if order is None:
        return None, 1
    sentences, counts = torch.unique_consecutive(order, return_counts=True)
    beams = int(counts[0])
    if not bool((counts == beams).all()):
        return order, 1
    return None if torch.equal(sentences, torch.arange(count, device=order.device)) else sentences, beams


@dataclass(frozen=True)
class PackedRows:
    """Where the n positions of B rows, packed one after the other, are in ``[B, M]``."""

    places: Tensor  # ``[n]`` int64, ascending, in the flattened ``[B * M]``
    shape: tuple[int, int]  # B and M

    @property
    def _is_full(self) -> bool:
        return len(self.places) == self.shape[0] * self.shape[1]

    def pad(self, values: Tensor) -> Tensor:
        """Pads values ``[n, ...]`` to ``[B, M, ...]`` with zeros; where no gradients are needed, with any values."""
        if not self._is_full and not torch.is_grad_enabled():
            values = values.index_select(0, self._sources)
        elif not self._is_full:
            zeros = values.new_zeros(self.shape[0] * self.shape[1], *values.shape[1:])
            values = zeros.index_copy(0, self.places, values)
        return values.unflatten(0, self.shape)

    @functools.cached_property
    def _sources(self) -> Tensor:
        """``[B * M]`` int64, the last position at or before each place. Selecting is faster than copying."""
        number = torch.arange(len(self.places), device=self.places.device)
        return number.new_zeros(self.shape[0] * self.shape[1]).index_copy(0, self.places, number).cummax(0).values

    def pack(self, values: Tensor) -> Tensor:
        """Takes the padding out of values ``[B, M, ...]``; the inverse of :meth:`pad`."""
        values = values.flatten(0, 1)
        return values if self._is_full else values.index_select(0, self.places)

    def split(self, states: Tensor, heads: int) -> Tensor:
        """Splits states of layers, ``[n, 1, D]``, into heads, ``[B, H, M, D / H]``."""
        return self.pad(states.squeeze(1)).unflatten(2, (heads, -1)).transpose(1, 2)  # B x M x D -> B x H x M x D/H

    def join(self, states: Tensor) -> Tensor:
        """Joins heads ``[B, H, M, D / H]`` to ``[n, 1, D]``."""
        return self.pack(states.transpose(1, 2).flatten(2)).unsqueeze(1)  # B x M x D -> n x 1 x D


@dataclass(frozen=True)
class Memory:
    """The structure of B sentences that cross-attention needs beside their states."""

    structure: Any  # padding ``[B, S]`` bool, or what else their encoder leaves
    order: Optional[Tensor] = None  # see :func:`row_order`


@dataclass(frozen=True)
class ProjectedMemory:
    """Keys and values for one layer; no row is padding alone."""

    keys: Tensor  # ``[B, H, S, D / H]``
    values: Tensor  # ``[B, H, S, D / H]``
    padding: Tensor  # ``[B, S]`` bool
    bias: Optional[Tensor] = None  # ``[B, H, S]``, added to the logits

    @functools.cached_property
    def read_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, values, and what attention adds to its logits: ``[B, 1, 1, S]``, or ``[B, H, 1, S]`` with the bias.

        Without gradients there are at least :data:`FAST_ROW` positions.
        """
        bias = self.keys.new_zeros(len(self.keys), 1, self.keys.size(2)) if self.bias is None else self.bias
        mask = bias.masked_fill(self.padding[:, None], -torch.inf).unsqueeze(2)
        missing = FAST_ROW - self.keys.size(2)
        if missing <= 0 or torch.is_grad_enabled():
            return self.keys, self.values, mask
        keys, values = (functional.pad(part, (0, 0, 0, missing)) for part in (self.keys, self.values))
        return keys, values, functional.pad(mask, (0, missing), value=-torch.inf)

    def select(self, rows: Tensor) -> ProjectedMemory:
        """The sentences ``rows``, ``[B']`` int64; they may be permuted, repeated and left out."""
        return ProjectedMemory.of(
            {name: None if part is None else part.index_select(0, rows) for name, part in self.state().items()}
        )

    def state(self) -> dict[str, Optional[Tensor]]:
        """The parts by their names in the state of a decoding, which are fairseq's own except that of the bias."""
        return dict(zip(_HELD, (self.keys, self.values, self.padding, self.bias)))

    @classmethod
    def of(cls, state: dict[str, Optional[Tensor]]) -> ProjectedMemory:
        """The memory from its :meth:`state`."""
        return cls(*(state[name] for name in _HELD))


_HELD = ("prev_key", "prev_value", "prev_key_padding_mask", "prev_bias")


class SharedMemoryAttention(MultiheadAttention):
    """fairseq's decoder cross-attention, whose keys and values are projected once a sentence and layer.

    When decoding from left to right, fairseq keeps them between steps and its own attention does the rest. Decoders
    that read the memory many times as a whole call :meth:`project` first and pass its result as the key.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.phrase_bias: Optional[PhraseBias] = None  # attentions to phrases may set it

    def read(self, states: Tensor, structure: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values ``[B, H, S, D / H]`` and padding ``[B, S]`` bool, from what :meth:`MemoryType.view` gives.

        States are ``[S, B, encoder's D]``. Here the structure is their padding, as that of any encoder of fairseq.
        """
        keys, values = (split_heads(project(states), self.num_heads) for project in (self.k_proj, self.v_proj))
        return keys, values, structure

    def is_phrase(self, structure: Any) -> Tensor:
        """``[B, S]`` bool, the positions that :attr:`phrase_bias` is for."""
        raise NotImplementedError

    def project(self, states: Tensor, memory: Memory) -> ProjectedMemory:
        """Projects B sentences for this layer."""
        keys, values, padding = self.read(states, memory.structure)
        if not self.training:
            # Every step reads all keys and values, and does so faster where the positions of a head lie side by side.
            keys, values = keys.contiguous(), values.contiguous()
        bias = None if self.phrase_bias is None else self.phrase_bias(self.is_phrase(memory.structure)).to(keys.dtype)
        # A sentence that is padding alone is attended to, so that its rows stay finite.
        return ProjectedMemory(keys, values, padding & ~padding.all(dim=1, keepdim=True), bias)

    def held(self, states: Tensor, memory: Memory, incremental_state: dict) -> ProjectedMemory:
        """The memory of all rows, projected in the first step of a decoding; training has an empty state."""
        if "prev_key" not in self._get_input_buffer(incremental_state):
            projected = self.project(states, memory)
            # fairseq would set the number of beams, but looks for a method that its models do not have.
            sentences, self.beam_size = read_together(memory.order, len(projected.keys))
            projected = projected if sentences is None else projected.select(sentences)
            self._set_input_buffer(incremental_state, projected.state())
        return ProjectedMemory.of(self._get_input_buffer(incremental_state))

    def forward(
        self,
        query: Tensor,
        key: Union[Tensor, ProjectedMemory],
        value: Any,
        key_padding_mask: Union[Memory, PackedRows, None] = None,
        incremental_state: Optional[dict] = None,
        need_weights: bool = True,
        need_head_weights: bool = False,
        **unread: Any,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends from target positions to sentences: ``[T, R, D]`` and, if asked for, weights over S positions.

        Weights are ``[R, T, S]``, the mean of all heads, or those of each head, ``[H, R, T, S]``.

        Args:
            query: ``[T, R, D]``, R = B in training, B * K or fewer in generation; or ``[n, 1, D]``, packed
            key: the states that :meth:`read` takes, read once a decoding; or the result of :meth:`project`, for which
                there are only weights of each head. ``value`` is not read
            key_padding_mask: the memory; or, for packed queries, where they belong: then there are weights of a single
                sentence alone. fairseq's decoder layer passes it on unread
        """
        if isinstance(key, ProjectedMemory):
            held, nodes, need_weights = key, key_padding_mask, False
        else:
            held = self.held(key, key_padding_mask, {} if incremental_state is None else incremental_state)
            nodes = None
        if not (need_weights or need_head_weights):
            return self._without_weights(query, held, nodes), None
        attended, weights = self.weigh(query, held, drop=True)
        return attended, weights if need_head_weights else weights.mean(0)

    def weigh(self, query: Tensor, memory: ProjectedMemory, drop: bool = False) -> tuple[Tensor, Tensor]:
        """Attends from ``[T, R, D]``: ``[T, R, D]``, and the weights of all heads, ``[H, R, T, S]``, never dropped."""
        keys, values, mask = memory.read_parts
        queries = self._split(query, len(keys))
        logits = queries @ keys.mT * self.scaling + mask.to(queries.dtype)  # B x H x K * T x S
        weights = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(3)
        used = (self.dropout_module(weights) if drop else weights).to(values.dtype)
        weights = weights[..., : memory.keys.size(2)].unflatten(2, (-1, len(query)))  # B x H x K x T x S
        return self._join(used @ values, query), weights.transpose(0, 1).flatten(1, 2)

    def _without_weights(self, query: Tensor, memory: ProjectedMemory, nodes: Optional[PackedRows] = None) -> Tensor:
        """Attends without keeping the weights, T times S a head; all beams of a sentence read its memory at once."""
        if nodes is not None:
            queries = nodes.split(self.q_proj(query), self.num_heads)  # n x 1 x D -> B x H x M x D/H
        else:
            queries = self._split(query, len(memory.keys))
        keys, values, mask = memory.read_parts
        dropout = dropout_of_weights(self.dropout_module)
        attended = functional.scaled_dot_product_attention(queries, keys, values, mask.to(queries.dtype), dropout)
        if nodes is not None:
            return self.out_proj(nodes.join(attended))  # B x H x M x D/H -> n x 1 x D
        return self._join(attended, query)

    def _split(self, query: Tensor, sentences: int) -> Tensor:
        """Projects queries ``[T, R, D]``, and puts all beams of a sentence together: ``[B, H, K * T, D / H]``."""
        queries = self.q_proj(query).view(len(query), sentences, -1, self.num_heads, self.head_dim)
        return queries.permute(1, 3, 2, 0, 4).flatten(2, 3)  # T x B x K x H x D/H -> B x H x K * T x D/H

    def _join(self, attended: Tensor, query: Tensor) -> Tensor:
        """Projects what all beams of a sentence attended to, ``[B, H, K * T, D / H]``, like their ``query``."""
        attended = attended.unflatten(2, (-1, len(query))).permute(3, 0, 2, 1, 4)  # -> T x B x K x H x D/H
        return self.out_proj(attended.reshape(query.shape))  # -> T x R x D


@dataclass(frozen=True)
class MemoryType:
    """How decoders read what an encoder leaves for them. Every encoder of the registry has one."""

    # builds a cross-attention from a model's configuration and keywords of :class:`fairseq.modules.MultiheadAttention`
    attention: Callable[..., SharedMemoryAttention]
    parts: Callable[[dict[str, list]], tuple[Tensor, Any]]  # takes states and structure out of the encoder's output
    # makes entries of the decoder's dict from attention weights ``[R, T, S]``, or None, and the encoder's output.
    # ``attn`` are weights ``[R, T, N]`` of source tokens, so that alignments and ``--replace-unk`` point to words
    describe: Callable[[Optional[Tensor], dict[str, list]], dict[str, list]]

    def view(self, encoder_out: dict[str, list]) -> tuple[Tensor, Memory]:
        """Takes the encoder's output apart for :class:`SharedMemoryAttention`."""
        states, structure = self.parts(encoder_out)
        return states, Memory(structure, row_order(encoder_out))


def _padded_states(encoder_out: dict[str, list]) -> tuple[Tensor, Tensor]:
    [states], padding = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
    # Encoders may leave out a mask that masks nothing.
    return states, padding[0] if padding else states.new_zeros(states.shape[1::-1], dtype=torch.bool)


def _weights_of_source(attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
    """Leaves out what is before the source, such as a start, if the encoder's output has the tokens of the source."""
    tokens = encoder_out.get("src_tokens")
    if attention is not None and tokens:
        attention = attention[..., attention.size(-1) - tokens[0].size(1) :]
    return {"attn": [attention]}


STATES = MemoryType(
    attention=lambda cfg, **kwargs: SharedMemoryAttention(**kwargs), parts=_padded_states, describe=_weights_of_source
)
"""States and their padding: the memory of fairseq's own encoders, and of those that put more before the source."""

SHARED_STATES = replace(STATES)
"""The same of encoders that move the :func:`row_order` with the beam: decoders keep them once a sentence."""


def cross_attention_options(cfg) -> dict[str, Any]:
    """Keywords of a decoder's cross-attention, from a transformer's configuration."""
    return {
        "embed_dim": cfg.decoder.embed_dim,
        "num_heads": cfg.decoder.attention_heads,
        "kdim": cfg.encoder.embed_dim,
        "vdim": cfg.encoder.embed_dim,
        "encoder_decoder_attention": True,
        **attention_options(cfg),
    }


class MemoryDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder over the memory of any encoder; over plain states it is fairseq's own.

    Layers pass the padding mask to their cross-attention unread, so the structure of the memory travels in its place.
    """

    trains_alignments = False
    """Whether a loss reads attention weights; otherwise training does not compute them, and fuses all kernels."""

    def __init__(self, *args: Any, memory_type: MemoryType = STATES, **kwargs: Any):
        # The constructor of fairseq builds the layers.
        self.memory_type = memory_type
        super().__init__(*args, **kwargs)
        self.pointer: Optional[nn.Module] = None  # a SourcePointer of a model that copies

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        """fairseq's layer, with the cross-attention of the memory and fairseq's weights."""
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        if not no_encoder_attn and self.memory_type is not STATES:
            layer.encoder_attn = built_in_place(
                layer.encoder_attn, lambda: self.memory_type.attention(cfg, **cross_attention_options(cfg)), cfg
            )
        return layer

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Optional[dict[str, list]], *args: Any, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """fairseq's features ``[R, T, D]``, and a dict with the entries of :attr:`MemoryType.describe`."""
        if self.training and not self.trains_alignments and kwargs.get("alignment_layer") is None:
            kwargs["alignment_layer"] = self.num_layers  # fairseq's default, the last layer, computes it; this does not
        if encoder_out is None:
            return super().extract_features(prev_output_tokens, encoder_out, *args, **kwargs)
        viewed = encoder_out
        if self.memory_type is not STATES:
            states, memory = self.memory_type.view(encoder_out)
            viewed = {**encoder_out, "encoder_out": [states], "encoder_padding_mask": [memory]}
        features, extra = super().extract_features(prev_output_tokens, viewed, *args, **kwargs)
        [attention] = extra["attn"]
        return features, {**extra, **self.memory_type.describe(attention, encoder_out)}

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[dict[str, list]] = None,
        incremental_state: Optional[dict] = None,
        features_only: bool = False,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """fairseq's logits ``[R, T, V]``; those of a model that copies are log-probabilities."""
        arguments = prev_output_tokens, encoder_out, incremental_state
        if self.pointer is None or features_only:
            return super().forward(*arguments, features_only, **kwargs)
        features, extra = super().forward(*arguments, features_only=True, **kwargs)
        read = prev_output_tokens if incremental_state is None else prev_output_tokens[:, -1:]
        embedded = self.embed_scale * self.embed_tokens(read)
        logits = self.output_layer(features)
        return self.pointer(logits, features, prev_output_tokens, embedded, encoder_out, incremental_state), extra
