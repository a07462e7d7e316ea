"""Scores translations by sacreBLEU: BLEU, chrF and TER.

    tree-fairseq score bleu --run runs/tree_transformer --words words --source-lang en --target-lang de \\
        --sets test=2016 test1=2017 --against runs/transformer --primary sacrebleu_2016 --result result.json

* ``tokenized_bleu``: on the tokens of the data set (Moses), as papers of 2014-2020 report it; comparable only if
  the tokens are the same.
* ``compound_split_bleu``: the same with words split at hyphens, as WMT'14 English-German is reported since 2017.
* ``sacrebleu``: BLEU with sacreBLEU's own tokenisation on plain text; the number to compare.
* ``chrf`` and ``ter``: chrF2 (Popović 2015) and translation edit rate (Snover et al. 2006) of the same plain text.

sacreBLEU is also given by the length of the source and, with ``--source-trees``, by the depth of its tree.

``--words`` is a folder with the tokenised ``{subset}.{language}`` of the test sets, and with ``raw/{subset}.{target}``
if there are untokenised references; otherwise the tokenised ones are detokenised.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sacrebleu.metrics.base import Metric

from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.breakdowns import by_bounds, depth_of
from tree_fairseq.scoring.measures import text_metric
from tree_fairseq.scoring.outputs import detokenize, read_text
from tree_fairseq.scoring.runs import RunScorer, bucket_lines, hypotheses_of
from tree_fairseq.scoring.significance import BOOTSTRAP, Resampling, paired_text_test

_COMPOUND = re.compile(r"(?<=\S)-(?=\S)")


@dataclass(frozen=True)
class Side:
    """The references of a test set in one reading, and the metric of sacreBLEU that compares with them.

    ``tokenize`` is sacreBLEU's tokeniser for BLEU, "none" for tokenised text; ``score`` is "bleu", "chrf" or "ter".
    """

    metric: str
    references: Sequence[str]
    lowercase: bool = False
    tokenize: str = "13a"
    score: str = "bleu"

    def scorer(self) -> Metric:
        """Returns a new scorer."""
        return text_metric(self.score, self.lowercase, self.tokenize)


def split_compounds(line: str) -> str:
    """Splits ``well-known`` into three tokens, ``well ##AT##-##AT## known``, as Vaswani et al. (2017) do."""
    return _COMPOUND.sub(" ##AT##-##AT## ", line)


def corpus_score(side: Side, hypotheses: Sequence[str]) -> tuple[float, str]:
    """Returns the score (BLEU and chrF from 0 to 100; TER from 0 up) and sacreBLEU's signature."""
    scorer = side.scorer()
    score = scorer.corpus_score(list(hypotheses), [list(side.references)]).score
    return score, str(scorer.get_signature())


def bleu_by_bounds(side: Side, hypotheses: Sequence[str], measures: Sequence[int], bounds: Sequence[int]) -> list[dict]:
    """Returns BLEU of each bucket, by length or another measure, that is not empty.

    A row has ``from``, ``to``, ``sentences`` and ``bleu``.
    """

    def metrics(indices: Sequence[int]) -> dict[str, float]:
        part = replace(side, references=[side.references[index] for index in indices])
        return {"bleu": corpus_score(part, [hypotheses[index] for index in indices])[0]}

    return by_bounds(measures, bounds, metrics)


def paired_bootstrap(side: Side, baseline: Sequence[str], system: Sequence[str], samples: int = 1000) -> dict:
    """Compares two systems by sacreBLEU's paired bootstrap resampling (Koehn 2004).

    Returns both scores, their difference, sacreBLEU's p-value (at least 1 / (samples + 1)), 95 % intervals and
    signature.
    """
    test = Resampling(BOOTSTRAP, samples)
    return {"metric": side.metric, **paired_text_test(side.scorer(), [side.references], baseline, system, test)}


