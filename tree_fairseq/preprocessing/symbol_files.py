"""The symbol trees of a command: lines of trees, or of sentences, to lines of symbols, their dictionaries and their
records."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from tree_fairseq.data_bin.grammar import collect_grammar, write_grammar
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SymbolSplitRecord
from tree_fairseq.data_bin.staging import PARSED, Staging
from tree_fairseq.data_bin.symbol_dictionary import build_symbol_dictionary, require_symbols
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.errors import ArityMismatchError, InputError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, SymbolSide
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.symbols import NULL, parents_and_branches, tree_of_forest, unknown_symbol
from tree_fairseq.trees.text import Chunk, TextInput, chunk_lines, inspect_text, read_lines, tokens
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

USUAL_LEVELS = 32
"""Levels that tree positions remember by default (Shiv & Quirk 2019)."""


@dataclass
class SymbolText:
    """One file as lines of symbols.

    Attributes:
        path: the file: one tree a line, symbols separated by blanks
        source: the file that they were made of
        lines: number of lines
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
    """Consecutive lines as symbols."""

    text: str
    lines: int
    counts: Counter[str]
    depth: int
    deepest_line: int


def encode_symbol_text(
    text: TextInput, side: SymbolSide, staging: Staging, name: str, *, pool: ProcessPool, cache: Path
) -> SymbolText:
    """Encodes a file as lines of symbols.

    Args:
        text: trees in the side's notation, or sentences to be parsed
        side: how they are written and encoded
        staging: where the file is written
        name: of this file among those of the command
        pool: processes of the command
        cache: folder of the parse cache

    Raises:
        SymbolTreeError: a line is not a tree; the error names the file and the line
        WorkerDiedError: a process was killed
    """
    result = SymbolText(staging.folder("symbols") / name, text.path)
    if side.options is not None:
        summary = parse_corpus(text.path, staging.folder(f"{PARSED}/{name}"), side.options, pool=pool, cache=cache)
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
            "[trees] %s:%d: a symbol is %d levels below the root; tree positions remember the last --tree-levels %d "
            "steps to it, unless more are asked for in training",
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
    """Returns the number of steps from the root to the symbol that is farthest from it."""
    arities = [side.encoding.split(symbol)[1] for symbol in symbols]
    parents, _ = parents_and_branches(arities, list(map(side.encoding.first_branch, arities)), side.encoding.traversal)
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return max(depths)


