"""The model files of a Stanza parser: where they are, and a digest of their contents. Stanza is not imported."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tree_fairseq.errors import LanguageWithoutParserError, ParserUnavailableError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.files import file_sha256

Models = dict[str, Path]
"""The files of one parser, by the argument of ``stanza.Pipeline`` that takes each."""

# File name in a flat folder -> argument of stanza.Pipeline that takes it.
_FLAT_FILES = {
    "constituency.pt": ("constituency_model_path",),
    "tagger.pt": ("pos_model_path",),
    "pretrain.pt": ("constituency_pretrain_path", "pos_pretrain_path"),
    "forward_charlm.pt": ("constituency_forward_charlm_path", "pos_forward_charlm_path"),
    "backward_charlm.pt": ("constituency_backward_charlm_path", "pos_backward_charlm_path"),
    "tokenizer.pt": ("tokenize_model_path",),
    "mwt.pt": ("mwt_model_path",),
}
# The same for dependencies, beside the tagger.
_DEPENDENCY_FILES = {
    "tagger.pt": ("pos_model_path",),
    "depparse.pt": ("depparse_model_path",),
    "lemmatizer.pt": ("lemma_model_path",),
    "pretrain.pt": ("depparse_pretrain_path", "pos_pretrain_path"),
    "forward_charlm.pt": ("depparse_forward_charlm_path", "pos_forward_charlm_path"),
    "backward_charlm.pt": ("depparse_backward_charlm_path", "pos_backward_charlm_path"),
}
_NEEDED = ("constituency.pt", "tagger.pt")
_PRETRAINED = ("pretrain", "forward_charlm", "backward_charlm")
_CHINESE = {"zh": "zh-hans"}


def download_command(lang: str, dependencies: bool = False) -> str:
    """Returns the shell command that fetches the models of a language, for ``--parser-dir stanza_models``."""
    wanted = ["tokenize", "pos", "constituency", *(["lemma", "depparse"] if dependencies else [])]
    processors = "{" + ", ".join(f"'{name}': 'default'" for name in wanted) + "}"
    call = f"stanza.download('{lang}', model_dir='stanza_models', package=None, processors={processors})"
    return f'python -c "import stanza; {call}"'


def find_models(folder: str | os.PathLike, options: ParserOptions) -> Models:
    """Finds the model files in a folder that holds ``constituency.pt``, ``tagger.pt`` and the files that they need, or
    has Stanza's own layout: ``resources.json`` and ``LANG/PROCESSOR/PACKAGE.pt``.

    Raises:
        ParserUnavailableError: a file is missing; the message names it and the command that fetches it.
        LanguageWithoutParserError: Stanza's list in this folder has no constituency model for the language.
    """
    folder = Path(folder)
    if (folder / "resources.json").is_file():
        return _stanza_layout(folder, options)
    if not folder.is_dir():
        raise _unavailable(f"--parser-dir {folder} is not a folder", options)
    if not any((folder / name).is_file() for name in _NEEDED):
        needed = " and ".join(_NEEDED)
        raise _unavailable(
            f"--parser-dir {folder} holds neither resources.json nor {needed}: no Stanza models are there", options
        )
    return _flat_layout(folder, options)


def find_dependency_models(folder: str | os.PathLike, options: ParserOptions) -> Models:
    """Finds the files of Stanza's dependency parser and its tagger, in the same folders as `find_models`.

    A lemmatizer is optional. Raises ParserUnavailableError if the folder has no dependency parser.
    """
    folder = Path(folder)
    if (folder / "resources.json").is_file():
        lang, entry = find_language(folder, options.lang)
        processors = ["pos", "depparse", *(["lemma"] if entry.get("lemma") else [])]
        paths = _layout_paths(folder, lang, entry, processors, options.replace(package=None))
        if "lemma_model_path" in paths and not paths["lemma_model_path"].is_file():
            del paths["lemma_model_path"]
    else:
        names = [
            name for name in _DEPENDENCY_FILES if (folder / name).is_file() or name in ("tagger.pt", "depparse.pt")
        ]
        paths = {argument: folder / name for name in names for argument in _DEPENDENCY_FILES[name]}
    if missing := sorted({str(path) for path in paths.values() if not path.is_file()}):
        raise ParserUnavailableError(
            f"Stanza's dependencies need {', '.join(missing)}, which is missing. On a machine with network access: "
            f"{download_command(options.lang, dependencies=True)} ; then --parser-dir stanza_models"
        )
    return paths


def _unavailable(message: str, options: ParserOptions) -> ParserUnavailableError:
    command = download_command(options.lang)
    return ParserUnavailableError(
        f"{message}. On a machine with network access: {command} ; then --parser-dir stanza_models"
    )


def _flat_layout(folder: Path, options: ParserOptions) -> Models:
    tokenizes = options.tokenize == "stanza"
    needed = (*_NEEDED, "tokenizer.pt") if tokenizes else _NEEDED
    if missing := [name for name in needed if not (folder / name).is_file()]:
        hint = "; --tree-tokenize pretokenized needs no tokenizer" if "tokenizer.pt" in missing else ""
        raise ParserUnavailableError(f"--parser-dir {folder} lacks {', '.join(missing)}{hint}")
    unused = () if tokenizes else ("tokenizer.pt", "mwt.pt")
    present = {name: folder / name for name in _FLAT_FILES if name not in unused and (folder / name).is_file()}
    return {argument: path for name, path in present.items() for argument in _FLAT_FILES[name]}


def _stanza_layout(folder: Path, options: ParserOptions) -> Models:
    lang, entry = find_language(folder, options.lang)
    paths = _layout_paths(folder, lang, entry, _processors(entry, options), options)
    if missing := sorted({str(path) for path in paths.values() if not path.is_file()}):
        raise _unavailable(f"--parser-dir {folder} lacks {', '.join(missing)}", options)
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
    return paths


def _processors(entry: Mapping[str, Any], options: ParserOptions) -> list[str]:
    if options.tokenize != "stanza":
        return ["pos", "constituency"]
    # Only languages whose tokens hold several words have a model for it.
    default = entry.get("packages", {}).get("default", {})
    return ["tokenize", *(["mwt"] if "mwt" in default else []), "pos", "constituency"]


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


def normal_language(lang: str) -> str:
    """Returns Stanza's name of a language; used if Stanza's list of aliases is missing."""
    lang = lang.strip().lower()
    return _CHINESE.get(lang, lang)


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
