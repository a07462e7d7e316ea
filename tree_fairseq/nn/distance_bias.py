"""A learned bias on the self-attention of encoders, by the distance between two tokens.

Each layer has a table a head for distances along the sentence. Those of the Tree-Transformer may have one for distances
along the branches of its tree. All start at zero, so that the model starts as it would be without them.

Relative positions help by themselves (Shaw et al. 2018, Raffel et al. 2020), so whoever finds that distances in trees
help compares with distances along the sentence: ``--arch transformer_distance_bias`` is fairseq's transformer with the
bias and nothing else.

The distance in a tree is the number of edges on the path between two leaves. Leaf i has a_i ancestors, and i and j have
c_ij ancestors in common. The distance is a_i - c_ij + a_j - c_ij + 2, and 0 from a leaf to itself.

The counts are products of matrices of zeros and ones, so no shape depends on a value.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.stock_weights import add_initial_weights, built_in_place
from tree_fairseq.nn.tensors import attention_options, dropout_of_weights, join_heads, split_heads, without_autocast
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import option

MAX_DISTANCE = 16  # greater distances share the bias of this one, and so do tokens that no path joins


def linear_distances(num_tokens: int, limit: int, device: torch.device) -> Tensor:
    """Distances to tokens from N - 1 places on the left to N - 1 on the right, at most ``limit``: ``[2 N - 1]``."""
    steps = torch.arange(1 - num_tokens, num_tokens, dtype=torch.int32, device=device)
    return steps.abs().clamp(max=limit)


def leaf_distances(covers: Tensor, limit: int) -> Tensor:
    """Counts the edges between leaves, ``[B, N, N]`` int32: at most ``limit``, and ``limit`` where no tree has both.

    ``covers`` are ``[B, M, N]`` bool: node m covers leaf n.
    """
    with without_autocast(covers):
        # Single precision is exact for counts of nodes.
        below = covers.float()
        common = below.mT @ below
    own = common.diagonal(dim1=1, dim2=2)
    path = own.unsqueeze(2) + own.unsqueeze(1) - 2 * common + 2
    itself = torch.eye(path.size(1), dtype=torch.bool, device=path.device)
    return path.clamp(max=limit).masked_fill(common == 0, limit).masked_fill(itself, 0).int()


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class DistanceBiasConfig(FairseqDataclass):
    """Options of the bias; each is a flag of the models that offer it."""

    distance_bias: ChoiceEnum(["none", "linear", "tree", "both"]) = option(
        "none",
        "a learned bias, one a head and layer, on the encoder's self-attention by the distance between two tokens: "
        "'linear' along the sentence; for a Tree-Transformer also 'tree', the edges of the path between them in the "
        "source's tree, or 'both'",
        published="none",
    )


_TABLES = {"none": (), "linear": ("linear",), "tree": ("tree",), "both": ("linear", "tree")}


def bias_tables(config: Any) -> tuple[str, ...]:
    """The names of the tables that the options ask for; none for configurations without these options."""
    return _TABLES[str(getattr(config, "distance_bias", None) or "none")]


def require_linear(config: Any, reader: str) -> None:
    """Raises InputError for a table about trees, which only the encoders of the Tree-Transformer have."""
    if "tree" in bias_tables(config):
        problem = f"--distance-bias {config.distance_bias} measures paths in trees, which {reader} does not read"
        raise InputError(problem, hint="Use --distance-bias linear, or a Tree-Transformer.")


class DistanceBias(nn.Module):
    """The tables of one self-attention, ``[MAX_DISTANCE + 1, H]`` each.

    :func:`give_rows` sets ``given``, the rows of a batch by the names of the tables, for all pairs of tokens: distances
    along the sentence, ``linear`` ``[2 N - 1]`` int32, and in trees, ``tree`` ``[B, N, N]`` int32.
    """

    def __init__(self, num_heads: int, config: DistanceBiasConfig):
        super().__init__()
        self.tables = bias_tables(config)
        for table in self.tables:
            self.register_parameter(table, nn.Parameter(torch.zeros(MAX_DISTANCE + 1, num_heads)))
        self.given: dict[str, Tensor] = {}

    def forward(self) -> Tensor:
        """Biases ``[B, H, N, N]`` of the given rows, ``[1, H, N, N]`` without trees; in float32 or better."""
        parts = [_looked_up(self.given[table], getattr(self, table)) for table in self.tables]
        return sum(parts[1:], start=parts[0])

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds the initial tables, which are zero, to the checkpoint of a model without them; it computes the same."""
        add_initial_weights(state_dict, {f"{name}.{own}": weight for own, weight in self.state_dict().items()})