def write_known_symbols(text: SymbolText, side: SymbolSide, dictionary: Dictionary, output: Path) -> int:
    """Writes lines of symbols with ``<unk:a>`` in place of those that the dictionary lacks.

    Args:
        text: the symbols
        side: how they were encoded
        dictionary: of symbols
        output: the file to write

    Returns:
        the number of unknown symbols

    Raises:
        ArityMismatchError: the dictionary has no symbol of that arity; the error names the file and the line
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
        hint="Preprocess it together with the training data, or use --binarization lcrs, "
        "where no node has more than two.",
    )


def count_words(path: Path) -> Counter[str]:
    """Counts the words of a text, for a dictionary of words and symbols together."""
    return Counter(word for line in read_lines(path) for word in line.split())


@dataclass
class SymbolFiles:
    """The symbols of all sides and splits, until stock fairseq has binarized them.

    Attributes:
        plan: of the command
        staging: where dictionaries are made
        texts: the lines as symbols, by language and split
        unknown: number of symbols that the dictionary lacks, by language and split
    """

    plan: PreprocessPlan
    staging: Staging
    texts: dict[str, dict[str, SymbolText]]
    unknown: dict[tuple[str, str], int] = field(default_factory=dict)
    _degrees: dict[str, int] = field(default_factory=dict)

    @classmethod
    def encode(
        cls, plan: PreprocessPlan, inputs: Inputs, staging: Staging, cache: Path, pool: ProcessPool
    ) -> SymbolFiles:
        """Reads and encodes all lines of all sides.

        Raises:
            SymbolTreeError: a line is not a tree; the error names the file and the line
        """
        texts = {
            side.lang: {
                split.name: encode_symbol_text(
                    inputs[split.name, side.lang], side, staging, f"{split.name}.{side.lang}", pool=pool, cache=cache
                )
                for split in plan.splits
            }
            for side in plan.symbol_sides
        }
        return cls(plan, staging, texts)

    def write_text(self, leaves: Path) -> dict[str, Any]:
        """Makes dictionaries and writes the lines that stock fairseq is to binarize, ``SPLIT.LANG``, into ``leaves``.

        Returns:
            changes to the arguments of stock fairseq: the dictionaries

        Raises:
            DictionaryMismatchError, ArityMismatchError: a given dictionary does not fit
        """
        args = self.plan.args
        changes = {}
        if args.joined_dictionary and self.texts:
            path = (
                args.srcdict
                or args.tgtdict
                or self._make_dictionary(self.plan.languages, leaves, "joined", args.thresholdsrc, args.nwordssrc)
            )
            changes = {"srcdict": str(path), "tgtdict": None}
            given = dict.fromkeys(self.plan.languages, Path(path))
        else:
            given = {}
            for side in self.plan.symbol_sides:
                is_source = side.side == "source"
                path = args.srcdict if is_source else args.tgtdict
                if not path:
                    limits = (args.thresholdsrc, args.nwordssrc) if is_source else (args.thresholdtgt, args.nwordstgt)
                    path = self._make_dictionary([side.lang], leaves, side.lang, *limits)
                changes["srcdict" if is_source else "tgtdict"] = str(path)
                given[side.lang] = Path(path)
        for side in self.plan.symbol_sides:
            dictionary = Dictionary.load(str(given[side.lang]))
            self._degrees[side.lang] = require_symbols(dictionary, side.encoding, str(given[side.lang]))
            for split, text in self.texts[side.lang].items():
                self.unknown[side.lang, split] = write_known_symbols(
                    text, side, dictionary, leaves / f"{split}.{side.lang}"
                )
        return changes

    def _make_dictionary(self, languages, leaves: Path, name: str, threshold: int, nwords: int) -> Path:
        if not self.plan.args.trainpref:
            raise InputError("--trainpref must be set if the dictionary of a side with trees is not given")
        sides = {side.lang: side for side in self.plan.symbol_sides if side.lang in languages}
        words = [count_words(leaves / f"train.{lang}") for lang in languages if lang not in sides]
        counts = sum((*(self.texts[lang]["train"].counts for lang in sides), *words), Counter())
        # Arities that only other splits have are known, too: their symbols are unknown, not impossible.
        degree = max(text.degree for lang in sides for text in self.texts[lang].values())
        encoding = next(iter(sides.values())).encoding
        dictionary = build_symbol_dictionary(
            counts, encoding, degree, threshold=threshold, nwords=nwords, padding_factor=self.plan.args.padding_factor
        )
        path = self.staging.folder("symbols") / f"dict.{name}.txt"
        dictionary.save(str(path))
        return path

    def enter(self, manifest: Manifest, output: Path, leaves: Path) -> None:
        """Writes what lies beside the token files, and enters everything into the manifest.

        Args:
            manifest: with the entries of the sides and of the token files
            output: folder of the token files
            leaves: folder of the lines that they were made of
        """
        for side in self.plan.symbol_sides:
            record = manifest.symbols[side.lang]
            record.degree = self._degrees[side.lang]
            if side.side == "target" and "train" in self.texts[side.lang]:
                record.grammar = f"grammar.{side.lang}.txt"
                lines = map(tokens, read_lines(leaves / f"train.{side.lang}"))
                write_grammar(output / record.grammar, collect_grammar(lines, side.encoding))
                manifest.enter_files([output / record.grammar])
            for split in self.plan.written_splits:
                text = self.texts[side.lang][split]
                prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, side.lang)
                record.splits[split] = SymbolSplitRecord(
                    prefix,
                    text.lines,
                    text.symbols,
                    text.depth,
                    self.unknown[side.lang, split],
                    token_file_names(output / prefix, found_impl(output / prefix)),
                )
