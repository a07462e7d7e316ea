"""The plan of ``fairseq-preprocess``: its arguments, checked before anything is done, as plain data."""

from __future__ import annotations

import functools
import logging
import os
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fairseq.dataclass.configs import CommonConfig

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.data_bin.text_record import BPE
from tree_fairseq.data_bin.token_files import SUPPORTED
from tree_fairseq.data_bin.tree_store import label_dictionary_name
from tree_fairseq.errors import DataFolderError, DestinationExistsError, InputError
from tree_fairseq.parsing.line_parser import LineParser, require_read
from tree_fairseq.parsing.parsers import ParserOptions, options_from_arguments
from tree_fairseq.parsing.pieces import with_kind_of
from tree_fairseq.preprocessing.text_files import SideRequest, TextPlan, model_within_trees, text_requests
from tree_fairseq.preprocessing.tree_files import TreeSide, start_sides
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.registry import notation_of
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.options import Flags, flag_of
from tree_fairseq.trees.notations import Notation, notation_named, notation_names
from tree_fairseq.trees.symbols import ARITY_MARK, BINARIZATIONS, TRAVERSALS, SymbolEncoding
from tree_fairseq.trees.text import TextInput, inspect_text, read_lines, require_parallel

logger = logging.getLogger(__name__)

Inputs = dict[tuple[str, str], TextInput]  # text files by split and language
StockMain = Callable[[Namespace], None]  # fairseq's own ``main``
PER_SIDE = ("tree_parser", "tree_lang", "parser_dir", "parser_package")
"""Arguments that may have two values, separated by a comma, if both sides get trees."""
_SHOWN = "(default: %(default)s)"
TREE_SIDES = {
    "default": "source",
    "choices": ("source", "target", "source,target"),
    "metavar": "SIDES",
    "help": f"which sides get trees: source, target, or source,target {_SHOWN}. "
    f"For both, {', '.join(map(flag_of, PER_SIDE))} may have two values, separated by a comma",
}
PARTS = {
    "type": int,
    "metavar": "N",
    "help": "cut the training text into N parts, each a folder DESTDIR/0, DESTDIR/1, ... with the dictionaries of the "
    "first; give fairseq-train all of them, separated by colons",
}
_MODALITY = "tree: every line is a tree in the notation below"
_SENTENCES = "; constituency: every line is a sentence, and its parse by --tree-parser is the tree"
_NOTATION = {
    "metavar": "NAME",
    "default": "bracket",
    "help": f"how the trees are written: {', '.join(notation_names())}; bracket: ( head child ... ), as s-expressions "
    f"and treebanks; sql:DIALECT: a dialect of sqlglot; tree-sitter:MODULE: any grammar of tree-sitter {_SHOWN}",
}


SYMBOL_FLAGS: Flags = {
    "--source-modality": {
        "choices": ("sequence", "tree", "constituency"),
        "default": "sequence",
        "help": f"{_MODALITY}{_SENTENCES} {_SHOWN}",
    },
    "--source-notation": _NOTATION,
    "--target-modality": {"choices": ("sequence", "tree"), "default": "sequence", "help": f"{_MODALITY} {_SHOWN}"},
    "--target-notation": _NOTATION,
    "--traversal": {"choices": TRAVERSALS, "default": "dfs", "help": f"depth-first or breadth-first {_SHOWN}"},
    "--binarization": {
        "choices": BINARIZATIONS,
        "help": "lcrs: left-child right-sibling binary trees; none: the trees as they are, with any number of branches "
        "(default: lcrs; none for programs)",
    },
    "--leaf-merges": {
        "type": int,
        "default": 1000,
        "metavar": "N",
        "help": f"programs: so many merges of byte pairs spell rare names, unless --learn-subwords is given {_SHOWN}",
    },
    "--all-arities": {
        "action": "store_true",
        "help": "the dictionary has every label with every arity, so that a model with --factored-symbols can write a "
        "label with as many children as training never shows",
    },
}
_MARKUP = re.compile(r"\s*<[?!]?(?:xml|doctype|mteval|srcset|refset|tstset|doc|docid|url|talkid|title|text)\b", re.I)
INDIFFERENT = {field.name for field in fields(CommonConfig)} | {"workers", "parse_cache", "engine", "ray_address"}
"""Two commands that differ in these arguments alone write the same files."""


