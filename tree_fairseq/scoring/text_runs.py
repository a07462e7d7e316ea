"""Runs of translation models, by sacreBLEU's metrics, and of summarisers, by ROUGE.

    tree-fairseq score bleu --run runs/tree_transformer --words words --source-lang en --target-lang de \\
        --sets test=2016 test1=2017 --against runs/transformer --primary sacrebleu_2016 --result result.json

* ``tokenized_bleu``: on the tokens of the data set (Moses), as papers of 2014-2020 report it; comparable only if
  the tokens are the same.
* ``compound_split_bleu``: the same with words split at hyphens, as WMT'14 English-German is reported since 2017.
* ``sacrebleu``: BLEU with sacreBLEU's own tokenisation on plain text; the number to compare. It is also computed by the
  length of the source and, with ``--source-trees``, by the depth of its tree.
* ``chrf`` and ``ter``: chrF2 (Popović 2015) and translation edit rate (Snover et al. 2006) of the same plain text.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.frame import depth_of
from tree_fairseq.scoring.measures import ROUGES, Measure, TextMeasure, text_metric
from tree_fairseq.scoring.outputs import detokenize, read_hypotheses, read_reference_lines, read_text
from tree_fairseq.scoring.runs import RunSet, generated
from tree_fairseq.scoring.significance import BOOTSTRAP, RANDOMIZATION, Resampling

_COMPOUND = re.compile(r"(?<=\S)-(?=\S)")


def split_compounds(line: str) -> str:
    """Splits ``well-known`` into three tokens, ``well ##AT##-##AT## known``, as Vaswani et al. (2017) do."""
    return _COMPOUND.sub(" ##AT##-##AT## ", line)


class TranslationSet(RunSet):
    """Scores translations: BLEU in three readings, chrF, TER; by length and depth, against other runs."""

    name, primary, in_parts = "bleu", "sacrebleu", ("sacrebleu",)

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.test = Resampling(BOOTSTRAP, args.samples)
        self.tokens = read_reference_lines(args.words / f"{subset}.{args.target_lang}")
        self.count = len(self.tokens)
        raw = args.words / "raw" / f"{subset}.{args.target_lang}"
        self.is_raw = raw.is_file()
        self.plain = read_text(raw, self.count) if self.is_raw else detokenize(self.tokens, args.target_lang)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        words = (
            "folder with the tokenised {subset}.{language}, and with untokenised references in raw/ if there are any"
        )
        parser.add_argument("--words", type=Path, required=True, help=words)
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

    def measures(self, system: Path) -> dict[str, Measure]:
        tokens = read_hypotheses(generated(system, self.subset), self.count)
        plain = detokenize(tokens, self.args.target_lang)
        found = {"tokenized_bleu": self._bleu("tokenized_bleu", self.tokens, tokens)}
        for name, metric in (("sacrebleu", "bleu"), ("chrf", "chrf"), ("ter", "ter")):
            found[name] = TextMeasure(name, text_metric(metric, self.args.lowercase), [self.plain], plain)
        if self.args.compound_split:
            sides = [list(map(split_compounds, lines)) for lines in (self.tokens, tokens)]
            found["compound_split_bleu"] = self._bleu("compound_split_bleu", *sides)
        return found

    @staticmethod
    def _bleu(name: str, references: Sequence[str], hypotheses: Sequence[str]) -> TextMeasure:
        return TextMeasure(name, text_metric("bleu", tokenize="none"), [references], hypotheses)

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        args = self.args
        sources = read_text(args.words / f"{self.subset}.{args.source_lang}", self.count)
        parts = {"by_length": ([len(line.split()) for line in sources], args.length_bounds)}
        if args.source_trees is not None:
            depths = list(map(depth_of, export_forests(args.source_trees, args.source_lang, self.subset)))
            if len(depths) != self.count:
                problem = f"has {len(depths)} trees of {self.subset}, the references are {self.count}"
                raise ScoringError(f"{args.source_trees} {problem}")
            parts["by_depth"] = (depths, args.depth_bounds)
        return parts

    def details(self, system: dict[str, Measure]) -> dict[str, Any]:
        return {"references": "untokenised" if self.is_raw else "detokenised"}


class SummarySet(RunSet):
    """Scores summaries: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), by the library rouge-score or by pltrdy's rouge."""

    name, primary, test = "rouge", "rouge1", Resampling(RANDOMIZATION, samples=2000)

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.references = read_reference_lines(args.references / f"{subset}.{args.target_lang}")
        self.count = len(self.references)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--references", type=Path, required=True, help="folder with the summaries of the data")
        parser.add_argument("--target-lang", required=True, help="suffix of their files")
        libraries = "pltrdy: by pltrdy's rouge, as the paper of Treeformer has it (default: rouge, by rouge-score)"
        parser.add_argument("--metrics", nargs="+", choices=ROUGES, default=["rouge"], help=libraries)

    def measures(self, system: Path) -> dict[str, Measure]:
        summaries = read_hypotheses(generated(system, self.subset), self.count)
        return {name: ROUGES[name](self.references, summaries) for name in self.args.metrics}
