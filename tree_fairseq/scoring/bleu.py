"""BLEU in three readings, by sentence length, and paired bootstrap against another system.

* ``tokenized_bleu``: on the tokens of the data set (Moses), as papers of 2014-2020 report it; comparable only if
  the tokens are the same.
* ``compound_split_bleu``: the same with words split at hyphens, as WMT'14 English-German is reported since 2017.
* ``sacrebleu``: sacreBLEU's own tokenisation on plain text; the number to compare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from tree_fairseq.scoring.breakdowns import by_bounds

_COMPOUND = re.compile(r"(?<=\S)-(?=\S)")


@dataclass(frozen=True)
class Side:
    """The references of a test set in one reading.

    Attributes:
        metric: name
        references: one line per sentence
        lowercase: whether to ignore case
        tokenize: sacreBLEU's tokeniser; ``"none"`` for tokenised text
    """

    metric: str
    references: Sequence[str]
    lowercase: bool = False
    tokenize: str = "13a"

    def scorer(self) -> BLEU:
        """Returns a new scorer; ``force``, because the tokenised reading is deliberate."""
        return BLEU(lowercase=self.lowercase, tokenize=self.tokenize, force=True)


def split_compounds(line: str) -> str:
    """Splits ``well-known`` into three tokens, ``well ##AT##-##AT## known``, as Vaswani et al. (2017) do."""
    return _COMPOUND.sub(" ##AT##-##AT## ", line)


def corpus_bleu(side: Side, hypotheses: Sequence[str]) -> tuple[float, str]:
    """Returns BLEU (0-100) and sacreBLEU's signature."""
    scorer = side.scorer()
    score = scorer.corpus_score(list(hypotheses), [list(side.references)]).score
    return score, str(scorer.get_signature())


def bleu_by_length(side: Side, hypotheses: Sequence[str], lengths: Sequence[int], bounds: Sequence[int]) -> list[dict]:
    """Returns BLEU of each length bucket that is not empty: ``{"from", "to", "sentences", "bleu"}``."""

    def metrics(indices: Sequence[int]) -> dict[str, float]:
        references = [side.references[index] for index in indices]
        part = Side(side.metric, references, side.lowercase, side.tokenize)
        return {"bleu": corpus_bleu(part, [hypotheses[index] for index in indices])[0]}

    return by_bounds(lengths, bounds, metrics)


def paired_bootstrap(side: Side, baseline: Sequence[str], system: Sequence[str], samples: int = 1000) -> dict:
    """Compares two systems by sacreBLEU's paired bootstrap resampling (Koehn 2004).

    Returns both scores, their difference, sacreBLEU's p-value (at least 1 / (samples + 1)), 95 % intervals and
    signature.
    """
    test = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {"BLEU": side.scorer()},
        [list(side.references)],
        test_type="bs",
        n_samples=samples,
    )
    signatures, scores = test()
    first, second = scores["BLEU"]
    return {
        "metric": side.metric,
        "baseline_score": first.score,
        "system_score": second.score,
        "difference": second.score - first.score,
        "p_value": second.p_value,
        "baseline_interval": [first.mean - first.ci, first.mean + first.ci],
        "system_interval": [second.mean - second.ci, second.mean + second.ci],
        "signature": str(signatures["BLEU"]),
    }