@dataclass(frozen=True)
class SymbolSide:
    """A side whose lines become sequences of symbols: lines of trees, or sentences that are parsed with ``options``."""

    side: str
    lang: str
    notation: str
    encoding: SymbolEncoding
    options: ParserOptions | None = None
    spelling: Path | None = None  # the file that says how names in programs are spelled
    skips: bool = False  # whether a line that does not parse is an unknown symbol

    def record(self) -> SymbolSideRecord:
        """Returns the side's record for the manifest, without degree and splits."""
        # What parsed the lines: a parser of sentences, or the library of a programming language.
        language = notation_named(self.notation)
        parsed_by = language if self.options is None else LineParser(self.options)
        return SymbolSideRecord(
            side=self.side,
            modality="tree" if self.options is None else "constituency",
            notation=self.notation,
            traversal=self.encoding.traversal,
            binarization=self.encoding.binarization,
            mark=ARITY_MARK,
            degree=0,
            parser=None if self.options is None else self.options.to_json(),
            identity=parsed_by.identity() if isinstance(parsed_by, (LineParser, Language)) else None,
        )

    @functools.cached_property
    def reader(self) -> Notation:
        """Reads the lines of trees."""
        return notation_of(self.notation, self.spelling)


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
    """The folder that a ``fairseq-preprocess`` command asks for."""

    args: Namespace  # the arguments
    languages: tuple[str, ...]  # source, and target unless ``--only-source``
    splits: tuple[Split, ...]  # those whose text is read
    tree_sides: tuple[TreeSide, ...]  # sides that get constituency trees beside their tokens
    symbol_sides: tuple[SymbolSide, ...]  # sides that are symbol trees
    text: TextPlan  # how the other text becomes tokens

    @property
    def destination(self) -> Path:
        """The folder of ``--destdir``."""
        return Path(self.args.destdir)

    def given_dictionary(self, lang: str) -> str | None:
        """The dictionary that is given for a language: with ``--joined-dictionary`` there is one for both."""
        source, target = self.args.srcdict, self.args.tgtdict
        if self.args.joined_dictionary:
            return source or target
        return source if lang == self.args.source_lang else target

    @property
    def written_splits(self) -> list[str]:
        """Names of the splits whose token files will be written."""
        return [] if self.args.dict_only else [split.name for split in self.splits]


def make_plan(args: Namespace, texts: Mapping[str, str] | None = None) -> PreprocessPlan:
    """Makes the plan of arguments, or raises InputError if they do not go together.

    ``texts`` are the languages, by side, whose lines are text; by default all whose lines are not symbol trees.
    """
    _check_arguments(args)
    languages = (args.source_lang,) if args.only_source else (args.source_lang, args.target_lang)
    tree_sides = () if args.tree_parser is None else tree_sides_of(args, args.source_lang, args.target_lang)
    is_parsed = args.source_modality == "constituency"
    symbol_sides = _symbol_sides(args, tree_sides[0].options if tree_sides and is_parsed else None)
    if is_parsed:
        # The parses become the tokens themselves. Nothing lies beside them.
        tree_sides = tuple(side for side in tree_sides if side.side != "source")
    if both := {side.lang for side in tree_sides} & {side.lang for side in symbol_sides}:
        raise InputError(
            f"the lines of {both.pop()} are trees already, they cannot be parsed: see --tree-sides and "
            "--target-modality"
        )
    if texts is None:
        pairs = zip(("source", "target"), languages, (args.source_modality, args.target_modality))
        texts = {side: lang for side, lang, modality in pairs if modality != "tree"}
    options = {side.lang: side.options for side in (*tree_sides, *symbol_sides) if side.options is not None}
    text = TextPlan.of(args, texts, options)
    return PreprocessPlan(args, languages, splits_of(args), tree_sides, symbol_sides, text)


