"""Stanza's constituency parser, and the files of its models. Only this file imports Stanza, when a parser is built.

Models are loaded with the first sentence. torch has one thread while Stanza runs: its operations are so small that
several threads spend their time waiting for each other (forty times slower was measured beside a busy core).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import importlib.metadata
import itertools
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tree_fairseq.errors import LanguageWithoutParserError, ParserUnavailableError, TreeFairseqError
from tree_fairseq.parsing import stanza_trees
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.parsing.parsers import ParserOptions, register_parser
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.python_versions import ONLY_WEIGHTS, environment, zip_equal
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

# Raised when what this file makes of Stanza's output changes, so that no older cached parse is used.
_ADAPTER_VERSION = 1

Models = dict[str, Path]  # the files of one parser, by the argument of ``stanza.Pipeline`` that takes each

_MODELS = {"tokenize": "tokenizer.pt", "mwt": "mwt.pt", "pos": "tagger.pt", "constituency": "constituency.pt"}
"""The file of each processor's model in a flat folder."""
# What the models of some processors read beside their own file.
_PRETRAINED = ("pretrain", "forward_charlm", "backward_charlm")


def download_command(lang: str) -> str:
    """Returns the shell command that fetches the models of a language, for ``--parser-dir stanza_models``."""
    processors = dict.fromkeys(["tokenize", "pos", "constituency"], "default")
    call = f"stanza.download('{lang}', model_dir='stanza_models', package=None, processors={processors})"
    return f'python -c "import stanza; {call}"'


def find_models(folder: str | os.PathLike, options: ParserOptions) -> Models:
    """Finds the model files of the tagger and the constituency parser in a folder.

    A flat folder has ``constituency.pt``, ``tagger.pt``, ``pretrain.pt``, ... A folder in Stanza's own layout has
    ``resources.json`` and ``LANG/PROCESSOR/PACKAGE.pt``. Raises ParserUnavailableError if a file is missing, with the
    command that fetches it, and LanguageWithoutParserError if Stanza's list in this folder has no constituency model
    for the language.
    """
    folder = Path(folder)
    tokenizers = ["tokenize", "mwt"] if options.tokenize == "stanza" else []
    processors = [*tokenizers, "pos", "constituency"]
    if (folder / "resources.json").is_file():
        lang, entry = find_language(folder, options.lang)
        # Only languages whose tokens hold several words have a model for them.
        has_mwt = "mwt" in entry.get("packages", {}).get("default", {})
        used = [processor for processor in processors if has_mwt or processor != "mwt"]
        paths = _layout_paths(folder, lang, entry, used, options)
    else:
        used = [processor for processor in processors if processor != "mwt" or (folder / _MODELS["mwt"]).is_file()]
        paths = {f"{processor}_model_path": folder / _MODELS[processor] for processor in used}
        for processor, kind in itertools.product(("pos", "constituency"), _PRETRAINED):
            if (folder / f"{kind}.pt").is_file():
                paths[f"{processor}_{kind}_path"] = folder / f"{kind}.pt"
    if missing := sorted({str(path.relative_to(folder)) for path in paths.values() if not path.is_file()}):
        problem = "lacks" if folder.is_dir() else "is not a folder and lacks"
        raise ParserUnavailableError(
            f"--parser-dir {folder} {problem} {', '.join(missing)}. On a machine with network access: "
            f"{download_command(options.lang)} ; then --parser-dir stanza_models"
        )
    return paths


def _layout_paths(
    folder: Path, lang: str, entry: Mapping[str, Any], processors: list[str], options: ParserOptions
) -> Models:
    paths: Models = {}
    for processor in processors:
        package = _package(entry, processor, options)
        paths[f"{processor}_model_path"] = folder / lang / processor / f"{package}.pt"
        for dependency in entry.get(processor, {}).get(package, {}).get("dependencies", ()):
            if dependency["model"] in _PRETRAINED:
                argument = f"{processor}_{dependency['model']}_path"
                paths[argument] = folder / lang / dependency["model"] / f"{dependency['package']}.pt"
    if outside := [str(path) for path in paths.values() if os.path.relpath(path, folder).startswith(os.pardir)]:
        raise ParserUnavailableError(f"{folder / 'resources.json'} names models outside its folder: {outside[0]}")
    return paths


def _package(entry: Mapping[str, Any], processor: str, options: ParserOptions) -> str:
    """Returns the package of a processor: the user's (a constituency model or a whole set), or the default one."""
    sets = entry.get("packages", {})
    known = entry.get("constituency", {})
    if options.package is not None and options.package not in known and options.package not in sets:
        choices = ", ".join(sorted({*known, *sets}))
        message = f"--parser-package {options.package} is not known for {options.lang}; there are {choices}"
        raise ParserUnavailableError(message)
    if processor == "constituency" and options.package in known:
        return options.package or ""
    if package := sets.get(options.package, {}).get(processor) or sets.get("default", {}).get(processor):
        return package
    # The constituency model of some languages is an optional one: take it if there is only one.
    packages = sorted(entry.get(processor, {}))
    if len(packages) != 1:
        names = ", ".join(packages) or "there is none"
        raise ParserUnavailableError(f"say which {processor} model to use with --parser-package: {names}")
    return packages[0]


