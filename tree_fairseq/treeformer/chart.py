"""The chart of Treeformer (Patel & Flanigan 2023): a vector for every phrase of up to h tokens, computed as in CKY."""

import logging
import math
from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.modules import LayerNorm
from torch import Tensor, nn

from tree_fairseq.errors import InputError
from tree_fairseq.nn.devices import without_autocast
from tree_fairseq.nn.stock_weights import add_initial_weights
from tree_fairseq.support.options import option
from tree_fairseq.treeformer.cells import ChartCells
from tree_fairseq.treeformer.levels import ChartFunction, build_levels

logger = logging.getLogger(__name__)

_NOISE = 0.1  # of the composition that starts as a mean, relative to the random one
_warned: set[int] = set()


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ChartConfig(FairseqDataclass):
    """Options of the chart, which are flags of the models that use it."""

    treeformer_height: int = option(10, "h: number of tokens of the longest phrase in the chart")
    treeformer_level_weights: bool = option(
        False, "a separate composition matrix for each phrase length (not in the paper)"
    )
    treeformer_heads: int = option(
        1, "pooling heads; each weights split points and pools its own slice (the paper has one)"
    )
    treeformer_layer_norm: bool = option(
        False, "normalise the tokens and phrases that the decoder attends to (not in the paper)"
    )
    treeformer_composition_init: ChoiceEnum(["mean", "random"]) = option(
        "mean",
        "how the composition starts and learns: with 'mean' a phrase starts as the mean of its parts, and slow steps "
        "lead away from it, so that attention to phrases is useful from the first update on; 'random' is the paper's",
    )
    treeformer_without_eos: bool = option(False, "no phrase contains EOS; the decoder still attends to EOS itself")


