"""The plan of a command that builds a data-bin folder: its arguments, checked before anything is done."""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from fairseq.dataclass.configs import CommonConfig

from tree_fairseq.data_bin.constituency_sides import TreeSide, start_sides
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.text_record import BPE
from tree_fairseq.data_bin.token_files import SUPPORTED
from tree_fairseq.data_bin.tree_store import label_dictionary_name
from tree_fairseq.errors import DataFolderError, DestinationExistsError, InputError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, options_from_arguments
from tree_fairseq.preprocessing.text_files import TextPlan
from tree_fairseq.preprocessing.text_options import SideRequest, model_within_trees, text_requests
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.options import flag_of
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.notations import Notation, notation_named
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.text import TextInput, inspect_text, require_parallel

Inputs = dict[tuple[str, str], TextInput]
"""Text files by split and language."""
StockMain = Callable[[Namespace], None]
"""fairseq's own ``main``."""
# Arguments in which two commands may differ and still give the same files.
_INDIFFERENT = {field.name for field in fields(CommonConfig)} | {"workers", "parse_cache"}
PER_SIDE = ("tree_parser", "tree_lang", "parser_dir", "parser_package", "tree_subword_model")
"""Arguments that may have two values with trees on both sides, separated by a comma."""


@dataclass(frozen=True)
class SymbolSide:
    """A side whose text is symbol trees, or sentences if there are options of a parser, before it is encoded."""

    side: str
    lang: str
    notation: str
    encoding: SymbolEncoding
    options: ParserOptions | None = None

    def record(self) -> SymbolSideRecord:
        """Returns the side's entry in the manifest, still without degree and splits."""
        return SymbolSideRecord(
            side=self.side,
            modality="tree" if self.options is None else "constituency",
            notation=self.notation,
            traversal=self.encoding.traversal,
            binarization=self.encoding.binarization,
            mark=self.encoding.mark,
            degree=0,
            parser=None if self.options is None else self.options.to_json(),
            identity=None if self.options is None else LineParser(self.options).identity(),
        )

    @functools.cached_property
    def reader(self) -> Notation:
        """The notation."""
        return notation_named(self.notation)


def sides_from_arguments(args: Namespace, source_lang: str, target_lang: str | None) -> tuple[TreeSide, ...]:
    """Returns the sides that get trees, each with its parser; InputError for options that do not fit."""
    names = args.tree_sides.split(",")
    languages = {"source": source_lang, "target": target_lang}
    requests = text_requests(args, {name: languages[name] for name in names})
    sides = []
    for number, name in enumerate(names):
        lang = languages[name]
        own = {field: _value_of_side(args, field, number, len(names)) for field in PER_SIDE}
        own["tree_lang"] = own["tree_lang"] or lang
        own.update(_subword_options(args, own, requests.get(name)))
        try:
            options = options_from_arguments(Namespace(**{**vars(args), **own}))
        except ValueError as error:
            raise InputError(str(error)) from None
        sides.append(TreeSide(name, lang, options))
    return tuple(sides)


def _subword_options(args: Namespace, own: dict[str, Any], request: SideRequest | None) -> dict[str, Any]:
    """Returns the parser's options about subwords, for a side whose text is prepared as requested.

    The text is split before it is parsed, unless its words are known only afterwards.
    """
    if request is None or (request.kind is None and not request.is_raw):
        return {}
    finds_words = own["tree_parser"] == "brackets" or args.tree_tokenize == "stanza"
    if finds_words and (request.kind in (None, BPE) or own["tree_parser"] == "brackets"):
        model = model_within_trees(request)
        if own["tree_subword_model"] is not None and model is not None:
            raise InputError("--tree-subword-model and another flag both name a subword model; give one of them")
        return {"tree_subword_model": model or own["tree_subword_model"]}
    if own["tree_subword_model"] is not None:
        raise InputError("--tree-subword-model is for text that has no other subword model; leave it out")
    return {} if request.kind is None else {"tree_subwords": request.kind}


def _value_of_side(args: Namespace, name: str, number: int, sides: int) -> Any:
    value = getattr(args, name)
    if not value or "," not in value:
        return value
    values = value.split(",")
    if len(values) != sides:
        raise InputError(f"{flag_of(name)} {value} has {len(values)} values for {sides} sides with trees")
    return values[number] or None


