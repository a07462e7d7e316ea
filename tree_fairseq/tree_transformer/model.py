"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020): its attention, encoder and model."""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.models import register_model
from fairseq.models.transformer import Embedding, TransformerEncoderBase
from fairseq.models.transformer.transformer_legacy import transformer_vaswani_wmt_en_de_big
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.distance_bias import DistanceBias, DistanceBiasConfig, bias_tables, give_rows
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.extended_transformer import ExtendedTransformer, register_architectures
from tree_fairseq.nn.modalities import CONSTITUENCY
from tree_fairseq.nn.phrase_bias import PhraseBias, PhraseBiasConfig
from tree_fairseq.nn.shared_memory import MemoryType, SharedMemoryAttention, with_rows_moved
from tree_fairseq.nn.stock_weights import built_aside, built_in_place
from tree_fairseq.nn.tensors import attention_options, dropout_of_weights, split_heads
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import option
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import AttentionMask, TreeStructure

INITIAL_ANCESTOR_BIAS = -3.0
"""The initial bias of the attention from leaves to the nodes above them: at first, leaves attend mostly to leaves."""


class TreeAttention(MultiheadAttention):
    """The part of encoder self-attention and decoder cross-attention that accumulates values."""

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        self.accumulation = HierarchicalAccumulation(embed_dim, num_heads, config, leaf_dim=self.kdim)

    def accumulated_values(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Projects states ``[S, B, D]`` to values, and accumulates those of nodes (eq. 16): ``[B, H, S, D / H]``."""
        values = split_heads(self.v_proj(states), self.num_heads)  # S x B x D -> B x H x S x D/H
        return self.accumulation(states[: structure.num_leaves], values, structure)


class TreeSelfAttention(TreeAttention):
    """Encoder self-attention of the Tree-Transformer (eqs. 12 to 18) with subtree masking (eq. 11).

    Two options are not in the paper: attention from leaves to leaves may have a bias by distance, and leaves may attend
    to the nodes above them, with a learned bias a head.
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, config, **kwargs)
        self.distance_bias = DistanceBias(num_heads, config) if bias_tables(config) else None
        self.ancestor_bias = None
        if config.leaves_to_ancestors:
            self.ancestor_bias = nn.Parameter(torch.full((num_heads,), INITIAL_ANCESTOR_BIAS))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: TreeStructure, **unread: Any
    ) -> tuple[Tensor, None]:
        """Attends within a batch of trees from ``query``, ``[S, B, D]``, leaves then nodes; weights are not returned.

        fairseq's encoder layer passes ``key_padding_mask`` on unread, so it is the trees; they have the masks.
        """
        structure = key_padding_mask
        queries = split_heads(self.q_proj(query), self.num_heads)  # S x B x D -> B x H x S x D/H
        keys = split_heads(self.k_proj(query), self.num_heads)
        values = self.accumulated_values(query, structure)

        # Leaves, then nodes, each with the mask of their kind; or all positions at once without subtree masks. The
        # gradient of a split is one copy; that of each slice is as large as the whole.
        attended = []
        runs = queries.split([mask.num_queries for mask in structure.masks], dim=2)
        for run, mask in zip(runs, structure.masks):
            bias = self.bias_of_leaves(mask) if mask is structure.masks[0] else mask.bias
            seen = keys[:, :, : mask.num_keys], values[:, :, : mask.num_keys]  # B x H x S' x D/H
            attended.append(self.attend(run, *seen, bias).permute(2, 0, 1, 3))  # B x H x T x D/H -> T x B x H x D/H
        return self.out_proj(torch.cat(attended).flatten(2)), None  # S x B x H x D/H -> S x B x D

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Scaled dot-product attention ``[B, H, T, D / H]`` with dropout of weights and an additive mask."""
        dropout = dropout_of_weights(self.dropout_module)
        return functional.scaled_dot_product_attention(queries, keys, values, bias.to(queries.dtype), dropout)

    def bias_of_leaves(self, mask: AttentionMask) -> Tensor:
        """The mask of the leaves with the learned biases that there are: ``[B, H or 1, N, S or N]``."""
        bias = mask.bias
        if self.distance_bias is not None:
            distances = self.distance_bias()  # B x H x N x N
            # Nodes come after the leaves: as keys of leaves, and as queries where subtrees are not masked.
            more_keys, more_queries = mask.num_keys - distances.size(3), mask.num_queries - distances.size(2)
            bias = bias + functional.pad(distances, (0, more_keys, 0, more_queries))
        if self.ancestor_bias is not None:
            num_nodes = mask.num_keys - mask.num_queries
            of_nodes = self.ancestor_bias[:, None, None].expand(-1, 1, num_nodes)  # H x 1 x M
            bias = bias + functional.pad(of_nodes, (mask.num_queries, 0)).to(bias)  # B x H x N x S
        return bias

    @torch.no_grad()
    def weights_of_nodes(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Attention weights of the nodes over leaves and nodes (eqs. 14 and 18), for pictures: ``[B, H, M, S]``.

        ``states`` ``[S, B, D]`` are those that :meth:`forward` gets. Fused attention, which trains, does not have them.
        """
        queries = split_heads(self.q_proj(states), self.num_heads)[:, :, structure.num_leaves :]  # B x H x M x D/H
        keys = split_heads(self.k_proj(states), self.num_heads)  # B x H x S x D/H
        logits = queries @ keys.mT / self.head_dim**0.5
        return (logits + structure.masks[-1].bias.to(logits)).softmax(-1)


