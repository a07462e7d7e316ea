"""A learned bias on the self-attention of encoders, by the distance between two tokens.

Each layer has a table a head for distances along the sentence, for those along the branches of its tree, or both. More
tables are for the label and the height of the lowest constituent that has both tokens. All start at zero, so that the
model starts as it would be without them.

Relative positions help by themselves (Shaw et al. 2018, Raffel et al. 2020), so whoever finds that distances in trees
help compares with distances along the sentence: ``--arch transformer_distance_bias`` is fairseq's transformer with the
bias and nothing else.
"""

import logging
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import MissingTreesError
from tree_fairseq.nn.distances import BiasRows, leaf_relations, linear_distances, symbol_distances
from tree_fairseq.nn.shared_memory import dropout_of_weights, join_heads, split_heads
from tree_fairseq.nn.stock_weights import built_in_place
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import flag_of, option

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class DistanceBiasConfig(FairseqDataclass):
    """Options of the bias; each is a flag of the models that offer it."""

    distance_bias: ChoiceEnum(["none", "linear", "tree", "both"]) = option(
        "none",
        "a learned bias, one a head and layer, on the encoder's self-attention by the distance between two tokens: "
        "'linear' along the sentence, 'tree' the edges of the path between them in the source's tree, or 'both'",
    )
    max_distance: int = option(16, "greater distances share the bias of this one, and tokens that no path joins")
    ancestor_bias: ChoiceEnum(["none", "label", "height", "both"]) = option(
        "none",
        "another such bias, by the lowest constituent that has both tokens: its 'label', its 'height' (at most "
        "--max-distance), or 'both'",
    )


_TABLES = {
    "distance_bias": {"none": (), "linear": ("linear",), "tree": ("tree",), "both": ("linear", "tree")},
    "ancestor_bias": {"none": (), "label": ("label",), "height": ("height",), "both": ("label", "height")},
}


def bias_tables(config: Any) -> tuple[str, ...]:
    """The tables that the options ask for, by the names of :class:`BiasRows`; none for configurations without them."""
    chosen = {name: str(getattr(config, name, None) or "none") for name in _TABLES}
    return tuple(table for name, value in chosen.items() for table in _TABLES[name][value])


def flags_of_tables(config: Any) -> str:
    """The options that ask for the tables, for messages: ``--distance-bias tree``."""
    given = {name: str(getattr(config, name, "none")) for name in _TABLES}
    return " ".join(f"{flag_of(name)} {value}" for name, value in given.items() if value != "none")


def tree_tables(config: Any) -> tuple[str, ...]:
    """The tables that are about trees."""
    return tuple(table for table in bias_tables(config) if table != "linear")


class DistanceBias(nn.Module):
    """The tables of one self-attention, ``[rows, H]`` each.

    :func:`give_rows` sets ``given``, the rows of a batch. A configuration with a table of labels has ``num_labels``.
    """

    def __init__(self, num_heads: int, config: DistanceBiasConfig):
        super().__init__()
        self.tables, limit = bias_tables(config), config.max_distance
        for table in self.tables:
            rows = config.num_labels if table == "label" else limit + 1
            self.register_parameter(table, nn.Parameter(torch.zeros(rows, num_heads)))
        self.given = BiasRows()

    @classmethod
    def of(cls, num_heads: int, config: Any) -> Optional["DistanceBias"]:
        """The bias that a configuration asks for, if it does."""
        return cls(num_heads, config) if bias_tables(config) else None

    def forward(self) -> Tensor:
        """Biases ``[B, H, N, N]`` of the given rows, ``[1, H, N, N]`` without trees; in float32 or better."""
        parts = [_looked_up(getattr(self.given, table), getattr(self, table)) for table in self.tables]
        return sum(parts[1:], start=parts[0])

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds tables of zeros to the checkpoint of a model without them, which computes the same."""
        tables = {f"{name}.{own}": weight for own, weight in self.state_dict().items()}
        missing = {own: torch.zeros_like(weight) for own, weight in tables.items() if own not in state_dict}
        if missing:
            state_dict.update(missing)
            logger.info("biases that the checkpoint does not have begin at zero: %s", ", ".join(missing))


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
    """fairseq's transformer encoder, which has a bias by distance if the options ask for one."""

    def build_encoder_layer(self, cfg):
        """fairseq's layer, with the attention that has the bias, and fairseq's weights."""
        layer = super().build_encoder_layer(cfg)
        if bias_tables(cfg):
            options = {
                "dropout": cfg.attention_dropout,
                "q_noise": cfg.quant_noise.pq,
                "qn_block_size": cfg.quant_noise.pq_block_size,
            }
            stock = layer.self_attn
            layer.self_attn = built_in_place(
                stock, lambda: DistanceAttention(stock.embed_dim, stock.num_heads, cfg, **options)
            )
        return layer

    def forward(
        self,
        src_tokens: Tensor,
        *args: Any,
        source_spans: Optional[dict[str, Any]] = None,
        source_symbol_tree: Optional[dict[str, Any]] = None,
        tree_rows: Optional[dict[str, Tensor]] = None,
        **kwargs: Any,
    ) -> dict[str, list]:
        """fairseq's forward pass, with the constituency trees or the symbol trees of the source for the bias.

        ``tree_rows``, as :func:`tree_fairseq.nn.distances.leaf_relations` returns them, replace the trees.
        """
        if tree_tables(self.cfg) and tree_rows is None:
            tree_rows = self._measured(src_tokens, source_spans, source_symbol_tree)
        give_rows(self.layers, self.cfg, src_tokens.size(1), tree_rows or {}, src_tokens.device)
        return super().forward(src_tokens, *args, **kwargs)

    def _measured(self, src_tokens: Tensor, spans: Optional[dict], symbols: Optional[dict]) -> dict[str, Tensor]:
        limit, padding = self.cfg.max_distance, self.padding_idx
        if spans is not None:
            batch = TreeBatch.from_net_input(spans, src_tokens, padding)
            return leaf_relations(tree_tables(self.cfg), batch, limit, padding)
        if symbols is not None:
            return {"tree": symbol_distances(symbols["parents"], limit)}
        raise MissingTreesError(
            f"{flags_of_tables(self.cfg)} reads trees, but the batch has none; use a task with trees"
        )


def give_rows(layers: nn.ModuleList, cfg: Any, num_tokens: int, trees: dict[str, Tensor], device: torch.device) -> None:
    """Gives the layers of an encoder the rows of a batch: those of ``trees`` by the table, and linear distances."""
    tables = bias_tables(cfg)
    if not tables:
        return
    linear = None
    if "linear" in tables:
        linear = linear_distances(num_tokens, cfg.max_distance, device)
    rows = BiasRows(linear, **trees)
    # Iterating over layers drops some of them at random under --encoder-layerdrop, others than those that then run.
    for layer in layers.children():
        layer.self_attn.distance_bias.given = rows
