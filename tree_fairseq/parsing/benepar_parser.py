"""The Berkeley Neural Parser, benepar (Kitaev, Cao & Klein 2019), on text that is tokenised.

    pip install 'tree-fairseq[benepar]'
    python -c "import benepar; benepar.download('benepar_fr2')"
    tree-fairseq parse train.fr train.trees --tree-parser benepar --tree-lang fr

benepar 0.2.0 is from 2021, and its published models need transformers below version 5. An environment of its own is
therefore the safest place: this package parses there without torch's or fairseq's right version, and writes a file that
``--tree-parser brackets`` reads.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.parsers import FLAT_TAG, ParserOptions, register_parser
from tree_fairseq.parsing.stanza_parser import models_digest, visible_gpus
from tree_fairseq.parsing.stanza_trees import to_label
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.trees.bracket import unescape
from tree_fairseq.trees.tree import Tree

# benepar's published models, by language.
MODELS = {lang: f"benepar_{lang}2" for lang in "ar de eu fr he hu ko pl sv zh".split()} | {"en": "benepar_en3"}

_ADAPTER_VERSION = 1
_UNKNOWN_TAG = "UNK"  # benepar's tag where its model gives none


def locate_model(options: ParserOptions) -> Path:
    """Returns the file or folder of a benepar model: ``--parser-dir``, or one that benepar has downloaded.

    Raises ParserUnavailableError with the command that downloads the model.
    """
    if options.parser_dir is not None:
        if not (path := Path(options.parser_dir)).exists():
            raise ParserUnavailableError(f"--parser-dir {path}: there is no such file or folder")
        return path
    name = options.package or MODELS.get(options.lang.strip().lower().split("-")[0])
    if name is None:
        raise ParserUnavailableError(
            f"benepar has no model for {options.lang!r} that we know; it has some for {', '.join(sorted(MODELS))}. "
            "--parser-package names another one, and --parser-dir a model of your own"
        )
    data = import_library("nltk.data", "benepar", "--tree-parser benepar")
    try:
        return Path(data.find(f"models/{name}").path)
    except LookupError:
        raise ParserUnavailableError(
            f"benepar's model {name} is not installed. On a machine with network access: "
            f"python -c \"import benepar; benepar.download('{name}')\" ; it goes to nltk_data/models, and --parser-dir "
            "takes that folder elsewhere"
        ) from None


def benepar_labels(config: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Returns the labels of phrases and the tags that a model can give; unary chains are one label in its list."""
    labels = {part for label in config["label_vocab"] if label for part in label.split("::")}
    return {*labels, "TOP"}, {*map(_tag, config.get("tag_vocab", ())), FLAT_TAG}


def _tag(tag: str) -> str:
    return FLAT_TAG if tag == _UNKNOWN_TAG else to_label(tag)


@register_parser("benepar", devices=lambda: visible_gpus())
class BeneparParser:
    """benepar over words as they come; its trees have the root ``TOP``.

    Raises MissingLibraryError if benepar is not installed; ParserUnavailableError if there is no model for the
    language, or it is not installed.
    """

    def __init__(self, options: ParserOptions):
        self._benepar = import_library("benepar", "benepar", "--tree-parser benepar")
        self._options = options
        self._path = locate_model(options)

    def identity(self) -> dict[str, Any]:
        version, path = importlib.metadata.version("benepar"), self._path
        files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
        model = models_digest({str(file.relative_to(path.parent)): file for file in files})
        return {"name": "benepar", "version": version, "adapter": _ADAPTER_VERSION, "model": model}

    def inventory(self) -> list[str]:
        """Returns all labels of the model, and its tags."""
        labels, tags = benepar_labels(self._parser._parser.config)
        return sorted({*labels, *tags})

    def tags(self) -> list[str]:
        """Returns the tags of the model; ``XX`` alone if it was trained without."""
        return sorted(benepar_labels(self._parser._parser.config)[1])

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """Parses sentences of words. One that is too long makes its batch fail."""
        parser = self._parser
        with _quietly():
            found = parser.parse_sents([self._benepar.InputSentence(words=words) for words in sentences])
            return list(map(tree_over_words, found, sentences))

    @functools.cached_property
    def _parser(self) -> Any:
        try:
            with _quietly():
                parser = self._benepar.Parser(str(self._path), batch_size=self._options.batch_size)
        except Exception as error:
            # torch, transformers and pickle each have their own errors for a file that is not such a model.
            message = f"benepar cannot load {self._path}: {type(error).__name__}: {error}"
            if "build_inputs_with_special_tokens" in message:
                message += ". Published models of benepar need transformers below 5: pip install 'transformers<5'"
            raise ParserUnavailableError(message) from error
        if self._options.device != "auto":
            parser._parser.to(self._options.device)
        return parser


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silences the warnings of older libraries about a newer torch: nobody who parses can act on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tree_over_words(tree: Any, words: list[str]) -> Tree | None:
    """Returns an ``nltk.Tree`` with these words as leaves, or None if its leaves are others.

    The parser may have written brackets by name, inside of words, too. A word that has siblings gets the tag ``XX``.
    """
    converted = Tree.from_nltk(tree)
    if list(map(unescape, converted.leaves())) != list(map(unescape, words)):
        return None

    def alone(node: Tree, children: list[Tree]) -> Tree:
        if not children:
            return node
        tagged = [Tree(FLAT_TAG, [child]) if len(children) > 1 and child.is_leaf else child for child in children]
        return Tree(_tag(node.label) if node.is_preterminal else to_label(node.label) or "X", tagged)

    return converted.map_leaves(words).fold(alone)
