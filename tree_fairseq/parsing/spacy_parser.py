"""spaCy with benepar as a component: spaCy tokenises, tags and finds dependencies, benepar finds constituents.

    pip install 'tree-fairseq[spacy]'
    python -m spacy download en_core_web_sm
    python -c "import benepar; benepar.download('benepar_en3')"
    tree-fairseq parse --tree-parser spacy --parser-package en_core_web_sm --tree-tokenize parser --text 'Men sleep.'

Without ``--parser-package`` spaCy's rules for the language tokenise the text, and benepar gives the tags.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from tree_fairseq.errors import ParserUnavailableError, TreeFormatError
from tree_fairseq.parsing.benepar_parser import UNKNOWN_TAG, benepar_labels, cuda_devices, locate_model
from tree_fairseq.parsing.dependencies import DependencyWord
from tree_fairseq.parsing.model_files import library_version, path_digest, quietly
from tree_fairseq.parsing.parsers import FLAT_TAG, ParsedText, ParserOptions, register_parser
from tree_fairseq.support.libraries import import_library
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

_ADAPTER_VERSION = 1
_COMPONENT = "benepar"
# Components that would cut a line into sentences.
_SPLITTERS = ("senter", "sentencizer")


@register_parser("spacy", devices=lambda: cuda_devices())
class SpacyParser:
    """A pipeline of spaCy with a benepar component; trees have the root ``TOP``.

    A pipeline of ``--parser-package`` that has such a component keeps it; ``--parser-dir`` is the model of a new one.

    Raises:
        MissingLibraryError: spaCy or benepar is not installed
        ParserUnavailableError: a model is not installed
    """

    def __init__(self, options: ParserOptions):
        self._spacy = import_library("spacy", "spacy", "--tree-parser spacy")
        # Importing it registers the component with spaCy.
        import_library("benepar", "spacy", "--tree-parser spacy")
        self._options = options
        self._pipeline = self._load_pipeline()
        self._model = None if _COMPONENT in self._pipeline.pipe_names else locate_model(options)
        self._is_complete = self._model is None
        self._own_components = list(self._pipeline.pipe_names)

    def _load_pipeline(self) -> Any:
        """Returns spaCy's own part of the pipeline, which cuts lines into sentences only where it is asked to."""
        package, lang = self._options.package, self._options.lang
        try:
            pipeline = self._spacy.load(package) if package else self._spacy.blank(lang)
        except (OSError, ImportError, ValueError) as error:
            way_out = (
                f"python -m spacy download {package}"
                if package
                else "--parser-package names a pipeline of spaCy, or its folder"
            )
            raise ParserUnavailableError(f"spaCy cannot load {package or lang}: {error}. {way_out}") from error
        if self._options.ssplit == "none":
            for name in set(_SPLITTERS) & set(pipeline.pipe_names):
                pipeline.disable_pipe(name)
        elif not {"parser", *_SPLITTERS} & set(pipeline.pipe_names):
            pipeline.add_pipe("sentencizer", first=True)
        return pipeline

    def identity(self) -> dict[str, Any]:
        meta = self._pipeline.meta
        return {
            "name": "spacy",
            "version": library_version("spacy"),
            "benepar": library_version("benepar"),
            "adapter": _ADAPTER_VERSION,
            "pipeline": [meta["lang"], meta["name"], meta["version"], *self._own_components],
            "package": path_digest(Path(package))
            if (package := self._options.package) and Path(package).exists()
            else "",
            "model": path_digest(self._model) if self._model else "",
        }

    def inventory(self) -> list[str]:
        """Returns all labels of benepar's model, and the tags."""
        return sorted({*benepar_labels(self._component()._parser.config)[0], *self.tags()})

    def tags(self) -> list[str]:
        """Returns the tags of benepar's model and of spaCy's tagger."""
        tags = benepar_labels(self._component()._parser.config)[1]
        tagger = self._pipeline.get_pipe("tagger").labels if "tagger" in self._pipeline.pipe_names else ()
        return sorted({*tags, *tagger})

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """Parses sentences of words; returns None for one without words, and for one that spaCy splits."""
        pipeline = self._complete()
        with quietly():
            return [_tree_of(pipeline(self._document(words))) if words else None for words in sentences]

    def parse_dependencies(self, sentences: list[list[str]]) -> list[list[DependencyWord] | None]:
        """Raises ParserUnavailableError if spaCy's pipeline has no dependency parser."""
        if "parser" not in self._pipeline.pipe_names:
            raise ParserUnavailableError(
                "spaCy's pipeline has no dependency parser; --parser-package en_core_web_sm, for instance, has one"
            )
        with self._pipeline.select_pipes(disable=[name for name in self._pipeline.pipe_names if name == _COMPONENT]):
            documents = [self._pipeline(self._document(words)) if words else () for words in sentences]
        return [list(map(_dependency, document)) or None for document in documents]

    def parse_text(self, lines: list[str]) -> list[ParsedText | None]:
        """The leaves are spaCy's tokens, without those that are white space alone."""
        return [self._parse_line(line) for line in lines]

    def _parse_line(self, line: str) -> ParsedText | None:
        tokens = [token for token in self._pipeline.make_doc(line) if not token.is_space]
        if not tokens:
            return ParsedText((), [])
        ends = [token.idx + len(token.text) for token in tokens]
        spaces = [following.idx > end for following, end in zip(tokens[1:], ends)]
        document = self._document([token.text for token in tokens], [*spaces, False], self._options.ssplit == "none")
        with quietly():
            parsed = self._complete()(document)
        found = [_tree_of_sentence(sentence) for sentence in parsed.sents]
        trees = tuple(tree for tree in found if tree is not None)
        if len(trees) < len(found):
            return None
        return ParsedText(trees, [(token.idx, end) for token, end in zip(tokens, ends)])

    def _document(self, words: list[str], spaces: list[bool] | None = None, one_sentence: bool = True) -> Any:
        document = self._spacy.tokens.Doc(self._pipeline.vocab, words=words, spaces=spaces)
        if one_sentence:
            for token in document:
                token.is_sent_start = token.i == 0
        return document

    def _component(self) -> Any:
        return self._complete().get_pipe(_COMPONENT)

    def _complete(self) -> Any:
        """Adds benepar to the pipeline, which loads its model."""
        if not self._is_complete:
            try:
                with quietly():
                    component = self._pipeline.add_pipe(_COMPONENT, config={"model": str(self._model)})
            except Exception as error:
                # torch, transformers and pickle each have their own errors for a file that is not such a model.
                message = f"benepar cannot load {self._model}: {type(error).__name__}: {error}"
                raise ParserUnavailableError(message) from error
            if self._options.device != "auto":
                component._parser.to(self._options.device)
            self._is_complete = True
        return self._pipeline


def _tree_of(document: Any) -> Tree | None:
    sentences = list(document.sents)
    return _tree_of_sentence(sentences[0]) if len(sentences) == 1 else None


def _tree_of_sentence(sentence: Any) -> Tree | None:
    for token in sentence:
        if token.tag_ in ("", UNKNOWN_TAG):
            token.tag_ = FLAT_TAG
    try:
        forest = read_forest(sentence._.parse_string)
    except TreeFormatError:
        return None
    tree = Tree("TOP", forest)
    words = ["_".join(token.text.split()) for token in sentence]
    return tree.map_leaves(words) if len(tree.leaves()) == len(words) else None


def _dependency(token: Any) -> DependencyWord:
    is_root = token.head.i == token.i
    return DependencyWord(
        form=token.text,
        head=0 if is_root else token.head.i + 1,
        relation="root" if is_root else token.dep_ or "dep",
        lemma=token.lemma_ or "_",
        upos=token.pos_ or "_",
        xpos=token.tag_ or "_",
        features=str(token.morph) or "_",
    )
