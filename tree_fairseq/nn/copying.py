"""Copying from the source: a pointer whose attention is mixed with a decoder's distribution (See et al. 2017).

In every step a gate p in (0, 1) weighs the distribution P_vocab of the decoder against the attention a to the tokens of
the source::

    P(y) = p P_vocab(y) + (1 - p) sum of a_i over the tokens x_i with the text of y

The text of a word is the word without the mark of a subword, that of a symbol the text of its leaf or piece
(:meth:`tree_fairseq.trees.notations.Notation.leaf_text`). Targets can be spelled with the symbols of their dictionary,
so no dictionary is extended. Two cases that the paper does not have:

- several symbols have the same text, such as a name in two productions. They share what is copied in the proportions
  in which P_vocab generates them, so the search may choose between them by its grammar;
- no symbol has the text of a token. The attention to it goes to P_vocab.

With the probability m_c to point at text c, and G_c, the sum of P_vocab over all symbols of this text, a symbol of text
c has

    P(y) = P_vocab(y) (k + (1 - p) m_c / G_c),    k = p + (1 - p) (1 - sum of m_c over all texts c)

and a symbol without a text that can be copied has P_vocab(y) k. Probabilities sum to one.
"""

import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import texts_of
from tree_fairseq.nn.shared_memory import MemoryType, PackedRows, ProjectedMemory, cross_attention_options, row_order
from tree_fairseq.nn.tensors import without_autocast
from tree_fairseq.support.options import option

POINTER = "decoder.pointer."
"""Begins the names of the weights of a model that copies which other models do not have."""


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class CopyConfig(FairseqDataclass):
    """The option of copying; it is a flag of all transformers of this package."""

    copy_source: bool = option(
        False,
        "let the decoder also copy words, names and their pieces from the source: it points at tokens of the source, "
        "and symbols of the same text get the attention (See et al. 2017)",
        published=False,
    )


@dataclass(frozen=True)
class SharedTexts:
    """The texts that symbols of both dictionaries have, numbered from 1; 0 is for all others.

    Attributes:
        of_source: ``[V_source]`` int64, the number of the text of each symbol of the source
        symbols: ``[1 + C, K]`` int64, the symbols of the target with each of the C texts, padded with padding
        is_symbol: ``[1 + C, K]`` bool, false for this padding
    """

    of_source: Tensor
    symbols: Tensor
    is_symbol: Tensor

    @classmethod
    def of(cls, source: Dictionary, target: Dictionary) -> "SharedTexts":
        """Finds the texts of two dictionaries."""
        sources = texts_of(source)
        wanted, found = set(sources) - {None}, defaultdict(list)
        for symbol, text in enumerate(texts_of(target)):
            if text in wanted:
                found[text].append(symbol)
        numbers = {text: number for number, text in enumerate(found, 1)}
        symbols = torch.full((1 + len(found), max(map(len, found.values()), default=1)), target.pad())
        is_symbol = torch.zeros_like(symbols, dtype=torch.bool)
        for number, ids in enumerate(found.values(), 1):
            symbols[number, : len(ids)] = torch.tensor(ids)
            is_symbol[number, : len(ids)] = True
        return cls(torch.tensor([numbers.get(text, 0) for text in sources]), symbols, is_symbol)


def leave_tokens(encoder: FairseqEncoder) -> None:
    """Makes an encoder leave the tokens of the source in its output, where a pointer finds them.

    fairseq's search calls ``forward`` past the hooks of torch.
    """
    encoder.forward = functools.partial(_forward_with_tokens, encoder.forward)


def _forward_with_tokens(forward: Any, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, list]:
    return {**forward(src_tokens, *args, **kwargs), "src_tokens": [src_tokens]}


@dataclass(frozen=True)
class PointedMemory:
    """The projected memory of B sources; ``texts``, ``[B, N]`` int64, has a number for the text of each position."""

    projected: ProjectedMemory
    texts: Tensor
    encoder_out: dict[str, list]

    def select(self, rows: Tensor) -> "PointedMemory":
        """Selects rows, ``[B']`` int64."""
        return PointedMemory(self.projected.select(rows), self.texts.index_select(0, rows), self.encoder_out)


