"""A learned bias on the decoder's attention to nodes or phrases, which the papers do not have.

Cross-attention adds one number a head to the logits of memory positions that represent a phrase, not a single token.
It starts at -3, less ln m where there are about m phrases for each token: all phrases together then get about a
twentieth of the attention that the tokens get. So the model starts close to a transformer that attends to words alone,
and learns how much of the phrases each head uses.
"""

import math
from dataclasses import dataclass

import torch
from fairseq.dataclass import FairseqDataclass
from torch import Tensor, nn

from tree_fairseq.support.options import option

_INITIAL = -3.0


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class PhraseBiasConfig(FairseqDataclass):
    """Options of the bias; each is a flag of the models that use it."""

    no_phrase_bias: bool = option(
        False,
        "as in the papers, no learned bias, one a head and layer, on the decoder's attention to nodes or phrases",
        published=True,
    )


class PhraseBias(nn.Module):
    """The bias of one attention, to about ``phrases_per_token`` phrases for each token."""

    def __init__(self, num_heads: int, phrases_per_token: int = 1):
        super().__init__()
        self.weight = nn.Parameter(torch.full((num_heads,), _INITIAL - math.log(phrases_per_token)))

    def forward(self, is_phrase: Tensor) -> Tensor:
        """Biases ``[B, H, S]``: the head's number where ``is_phrase``, ``[B, S]`` bool, zero elsewhere."""
        return self.weight[:, None] * is_phrase[:, None].to(self.weight.dtype)
