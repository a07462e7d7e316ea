"""Structural search: beam search, diverse beam search and sampling that return complete trees only.

The scores of the averaged models are masked before the search sees them. A symbol is legal if it may fill the next open
node and if all open nodes can then be filled within the sentence's length limit. Masked scores are not renormalised. A
tree ends when it has no open node. EOS is then the only continuation, so it costs nothing and does not count.

In beam search, a complete tree waits in the beam, at its score, until the whole beam is complete. fairseq's hypotheses
leave the beam at once. Trees must not: any leaf in place of a subtree completes a tree, so a beam's worth of short, bad
trees would end the search.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.search import (
    BeamSearch,
    DiverseSiblingsSearch,
    LengthConstrainedBeamSearch,
    PrefixConstrainedBeamSearch,
    Sampling,
)
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from tree_fairseq.data_bin.grammar import FieldTable
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.support.options import refuse_flags
from tree_fairseq.tasks import INVALID
from tree_fairseq.tasks.unread_trees import TreeEnsemble
from tree_fairseq.tree_positional.checked_search import CheckedSearch, ProgramCheck
from tree_fairseq.tree_positional.hypotheses import LegalSymbols, TreeHypotheses
from tree_fairseq.trees.symbols import unknown_symbol

logger = logging.getLogger(__name__)

# Log-probability of a masked symbol, and of a legal symbol that has none or minus infinity. Both are finite: fairseq
# neither ends nor replaces rows at minus infinity. Sampling exponentiates them, and not all exponentials may vanish.
_MASKED, _FLOOR = -1e9, -1e4
_MASKED_SAMPLE, _FLOOR_SAMPLE = -80.0, -40.0

_WIDER = 4  # so many times more beams are tried where no hypothesis is a program


class StructuralEnsemble(TreeEnsemble):
    """An ensemble whose averaged scores are masked.

    ``penalties``, ``[V]``, are subtracted from log-probabilities. Complete trees take the id ``waiting`` while they
    wait; if it is None, they end at once. An ``observer`` keeps the steps of searches, one at a time.

    A score that is not a number counts as a very small one; ``is_faulty``, a bool or a tensor, says if there was one.
    """

    def __init__(self, models, eos, waiting: int | None, penalties: Tensor | None, for_sampling: bool):
        super().__init__(models)
        self.eos, self.waiting, self.penalties, self.for_sampling = eos, waiting, penalties, for_sampling
        self.masked, self.floor = (_MASKED_SAMPLE, _FLOOR_SAMPLE) if for_sampling else (_MASKED, _FLOOR)
        self.trees: TreeHypotheses | None = None
        self.observer: Any = None  # keeps the steps, see views.py
        self.is_faulty: bool | Tensor = False

    def forward_decoder(self, tokens, encoder_outs, incremental_states, temperature: float = 1.0):
        """Returns masked log-probabilities of the next symbols, ``[R, V]``, and fairseq's attention."""
        scores, attention = super().forward_decoder(tokens, encoder_outs, incremental_states, temperature)
        if scores.dtype in (torch.half, torch.bfloat16):
            scores = scores.float()
        if tokens.size(1) > 1:
            self.trees.advance(tokens[:, -1])
        unmasked = None if self.observer is None else scores.clone()
        scores = self._mask(scores)
        if self.observer is not None:
            self.observer.keep(tokens, unmasked, scores, self.trees)
        return scores, attention

    def reorder_incremental_state(self, incremental_states, new_order):
        """Reorders the trees with the beam."""
        self.trees.reorder(new_order)
        if self.observer is not None:
            self.observer.reorder(new_order)
        super().reorder_incremental_state(incremental_states, new_order)

    def _mask(self, scores: Tensor) -> Tensor:
        if self.penalties is not None:
            self.penalties = self.penalties.to(scores)
            scores.sub_(self.penalties)
        trees = self.trees
        # A logit that is not a number makes all probabilities of its row so.
        self.is_faulty = scores[:, self.eos].isnan().any() | self.is_faulty
        scores.nan_to_num_(nan=self.floor, neginf=self.floor)
        if self.for_sampling:
            scores.clamp_(min=self.floor)
        # One pass over the scores, which do not fit into a cache: masked_fill takes several times as long.
        scores.lerp_(scores.new_full((), self.masked), trees.illegal_symbols().to(scores))
        # A dead row may end only when no other row of its sentence grows, because fairseq counts ended rows as results.
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
    """fairseq's generator, restricted to hypotheses that are trees.

    A sentence has at least one hypothesis, and fewer than beams if fewer trees exist. A tree has at most ``max_len_a``
    times its source length plus ``max_len_b`` symbols, or as many as the smallest tree. Scores leave EOS out.

    Symbols have the arities and branches of the table ``symbols``; a ``grammar`` allows them only under its parents and
    branches, or in its fields. With a ``check``, only programs are hypotheses. A sentence for which the search finds
    none is searched again with more beams, then for ever shorter programs. If there is still none, ``steps`` of a
    hypothesis are their number and INVALID. With ``print_step`` all hypotheses have ``steps``. The other arguments are
    fairseq's.

    Raises StructuralSearchError if an option does not work with trees, or the dictionary makes no tree.
    """

    def __init__(
        self,
        models: Sequence,
        tgt_dict: Dictionary,
        symbols: SymbolTable,
        grammar: FieldTable | None = None,
        check: ProgramCheck | None = None,
        max_len_a: float = 0,
        max_len_b: int = 200,
        **options,
    ):
        search, self._prints_steps = options.get("search_strategy"), options.pop("print_step", False)
        # These would end incomplete trees, or keep complete trees from ending.
        refused = {
            "--match-source-len": options.get("match_source_len") or isinstance(search, LengthConstrainedBeamSearch),
            "--constraints": getattr(search, "supports_constraints", False),
            "--no-repeat-ngram-size": options.get("no_repeat_ngram_size", 0) > 0,
            "--print-alignment": options.pop("print_alignment", None),
            "--min-len": options.pop("min_len", 1) > 1,
            "--lm-path": options.pop("lm_model", None) is not None,
            "prefix_allowed_tokens_fn": isinstance(search, PrefixConstrainedBeamSearch),
        }
        refuse_flags(refused, "a search for trees", StructuralSearchError)
        options.pop("lm_weight", None)
        names = map(unknown_symbol, range(int(symbols.arity.max()) + 1))
        unknown = [tgt_dict.indices[name] for name in names if name in tgt_dict.indices]
        never = [tgt_dict.index(token) for token in options.get("tokens_to_suppress", ())]
        penalty, penalties = options.get("unk_penalty", 0.0), None
        if penalty == math.inf:
            never += unknown
        elif penalty:
            penalties = torch.zeros(len(tgt_dict)).index_fill(0, torch.tensor(unknown, dtype=torch.int64), penalty)
        eos = tgt_dict.eos() if options.get("eos") is None else options["eos"]
        # Sampled trees do not compete, and diverse searches would penalise an id that several hypotheses take.
        self._waiting = tgt_dict.bos() if type(search or BeamSearch(tgt_dict)) is BeamSearch else None
        ensemble = StructuralEnsemble(models, eos, self._waiting, penalties, isinstance(search, Sampling))
        # This class limits lengths itself: fairseq's limits hold for the batch as a whole and count EOS.
        super().__init__(ensemble, tgt_dict, max_len_a=0, min_len=0, **options)
        self._checked = None
        if check is not None:
            self.search = self._checked = CheckedSearch(self.search, tgt_dict, check, ensemble.masked)
        self.symbols = symbols
        self.legal = LegalSymbols.build(symbols, grammar, tuple(never))
        self.limit_a, self.limit_b = max_len_a, max_len_b
        self._still_growing: list[bool] = []
        self._warned: set[str] = set()

    def _generate(self, sample, prefix_tokens=None, constraints=None, bos_token=None):
        """fairseq's search with a length limit for each sentence; the mask enforces prefixes."""
        if constraints is not None:
            raise StructuralSearchError("--constraints does not work with a search for trees; leave it out")
        lengths = self._limits(sample["net_input"])
        self.model.is_faulty = False
        found = self._search(sample, lengths, prefix_tokens, bos_token)
        if self._checked is not None and not all(found):
            found = self._search_again(found, sample, lengths, prefix_tokens, bos_token)
        if self.model.is_faulty:
            self._warn_once(
                "NaN: a model gives probabilities that are not numbers; trees were made without them. Its checkpoint "
                "may be damaged, or --fp16 may be too narrow for it"
            )
        return found

    def _search(self, sample, lengths: list[int], prefix_tokens, bos_token, skipped=()) -> list[list[dict]]:
        """Searches for trees of at most so many symbols; ``skipped`` says which sentences need none."""
        device = sample["net_input"]["src_tokens"].device
        limits = torch.tensor(lengths, device=device)
        self.legal = self.legal.to(device)
        prefix = None if prefix_tokens is None else self._checked_prefix(prefix_tokens.to(device), limits)
        self.max_len_b = max(lengths)
        if self.model.observer is not None:
            self.model.observer.forget()
        self.model.trees = TreeHypotheses(
            self.symbols, self.legal, limits, self.beam_size, prefix, self.pad, self._waiting
        )
        if skipped:
            self.model.trees.skip(torch.tensor(skipped, device=device))
        if self._checked is not None:
            self._checked.trees = self.model.trees
            self._checked.forget()
        found = super()._generate(sample, None, bos_token=bos_token)
        # What is not a tree has ended at minus infinity.
        return [[self._without_waiting(each) for each in ranked if each["score"] > -math.inf] for ranked in found]

    def _search_again(self, found, sample, lengths, prefix_tokens, bos_token) -> list[list[dict]]:
        """Finds programs for the sentences that have none; the last resort is a tree that the check refuses."""
        beam, least = self.beam_size, self.legal.smallest_tree
        # Groups divide a beam, and diverse siblings take twice as many symbols of each row as there are rows.
        has_siblings = isinstance(self._checked.search, DiverseSiblingsSearch)
        most = self.vocab_size // 2 if has_siblings else self.vocab_size - 1
        self.beam_size = max(1, min(_WIDER, most // beam)) * beam
        limits = lengths
        while True:
            others = self._search(sample, limits, prefix_tokens, bos_token, list(map(bool, found)))
            found = [mine or other[:beam] for mine, other in zip(found, others)]
            if all(found) or prefix_tokens is not None or max(limits) <= least:
                break
            # Shorter than the programs that were refused: a limit above them changes nothing.
            longest = self._checked.longest or max(limits)
            limits = [max(min(length, longest) // 2, least) for length in limits]
        self.beam_size = beam
        if not all(found):
            self._checked.is_active = False
            others = self._search(sample, lengths, prefix_tokens, bos_token, list(map(bool, found)))
            self._checked.is_active = True
            for hypothesis in (each for ranked in others for each in ranked):
                *symbols, _ = hypothesis["tokens"].tolist()
                if not self._checked.is_program(tuple(symbols)):
                    hypothesis["steps"] = f"{len(symbols)} {INVALID}"
            found = [mine or other for mine, other in zip(found, others)]
        return found

    def finalize_hypos(self, step, bbsz_idx, eos_scores, tokens, scores, finalized, finished, *others):
        """Ends hypotheses at their score before EOS, or at minus infinity if they are not trees."""
        trees = self.model.trees
        self._still_growing = trees.is_growing.tolist()
        reached = scores[bbsz_idx, step - 1] if step else torch.zeros_like(eos_scores)
        if self.normalize_scores and step:
            # fairseq normalises by the number of steps; trees are normalised by their number of symbols.
            reached = reached * ((step + 1) / trees.sizes[bbsz_idx]) ** self.len_penalty
        reached = reached.masked_fill(~trees.is_complete[bbsz_idx], -math.inf)
        return super().finalize_hypos(step, bbsz_idx, reached, tokens, scores, finalized, finished, *others)

    def is_finished(self, step, unfin_idx, max_len, finalized_sent_len, beam_size):
        """Returns whether a sentence has as many hypotheses as beams, or cannot get more."""
        has_all = super().is_finished(step, unfin_idx, max_len, finalized_sent_len, beam_size)
        return has_all or not self._still_growing[unfin_idx]

    def _limits(self, net_input: dict) -> list[int]:
        """Returns the largest number of symbols of each sentence's trees."""
        lengths = net_input.get("src_lengths")
        lengths = net_input["src_tokens"].ne(self.pad).sum(dim=1) if lengths is None else lengths
        least, most = self.legal.smallest_tree, self.max_len - 1
        if least > most:
            raise StructuralSearchError(
                f"the smallest tree has {least} symbols, but the decoder accepts at most {most}"
            )
        limits = [min(int(self.limit_a * length + self.limit_b), most) for length in lengths.tolist()]
        if min(limits) < least:
            self._warn_once(
                f"--max-len-b: no tree has only {min(limits)} symbols; the limit is raised to {least}, the size of the "
                "smallest"
            )
        return [max(limit, least) for limit in limits]

    def _checked_prefix(self, prefix: Tensor, limits: Tensor) -> Tensor:
        """Returns the symbols of prefixes, ``[B, P]``, without EOS."""
        trees = TreeHypotheses(self.symbols, self.legal, limits, 1, None, self.pad)
        rows = torch.arange(len(prefix), device=prefix.device)
        for column, tokens in enumerate(prefix.unbind(dim=1)):
            ends = (tokens == self.pad) | (tokens == self.eos) & trees.is_complete
            wrong = (trees.illegal_symbols()[rows, tokens] > 0) & ~ends
            if wrong.any():
                row = int(wrong.nonzero()[0])
                raise StructuralSearchError(
                    f"the prefix of sentence {row + 1} of the batch: {self.tgt_dict[int(tokens[row])]!r}, its token "
                    f"{column + 1}, cannot occur there in a tree of at most {int(limits[row])} symbols; correct the "
                    "prefix, or raise --max-len-b"
                )
            trees.advance(tokens)
        return prefix.masked_fill(prefix == self.eos, self.pad)

    def _without_waiting(self, hypothesis: dict) -> dict:
        """Removes the columns in which a complete tree waited."""
        kept = hypothesis["tokens"] != (-1 if self._waiting is None else self._waiting)
        attention, scores = hypothesis["attention"], hypothesis["positional_scores"]
        return {
            **hypothesis,
            **({"steps": int(kept.sum()) - 1} if self._prints_steps else {}),
            "tokens": hypothesis["tokens"][kept],
            "attention": attention[:, kept] if attention.numel() else attention,
            "positional_scores": scores[:-1][kept[:-1]],
        }

    def _warn_once(self, warning: str) -> None:
        name = warning.split(":")[0]
        if name not in self._warned:
            self._warned.add(name)
            logger.warning(warning)
