"""Copying from the source: a pointer whose attention is mixed with a decoder's distribution (See et al. 2017).

In every step a gate p in (0, 1) weighs the distribution P_vocab of the decoder against the attention a to the tokens of
the source::

    P(y) = p P_vocab(y) + (1 - p) sum of a_i over the tokens x_i with the text of y

The text of a word is the word without the mark of a subword, that of a symbol the text of its leaf or piece
(:meth:`tree_fairseq.trees.notations.Notation.leaf_text`). Targets can be spelled with the symbols of their dictionary,
so no dictionary is extended. Four cases that the paper does not have:

- several symbols have the same text, such as a name in two productions. They share what is copied in the proportions
  in which P_vocab generates them, so the search may choose between them by its grammar;
- the case differs. Leaves are copied all the same, as descriptions have ``Legendary`` for a program's ``LEGENDARY``;
  pieces are not;
- no symbol has the text of a token. The attention to it goes to P_vocab;
- a name of k pieces begins at a token. Then the token stands for its text and for the spelled leaves of k pieces, and
  the attention is shared among all of them, again as P_vocab generates them. So whether a name is short or long is
  copied, too.

With the probability m_c to point at a group c of symbols, and G_c, the sum of P_vocab over them, a symbol of c has

    P(y) = P_vocab(y) (k + (1 - p) m_c / G_c),    k = p + (1 - p) (1 - sum of m_c over all groups c)

and a symbol without a group has P_vocab(y) k. Probabilities sum to one.

A name in pieces is copied piece by piece. As in the selective read of CopyNet (Gu et al. 2016), the pointer therefore
knows what has just been written. The logits of attention get a bonus, which is learned, at

- the next piece of each name whose pieces before it have just been written,
- the names and other tokens that follow the last one, blanks aside,
- the beginning of a name of k pieces, if the last symbol is a leaf of k pieces,
- what is used up: the n-th token of a text, or the first piece of a name, after the text was written n times. This is
  the coverage of See et al., of what was copied rather than attended to.

The odds of copying, (1 - p) / p, grow by the factor by which the bonuses raise the sum of the exponentials of the
logits.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.shared_memory import MemoryType, PackedRows, ProjectedMemory, cross_attention_options, row_order
from tree_fairseq.nn.shared_names import SharedNames, SourceNames, TokenSymbols, runs
from tree_fairseq.nn.tensors import without_autocast
from tree_fairseq.support.options import option
from tree_fairseq.support.python_versions import zip_equal

POINTER = "decoder.pointer."
"""Begins the names of the weights of a model that copies which other models do not have."""

_NAMES = "pointer_names"  # in the state of a decoding: the names in the source of each row


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


def leave_tokens(encoder: FairseqEncoder) -> None:
    """Makes an encoder leave the tokens of the source in its output, where a pointer finds them.

    fairseq's search calls ``forward`` past the hooks of torch.
    """
    encoder.forward = functools.partial(_forward_with_tokens, encoder.forward)


def _forward_with_tokens(forward: Any, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, list]:
    return {**forward(src_tokens, *args, **kwargs), "src_tokens": [src_tokens]}


@dataclass(frozen=True)
class PointedMemory:
    """The projected memory of B sources, and the symbols that their tokens stand for."""

    projected: ProjectedMemory
    symbols: list[TokenSymbols]
    encoder_out: dict[str, list]

    def select(self, rows: Tensor) -> "PointedMemory":
        """Selects rows, ``[B']`` int64."""
        symbols = [each.select(rows) for each in self.symbols]
        return replace(self, projected=self.projected.select(rows), symbols=symbols)


class SourcePointer(nn.Module):
    """An attention head over a decoder's last states, and the gate p between generating and copying.

    p = sigmoid(w_c context + w_s state + w_x embedding + b), eq. 8 of See et al. (2017), before the bonuses.
    ``embed_dim`` is the width E of the target's embeddings, 0 for a decoder without an input for each place.
    """

    def __init__(self, cfg: Any, memory_type: MemoryType, names: SharedNames, embed_dim: int):
        super().__init__()
        width = cfg.decoder.output_dim
        options = {**cross_attention_options(cfg), "embed_dim": width, "num_heads": 1}
        self.memory_type = memory_type
        self.attention = memory_type.attention(cfg, **options)
        self.gate = nn.Linear(2 * width + embed_dim, 1)
        # Within a name, elsewhere, at the beginning of a name of the right length, and where a text is used up.
        self.bonuses = nn.Parameter(torch.tensor([4.0, 0.0, 4.0, -1.0])) if embed_dim else None
        self.names = names

    def forward(
        self,
        logits: Tensor,
        states: Tensor,
        previous: Tensor,
        embedded: Tensor,
        encoder_out: dict[str, list],
        incremental_state: Any,
    ) -> Tensor:
        """Log-probabilities ``[R, T, V]`` of the mixture; they are logits of themselves.

        Args:
            logits: ``[R, T, V]``, of P_vocab
            states: ``[R, T, D]``, from which the logits are
            previous: ``[R, T']`` int64, the symbols before the states, and in a decoding all earlier ones, too
            embedded: ``[R, T, E]``, the embeddings of the last T of them
            encoder_out: the output of an encoder that leaves its tokens (:func:`leave_tokens`)
            incremental_state: of a decoding, or None
        """
        state = {} if incremental_state is None else incremental_state
        held = self.attention.held(*self.memory_type.view(encoder_out), state)
        context, weights = self.attention.weigh(states.transpose(0, 1), held)
        [weights] = self.memory_type.describe(weights[0], encoder_out)["attn"]  # R x T x S -> R x T x N
        if _NAMES not in state:
            state[_NAMES] = self.names.find(encoder_out["src_tokens"][0]).select(row_order(encoder_out))
        source = state[_NAMES]
        gate = self.gate(torch.cat([context.transpose(0, 1), states, embedded], dim=2))
        with without_autocast(logits):
            weights, gained = self.raise_weights(weights, previous, source)
            return mixture(logits, weights, gate - gained, source.symbols)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Leaves out the rows of finished sentences; as in fairseq's attention, other rows stay in their sentence."""
        names = incremental_state.get(_NAMES)
        if names is not None and len(names.texts) != len(new_order):
            incremental_state[_NAMES] = names.select(new_order)

    def raise_weights(self, weights: Tensor, previous: Tensor, source: SourceNames) -> tuple[Tensor, Tensor]:
        """The attention ``[R, T, N]`` with the bonuses, and the log of the factor of the sum, ``[R, T, 1]``.

        Args:
            weights: ``[R, T, N]``, the attention without them; what is missing to one is elsewhere in the memory
            previous: ``[R, T']`` int64, the symbols before
            source: the names in the sources
        """
        names, columns = self.names, weights.size(1)
        texts, before, starts = source.texts.unsqueeze(1), source.before.unsqueeze(1), (source.before == 0).unsqueeze(1)
        kept = min(previous.size(1), columns + source.longest)
        last = names.of_target[previous]  # R x T', the number of a text
        steps = torch.arange(previous.size(1), device=last.device)
        last_text = last.gather(1, (steps - runs(names.is_blank[previous])).clamp(min=0))  # blanks aside
        # Of the symbols before the columns only the numbers count, so a step takes no longer in a long output.
        past = last[:, :-columns]
        times = last.new_zeros(len(last), names.texts).scatter_add_(1, past, torch.ones_like(past))
        earlier = times.gather(1, source.texts.clamp(min=0)).unsqueeze(1)  # R x 1 x N

        previous, written = previous[:, -kept:], runs(names.is_part[previous])[:, -kept:].unsqueeze(2)
        is_written = last[:, -kept:].unsqueeze(2) == texts  # R x kept x N
        used = (earlier + is_written[:, -columns:].cumsum(1) > source.rank.unsqueeze(1)) & starts & (texts > 0)
        found = functional.pad(is_written, (1, -1))  # the token before is the last symbol
        elsewhere = functional.pad(last_text[:, -columns:].unsqueeze(2) == texts, (1, -1)) & starts
        continues, is_same = torch.zeros_like(found), found
        for count in range(1, min(source.longest, 1 + kept)):
            # The last pieces that are written are those that the token has before it.
            here = (written >= count) & (before == count)
            continues |= is_same & here
            is_same = is_same & functional.pad(found, (count, -count, count, -count))
        lengths = source.lengths.unsqueeze(1)
        begins = (names.pieces[previous[:, -columns:]].unsqueeze(2) == lengths) & (lengths > 0)
        kinds = torch.stack([continues[:, -columns:], elsewhere, begins, used], dim=3)  # R x T x N x 4
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        raised = weights * (kinds.to(weights) @ self.bonuses.to(weights)).exp()
        total = raised.sum(2, keepdim=True) + (1 - weights.sum(2, keepdim=True)).clamp(min=0)
        return raised / total, total.log()

    def project(self, encoder_out: dict[str, list]) -> "PointedMemory":
        """Projects the memory of B sentences for a decoder that reads it many times."""
        projected = self.attention.project(*self.memory_type.view(encoder_out))
        return PointedMemory(projected, self.names.of_tokens(encoder_out["src_tokens"][0]), encoder_out)

    def mix_places(self, logits: Tensor, states: Tensor, memory: PointedMemory, places: PackedRows) -> Tensor:
        """Log-probabilities ``[Z, V]`` of the mixture in Z places of R rows, given logits and states ``[Z, D]``."""
        context, weights = self.attention.weigh(places.pad(states).transpose(0, 1), memory.projected)
        [weights] = self.memory_type.describe(weights[0], memory.encoder_out)["attn"]  # R x M x S -> R x M x N
        weights, context = places.pack(weights), places.pack(context.transpose(0, 1))  # Z x N, Z x D
        gate = self.gate(torch.cat([context, states], dim=1))
        with without_autocast(logits):
            own = [each.select(places.places // places.shape[1]) for each in memory.symbols]
            return mixture(logits.unsqueeze(1), weights.unsqueeze(1), gate.unsqueeze(1), own).squeeze(1)


def mixture(logits: Tensor, weights: Tensor, gate: Tensor, own: Sequence[TokenSymbols]) -> Tensor:
    """Log-probabilities ``[R, T, V]`` of the mixture, in single precision at least.

    Args:
        logits: ``[R, T, V]``, of P_vocab
        weights: ``[R, T, N]``, the attention a
        gate: ``[R, T, 1]``, the logit of p
        own: the symbols that the tokens stand for; no symbol is in two of the groups
    """
    exact = torch.promote_types(logits.dtype, torch.float32)
    generated, weights, gate = logits.to(exact).log_softmax(2), weights.to(exact), gate.to(exact)
    has_group = torch.stack([each.has_group for each in own], dim=2).unsqueeze(1)  # R x 1 x N x groups
    copies = has_group.any(3)
    flat = [each.symbols.flatten(1) for each in own]  # R x MK
    index = torch.cat(flat, dim=1).unsqueeze(1).expand(*logits.shape[:2], -1)  # R x T x all MK
    parts, totals = [], []
    for each, shared in zip_equal(own, generated.gather(2, index).split([part.size(1) for part in flat], dim=2)):
        is_out = ~each.is_symbol & each.is_symbol.any(2, keepdim=True)  # R x M x K
        # R x T x MK -> R x T x M x K
        shared = shared.unflatten(2, is_out.shape[1:]).masked_fill(is_out.unsqueeze(1), -torch.inf)
        total = shared.logsumexp(3)  # R x T x M, the log of G_c
        is_own = each.is_own.to(exact)
        totals.append(total @ is_own.mT)
        parts.append((each.is_symbol, is_own, total))
    # A token is shared by its groups, as P_vocab generates them.
    is_other = ~has_group & copies.unsqueeze(3)
    shares = torch.stack(totals, dim=3).masked_fill(is_other, -torch.inf).softmax(3) * copies.unsqueeze(3)
    elsewhere = 1 - (weights * copies).sum(2, keepdim=True)
    kept = gate.sigmoid() + (-gate).sigmoid() * elsewhere.clamp(min=0)
    kept = kept.clamp(min=torch.finfo(exact).tiny).log()  # k, R x T x 1
    factor = functional.logsigmoid(-gate) - kept  # (1 - p) / k
    all_gained = []
    for (is_symbol, is_own, total), share in zip_equal(parts, shares.unbind(3)):
        mass = (weights * share) @ is_own
        is_copied = mass > torch.finfo(exact).tiny
        ratio = mass.where(is_copied, 1).log() + factor - total
        gained = torch.logaddexp(ratio, torch.zeros_like(ratio)).where(is_copied, 0).unsqueeze(3)
        all_gained.append((gained * is_symbol.unsqueeze(1)).flatten(2))  # R x T x M x K -> R x T x MK
    return (generated + kept).scatter_add(2, index, torch.cat(all_gained, dim=2))