class SourcePointer(nn.Module):
    """An attention head over a decoder's last states, and the gate p between generating and copying.

    p = sigmoid(w_c context + w_s state + w_x embedding + b), eq. 8 of See et al. (2017).

    Args:
        cfg: the model's configuration
        memory_type: how the decoder attends to its encoder's memory
        texts: of the dictionaries
        embed_dim: width E of the target's embeddings; 0 for a decoder without an input for each place
    """

    def __init__(self, cfg: Any, memory_type: MemoryType, texts: SharedTexts, embed_dim: int):
        super().__init__()
        width = cfg.decoder.output_dim
        options = {**cross_attention_options(cfg), "embed_dim": width, "num_heads": 1}
        self.memory_type = memory_type
        self.attention = memory_type.attention(cfg, **options)
        self.gate = nn.Linear(2 * width + embed_dim, 1)
        for name, table in vars(texts).items():
            self.register_buffer(name, table, persistent=False)

    def forward(
        self, logits: Tensor, states: Tensor, embedded: Tensor, encoder_out: dict[str, list], incremental_state: Any
    ) -> Tensor:
        """Log-probabilities ``[R, T, V]`` of the mixture; they are logits of themselves.

        Args:
            logits: ``[R, T, V]``, of P_vocab
            states: ``[R, T, D]``, from which the logits are
            embedded: ``[R, T, E]``, the embeddings of the symbols before
            encoder_out: the output of an encoder that leaves its tokens (:func:`leave_tokens`)
            incremental_state: of a decoding, or None
        """
        state = {} if incremental_state is None else incremental_state
        held = self.attention.held(*self.memory_type.view(encoder_out), state)
        context, weights = self.attention.weigh(states.transpose(0, 1), held)
        [weights] = self.memory_type.describe(weights[0], encoder_out)["attn"]  # R x T x S -> R x T x N
        [tokens], order = encoder_out["src_tokens"], row_order(encoder_out)
        texts = self.of_source[tokens if order is None else tokens.index_select(0, order)]  # R x N
        gate = self.gate(torch.cat([context.transpose(0, 1), states, embedded], dim=2))
        with without_autocast(logits):
            return self.mix(logits, weights, texts, gate)

    def project(self, encoder_out: dict[str, list]) -> "PointedMemory":
        """Projects the memory of B sentences for a decoder that reads it many times."""
        projected = self.attention.project(*self.memory_type.view(encoder_out))
        return PointedMemory(projected, self.of_source[encoder_out["src_tokens"][0]], encoder_out)

    def mix_places(self, logits: Tensor, states: Tensor, memory: PointedMemory, places: PackedRows) -> Tensor:
        """Log-probabilities ``[Z, V]`` of the mixture in Z places of R rows, given logits and states ``[Z, D]``."""
        context, weights = self.attention.weigh(places.pad(states).transpose(0, 1), memory.projected)
        [weights] = self.memory_type.describe(weights[0], memory.encoder_out)["attn"]  # R x M x S -> R x M x N
        weights, context = places.pack(weights), places.pack(context.transpose(0, 1))  # Z x N, Z x D
        texts = memory.texts.index_select(0, places.places // places.shape[1])  # Z x N
        gate = self.gate(torch.cat([context, states], dim=1))
        with without_autocast(logits):
            return self.mix(logits.unsqueeze(1), weights.unsqueeze(1), texts, gate.unsqueeze(1)).squeeze(1)

    def mix(self, logits: Tensor, weights: Tensor, texts: Tensor, gate: Tensor) -> Tensor:
        """Log-probabilities ``[R, T, V]`` of the mixture, in single precision at least.

        Args:
            logits: ``[R, T, V]``, of P_vocab
            weights: ``[R, T, N]``, the attention a
            texts: ``[R, N]`` int64, the numbers of the texts of the tokens
            gate: ``[R, T, 1]``, the logit of p
        """
        exact = torch.promote_types(logits.dtype, torch.float32)
        logits, weights, gate = logits.to(exact), weights.to(exact), gate.to(exact)
        has_text, is_same = texts > 0, texts.unsqueeze(2) == texts.unsqueeze(1)  # R x N, R x N x N
        elsewhere = (1 - (weights * has_text.unsqueeze(1)).sum(2, keepdim=True)).clamp(min=0)
        kept = gate.sigmoid() + (-gate).sigmoid() * elsewhere
        kept = kept.clamp(min=torch.finfo(exact).tiny).log()  # k, R x T x 1

        # The symbols of each text, at the first of its tokens; a symbol has one text.
        symbols, is_symbol = self.symbols[texts], self.is_symbol[texts].unsqueeze(1)  # R x N x K, R x 1 x N x K
        index = symbols.flatten(1).unsqueeze(1).expand(-1, logits.size(1), -1)  # R x T x NK
        own = logits.gather(2, index).unflatten(2, symbols.shape[1:])  # R x T x N x K
        total = own.masked_fill(~is_symbol & has_text[:, None, :, None], -torch.inf).logsumexp(3)  # R x T x N
        mass = weights @ is_same.to(exact)  # m, R x T x N
        is_copied = (has_text & ~is_same.tril(-1).any(2)).unsqueeze(1) & (mass > torch.finfo(exact).tiny)
        all_symbols = logits.logsumexp(2, keepdim=True)
        share = total - all_symbols  # log G
        ratio = mass.where(is_copied, 1).log() + functional.logsigmoid(-gate) - share - kept  # (1 - p) m / (G k)
        gained = torch.logaddexp(ratio, torch.zeros_like(ratio)).where(is_copied, 0).unsqueeze(3) * is_symbol
        return (logits + (kept - all_symbols)).scatter_add_(2, index, gained.flatten(2))
