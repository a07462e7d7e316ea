"""From a line of text to the forest over its tokens, for any parser and however the line is split.

All text takes this course: a corpus, ``fairseq-interactive`` and the hub.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from tree_fairseq import errors
from tree_fairseq.parsing import parsers, pieces
from tree_fairseq.parsing.batches import Answers, Failure, ParseCache, parse_texts, text_batches
from tree_fairseq.parsing.interface import ConstituencyParser
from tree_fairseq.support.options import refuse_unread
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest, unescape, write_forest
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.text import FaultyLines, check_line, tokens
from tree_fairseq.trees.tree import Forest, forest_leaves
from tree_fairseq.trees.treebanks import bare_label

# Part of the identity: raised when the same parse of a line gives another forest.
_VERSION = 1
TextPath = Union[str, os.PathLike, None]
_LINE_OPTIONS = ("ssplit", "tokenize", "subwords", "tag_separators", "keep_empty")


@dataclass(frozen=True)
class ParsedLine:
    """The forest of a line in brackets, the number of its sentences, and the reason for each one with a flat tree."""

    written: str
    sentences: int
    failures: tuple[str, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)  # parts of ready-made trees that are no words

    @property
    def failed(self) -> int:
        """The number of sentences with flat trees."""
        return len(self.failures)

    @property
    def forest(self) -> Forest:
        """The forest, read from its brackets."""
        return read_forest(self.written)


@dataclass(frozen=True)
class PreparedLine:
    """A line before it is parsed."""

    number: int
    texts: list[str] = field(default_factory=list)  # requests: the words of each sentence, or all raw text
    split: list[pieces.SplitWords] = field(default_factory=list)  # of each sentence
    raw: pieces.RawLine | None = None  # takes the place of ``split`` for raw text
    result: ParsedLine | None = None  # of a line of ready-made trees


_MODEL = {"parser_dir", "package", "device"}
_NO_MODEL = {*_MODEL, "corenlp_url", "keep_empty"}
_UNREAD = {
    "stanza": {"corenlp_url", "keep_empty"},
    "benepar": {"corenlp_url", "keep_empty"},
    "corenlp": {*_MODEL, "keep_empty"},
    **dict.fromkeys(("right-branching", "balanced", "random", "flat"), _NO_MODEL),
    "brackets": {*_MODEL, "corenlp_url", "ssplit", "tokenize", "subwords"},
}


def unread_options(options: parsers.ParserOptions) -> set[str]:
    """Returns the options that the parser does not read; a parser of the user's may read all."""
    # Words of ready-made trees have the marks of pieces only if a model has split some of them.
    return _UNREAD.get(options.name, set()) - ({"subwords"} if options.subword_model else set())


def require_read(*sides: parsers.ParserOptions) -> None:
    """Raises InputError for an option of the sides that is not its default, and that none of their parsers reads."""
    unread = set.intersection(*map(unread_options, sides))
    for name, argument in parsers.ARGUMENTS.items():
        default = parsers.ParserOptions.__dataclass_fields__[name].default
        if name in unread and any(getattr(options, name) != default for options in sides):
            readers = ", ".join(parser for parser, others in _UNREAD.items() if name not in others)
            names = ",".join(dict.fromkeys(options.name for options in sides))
            refuse_unread({argument}, {argument: f"it goes with --tree-parser {readers}"}, f"--tree-parser {names}")


