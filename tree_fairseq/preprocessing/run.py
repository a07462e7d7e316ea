"""``fairseq-preprocess`` with trees: check all text, parse, make token files, write trees, publish.

The command imports ``--user-dir`` before it builds its parser and looks up ``main`` after it has parsed the arguments,
so the two functions that the table of repairs replaces are enough.

Everything is built in a staging folder (:mod:`tree_fairseq.data_bin.staging`), where a stopped run is continued, and
moved to the destination in the end. fairseq's own ``main`` makes token files and dictionaries of the leaves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq import options

from tree_fairseq.data_bin.manifest import MANIFEST_NAME, Manifest
from tree_fairseq.data_bin.staging import Staging, Work
from tree_fairseq.data_bin.token_files import load_dictionary, token_prefix, warn_of_raw_text
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.parsers import ARGUMENTS, add_parser_arguments
from tree_fairseq.parsing.ray_engine import pool_for
from tree_fairseq.preprocessing import plan as planning
from tree_fairseq.preprocessing.parts import preprocess_in_parts
from tree_fairseq.preprocessing.programs import SKIP, prepare_programs, without_unparsed_pairs
from tree_fairseq.preprocessing.symbol_files import SymbolFiles
from tree_fairseq.preprocessing.text_files import TEXT_FLAGS, asks_for_text
from tree_fairseq.preprocessing.tree_files import SplitTrees, TreeSide, encode_split, make_label_dictionary, write_side
from tree_fairseq.source_code.language import Language
from tree_fairseq.support.files import reporting_full_disk, require_plain_file
from tree_fairseq.support.options import Flags, refuse_unread
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.text import chunk_bytes

logger = logging.getLogger(__name__)

LEAVES = "leaves"  # the folder in the staging folder with the text that fairseq reads, or would read
LOG = "preprocess.log"
_OF_PARSING = ("tree_sides", "parse_cache", "engine", "ray_address")


class Preprocessing(NamedTuple):
    """How ``fairseq-preprocess`` makes one kind of data set."""

    tasks: Sequence[str]  # values of ``--task`` that ask for this kind
    # title, description: of its group of arguments
    title: str
    description: str
    flags: Flags  # the arguments that go with these tasks only; their default is None
    preprocess: Callable[
        [Namespace, planning.StockMain], None
    ]  # does the work, given all arguments and fairseq's own ``main``
    makes_trees: bool = False  # whether the target is symbol trees whatever its modality is


_KINDS: dict[str, Preprocessing] = {}


def register_preprocessing(name: str, kind: Preprocessing) -> None:
    """Adds a kind of data set to ``fairseq-preprocess``, or replaces the one of the same name."""
    _KINDS[name] = kind


def add_tree_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about constituency trees."""
    group = parser.add_argument_group("trees", "constituency trees, kept beside the token files")
    add_parser_arguments(group, default_parser=None, default_lang=None)
    group.add_argument("--tree-sides", **planning.TREE_SIDES)
    group.add_argument("--parts", **planning.PARTS)


def _add_flags(parser: ArgumentParser, title: str, description: str, flags: Flags) -> None:
    group = parser.add_argument_group(title, description)
    for flag, settings in flags.items():
        group.add_argument(flag, **settings)


def add_tree_groups(stock: Callable[[ArgumentParser], ArgumentParser]) -> Callable[[ArgumentParser], ArgumentParser]:
    """Adds this package's groups of arguments after fairseq's."""

    def add_preprocess_args(parser: ArgumentParser) -> ArgumentParser:
        stock(parser)
        add_tree_arguments(parser)
        _add_flags(parser, "tokens and subwords", "how the text is, or becomes, tokens of the folder", TEXT_FLAGS)
        _add_flags(
            parser, "symbol trees", "programs and logical forms, encoded as sequences of symbols", planning.SYMBOL_FLAGS
        )
        for kind in _KINDS.values():
            _add_flags(parser, kind.title, kind.description, kind.flags)
        return parser

    return add_preprocess_args


def with_defaults(args: Namespace) -> Namespace:
    """Returns arguments with the defaults of those that are missing: a caller may have made them without our parser."""
    defaults = vars(options.get_preprocessing_parser().parse_args([]))
    return Namespace(**{**defaults, **vars(args)})


