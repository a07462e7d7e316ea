"""Parses a text file, one sentence (or several) a line, into bracketed trees, one forest a line.

tree-fairseq parse train.en train.brackets --tree-parser stanza --tree-lang en --workers 4
torchrun --nproc-per-node 4 -m tree_fairseq.commands.parse train.en train.brackets --tree-parser stanza
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing.corpus import SHARD_LINES, parse_corpus
from tree_fairseq.parsing.parsers import add_parser_arguments, options_from_arguments
from tree_fairseq.parsing.shards import join_shards

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns exit status 1 if the text cannot be parsed."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq parse",
        description="Parses a text file, one sentence (or several) a line, into bracketed trees, one forest a line. "
        "The same command continues a run that was interrupted. Under torchrun the ranks share the shards and rank 0 "
        "joins them; all ranks have to see the same folders.",
    )
    add = parser.add_argument
    add("input", help="text file, UTF-8, tokenised (split into subwords or not) unless --tree-tokenize stanza is given")
    add("output", help="file for the forests")
    add("--shards-dir", metavar="DIR", help="folder for the shards (default: OUTPUT.shards)")
    add("--shard-lines", type=int, default=SHARD_LINES, metavar="N", help="lines of a shard (default: %(default)s)")
    workers_help = "parsing processes where there is no GPU, each with one thread (default: 1)"
    add("--workers", type=int, default=1, metavar="N", help=workers_help)
    add("--no-progress-bar", action="store_true", help="show log lines only")
    add_parser_arguments(parser.add_argument_group("trees"))
    args = parser.parse_args(arguments)
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    output = Path(args.output)
    try:
        summary = parse_corpus(
            args.input,
            Path(args.shards_dir or f"{output}.shards"),
            options_from_arguments(args),
            workers=args.workers,
            shard_lines=args.shard_lines,
            cache=args.parse_cache,
            progress=not args.no_progress_bar,
            rank=rank,
            world_size=world_size,
        )
        if rank == 0:
            join_shards(summary.shards, output)
            speed = summary.sentences_per_second
            logger.info("%s: %d lines written, %.0f sentences per second", output, summary.lines, speed)
    except (TreeFairseqError, OSError, ValueError) as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    # torchrun or fairseq may have set a handler up already, which shows warnings only.
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s | %(levelname)s | %(name)s | %(message)s", stream=sys.stderr, force=True
    )
    sys.exit(main())
