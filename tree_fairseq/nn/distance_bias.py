"""A learned bias on the self-attention of encoders, by the distance between two tokens.

Each layer has a table a head for distances along the sentence. Those of the Tree-Transformer may have tables for
distances along the branches of its tree, and for the label and the height of the lowest constituent that has both
tokens. All start at zero, so that the model starts as it would be without them.

Relative positions help by themselves (Shaw et al. 2018, Raffel et al. 2020), so whoever finds that distances in trees
help compares with distances along the sentence: ``--arch transformer_distance_bias`` is fairseq's transformer with the
bias and nothing else.

The distance in a tree is the number of edges on the path between two leaves. Leaf i has a_i ancestors, and i and j have
c_ij ancestors in common. The distance is a_i - c_ij + a_j - c_ij + 2, and 0 from a leaf to itself.

The counts are products of matrices of zeros and ones, so no shape depends on a value.
"""

from collections.abc import Collection
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
from tree_fairseq.support.options import flag_of, option

MAX_DISTANCE = 16
"""Greater distances and heights share the bias of this one, and so do tokens that no path joins."""


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


def lowest_common_ancestors(batch: TreeBatch) -> Tensor:
    """Returns the lowest node above each two leaves, ``[B, N, N]`` int64.

    It is M where no node is above both leaves, and where the two are the same leaf.

    The ancestor of any two leaves is the highest of those of the neighbours between them. So a running minimum finds
    it, over keys that sort nodes by depth.
    """
    covers = batch.covers()
    rows, num_nodes, num_leaves = covers.shape
    if num_nodes == 0:
        return torch.zeros(rows, num_leaves, num_leaves, dtype=torch.int64, device=covers.device)
    number = torch.arange(num_nodes, device=covers.device)
    key = batch.depth * num_nodes + number + 1  # B x M; 0 stands for no node
    both = covers & covers.roll(1, dims=2)
    # The common ancestors of each leaf and the leaf before it. The entry of the first leaf is not read.
    before = (both * key.unsqueeze(2)).amax(1)  # B x N
    column = torch.arange(num_leaves, device=covers.device)
    is_later, greatest = column > column[:, None], torch.iinfo(torch.int64).max
    lowest = before.unsqueeze(1).expand(-1, num_leaves, -1).masked_fill(~is_later, greatest).cummin(2).values
    lowest = torch.minimum(lowest, lowest.mT).masked_fill(column == column[:, None], 0)
    return torch.where(lowest > 0, (lowest - 1) % num_nodes, num_nodes)


def heights(batch: TreeBatch) -> Tensor:
    """Nodes on the longest path from each node down to a leaf, itself included: ``[B, M]`` int64, 0 at padding."""
    covers = batch.covers()
    levels = covers.sum(1).unsqueeze(1) - batch.depth.unsqueeze(2)  # of each leaf below each node: B x M x N
    return levels.masked_fill(~covers, 0).amax(2)


def leaf_relations(tables: Collection[str], batch: TreeBatch, limit: int, label_pad: int) -> dict[str, Tensor]:
    """Rows of the ``tables`` of a bias that are about trees, ``[B, N, N]`` each, as :class:`DistanceBias` reads them.

    Distances and heights are at most ``limit``. Leaves without a common ancestor have the height ``limit``
    and the label ``label_pad``. A leaf and itself have the height 0 and that label.
    """
    found = {"tree": leaf_distances(batch.covers(), limit)} if "tree" in tables else {}
    if "label" not in tables and "height" not in tables:
        return found
    ancestors = lowest_common_ancestors(batch)

    def of_ancestors(values: Tensor, otherwise: int) -> Tensor:
        padded = functional.pad(values, (0, 1), value=otherwise)
        return padded.gather(1, ancestors.flatten(1)).view_as(ancestors)

    if "label" in tables:
        found["label"] = of_ancestors(batch.label, label_pad)
    if "height" in tables:
        itself = torch.eye(ancestors.size(1), dtype=torch.bool, device=ancestors.device)
        found["height"] = of_ancestors(heights(batch).clamp(max=limit), limit).masked_fill(itself, 0)
    return found


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class DistanceBiasConfig(FairseqDataclass):
    """Options of the bias; each is a flag of the models that offer it."""

    distance_bias: ChoiceEnum(["none", "linear", "tree", "both"]) = option(
        "none",
        "a learned bias, one a head and layer, on the encoder's self-attention by the distance between two tokens: "
        "'linear' along the sentence; for a Tree-Transformer also 'tree', the edges of the path between them in the "
        "source's tree, or 'both'",
    )
    ancestor_bias: ChoiceEnum(["none", "label", "height", "both"]) = option(
        "none",
        "for a Tree-Transformer, another such bias, by the lowest constituent that has both tokens: its 'label', its "
        "'height' (at most 16), or 'both'",
    )