class Chart(nn.Module):
    """Encodes a phrase by composing the two parts at every split point and pooling over split points (eqs. 1 and 2).

    Composition is a matrix of D * 2D, pooling is attention with a learned query of D, and all levels share both.

    A composition that starts as a mean is the mean of the two parts plus 1 / D times a parameter, the deviation. The
    tokens of a phrase go through the matrix up to h - 1 times, so a small change of the matrix changes long phrases
    exponentially. Adam moves each element of a parameter by about the learning rate; with the factor 1 / D, an update
    moves a composed vector by about the learning rate, too.

    Raises:
        InputError: the height is below 2, or the number of heads does not divide the width
    """

    def __init__(self, width: int, config: ChartConfig):
        super().__init__()
        self.height, self.heads = config.treeformer_height, config.treeformer_heads
        if self.height < 2:
            raise InputError(
                f"--treeformer-height {self.height} makes a chart of tokens without phrases",
                hint="Give at least 2; without phrases, use --arch transformer.",
            )
        if self.heads < 1 or width % self.heads:
            raise InputError(
                f"--treeformer-heads {self.heads} does not divide the width {width}",
                hint="Choose a divisor of the width: --encoder-embed-dim, or that of the pretrained encoder.",
            )
        sets = self.height - 1 if config.treeformer_level_weights else 1
        matrix = nn.Parameter(torch.empty(sets, width, 2 * width))
        is_mean = config.treeformer_composition_init == "mean"
        # A random half preserves norms: two children, averaged over nearly equal splits, sum up to a token's length.
        nn.init.normal_(matrix, std=_NOISE * width**0.5 if is_mean else width**-0.5)
        self.register_parameter("deviation", matrix if is_mean else None)
        self.register_parameter("weight", None if is_mean else matrix)
        self.query = nn.Parameter(nn.init.normal_(torch.empty(self.heads, width), std=width**-0.5))
        self.layer_norm = LayerNorm(width) if config.treeformer_layer_norm else None

    def composition(self) -> Tensor:
        """The matrix of each set, ``[G, D, 2 * D]``."""
        return self.weight if self.deviation is None else _from_deviation(self.deviation)

    def _prepared(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states and weight in one dtype, and scorers of children, ``[G, 2, H, D]``, in float32 or better."""
        device, weight = states.device.type, self.composition()
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            states = states.to(torch.get_autocast_dtype(device))
        wide = torch.promote_types(states.dtype, torch.float32)
        sets, width, _ = weight.shape
        with without_autocast(states):
            scorers = (self.query.to(wide) @ weight.to(wide)) / math.sqrt(width)  # G x H x 2 * D
            scorers = scorers.view(sets, self.heads, 2, width).transpose(1, 2).contiguous()
        return states, weight.to(states.dtype), scorers

    def forward(self, states: Tensor, cells: ChartCells) -> Tensor:
        """Encodes tokens and phrases as ``[S, B, D]``, from states ``[N, B, D]`` of tokens; padding is ignored.

        The values of unused cells have no meaning, but they are finite.
        """
        if cells.height < self.height and self.height not in _warned:
            _warned.add(self.height)
            logger.warning(
                f"the longest sentence of a batch has {cells.height} tokens, fewer than the longest phrases of the "
                f"chart, {self.height} (--treeformer-height); its chart is lower. This warning appears once."
            )
        states, weight, scorers = self._prepared(states)
        with without_autocast(states):
            encoded = ChartFunction.apply(states, weight, scorers, cells)
        return encoded if self.layer_norm is None else self.layer_norm(encoded)

    @torch.no_grad()
    def splits(self, states: Tensor, cells: ChartCells) -> list[Tensor]:
        """Returns the pooling weight of every split point, for lengths L = 2 to h ``[N - L + 1, B, H, L - 1]``.

        Each phrase, by the column in which it starts, has the weights of the split points after its first token, its
        second, and so on. They are undefined for phrases that do not exist.
        """
        states = states.masked_fill(cells.padding.t().unsqueeze(-1), 0)
        states, weight, scorers = self._prepared(states)
        with without_autocast(states):
            return build_levels(states, weight, scorers, cells.height)[1]

    def cells(self, padding: Tensor, outside: Optional[Tensor] = None) -> ChartCells:
        """Enumerates the cells of a batch up to this chart's height; see :meth:`ChartCells.build`."""
        return ChartCells.build(padding, self.height, outside)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds initial weights to the checkpoint of a model without a chart; takes compositions of both kinds."""
        own = self.state_dict()
        for kept, other, converted in (
            ("deviation", "weight", _to_deviation),
            ("weight", "deviation", _from_deviation),
        ):
            if kept in own and f"{name}.{other}" in state_dict:
                state_dict[f"{name}.{kept}"] = converted(state_dict.pop(f"{name}.{other}"))
        add_initial_weights(state_dict, {f"{name}.{key}": weight for key, weight in own.items()})


def _mean(like: Tensor) -> Tensor:
    """The composition of two parts to their mean, ``[D, 2 * D]``."""
    width = like.size(1)
    return torch.eye(width, dtype=like.dtype, device=like.device).repeat(1, 2) / 2


def _from_deviation(deviation: Tensor) -> Tensor:
    """The composition matrices of deviations, ``[G, D, 2 * D]``."""
    return _mean(deviation) + deviation / deviation.size(1)


def _to_deviation(composition: Tensor) -> Tensor:
    """The inverse of `_from_deviation`."""
    return (composition - _mean(composition)) * composition.size(1)


class ChartSummary(nn.Module):
    """A text as one vector: the mean of the highest cells of its chart (section 3.2, sequence classification).

    The chart of n tokens has height min(h, n). With ``within``, phrases stay within a sentence of a pair, and each
    sentence has its own highest cells.
    """

    def __init__(self, width: int, config: ChartConfig, within: bool = False):
        super().__init__()
        self.chart = Chart(width, config)
        self.within = within

    def forward(self, states: Tensor, outside: Tensor) -> Tensor:
        """Averages the highest phrases, ``[B, D]``, of states ``[N, B, D]``; zero for a text without words.

        Padding, starts, ends and separators of sentences, ``outside`` ``[B, N]`` bool, do not enter the chart.
        """
        if not self.within:
            states, outside = words_first(states, outside)
        cells = self.chart.cells(outside)
        encoded = self.chart(states, cells)
        starts, places = cells.highest()
        top = encoded.gather(0, places.t().unsqueeze(2).expand(-1, -1, encoded.size(2)))  # N x B x D
        top = top.to(torch.promote_types(top.dtype, torch.float32)).masked_fill(~starts.t().unsqueeze(2), 0)
        return (top.sum(0) / starts.sum(1, keepdim=True).clamp(min=1)).to(encoded.dtype)


def words_first(states: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
    """Moves the words of each row to its first columns and everything ``outside``, ``[B, N]``, behind them."""
    order = outside.to(torch.uint8).argsort(dim=1, stable=True)  # B x N
    columns = order.t().unsqueeze(2).expand(-1, -1, states.size(2))  # N x B x D
    return states.gather(0, columns), outside.gather(1, order)
