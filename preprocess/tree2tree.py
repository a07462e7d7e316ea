"""Converts the published programs of Chen et al. (2018) from JSON to bracketed lines.

    python -m preprocess.tree2tree --data DIR --source cs --target js --output DIR [--subset N] [--limit N]

Reads ``preprocessed_progs_{train,valid,test}.json``: lists of objects whose ``source_ast`` and ``target_ast`` are trees
with nodes ``{"root": label, "children": [...]}``. Writes ``OUTPUT/{train,valid,test}.{source,target}``. A blank in a
label becomes ``_``.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, Pair, read_json_list, sample, write_columns
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

SPLITS = ("train", "valid", "test")


def tree_of(value: Any) -> Tree:
    """Converts a JSON object to a tree."""
    nodes, stack = [], [value]
    while stack:
        node = stack.pop()
        if not (
            isinstance(node, dict) and isinstance(node.get("root"), str) and isinstance(node.get("children"), list)
        ):
            raise CorpusError(f'a node is {{"root": label, "children": [...]}}, not {str(node)[:60]!r}')
        if not node["root"].strip():
            raise CorpusError("a node has an empty label")
        nodes.append(node)
        stack.extend(node["children"])
    trees: dict[int, Tree] = {}
    for node in reversed(nodes):
        trees[id(node)] = Tree("_".join(node["root"].split()), [trees[id(child)] for child in node["children"]])
    return trees[id(value)]


def read_programs(path: Path) -> Iterator[Pair]:
    """Yields the programs of one file, both sides as bracketed lines."""
    bracket = notation_named("bracket")
    for number, program in enumerate(read_json_list(path), 1):
        try:
            yield bracket.write(tree_of(program["source_ast"])), bracket.write(tree_of(program["target_ast"]))
        except (CorpusError, KeyError, TypeError) as error:
            raise CorpusError(f"{path}: program {number}: {error}") from error


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of programs of each."""
    splits = {
        split: list(itertools.islice(read_programs(args.data / f"preprocessed_progs_{split}.json"), args.limit))
        for split in SPLITS
    }
    if args.subset is not None:
        splits["train"] = sample(splits["train"], args.subset)
    if empty := [split for split, programs in splits.items() if not programs]:
        raise CorpusError(f"{empty[0]} is empty")
    return {
        split: write_columns(args.output / split, (args.source, args.target), programs)
        for split, programs in splits.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.tree2tree", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of preprocessed_progs_{train,valid,test}.json")
    parser.add_argument("--source", required=True, help="suffix of source_ast")
    parser.add_argument("--target", required=True, help="suffix of target_ast")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--subset", type=int, help="train on a random sample of that many programs")
    parser.add_argument("--limit", type=int, help="only the first programs of every split")
    args = parser.parse_args(arguments)
    return prepare_data_set("tree2tree", "programs", lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
