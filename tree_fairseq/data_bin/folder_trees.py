"""The trees of a whole folder: label dictionaries and side files of each side, and the manifest that binds them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairseq.data import Dictionary

from tree_fairseq import __version__
from tree_fairseq.data_bin.label_dictionary import label_dictionary_name, load_label_dictionary, save_label_dictionary
from tree_fairseq.data_bin.manifest import FileRecord, Manifest, SideRecord
from tree_fairseq.data_bin.side_files import dictionary_of_census, finish_split, take_census
from tree_fairseq.data_bin.split_trees import SplitTrees
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.data_bin.tree_store import store_bytes, tree_file_paths
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.files import require_room
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import FLAT_LABEL, FLAT_TAG, ParserOptions, is_expensive

logger = logging.getLogger(__name__)

# Options that change how fast trees are made and what happens to bad input, but not which trees good input gets.
_INDIFFERENT_OPTIONS = ("batch_size", "device", "parser_dir", "on_parse_error", "max_parse_failures")


@dataclass(frozen=True)
class TreeSide:
    """A side whose trees are kept.

    Attributes:
        side: ``source`` or ``target``
        lang: its language, the suffix of its files
        options: how its text is parsed
    """

    side: str
    lang: str
    options: ParserOptions

    def record(self) -> SideRecord:
        """The side's entry in the manifest, as yet without splits."""
        return SideRecord(
            side=self.side,
            parser=self.options.to_json(),
            identity=LineParser(self.options).identity(),
            labels=label_dictionary_name(self.lang),
        )

    def known_labels(self, cache: Path) -> tuple[list[str], list[str]]:
        """All labels that trees of new text can have, and those of them that stand directly above words.

        Args:
            cache: folder of the parse cache, which remembers the labels of a parser
        """
        with contextlib.ExitStack() as stack:
            known = stack.enter_context(ParseCache(cache)) if is_expensive(self.options.name) else None
            parser = LineParser(self.options, cache=known)
            return parser.inventory(), parser.tags()


def start_manifest(existing: Manifest | None, source_lang: str, target_lang: str | None) -> Manifest:
    """A manifest to add sides to: the folder's own, if it has one.

    Raises:
        DataFolderError: the folder holds another pair of languages.
    """
    if existing is None:
        return Manifest(source_lang, target_lang)
    if (existing.source_lang, existing.target_lang) != (source_lang, target_lang):
        raise DataFolderError(
            f"the folder holds trees of {existing.source_lang}-{existing.target_lang}, "
            f"not of {source_lang}-{target_lang}: choose another destination"
        )
    existing.package_version = __version__
    return existing


def add_side(manifest: Manifest, side: TreeSide, replaced_splits: Iterable[str]) -> SideRecord:
    """The entry of a side, new or the existing one less the splits that will be written again.

    Raises:
        DataFolderError: splits that stay were parsed in another way: interactive translation could not parse like both.
    """
    new = side.record()
    old = manifest.sides.get(side.lang)
    if old is not None:
        for name in old.splits.keys() & set(replaced_splits):
            manifest.forget_split(side.lang, name)
        if old.splits and not same_parses(old, new):
            raise DataFolderError(
                f"{', '.join(old.splits)} of the folder were parsed for {side.lang} by {old.identity}, with {old.parser}, which "
                f"is not what was asked for now ({new.identity}, {new.parser}): parse with the same, or choose another destination"
            )
        new.splits = old.splits
    manifest.sides[side.lang] = new
    return new


def same_parses(first: SideRecord, second: SideRecord) -> bool:
    """Whether two sides give the same trees to the same text."""

    def essence(side: SideRecord) -> dict:
        options = {name: value for name, value in side.parser.items() if name not in _INDIFFERENT_OPTIONS}
        return {"identity": side.identity, "options": options}

    return essence(first) == essence(second)


def make_label_dictionary(
    side: TreeSide, trees: Mapping[str, SplitTrees], reused: Path | None, cache: Path
) -> Dictionary:
    """The label dictionary of a side: the one to be used again, or one of the parser's inventory and train's labels.

    Args:
        side: the side
        trees: its trees, by split
        reused: a label dictionary to be used again
        cache: folder of the parse cache, which remembers the labels of a parser

    Raises:
        InputError: neither of them is there to be had.
    """
    if reused is not None:
        logger.info("[trees] labels of %s: from %s", side.lang, reused)
        return load_label_dictionary(reused)
    inventory, tags = side.known_labels(cache)
    if "train" not in trees and set(inventory) <= {FLAT_LABEL, FLAT_TAG}:
        raise InputError(
            f"the labels of {side.lang} are not known: {side.options.name} does not name its labels and there is no train split",
            hint="Give --trainpref, or a dictionary (--srcdict, --tgtdict) that lies beside a label dictionary.",
        )
    census = take_census(trees["train"].chunks if "train" in trees else [])
    dictionary = dictionary_of_census(census, inventory, tags)
    logger.info("[trees] labels of %s: %d types", side.lang, len(dictionary))
    return dictionary


def write_side(
    manifest: Manifest,
    side: TreeSide,
    trees: Mapping[str, SplitTrees],
    dictionary: Dictionary,
    output: Path,
    token_folder: Path,
) -> None:
    """Writes the label dictionary and the tree files of a side and enters them into the manifest.

    Args:
        manifest: with the side's entry (:func:`add_side`)
        side: the side
        trees: the encoded lines of each split whose token files exist
        dictionary: label dictionary
        output: folder for the files
        token_folder: folder of the token files
    """
    record = manifest.sides[side.lang]
    save_label_dictionary(dictionary, output / record.labels)
    _enter_dictionary(manifest, output / record.labels, in_use=bool(record.splits))
    for name, split in trees.items():
        prefix = token_prefix(name, manifest.source_lang, manifest.target_lang, side.lang)
        require_room(output, store_bytes(split.lines, split.nodes), f"the trees of {prefix}")
        record.splits[name] = finish_split(split, dictionary, output, token_folder, prefix)
        enter_files(manifest, tree_file_paths(output / f"{prefix}.tree"))


def enter_tokens(manifest: Manifest, folder: Path, languages: Iterable[str], splits: Iterable[str]) -> None:
    """Enters dictionaries and token files into the manifest.

    Raises:
        DictionaryMismatchError: a dictionary differs from the one that files which stay were made with.
    """
    languages = list(languages)
    in_use = any(side.splits for side in (*manifest.sides.values(), *manifest.sections.values()))
    for lang in languages:
        _enter_dictionary(manifest, folder / f"dict.{lang}.txt", in_use)
    for split in splits:
        for lang in languages:
            prefix = folder / token_prefix(split, manifest.source_lang, manifest.target_lang, lang)
            enter_files(manifest, [folder / name for name in token_file_names(prefix, found_impl(prefix))])


def _enter_dictionary(manifest: Manifest, path: Path, in_use: bool) -> None:
    """Enters a dictionary, which must be the known one if there are files that stay and were made with that."""
    known = manifest.files.get(path.name)
    if known is not None and in_use:
        known.verify_content(path)
    enter_files(manifest, [path])


def enter_files(manifest: Manifest, paths: Iterable[Path]) -> None:
    """Enters the sizes and hashes of files."""
    for path in paths:
        manifest.files[path.name] = FileRecord.of(path)