class TranslationScorer(RunScorer):
    """Scores translations: BLEU in three readings, chrF, TER; by length and depth, against other runs."""

    name, primary, test = "bleu", "sacrebleu", "paired bootstrap, "
    sections = ("signatures", "references", "by_length", "by_depth")

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--words", type=Path, required=True, help="folder with the tokenised test sets")
        parser.add_argument("--source-lang", required=True)
        parser.add_argument("--target-lang", required=True)
        parser.add_argument("--lowercase", action="store_true", help="sacreBLEU without case, for lower-cased data")
        parser.add_argument("--compound-split", action="store_true", help="also score with words split at hyphens")
        parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="source words")
        trees = "folder of fairseq-preprocess with trees of the source: also score by their depth"
        parser.add_argument("--source-trees", type=Path, metavar="DATA", help=trees)
        depths = "edges from the root of a source's tree to its deepest word"
        parser.add_argument("--depth-bounds", type=int, nargs="*", default=[4, 6, 8, 10, 15], help=depths)
        parser.add_argument("--samples", type=int, default=1000, help="of the paired bootstrap (default: %(default)s)")
        parser.add_argument("--attention", type=Path, metavar="DATA", help="measure attention to nodes on this folder")

    def score_set(self, scores: dict, subset: str, suffix: str) -> None:
        """Scores a test set in every reading."""
        args, system = self.args, hypotheses_of(self.args.run, subset)
        others = {other.name: hypotheses_of(other, subset) for other in args.against}
        lengths = [len(line.split()) for line in read_text(args.words / f"{subset}.{args.source_lang}", len(system))]
        depths = self.depths(subset, len(system))
        for side in self.sides(scores, subset, len(system)):
            name, ours = side.metric + suffix, self.read(side, system)
            scores["metrics"][name], scores["signatures"][name] = corpus_score(side, ours)
            if side.metric == "sacrebleu":
                scores["by_length"][name] = bleu_by_bounds(side, ours, lengths, args.length_bounds)
                if depths is not None:
                    scores["by_depth"][name] = bleu_by_bounds(side, ours, depths, args.depth_bounds)
            for other, hypotheses in others.items():
                difference = paired_bootstrap(side, self.read(side, hypotheses), ours, args.samples)
                scores["differences"].append({**difference, "metric": name, "baseline": other})
        if args.attention is not None:
            from tree_fairseq.scoring.attention_share import measure  # builds the task, so only on request

            scores.setdefault("attention", {})[subset] = measure(args.checkpoint, args.attention, subset)

    def depths(self, subset: str, count: int) -> list[int] | None:
        """Returns the depth of each source's tree; None without ``--source-trees``."""
        folder = self.args.source_trees
        if folder is None:
            return None
        depths = list(map(depth_of, export_forests(folder, self.args.source_lang, subset)))
        if len(depths) != count:
            raise ScoringError(f"{folder} has {len(depths)} trees of {subset}, the hypotheses are {count}")
        return depths

    def sides(self, scores: dict, subset: str, count: int) -> list[Side]:
        """Returns the references of a test set in every reading."""
        args = self.args
        tokens = read_text(args.words / f"{subset}.{args.target_lang}", count)
        raw = args.words / "raw" / f"{subset}.{args.target_lang}"
        scores["references"][subset] = "untokenised" if raw.is_file() else "detokenised"
        plain = read_text(raw, count) if raw.is_file() else detokenize(tokens, args.target_lang)
        sides = [Side("tokenized_bleu", tokens, tokenize="none"), Side("sacrebleu", plain, args.lowercase)]
        sides += [Side(name, plain, args.lowercase, score=name) for name in ("chrf", "ter")]
        if args.compound_split:
            sides.append(Side("compound_split_bleu", list(map(split_compounds, tokens)), tokenize="none"))
        return sides

    def read(self, side: Side, hypotheses: Sequence[str]) -> list[str]:
        """Returns tokenised hypotheses in a reading."""
        if side.metric == "tokenized_bleu":
            return list(hypotheses)
        if side.metric == "compound_split_bleu":
            return list(map(split_compounds, hypotheses))
        return detokenize(hypotheses, self.args.target_lang)

    def metric_line(self, scores: dict, name: str) -> str:
        return f"{super().metric_line(scores, name)}  ({scores['signatures'][name]})"

    def report(self, scores: dict) -> list[str]:
        lines = super().report(scores) + bucket_lines(scores["by_length"], "{} by source length", "bleu")
        return lines + bucket_lines(scores["by_depth"], "{} by depth of the source's tree", "bleu")
