"""Lines of trees, or of sentences, to lines of symbols, a chunk of lines at a time and in several processes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fairseq.data import Dictionary

from tree_fairseq.data_bin.inputs import Chunk, TextInput, chunk_lines, inspect_text
from tree_fairseq.data_bin.staging import PARSED, Staging
from tree_fairseq.data_bin.symbol_sides import SymbolSide, tree_of_forest
from tree_fairseq.errors import ArityMismatchError, InputError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.symbols import NULL, parents_and_branches, unknown_symbol
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

USUAL_LEVELS = 32
"""Levels that tree positions remember where nothing else is asked for (Shiv & Quirk 2019)."""


@dataclass
class SymbolText:
    """The lines of one file as symbols.

    Attributes:
        path: their file: one tree a line, symbols separated by blanks
        source: the file that they were made of
        lines: how many
        counts: how often each symbol occurs
        degree: the largest number of branches of a node
        depth: of the deepest tree in the form that was encoded
        deepest_line: number of its line, from 1
    """

    path: Path
    source: Path
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    degree: int = 0
    depth: int = -1
    deepest_line: int = 0

    @property
    def symbols(self) -> int:
        """Number of symbols of all lines."""
        return self.counts.total()


@dataclass
class _ChunkSymbols:
    """What a worker process makes of consecutive lines."""

    text: str
    lines: int
    counts: Counter[str]
    depth: int
    deepest_line: int


def encode_symbol_text(
    text: TextInput, side: SymbolSide, staging: Staging, name: str, *, pool: ProcessPool, cache: Path
) -> SymbolText:
    """Turns a file into a file of symbols.

    Args:
        text: trees in the side's notation, or sentences to be parsed
        side: how they are written and encoded
        staging: where the file is written
        name: of this file among those of the command
        pool: of processes
        cache: folder of the parse cache

    Raises:
        SymbolTreeError: a line is no tree; it names the file and the line
        WorkerDiedError: a process was killed
    """
    result = SymbolText(staging.folder("symbols") / name, text.path)
    if side.options is not None:
        summary = parse_corpus(
            text.path, staging.folder(f"{PARSED}/{name}"), side.options, pool=pool, cache=cache
        )
        # Shards are made of as many lines as chunks are, and their lines are our own writing.
        pieces = [
            (inspected.path, chunk) for inspected in map(inspect_text, summary.shards) for chunk in inspected.chunks
        ]
    else:
        pieces = [(text.path, chunk) for chunk in text.chunks]
    with open(result.path, "w", encoding="utf-8", newline="\n") as file:
        encode = partial(_encode_chunk, side)
        for encoded in pool.map(encode, pieces, f"encoded {text.path}"):
            file.write(encoded.text)
            if encoded.depth > result.depth:
                result.depth, result.deepest_line = encoded.depth, result.lines + encoded.deepest_line
            result.lines += encoded.lines
            result.counts += encoded.counts
    arities = (side.encoding.split(symbol)[1] for symbol in result.counts)
    result.degree = 2 if side.encoding.binarization == "lcrs" else max(arities, default=0)
    logger.info(
        "[trees] %s: %d trees, %d symbols of %d types, depth at most %d",
        text.path,
        result.lines,
        result.symbols,
        len(result.counts),
        result.depth,
    )
    if result.depth > USUAL_LEVELS:
        logger.warning(
            "[trees] %s:%d: a symbol stands %d levels below the root; tree positions remember the last --tree-levels %d steps to it, "
            "unless more are asked for in training",
            text.path,
            result.deepest_line,
            result.depth,
            USUAL_LEVELS,
        )
    return result


def _encode_chunk(side: SymbolSide, piece: tuple[Path, Chunk]) -> _ChunkSymbols:
    path, chunk = piece
    lines, counts, depths = [], Counter(), []
    for number, line in chunk_lines(path, chunk):
        tree = _read_tree(line, side, path, number)
        try:
            symbols = side.encoding.encode(tree)
        except InputError as error:
            raise error.at(path, number) from None
        lines.append(" ".join(symbols) + "\n")
        counts.update(symbols)
        depths.append(_depth(symbols, side))
    return _ChunkSymbols("".join(lines), len(lines), counts, max(depths), depths.index(max(depths)) + 1)


def _read_tree(line: str, side: SymbolSide, path: Path, number: int) -> Tree:
    if side.options is None:
        return side.reader.read(line, path=path, line_number=number)
    try:
        return tree_of_forest(read_forest(line, path=path, line_number=number))
    except InputError as error:
        raise error.at(path, number) from None


def _depth(symbols: list[str], side: SymbolSide) -> int:
    """Steps from the root to the symbol that is farthest from it."""
    arities = [side.encoding.split(symbol)[1] for symbol in symbols]
    parents, _ = parents_and_branches(arities, list(map(side.encoding.first_branch, arities)), side.encoding.traversal)
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return max(depths)


def write_known_symbols(text: SymbolText, side: SymbolSide, dictionary: Dictionary, output: Path) -> int:
    """Writes lines of symbols with ``<unk:a>`` in the place of those that the dictionary does not have.

    Args:
        text: the symbols
        side: how they were encoded
        dictionary: of symbols
        output: the file to write

    Returns:
        how many symbols were unknown

    Raises:
        ArityMismatchError: a symbol has an arity that the dictionary does not know; it names the file and the line
    """
    known = {
        symbol: symbol if symbol in dictionary else unknown_symbol(side.encoding.split(symbol)[1])
        for symbol in text.counts
    }
    strange = {symbol for symbol, replaced in known.items() if replaced not in dictionary}
    with open(output, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(read_lines(text.path), start=1):
            symbols = line.split(" ")
            if strange and (found := strange.intersection(symbols)):
                _refuse_arity(min(found), text, side, number)
            file.write(" ".join(map(known.__getitem__, symbols)) + "\n")
    unknown = Counter(
        {symbol: text.counts[symbol] for symbol, replaced in known.items() if replaced != symbol and symbol != NULL}
    )
    if unknown:
        most = ", ".join(f"{symbol} ({count})" for symbol, count in unknown.most_common(10))
        logger.warning(
            "[trees] %s: %d symbols are not in the dictionary and become %s, ...: %s",
            text.source,
            unknown.total(),
            unknown_symbol(0),
            most,
        )
    return unknown.total()


def _refuse_arity(symbol: str, text: SymbolText, side: SymbolSide, number: int) -> None:
    label, arity = side.encoding.split(symbol)
    raise ArityMismatchError(
        f"{label!r} has {arity} children here, more than any node of the dictionary",
        text.source,
        number,
        hint="Preprocess it together with the training data, or use --binarization lcrs, where no node has more than two.",
    )


def count_words(path: Path) -> Counter[str]:
    """How often each word of a text occurs, for a dictionary of words and symbols together."""
    return Counter(word for line in read_lines(path) for word in line.split())


def merged_counts(counters: Iterable[Counter[str]]) -> Counter[str]:
    """The sum of counts."""
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total
