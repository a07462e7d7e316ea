"""Splits aligned trees by size: trains on pairs up to a number of nodes or a depth, and tests on larger ones, too.

    python -m preprocess.larger_tests --text DIR --source for --target lam --nodes 30 --set test1

The pairs of train, valid and test that are larger on either side become the test set ``--set``, those of test first.
They leave the other splits. ``{split}.{source}`` and ``{split}.{target}`` have a bracketed tree on each line, and
all files of a split, such as ``test.raw.for``, are split in the same way.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, parallel, read_lines, write_lines
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

SPLITS = ("test", "valid", "train")
LIMIT = 2000
"""Larger pairs that are tested."""


def nodes_and_depth(tree: Tree) -> tuple[int, int]:
    """Returns the number of nodes, words included, and the depth in edges."""
    return sum(1 for _ in tree.preorder()), tree.height()


def is_larger(pair: tuple[str, str], nodes: int | None, depth: int | None) -> bool:
    """Returns whether a tree of a pair, in brackets, has more nodes or a larger depth. None is not checked."""
    for side in pair:
        found = nodes_and_depth(notation_named("bracket").read(side))
        if any(bound is not None and size > bound for size, bound in zip(found, (nodes, depth))):
            return True
    return False


def split_by_size(
    folder: Path, sides: tuple[str, str], nodes: int | None, depth: int | None, name: str, limit: int = LIMIT
) -> dict[str, int]:
    """Splits the files of a folder in place; returns the number of pairs of each split.

    Args:
        sides: suffixes of the trees
        nodes, depth: the largest numbers to train on; None sets no limit
        name: of the test set of larger pairs
        limit: its largest number of pairs, beginning with those of test

    Raises:
        CorpusError: files of a split have different numbers of lines, or a split would be empty
    """
    kept: dict[Path, list[str]] = {}
    larger: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    found = 0
    for split in SPLITS:
        files = {path.name[len(split) + 1 :]: list(read_lines(path)) for path in sorted(folder.glob(f"{split}.*"))}
        if not {*sides} <= {*files}:
            raise CorpusError(f"{folder}: {split}.{sides[0]} and {split}.{sides[1]} are needed")
        if len({len(lines) for lines in files.values()}) > 1:
            raise CorpusError(f"{folder}: the files of {split} have different numbers of lines")
        pairs = list(parallel(files[sides[0]], files[sides[1]], sides))
        is_out = [is_larger(pair, nodes, depth) for pair in pairs]
        counts[split] = is_out.count(False)
        if not counts[split]:
            raise CorpusError(f"no pair of {split} is so small: raise the bounds")
        for suffix, lines in files.items():
            kept[folder / f"{split}.{suffix}"] = [line for line, out in zip(lines, is_out) if not out]
            larger.setdefault(suffix, []).extend(line for line, out in zip(lines, is_out) if out)
        found += is_out.count(True)
    if not found:
        raise CorpusError("no pair is larger: lower the bounds")
    for path, lines in kept.items():
        write_lines(path, lines)
    for suffix, lines in larger.items():
        # A file that only some splits have, such as groups, has no line for each pair.
        if len(lines) == found:
            counts[name] = write_lines(folder / f"{name}.{suffix}", lines[:limit])
    logger.info("%d of %d larger pairs are tested", counts[name], found)
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.larger_tests", description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="folder of the aligned trees, which is changed")
    parser.add_argument("--source", required=True, help="suffix of the source trees")
    parser.add_argument("--target", required=True, help="suffix of the target trees")
    parser.add_argument("--nodes", type=int, help="train on pairs whose trees have at most that many nodes")
    parser.add_argument("--depth", type=int, help="train on pairs whose trees have at most that depth, in edges")
    parser.add_argument("--set", required=True, help="name of the test set of larger pairs")
    args = parser.parse_args(arguments)
    if args.nodes is None and args.depth is None:
        parser.error("give --nodes, --depth or both")
    sides = (args.source, args.target)
    return prepare_data_set(
        "larger_tests", str(args.text), lambda: split_by_size(args.text, sides, args.nodes, args.depth, args.set)
    )


if __name__ == "__main__":
    raise SystemExit(main())
