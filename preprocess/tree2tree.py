"""Converts the published programs of Chen et al. (2018) from JSON to bracketed lines.

    python -m preprocess.tree2tree --data DIR --source cs --target js --output DIR [--subset N] [--limit N]

Reads ``preprocessed_progs_{train,valid,test}.json``: lists of objects whose ``source_ast`` and ``target_ast`` are trees
with nodes ``{"root": label, "children": [...]}``. Writes ``OUTPUT/{train,valid,test}.{source,target}``. A blank in a
label becomes ``_``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, read_json_list
from preprocess.logical_forms import Example, shorten, write_splits
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree, tree_from_nested

SPLITS = ("train", "valid", "test")


def tree_of(value: Any) -> Tree:
    """Converts a JSON object to a tree."""
    return tree_from_nested(value, _label_and_children)


def _label_and_children(node: Any) -> tuple[str, list[Any]]:
    if not (isinstance(node, dict) and isinstance(node.get("root"), str) and isinstance(node.get("children"), list)):
        raise CorpusError(f'a node is {{"root": label, "children": [...]}}, not {str(node)[:60]!r}')
    if not node["root"].strip():
        raise CorpusError("a node has an empty label")
    return "_".join(node["root"].split()), node["children"]


def read_programs(path: Path) -> Iterator[Example]:
    """Yields the programs of one file, both sides as bracketed lines."""
    bracket = notation_named("bracket")
    for number, program in enumerate(read_json_list(path), 1):
        try:
            yield Example(*(bracket.write(tree_of(program[side])) for side in ("source_ast", "target_ast")))
        except (CorpusError, KeyError, TypeError) as error:
            raise CorpusError(f"{path}: program {number}: {error}") from error


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of programs of each."""
    splits = {split: list(read_programs(args.data / f"preprocessed_progs_{split}.json")) for split in SPLITS}
    return write_splits(shorten(splits, args.subset, args.limit), args.output, (args.source, args.target))


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
