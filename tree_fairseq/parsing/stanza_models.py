"""The model files of a Stanza parser: where they are, and a digest of their contents. Stanza is not imported."""

from __future__ import annotations

import hashlib
import itertools
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

_MODELS = {
    "tokenize": "tokenizer.pt",
    "mwt": "mwt.pt",
    "pos": "tagger.pt",
    "lemma": "lemmatizer.pt",
    "constituency": "constituency.pt",
    "depparse": "depparse.pt",
}
"""The file of each processor's model in a flat folder."""
# What the models of some processors read beside their own file.
_PRETRAINED = ("pretrain", "forward_charlm", "backward_charlm")
_CHINESE = {"zh": "zh-hans"}


def download_command(lang: str, dependencies: bool = False) -> str:
    """Returns the shell command that fetches the models of a language, for ``--parser-dir stanza_models``."""
    wanted = ["tokenize", "pos", "constituency", *(["lemma", "depparse"] if dependencies else [])]
    processors = "{" + ", ".join(f"'{name}': 'default'" for name in wanted) + "}"
    call = f"stanza.download('{lang}', model_dir='stanza_models', package=None, processors={processors})"
    return f'python -c "import stanza; {call}"'


def find_models(folder: str | os.PathLike, options: ParserOptions, dependencies: bool = False) -> Models:
    """Finds the model files of the tagger and the constituency parser, or the dependency parser, in a folder.

    A flat folder has ``constituency.pt``, ``tagger.pt``, ``pretrain.pt``, ... A folder in Stanza's own layout has
    ``resources.json`` and ``LANG/PROCESSOR/PACKAGE.pt``.

    Raises:
        ParserUnavailableError: a file is missing; the message names it and the command that fetches it.
        LanguageWithoutParserError: Stanza's list in this folder has no constituency model for the language.
    """
    folder = Path(folder)
    tokenizers = ["tokenize", "mwt"] if options.tokenize == "stanza" else []
    processors = ["pos", "depparse", "lemma"] if dependencies else [*tokenizers, "pos", "constituency"]
    if (folder / "resources.json").is_file():
        lang, entry = find_language(folder, options.lang)
        # Only languages whose tokens hold several words have a model for them.
        has_mwt = "mwt" in entry.get("packages", {}).get("default", {})
        left_out = [*([] if has_mwt else ["mwt"]), *([] if entry.get("lemma") else ["lemma"])]
        used = [processor for processor in processors if processor not in left_out]
        paths = _layout_paths(folder, lang, entry, used, options.replace(package=None) if dependencies else options)
        optional = ["lemma_model_path"]
    else:
        paths = {f"{processor}_model_path": folder / _MODELS[processor] for processor in processors}
        for processor, kind in itertools.product(processors, _PRETRAINED):
            if processor in ("pos", "constituency", "depparse") and (folder / f"{kind}.pt").is_file():
                paths[f"{processor}_{kind}_path"] = folder / f"{kind}.pt"
        optional = ["lemma_model_path", "mwt_model_path"]
    found = {argument: path for argument, path in paths.items() if argument not in optional or path.is_file()}
    if missing := sorted({str(path.relative_to(folder)) for path in found.values() if not path.is_file()}):
        problem = "lacks" if folder.is_dir() else "is not a folder and lacks"
        raise ParserUnavailableError(
            f"--parser-dir {folder} {problem} {', '.join(missing)}. On a machine with network access: "
            f"{download_command(options.lang, dependencies)} ; then --parser-dir stanza_models"
        )
    return found


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
