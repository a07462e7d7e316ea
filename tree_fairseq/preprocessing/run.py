"""``fairseq-preprocess`` with trees: verify, parse, let stock fairseq binarize the leaves, write the trees beside, publish.

Everything is built in a staging folder (:mod:`tree_fairseq.data_bin.staging`), where a killed run is taken up again, and moved
to the destination in the end. Token files and dictionaries are made by fairseq's own ``main``, called on the leaves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Callable

from tree_fairseq.compat import binarizing_in
from tree_fairseq.data_bin.folder_trees import add_side, enter_tokens, make_label_dictionary, start_manifest, write_side
from tree_fairseq.data_bin.inputs import TextInput
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, Manifest
from tree_fairseq.data_bin.side_files import write_leaves
from tree_fairseq.data_bin.split_trees import SplitTrees, bytes_needed, encode_split
from tree_fairseq.data_bin.staging import Staging, clear_published
from tree_fairseq.errors import MissingTreesError
from tree_fairseq.files import reporting_full_disk
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.plan import PreprocessPlan
from tree_fairseq.preprocessing.symbol_files import SymbolFiles, add_symbol_side

logger = logging.getLogger(__name__)

_LOG = "preprocess.log"

Inputs = Mapping[tuple[str, str], TextInput]


def preprocess_with_trees(args: Namespace, stock_main: Callable[[Namespace], None]) -> None:
    """Does what ``fairseq-preprocess`` does, with trees for the sides that the arguments name.

    Args:
        args: of ``fairseq-preprocess``, among them ours
        stock_main: fairseq's own ``main``

    Raises:
        TreeFairseqError: of the class that says what is wrong.
    """
    run_plan(PreprocessPlan.from_arguments(args), stock_main)


def run_plan(plan: PreprocessPlan, stock_main: Callable[[Namespace], None]) -> None:
    """Does what was planned; arguments and errors as :func:`preprocess_with_trees`."""
    destination = plan.args.destdir
    inputs = plan.inspect()
    staging = Staging(destination, plan.command(inputs))
    if not staging.is_ready:
        clear_published(destination)
        staging.refuse_unpublished()
        plan.refuse_finished_destination()
        manifest = _start_manifest(plan)
    with reporting_full_disk(staging.path, _bytes_needed(plan, inputs)), staging:
        if not staging.is_ready:
            _build(plan, inputs, manifest, staging, stock_main)
        staging.publish()
    logger.info("[trees] done: %s", destination)


def _build(
    plan: PreprocessPlan, inputs: Inputs, manifest: Manifest, staging: Staging, stock_main: Callable[[Namespace], None]
) -> None:
    """Makes all files of the destination and seals them."""
    output = staging.new_output()
    try:
        with _logging_to(output / _LOG), ProcessPool(plan.args.workers) as pool:
            cache = Path(plan.args.parse_cache) if plan.args.parse_cache else staging.parse_cache
            inputs = plan.stage(inputs, staging, cache, pool)
            trees = _encode_sides(plan, inputs, staging, cache, pool)
            dictionaries = {
                side.lang: make_label_dictionary(side, trees[side.lang], plan.reused_labels(side.lang), cache)
                for side in plan.sides
            }
            symbols = SymbolFiles.encode(plan, inputs, staging, cache, pool)
            pool.end_fresh()
            leaves = _write_texts(plan, inputs, trees, staging)
            made = Namespace(**{**vars(symbols.write_text(leaves)), **vars(plan.own_dictionaries(staging))})
            with binarizing_in(pool), _closing_log_handlers():
                stock_main(plan.stock_arguments(leaves, output, made))
            written = plan.written_splits
            enter_tokens(manifest, output, plan.languages, written)
            for side in plan.sides:
                splits = {name: trees[side.lang][name] for name in written}
                write_side(manifest, side, splits, dictionaries[side.lang], output, output)
            symbols.enter(manifest, output, leaves)
            plan.enter(manifest, output, pool)
            manifest.save(output)
        _keep_earlier_log(output, staging.destination)
        staging.seal(output, last=[MANIFEST_NAME])
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise


def _start_manifest(plan: PreprocessPlan) -> Manifest:
    """The manifest of the destination, ready for the sides that this command writes."""
    try:
        existing = Manifest.load(plan.args.destdir)
    except MissingTreesError:
        existing = None
    manifest = start_manifest(existing, plan.args.source_lang, plan.args.target_lang)
    for side in plan.sides:
        add_side(manifest, side, plan.written_splits)
    for side in plan.symbol_sides:
        add_symbol_side(manifest, side, plan.written_splits)
    plan.begin(manifest)
    others = manifest.languages
    for lang in others.keys() - {side.lang for side in (*plan.sides, *plan.symbol_sides)}:
        for split in others[lang].splits.keys() & set(plan.written_splits):
            logger.warning(
                "[trees] %s: its text is written anew without trees for %s, the old ones are forgotten", split, lang
            )
            manifest.forget_split(lang, split)
    return manifest


def _encode_sides(
    plan: PreprocessPlan, inputs: Inputs, staging: Staging, cache: Path, pool: ProcessPool
) -> dict[str, dict[str, SplitTrees]]:
    """The trees of every side, by language and split."""
    return {
        side.lang: {
            split.name: encode_split(
                inputs[split.name, side.lang],
                side.options,
                staging,
                f"{split.name}.{side.lang}",
                pool=pool,
                cache=cache,
            )
            for split in plan.splits
        }
        for side in plan.sides
    }


def _write_texts(
    plan: PreprocessPlan, inputs: Inputs, trees: Mapping[str, Mapping[str, SplitTrees]], staging: Staging
) -> Path:
    """A folder with what stock fairseq is to read: leaves of the sides with trees, links to all other files.

    The symbols of symbol trees are written when their dictionaries are known.
    """
    folder = staging.folder("leaves")
    symbols = {side.lang for side in plan.symbol_sides}
    for (split, suffix), file in inputs.items():
        path = folder / f"{split}.{suffix}"
        path.unlink(missing_ok=True)
        if suffix in trees:
            write_leaves(trees[suffix][split].chunks, path)
        elif suffix not in symbols:
            path.symlink_to(os.path.abspath(file.path))
    return folder


def _bytes_needed(plan: PreprocessPlan, inputs: Inputs) -> int:
    """About how many bytes building takes, the finished files among them."""
    is_bracketed = {side.lang: side.options.name == "brackets" for side in plan.sides}
    is_bracketed.update({side.lang: side.options is None for side in plan.symbol_sides})
    return sum(
        file.size + (bytes_needed(file.size, is_bracketed[suffix]) if suffix in is_bracketed else 0)
        for (_, suffix), file in inputs.items()
    )


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Writes what this package logs to a file also, as stock fairseq does with its own messages."""
    handler = logging.FileHandler(path, encoding="utf-8")
    package = logging.getLogger("tree_fairseq")
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)
        handler.close()


@contextlib.contextmanager
def _closing_log_handlers() -> Iterator[None]:
    """Closes the log that stock fairseq opens in the folder it writes to: the folder does not stay."""
    stock = logging.getLogger("fairseq_cli.preprocess")
    before = list(stock.handlers)
    try:
        yield
    finally:
        for handler in [handler for handler in stock.handlers if handler not in before]:
            stock.removeHandler(handler)
            handler.close()


def _keep_earlier_log(output: Path, destination: Path) -> None:
    """Puts the log of the folder, if it was preprocessed before, in front of the new one: fairseq appends to it."""
    if (destination / _LOG).exists():
        new = (output / _LOG).read_bytes()
        (output / _LOG).write_bytes((destination / _LOG).read_bytes() + new)