def _kind_of(args: Namespace) -> Preprocessing | None:
    """Returns the kind of data set that arguments ask for, or raises InputError if its task is not given."""
    for kind in _KINDS.values():
        if args.task in kind.tasks:
            return kind
        for flag in kind.flags:
            if getattr(args, flag[2:].replace("-", "_")) is not None:
                raise InputError(f"{flag} goes with --task {kind.tasks[0]} only")
    return None


def preprocess_trees(stock: planning.StockMain) -> planning.StockMain:
    """Preprocesses trees, classes and subwords if arguments ask for them; everything else is fairseq's own work."""

    def main(args: Namespace) -> None:
        args = with_defaults(args)
        for path in Path(args.destdir).glob("*"):
            if path.is_symlink() and path.suffix in (".bin", ".idx", ".log", ".txt"):
                raise InputError("this is a link, and what it leads to could be overwritten", path, hint="Remove it.")
        kind = _kind_of(args)
        _refuse_unread(args, with_defaults(Namespace()), kind is not None and kind.makes_trees)
        if kind is not None:
            if args.parts is not None:
                refuse_unread({"parts"}, {"parts": "it goes with --task tree_translation and structural_translation"})
            kind.preprocess(args, stock)
            return
        has_symbols = args.source_modality != "sequence" or args.target_modality != "sequence"
        _require_trees(args, has_symbols)
        if args.parts is not None:
            preprocess_in_parts(args, not has_symbols and args.tree_parser is None, main)
        elif has_symbols or args.tree_parser is not None or asks_for_text(args):
            preprocess(args, stock)
        else:
            stock(args)

    return main


def _refuse_unread(args: Namespace, defaults: Namespace, makes_trees: bool) -> None:
    """Raises InputError for one of this package's arguments that differs from its default, and that is not read."""
    source, target = args.source_modality, "tree" if makes_trees else args.target_modality
    kinds = (args.source_notation, source), (args.target_notation, target)
    has_programs = any(kind == "tree" and isinstance(notation_named(name), Language) for name, kind in kinds)
    of_symbols = args.tree_parser is None and "tree" in (source, target)
    parsing = [name for name in ARGUMENTS.values() if name != "on_parse_error" or not of_symbols]
    flat = of_symbols and args.on_parse_error == "flat"
    text = "tokenizer bpe bpe_codes sentencepiece_model learn_subwords apply_tokenizer".split()
    symbols = args.source_modality != "sequence" or args.target_modality != "sequence"
    unread: dict[str, str] = {}
    for is_read, names, way_out in (
        (source == "tree", ["source_notation"], "it goes with --source-modality tree"),
        (target == "tree", ["target_notation"], "it goes with --target-modality tree"),
        (args.tree_parser is not None, [*parsing, *_OF_PARSING], "it goes with --tree-parser"),
        (not flat, ["on_parse_error"], "symbols have no flat tree; give stop or skip-pair"),
        (symbols, ["traversal", "binarization", "all_arities"], "it goes with --source- or --target-modality tree"),
        (has_programs, ["leaf_merges"], "it goes with a programming language, such as --target-notation python"),
        (args.tokenizer == "moses", ["moses_no_dash_splits"], "it goes with --tokenizer moses"),
        (source != "tree" or target != "tree", text, "the lines of both sides are trees"),
    ):
        unread |= {} if is_read else dict.fromkeys(names, way_out)
    # The language of a text is also that of its tokeniser.
    if given := {name for name in unread if name != "tree_lang" and getattr(args, name) != getattr(defaults, name)}:
        refuse_unread(given, unread)


def _require_trees(args: Namespace, has_symbols: bool) -> None:
    """Raises InputError if the task needs trees that no flag asks for."""
    if args.task == "structural_translation" and not has_symbols:
        hint = "Add --source-modality tree, --target-modality tree or both. Nothing was written."
        raise InputError(f"--task {args.task} needs symbol trees, but no flag asks for them", hint=hint)
    # Trees beside tokens; those of the target are for training in the other direction.
    if args.task == "tree_translation" and (args.tree_parser is None or args.source_modality != "sequence"):
        hint = (
            "Add --tree-parser stanza, or --tree-parser brackets if the lines are trees already. Nothing was written."
        )
        raise InputError(f"--task {args.task} needs constituency trees, but no flag asks for them", hint=hint)