def tree_sides_of(args: Namespace, source_lang: str, target_lang: str | None) -> tuple[TreeSide, ...]:
    """Returns the sides of ``--tree-sides``, each with its parser; InputError for options that do not fit."""
    names = args.tree_sides.split(",")
    languages = {"source": source_lang, "target": target_lang}
    requests = text_requests(args, {name: languages[name] for name in names})
    sides, given = [], []
    for number, name in enumerate(names):
        lang = languages[name]
        own = {field: _value_of_side(args, field, number, len(names)) for field in PER_SIDE}
        own["tree_lang"] = own["tree_lang"] or lang
        options = options_from_arguments(Namespace(**{**vars(args), **own}))
        options = _with_subwords(options, requests.get(name))
        given.append(options)
        texts = (split.path(suffix) for split in splits_of(args) for suffix in (lang, "tsv"))  # of training first
        recorded = Manifest.to_extend(args.destdir, source_lang, target_lang).sides.get(lang)
        if recorded is not None and options.subwords == "auto":
            options = options.replace(subwords=recorded.parser["subwords"])
        elif text := next(filter(Path.is_file, texts), None):
            options = with_kind_of(options, read_lines(text), text)
        sides.append(TreeSide(name, lang, options))
    require_read(*given)
    return tuple(sides)


def _with_subwords(options: ParserOptions, request: SideRequest | None) -> ParserOptions:
    """The options of a parser: its text is split before it is parsed, unless its words are known only afterwards."""
    if request is None or (request.kind is None and not request.is_raw):
        return options
    if options.name == "brackets" or (options.tokenize == "stanza" and request.kind in (None, BPE)):
        return options.replace(subword_model=model_within_trees(request))
    return options if request.kind is None else options.replace(subwords=request.kind)


def _value_of_side(args: Namespace, name: str, number: int, sides: int) -> Any:
    value = getattr(args, name)
    if not value or "," not in value:
        return value
    values = value.split(",")
    if len(values) != sides:
        raise InputError(f"{flag_of(name)} {value} has {len(values)} values for {sides} sides with trees")
    return values[number] or None


def _symbol_sides(args: Namespace, parser_options: ParserOptions | None) -> tuple[SymbolSide, ...]:
    sides: list[SymbolSide] = []
    if args.source_modality == args.target_modality == "sequence":
        return ()
    has_programs = any(
        isinstance(notation_named(name), Language) for name in (args.source_notation, args.target_notation)
    )
    binarization = args.binarization or ("none" if has_programs else "lcrs")
    if has_programs and binarization != "none":
        hint = "Leave it out."
        raise InputError("--binarization lcrs: programs have as many branches as their productions", hint=hint)
    for side, lang in (("source", args.source_lang), ("target", args.target_lang)):
        kind = getattr(args, f"{side}_modality")
        if kind == "sequence" or lang is None or (side == "target" and args.only_source):
            continue
        is_parsed = kind == "constituency"
        if is_parsed and parser_options is None:
            hint = "Give --tree-parser, such as stanza."
            raise InputError(f"--{side}-modality constituency needs a parser", hint=hint)
        encoding = SymbolEncoding(args.traversal, binarization)
        notation = "bracket" if is_parsed else getattr(args, f"{side}_notation")
        sides.append(SymbolSide(side, lang, notation, encoding, parser_options if is_parsed else None))
    return tuple(sides)


def splits_of(args: Namespace) -> tuple[Split, ...]:
    """Returns the splits that arguments name. With ``--dict-only``, fairseq reads the training text alone."""
    splits = [Split("train", args.trainpref)] if args.trainpref else []
    for kind, prefixes in () if args.dict_only else (("valid", args.validpref), ("test", args.testpref)):
        for number, prefix in enumerate(prefixes.split(",") if prefixes else ()):
            splits.append(Split(f"{kind}{number or ''}", prefix))
    return tuple(splits)


def _check_arguments(args: Namespace) -> None:
    if not args.source_lang or not (args.target_lang or args.only_source):
        raise InputError("trees and subwords need the names of both languages, --source-lang and --target-lang")
    if args.dataset_impl not in SUPPORTED:
        hint = f"Use {', '.join(SUPPORTED)}."
        raise InputError(f"trees cannot be kept beside --dataset-impl {args.dataset_impl}", hint=hint)
    if "," in os.path.realpath(args.destdir):
        raise InputError(f"the destination has a comma in its path, which separates prefixes: {args.destdir}")
    if os.path.exists(args.destdir) and not os.path.isdir(args.destdir):
        raise DataFolderError(f"the destination is not a folder: {args.destdir}")
    given = [args.srcdict, args.tgtdict] if not args.only_source else [args.srcdict]
    if not args.trainpref and not (any(given) if args.joined_dictionary else all(given)):
        raise InputError("--trainpref must be set if dictionaries are not given with --srcdict and --tgtdict")
    if args.only_source and "target" in args.tree_sides:
        raise InputError("--only-source leaves no target for --tree-sides target")


