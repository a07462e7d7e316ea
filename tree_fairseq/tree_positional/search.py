"""Search whose every hypothesis is a complete tree: beam, diverse beam and sampling, with one model or several.

The scores of the averaged models are masked before the search sees them. A symbol is legal if the slot that comes next
takes it, and if all slots can then be closed within the sentence's own length. Masked scores are not renormalised. A tree
ends when no slot is open: nothing else can follow, so that EOS costs nothing and counts for nothing.

In beam search, complete trees wait in the beam, at the score that they have, until all that is in it is complete. Had they to
leave it at once, as fairseq's hypotheses do, then as many short trees as there are beams would end a search, however bad they
were: any leaf in the place of a subtree completes one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from fairseq.search import BeamSearch, LengthConstrainedBeamSearch, Sampling
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from tree_fairseq.data_bin.grammar import Grammar
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_positional.hypotheses import GrowingTrees
from tree_fairseq.tree_positional.legal_symbols import LegalSymbols
from tree_fairseq.trees.symbols import unknown_symbol

logger = logging.getLogger(__name__)

# Log-probability of a masked symbol, and the least one of a legal symbol. Both are finite: fairseq neither ends nor replaces
# rows at minus infinity. Sampling needs their exponentials, of which some must not vanish.
_MASKED, _FLOOR = -1e9, -1e4
_MASKED_SAMPLE, _FLOOR_SAMPLE = -80.0, -40.0


class StructuralEnsemble(EnsembleModel):
    """Models whose averaged scores are masked.

    Args:
        models: of fairseq
        eos: the id that ends a hypothesis
        penalties: ``[V]`` to subtract from log-probabilities, or None
        for_sampling: whether symbols are drawn
        lm_model, lm_weight: a language model over the target dictionary whose scores are added before the mask
        waiting: the id that complete trees take while others grow; None if they end at once
    """

    def __init__(
        self,
        models: Sequence,
        eos: int,
        penalties: Tensor | None = None,
        for_sampling: bool = False,
        lm_model=None,
        lm_weight: float = 1.0,
        waiting: int | None = None,
    ):
        super().__init__(models)
        self.eos, self.waiting = eos, waiting
        self.penalties = penalties
        self.masked, self.floor = (_MASKED_SAMPLE, _FLOOR_SAMPLE) if for_sampling else (_MASKED, _FLOOR)
        self.language_model = None if lm_model is None else lm_model.eval()
        self.lm_weight = lm_weight
        self.trees: GrowingTrees | None = None

    def forward_decoder(self, tokens, encoder_outs, incremental_states, temperature: float = 1.0):
        """Log-probabilities of the next symbols, ``[R, V]``, and attention, as fairseq has them.

        Args:
            tokens: ``[R, t + 1]``, START and the symbols so far
        """
        scores, attention = super().forward_decoder(tokens, encoder_outs, incremental_states, temperature)
        if scores.dtype in (torch.half, torch.bfloat16):
            scores = scores.float()
        if self.language_model is not None:
            model = self.language_model
            theirs = model.get_normalized_probs(model(tokens), log_probs=True, sample=None)[:, -1]
            scores = scores + self.lm_weight * theirs
        if tokens.size(1) > 1:
            self.trees.advance(tokens[:, -1])
        return self._mask(scores), attention

    def reorder_incremental_state(self, incremental_states, new_order):
        """Moves the trees with the beam."""
        self.trees.reorder(new_order)
        super().reorder_incremental_state(incremental_states, new_order)

    def _mask(self, scores: Tensor) -> Tensor:
        if self.penalties is not None:
            self.penalties = self.penalties.to(scores)
            scores = scores - self.penalties
        trees = self.trees
        scores = scores.clamp_(min=self.floor).masked_fill_(trees.illegal_symbols(), self.masked)
        # A row that cannot go on may end only when no other row of its sentence grows: what ends counts as a result.
        is_growing = trees.is_growing.repeat_interleave(len(scores) // len(trees.is_growing))  # [R]
        may_end = trees.is_complete
        if self.waiting is not None:
            scores[:, self.waiting].masked_fill_(trees.is_complete & is_growing, 0.0)
            scores[:, self.waiting].masked_fill_(~is_growing, self.masked)
            may_end = may_end & ~is_growing
        ends = torch.where(is_growing, -math.inf, self.masked / 2).to(scores)
        scores[:, self.eos] = ends.masked_fill_(may_end, 0.0)
        return scores


class StructuralGenerator(SequenceGenerator):
    """Fairseq's generator of hypotheses that are trees.

    A sentence may have fewer hypotheses than beams, where it has fewer trees; it has at least one. No tree has more symbols
    than ``max_len_a`` times its own source length plus ``max_len_b``, or than the smallest tree. Scores leave EOS out.

    Args:
        models: of fairseq
        tgt_dict: target dictionary
        symbols: what its ids mean
        grammar: restricts symbols to parents and branches where it has them
        max_len_a, max_len_b, min_len, lm_model, lm_weight: as fairseq's generator has them
        options: others of :class:`fairseq.sequence_generator.SequenceGenerator`

    Raises:
        StructuralSearchError: an option that does not go with trees, or no tree can be made of the dictionary
    """

    def __init__(
        self,
        models: Sequence,
        tgt_dict: Dictionary,
        symbols: SymbolTable,
        grammar: Grammar | None = None,
        max_len_a: float = 0,
        max_len_b: int = 200,
        min_len: int = 1,
        lm_model=None,
        lm_weight: float = 1.0,
        **options,
    ):
        _refuse(options)
        unknown, penalty = _unknown_ids(tgt_dict, symbols), options.get("unk_penalty", 0.0)
        never = [tgt_dict.index(token) for token in options.get("tokens_to_suppress", ())]
        penalties = None
        if penalty == math.inf:
            never += unknown
        elif penalty:
            penalties = torch.zeros(len(tgt_dict)).index_fill(0, torch.tensor(unknown, dtype=torch.int64), penalty)
        eos = tgt_dict.eos() if options.get("eos") is None else options["eos"]
        search = options.get("search_strategy")
        for_sampling = isinstance(search, Sampling)
        # Sampled trees do not compete, and other searches than this have penalties for what several hypotheses take.
        self._waiting = tgt_dict.bos() if type(search or BeamSearch(tgt_dict)) is BeamSearch else None
        ensemble = StructuralEnsemble(models, eos, penalties, for_sampling, lm_model, lm_weight, self._waiting)
        # The lengths are this class's own affair: fairseq's are those of the batch, and count EOS.
        super().__init__(ensemble, tgt_dict, max_len_a=0, min_len=0, **options)
        self.symbols = symbols
        self.legal = LegalSymbols.build(symbols, grammar, tuple(never), min_len)
        self.limit_a, self.limit_b, self.min_symbols = max_len_a, max_len_b, min_len
        self._grows: list[bool] = []
        self._said: set[str] = set()

    def _generate(self, sample, prefix_tokens=None, constraints=None, bos_token=None):
        """Fairseq's search, with limits of its own for each sentence.

        Raises:
            StructuralSearchError: a prefix that no tree begins with, or constraints
        """
        if constraints is not None:
            raise StructuralSearchError("--constraints: the structural search takes none")
        tokens = sample["net_input"]["src_tokens"]
        lengths = self._limits(sample["net_input"])
        limits = torch.tensor(lengths, device=tokens.device)
        self.legal = self.legal.to(tokens.device)
        prefix = None if prefix_tokens is None else self._checked_prefix(prefix_tokens.to(tokens.device), limits)
        self.max_len_b = max(lengths)
        self.model.trees = GrowingTrees(
            self.symbols, self.legal, limits, self.beam_size, self.min_symbols, prefix, self.pad, self._waiting
        )
        # The trees begin with the prefix by themselves.
        finalized = super()._generate(sample, None, bos_token=bos_token)
        return [self._results(hypotheses) for hypotheses in finalized]

    def finalize_hypos(self, step, bbsz_idx, eos_scores, tokens, scores, finalized, finished, *others):
        """Ends hypotheses at the score that they had before EOS; at minus infinity where they are no trees."""
        trees = self.model.trees
        self._grows = trees.is_growing.tolist()
        reached = scores[bbsz_idx, step - 1] if step else torch.zeros_like(eos_scores)
        if self.normalize_scores and step:
            # What is normalised by the number of steps is to be by that of symbols.
            reached = reached * ((step + 1) / trees.sizes[bbsz_idx]) ** self.len_penalty
        reached = reached.masked_fill(~trees.is_complete[bbsz_idx], -math.inf)
        return super().finalize_hypos(step, bbsz_idx, reached, tokens, scores, finalized, finished, *others)

    def is_finished(self, step, unfin_idx, max_len, finalized_sent_len, beam_size):
        """Whether a sentence has as many hypotheses as beams, or can have no more."""
        return (
            super().is_finished(step, unfin_idx, max_len, finalized_sent_len, beam_size) or not self._grows[unfin_idx]
        )

    def _limits(self, net_input: dict) -> list[int]:
        """The largest number of symbols of each sentence's trees."""
        lengths = net_input.get("src_lengths")
        lengths = net_input["src_tokens"].ne(self.pad).sum(dim=1) if lengths is None else lengths
        least, most = self.legal.smallest_tree, self.max_len - 1
        if least > most:
            raise StructuralSearchError(f"the smallest tree has {least} symbols, and the decoder takes at most {most}")
        limits = [min(int(self.limit_a * length + self.limit_b), most) for length in lengths.tolist()]
        if min(limits) < least:
            self._say(
                f"--max-len-b: {min(limits)} symbols make no tree, the limit is raised to the {least} of the smallest"
            )
        return [max(limit, least) for limit in limits]

    def _checked_prefix(self, prefix: Tensor, limits: Tensor) -> Tensor:
        """The symbols of prefixes, ``[B, P]``, without EOS."""
        trees = GrowingTrees(self.symbols, self.legal, limits, 1, 1, None, self.pad)
        rows = torch.arange(len(prefix), device=prefix.device)
        for column, tokens in enumerate(prefix.unbind(dim=1)):
            ends = (tokens == self.pad) | (tokens == self.eos) & trees.is_complete
            wrong = trees.illegal_symbols()[rows, tokens] & ~ends
            if wrong.any():
                row = int(wrong.nonzero()[0])
                raise StructuralSearchError(
                    f"the prefix of sentence {row + 1} of the batch: {self.tgt_dict[int(tokens[row])]!r}, its token "
                    f"{column + 1}, cannot stand there in a tree of at most {int(limits[row])} symbols; mend the prefix, or "
                    "raise --max-len-b"
                )
            trees.advance(tokens)
        return prefix.masked_fill(prefix == self.eos, self.pad)

    def _results(self, hypotheses: list[dict]) -> list[dict]:
        """The hypotheses of a sentence that are trees, the long enough ones among them if there are any."""
        found = [self._without_waiting(hypothesis) for hypothesis in hypotheses if hypothesis["score"] > -math.inf]
        long = [hypothesis for hypothesis in found if len(hypothesis["tokens"]) > self.min_symbols]
        if found and not long:
            self._say(
                f"--min-len: a sentence has no tree of {self.min_symbols} symbols in its limit, and gets shorter ones"
            )
        return long or found

    def _without_waiting(self, hypothesis: dict) -> dict:
        """A hypothesis of symbols and EOS, with scores of the symbols."""
        tokens, attention, scores = (hypothesis[name] for name in ("tokens", "attention", "positional_scores"))
        kept = tokens != self._waiting if self._waiting is not None else torch.ones_like(tokens, dtype=torch.bool)
        attention = attention[:, kept] if attention.numel() else attention
        return {
            **hypothesis,
            "tokens": tokens[kept],
            "attention": attention,
            "positional_scores": scores[:-1][kept[:-1]],
        }

    def _say(self, warning: str) -> None:
        name = warning.split(":")[0]
        if name not in self._said:
            self._said.add(name)
            logger.warning(warning)


def _refuse(options: dict) -> None:
    """Refuses options that would let hypotheses end that are no trees, or keep trees from ending."""
    search = options.get("search_strategy")
    refused = {
        "--match-source-len": options.get("match_source_len") or isinstance(search, LengthConstrainedBeamSearch),
        "--constraints": getattr(search, "supports_constraints", False),
        "--no-repeat-ngram-size": options.get("no_repeat_ngram_size", 0) > 0,
        "--print-alignment": options.pop("print_alignment", None),
    }
    for flag, is_given in refused.items():
        if is_given:
            raise StructuralSearchError(f"{flag} does not go with a search for trees; leave it out")


def _unknown_ids(dictionary: Dictionary, symbols: SymbolTable) -> list[int]:
    """Ids of the unknown symbols of all arities."""
    names = map(unknown_symbol, range(int(symbols.arity.max()) + 1))
    return [dictionary.indices[name] for name in names if name in dictionary.indices]
