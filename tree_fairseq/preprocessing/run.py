"""How a folder with trees is built: read and check all text, parse, make token files, write trees beside them, publish.

Everything is built in a staging folder (:mod:`tree_fairseq.data_bin.staging`), where a stopped run is continued, and
moved to the destination in the end. ``fairseq-preprocess`` makes token files and dictionaries with fairseq's own
``main``, called on the leaves; ``tree_fairseq.commands.annotate`` builds trees for token files that exist.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tree_fairseq.data_bin.constituency_sides import (
    SplitTrees,
    TreeSide,
    encode_split,
    make_label_dictionary,
    write_side,
)
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, Manifest
from tree_fairseq.data_bin.staging import RANKS, Staging, clear_published
from tree_fairseq.data_bin.token_files import token_prefix
from tree_fairseq.parsing.corpus import fill_cache
from tree_fairseq.parsing.ranks import LeadingRank, help_parsing
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, StockMain
from tree_fairseq.preprocessing.symbol_files import SymbolFiles
from tree_fairseq.support.files import remove_folder, reporting_full_disk, require_plain_file
from tree_fairseq.support.logs import naming
from tree_fairseq.support.processes import ProcessPool

logger = logging.getLogger(__name__)

LEAVES = "leaves"
"""The folder in the staging folder with the text that stock fairseq reads, or would read."""
_LOG = "preprocess.log"


def run_plan(plan: PreprocessPlan, stock_main: StockMain) -> None:
    """Does what ``fairseq-preprocess`` does, fairseq's own ``main``, with trees for the sides that a plan names."""
    inputs = plan.inspect()
    is_bracketed = {side.lang: side.options.name == "brackets" for side in plan.sides}
    is_bracketed.update({side.lang: side.options is None for side in plan.symbol_sides})
    needed = sum(
        file.size + (bytes_needed(file.size, is_bracketed[suffix]) if suffix in is_bracketed else 0)
        for (_, suffix), file in inputs.items()
    )

    def build(manifest: Manifest, staging: Staging, output: Path, pool: ProcessPool) -> None:
        with _logging_to(output / _LOG):
            _build(plan, stock_main, inputs, manifest, staging, output, pool)
        if (plan.destination / _LOG).exists():
            # fairseq appends to the log of a folder that was preprocessed before.
            require_plain_file(plan.destination / _LOG)
            new = (output / _LOG).read_bytes()
            (output / _LOG).write_bytes((plan.destination / _LOG).read_bytes() + new)

    build_folder(plan, inputs, needed, build)


def bytes_needed(size: int, is_bracketed: bool) -> int:
    """Returns about how many bytes the trees of a text of ``size`` bytes take while they are made and when done."""
    # A token of six bytes has some two nodes of sixteen bytes, and its brackets in the parse cache or in the text.
    return size * (4 if is_bracketed else 12)


def build_folder(
    plan: PreprocessPlan, inputs: Inputs, needed: int, build: Callable[[Manifest, Staging, Path, ProcessPool], None]
) -> None:
    """Builds a folder in its staging folder and publishes it, or publishes what an earlier attempt has built.

    Building takes about ``needed`` bytes. The function ``build`` writes the final files into an empty folder, given the
    manifest, the staging folder, that folder and processes.

    Of the ranks of torchrun, rank 0 does so, and the others parse a share of the text for it.
    """
    rank, world_size = _ranks_of_torchrun()
    staging = Staging(plan.destination, plan.command(inputs), plan.args.parse_cache)
    if rank > 0:
        with ProcessPool(plan.args.workers) as pool:
            fill = functools.partial(fill_cache, pool=pool)
            help_parsing(staging.path / RANKS, staging.command_digest, rank, world_size, fill)
        return
    if not staging.is_ready:
        clear_published(plan.destination)
        staging.refuse_unpublished()
        manifest = plan.start_manifest()
    with reporting_full_disk(staging.path, needed), staging:
        folder = staging.path / RANKS
        if world_size > 1:
            leading = LeadingRank(folder, staging.command_digest, world_size)
        else:
            leading = None
            remove_folder(folder)  # that of a killed attempt, on whose leading rank others may be waiting
        with leading or contextlib.nullcontext() as staging.ranks:
            if not staging.is_ready:
                output = staging.new_output()
                try:
                    with ProcessPool(plan.args.workers) as pool:
                        build(manifest, staging, output, pool)
                    manifest.save(output)
                    staging.seal(output, last=[MANIFEST_NAME])
                except BaseException:
                    shutil.rmtree(output, ignore_errors=True)
                    raise
            if staging.ranks is not None:
                staging.ranks.dismiss()
        staging.publish()
    logger.info("[trees] done: %s", plan.destination)


