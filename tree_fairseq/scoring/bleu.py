"""BLEU of a system against references in three readings, by length, and against another system.

* ``tokenized_bleu``: on the tokens of the data set (Moses), as papers of 2014-2020 report it; comparable only where
  the tokens are the same.
* ``compound_split_bleu``: the same with words split at hyphens, as WMT'14 English-German is reported since 2017.
* ``sacrebleu``: sacreBLEU's own tokenisation on plain text; the number to compare with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

_COMPOUND = re.compile(r"(?<=\S)-(?=\S)")


@dataclass(frozen=True)
class Side:
    """One reading of a test set: what is compared, and how.

    Attributes:
        metric: name of the number.
        references: one line per sentence.
        lowercase: compare without case.
        tokenize: sacreBLEU's tokeniser (``"none"`` where the text is tokenised already).
    """

    metric: str
    references: Sequence[str]
    lowercase: bool = False
    tokenize: str = "13a"

    def scorer(self) -> BLEU:
        """A fresh scorer; ``force`` because the tokenised reading is deliberate."""
        return BLEU(lowercase=self.lowercase, tokenize=self.tokenize, force=True)


def split_compounds(line: str) -> str:
    """``well-known`` as ``well ##AT##-##AT## known``: three tokens, as in Vaswani et al. (2017)'s scoring."""
    return _COMPOUND.sub(" ##AT##-##AT## ", line)


def corpus_bleu(side: Side, hypotheses: Sequence[str]) -> tuple[float, str]:
    """BLEU (0-100) and sacreBLEU's signature."""
    scorer = side.scorer()
    score = scorer.corpus_score(list(hypotheses), [list(side.references)]).score
    return score, str(scorer.get_signature())


def length_buckets(lengths: Sequence[int], bounds: Sequence[int]) -> list[tuple[int, int | None, list[int]]]:
    """Sentence indices by source length: (shortest, longest or None, indices), buckets end at ``bounds`` inclusively."""
    edges = [*sorted(set(bounds)), None]
    buckets = []
    low = 0
    for high in edges:
        inside = [index for index, length in enumerate(lengths) if length >= low and (high is None or length <= high)]
        buckets.append((low, high, inside))
        low = low if high is None else high + 1
    return buckets


def bleu_by_length(side: Side, hypotheses: Sequence[str], lengths: Sequence[int], bounds: Sequence[int]) -> list[dict]:
    """BLEU of each length bucket that has sentences: ``{"from", "to", "sentences", "bleu"}``."""
    rows = []
    for low, high, indices in length_buckets(lengths, bounds):
        if not indices:
            continue
        references = [side.references[index] for index in indices]
        part = Side(side.metric, references, side.lowercase, side.tokenize)
        score, _ = corpus_bleu(part, [hypotheses[index] for index in indices])
        rows.append({"from": low, "to": high, "sentences": len(indices), "bleu": score})
    return rows


def paired_bootstrap(side: Side, baseline: Sequence[str], system: Sequence[str], samples: int = 1000) -> dict:
    """sacreBLEU's paired bootstrap resampling (Koehn 2004) of ``system`` against ``baseline``.

    Returns both scores, their difference, sacreBLEU's p-value (smallest 1 / (samples + 1)), 95 % intervals and signature.
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
