"""Induces trees with a Treeformer, and scores them against gold trees.

    tree-fairseq induce data-bin --path checkpoint.pt --gen-subset test > test.trees
    tree-fairseq induce data-bin --path checkpoint.pt --gold gum/dev.mrg > dev.trees
    tree-fairseq induce data-bin --path checkpoint.pt --input text --output text.trees

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

from fairseq.dataclass.configs import GenerationConfig

from tree_fairseq.commands.checkpoints import load_models, parse_flags
from tree_fairseq.errors import InputError, ScoringError
from tree_fairseq.scoring.bracket_f1 import compare, table
from tree_fairseq.support.files import require_folders
from tree_fairseq.support.options import command, refuse_unread
from tree_fairseq.treeformer.induction import Inducer
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.subwords import join_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import forest_leaves
from tree_fairseq.trees.treebanks import read_sentences

logger = logging.getLogger(__name__)


def _add_flags(parser: argparse.ArgumentParser) -> list[str]:
    parser.prog, parser.description = "tree-fairseq induce", __doc__.splitlines()[0]
    add = parser.add_argument_group("Induced trees (--input FILE reads raw text instead of --gen-subset)").add_argument
    gold = "bracketed gold trees of the sentences, for F1; without --gen-subset and --input, their words are read"
    own = [
        add("--output", type=Path, metavar="FILE", help="where to write the trees (default: standard output)"),
        add("--gold", type=Path, metavar="FILE", help=gold),
    ]
    return [action.dest for action in own]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    args, overrides = parse_flags(_add_flags, arguments)
    unread = dict.fromkeys(
        (*GenerationConfig.__dataclass_fields__, "buffer_size"), "trees are induced without a search"
    )
    refuse_unread(args.given, unread)
    if {"gen_subset", "input"} <= args.given:
        raise InputError("--gen-subset and --input are two texts: leave one of them out")
    if args.path is None:
        raise InputError("--path CHECKPOINT is missing")
    require_folders(args.output)
    gold = None
    if args.gold is not None:
        lines = enumerate(read_lines(args.gold), start=1)
        gold = [read_sentences(line, args.gold, number) for number, line in lines]
    inducer = Inducer(load_models(args.path, args.data, args, overrides))
    if args.input != "-":
        inducer.read_text(list(read_lines(args.input)))
    elif gold is not None and "gen_subset" not in args.given:
        inducer.read_text([" ".join(forest_leaves(forest)) for forest in gold])
    else:
        inducer.read_subset(args.gen_subset)
    if gold is not None:
        if len(gold) != len(inducer.tokens):
            raise ScoringError(f"{args.gold} has {len(gold)} lines, but there are {len(inducer.tokens)} sentences")
        for number, forest in enumerate(gold):
            size, words = len(forest_leaves(forest)), len(inducer.words(number).words)
            if size != words:
                raise ScoringError(f"{args.gold}:{number + 1}: the tree has {size} words, but the sentence has {words}")
    trees = inducer.trees()
    if missing := sum(forest is None for forest in trees):
        logger.warning("%d of %d sentences are too long for a tree; their lines are blank", missing, len(trees))
    text = "".join(f"{write_forest(forest or ())}\n" for forest in trees)
    if args.output is None:
        sys.stdout.write(text)
    else:
        args.output.write_bytes(text.encode())
    if gold is not None:
        scores = compare(gold, [None if forest is None else join_words(forest) for forest in trees])
        logger.info("%s", table(scores))