class TreeCrossAttention(SharedMemoryAttention, TreeAttention):
    """Decoder cross-attention over leaves and nodes (eqs. 21 to 24), accumulated once a sentence and layer.

    Without ``attend_nodes``, an ablation, the memory has leaves only.
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, attend_nodes: bool, **kwargs):
        super().__init__(embed_dim, num_heads, config, **kwargs)
        self.attend_nodes = attend_nodes
        if not attend_nodes:
            self.accumulation = None
        elif not config.no_phrase_bias:
            self.phrase_bias = PhraseBias(num_heads)

    def read(self, states: Tensor, structure: TreeStructure) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values of leaves and nodes ``[S, B, encoder's D]``; see :meth:`SharedMemoryAttention.read`."""
        if not self.attend_nodes:
            return super().read(states[: structure.num_leaves], structure.padding[:, : structure.num_leaves])
        values = self.accumulated_values(states, structure)
        return split_heads(self.k_proj(states), self.num_heads), values, structure.padding  # B x H x S x D/H

    def is_phrase(self, structure: TreeStructure) -> Tensor:
        """The nodes."""
        place = torch.arange(structure.padding.size(1), device=structure.padding.device)
        return (place >= structure.num_leaves).expand_as(structure.padding)


def _weights_of_leaves(attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
    num_leaves = encoder_out["tree_structure"][0].num_leaves
    return {"attn": [None if attention is None else attention[..., :num_leaves]]}


TREE_MEMORY = MemoryType(
    attention=lambda cfg, **kwargs: TreeCrossAttention(
        config=cfg, attend_nodes=not cfg.no_node_cross_attention, **kwargs
    ),
    parts=lambda encoder_out: (encoder_out["encoder_out"][0], encoder_out["tree_structure"][0]),
    describe=_weights_of_leaves,
)
"""Leaves and nodes of the Tree-Transformer's encoder."""


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeModelConfig(AccumulationConfig, PhraseBiasConfig, DistanceBiasConfig):
    """Flags that the Tree-Transformer has beside those of fairseq's transformer."""

    no_node_cross_attention: bool = option(False, "ablation: the decoder attends to leaves alone")


class TreeTransformerEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder over N leaves and M nodes, which share all weights.

    Leaves are embedded as in fairseq. A node is embedded by its label, from a table of labels and without a position:
    its place in the tree enters through accumulation and masking.
    """

    attention = TreeSelfAttention

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        width = embed_tokens.embedding_dim
        self.embed_labels = built_aside(lambda: Embedding(cfg.num_labels, width, self.padding_idx), cfg)

    def build_encoder_layer(self, cfg):
        """fairseq's layer with tree attention instead of its self-attention, and fairseq's weights."""
        layer = super().build_encoder_layer(cfg)
        sizes, options = (cfg.encoder.embed_dim, cfg.encoder.attention_heads), attention_options(cfg)
        layer.self_attn = built_in_place(
            layer.self_attn, lambda: self.attention(*sizes, cfg, self_attention=True, **options), cfg
        )
        return layer

    def forward_labels(self, label: Tensor) -> Tensor:
        """Embeds node labels ``[B, M]`` as ``[B, M, D]``, scaled and dropped out like leaves."""
        nodes = self.embed_scale * self.embed_labels(label)
        if self.layernorm_embedding is not None:
            nodes = self.layernorm_embedding(nodes)
        return self.dropout_module(nodes)

    def build_structure(self, batch: TreeBatch) -> TreeStructure:
        """Derives the tensors that all layers share from the trees."""
        return TreeStructure.build(
            batch,
            count_leaf=self.cfg.accumulation_denominator == "with-leaf",
            mask_subtrees=not self.cfg.no_subtree_mask,
            dtype=torch.promote_types(self.embed_labels.weight.dtype, torch.float32),
            leaves_to_ancestors=self.cfg.leaves_to_ancestors,
        )

    def forward_layers(
        self, embedded: Tensor, padding: Tensor, structure, return_all_hiddens: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """States ``[S, B, D]`` of leaves and nodes ``[B, S, D]`` after all layers, and the states between, if kept.

        The layers' attention gets ``structure`` instead of a padding mask.
        """
        # Contiguous, because the projections of the first layer would make a copy each and keep it.
        x = embedded.masked_fill(padding.unsqueeze(-1), 0).transpose(0, 1).contiguous()  # S x B x D
        states = [x] if return_all_hiddens else []
        for layer in self.layers:
            x = layer(x, encoder_padding_mask=structure)
            if return_all_hiddens:
                states.append(x)
        return (x if self.layer_norm is None else self.layer_norm(x)), states

    def forward(
        self, src_tokens: Tensor, src_lengths=None, return_all_hiddens=False, token_embeddings=None, source_spans=None
    ) -> dict[str, list]:
        """Encodes sentences ``[B, N]``, padded on either side, with their trees (:mod:`tree_fairseq.nn.tree_batch`).

        In fairseq's dict of lists, ``encoder_out`` is ``[S, B, D]``, leaves first. More entries are the trees,
        ``tree_structure``, and ``order``, the sentence of each decoder row; it is empty if rows are sentences.
        """
        batch = TreeBatch.from_net_input(source_spans, src_tokens, self.padding_idx)
        structure = self.build_structure(batch)
        give_rows(self.layers, self.cfg, src_tokens, batch)
        leaves, embedding = self.forward_embedding(src_tokens, token_embeddings)
        embedded = torch.cat([leaves, self.forward_labels(batch.label)], dim=1)
        x, states = self.forward_layers(embedded, structure.padding, structure, return_all_hiddens)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [structure.padding],
            "encoder_embedding": [embedding],
            "encoder_states": states,
            "src_tokens": [],
            "src_lengths": [batch.is_leaf.sum(1, dtype=torch.int32, keepdim=True)],
            "tree_structure": [structure],
            "order": [],
        }

    reorder_encoder_out = staticmethod(with_rows_moved)


ENCODER = register_encoder(
    EncoderType(
        "tree",
        reads=(CONSTITUENCY,),
        build=TreeTransformerEncoder,
        memory=TREE_MEMORY,
        config=TreeModelConfig,
        fill_in=lambda cfg, side: setattr(cfg, "num_labels", len(side.labels)),
        help="that of the Tree-Transformer over the source's parse",
    )
)


@register_model("tree_transformer")
class TreeTransformerModel(ExtendedTransformer):
    """fairseq's transformer whose encoder and cross-attention read constituency trees."""

    flags = TreeModelConfig
    default_encoder = ENCODER.name
    own_parts = (*ExtendedTransformer.own_parts, ".embed_labels.", ".accumulation.")


# The sizes of the paper: of its models for IWSLT and WMT (fairseq's own size), and its tiny model.
register_architectures(
    "tree_transformer",
    TreeTransformerModel.set_defaults,
    {"": None, "_iwslt_de_en": (6, 512, 1024, 4), "_wmt_en_de": None, "_tiny": (2, 64, 128, 4)},
)
# The paper's big model: 6 + 6 layers, width 1024, feed-forward 4096, 16 heads.
register_architectures("tree_transformer", transformer_vaswani_wmt_en_de_big, {"_wmt_en_de_big": None})