def modality(args: Namespace, side: str) -> str:
    """Returns the modality of a side; a caller from Python may have made its arguments without our parser."""
    return getattr(args, f"{side}_modality", None) or "sequence"


def _symbol_sides(args: Namespace, parser_options: ParserOptions | None) -> tuple[SymbolSide, ...]:
    """Returns the sides that are symbol trees; a constituency side is parsed with the options."""
    sides = []
    for side, lang in (("source", args.source_lang), ("target", args.target_lang)):
        kind = modality(args, side)
        if kind == "sequence" or lang is None or (side == "target" and args.only_source):
            continue
        is_parsed = kind == "constituency"
        if is_parsed and parser_options is None:
            raise InputError(
                f"--{side}-modality constituency needs a parser", hint="Give --tree-parser, such as stanza."
            )
        try:
            encoding = SymbolEncoding(args.traversal, args.binarization, args.arity_mark)
        except ValueError as error:
            raise InputError(f"--arity-mark: {error}") from None
        notation = "bracket" if is_parsed else getattr(args, f"{side}_notation")
        sides.append(SymbolSide(side, lang, notation, encoding, parser_options if is_parsed else None))
    return tuple(sides)


@dataclass(frozen=True)
class Split:
    """A split: its name, such as ``train`` or ``valid1``, and the prefix of its text files."""

    name: str
    prefix: str

    def path(self, suffix: str) -> Path:
        """Returns its file of a language, or of alignments."""
        return Path(f"{self.prefix}.{suffix}")