def _looked_up(rows: Tensor, table: Tensor) -> Tensor:
    # A row occurs thousands of times in a batch, so its gradient is a sum that half precision cannot hold.
    exact = table.to(torch.promote_types(table.dtype, torch.float32))
    found = functional.embedding(rows, exact)
    if rows.dim() == 1:
        return _by_diagonals(found.t()).unsqueeze(0)  # 2 N - 1 x H -> 1 x H x N x N
    return found.permute(0, 3, 1, 2)  # B x N x N x H -> B x H x N x N


def _by_diagonals(diagonals: Tensor) -> Tensor:
    """``[H, N, N]`` with the given values ``[H, 2 N - 1]`` on its diagonals, the lower left corner first."""
    num_heads, count = diagonals.shape
    size = (count + 1) // 2
    # A row of 2 N values is read as one of 2 N - 1, so that each starts one value before the row above.
    rows = functional.pad(diagonals, (0, 1)).repeat(1, size)
    return rows.as_strided((num_heads, size, size), (rows.size(1), count, 1), storage_offset=size - 1)


class DistanceAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with a :class:`DistanceBias`."""

    def __init__(self, embed_dim: int, num_heads: int, config: DistanceBiasConfig, **kwargs: Any):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.distance_bias = DistanceBias(num_heads, config)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, **unread: Any
    ) -> tuple[Tensor, None]:
        """Attends within sentences ``[N, B, D]``, padded where ``key_padding_mask``; weights are never returned."""
        projected = [project(query) for project in (self.q_proj, self.k_proj, self.v_proj)]  # N x B x D
        queries, keys, values = (split_heads(states, self.num_heads) for states in projected)  # B x H x N x D/H
        bias = self.distance_bias().to(queries.dtype)  # B x H x N x N
        if key_padding_mask is not None:
            bias = bias.masked_fill(key_padding_mask[:, None, None].bool(), -torch.inf)
        dropout = dropout_of_weights(self.dropout_module)
        attended = functional.scaled_dot_product_attention(queries, keys, values, bias, dropout)
        return self.out_proj(join_heads(attended)), None  # B x H x N x D/H -> N x B x D


class DistanceBiasedEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder, which has a bias by distance along the sentence if the options ask for one."""

    def build_encoder_layer(self, cfg):
        """fairseq's layer, with the attention that has the bias, and fairseq's weights."""
        layer = super().build_encoder_layer(cfg)
        if bias_tables(cfg):
            stock, options = layer.self_attn, attention_options(cfg)
            layer.self_attn = built_in_place(
                stock, lambda: DistanceAttention(stock.embed_dim, stock.num_heads, cfg, **options)
            )
        return layer

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, list]:
        """fairseq's forward pass, with the distances for the bias."""
        give_rows(self.layers, self.cfg, src_tokens)
        return super().forward(src_tokens, *args, **kwargs)


def give_rows(layers: nn.ModuleList, cfg: Any, src_tokens: Tensor, trees: Optional[TreeBatch] = None) -> None:
    """Gives the layers of an encoder the distances between the tokens ``[B, N]`` of a batch, also in their trees."""
    rows = {}
    if "linear" in bias_tables(cfg):
        rows["linear"] = linear_distances(src_tokens.size(1), MAX_DISTANCE, src_tokens.device)
    if "tree" in bias_tables(cfg):
        rows["tree"] = leaf_distances(trees.covers(), MAX_DISTANCE)
    # Iterating over layers drops some of them at random under --encoder-layerdrop, others than those that then run.
    for layer in layers.children() if rows else ():
        layer.self_attn.distance_bias.given = rows
