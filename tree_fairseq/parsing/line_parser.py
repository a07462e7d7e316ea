"""From a line of text to the forest over its tokens, for any parser and however the line is split.

All text takes this course: a corpus, ``fairseq-interactive`` and the hub.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from tree_fairseq.errors import InputError, LeafMismatchError, ParserError, TreeFairseqError
from tree_fairseq.parsing.cache import ParseCache, ParseKeys
from tree_fairseq.parsing.controls import degrade
from tree_fairseq.parsing.input_lines import read_bracketed, split_sentences, unescape_entities
from tree_fairseq.parsing.parsers import (
    FLAT_LABEL,
    FLAT_TAG,
    ConstituencyParser,
    ParserOptions,
    build_parser,
    flat_tree,
)
from tree_fairseq.parsing.pieces import (
    RawLine,
    SplitWords,
    finish_raw_line,
    join_pieces,
    join_text,
    load_subword_model,
    splice_pieces,
    subword_kind,
    subword_model_hash,
)
from tree_fairseq.parsing.requests import Answers, Failure, parse_texts, text_batches
from tree_fairseq.support.processes import own_device
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.text import check_line, tokens
from tree_fairseq.trees.transforms import strip_function_tags
from tree_fairseq.trees.tree import Forest, Tree, forest_leaves

# Part of the identity: raised when the same parse of a line gives another forest.
_VERSION = 1
TextPath = Union[str, os.PathLike, None]
_LINE_OPTIONS = ("ssplit", "tokenize", "subwords", "unescape_moses", "strip_function_tags")


@dataclass(frozen=True)
class ParsedLine:
    """The forest of a line in brackets, and the number of its sentences and of those with flat trees, which failed."""

    written: str
    sentences: int
    failed: int

    @property
    def forest(self) -> Forest:
        """The forest, read from its brackets."""
        return read_forest(self.written)


@dataclass(frozen=True)
class PreparedLine:
    """A line before it is parsed; a line of ready-made trees has its ``result`` already.

    Its ``texts`` are the requests: the words of each sentence, joined by blanks, or the whole line of raw text.
    ``split`` has the words and pieces of each sentence; ``raw`` takes its place for raw text.
    """

    number: int
    texts: list[str] = field(default_factory=list)
    split: list[SplitWords] = field(default_factory=list)
    raw: RawLine | None = None
    result: ParsedLine | None = None


class LineParser:
    """Parses lines with the parser that the options name, or with another one; raises ParserError if it is missing."""

    def __init__(self, options: ParserOptions, parser: ConstituencyParser | None = None):
        self.options = options
        # Ready-made trees need none.
        self.parser = parser if parser is not None or options.name == "brackets" else build_parser(options)
        self.kind = "text" if options.tokenize == "stanza" else "words"
        self._model = load_subword_model(options.subword_model)
        if self.kind == "text" and self.parser is not None and not hasattr(self.parser, "parse_text"):
            raise ParserError(
                f"--tree-tokenize parser: --tree-parser {options.name} finds no tokens in raw text; stanza, corenlp "
                "and spacy do. Tokenise the text first, or use one of these"
            )

    @property
    def wants_encoded_text(self) -> bool:
        """Whether lines should be tokenised and split into subwords, and are neither brackets nor raw text."""
        is_split = self.kind == "words" or self.options.subwords in ("bpe", "sentencepiece")
        return is_split and self.options.name != "brackets"

    def identity(self) -> dict[str, Any]:
        """Returns all that decides the forest of a line, for JSON."""
        return {
            "parser": self._parser_identity(),
            "lines": {**{name: getattr(self.options, name) for name in _LINE_OPTIONS}, **self._noise()},
            "subword_model": subword_model_hash(self.options.subword_model),
            "version": _VERSION,
        }

    def _noise(self) -> dict[str, Any]:
        """Folders and caches without noise do not mention it, as those that are older than it."""
        return {"noise": self.options.noise, "noise_seed": self.options.seed} if self.options.noise else {}

    def _degraded(self, written: str) -> str:
        options = self.options
        return write_forest(degrade(read_forest(written), options.noise, options.seed)) if options.noise else written

    def _parser_identity(self) -> dict[str, Any]:
        return {"name": "brackets"} if self.parser is None else self.parser.identity()

    def parse_keys(self) -> ParseKeys:
        """Returns the keys under which the cache keeps this parser's answers."""
        identity = self._parser_identity()
        # The parser itself cuts raw text into sentences.
        return ParseKeys({**identity, "ssplit": self.options.ssplit} if self.kind == "text" else identity, self.kind)

    def inventory(self, cache: ParseCache | None = None) -> list[str]:
        """Returns all labels that a forest can have, those of flat trees included. If the cache has them, no model is
        loaded. The labels ``*_sub`` of words in pieces and the labels of ready-made trees are missing."""
        labels = self._labels("inventory", cache)
        if self.options.strip_function_tags:
            labels = [strip_function_tags(Tree(label, [Tree("x")])).label for label in labels]
        return sorted({*labels, FLAT_LABEL, FLAT_TAG})

    def tags(self, cache: ParseCache | None = None) -> list[str]:
        """Returns the labels that can stand directly above words; all labels if the parser does not tell."""
        return sorted({*self._labels("tags" if hasattr(self.parser, "tags") else "inventory", cache), FLAT_TAG})

    def _labels(self, method: str, cache: ParseCache | None) -> list[str]:
        if self.parser is None:
            return []
        if cache is None:
            return getattr(self.parser, method)()
        noted = cache.get_fact(self._label_fact(method))
        if noted is None:
            self.note_labels({method: getattr(self.parser, method)()}, cache)
            return self._labels(method, cache)
        return noted.split("\n") if noted else []

    def _label_fact(self, method: str) -> str:
        return f"{method} {self.parse_keys().name}"

    def needs_labels(self, cache: ParseCache) -> bool:
        """Returns whether :meth:`inventory` would load the models of the parser to fill the cache."""
        return cache.get_fact(self._label_fact("inventory")) is None

    def note_labels(self, labels: Mapping[str, Sequence[str]], cache: ParseCache) -> None:
        """Keeps the answer to a request of the kind ``labels``."""
        for method, names in labels.items():
            cache.put_fact(self._label_fact(method), "\n".join(names))

    def prepare(self, line: str, number: int = 1, path: TextPath = None) -> PreparedLine:
        """Returns the requests about a line.

        Raises:
            InputError: the line should be a tree and is not, or holds a character that other programs take for its end.
        """
        check_line(line, path, number)
        if self.parser is None:
            forest, failed = read_bracketed(line, self.options.on_parse_error, path, number)
            forest = degrade(forest, self.options.noise, self.options.seed)
            leaves = forest_leaves(forest)
            if self._model is not None and subword_kind(leaves, self.options) == "none":
                forest = split_words(forest, self._model.split(leaves))
            return PreparedLine(number, result=self._written(write_forest(forest), len(forest), int(failed)))
        if self.kind == "text":
            raw = join_text(line, self.options)
            return PreparedLine(number, texts=[raw.text] if raw.text.strip() else [], raw=raw)
        split = join_pieces(tokens(line), self.options, self._model)
        visible = split.words
        if self.options.unescape_moses and "&" in line:
            visible = list(map(unescape_entities, visible))
        spans = split_sentences(visible) if self.options.ssplit == "punct" else [(0, len(visible))] if visible else []
        return PreparedLine(
            number,
            texts=[" ".join(visible[start:end]) for start, end in spans],
            split=[SplitWords(split.words[start:end], split.pieces[start:end]) for start, end in spans],
        )

    def finish(self, line: PreparedLine, answers: Answers, path: TextPath, cache: TextPath = None) -> ParsedLine:
        """Returns the forest of a prepared line; the answers may come from a cache, which somebody may have changed."""
        self.stop_at_failure(line, answers, path)
        try:
            finished = line.result or self._finished(line, [answers[text] for text in line.texts])
        except InputError as error:
            raise error.at(path, line.number) from None
        if finished is None:
            place = _place(path, line.number)
            raise LeafMismatchError(
                f"{place}: the tree in the parse cache {cache} is not that of the sentence; delete the cache"
            )
        return finished

    def _finished(self, line: PreparedLine, answers: Sequence[str | Failure]) -> ParsedLine | None:
        failed = sum(isinstance(answer, Failure) for answer in answers)
        if line.raw is not None:
            change = functools.partial(degrade, share=self.options.noise, seed=self.options.seed)
            done = finish_raw_line(line.raw, answers[0] if answers else "", self._model, change)
            return None if done is None else self._written(*done, failed)
        written = []
        for text, split, answer in zip_equal(line.texts, line.split, answers):
            visible = text.split(" ")
            tree = write_forest((flat_tree(visible),)) if isinstance(answer, Failure) else answer
            spliced = splice_pieces(self._degraded(tree), visible, split.pieces)
            if spliced is None:
                return None
            written.append(spliced)
        return self._written(" ".join(written), len(written), failed)

    def _written(self, written: str, sentences: int, failed: int) -> ParsedLine:
        if self.options.strip_function_tags:
            written = write_forest(tuple(map(strip_function_tags, read_forest(written))))
        return ParsedLine(written, sentences, failed)

    def stop_at_failure(self, line: PreparedLine, answers: Answers, path: TextPath) -> None:
        """Raises LeafMismatchError if a sentence of the line failed and ``on_parse_error`` is ``stop``."""
        for text in line.texts if self.options.on_parse_error == "stop" else ():
            if isinstance(failure := answers.get(text), Failure):
                raise LeafMismatchError(
                    f"{_place(path, line.number)}: a sentence could not be parsed ({failure.reason}): {text[:200]}. "
                    "--on-parse-error flat gives such sentences a flat tree"
                )

    def parse_lines(self, lines: Sequence[str], first_line: int = 1, path: TextPath = None) -> list[ParsedLine]:
        """Returns the forest of each line; its leaves are the tokens of the line's token file.

        The lines have no line ends. Messages name the file ``path``, and count its lines from ``first_line``.

        Raises:
            InputError: as :meth:`prepare`.
            LeafMismatchError: a sentence failed and ``on_parse_error`` is ``stop``.
        """
        prepared = [self.prepare(line, number, path) for number, line in enumerate(lines, start=first_line)]
        texts = list(dict.fromkeys(text for line in prepared for text in line.texts))
        answers: dict[str, str | Failure] = {}
        for batch in text_batches(texts, self.options.batch_size):
            answers.update(zip_equal(batch, parse_texts(self.parser, self.kind, batch)))
        return [self.finish(line, answers, path) for line in prepared]

    def answer(self, kind: str, payload: Any) -> Any:
        """Answers a :class:`Request` of that kind and payload."""
        if kind == "lines":
            return self.parse_lines(*payload)
        if kind == "labels":
            return {name: getattr(self.parser, name)() for name in ("inventory", "tags") if hasattr(self.parser, name)}
        return parse_texts(self.parser, kind, payload)


def _place(path: TextPath, number: int) -> str:
    return f"line {number}" if path is None else f"{os.fspath(path)}:{number}"


_kept: tuple[ParserOptions, LineParser] | None = None


def answer_in_process(call: tuple[ParserOptions, str, str, Any]) -> Any:
    """Answers a call (options, the module that registers the parser, kind and payload of the request) in a process of
    the pool, which keeps its parser until other options are asked for."""
    global _kept
    options, module, kind, payload = call
    try:
        if _kept is None or _kept[0] != options:
            # The memory of the old models is freed before new ones are loaded.
            _kept = None
            gc.collect()
            importlib.import_module(module)
            _kept = options, LineParser(options.replace(device=own_device()))
        return _kept[1].answer(kind, payload)
    except TreeFairseqError:
        raise
    except Exception as error:
        raise ParserError(f"a parsing process failed:\n{traceback.format_exc()}") from error
