"""The chart of Treeformer (Patel & Flanigan 2023): a vector for every phrase of up to h tokens, computed as in CKY."""

import math
from dataclasses import dataclass

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn

from tree_fairseq.errors import InputError
from tree_fairseq.nn.stock_weights import add_initial_weights
from tree_fairseq.nn.tensors import without_autocast
from tree_fairseq.support.options import option
from tree_fairseq.treeformer.levels import ChartCells, ChartFunction, build_levels

_NOISE = 0.1  # of the composition that starts as a mean, relative to the random one


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ChartConfig(FairseqDataclass):
    """Options of the chart, which are flags of the models that use it."""

    treeformer_height: int = option(10, "h: number of tokens of the longest phrase in the chart")
    treeformer_composition_init: ChoiceEnum(["mean", "random"]) = option(
        "mean",
        "how the composition starts and learns: with 'mean' a phrase starts as the mean of its parts, and slow steps "
        "lead away from it, so that attention to phrases is useful from the first update on; 'random' is the paper's",
        published="random",
    )


class Chart(nn.Module):
    """Encodes a phrase by composing the two parts at every split point and pooling over split points (eqs. 1 and 2).

    Composition is a matrix of D * 2D, pooling is attention with a learned query of D, and all levels share both.

    A composition that starts as a mean is the mean of the two parts plus 1 / D times a parameter, the deviation. The
    tokens of a phrase go through the matrix up to h - 1 times, so a small change of the matrix changes long phrases
    exponentially. Adam moves each element of a parameter by about the learning rate; with the factor 1 / D, an update
    moves a composed vector by about the learning rate, too. Raises InputError if the height is below 2.

    Examples:
        >>> chart = Chart(8, ChartConfig(treeformer_height=3))
        >>> cells = chart.cells(torch.tensor([[False, False, False, False]]))  # four words
        >>> chart(torch.randn(4, 1, 8), cells).shape  # 4 words, 3 phrases of two words, 2 phrases of three words
        torch.Size([9, 1, 8])
    """

    def __init__(self, width: int, config: ChartConfig):
        super().__init__()
        self.height = config.treeformer_height
        if self.height < 2:
            raise InputError(
                f"--treeformer-height {self.height} makes a chart of tokens without phrases",
                hint="Give at least 2; without phrases, use --arch transformer.",
            )
        matrix = nn.Parameter(torch.empty(1, width, 2 * width))  # checkpoints have the first dimension
        is_mean = config.treeformer_composition_init == "mean"
        # With this deviation of its elements, a random half of the matrix keeps the norms of vectors about as they are.
        nn.init.normal_(matrix, std=_NOISE * width**0.5 if is_mean else width**-0.5)
        self.register_parameter("deviation", matrix if is_mean else None)
        self.register_parameter("weight", None if is_mean else matrix)
        self.query = nn.Parameter(nn.init.normal_(torch.empty(1, width), std=width**-0.5))

    def composition(self) -> Tensor:
        """W, ``[D, 2 * D]``."""
        if self.deviation is None:
            return self.weight[0]
        [deviation] = self.deviation
        width = len(deviation)
        mean = torch.eye(width, dtype=deviation.dtype, device=deviation.device).repeat(1, 2) / 2
        return mean + deviation / width

    def forward(self, states: Tensor, cells: ChartCells) -> Tensor:
        """Encodes tokens and phrases as ``[S, B, D]``, from states ``[N, B, D]`` of tokens; padding is ignored.

        The values of unused cells have no meaning, but they are finite.
        """
        states, weight, scorers = self._prepared(states)
        with without_autocast(states):
            return ChartFunction.apply(states, weight, scorers, cells)

    @torch.no_grad()
    def splits(self, states: Tensor, cells: ChartCells) -> list[Tensor]:
        """Returns the pooling weight of every split point, for lengths L = 2 to h ``[N - L + 1, B, L - 1]``.

        Each phrase, by the column in which it starts, has the weights of the split points after its first token, its
        second, and so on. They are undefined for phrases that do not exist.
        """
        states = states.masked_fill(cells.padding.t().unsqueeze(-1), 0)
        states, weight, scorers = self._prepared(states)
        with without_autocast(states):
            return build_levels(states, weight, scorers, cells.height)[1]

    def _prepared(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states and weight in one dtype, and scorers of children, ``[2, D]``, in float32 or better."""
        device, weight = states.device.type, self.composition()
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            states = states.to(torch.get_autocast_dtype(device))
        wide = torch.promote_types(states.dtype, torch.float32)
        with without_autocast(states):
            scorers = (self.query.to(wide) @ weight.to(wide)) / math.sqrt(states.size(2))  # 1 x 2 * D
        return states, weight.to(states.dtype), scorers.view(2, -1)  # 1 x 2 * D -> 2 x D

    def cells(self, padding: Tensor) -> ChartCells:
        """Enumerates the cells of a batch up to this chart's height; see :meth:`ChartCells.build`."""
        return ChartCells.build(padding, self.height)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds initial weights to the checkpoint of a model without a chart."""
        add_initial_weights(state_dict, {f"{name}.{key}": weight for key, weight in self.state_dict().items()})


class ChartSummary(nn.Module):
    """A text as one vector: the mean of the highest cells of its chart (section 3.2, sequence classification).

    The chart of n tokens has height min(h, n).
    """

    def __init__(self, width: int, config: ChartConfig):
        super().__init__()
        self.chart = Chart(width, config)

    def forward(self, states: Tensor, outside: Tensor) -> Tensor:
        """Averages the highest phrases, ``[B, D]``, of states ``[N, B, D]``; zero for a text without words.

        Padding, starts, ends and separators of sentences, ``outside`` ``[B, N]`` bool, do not enter the chart.
        """
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
