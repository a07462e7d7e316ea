"""Adds trees to a folder that stock fairseq made.

``tree-fairseq annotate data-bin --tree-parser stanza``

Token files and dictionaries are read, never written. Splits that have trees already are left alone, so the command also
adds trees to a split that was copied into the folder later.
"""

from __future__ import annotations

import argparse
import os
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairseq.data.data_utils import infer_language_pair

import tree_fairseq
from tree_fairseq.data_bin.kinds import registered_kinds
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.staging import Staging, Work, clear_published
from tree_fairseq.data_bin.token_files import (
    found_impl,
    load_dictionary,
    require_same_tokens,
    token_file_names,
    token_prefix,
    token_words,
)
from tree_fairseq.data_bin.tree_store import label_dictionary_name
from tree_fairseq.errors import DestinationExistsError, InputError, MissingTreesError
from tree_fairseq.parsing.pieces import with_kind_of
from tree_fairseq.preprocessing.plan import Inputs, Split, splits_of, tree_sides_of
from tree_fairseq.preprocessing.run import LEAVES, add_tree_arguments, building, encode_side, with_defaults
from tree_fairseq.preprocessing.text_files import TEXT_FLAGS, TextPlan
from tree_fairseq.preprocessing.tree_files import TreeSide, make_label_dictionary, start_sides, write_side
from tree_fairseq.support.options import command
from tree_fairseq.trees.text import TextInput, inspect_text


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
    source_lang, target_lang = args.source_lang, args.target_lang = _languages(folder, args)
    sides = tuple(_with_kind(folder, side, args) for side in tree_sides_of(args, source_lang, target_lang))
    given = (*splits_of(args), *map(_named_split, args.split))
    pending = _without_trees(folder, Manifest.to_extend(folder, source_lang, target_lang), sides, given)
    inputs = _inspect(pending, {(split.name, side.lang): split.path(side.lang) for side in sides for split in given})
    staging = Staging(folder, _description(folder, sides, pending, inputs), args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = Manifest.to_extend(folder, source_lang, target_lang)
    start_sides(manifest, sides, {side.lang: [each.split for each in pending if each.side is side] for side in sides})
    languages = {"source": source_lang} if target_lang is None else {"source": source_lang, "target": target_lang}
    text = TextPlan.of(args, languages, {side.lang: side.options for side in sides})
    text.begin(manifest, [])
    token_bytes = sum(path.stat().st_size for path in folder.glob("*.bin"))
    with building(staging, manifest, args, token_bytes) as work:
        texts = {**inputs, **_write_words(folder, pending, inputs, work)}
        # A language may lack the token files of a split.
        languages = [lang for lang in (source_lang, target_lang) if lang and (folder / f"dict.{lang}.txt").exists()]
        found = [_splits_in(folder, source_lang, target_lang, lang) for lang in languages]
        manifest.enter_tokens(folder, languages, sorted({each.split for each in pending}.intersection(*found)))
        for side in sides:
            own = [each for each in pending if each.side is side]
            _write_trees(folder, side, own, {each.split: texts[each.split, side.lang] for each in own}, work)
        text.enter(work)


def _with_kind(folder: Path, side: TreeSide, args: Namespace) -> TreeSide:
    """The side, whose option for subwords follows from the words of the folder."""
    for split in _splits_in(folder, args.source_lang, args.target_lang, side.lang)[:1]:
        tokens = folder / token_prefix(split, args.source_lang, args.target_lang, side.lang)
        words = map(" ".join, token_words(tokens, load_dictionary(folder, side.lang)))
        side = replace(side, options=with_kind_of(side.options, words, tokens))
    return side


def _without_trees(
    folder: Path, manifest: Manifest, sides: Sequence[TreeSide], given: Sequence[Split]
) -> list[Pending]:
    """The splits of all sides that get trees; raises an error if there are none, or one that was given is missing."""
    for kind in registered_kinds():
        kind.refuse_trees(folder, manifest)
    pending = []
    for side in sides:
        done = manifest.sides[side.lang].splits if side.lang in manifest.sides else {}
        pair = manifest.source_lang, manifest.target_lang
        found = _splits_in(folder, *pair, side.lang)
        if not found:
            raise MissingTreesError(f"{folder} has no token files of {side.lang} ({pair[0]}-{pair[1]})")
        pending += [
            Pending(side, split, folder / token_prefix(split, *pair, side.lang)) for split in found if split not in done
        ]
        if unknown := sorted({split.name for split in given} - set(found)):
            raise InputError(f"{folder} has no split {', '.join(unknown)}, for which a text was given")
    if not pending:
        raise DestinationExistsError(f"all splits of {folder} have trees already")
    return pending


def _inspect(pending: Sequence[Pending], given: Mapping[tuple[str, str], Path]) -> Inputs:
    """Reads the texts that were given, by split and language, and compares them with their token files."""
    inputs = {key: inspect_text(path) for key, path in given.items()}
    for each in pending:
        side, text = each.side, inputs.get((each.split, each.side.lang))
        if text is not None and side.leaves_are_tokens:
            require_same_tokens(text.path, each.tokens, load_dictionary(each.tokens.parent, side.lang))
        if text is None and side.options.name == "brackets":
            raise MissingTreesError(
                f"--tree-parser brackets needs the trees of {each.split} for {side.lang}: "
                f"give --trainpref, --validpref, --testpref or --split {each.split}=PREFIX"
            )
    return inputs


def _description(folder: Path, sides: Sequence[TreeSide], pending: Sequence[Pending], inputs: Inputs) -> dict[str, Any]:
    """All that decides what the files will be."""
    names = [name for each in pending for name in token_file_names(each.tokens, found_impl(each.tokens))]
    names += [f"dict.{side.lang}.txt" for side in sides]
    return {
        "command": "tree_fairseq.commands.annotate",
        "sides": {side.lang: {"options": side.options.to_json(), "identity": side.record().identity} for side in sides},
        "splits": {side.lang: [each.split for each in pending if each.side is side] for side in sides},
        "texts": {f"{split}.{lang}": text.sha256 for (split, lang), text in sorted(inputs.items())},
        "tokens": {name: FileRecord.of(folder / name).sha256 for name in sorted(names)},
    }


def _write_words(folder: Path, pending: Sequence[Pending], inputs: Inputs, work: Work) -> Inputs:
    """Writes the words of the token files for the splits without a given text."""
    written = {}
    for each in pending:
        key = each.split, each.side.lang
        if key not in inputs:
            path = work.staging.folder("texts") / ".".join(key)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                for words in token_words(each.tokens, load_dictionary(folder, each.side.lang)):
                    file.write(" ".join(words) + "\n")
            written[key] = inspect_text(path)
    return written


def _write_trees(
    folder: Path, side: TreeSide, pending: Sequence[Pending], texts: Mapping[str, TextInput], work: Work
) -> None:
    """Writes the tree files and the label dictionary of a side."""
    needs_leaves = not side.leaves_are_tokens  # they are compared with the token files
    trees = encode_side(side, texts, work, texts, needs_leaves)
    for each in pending if needs_leaves else ():
        leaves = work.staging.folder(LEAVES) / f"{each.split}.{side.lang}"
        try:
            require_same_tokens(leaves, each.tokens, load_dictionary(folder, side.lang))
        except InputError as error:
            raise error.at(path=texts[each.split].path) from None
    reused = folder / label_dictionary_name(side.lang)
    labels = make_label_dictionary(side, trees, reused if reused.exists() else None, work.pool)
    write_side(work, side, trees, labels, folder)


def _languages(folder: Path, args: Namespace) -> tuple[str, str | None]:
    """Returns source and target, as given or as the files are named."""
    if not folder.is_dir():
        raise MissingTreesError(f"there is no folder {folder}")
    source_lang, target_lang = args.source_lang, args.target_lang
    if source_lang is None:
        source_lang, target_lang = infer_language_pair(os.fspath(folder))
    if source_lang is None:
        raise MissingTreesError(f"{folder} was not preprocessed: it has no token files such as train.en-de.en.idx")
    return source_lang, None if target_lang == "None" else target_lang


def _splits_in(folder: Path, source_lang: str, target_lang: str | None, lang: str) -> list[str]:
    """Returns the names of the splits that have token files of a language, train first."""
    pattern = re.compile(re.escape(token_prefix("", source_lang, target_lang, lang)) + r"(\.idx)?")
    parts = (path.name.partition(".") for path in folder.iterdir())
    names = {name for name, dot, rest in parts if pattern.fullmatch(dot + rest)}
    return sorted(names, key=lambda name: (not name.startswith("train"), name))


def _named_split(given: str) -> Split:
    name, separator, prefix = given.partition("=")
    if not separator:
        raise InputError(f"--split takes NAME=PREFIX, not {name}")
    return Split(name, prefix)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq annotate",
        description="Adds trees to a folder that fairseq-preprocess made, without touching its token files. The words "
        "are read from the token files, where rare ones are <unk>; give the texts to have them parsed as they are. "
        "A stopped run is finished by the same command.",
    )
    add = parser.add_argument
    add("destdir", metavar="folder", help="the folder that fairseq-preprocess wrote")
    add("-s", "--source-lang", metavar="SRC", help="default: as the files are named")
    add("-t", "--target-lang", metavar="TARGET", help="default: as the files are named")
    for split, many in (("train", ""), ("valid", "comma separated "), ("test", "comma separated ")):
        text = f"{many}prefix of the {split} text, or of its trees for --tree-parser brackets"
        add(f"--{split}pref", metavar="FP", help=text)
    text = "the same for a split of any name, such as train1; may be repeated"
    add("--split", metavar="NAME=FP", action="append", default=[], help=text)
    add("--workers", metavar="N", default=1, type=int, help="number of parallel workers (default: %(default)s)")
    for flag in ("--bpe-codes", "--sentencepiece-model"):
        add(flag, **TEXT_FLAGS[flag])
    add_tree_arguments(parser)
    args = parser.parse_args(arguments)
    if args.tree_parser is None:
        parser.error("--tree-parser is needed")
    tree_fairseq.register()
    annotate(with_defaults(args))