def preprocess(args: Namespace, stock_main: planning.StockMain) -> None:
    """Does the work of ``fairseq-preprocess`` with trees or subwords, given its arguments and fairseq's ``main``."""
    plan = planning.make_plan(args)
    inputs = planning.inspect_inputs(plan)
    staging = Staging(plan.destination, planning.command_of(plan, inputs), args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = planning.start_manifest(plan)
    text_bytes = sum(file.size for file in inputs.values())
    with building(staging, manifest, args, text_bytes, log=LOG) as work:
        write_folder(plan, inputs, work, stock_main)


@contextlib.contextmanager
def building(
    staging: Staging, manifest: Manifest, args: Namespace, text_bytes: int, log: str | None = None
) -> Iterator[Work]:
    """The ``with`` block writes the final files into `Work.output`; when it ends well, they are published.

    The texts have ``text_bytes``. ``log`` names the file of the folder that gets the log of the block.
    """
    # A token of six bytes has some two nodes of sixteen bytes, and its brackets in the shards or in the text.
    with reporting_full_disk(staging.path, 12 * text_bytes), staging:
        output = staging.new_output()
        try:
            with_ray = args.engine == "ray" or args.ray_address
            with pool_for(args) if with_ray else ProcessPool(args.workers) as pool:
                with _logging_to(output, log, staging.destination):
                    yield Work(manifest, staging, output, pool)
            manifest.save(output)
            staging.seal(output, last=[MANIFEST_NAME])
        except BaseException:
            shutil.rmtree(output, ignore_errors=True)
            raise
        staging.publish()
    logger.info("[trees] done: %s", staging.destination)


@contextlib.contextmanager
def _logging_to(output: Path, name: str | None, destination: Path) -> Iterator[None]:
    """Writes the log of this package to the file of fairseq's log, too, and closes it before its folder is moved."""
    if name is None:
        yield
        return
    if (destination / name).exists():
        # fairseq appends to the log of a folder that was preprocessed before.
        require_plain_file(destination / name)
        shutil.copyfile(destination / name, output / name)
    package, stock = logging.getLogger("tree_fairseq"), logging.getLogger("fairseq_cli.preprocess")
    before = [*package.handlers, *stock.handlers]
    package.addHandler(logging.FileHandler(output / name, encoding="utf-8"))
    try:
        yield
    finally:
        for logs in (package, stock):
            for handler in [handler for handler in logs.handlers if handler not in before]:
                logs.removeHandler(handler)
                handler.close()


def write_folder(
    plan: planning.PreprocessPlan,
    inputs: planning.Inputs,
    work: Work,
    stock_main: planning.StockMain,
    dictionaries: Mapping[str, Any] | None = None,
) -> planning.Inputs:
    """Writes the files of a plan to the output of the work, and enters them into its manifest.

    Returns the texts whose lines were written, which lack pairs that ``--on-parse-error`` leaves out.

    ``dictionaries`` are arguments of fairseq's ``main``, such as ``tgtdict``, for those that it is not to make itself.
    """
    manifest, output = work.manifest, work.output
    made_anew = {side.lang for side in (*plan.tree_sides, *plan.symbol_sides)}
    for lang, record in manifest.languages.items():
        if lang not in made_anew:
            for split in record.splits.keys() & set(plan.written_splits):
                text = "[trees] %s: its text is written anew without trees for %s, the old ones are forgotten"
                logger.warning(text, split, lang)
            manifest.forget_splits(record, plan.written_splits)
    if plan.symbol_sides:
        plan, inputs = prepare_programs(plan, inputs, work)
    inputs = plan.text.prepare(inputs, work)
    if plan.args.on_parse_error == SKIP:
        inputs = without_unparsed_pairs(plan, inputs, work)
    trees, labels = {}, {}
    for side in plan.tree_sides:
        texts = {split.name: inputs[split.name, side.lang] for split in plan.splits}
        # A raw data set is a copy of the leaves.
        needs_leaves = not side.leaves_are_tokens or plan.args.dataset_impl == "raw"
        trees[side.lang] = encode_side(side, texts, work, plan.written_splits, needs_leaves)
        reused = planning.reused_labels(plan, side.lang)
        labels[side.lang] = make_label_dictionary(side, trees[side.lang], reused, work.pool)
    symbols = SymbolFiles.encode(plan, inputs, work) if plan.symbol_sides else None
    work.pool.end_fresh()
    leaves = _link_texts(plan, inputs, work.staging)
    made = {**(symbols.write_text(leaves) if symbols else {}), **(dictionaries or {})}
    arguments = _stock_arguments(plan, leaves, output, made)
    # The staging folder does not stay.
    with renaming_in_log({f"{leaves}{os.sep}": "", str(output): str(plan.destination)}, plan.args):
        stock_main(arguments)
    texts = plan.languages if not plan.args.dict_only else ()
    for lang in {*texts} - {side.lang for side in plan.symbol_sides}:
        for path in sorted(leaves.glob(f"valid*.{lang}")):
            warn_of_raw_text(path, load_dictionary(output, lang))
    manifest.enter_tokens(output, plan.languages, plan.written_splits)
    for side in plan.tree_sides:
        splits = {name: trees[side.lang][name] for name in plan.written_splits}
        write_side(work, side, splits, labels[side.lang], output)
    if symbols:
        symbols.enter(leaves)
    plan.text.enter(work)
    return inputs


def encode_side(
    side: TreeSide, texts: planning.Inputs, work: Work, written: Iterable[str], needs_leaves: bool
) -> dict[str, SplitTrees]:
    """Encodes the trees of a side, by split. Those of the ``written`` splits go to the output."""
    trees, manifest = {}, work.manifest
    for split, text in texts.items():
        prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, side.lang)
        name = f"{split}.{side.lang}"
        leaves = work.staging.folder(LEAVES) / name
        leaves.unlink(missing_ok=True)
        trees[split] = encode_split(
            text,
            side.options,
            work,
            name,
            store=work.output / f"{prefix}.tree" if split in written else None,
            leaves=leaves if needs_leaves else None,
        )
    return trees


