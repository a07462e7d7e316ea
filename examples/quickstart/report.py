"""What the quickstart shows at its end: BLEU of both models, three translations, a parse and learning curves."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from examples.lib.figure_files import write_figure
from examples.lib.learning_curves import draw_curves, read_curves
from preprocess.own_text import SPLITS
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.scoring.measures import TextMeasure, text_metric
from tree_fairseq.scoring.outputs import detokenize, read_hypotheses, read_text
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.support.files import write_json
from tree_fairseq.support.logs import log_to_standard_error
from tree_fairseq.trees.subwords import join_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree

SYSTEMS = {"tree_transformer": "Tree-Transformer", "transformer": "transformer"}


def references(words: Path, target: str, count: int) -> list[str]:
    """The test set's target side as plain text: untokenised where we have it, detokenised otherwise."""
    raw = words / "raw" / f"test.{target}"
    return read_text(raw, count) if raw.exists() else detokenize(read_text(words / f"test.{target}", count), target)


def chosen_lines(source: list[str], count: int = 3, lengths: range = range(8, 19)) -> list[int]:
    """Lines to show: the first that are neither short nor long, and the first of all where there are too few."""
    fitting = [index for index, line in enumerate(source) if len(line.split()) in lengths]
    return (fitting + [index for index in range(len(source)) if index not in fitting])[:count]


def draw(folder: Path, source: str, line: int, path: Path) -> None:
    """Write the picture of the parse of one test line: the tree that the model read, its subwords joined."""
    forest: tuple[Tree, ...] = next(islice(export_forests(folder, source, "test"), line, None))
    words = join_words(forest)
    path.write_text(
        tree_to_svg(words, title=" ".join(leaf for tree in words for leaf in tree.leaves())), encoding="utf-8"
    )


def report(out: Path, source: str, target: str) -> dict:
    """Score, print, draw and write ``result.json``; returns what that file holds."""
    lines = list(read_lines(out / "words" / f"test.{source}"))
    written = {name: read_hypotheses(out / name / "generate-test.txt", len(lines)) for name in SYSTEMS}
    outputs = {name: detokenize(own, target) for name, own in written.items()}
    right = references(out / "words", target, len(lines))
    measures = {name: TextMeasure("bleu", text_metric("bleu"), [right], outputs[name]) for name in SYSTEMS}
    scores = {name: measure.metrics(range(len(lines)))["bleu"] for name, measure in measures.items()}
    signature = measures["transformer"].signatures["bleu"]
    print("\nBLEU on the test set, both models trained for equally many updates on the same folder")
    for name, title in SYSTEMS.items():
        print(f"  {title:<18}{scores[name]:6.2f}   {signature}")
    bootstrap = measures["tree_transformer"].differences(measures["transformer"], Resampling())["bleu"]
    p_value = f"p = {bootstrap['p_value']:.3f}"
    print(f"  {'difference':<18}{bootstrap['difference']:+6.2f}   {p_value}, {bootstrap['signature']}")

    plain = detokenize(lines, source)
    shown = chosen_lines(lines)
    for line in shown:
        print(f"\n  source            {plain[line]}\n  reference         {right[line]}")
        for name, title in SYSTEMS.items():
            print(f"  {title:<18}{outputs[name][line]}")
    picture = out / "parse.svg"
    draw(out / "data-bin", source, shown[0], picture)
    print(f'\nthe parse of "{plain[shown[0]]}": {picture}')
    runs = [read_curves(out / "logs" / f"{name}.log", title) for name, title in SYSTEMS.items()]
    curves = write_figure(draw_curves(runs, ["loss"]), out / "learning_curves", "learning curves of both models")
    print(f"the learning curves of both models: {curves[0]} and {curves[1].name}")
    result = {
        "metric": "sacrebleu",
        "score": scores["tree_transformer"],
        "sacrebleu": scores["tree_transformer"],
        "sacrebleu_transformer": scores["transformer"],
        "signature": signature,
        "difference": bootstrap,
        "picture": str(picture),
        "learning_curves": str(curves[0]),
        "pairs": {split: len((out / "words" / f"{split}.{source}").read_bytes().splitlines()) for split in SPLITS},
    }
    write_json(out / "result.json", result)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder that run.sh wrote")
    parser.add_argument("--source", required=True, help="source language")
    parser.add_argument("--target", required=True, help="target language")
    options = parser.parse_args(arguments)
    log_to_standard_error()
    report(options.out, options.source, options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
