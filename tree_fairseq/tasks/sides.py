"""The sides of a pair of texts: each is a sequence, constituency trees over a sequence, or symbol trees.

A side checks its files, reads its trees, and encodes new lines exactly as the training data was encoded.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.data_bin.text_record import with_folder_model
from tree_fairseq.data_bin.token_files import joined, side_prefixes
from tree_fairseq.data_bin.tree_store import TreeStore, load_label_dictionary
from tree_fairseq.errors import ArityMismatchError, MissingTreesError, OutsideTreeError
from tree_fairseq.nn.modalities import CONSTITUENCY, SEQUENCE, SYMBOLS, Side
from tree_fairseq.nn.tree_batch import TreeReader, as_stored
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.trust import PARSE_NEW_TEXT, options_for_new_text
from tree_fairseq.tasks.pair_dataset import NewLines, first_line_of
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.symbols import tree_of_forest
from tree_fairseq.trees.tree import Forest, Tree

Encode = Callable[[str], str]  # tokeniser and subword segmentation of a line


class TaskSide(Side):
    """A side of a folder of data. This one is a sequence; others are subclasses."""

    options: Optional[ParserOptions] = None  # that of the parser of new lines, if they are parsed

    def forests(self, lines: list[str], encode_fn: Encode) -> list[Forest]:
        """Returns the trees of new lines; a sequence has none."""
        return [() for _ in lines]


class ParsedSide(TaskSide):
    """A side with trees. The options of its record say how lines were parsed; without options, the lines were trees."""

    def __init__(self, cfg, folder: Path, lang: str, record: Any, **side: Any):
        super().__init__(**side)
        self.cfg, self.folder, self.lang, self.record = cfg, folder, lang, record
        self.options = record.options

    @functools.cached_property
    def line_parser(self) -> LineParser:
        """Parses new text exactly as the training data was parsed."""
        options = with_folder_model(self.record.options, self.folder, self.lang)
        return LineParser(options_for_new_text(options, self.folder, self.cfg))

    def forests(self, lines: list[str], encode_fn: Encode) -> list[Forest]:
        """Parses new lines; ``encode_fn`` is applied to text, not to bracketed trees."""
        first = first_line_of(lines)
        if self.line_parser.wants_encoded_text:
            lines = [encode_fn(line) for line in lines]
        try:
            return [line.forest for line in self.line_parser.parse_lines(lines, first)]
        except OutsideTreeError as error:
            problem = f"the trees of {self.folder} came ready-made, so new lines are trees in brackets"
            raise OutsideTreeError(problem, error.path, error.line, hint=f"{PARSE_NEW_TEXT}.") from None

    def encode_tokens(self, tokens: Iterable[str]) -> Tensor:
        """Returns the ids of tokens in the dictionary, ``[N]`` int64."""
        return self.dictionary.encode_line(" ".join(tokens), add_if_not_exist=False).long()

    def read_lines(self, lines: list[str], encode_fn: Encode) -> NewLines:
        """Reads and encodes new lines: text as the parser expects it, or trees if the training data was trees."""
        raise NotImplementedError


class ConstituencySide(ParsedSide):
    """Sentences whose constituency trees are beside them, in the first ``folder`` of a task's data."""

    def __init__(self, cfg, folder: Path, lang: str, dictionary: Dictionary):
        record = Manifest.load(folder).side(lang)
        labels = load_label_dictionary(folder / record.labels)
        super().__init__(cfg, folder, lang, record, modality=CONSTITUENCY, dictionary=dictionary, labels=labels)
        self.read_tree = TreeReader(labels, cfg.keep_unary)

    def load_trees(self, folder: Path, split: str, combine: bool):
        """Returns the stored trees of a split in the order of its sentences."""
        manifest = Manifest.load(folder)
        source, target = self.cfg.source_lang, self.cfg.target_lang
        prefixes = side_prefixes(folder, split, source, target, self.lang, "tree", combine)
        if not prefixes:
            raise MissingTreesError(
                f"{folder} has no trees for '{split}' in {self.lang}; add them with: tree-fairseq annotate {folder}"
            )
        manifest.verify_quickly(folder, self.lang, prefixes)
        return joined([TreeStore(prefix) for prefix in prefixes.values()], self.cfg.upsample_primary)

    def read_lines(self, lines: list[str], encode_fn: Encode) -> NewLines:
        """Parses new lines and encodes their leaves; see :meth:`ParsedSide.read_lines`."""
        spans = [encode(forest) for forest in self.forests(lines, encode_fn)]
        tokens = [self.encode_tokens(forest.leaves) for forest in spans]
        trees = [as_stored(forest, self.labels) for forest in spans]
        return NewLines(tokens, trees, words=[forest.leaves for forest in spans])

    def with_trees(self, tokens: Sequence[Tensor]) -> NewLines:
        """Returns token tensors with their trees. Tensors that come without trees are parsed by their words."""
        if isinstance(tokens, NewLines):
            return tokens
        words = [self.dictionary.string(line) for line in tokens]
        return NewLines(tokens, self.read_lines(words, lambda line: line).trees)

    def facts(self) -> dict[str, Any]:
        """Returns the labels, and whether unary nodes are kept."""
        return {"labels": list(self.labels.symbols), "keep_unary": self.cfg.keep_unary}