class LineParser:
    """Parses lines with the parser that the options name, or with another one; raises ParserError if it is missing."""

    def __init__(
        self, options: parsers.ParserOptions, parser: ConstituencyParser | None = None, cache: TextPath = None
    ):
        self.options = options
        # Ready-made trees need none.
        self.parser = parser if parser is not None or options.name == "brackets" else parsers.build_parser(options)
        self.kind = "text" if options.tokenize == "stanza" else "words"
        self._model = pieces.load_subword_model(options.subword_model)
        if self.kind == "text" and self.parser is not None and not hasattr(self.parser, "parse_text"):
            raise errors.ParserError(
                f"--tree-tokenize parser: --tree-parser {options.name} finds no tokens in raw text; stanza and corenlp "
                "do. Tokenise the text first, or use one of these"
            )
        self._cache = None
        if cache is not None and self.parser is not None and parsers.registered_parser(options.name).expensive:
            self._cache = ParseCache(cache, self.cache_key())

    @property
    def wants_encoded_text(self) -> bool:
        """Whether lines should be tokenised and split into subwords, and are neither brackets nor raw text."""
        is_split = self.kind == "words" or self.options.subwords in ("bpe", "sentencepiece")
        return is_split and self.options.name != "brackets"

    def identity(self) -> dict[str, Any]:
        """Returns all that decides the forest of a line, for JSON."""
        return {
            "parser": self._parser_identity(),
            "lines": {name: getattr(self.options, name) for name in _LINE_OPTIONS},
            "subword_model": pieces.subword_model_hash(self.options.subword_model),
            "version": _VERSION,
        }

    def _parser_identity(self) -> dict[str, Any]:
        return {"name": "brackets"} if self.parser is None else self.parser.identity()

    def digest(self, *more: Any) -> str:
        """Returns a name for all that decides the forest of a line, and for more values of JSON."""
        return _digest([self.identity(), *more])

    def labels(self) -> tuple[list[str], list[str]]:
        """Returns all labels that a forest can have, and those of them that can stand directly above words.

        Those of flat trees are among them, the labels ``*_sub`` of words in pieces and those of ready-made trees are
        not. Where the parser does not tell which stand above words, all of its labels do.
        """
        labels = [] if self.parser is None else self.parser.inventory()
        tags = [] if self.parser is None else getattr(self.parser, "tags", self.parser.inventory)()
        if self.options.tag_separators:
            labels, tags = ([bare_label(label, self.options.tag_separators) for label in own] for own in (labels, tags))
        return sorted({*labels, parsers.FLAT_LABEL, parsers.FLAT_TAG}), sorted({*tags, parsers.FLAT_TAG})

    def cache_key(self) -> str:
        """Returns a name for all that decides the parser's own trees, before they become the forest of a line."""
        # The parser itself cuts raw text into sentences.
        return _digest([self._parser_identity(), self.kind, self.options.ssplit if self.kind == "text" else None])

    def _prepare(self, line: str, number: int, path: TextPath) -> PreparedLine:
        check_line(line, path, number)
        if self.parser is None:
            forest, reasons = read_bracketed(line, self.options.on_parse_error, path, number)
            left_out = Counter[str]()
            forest = self.options.conventions.apply(forest, left_out)
            leaves = forest_leaves(forest)
            if self._model is not None and self.options.subwords in ("auto", "none"):
                forest = split_words(forest, self._model.split(leaves))
            return PreparedLine(number, result=ParsedLine(write_forest(forest), len(forest), reasons, left_out))
        if self.kind == "text":
            raw = pieces.join_text(line, self.options)
            return PreparedLine(number, texts=[raw.text] if raw.text.strip() else [], raw=raw)
        split = pieces.join_pieces(tokens(line), self.options, self._model)
        visible = list(map(unescape_entities, split.words))
        spans = split_sentences(visible) if self.options.ssplit == "punct" else [(0, len(visible))] if visible else []
        return PreparedLine(
            number,
            texts=[" ".join(visible[start:end]) for start, end in spans],
            split=[pieces.SplitWords(split.words[start:end], split.pieces[start:end]) for start, end in spans],
        )

    def _finish(self, line: PreparedLine, answers: Answers, path: TextPath) -> ParsedLine:
        """Returns the forest of a prepared line; raises LeafMismatchError for an answer about another sentence."""
        if line.result is not None:
            return line.result
        place = f"line {line.number}" if path is None else f"{os.fspath(path)}:{line.number}"
        own = [answers[text] for text in line.texts]
        for text, answer in zip(line.texts, own):
            if isinstance(answer, Failure) and self.options.on_parse_error == "stop":
                raise errors.LeafMismatchError(
                    f"{place}: a sentence could not be parsed ({answer.reason}): {text[:200]}. "
                    "--on-parse-error flat gives such sentences a flat tree"
                )
        try:
            forest = self._forest(line, own)
        except errors.InputError as error:
            raise error.at(path, line.number) from None
        if forest is None:
            assert self._cache is not None
            raise errors.LeafMismatchError(
                f"{place}: the tree in the parse cache {self._cache.path} is not that of the sentence; delete the cache"
            )
        reasons = [answer.reason.splitlines()[0] for answer in own if isinstance(answer, Failure)]
        return ParsedLine(*forest, tuple(reasons))

    def _forest(self, line: PreparedLine, answers: Sequence[str | Failure]) -> tuple[str, int] | None:
        """Returns the forest of a line in brackets and the number of its sentences; None if an answer is another's."""
        if line.raw is not None:
            return pieces.finish_raw_line(line.raw, answers[0] if answers else "", self._model, self._changed)
        written = []
        for text, split, answer in zip_equal(line.texts, line.split, answers):
            words = text.split(" ")
            tree = write_forest((parsers.flat_tree(words),)) if isinstance(answer, Failure) else answer
            if self.options.tag_separators:
                tree = write_forest(self._changed(read_forest(tree)))
            spliced = pieces.splice_pieces(tree, words, split.pieces)
            if spliced is None:
                return None
            written.append(spliced)
        return " ".join(written), len(written)

    def _changed(self, forest: Forest) -> Forest:
        """Returns the parser's trees without function tags, if the options say so."""
        return self.options.conventions.apply(forest, Counter())

    def parse_lines(self, lines: Sequence[str], first_line: int = 1, path: TextPath = None) -> list[ParsedLine]:
        """Returns the forest of each line; its leaves are the tokens of the line's token file.

        The lines have no line ends. Messages name the file ``path``, and count its lines from ``first_line``. Raises
        InputError if lines should be trees and are not, or hold a character that other programs take for their end;
        LeafMismatchError if a sentence failed and ``on_parse_error`` is ``stop``.
        """
        prepared, faults = [], FaultyLines()
        for number, line in enumerate(lines, start=first_line):
            with faults:
                prepared.append(self._prepare(line, number, path))
        faults.raise_all()
        answers = self._answers(list(dict.fromkeys(text for line in prepared for text in line.texts)))
        return [self._finish(line, answers, path) for line in prepared]

    def _answers(self, texts: list[str]) -> dict[str, str | Failure]:
        """Returns the parser's answer to each text, which the cache may know."""
        answers: dict[str, str | Failure] = {}
        if self._cache is not None:
            answers.update(self._cache.get(texts))
        for batch in text_batches([text for text in texts if text not in answers], self.options.batch_size):
            found = dict(zip_equal(batch, parse_texts(self.parser, self.kind, batch)))
            answers.update(found)
            if self._cache is not None:
                self._cache.put({text: answer for text, answer in found.items() if isinstance(answer, str)})
        return answers


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