@dataclass(frozen=True)
class PreprocessPlan:
    """The plan of ``fairseq-preprocess``, with its arguments.

    A plan whose text files have to be made first, from other files, overrides :meth:`begin`, :meth:`stage`,
    :meth:`own_dictionaries` and :meth:`enter`.

    Attributes:
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
        """Makes a plan of the arguments, or raises InputError if they do not go together."""
        _check_arguments(args)
        languages = (args.source_lang,) if args.only_source else (args.source_lang, args.target_lang)
        sides = sides_from_arguments(args, args.source_lang, args.target_lang) if args.tree_parser is not None else ()
        is_parsed = modality(args, "source") == "constituency"
        symbol_sides = _symbol_sides(args, sides[0].options if sides and is_parsed else None)
        if is_parsed:
            # The parses become the tokens themselves, nothing lies beside them.
            sides = tuple(side for side in sides if side.side != "source")
        if both := {side.lang for side in sides} & {side.lang for side in symbol_sides}:
            raise InputError(
                f"the lines of {both.pop()} are trees already, they cannot be parsed: "
                "see --tree-sides and --target-modality"
            )
        return cls(args, languages, splits_from_arguments(args), sides, symbol_sides)

    @property
    def destination(self) -> Path:
        """The folder of ``--destdir``."""
        return Path(self.args.destdir)

    @property
    def text_languages(self) -> dict[str, str]:
        """The languages of text by side, without those whose lines are symbol trees."""
        pairs = zip(("source", "target"), self.languages)
        return {side: lang for side, lang in pairs if modality(self.args, side) != "tree"}

    sentence_separator: ClassVar[str | None] = None
    """A word that is neither tokenised nor split."""

    @functools.cached_property
    def text(self) -> TextPlan:
        """How text is tokenised and split into subwords."""
        options = {side.lang: side.options for side in (*self.sides, *self.symbol_sides) if side.options is not None}
        return TextPlan.of(self.args, self.text_languages, options, self.sentence_separator)

    @property
    def written_splits(self) -> list[str]:
        """Names of the splits whose token files will be written."""
        return [] if self.args.dict_only else [split.name for split in self.splits]

    def splits_of(self, lang: str) -> Sequence[str]:
        """Returns the names of the splits whose trees of a language are encoded."""
        return [split.name for split in self.splits]

    def needs_leaves(self, side: TreeSide) -> bool:
        """Returns whether the leaves of a side's trees are written as text; a ``raw`` data set is a copy of it."""
        return not side.leaves_are_tokens or self.args.dataset_impl == "raw"

    def inspect(self) -> Inputs:
        """Reads and checks all text files; by split and language, alignments under their suffix."""
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
        args = self.args
        prefixes = {"train": args.trainpref, "valid": args.validpref, "test": args.testpref}
        is_looked_for = args.align_suffix and not args.dict_only and prefixes.get(split.name) == split.prefix
        return bool(is_looked_for) and split.path(args.align_suffix).exists()

    def command(self, inputs: Inputs) -> dict[str, Any]:
        """Returns all that decides what the files will be; by it a stopped command is recognised when given again."""
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
            "text": self.text.command(),
        }

    def reused_labels(self, lang: str) -> Path | None:
        """Returns the label dictionary that lies beside a given dictionary, if there is one."""
        args = self.args
        given = args.srcdict if lang == args.source_lang else args.tgtdict
        if args.joined_dictionary:
            given = args.srcdict or args.tgtdict
        folders = [os.path.dirname(given), args.destdir] if given else []
        paths = (Path(folder) / label_dictionary_name(lang) for folder in folders)
        return next(filter(Path.exists, paths), None)

    def start_manifest(self) -> Manifest:
        """Returns the manifest of the folder, ready for the sides that will be written.

        Raises:
            DataFolderError: splits that stay were made differently, or dictionaries would be overwritten.
        """
        for lang, dictionary in zip(self.languages, (self.args.srcdict, self.args.tgtdict)):
            path = os.path.join(self.args.destdir, f"dict.{lang}.txt")
            if not dictionary and os.path.exists(path):
                raise DestinationExistsError(
                    f"{path} exists: this destination was preprocessed before. Choose another one, remove it, give its "
                    "dictionaries (--srcdict, --tgtdict) to add splits, or add trees to it with "
                    "`tree-fairseq annotate`"
                )
        manifest = Manifest.to_extend(self.args.destdir, self.args.source_lang, self.args.target_lang)
        start_sides(manifest, self.sides, dict.fromkeys(self.languages, self.written_splits))
        for side in self.symbol_sides:
            new, old = side.record(), manifest.symbols.get(side.lang)
            manifest.keep_splits(old, new, self.written_splits, f"symbol trees of {side.lang}")
            if old is not None:
                new.grammar, new.degree = old.grammar, old.degree
            manifest.symbols[side.lang] = new
        self.text.begin(manifest, self.written_splits)
        self.begin(manifest)
        return manifest

    def stock_arguments(self, leaves: Path, output: Path, dictionaries: dict[str, Any]) -> Namespace:
        """Returns the arguments for stock fairseq's ``main``, which reads the text in ``leaves`` and writes to
        ``output``; some arguments about dictionaries replace those of the user.
        """

        def prefixes(kind: str) -> str | None:
            names = [split.name for split in self.splits if split.name.rstrip("0123456789") == kind]
            return ",".join(os.fspath(leaves / name) for name in names) or None

        changes = {"trainpref": prefixes("train"), "validpref": prefixes("valid"), "testpref": prefixes("test")}
        return Namespace(**{**vars(self.args), **changes, **dictionaries, "destdir": os.fspath(output)})

    def begin(self, manifest: Manifest) -> None:
        """Makes a record of its own in the manifest, before anything is done."""

    def stage(self, inputs: Inputs, staging: Staging, pool: ProcessPool) -> Inputs:
        """Returns the text files of :attr:`languages`, made of those that :meth:`inspect` read."""
        return inputs

    def own_dictionaries(self, staging: Staging) -> dict[str, Any]:
        """Returns changes to the arguments of stock fairseq: dictionaries that it is not to make itself."""
        return {}

    def enter(self, manifest: Manifest, output: Path, pool: ProcessPool) -> None:
        """Completes the record when the token files are written to ``output``."""


def _check_arguments(args: Namespace) -> None:
    if not args.source_lang or not (args.target_lang or args.only_source):
        raise InputError("trees and subwords need the names of both languages, --source-lang and --target-lang")
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


def splits_from_arguments(args: Namespace) -> tuple[Split, ...]:
    """Returns the splits that a command names."""
    splits = [Split("train", args.trainpref)] if args.trainpref else []
    # When only dictionaries are asked for, stock fairseq does not read the other splits.
    only_train = getattr(args, "dict_only", False)
    for kind, prefixes in () if only_train else (("valid", args.validpref), ("test", args.testpref)):
        for number, prefix in enumerate(prefixes.split(",") if prefixes else ()):
            splits.append(Split(f"{kind}{number or ''}", prefix))
    return tuple(splits)