def find_language(folder: Path, lang: str) -> tuple[str, dict[str, Any]]:
    """Returns a language's name in Stanza's list of models, aliases resolved, and its entry there."""
    path = folder / "resources.json"
    try:
        resources = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(resources, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise ParserUnavailableError(f"{path} cannot be read: {error}") from error
    entries = {name: entry for name, entry in resources.items() if isinstance(entry, dict)}
    name, seen = lang.strip().lower(), set()
    while name not in seen and "alias" in entries.get(name, ()):
        seen.add(name)
        name = entries[name]["alias"]
    if not entries.get(name, {}).get("constituency"):
        raise language_error(lang, sorted(name for name, entry in entries.items() if entry.get("constituency")))
    return name, entries[name]


def language_error(lang: str, languages: list[str]) -> LanguageWithoutParserError:
    """Returns the error for a language that Stanza cannot parse."""
    return LanguageWithoutParserError(
        f"Stanza has no constituency model for {lang!r}; it has one for {', '.join(languages)}. "
        "Parse the text with another parser, write one bracketed tree a line and give that file with --tree-parser "
        "brackets; or give models of your own (constituency.pt, tagger.pt, pretrain.pt) with --parser-dir"
    )


def models_digest(models: Mapping[str, Path]) -> str:
    """Returns the sha256 over the contents of all files."""
    total = hashlib.sha256()
    for name, path in sorted(models.items()):
        status = path.stat()
        total.update(f"{name} {_file_digest(path, status.st_size, status.st_mtime_ns)}\n".encode())
    return total.hexdigest()


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, modified: int) -> str:
    """Returns the sha256 of a file. A changed file has another size or time and is read again."""
    return file_sha256(path)


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
def _undisturbed(is_loading: bool = False) -> Iterator[None]:
    """Gives torch one thread, and stops the garbage collector: Stanza's search makes objects so fast that the collector
    took a third of the time. Reference counts free nearly all of them; the rest is collected after the batch.

    Unless models are loaded, tensors are those of inference, which cost less to make: a sixth of the time."""
    import torch

    threads, collecting = torch.get_num_threads(), gc.isenabled()
    torch.set_num_threads(1)
    gc.disable()
    try:
        with torch.inference_mode(not is_loading):
            yield
    finally:
        torch.set_num_threads(threads)
        if collecting:
            gc.enable()


def _downloaded_models(options: ParserOptions) -> Models:
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
                return find_models(folder, options)
        else:
            published = sorted({*default_constituency, *optional_constituency})
            lang = options.lang.strip().lower()
            if {"zh": "zh-hans"}.get(lang, lang) not in published:  # the list of aliases is not here yet
                raise language_error(options.lang, published)
        processors = {"tokenize": "default", "pos": "default", "constituency": options.package or "default"}
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
    return find_models(folder, options)


def _load_pipeline(options: ParserOptions, processors: list[str], models: Models) -> Any:
    stanza = _import_stanza()
    device = options.device
    try:
        # Stanza before 1.13 unpickles what torch refuses to load as weights.
        only_weights = environment(ONLY_WEIGHTS, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" not in os.environ)
        with tempfile.TemporaryDirectory() as folder, _undisturbed(is_loading=True), only_weights:
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

    Raises ParserUnavailableError if there are no models, or they cannot be downloaded; LanguageWithoutParserError if
    Stanza has no constituency model for the language.
    """

    def __init__(self, options: ParserOptions):
        self._options = options
        self._models = find_models(options.parser_dir, options) if options.parser_dir else _downloaded_models(options)
        self._pipeline: Any = None
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
        return sorted({*map(stanza_trees.to_label, labels), *self.tags()})

    def tags(self) -> list[str]:
        """Returns all tags that the tagger can give or the parser has learned."""
        self._load()
        known = stanza_trees.known_tags(self._pipeline.processors["pos"])[self._tag_column]
        return sorted({stanza_trees.to_label(tag) for tag in {*known, *self._model().tags} if tag and tag != "_"})

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
                results.append(
                    stanza_trees.merge_multiword_tokens(line, document.sentences, trees) if is_whole else None
                )
        return results

    def _parse_document(self, document: Any) -> list[Tree | None]:
        """Returns a tree for each sentence of a tagged document.

        The model is called directly. Stanza's own processor reads the tags that the model's configuration names, which
        may be empty; and when the model gives up on a sentence, the processor gives later trees to earlier sentences.
        So a tree is only taken where its words agree.
        """
        tagged = stanza_trees.tag_words(document.sentences, self._tag_column)
        order = sorted(range(len(tagged)), key=lambda position: -len(tagged[position]))
        parsed = self._model().parse_tagged_words([tagged[position] for position in order], self._options.batch_size)
        results: list[Tree | None] = [None] * len(tagged)
        remaining = map(stanza_trees.to_tree, parsed)
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
        self._tag_column = stanza_trees.choose_tag_column(pipeline)
        self._pipeline = pipeline
