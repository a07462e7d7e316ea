"""Adds trees to a folder that stock fairseq made: ``python -m tree_fairseq.commands.annotate data-bin --tree-parser stanza``.

Token files and dictionaries are read, never written. Splits that have trees already are left alone, so the command also
adds trees to a split that was copied into the folder later.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq.data.data_utils import infer_language_pair

from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.data_bin.folder_trees import (
    TreeSide,
    add_side,
    enter_tokens,
    make_label_dictionary,
    start_manifest,
    write_side,
)
from tree_fairseq.data_bin.inputs import TextInput, inspect_text
from tree_fairseq.data_bin.label_dictionary import label_dictionary_name
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, FileRecord, Manifest
from tree_fairseq.data_bin.side_files import write_leaves
from tree_fairseq.data_bin.split_trees import SplitTrees, bytes_needed, encode_split
from tree_fairseq.data_bin.staging import Staging, clear_published
from tree_fairseq.data_bin.token_files import (
    found_impl,
    load_dictionary,
    require_same_tokens,
    token_file_names,
    token_prefix,
    token_words,
)
from tree_fairseq.errors import DestinationExistsError, InputError, MissingTreesError, TreeFairseqError
from tree_fairseq.files import reporting_full_disk
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.arguments import add_tree_arguments, sides_from_arguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AnnotatePlan:
    """What is to be done.

    Attributes:
        folder: the preprocessed folder
        source_lang: its source
        target_lang: its target; None if it has none
        sides: those that get trees
        splits: of each of these languages, the splits without trees
        texts: of each language and split the file with its words, where one was given
        workers: processes
        parse_cache: folder of the parse cache; None for the destination's own
    """

    folder: Path
    source_lang: str
    target_lang: str | None
    sides: tuple[TreeSide, ...]
    splits: Mapping[str, Sequence[str]]
    texts: Mapping[tuple[str, str], Path]
    workers: int
    parse_cache: str | None

    @classmethod
    def from_arguments(cls, args: Namespace) -> AnnotatePlan:
        """Understands the arguments and looks at the folder.

        Raises:
            InputError: the arguments do not go together.
            MissingTreesError: the folder was not preprocessed, or ready-made trees were not given for a split.
            DestinationExistsError: every split has trees.
        """
        folder = Path(args.folder)
        source_lang, target_lang = _languages(folder, args)
        sides = sides_from_arguments(args, source_lang, target_lang)
        manifest = _existing_manifest(folder)
        if manifest is not None and manifest.section(ClassificationRecord) is not None:
            raise InputError(
                f"{folder} is for classification: its trees and classes belong together",
                hint="Add a split with fairseq-preprocess --task tree_classification and the folder's --srcdict and --tgtdict.",
            )
        splits, texts = {}, {}
        for side in sides:
            done = manifest.sides[side.lang].splits if manifest and side.lang in manifest.sides else {}
            found = _splits_of(folder, source_lang, target_lang, side.lang)
            if not found:
                raise MissingTreesError(f"{folder} has no token files of {side.lang} ({source_lang}-{target_lang})")
            splits[side.lang] = [split for split in found if split not in done]
            texts.update({(side.lang, split): path for split, path in _given_texts(args, side.lang).items()})
            if unknown := sorted(split for lang, split in texts if lang == side.lang and split not in found):
                raise InputError(f"{folder} has no split {', '.join(unknown)}, for which a text was given")
        if not any(splits.values()):
            raise DestinationExistsError(f"all splits of {folder} have trees already")
        return cls(folder, source_lang, target_lang, sides, splits, texts, args.workers, args.parse_cache)

    def tokens(self, lang: str, split: str) -> Path:
        """The token files of a split, without extension."""
        return self.folder / token_prefix(split, self.source_lang, self.target_lang, lang)

    def tasks(self) -> list[tuple[TreeSide, str]]:
        """All splits to be parsed."""
        return [(side, split) for side in self.sides for split in self.splits[side.lang]]


def annotate(plan: AnnotatePlan) -> None:
    """Adds the trees.

    Raises:
        TreeFairseqError: of the class that says what is wrong.
    """
    given = {key: inspect_text(path) for key, path in plan.texts.items()}
    for side, split in plan.tasks():
        _check_text(plan, side, split, given)
    manifest = start_manifest(_existing_manifest(plan.folder), plan.source_lang, plan.target_lang)
    for side in plan.sides:
        add_side(manifest, side, plan.splits[side.lang])
    staging = Staging(plan.folder, _command(plan, given))
    size = sum(path.stat().st_size for path in plan.folder.glob("*.bin"))
    with reporting_full_disk(staging.path, bytes_needed(size, is_bracketed=False)), staging:
        if not staging.is_ready:
            with ProcessPool(plan.workers) as pool:
                _build(plan, given, manifest, staging, pool)
        staging.publish()
    logger.info("[trees] done: %s", plan.folder)


def _build(
    plan: AnnotatePlan,
    given: Mapping[tuple[str, str], TextInput],
    manifest: Manifest,
    staging: Staging,
    pool: ProcessPool,
) -> None:
    """Makes the tree files and seals them."""
    output = staging.new_output()
    try:
        cache = Path(plan.parse_cache) if plan.parse_cache else staging.parse_cache
        languages = [
            lang
            for lang in (plan.source_lang, plan.target_lang)
            if lang and (plan.folder / f"dict.{lang}.txt").exists()
        ]
        enter_tokens(manifest, plan.folder, languages, _with_files(plan, languages))
        for side in plan.sides:
            trees = {split: _encode(plan, side, split, given, staging, cache, pool) for split in plan.splits[side.lang]}
            known = plan.folder / label_dictionary_name(side.lang)
            dictionary = make_label_dictionary(side, trees, known if known.exists() else None, cache)
            write_side(manifest, side, trees, dictionary, output, plan.folder)
        manifest.save(output)
        staging.seal(output, last=[MANIFEST_NAME])
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise


def _encode(
    plan: AnnotatePlan,
    side: TreeSide,
    split: str,
    given: Mapping[tuple[str, str], TextInput],
    staging: Staging,
    cache: Path,
    pool: ProcessPool,
) -> SplitTrees:
    """The trees of a split; their words are those of the token files."""
    dictionary = load_dictionary(plan.folder, side.lang)
    tokens = plan.tokens(side.lang, split)
    text = given.get((side.lang, split))
    if text is None:
        path = staging.folder("texts") / f"{split}.{side.lang}"
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(" ".join(words) + "\n" for words in token_words(tokens, dictionary))
        text = inspect_text(path)
    trees = encode_split(text, side.options, staging, f"{split}.{side.lang}", pool=pool, cache=cache)
    leaves = staging.folder("leaves") / f"{split}.{side.lang}"
    write_leaves(trees.chunks, leaves)
    try:
        require_same_tokens(leaves, tokens, dictionary)
    except InputError as error:
        raise error.at(path=text.path) from None
    return trees


def _check_text(plan: AnnotatePlan, side: TreeSide, split: str, given: Mapping[tuple[str, str], TextInput]) -> None:
    """Before anything is parsed: ready-made trees are there, and a given text is that of the token files."""
    text = given.get((side.lang, split))
    if side.options.name == "brackets":
        if text is None:
            raise MissingTreesError(
                f"--tree-parser brackets needs the trees of {split} for {side.lang}: "
                f"give --trainpref, --validpref, --testpref or --split {split}=PREFIX"
            )
    elif text is not None and side.options.tokenize == "pretokenized" and side.options.subword_model is None:
        require_same_tokens(text.path, plan.tokens(side.lang, split), load_dictionary(plan.folder, side.lang))


def _command(plan: AnnotatePlan, given: Mapping[tuple[str, str], TextInput]) -> dict:
    """All that decides what the files will be: by this a killed run knows itself."""
    names = [name for side, split in plan.tasks() for name in _token_names(plan, side.lang, split)]
    names += [f"dict.{side.lang}.txt" for side in plan.sides]
    return {
        "command": "tree_fairseq.commands.annotate",
        "sides": {
            side.lang: {"options": side.options.to_json(), "identity": side.record().identity} for side in plan.sides
        },
        "splits": {lang: list(splits) for lang, splits in plan.splits.items()},
        "texts": {f"{split}.{lang}": text.sha256 for (lang, split), text in sorted(given.items())},
        "tokens": {name: FileRecord.of(plan.folder / name).sha256 for name in sorted(names)},
    }


def _token_names(plan: AnnotatePlan, lang: str, split: str) -> list[str]:
    prefix = plan.tokens(lang, split)
    return token_file_names(prefix, found_impl(prefix))


def _with_files(plan: AnnotatePlan, languages: Sequence[str]) -> list[str]:
    """The splits to be annotated; all languages have to have them."""
    wanted = {split for splits in plan.splits.values() for split in splits}
    found = [set(_splits_of(plan.folder, plan.source_lang, plan.target_lang, lang)) for lang in languages]
    return sorted(wanted.intersection(*found))


def _existing_manifest(folder: Path) -> Manifest | None:
    try:
        return Manifest.load(folder)
    except MissingTreesError:
        return None


def _languages(folder: Path, args: Namespace) -> tuple[str, str | None]:
    """Source and target, as given or as the files are named."""
    if not folder.is_dir():
        raise MissingTreesError(f"there is no folder {folder}")
    source_lang, target_lang = args.source_lang, args.target_lang
    if source_lang is None:
        source_lang, target_lang = infer_language_pair(os.fspath(folder))
    if source_lang is None:
        raise MissingTreesError(f"{folder} was not preprocessed: it has no token files such as train.en-de.en.idx")
    return source_lang, None if target_lang == "None" else target_lang


def _splits_of(folder: Path, source_lang: str, target_lang: str | None, lang: str) -> list[str]:
    """Names of the splits that have token files of a language, train first."""
    pattern = re.compile(re.escape(token_prefix("", source_lang, target_lang, lang)) + r"(\.idx)?")
    names = {
        path.name.split(".")[0] for path in folder.iterdir() if pattern.fullmatch("." + path.name.partition(".")[2])
    }
    return sorted(names, key=lambda name: (not name.startswith("train"), name))


def _given_texts(args: Namespace, lang: str) -> dict[str, Path]:
    """Files with the words of splits."""
    texts = {"train": Path(f"{args.trainpref}.{lang}")} if args.trainpref else {}
    for kind, prefixes in (("valid", args.validpref), ("test", args.testpref)):
        for number, prefix in enumerate(prefixes.split(",") if prefixes else ()):
            texts[f"{kind}{number or ''}"] = Path(f"{prefix}.{lang}")
    for name, separator, prefix in (given.partition("=") for given in args.split):
        if not separator:
            raise InputError(f"--split takes NAME=PREFIX, not {name}")
        texts[name] = Path(f"{prefix}.{lang}")
    return texts


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.commands.annotate",
        description="Adds trees to a folder that fairseq-preprocess made, without touching its token files. The words are read "
        "from the token files, where rare ones are <unk>; give the texts to have them parsed as they are. A stopped run is "
        "finished by the same command.",
    )
    parser.add_argument("folder", help="the folder that fairseq-preprocess wrote")
    parser.add_argument("-s", "--source-lang", metavar="SRC", help="default: as the files are named")
    parser.add_argument("-t", "--target-lang", metavar="TARGET", help="default: as the files are named")
    for split, many in (("train", ""), ("valid", "comma separated "), ("test", "comma separated ")):
        parser.add_argument(
            f"--{split}pref",
            metavar="FP",
            help=f"{many}prefix of the {split} text, or of its trees for --tree-parser brackets",
        )
    parser.add_argument(
        "--split",
        metavar="NAME=FP",
        action="append",
        default=[],
        help="the same for a split of any name, such as train1; may be repeated",
    )
    parser.add_argument(
        "--workers", metavar="N", default=1, type=int, help="number of parallel workers (default: %(default)s)"
    )
    add_tree_arguments(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit status 1 if the trees cannot be added."""
    parser = _argument_parser()
    args = parser.parse_args(arguments)
    if args.tree_parser is None:
        parser.error("--tree-parser is needed")
    logging.basicConfig(format="%(asctime)s | %(levelname)s | %(name)s | %(message)s", level=logging.INFO)
    try:
        clear_published(args.folder)
        annotate(AnnotatePlan.from_arguments(args))
    except (TreeFairseqError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