def inspect_inputs(plan: PreprocessPlan) -> Inputs:
    """Reads and checks all text files; alignments are listed under their suffix in place of a language."""
    inputs, args = {}, plan.args
    stock_prefixes = {"train": args.trainpref, "valid": args.validpref, "test": args.testpref}
    for split in plan.splits:
        files = {lang: inspect_text(split.path(lang)) for lang in plan.languages}
        # fairseq looks for alignments beside the whole of a list of prefixes.
        may_be_aligned = args.align_suffix and not args.dict_only and stock_prefixes.get(split.name) == split.prefix
        if may_be_aligned and split.path(args.align_suffix).exists():
            files[args.align_suffix] = inspect_text(split.path(args.align_suffix))
        parallel = list(files.values())
        for file in parallel:
            if _MARKUP.match(next(iter(read_lines(file.path)), "")):
                logger.warning("%s:1: a line of markup, which becomes data; texts have sentences only", file.path)
        if split.name == "train" and args.alignfile:
            parallel.append(inspect_text(args.alignfile))
        require_parallel(parallel)
        inputs.update({(split.name, suffix): file for suffix, file in files.items()})
    return inputs


def command_of(plan: PreprocessPlan, inputs: Inputs) -> dict[str, Any]:
    """Returns all that decides what the files will be, so that a stopped command is recognised when given again."""
    args = plan.args
    arguments = {name: value for name, value in vars(args).items() if name not in INDIFFERENT}
    # Dictionaries in the destination are among the files that are replaced, by equal ones.
    others = [
        path
        for path in (args.srcdict, args.tgtdict, args.alignfile)
        if path and os.path.realpath(os.path.dirname(path)) != os.path.realpath(args.destdir)
    ]
    return {
        "command": "fairseq-preprocess",
        "arguments": dict(sorted(arguments.items())),
        "parsers": {side.lang: side.record().identity for side in (*plan.tree_sides, *plan.symbol_sides)},
        "inputs": {f"{split}.{suffix}": file.sha256 for (split, suffix), file in sorted(inputs.items())},
        "others": {path: file_sha256(path) for path in others},
        "text": plan.text.command(),
    }


def start_manifest(plan: PreprocessPlan) -> Manifest:
    """Returns the manifest of the folder, with records of the sides that will be written.

    Raises DataFolderError if splits that stay were made differently, or dictionaries would be overwritten.
    """
    args = plan.args
    for lang, dictionary in zip(plan.languages, (args.srcdict, args.tgtdict)):
        path = os.path.join(args.destdir, f"dict.{lang}.txt")
        if not dictionary and os.path.exists(path):
            raise DestinationExistsError(
                f"{path} exists: this destination was preprocessed before. Choose another one, remove it, give its "
                "dictionaries (--srcdict, --tgtdict) to add splits, or add trees to it with `tree-fairseq annotate`"
            )
    manifest = Manifest.to_extend(args.destdir, args.source_lang, args.target_lang)
    start_sides(manifest, plan.tree_sides, dict.fromkeys(plan.languages, plan.written_splits))
    for side in plan.symbol_sides:
        new, old = side.record(), manifest.symbols.get(side.lang)
        manifest.keep_splits(old, new, plan.written_splits, f"symbol trees of {side.lang}")
        if old is not None:
            new.grammar, new.types, new.degree = old.grammar, old.types, old.degree
        manifest.symbols[side.lang] = new
    plan.text.begin(manifest, plan.written_splits)
    return manifest


def reused_labels(plan: PreprocessPlan, lang: str) -> Path | None:
    """Returns the label dictionary that lies beside a given dictionary, if there is one."""
    given = plan.given_dictionary(lang)
    folders = [os.path.dirname(given), plan.destination] if given else []
    paths = (Path(folder) / label_dictionary_name(lang) for folder in folders)
    return next(filter(Path.exists, paths), None)
