"""Stanza's constituency parser. Only this file imports Stanza.

Models are loaded with the first sentence. torch has one thread while Stanza runs: its operations are so small that
several threads spend their time waiting for each other (forty times slower was measured beside a busy core).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib.metadata
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tree_fairseq.errors import ParserUnavailableError, TreeFairseqError
from tree_fairseq.parsing.parsers import DependencyWord, ParsedText, ParserOptions, register_parser
from tree_fairseq.parsing.stanza_models import (
    Models,
    download_command,
    find_language,
    find_models,
    language_error,
    models_digest,
    normal_language,
)
from tree_fairseq.parsing.stanza_trees import (
    choose_tag_column,
    known_tags,
    merge_multiword_tokens,
    tag_words,
    to_dependencies,
    to_label,
    to_tree,
)
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

# Raised when what this file makes of Stanza's output changes, so that no older cached parse is used.
_ADAPTER_VERSION = 1


def _import_stanza() -> Any:
    with _requiring_stanza():
        import stanza
    return stanza


@contextlib.contextmanager
def _requiring_stanza() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ParserUnavailableError("--tree-parser stanza needs Stanza: pip install 'tree-fairseq[stanza]'") from error


def visible_gpus() -> list[str]:
    """Returns torch's names of the GPUs that this process may use."""
    import torch

    return [f"cuda:{index}" for index in range(torch.cuda.device_count())]


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Gives torch one thread, and stops the garbage collector: Stanza's search makes objects so fast that the collector
    took a third of the time. Reference counts free nearly all of them; the rest is collected after the batch."""
    import torch

    threads, collecting = torch.get_num_threads(), gc.isenabled()
    torch.set_num_threads(1)
    gc.disable()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if collecting:
            gc.enable()


def _downloaded_models(options: ParserOptions, dependencies: bool = False) -> Models:
    """Finds the models in Stanza's own folder, and downloads them on first use."""
    stanza = _import_stanza()
    from stanza.resources.common import DEFAULT_MODEL_DIR
    from stanza.resources.default_packages import default_constituency, optional_constituency

    folder = Path(DEFAULT_MODEL_DIR)
    # One process downloads, the others wait and find it done: together they would write into each other's files.
    with open(Path(tempfile.gettempdir()) / f"tree_fairseq-{os.getuid()}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "resources.json").is_file():
            find_language(folder, options.lang)
            with contextlib.suppress(ParserUnavailableError):
                return find_models(folder, options, dependencies)
        else:
            published = sorted({*default_constituency, *optional_constituency})
            if normal_language(options.lang) not in published:
                raise language_error(options.lang, published)
        processors = {"tokenize": "default", "pos": "default", "constituency": options.package or "default"}
        processors.update(dict.fromkeys(["lemma", "depparse"] if dependencies else [], "default"))
        logger.info("downloading Stanza's models for %s to %s", options.lang, folder)
        try:
            stanza.download(options.lang, model_dir=str(folder), package=None, processors=processors, verbose=False)
        except Exception as error:
            # requests, huggingface_hub and the file system each have their own errors for "no network".
            raise ParserUnavailableError(
                f"Stanza's models for {options.lang!r} are not in {folder} and could not be downloaded "
                f"({type(error).__name__}). On a machine with network access: {download_command(options.lang)} ; "
                "copy the folder stanza_models here and add --parser-dir stanza_models"
            ) from error
    return find_models(folder, options, dependencies)


def _load_pipeline(options: ParserOptions, processors: list[str], models: Models, **more: Any) -> Any:
    """Returns Stanza's pipeline with these processors and model files; ``more`` are further arguments of it."""
    stanza = _import_stanza()
    device = options.device
    try:
        with tempfile.TemporaryDirectory() as folder, _undisturbed():
            # Stanza reads a list of models even if it is given the path of each.
            Path(folder, "resources.json").write_text("{}")
            return stanza.Pipeline(
                options.lang,
                dir=folder,
                package=None,
                download_method=None,
                allow_unknown_language=True,
                processors=dict.fromkeys(processors, "default"),
                tokenize_pretokenized=options.tokenize != "stanza",
                tokenize_no_ssplit=options.ssplit == "none",
                device=next(iter(visible_gpus()), "cpu") if device == "auto" else device,
                logging_level="ERROR",
                **{argument: str(path) for argument, path in models.items()},
                **more,
            )
    except TreeFairseqError:
        raise
    except Exception as error:
        files = ", ".join(sorted({str(path) for path in models.values()}))
        message = f"Stanza cannot load its models ({files}): {type(error).__name__}: {error}"
        raise ParserUnavailableError(message) from error


@register_parser("stanza", devices=lambda: visible_gpus())
class StanzaParser:
    """Stanza's tagger and constituency parser.

    Raises:
        ParserUnavailableError: there are no models, or they cannot be downloaded.
        LanguageWithoutParserError: Stanza has no constituency model for the language.
    """

    def __init__(self, options: ParserOptions):
        self._options = options
        self._models = find_models(options.parser_dir, options) if options.parser_dir else _downloaded_models(options)
        self._pipeline: Any = None
        self._dependency_pipeline: Any = None
        self._tag_column = ""

    def identity(self) -> dict[str, Any]:
        with _requiring_stanza():
            version = importlib.metadata.version("stanza")
        return {
            "name": "stanza",
            "version": version,
            "adapter": _ADAPTER_VERSION,
            "lang": self._options.lang,
            "models": models_digest(self._models),
        }

    def inventory(self) -> list[str]:
        """Returns all phrase labels that the model can build, and all tags."""
        self._load()
        labels = {*self._pipeline.processors["constituency"].get_constituents(), *self._model().root_labels}
        return sorted({*map(to_label, labels), *self.tags()})

    def tags(self) -> list[str]:
        """Returns all tags that the tagger can give or the parser has learned."""
        self._load()
        known = known_tags(self._pipeline.processors["pos"])[self._tag_column]
        return sorted({to_label(tag) for tag in {*known, *self._model().tags} if tag and tag != "_"})

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """Sentences on which the model gives up have None."""
        self._load()
        with _undisturbed():
            return self._parse_document(self._pipeline(sentences, processors="tokenize,pos"))

    def parse_text(self, lines: list[str]) -> list[ParsedText | None]:
        """The leaves are Stanza's tokens; white space inside a token becomes ``_``."""
        self._load()
        stanza = _import_stanza()
        results: list[ParsedText | None] = []
        with _undisturbed():
            documents = [stanza.Document([], text=line) for line in lines]
            tagged = self._pipeline.process(documents, processors="tokenize,mwt,pos")
            for line, document in zip_equal(lines, tagged):
                found = self._parse_document(document)
                trees = [tree for tree in found if tree is not None]
                is_whole = len(trees) == len(found)
                results.append(merge_multiword_tokens(line, document.sentences, trees) if is_whole else None)
        return results

    def parse_dependencies(self, sentences: list[list[str]]) -> list[list[DependencyWord]]:
        """Raises ParserUnavailableError if the folder of the models has no dependency parser."""
        if self._dependency_pipeline is None:
            folder, options = self._options.parser_dir, self._options.replace(tokenize="pretokenized")
            models = find_models(folder, options, True) if folder else _downloaded_models(options, True)
            # Without a model each word is its own lemma.
            lemmas = {} if "lemma_model_path" in models else {"lemma_use_identity": True}
            processors = ["tokenize", "pos", "lemma", "depparse"]
            self._dependency_pipeline = _load_pipeline(options, processors, models, **lemmas)
        with _undisturbed():
            return to_dependencies(self._dependency_pipeline(sentences))

    def _parse_document(self, document: Any) -> list[Tree | None]:
        """Returns a tree for each sentence of a tagged document.

        The model is called directly. Stanza's own processor reads the tags that the model's configuration names, which
        may be empty; and when the model gives up on a sentence, the processor gives later trees to earlier sentences.
        So a tree is only taken where its words agree.
        """
        tagged = tag_words(document.sentences, self._tag_column)
        order = sorted(range(len(tagged)), key=lambda position: -len(tagged[position]))
        parsed = self._model().parse_tagged_words([tagged[position] for position in order], self._options.batch_size)
        results: list[Tree | None] = [None] * len(tagged)
        remaining = map(to_tree, parsed)
        candidate = next(remaining, None)
        for position in order:
            if candidate is not None and candidate.leaves() == [word for word, _ in tagged[position]]:
                results[position] = candidate
                candidate = next(remaining, None)
        return results

    def _model(self) -> Any:
        return self._pipeline.processors["constituency"]._model

    def _load(self) -> None:
        """Loads the models, and makes sure that tags reach the parser."""
        if self._pipeline is not None:
            return
        processors = ["tokenize", *(["mwt"] if "mwt_model_path" in self._models else []), "pos", "constituency"]
        pipeline = _load_pipeline(self._options, processors, self._models)
        self._tag_column = choose_tag_column(pipeline)
        self._pipeline = pipeline