def _link_texts(plan: planning.PreprocessPlan, inputs: planning.Inputs, staging: Staging) -> Path:
    """Links all text that fairseq reads as it is beside the leaves of trees, and returns their folder."""
    folder = staging.folder(LEAVES)
    is_raw = plan.args.dataset_impl == "raw"
    made = {side.lang for side in plan.tree_sides if is_raw or not side.leaves_are_tokens}
    made |= {side.lang for side in plan.symbol_sides}
    for (split, suffix), file in inputs.items():
        if suffix not in made:
            path = folder / f"{split}.{suffix}"
            path.unlink(missing_ok=True)
            if file.chunks and file.chunks[0].start:  # without the byte order mark, which fairseq would read as text
                path.write_bytes(b"".join(chunk_bytes(file.path, chunk) for chunk in file.chunks))
            else:
                path.symlink_to(os.path.abspath(file.path))
    return folder


def _stock_arguments(
    plan: planning.PreprocessPlan, leaves: Path, output: Path, dictionaries: dict[str, Any]
) -> Namespace:
    def prefixes(kind: str) -> str | None:
        names = [split.name for split in plan.splits if split.name.rstrip("0123456789") == kind]
        return ",".join(os.fspath(leaves / name) for name in names) or None

    changes = {"trainpref": prefixes("train"), "validpref": prefixes("valid"), "testpref": prefixes("test")}
    return Namespace(**{**vars(plan.args), **changes, **dictionaries, "destdir": os.fspath(output)})


@contextlib.contextmanager
def renaming_in_log(names: Mapping[str, str], arguments: Namespace) -> Iterator[None]:
    """Replaces names of files that do not stay in the lines that fairseq logs, and its arguments by the user's."""

    def rename(record: logging.LogRecord) -> bool:
        if isinstance(record.msg, Namespace):
            record.msg = arguments
        elif isinstance(record.msg, str):
            for text, name in names.items():
                record.msg = record.msg.replace(text, name)
        return True

    stock = logging.getLogger("fairseq_cli.preprocess")
    stock.addFilter(rename)
    try:
        yield
    finally:
        stock.removeFilter(rename)