_TABLES = {
    "distance_bias": {"none": (), "linear": ("linear",), "tree": ("tree",), "both": ("linear", "tree")},
    "ancestor_bias": {"none": (), "label": ("label",), "height": ("height",), "both": ("label", "height")},
}


def bias_tables(config: Any) -> tuple[str, ...]:
    """The names of the tables that the options ask for; none for configurations without these options."""
    chosen = {name: str(getattr(config, name, None) or "none") for name in _TABLES}
    return tuple(table for name, value in chosen.items() for table in _TABLES[name][value])


def flags_of_tables(config: Any) -> str:
    """The options that ask for the tables, for messages: ``--distance-bias tree``."""
    given = {name: str(getattr(config, name, "none")) for name in _TABLES}
    return " ".join(f"{flag_of(name)} {value}" for name, value in given.items() if value != "none")


def tree_tables(config: Any) -> tuple[str, ...]:
    """The tables that are about trees."""
    return tuple(table for table in bias_tables(config) if table != "linear")


def require_linear(config: Any, reader: str) -> None:
    """Raises InputError for tables about trees, which only the encoders of the Tree-Transformer have."""
    if tree_tables(config):
        problem = f"{flags_of_tables(config)} measures paths in trees, which {reader} does not read"
        raise InputError(problem, hint="Use --distance-bias linear, or a Tree-Transformer.")


class DistanceBias(nn.Module):
    """The tables of one self-attention, ``[rows, H]`` each. A configuration with one of labels has ``num_labels``.

    :func:`give_rows` sets ``given``, the rows of a batch by the names of the tables, for all pairs of tokens: distances
    along the sentence, ``linear`` ``[2 N - 1]`` int32; in trees, ``tree`` ``[B, N, N]`` int32; and the ``label`` and
    the ``height`` of lowest common ancestors, ``[B, N, N]`` int64.
    """

    def __init__(self, num_heads: int, config: DistanceBiasConfig):
        super().__init__()
        self.tables = bias_tables(config)
        for table in self.tables:
            rows = config.num_labels if table == "label" else MAX_DISTANCE + 1
            self.register_parameter(table, nn.Parameter(torch.zeros(rows, num_heads)))
        self.given: dict[str, Tensor] = {}

    @classmethod
    def of(cls, num_heads: int, config: Any) -> Optional["DistanceBias"]:
        """The bias that a configuration asks for, if it does."""
        return cls(num_heads, config) if bias_tables(config) else None

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
    """``[H, N, N]`` with the given values ``[H, 2 N - 1]`` on its diagonals, the lower left corner first.

    A value is looked up once for its diagonal, not for each pair of tokens.
    """
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
        give_rows(self.layers, self.cfg, src_tokens.size(1), {}, src_tokens.device)
        return super().forward(src_tokens, *args, **kwargs)


def give_rows(layers: nn.ModuleList, cfg: Any, num_tokens: int, trees: dict[str, Tensor], device: torch.device) -> None:
    """Gives the layers of an encoder the rows of a batch: those of ``trees`` by the table, and linear distances."""
    tables = bias_tables(cfg)
    if not tables:
        return
    rows = dict(trees)
    if "linear" in tables:
        rows["linear"] = linear_distances(num_tokens, MAX_DISTANCE, device)
    # Iterating over layers drops some of them at random under --encoder-layerdrop, others than those that then run.
    for layer in layers.children():
        layer.self_attn.distance_bias.given = rows
