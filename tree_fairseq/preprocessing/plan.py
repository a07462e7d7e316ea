"""The plan of a command that builds a data-bin folder: its arguments, checked before anything is done."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fairseq.dataclass.configs import CommonConfig

from tree_fairseq.data_bin.constituency_sides import TreeSide, start_sides
from tree_fairseq.data_bin.inputs import TextInput, file_sha256, inspect_text, require_parallel
from tree_fairseq.data_bin.label_dictionary import label_dictionary_name
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.token_files import SUPPORTED
from tree_fairseq.errors import DataFolderError, DestinationExistsError, InputError
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.tree_arguments import (
    SymbolSide,
    modality,
    sides_from_arguments,
    symbol_sides_from_arguments,
)

Inputs = dict[tuple[str, str], TextInput]
"""Text files by split and language."""
StockMain = Callable[[Namespace], None]
"""fairseq's own ``main``."""
# Arguments in which two commands may differ and still give the same files.
_INDIFFERENT = {field.name for field in fields(CommonConfig)} | {"workers", "parse_cache"}


@dataclass(frozen=True)
class Split:
    """Files of a split.

    Attributes:
        name: as in the names of its token files: ``train``, ``valid``, ``valid1``, ...
        prefix: of its text files
    """

    name: str
    prefix: str

    def path(self, suffix: str) -> Path:
        """Returns its file of a language, or of alignments."""
        return Path(f"{self.prefix}.{suffix}")


@dataclass(frozen=True)
class PreprocessPlan:
    """The plan of ``fairseq-preprocess``.

    A plan whose text files have to be made first, from other files, overrides :meth:`begin`, :meth:`stage`,
    :meth:`own_dictionaries` and :meth:`enter`.

    Attributes:
        args: the arguments of ``fairseq-preprocess``
        languages: source, and target unless ``--only-source``
        splits: those that stock fairseq reads
        sides: those that get constituency trees beside their tokens
        symbol_sides: those that are symbol trees
    """

    args: Namespace
    languages: tuple[str, ...]
    splits: tuple[Split, ...]
    sides: tuple[TreeSide, ...]
    symbol_sides: tuple[SymbolSide, ...] = ()

    @classmethod
    def from_arguments(cls, args: Namespace) -> PreprocessPlan:
        """Checks the arguments and makes a plan of them.

        Raises:
            InputError: they do not go together.
        """
        _check_arguments(args)
        languages = (args.source_lang,) if args.only_source else (args.source_lang, args.target_lang)
        sides = sides_from_arguments(args, args.source_lang, args.target_lang) if args.tree_parser is not None else ()
        is_parsed = modality(args, "source") == "constituency"
        symbol_sides = symbol_sides_from_arguments(args, sides[0].options if sides and is_parsed else None)
        if is_parsed:
            # The parses become the tokens themselves, nothing lies beside them.
            sides = tuple(side for side in sides if side.side != "source")
        if both := {side.lang for side in sides} & {side.lang for side in symbol_sides}:
            raise InputError(
                f"the lines of {both.pop()} are trees already, they cannot be parsed: "
                "see --tree-sides and --target-modality"
            )
        return cls(args, languages, _splits(args), sides, symbol_sides)

    @property
    def destination(self) -> Path:
        """The folder."""
        return Path(self.args.destdir)

    @property
    def written_splits(self) -> list[str]:
        """Names of the splits whose token files will be written."""
        return [] if self.args.dict_only else [split.name for split in self.splits]

    def splits_of(self, lang: str) -> Sequence[str]:
        """Returns the names of the splits whose trees of a language are encoded."""
        return [split.name for split in self.splits]

    def needs_leaves(self, side: TreeSide) -> bool:
        """Returns whether the leaves of a side's trees have to be written as text; a ``raw`` data set is a copy of
        that text."""
        return not side.leaves_are_tokens or self.args.dataset_impl == "raw"

    def inspect(self) -> Inputs:
        """Reads all text files; by split and language, alignments under their suffix.

        Raises:
            InputError: a file is missing, is not one sentence a line, or the files of a split have different numbers of
                lines.
        """
        inputs = {}
        for split in self.splits:
            files = {lang: inspect_text(split.path(lang)) for lang in self.languages}
            if self._has_alignments(split):
                files[self.args.align_suffix] = inspect_text(split.path(self.args.align_suffix))
            parallel = list(files.values())
            if split.name == "train" and self.args.alignfile:
                parallel.append(inspect_text(self.args.alignfile))
            require_parallel(parallel)
            inputs.update({(split.name, suffix): file for suffix, file in files.items()})
        return inputs

    def _has_alignments(self, split: Split) -> bool:
        """Returns whether stock fairseq will find alignments: it looks beside the whole of a comma-separated list."""
        if not self.args.align_suffix or self.args.dict_only:
            return False
        prefixes = {"train": self.args.trainpref, "valid": self.args.validpref, "test": self.args.testpref}
        return prefixes.get(split.name) == split.prefix and split.path(self.args.align_suffix).exists()

    def command(self, inputs: Inputs) -> dict[str, Any]:
        """Returns all that decides what the files will be; a stopped command is recognised by it when it is given
        again."""
        arguments = {name: value for name, value in vars(self.args).items() if name not in _INDIFFERENT}
        # Dictionaries in the destination itself are among the files that will be replaced, by equal ones.
        others = [
            path
            for path in (self.args.srcdict, self.args.tgtdict, self.args.alignfile)
            if path and os.path.realpath(os.path.dirname(path)) != os.path.realpath(self.args.destdir)
        ]
        return {
            "command": "fairseq-preprocess",
            "arguments": dict(sorted(arguments.items())),
            "parsers": {side.lang: side.record().identity for side in (*self.sides, *self.symbol_sides)},
            "inputs": {f"{split}.{suffix}": file.sha256 for (split, suffix), file in sorted(inputs.items())},
            "others": {path: file_sha256(path) for path in others},
        }

    def reused_labels(self, lang: str) -> Path | None:
        """Returns the label dictionary that lies beside a given dictionary, if there is one."""
        args = self.args
        given = args.srcdict if lang == args.source_lang else args.tgtdict
        if args.joined_dictionary:
            given = args.srcdict or args.tgtdict
        if not given:
            return None
        for folder in (os.path.dirname(given), args.destdir):
            path = Path(folder) / label_dictionary_name(lang)
            if path.exists():
                return path
        return None

    def start_manifest(self) -> Manifest:
        """Returns the manifest of the folder, ready for the sides that will be written.

        Raises:
            DestinationExistsError: the folder has dictionaries that would be overwritten, which stock fairseq refuses
                too.
            DataFolderError: splits that stay were made differently.
        """
        for lang, dictionary in zip(self.languages, (self.args.srcdict, self.args.tgtdict)):
            path = os.path.join(self.args.destdir, f"dict.{lang}.txt")
            if not dictionary and os.path.exists(path):
                raise DestinationExistsError(
                    f"{path} exists: this destination was preprocessed before. Choose another one, remove it, give its "
                    "dictionaries (--srcdict, --tgtdict) to add splits, or add trees to it with "
                    "`python -m tree_fairseq.commands.annotate`"
                )
        manifest = Manifest.to_extend(self.args.destdir, self.args.source_lang, self.args.target_lang)
        start_sides(manifest, self.sides, dict.fromkeys(self.languages, self.written_splits))
        for side in self.symbol_sides:
            new, old = side.record(), manifest.symbols.get(side.lang)
            manifest.keep_splits(old, new, self.written_splits, f"symbol trees of {side.lang}")
            if old is not None:
                new.grammar, new.degree = old.grammar, old.degree
            manifest.symbols[side.lang] = new
        self.begin(manifest)
        return manifest

    def stock_arguments(self, leaves: Path, output: Path, dictionaries: Namespace) -> Namespace:
        """Returns the arguments for stock fairseq's ``main``: the same, with other files.

        Args:
            leaves: folder with the text of all splits under the splits' names
            output: folder to write into
            dictionaries: arguments that name the dictionaries which are made already
        """

        def prefixes(kind: str) -> str | None:
            names = [split.name for split in self.splits if split.name.rstrip("0123456789") == kind]
            return ",".join(os.fspath(leaves / name) for name in names) or None

        changes = {"trainpref": prefixes("train"), "validpref": prefixes("valid"), "testpref": prefixes("test")}
        return Namespace(**{**vars(self.args), **changes, **vars(dictionaries), "destdir": os.fspath(output)})

    def begin(self, manifest: Manifest) -> None:
        """Makes a record of its own in the manifest, before anything is done.

        Raises:
            DataFolderError: the destination holds something else.
        """

    def stage(self, inputs: Inputs, staging: Staging, cache: Path, pool: ProcessPool) -> Inputs:
        """Returns the text files of :attr:`languages`, made of those that :meth:`inspect` read."""
        return inputs

    def own_dictionaries(self, staging: Staging) -> Namespace:
        """Returns changes to the arguments of stock fairseq: dictionaries that it is not to make itself."""
        return Namespace()

    def enter(self, manifest: Manifest, output: Path, pool: ProcessPool) -> None:
        """Completes the record when the token files are written to ``output``."""


