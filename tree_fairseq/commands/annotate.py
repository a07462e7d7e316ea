"""Adds trees to a folder that stock fairseq made.

``tree-fairseq annotate data-bin --tree-parser stanza``

Token files and dictionaries are read, never written; their words are parsed. Splits that have trees already are left
alone, so the command also adds trees to a split that was copied into the folder later. To parse the text itself, or to
have ready-made trees, preprocess again: with the folder's ``--srcdict`` and ``--tgtdict``, token files become the same.
"""

from __future__ import annotations

import argparse
import os
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairseq.data.data_utils import infer_language_pair

import tree_fairseq
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.staging import Staging, Work, clear_published
from tree_fairseq.data_bin.token_files import load_dictionary, token_file_names, token_prefix, token_words
from tree_fairseq.data_bin.tree_store import label_dictionary_name
from tree_fairseq.errors import DestinationExistsError, InputError, MissingTreesError
from tree_fairseq.parsing.pieces import with_kind_of
from tree_fairseq.preprocessing.plan import tree_sides_of
from tree_fairseq.preprocessing.run import add_tree_arguments, building, encode_side, with_defaults
from tree_fairseq.preprocessing.tree_files import TreeSide, make_label_dictionary, start_sides, write_side
from tree_fairseq.support.options import command
from tree_fairseq.trees.text import TextInput, write_text


@dataclass(frozen=True)
class Pending:
    """The token files (``tokens``, without extension) of a split of a side that gets trees."""

    side: TreeSide
    split: str
    tokens: Path


def annotate(args: Namespace) -> None:
    """Does the work of the command, given its arguments."""
    folder = Path(args.destdir)
    if args.on_parse_error == "skip-pair":
        raise InputError("--on-parse-error skip-pair would leave out lines of token files, which stay as they are")
    clear_published(folder)
    if not folder.is_dir():
        raise MissingTreesError(f"there is no folder {folder}")
    if args.source_lang is None:
        args.source_lang, args.target_lang = infer_language_pair(os.fspath(folder))
    if args.source_lang is None:
        raise MissingTreesError(f"{folder} was not preprocessed: it has no token files such as train.en-de.en.idx")
    if args.target_lang == "None":
        args.target_lang = None
    source_lang, target_lang = args.source_lang, args.target_lang
    sides = tuple(_with_kind(folder, side, args) for side in tree_sides_of(args, source_lang, target_lang))
    pending = _without_trees(folder, Manifest.to_extend(folder, source_lang, target_lang), sides)
    splits = {side.lang: [each.split for each in pending if each.side is side] for side in sides}
    names = [name for each in pending for name in token_file_names(each.tokens)]
    names += [f"dict.{side.lang}.txt" for side in sides]
    decides_the_files = {
        "command": "tree_fairseq.commands.annotate",
        "sides": {side.lang: {"options": side.options.to_json(), "identity": side.record().identity} for side in sides},
        "splits": splits,
        "tokens": {name: FileRecord.of(folder / name).sha256 for name in sorted(names)},
    }
    staging = Staging(folder, decides_the_files, args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = Manifest.to_extend(folder, source_lang, target_lang)
    start_sides(manifest, sides, splits)
    token_bytes = sum(path.stat().st_size for path in folder.glob("*.bin"))
    with building(staging, manifest, args, token_bytes) as work:
        # A language may lack the token files of a split.
        languages = [lang for lang in (source_lang, target_lang) if lang and (folder / f"dict.{lang}.txt").exists()]
        found = [_splits_in(folder, source_lang, target_lang, lang) for lang in languages]
        manifest.enter_tokens(folder, languages, sorted({each.split for each in pending}.intersection(*found)))
        for side in sides:
            texts = {each.split: _words(folder, each, work) for each in pending if each.side is side}
            trees = encode_side(side, texts, work, texts, needs_leaves=False)
            reused = folder / label_dictionary_name(side.lang)
            labels = make_label_dictionary(side, trees, reused if reused.exists() else None, work.pool)
            write_side(work, side, trees, labels, folder)


def _with_kind(folder: Path, side: TreeSide, args: Namespace) -> TreeSide:
    """The side, whose option for subwords follows from the words of the folder."""
    for split in _splits_in(folder, args.source_lang, args.target_lang, side.lang)[:1]:
        tokens = folder / token_prefix(split, args.source_lang, args.target_lang, side.lang)
        words = map(" ".join, token_words(tokens, load_dictionary(folder, side.lang)))
        side = replace(side, options=with_kind_of(side.options, words, tokens))
    return side


def _without_trees(folder: Path, manifest: Manifest, sides: Sequence[TreeSide]) -> list[Pending]:
    """The splits of all sides that get trees; raises an error if there are none, or they would have other words."""
    for section in manifest.sections.values():
        section.refuse_trees(folder)
    pending = []
    for side in sides:
        if not side.leaves_are_tokens:
            hint = f"Preprocess the text with them: --srcdict {folder}/dict.{side.lang}.txt gives equal token files."
            raise InputError("only the words of token files get trees here, not other text or trees", hint=hint)
        done = manifest.sides[side.lang].splits if side.lang in manifest.sides else {}
        pair = manifest.source_lang, manifest.target_lang
        found = _splits_in(folder, *pair, side.lang)
        if not found:
            raise MissingTreesError(f"{folder} has no token files of {side.lang} ({pair[0]}-{pair[1]})")
        pending += [
            Pending(side, split, folder / token_prefix(split, *pair, side.lang)) for split in found if split not in done
        ]
    if not pending:
        raise DestinationExistsError(f"all splits of {folder} have trees already")
    return pending


def _words(folder: Path, pending: Pending, work: Work) -> TextInput:
    path = work.staging.folder("texts") / f"{pending.split}.{pending.side.lang}"
    return write_text(path, map(" ".join, token_words(pending.tokens, load_dictionary(folder, pending.side.lang))))


def _splits_in(folder: Path, source_lang: str, target_lang: str | None, lang: str) -> list[str]:
    """Returns the names of the splits that have token files of a language, train first."""
    pattern = re.compile(re.escape(token_prefix("", source_lang, target_lang, lang)) + r"(\.idx)?")
    parts = (path.name.partition(".") for path in folder.iterdir())
    names = {name for name, dot, rest in parts if pattern.fullmatch(dot + rest)}
    return sorted(names, key=lambda name: (not name.startswith("train"), name))


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq annotate",
        description="Adds trees to a folder that fairseq-preprocess made, without touching its token files. The words "
        "are read from the token files, where rare ones are <unk>. A stopped run is finished by the same command.",
    )
    add = parser.add_argument
    add("destdir", metavar="folder", help="the folder that fairseq-preprocess wrote")
    add("-s", "--source-lang", metavar="SRC", help="default: as the files are named")
    add("-t", "--target-lang", metavar="TARGET", help="default: as the files are named")
    add("--workers", metavar="N", default=1, type=int, help="number of parallel workers (default: %(default)s)")
    add_tree_arguments(parser)
    args = parser.parse_args(arguments)
    if args.tree_parser is None:
        parser.error("--tree-parser is needed")
    tree_fairseq.register()
    annotate(with_defaults(args))
