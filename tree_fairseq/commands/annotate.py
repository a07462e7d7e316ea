"""Adds trees to a folder that stock fairseq made.

``tree-fairseq annotate data-bin --tree-parser stanza``

Token files and dictionaries are read, never written. Splits that have trees already are left alone, so the command also
adds trees to a split that was copied into the folder later.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairseq.data.data_utils import infer_language_pair

import tree_fairseq
from tree_fairseq.data_bin.constituency_sides import TreeSide, make_label_dictionary, start_sides, write_side
from tree_fairseq.data_bin.kinds import registered_kinds
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.staging import Staging, clear_published
from tree_fairseq.data_bin.token_files import (
    found_impl,
    load_dictionary,
    require_same_tokens,
    token_file_names,
    token_prefix,
    token_words,
)
from tree_fairseq.data_bin.tree_store import label_dictionary_name
from tree_fairseq.errors import DestinationExistsError, InputError, MissingTreesError, TreeFairseqError
from tree_fairseq.preprocessing.hook import add_tree_arguments
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, Split, sides_from_arguments, splits_from_arguments
from tree_fairseq.preprocessing.run import LEAVES, build_folder, bytes_needed, encode_side
from tree_fairseq.support.error_reports import failed
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.text import inspect_text


@dataclass(frozen=True)
class AnnotatePlan(PreprocessPlan):
    """The plan of this command; ``without_trees`` names the splits without trees of each language that gets some."""

    without_trees: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_arguments(cls, args: Namespace) -> AnnotatePlan:
        """Checks the arguments against the folder and makes a plan of them."""
        folder = Path(args.destdir)
        source_lang, target_lang = args.source_lang, args.target_lang = _languages(folder, args)
        sides = sides_from_arguments(args, source_lang, target_lang)
        manifest = Manifest.to_extend(folder, source_lang, target_lang)
        for kind in registered_kinds():
            kind.refuse_trees(folder, manifest)
        given = (*splits_from_arguments(args), *map(_named_split, args.split))
        splits: dict[str, list[str]] = {}
        for side in sides:
            done = manifest.sides[side.lang].splits if side.lang in manifest.sides else {}
            found = _splits_of(folder, source_lang, target_lang, side.lang)
            if not found:
                raise MissingTreesError(f"{folder} has no token files of {side.lang} ({source_lang}-{target_lang})")
            splits[side.lang] = [split for split in found if split not in done]
            if unknown := sorted({split.name for split in given} - set(found)):
                raise InputError(f"{folder} has no split {', '.join(unknown)}, for which a text was given")
        if not any(splits.values()):
            raise DestinationExistsError(f"all splits of {folder} have trees already")
        pair = (source_lang, target_lang)
        languages = tuple(lang for lang in pair if lang and (folder / f"dict.{lang}.txt").exists())
        return cls(args, languages, given, sides, (), splits)

    @property
    def written_splits(self) -> list[str]:
        return sorted({split for splits in self.without_trees.values() for split in splits})

    def splits_of(self, lang: str) -> Sequence[str]:
        return self.without_trees[lang]

    def needs_leaves(self, side: TreeSide) -> bool:
        # They are compared with the token files.
        return not side.leaves_are_tokens

    def reused_labels(self, lang: str) -> Path | None:
        path = self.destination / label_dictionary_name(lang)
        return path if path.exists() else None

    def start_manifest(self) -> Manifest:
        manifest = Manifest.to_extend(self.destination, self.args.source_lang, self.args.target_lang)
        start_sides(manifest, self.sides, self.without_trees)
        self.text.begin(manifest, [])
        return manifest

    def _pending(self, *sides: TreeSide) -> Iterator[tuple[TreeSide, str, Path]]:
        """Yields side, name and token files (without extension) of the splits that get trees, of some or all sides."""
        for side in sides or self.sides:
            for split in self.without_trees[side.lang]:
                name = token_prefix(split, self.args.source_lang, self.args.target_lang, side.lang)
                yield side, split, self.destination / name

    def command(self, inputs: Inputs) -> dict[str, Any]:
        names = [name for _, _, tokens in self._pending() for name in token_file_names(tokens, found_impl(tokens))]
        names += [f"dict.{side.lang}.txt" for side in self.sides]
        return {
            "command": "tree_fairseq.commands.annotate",
            "sides": {
                side.lang: {"options": side.options.to_json(), "identity": side.record().identity}
                for side in self.sides
            },
            "splits": {lang: list(splits) for lang, splits in self.without_trees.items()},
            "texts": {f"{split}.{lang}": text.sha256 for (split, lang), text in sorted(inputs.items())},
            "tokens": {name: FileRecord.of(self.destination / name).sha256 for name in sorted(names)},
        }

    def inspect(self) -> Inputs:
        """Reads the texts that were given, by split and language, and compares them with their token files."""
        texts = {(split.name, side.lang): split.path(side.lang) for side in self.sides for split in self.splits}
        inputs = {key: inspect_text(path) for key, path in texts.items()}
        for side, split, tokens in self._pending():
            text = inputs.get((split, side.lang))
            if text is not None and side.leaves_are_tokens:
                require_same_tokens(text.path, tokens, load_dictionary(self.destination, side.lang))
            if text is None and side.options.name == "brackets":
                raise MissingTreesError(
                    f"--tree-parser brackets needs the trees of {split} for {side.lang}: "
                    f"give --trainpref, --validpref, --testpref or --split {split}=PREFIX"
                )
        return inputs

    def stage(self, inputs: Inputs, staging: Staging, pool: ProcessPool) -> Inputs:
        """Writes the words of the token files for the splits without a given text."""
        staged = dict(inputs)
        for side, split, tokens in self._pending():
            if (split, side.lang) not in inputs:
                path = staging.folder("texts") / f"{split}.{side.lang}"
                with open(path, "w", encoding="utf-8", newline="\n") as file:
                    for words in token_words(tokens, load_dictionary(self.destination, side.lang)):
                        file.write(" ".join(words) + "\n")
                staged[split, side.lang] = inspect_text(path)
        return staged

    def build(self, inputs: Inputs, manifest: Manifest, staging: Staging, output: Path, pool: ProcessPool) -> None:
        """Writes the tree files and label dictionaries to ``output``, and enters everything into the manifest."""
        inputs = self.stage(inputs, staging, pool)
        # A language may lack the token files of a split.
        pair = self.args.source_lang, self.args.target_lang
        found = [_splits_of(self.destination, *pair, lang) for lang in self.languages]
        manifest.enter_tokens(self.destination, self.languages, sorted(set(self.written_splits).intersection(*found)))
        for side in self.sides:
            trees = encode_side(self, side, manifest, inputs, staging, output, pool)
            for _, split, tokens in self._pending(side) if self.needs_leaves(side) else ():
                leaves = staging.folder(LEAVES) / f"{split}.{side.lang}"
                try:
                    require_same_tokens(leaves, tokens, load_dictionary(self.destination, side.lang))
                except InputError as error:
                    raise error.at(path=inputs[split, side.lang].path) from None
            labels = make_label_dictionary(side, trees, self.reused_labels(side.lang), staging.parse_cache)
            write_side(manifest, side, trees, labels, output, self.destination)
        self.text.enter(manifest, staging, output)


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


def _splits_of(folder: Path, source_lang: str, target_lang: str | None, lang: str) -> list[str]:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status is 1 if the trees cannot be added."""
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
    add_tree_arguments(parser)
    args = parser.parse_args(arguments)
    if args.tree_parser is None:
        parser.error("--tree-parser is needed")
    logging.basicConfig(format="%(asctime)s | %(levelname)s | %(name)s | %(message)s", level=logging.INFO)
    try:
        tree_fairseq.register()
        clear_published(args.destdir)
        plan = AnnotatePlan.from_arguments(args)
        inputs = plan.inspect()
        size = sum(path.stat().st_size for path in plan.destination.glob("*.bin"))
        build_folder(plan, inputs, bytes_needed(size, is_bracketed=False), partial(plan.build, inputs))
    except (TreeFairseqError, OSError) as error:
        return failed(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
