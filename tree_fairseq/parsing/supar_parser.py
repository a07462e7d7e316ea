"""SuPar's CRF constituency parser (Zhang, Zhou & Li 2020), on text that is tokenised.

    pip install 'tree-fairseq[supar]'
    tree-fairseq parse train.en train.trees --tree-parser supar
    tree-fairseq parse train.zh train.trees --tree-parser supar --tree-lang zh --parser-dir ctb7.crf.con.lstm.char

SuPar downloads its models on first use; ``--parser-dir`` names a file that is there already. Its models contain Python
objects: load files only from people whom you trust.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.benepar_parser import tree_over_words
from tree_fairseq.parsing.model_files import default_model, given_path, library_version, path_digest, quietly
from tree_fairseq.parsing.parsers import FLAT_TAG, ParserOptions, register_parser
from tree_fairseq.parsing.stanza_trees import to_label
from tree_fairseq.support.libraries import import_library
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

MODELS = {"en": "crf-con-en", "zh": "crf-con-zh"}
"""SuPar's published models, by language."""

_ADAPTER_VERSION = 1
# SuPar's tag where its input has none.
_NO_TAG = "_"
_PARTIAL = "|<>"  # ends the labels of nodes that SuPar's binarization inserts
_TOKENS_OF_A_SENTENCE = 50  # SuPar counts the size of a batch in tokens


def cuda_devices() -> list[str]:
    """Returns the device that SuPar takes by itself, the first GPU, where there is one."""
    torch = import_library("torch", "supar", "--tree-parser supar")
    return ["cuda:0"] if torch.cuda.is_available() else []


@contextlib.contextmanager
def _whole_pickles() -> Iterator[None]:
    """Lets ``torch.load`` read Python objects, which is its default no more since torch 2.6."""
    name = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@register_parser("supar", devices=lambda: cuda_devices())
class SuparParser:
    """SuPar's parser over words; its trees have no tags, so every word has the tag ``XX``.

    Raises:
        MissingLibraryError: SuPar is not installed
        ParserUnavailableError: there is no model for the language or in the file
    """

    def __init__(self, options: ParserOptions):
        import_library("supar", "supar", "--tree-parser supar")
        self._options = options
        self._path = given_path(options)
        self._name = "" if self._path is not None else default_model(options, MODELS, "SuPar")
        self._parser: Any = None

    def identity(self) -> dict[str, Any]:
        # A published model never changes under its name.
        model = self._name if self._path is None else path_digest(self._path)
        return {"name": "supar", "version": library_version("supar"), "adapter": _ADAPTER_VERSION, "model": model}

    def inventory(self) -> list[str]:
        """Returns all labels of the model, and the one tag."""
        labels = {part for label in self._load().CHART.vocab.stoi for part in label.split("+")}
        known = {to_label(label) for label in labels if label and not label.endswith(_PARTIAL) and label[0] != "<"}
        root = getattr(self._load().transform, "root", "") or "X"
        return sorted({*known, root, *self.tags()})

    def tags(self) -> list[str]:
        return [FLAT_TAG]

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """Parses sentences of words; returns None for a sentence without words."""
        filled = [position for position, words in enumerate(sentences) if words]
        results: list[Tree | None] = [None] * len(sentences)
        if not filled:
            return results
        parser = self._load()
        size = self._options.batch_size * _TOKENS_OF_A_SENTENCE
        words = [sentences[position] for position in filled]
        # SuPar refuses more buckets than it has sentences of different lengths.
        with quietly():
            found = parser.predict(words, buckets=1, batch_size=size, verbose=False, prob=False).trees
        for position, tree in zip(filled, found):
            results[position] = _without_placeholders(tree_over_words(tree, sentences[position]))
        return results

    def _load(self) -> Any:
        if self._parser is None:
            supar = import_library("supar", "supar", "--tree-parser supar")
            try:
                with _whole_pickles(), quietly():
                    self._parser = supar.Parser.load(self._name if self._path is None else str(self._path))
            except Exception as error:
                # SuPar reports "no network" and a bad file in many ways.
                cause = f"{type(error).__name__}: {error}"
                if self._path is not None:
                    raise ParserUnavailableError(f"{self._path} is not a model of SuPar: {cause}") from error
                raise ParserUnavailableError(
                    f"SuPar's model {self._name} cannot be loaded: {cause}. On a machine with network access: "
                    f"python -c \"import supar; supar.Parser.load('{self._name}')\" ; it goes to ~/.cache/supar, and "
                    "--parser-dir takes the file elsewhere"
                ) from error
            if not hasattr(self._parser, "CHART"):
                raise ParserUnavailableError(f"{self._path or self._name} is not a constituency parser of SuPar")
        return self._parser


def _without_placeholders(tree: Tree | None) -> Tree | None:
    return None if tree is None else tree.map_labels(lambda label: FLAT_TAG if label == _NO_TAG else label)