def _check_arguments(args: Namespace) -> None:
    if not args.source_lang or not (args.target_lang or args.only_source):
        raise InputError("trees need the names of both languages, --source-lang and --target-lang")
    if args.dataset_impl not in SUPPORTED:
        raise InputError(
            f"trees cannot be kept beside --dataset-impl {args.dataset_impl}", hint=f"Use {', '.join(SUPPORTED)}."
        )
    if args.workers < 1:
        raise InputError(f"--workers is at least 1, not {args.workers}")
    if "," in os.path.realpath(args.destdir):
        raise InputError(f"the destination has a comma in its path, which separates prefixes: {args.destdir}")
    if os.path.exists(args.destdir) and not os.path.isdir(args.destdir):
        raise DataFolderError(f"the destination is not a folder: {args.destdir}")
    if args.joined_dictionary and args.srcdict and args.tgtdict:
        raise InputError("cannot use both --srcdict and --tgtdict with --joined-dictionary")
    given = [args.srcdict, args.tgtdict] if not args.only_source else [args.srcdict]
    if not args.trainpref and not (any(given) if args.joined_dictionary else all(given)):
        raise InputError("--trainpref must be set if dictionaries are not given with --srcdict and --tgtdict")
    if args.only_source and "target" in args.tree_sides:
        raise InputError("--only-source leaves no target for --tree-sides target")
    if args.alignfile and not args.trainpref:
        raise InputError("--trainpref must be set if --alignfile is specified")


def _splits(args: Namespace) -> tuple[Split, ...]:
    splits = [Split("train", args.trainpref)] if args.trainpref else []
    # When only dictionaries are asked for, stock fairseq does not read the other splits.
    for kind, prefixes in () if args.dict_only else (("valid", args.validpref), ("test", args.testpref)):
        for number, prefix in enumerate(prefixes.split(",") if prefixes else ()):
            splits.append(Split(f"{kind}{number or ''}", prefix))
    return tuple(splits)
