"""Parsers for the tests: quick, and faulty on demand. A parsing process finds them by importing this module.

They append each parsed sentence to the file named by ``FAKE_PARSER_LOG``, so that tests can count. Words in a sentence
cause faults: see `FaultyParser`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.parsing.parsers import ParserOptions, register_parser
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.tree import Tree

LOG_VARIABLE = "FAKE_PARSER_LOG"
SLEEP_VARIABLE = "FAKE_PARSER_SLEEP"
LOADS_VARIABLE = "FAKE_PARSER_LOADS"
DEVICES_VARIABLE = "FAKE_PARSER_DEVICES"


def note(sentences: list[str], variable: str = LOG_VARIABLE) -> None:
    """Append to the log; one write call, so that processes do not cut into each other's lines."""
    if path := os.environ.get(variable):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, "".join(f"{sentence}\n" for sentence in sentences).encode())
        os.close(handle)


def noted(path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class ToyParser:
    """``(S (NP first) (VP rest ...))``, tags by the words' lengths; the root tells the size of the batch if
    ``batch_in_label``.
    """

    def __init__(self, version: str = "1", batch_in_label: bool = False):
        self.version = version
        self.batch_in_label = batch_in_label
        self.calls: list[list[list[str]]] = []

    def identity(self):
        return {"name": "toy", "version": self.version, "batch": self.batch_in_label}

    def inventory(self):
        return ["S", "NP", "VP", *self.tags()]

    def tags(self):
        return [f"T{length}" for length in range(1, 10)]

    def tree(self, words: list[str], label: str = "S") -> Tree:
        leaves = [Tree(f"T{min(len(word), 9)}", [Tree(word)]) for word in words]
        return Tree(label, [Tree("NP", leaves[:1]), *([Tree("VP", leaves[1:])] if len(leaves) > 1 else [])])

    def parse(self, sentences):
        note([" ".join(words) for words in sentences])
        self.calls.append(sentences)
        time.sleep(float(os.environ.get(SLEEP_VARIABLE, 0)))
        # The label depends on the sentences of the batch and not only on their number.
        label = f"S{sum(map(len, sentences))}.{len(sentences)}" if self.batch_in_label else "S"
        return [self.tree(words, label) for words in sentences]


class FaultyParser(ToyParser):
    """Fails if a sentence has one of these words.

    ``RAISE``: an exception for the whole batch. ``NONE``: no tree. ``LEAVES``: a tree over other words. ``DROP``: no
    place in the result at all.
    ``MEMORY``: more than one sentence at once, or ``HUGE``: any
    number, does not fit into memory.
    ``DIE``: the process kills itself. ``HANG``: it sleeps.
    """

    def parse(self, sentences):
        words = {word for sentence in sentences for word in sentence}
        if "DIE" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if "HANG" in words:
            time.sleep(600)
        if "HUGE" in words or ("MEMORY" in words and len(sentences) > 1):
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        if "RAISE" in words:
            raise KeyError("transition")
        trees = [self._faulty(sentence, tree) for sentence, tree in zip_equal(sentences, super().parse(sentences))]
        return [tree for sentence, tree in zip_equal(sentences, trees) if "DROP" not in sentence]

    def _faulty(self, words, tree):
        if "NONE" in words:
            return None
        return self.tree([*words[:-1], "other"]) if "LEAVES" in words else tree


class ToyTextParser(ToyParser):
    """Finds words and single characters of punctuation; a full stop ends a sentence unless the options forbid it."""

    def __init__(self, options: ParserOptions):
        super().__init__()
        self._split = options.ssplit == "punct"

    def parse_text(self, lines):
        note(lines)
        return [None if "NONE" in line else self._parse_line(line) for line in lines]

    def _parse_line(self, line):
        offsets = [match.span() for match in re.finditer(r"\w+|[^\w\s]", line)]
        sentences: list[list[str]] = [[]]
        for start, end in offsets:
            sentences[-1].append(line[start:end])
            if self._split and line[start:end] == ".":
                sentences.append([])
        return ParsedText(tuple(self.tree(words) for words in sentences if words), offsets)


@register_parser("toy")
def toy(options: ParserOptions) -> ToyParser:
    return ToyTextParser(options) if options.tokenize == "stanza" else ToyParser(os.environ.get("TOY_VERSION", "1"))


@register_parser("toy-batch")
def toy_batch(options: ParserOptions) -> ToyParser:
    return ToyParser(batch_in_label=True)


@register_parser("faulty")
def faulty(options: ParserOptions) -> FaultyParser:
    return FaultyParser()


@register_parser("environment")
class EnvironmentParser:
    """Raises a description of its process in place of giving a tree."""

    def __init__(self, options):
        self._device = options.device

    def parse(self, sentences):
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        loaded = [name for name in ("torch", "fairseq", "stanza") if name in sys.modules]
        raise ParserUnavailableError(
            f"{[os.environ.get(name) for name in names]} {loaded} {self._device} {os.getpid()}"
        )


@register_parser("loading")
class LoadingParser(ToyParser):
    """Notes in the file named by ``FAKE_PARSER_LOADS`` when it has to load its models, and with which options."""

    def __init__(self, options: ParserOptions):
        super().__init__()
        self._options = options
        self._is_loaded = False

    def identity(self):
        return {"name": "loading", "lang": self._options.lang}

    def _load(self):
        if not self._is_loaded:
            self._is_loaded = True
            note([f"{self._options.lang} {self._options.device} {os.getpid()}"], LOADS_VARIABLE)

    def inventory(self):
        self._load()
        return super().inventory()

    def tags(self):
        self._load()
        return super().tags()

    def parse(self, sentences):
        self._load()
        time.sleep(0.01)
        return super().parse(sentences)


@register_parser("loading-on-devices", devices=lambda: os.environ.get(DEVICES_VARIABLE, "").split())
def loading_on_devices(options: ParserOptions) -> LoadingParser:
    return LoadingParser(options)