# The words of a line with one of these faults are still known: they are neither brackets nor follow an opening one.
_WORDS_REMAIN = (
    errors.DepthLimitError,
    errors.EmptyTreeError,
    errors.ExtraCloseError,
    errors.MixedChildrenError,
    errors.UnclosedTreeError,
    errors.UnlabelledTreeError,
)
_OPENING_OR_WORD = re.compile(r"\([ \t]*[^ \t()]*|\)|([^ \t()]+)")

_END = re.compile(r"[.!?。！？]+")
_ELLIPSIS = re.compile(r"\.\.+|…")
_CLOSERS = frozenset("'' ” ’ » ) ] } 」 』 ）".split())
_STRAIGHT_QUOTES = frozenset("\" '".split())

# Moses' tokeniser writes these; older versions wrote the last three.
_CHARACTERS = {"&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#91;": "[", "&#93;": "]", "&#124;": "|"}
_CHARACTERS |= {"&amp;": "&", "&bar;": "|", "&bra;": "[", "&ket;": "]"}
_ENTITY = re.compile("|".join(re.escape(entity) for entity in _CHARACTERS))


def read_bracketed(
    line: str, on_error: str | None, path: str | os.PathLike | None = None, number: int | None = None
) -> tuple[Forest, tuple[str, ...]]:
    """Reads the forest of a bracketed line; the reasons are why it is a flat tree in place of a faulty one, if it is.

    If ``on_error`` is ``flat`` and not ``stop``, a line whose brackets do not match gets a flat tree over its words. A
    line whose words are in doubt is an error in either case: text outside trees, characters that no token can hold,
    discontinuous leaves, or no word at all. With ``skip-pair`` such a line is empty.
    """
    try:
        return read_forest(line, path=path, line_number=number), ()
    except errors.TreeFormatError as error:
        # The words, still escaped: ``a`` and ``b`` of ``(S (NN a b) ) (``.
        words = [word for word in _OPENING_OR_WORD.findall(line) if word]
        is_readable = bool(words) and isinstance(error, _WORDS_REMAIN)
        if on_error == "stop" or on_error == "flat" and not is_readable:
            raise
        reason = error.message
        if not is_readable:
            return (), (reason,)
    flat = (parsers.flat_tree([unescape(word) for word in words]),)
    try:
        # A reader of the tree must find the same words.
        write_forest(flat)
    except errors.TreeFormatError as error:
        raise error.at(path, number) from None
    return flat, (reason,)


def split_sentences(words: list[str]) -> list[tuple[int, int]]:
    """Cuts a line of words without Moses' entities into sentences, half-open spans that together cover the line.

    A sentence ends with a token of sentence-final punctuation and the closing quotes and brackets after it. An ellipsis
    ends a sentence only before a capital letter. A straight quote closes if an odd number of them came before it in the
    sentence.
    """
    spans = []
    start = end = 0
    while end < len(words):
        end += 1
        if is_over := _ends_sentence(words, end):
            while end < len(words) and _closes(words, start, end):
                end += 1
        if is_over or end == len(words):
            spans.append((start, end))
            start = end
    return spans


def _ends_sentence(words: list[str], position: int) -> bool:
    word = words[position - 1]
    if _ELLIPSIS.fullmatch(word):
        return position < len(words) and words[position][:1].isupper()
    return _END.fullmatch(word) is not None


def _closes(words: list[str], start: int, position: int) -> bool:
    word = words[position]
    if word in _STRAIGHT_QUOTES:
        return words[start:position].count(word) % 2 == 1
    return word in _CLOSERS or _END.fullmatch(word) is not None


def unescape_entities(word: str) -> str:
    """Replaces Moses' entities by their characters, each once: ``&apos;s`` by ``'s``, and ``&amp;lt;`` by ``&lt;``."""
    return _ENTITY.sub(lambda match: _CHARACTERS[match.group()], word) if "&" in word else word
