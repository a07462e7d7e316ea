"""Score the outputs of fairseq-generate: BLEU three ways, by sentence length, against other runs, with signatures.

    python -m tree_fairseq.scoring.translation --run runs/tree_transformer --words words --source-lang en --target-lang de \\
        --sets test=2016 test1=2017 --against runs/transformer --primary sacrebleu_2016 --result result.json

``--run`` is a folder with ``generate-{subset}.txt``; ``--words`` one with the tokenised ``{subset}.{language}`` that the
test sets were made from, and ``raw/{subset}.{target}`` where untokenised references exist (they are detokenised otherwise).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.bleu import Side, bleu_by_length, corpus_bleu, paired_bootstrap, split_compounds
from tree_fairseq.scoring.outputs import detokenize, read_hypotheses, read_text
from tree_fairseq.scoring.runs import add_run_arguments, pairs, score_and_publish


@dataclass(frozen=True)
class ScoreOptions:
    """How a run is scored.

    Attributes:
        words: folder of tokenised sides and ``raw/``.
        languages: source and target.
        sets: subset of the data folder -> label in metric names ("" for none).
        lowercase: compare plain text without case (for lower-cased data).
        compound_split: also score with words split at hyphens.
        length_bounds: longest source length, in words, of each bucket but the last.
        samples: bootstrap resamples.
    """

    words: Path
    languages: tuple[str, str]
    sets: dict[str, str] = field(default_factory=lambda: {"test": ""})
    lowercase: bool = False
    compound_split: bool = False
    length_bounds: tuple[int, ...] = (10, 20, 30, 40, 50)
    samples: int = 1000


class TestSet:
    """One test set in every reading: references of each metric, and how hypotheses are turned into that reading."""

    __test__ = False  # no test of pytest's

    def __init__(self, subset: str, options: ScoreOptions, count: int):
        source, target = options.languages
        self.options = options
        self.suffix = f"_{options.sets[subset]}" if options.sets[subset] else ""
        tokens = read_text(options.words / f"{subset}.{target}", count)
        self.lengths = [len(line.split()) for line in read_text(options.words / f"{subset}.{source}", count)]
        raw = options.words / "raw" / f"{subset}.{target}"
        self.reference = "untokenised" if raw.is_file() else "detokenised"
        plain = read_text(raw, count) if raw.is_file() else detokenize(tokens, target)
        self.sides = [Side("tokenized_bleu", tokens, tokenize="none"), Side("sacrebleu", plain, options.lowercase)]
        if options.compound_split:
            split = [split_compounds(line) for line in tokens]
            self.sides.append(Side("compound_split_bleu", split, tokenize="none"))

    def read(self, side: Side, hypotheses: Sequence[str]) -> list[str]:
        """Tokenised hypotheses as ``side`` reads them."""
        if side.metric == "sacrebleu":
            return detokenize(list(hypotheses), self.options.languages[1])
        if side.metric == "compound_split_bleu":
            return [split_compounds(line) for line in hypotheses]
        return list(hypotheses)


def hypotheses_of(run: Path, subset: str) -> list[str]:
    """The translations of a run. Raises ScoringError where there are none."""
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    return read_hypotheses(path)


def score_run(run: Path, options: ScoreOptions, against: Sequence[Path] = ()) -> dict:
    """Metrics, signatures, scores by length of a run, and its difference from each run of ``against``."""
    scores: dict = {"metrics": {}, "signatures": {}, "references": {}, "by_length": {}, "differences": []}
    for subset in options.sets:
        system = hypotheses_of(run, subset)
        test = TestSet(subset, options, len(system))
        scores["references"][subset] = test.reference
        others = {other.name: hypotheses_of(other, subset) for other in against}
        for side in test.sides:
            name = side.metric + test.suffix
            mine = test.read(side, system)
            scores["metrics"][name], scores["signatures"][name] = corpus_bleu(side, mine)
            if side.metric == "sacrebleu":
                scores["by_length"][name] = bleu_by_length(side, mine, test.lengths, options.length_bounds)
            for other, hypotheses in others.items():
                difference = paired_bootstrap(side, test.read(side, hypotheses), mine, options.samples)
                scores["differences"].append({**difference, "metric": name, "baseline": other})
    return scores


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.2f}  ({scores['signatures'][name]})" for name, value in scores["metrics"].items()]
    for row in scores["differences"]:
        lines.append(
            f"{row['metric']}: {row['difference']:+.2f} over {row['baseline']} "
            f"(p = {row['p_value']:.4f}, paired bootstrap, {row['signature']})"
        )
    for name, rows in scores["by_length"].items():
        parts = (f"{row['from']}-{row['to'] or ''}: {row['bleu']:.2f} ({row['sentences']})" for row in rows)
        lines.append(f"{name} by source length  " + "  ".join(parts))
    return "\n".join(lines)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.scoring.translation", description=__doc__.splitlines()[0]
    )
    add_run_arguments(parser, primary="sacrebleu")
    parser.add_argument("--words", type=Path, required=True, help="folder with the tokenised test sets")
    parser.add_argument("--source-lang", required=True)
    parser.add_argument("--target-lang", required=True)
    parser.add_argument("--lowercase", action="store_true", help="sacreBLEU without case, for lower-cased data")
    parser.add_argument("--compound-split", action="store_true", help="also score with words split at hyphens")
    parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in source words")
    parser.add_argument("--samples", type=int, default=1000, help="of the paired bootstrap")
    parser.add_argument("--attention", type=Path, metavar="DATA", help="measure attention on nodes on this data folder")
    return parser.parse_args(arguments)


def _score(args: argparse.Namespace) -> tuple[dict, None]:
    options = ScoreOptions(
        args.words,
        (args.source_lang, args.target_lang),
        pairs(args.sets),
        args.lowercase,
        args.compound_split,
        tuple(args.length_bounds),
        args.samples,
    )
    scores = score_run(args.run, options, args.against)
    if args.attention is not None:
        from tree_fairseq.scoring.attention_share import measure  # builds the task: only where it is asked for

        scores["attention"] = {subset: measure(args.checkpoint, args.attention, subset) for subset in options.sets}
    return scores, None


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return score_and_publish(args, lambda: _score(args), report)


if __name__ == "__main__":
    sys.exit(main())