def _ranks_of_torchrun() -> tuple[int, int]:
    """Returns the rank of this process and the number of ranks that torchrun has started; 0 and 1 without it."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 0, 1
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _build(
    plan: PreprocessPlan,
    stock_main: StockMain,
    inputs: Inputs,
    manifest: Manifest,
    staging: Staging,
    output: Path,
    pool: ProcessPool,
) -> None:
    _forget_rewritten(plan, manifest)
    inputs = plan.text.stage(plan.stage(inputs, staging, pool), staging, pool)
    trees = {side.lang: encode_side(plan, side, manifest, inputs, staging, output, pool) for side in plan.sides}
    dictionaries = {
        side.lang: make_label_dictionary(side, trees[side.lang], plan.reused_labels(side.lang), staging.parse_cache)
        for side in plan.sides
    }
    symbols = SymbolFiles.encode(plan, inputs, staging, pool) if plan.symbol_sides else None
    pool.end_fresh()
    leaves = _link_texts(plan, inputs, staging)
    dictionary_arguments = {} if symbols is None else symbols.write_text(leaves)
    dictionary_arguments |= plan.own_dictionaries(staging)
    arguments = plan.stock_arguments(leaves, output, dictionary_arguments)
    with naming("fairseq_cli.preprocess", _known_names(plan, inputs, leaves, output, staging), plan.args):
        stock_main(arguments)
    manifest.enter_tokens(output, plan.languages, plan.written_splits)
    for side in plan.sides:
        splits = {name: trees[side.lang][name] for name in plan.written_splits}
        write_side(manifest, side, splits, dictionaries[side.lang], output, output)
    if symbols is not None:
        symbols.enter(manifest, output, leaves)
    plan.text.enter(manifest, staging, output)
    plan.enter(manifest, output, pool)


def encode_side(
    plan: PreprocessPlan,
    side: TreeSide,
    manifest: Manifest,
    inputs: Inputs,
    staging: Staging,
    output: Path,
    pool: ProcessPool,
) -> Mapping[str, SplitTrees]:
    """Encodes the trees of a side, by split; those of splits that are written go to ``output``."""
    trees = {}
    for split in plan.splits_of(side.lang):
        prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, side.lang)
        leaves = staging.folder(LEAVES) / f"{split}.{side.lang}"
        leaves.unlink(missing_ok=True)
        trees[split] = encode_split(
            inputs[split, side.lang],
            side.options,
            staging,
            pool=pool,
            store=output / f"{prefix}.tree" if split in plan.written_splits else None,
            leaves=leaves if plan.needs_leaves(side) else None,
            read=side.line_reader(split),
        )
    return trees


def _forget_rewritten(plan: PreprocessPlan, manifest: Manifest) -> None:
    """Forgets trees of languages that this command writes anew without trees."""
    written = {side.lang for side in (*plan.sides, *plan.symbol_sides)}
    for lang, record in manifest.languages.items():
        if lang not in written:
            for split in record.splits.keys() & set(plan.written_splits):
                text = "[trees] %s: its text is written anew without trees for %s, the old ones are forgotten"
                logger.warning(text, split, lang)
            manifest.forget_splits(record, plan.written_splits)


def _link_texts(plan: PreprocessPlan, inputs: Inputs, staging: Staging) -> Path:
    """Links all text that stock fairseq reads as it is beside the leaves of trees, and returns their folder."""
    folder = staging.folder(LEAVES)
    made = {side.lang for side in plan.sides if plan.needs_leaves(side)} | {side.lang for side in plan.symbol_sides}
    for (split, suffix), file in inputs.items():
        if suffix not in made:
            path = folder / f"{split}.{suffix}"
            path.unlink(missing_ok=True)
            path.symlink_to(os.path.abspath(file.path))
    return folder


def _known_names(plan: PreprocessPlan, inputs: Inputs, leaves: Path, output: Path, staging: Staging) -> dict[str, str]:
    """Returns how to name files of the staging folder, which does not stay: the user's files, or their names alone."""
    names = {}
    for (split, suffix), file in inputs.items():
        is_staged = Path(staging.path).absolute() in Path(file.path).absolute().parents
        names[str(leaves / f"{split}.{suffix}")] = Path(file.path).name if is_staged else str(file.path)
    longest_first = sorted(names.items(), key=lambda item: -len(item[0]))
    return {**dict(longest_first), str(output): str(plan.destination)}


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Writes the log of this package to the file of fairseq's log, too, and closes it before its folder is moved."""
    package, stock = logging.getLogger("tree_fairseq"), logging.getLogger("fairseq_cli.preprocess")
    before = [*package.handlers, *stock.handlers]
    package.addHandler(logging.FileHandler(path, encoding="utf-8"))
    try:
        yield
    finally:
        for logs in (package, stock):
            for handler in [handler for handler in logs.handlers if handler not in before]:
                logs.removeHandler(handler)
                handler.close()
