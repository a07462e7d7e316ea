"""Cross-attention to a memory whose keys and values are projected once, for decoders that read it many times as a whole.

fairseq's own incremental state is made for beams that are permuted within their sentence; here rows are finished and leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.shared_memory import join_heads, split_heads
from tree_fairseq.tree_transformer.attention import TreeCrossAttention, TreeMemory


@dataclass(frozen=True)
class LayerMemory:
    """What one layer reads of B sentences.

    Attributes:
        keys: ``[B, H, S, D / H]``
        values: ``[B, H, S, D / H]``
        padding: ``[B, S]`` bool, true at padding
    """

    keys: Tensor
    values: Tensor
    padding: Tensor


@dataclass(frozen=True)
class Memory:
    """What all layers of a decoder read of B sentences.

    Attributes:
        layers: one entry a layer
    """

    layers: tuple[LayerMemory, ...]

    def __len__(self) -> int:
        return len(self.layers[0].padding)

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows.

        Args:
            rows: ``[B']`` int64; they may be permuted, repeated and left out
        """
        kept = (
            LayerMemory(*(part.index_select(0, rows) for part in (layer.keys, layer.values, layer.padding)))
            for layer in self.layers
        )
        return Memory(tuple(kept))


class _ReadsMemory(MultiheadAttention):
    """Attends to what was projected before."""

    def project(self, encoder_out: dict[str, list]) -> LayerMemory:
        """Projects fairseq's output of an encoder."""
        raise NotImplementedError

    def forward(self, query: Tensor, key: LayerMemory, value: LayerMemory, **kwargs) -> tuple[Tensor, Optional[Tensor]]:
        """Attends from nodes to a memory.

        Args:
            query: ``[N, B, D]``
            key: of :meth:`project`; fairseq's decoder layer hands the output of the encoder on unread
            value: the same; unread
            **kwargs: unread; weights are never returned

        Returns:
            ``[N, B, D]`` and None
        """
        attended = functional.scaled_dot_product_attention(
            split_heads(self.q_proj(query), self.num_heads),
            key.keys,
            key.values,
            attn_mask=~key.padding[:, None, None],
            dropout_p=self.dropout_module.p if self.training else 0.0,
        )
        return self.out_proj(join_heads(attended)), None


class MemoryAttention(_ReadsMemory):
    """Cross-attention to any encoder of fairseq."""

    def project(self, encoder_out: dict[str, list]) -> LayerMemory:
        """Keys and values of its states ``[S, B, encoder's D]``."""
        [states], padding = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
        keys, values = (split_heads(project(states), self.num_heads) for project in (self.k_proj, self.v_proj))
        # Encoders may leave out a mask that masks nothing.
        mask = padding[0] if padding else keys.new_zeros(states.size(1), states.size(0), dtype=bool)
        return LayerMemory(keys, values, mask)


class TreeMemoryAttention(_ReadsMemory, TreeCrossAttention):
    """Cross-attention to leaves and accumulated nodes of the Tree-Transformer's encoder (Nguyen et al. 2020, eqs. 21 to 24)."""

    def project(self, encoder_out: dict[str, list]) -> LayerMemory:
        """Keys and values of leaves and nodes."""
        memory = TreeMemory(encoder_out["tree_structure"][0], order=None)
        projected = self.read(encoder_out["encoder_out"][0], memory)
        return LayerMemory(projected["prev_key"], projected["prev_value"], projected["prev_key_padding_mask"])