class SymbolTreeSide(ParsedSide):
    """Symbol trees: programs, logical forms, or parses whose words are leaves."""

    def __init__(self, cfg, folder: Path, lang: str, dictionary: Dictionary):
        record = Manifest.load(folder).symbols[lang]
        symbols = symbol_dictionary(record, dictionary, folder)
        super().__init__(cfg, folder, lang, record, modality=SYMBOLS, dictionary=symbols, symbols=symbols.table())

    def trees(self, lines: list[str], encode_fn: Encode) -> list[Tree]:
        """Returns the trees of new lines; ``encode_fn`` is applied to sentences, not to trees."""
        if self.record.options is not None:
            return [tree_of_forest(forest) for forest in super().forests(lines, encode_fn)]
        read = self.dictionary.notation.read
        return [read(line, path="input", line_number=number) for number, line in enumerate(lines, first_line_of(lines))]

    def forests(self, lines: list[str], encode_fn: Encode) -> list[Forest]:
        """Returns the tree of each line."""
        return [(tree,) for tree in self.trees(lines, encode_fn)]

    def read_lines(self, lines: list[str], encode_fn: Encode) -> NewLines:
        """Reads new lines and encodes their symbols; see :meth:`ParsedSide.read_lines`."""
        symbols = [self.record.encoding.encode(tree) for tree in self.trees(lines, encode_fn)]
        tokens = list(map(self.encode_tokens, symbols))
        for number, (line, ids) in enumerate(zip(symbols, tokens), first_line_of(lines)):
            self._require_arities(line, ids, number)
        # Symbols of given trees are no text.
        words = symbols if self.record.options is not None else ()
        return NewLines(tokens, words=words)

    def _require_arities(self, symbols: Sequence[str], tokens: Tensor, line_number: int) -> None:
        """Makes sure that each symbol outside the dictionary has an unknown symbol of its arity to stand for it."""
        for place in (self.symbols.arity[tokens[: len(symbols)]] < 0).nonzero().flatten().tolist():
            label, arity = self.record.encoding.split(symbols[place])
            raise ArityMismatchError(
                f"{label!r} has {arity} children here, more than any node of the dictionary",
                "input",
                line_number,
                hint="Give it fewer children, or preprocess the data with --binarization lcrs, where no node has more "
                "than two.",
            )

    def facts(self) -> dict[str, Any]:
        """Returns how trees were encoded."""
        encoding = {name: getattr(self.record, name) for name in ("traversal", "binarization")}
        return {**encoding, "arities": self.symbols.arity.tolist()}


def symbol_dictionary(record: SymbolSideRecord, dictionary: Dictionary, folder: Path) -> SymbolDictionary:
    """Returns the dictionary of a side in a form that reads and writes trees."""
    return SymbolDictionary(dictionary, record.encoding, record.notation_in(folder))


def load_side(cfg, folder: Path, lang: str, dictionary: Dictionary, modalities: Sequence[str]) -> TaskSide:
    """Returns a side of a task's first folder, in the first of the modalities that the folder holds."""
    manifest = Manifest.load(folder)
    for modality in modalities:
        if modality == SYMBOLS and lang in manifest.symbols:
            return SymbolTreeSide(cfg, folder, lang, dictionary)
        if modality == CONSTITUENCY and lang in manifest.sides:
            return ConstituencySide(cfg, folder, lang, dictionary)
        if modality == SEQUENCE:
            return TaskSide(dictionary=dictionary)
    if lang == cfg.source_lang == manifest.target_lang:
        own = manifest.source_lang
        raise MissingTreesError(f"{folder} is of {own}-{lang}, and {lang} has no trees: give -s {own} -t {lang}")
    # The manifest's error says what is missing.
    return ConstituencySide(cfg, folder, lang, dictionary)
