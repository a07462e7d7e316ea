"""Induces trees with a Treeformer, scores them against gold trees and draws them.

    tree-fairseq induce data-bin --path checkpoint.pt --gen-subset test > test.trees
    tree-fairseq induce data-bin --path checkpoint.pt --gold gum/dev.mrg > dev.trees
    tree-fairseq induce data-bin --path checkpoint.pt --input text --draw pictures

Every phrase, from the sentence down, is split at the point with the greatest pooling weight (Patel & Flanigan, section
6.6), also phrases longer than the trained chart, because the recurrence is the same for all lengths. The output has one
tree per line, in the order of the input, and a blank line for a blank line; ``--output FILE`` writes it to a file.
``--gold`` without ``--gen-subset`` and ``--input`` reads the words of the gold trees. The flags are those of
``fairseq-generate`` and a few more.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import tree_fairseq
from tree_fairseq.drawing.figure_files import new_figure, write_figure
from tree_fairseq.drawing.phrase_map import draw_phrase_map
from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.bracket_f1 import compare, table
from tree_fairseq.support.options import command
from tree_fairseq.treeformer.induction import Inducer, attended_phrases
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.subwords import join_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Forest, forest_leaves

logger = logging.getLogger(__name__)

_SENTENCES_DRAWN, _PHRASES_DRAWN = 20, 4


def draw(inducer: Inducer, trees: Sequence[Forest | None], folder: Path) -> None:
    """Translates the first 20 sentences and draws the tree and the attention of each.

    Writes ``tree-NUMBER.svg``, and ``attention-NUMBER`` as ``.svg`` and ``.png``.
    """
    pictures = {
        f"tree-{number}": tree_to_svg(forest) for number, forest in enumerate(trees[:_SENTENCES_DRAWN]) if forest
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (folder / f"{name}.svg").write_bytes(picture.encode())
    target_dictionary = inducer.task.target_dictionary
    for number, source, target in inducer.translations(_SENTENCES_DRAWN):
        attended = attended_phrases(inducer.models, source, target, target_dictionary.eos(), _PHRASES_DRAWN)
        written = [target_dictionary[token] for token in target.tolist()]
        title = f"Phrases of sentence {number} that its translation attends to"
        figure = draw_phrase_map([*inducer.tokens[number], "</s>"], written, attended, title)
        write_figure(figure, folder / f"attention-{number}", title)


def _check_gold(gold: Sequence[Forest], inducer: Inducer, path: Path) -> None:
    if len(gold) != len(inducer.tokens):
        raise ScoringError(f"{path} has {len(gold)} lines, but there are {len(inducer.tokens)} sentences")
    for number, forest in enumerate(gold):
        size, words = len(forest_leaves(forest)), len(inducer.words(number).words)
        if size != words:
            raise ScoringError(f"{path}:{number + 1}: the tree has {size} words, but the sentence has {words}")


def _run(args: argparse.Namespace, inducer: Inducer, gold: Sequence[Forest] | None) -> None:
    """Writes the trees, and the pictures and scores if wanted."""
    trees = inducer.trees()
    if missing := sum(forest is None for forest in trees):
        logger.warning("%d of %d sentences are too long for a tree; their lines are blank", missing, len(trees))
    text = "".join(f"{write_forest(forest or ())}\n" for forest in trees)
    if args.output is None:
        sys.stdout.write(text)
    else:
        args.output.write_bytes(text.encode())
    if args.draw is not None:
        draw(inducer, trees, args.draw)
    if gold is not None:
        scores = compare(gold, [None if forest is None else join_words(forest) for forest in trees])
        logger.info("%s", table(scores))


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    tree_fairseq.register()
    parser = options.get_interactive_generation_parser()
    parser.prog, parser.description = "tree-fairseq induce", __doc__.splitlines()[0]
    add = parser.add_argument_group("Induced trees (--input FILE reads raw text instead of --gen-subset)").add_argument
    add("--output", type=Path, metavar="FILE", help="where to write the trees (default: standard output)")
    gold = "bracketed gold trees of the sentences, for F1; without --gen-subset and --input, their words are read"
    add("--gold", type=Path, metavar="FILE", help=gold)
    drawn = f"draw the first {_SENTENCES_DRAWN} trees, and the phrases that translations attend to"
    add("--draw", type=Path, metavar="DIR", help=drawn)
    parser.set_defaults(gen_subset=None)
    args = options.parse_args_and_arch(parser, input_args=arguments)
    if args.path is None:
        parser.error("--path CHECKPOINT is missing")
    reads_gold = args.gold is not None and args.gen_subset is None and args.input == "-"
    args.gen_subset = args.gen_subset or "test"
    if args.output is not None and not args.output.parent.is_dir():
        parser.error(f"{args.output}: the folder {args.output.parent} does not exist")
    if args.draw is not None:
        # Without matplotlib the command ends now, and not after its work.
        new_figure(1, 1)
    gold = None
    if args.gold is not None:
        lines = enumerate(read_lines(args.gold), start=1)
        gold = [read_forest(line, path=args.gold, line_number=number) for number, line in lines]
    inducer = Inducer(convert_namespace_to_omegaconf(args))
    if reads_gold:
        inducer.read_text([" ".join(forest_leaves(forest)) for forest in gold])
    elif args.input != "-":
        inducer.read_text(list(read_lines(args.input)))
    else:
        inducer.read_subset()
    if gold is not None:
        _check_gold(gold, inducer, args.gold)
    _run(args, inducer, gold)
