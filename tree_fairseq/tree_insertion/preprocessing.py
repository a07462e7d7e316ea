"""``fairseq-preprocess --task tree_insertion``: labels become stock token files, with trajectories beside them.

The targets are read and verified first, many lines at a time in several processes. Lines of labels then take their
place, in the staging folder, and fairseq binarizes these as in translation. At the end the trajectories of each split
are drawn and written.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from fairseq.data import Dictionary

from tree_fairseq.data_bin.index_files import data_and_index
from tree_fairseq.data_bin.staging import Staging, Work
from tree_fairseq.data_bin.token_files import load_dictionary, most_frequent, token_file_names, token_prefix
from tree_fairseq.errors import InputError
from tree_fairseq.preprocessing import plan as planning
from tree_fairseq.preprocessing.run import LOG, Preprocessing, building, register_preprocessing, write_folder
from tree_fairseq.support.options import given_flags, refuse_flags
from tree_fairseq.tree_insertion.dictionary import build_insertion_dictionary, require_labels
from tree_fairseq.tree_insertion.folder import STORE_SUFFIX, TASK, InsertionRecord, InsertionSplitRecord
from tree_fairseq.tree_insertion.store import ORACLES, EncodedText, TrajectorySampler, write_stores
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.text import inspect_text

logger = logging.getLogger(__name__)

MOST_NODES = 1000  # a larger target is an error: the oracle's time and memory grow with the square of its nodes
_FOLDER = "insertion"  # in the staging folder

_FLAGS = {
    "--insertion-oracle": {
        "choices": tuple(ORACLES),
        "help": "whose trajectories are stored: centrality (the default) inserts the most central nodes first; program "
        "is the same with ties as in the program of the paper's authors, and tree-distance with distances in the tree "
        "alone, as Equation 4 is written",
    },
    "--trajectories": {"type": int, "metavar": "K", "help": "how many trajectories every tree gets (default: 5)"},
}
_DEFAULTS = {"insertion_oracle": "centrality", "trajectories": 5}


def _with_defaults(args: Namespace) -> Namespace:
    given = {name: getattr(args, name) for name in _DEFAULTS if getattr(args, name, None) is not None}
    args = Namespace(**{**vars(args), **_DEFAULTS, **given})
    task = f"--task {TASK}"
    refuse_flags(given_flags(args, "source_modality", "target_modality"), task, advice="the targets are trees anyway")
    refused = given_flags(args, "joined_dictionary")
    refused["--on-parse-error skip-pair"] = args.on_parse_error == "skip-pair"
    refused["--tree-sides target"] = args.tree_parser is not None and "target" in args.tree_sides
    refuse_flags(refused, task)
    return args


def preprocess_insertion(args: Namespace, stock_main: planning.StockMain) -> None:
    """Does the work of ``fairseq-preprocess --task tree_insertion``, given its arguments and fairseq's own ``main``."""
    args = _with_defaults(args)
    plan = planning.make_plan(args, texts={"source": args.source_lang})
    inputs = planning.inspect_inputs(plan)
    staging = Staging(plan.destination, planning.command_of(plan, inputs), args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = planning.start_manifest(plan)
    oracles = [args.insertion_oracle]
    record = InsertionRecord(args.target_lang, args.target_notation, oracles, trajectories=args.trajectories)
    manifest.keep_splits(manifest.section(InsertionRecord), record, plan.written_splits, record.contents)
    manifest.sections[record.key] = record
    text_bytes = sum(file.size for file in inputs.values())
    with building(staging, manifest, args, text_bytes, log=LOG) as work:
        targets = {
            split.name: EncodedText.read(
                inputs[split.name, record.lang],
                notation_named(record.notation),
                MOST_NODES,
                _labels_file(split.name, record, work),
                work.pool,
            )
            for split in plan.splits
        }
        labels = {(split, record.lang): inspect_text(_labels_file(split, record, work)) for split in targets}
        dictionary = args.tgtdict or _make_dictionary(plan, targets, work)
        require_labels(Dictionary.load(dictionary), dictionary)
        write_folder(plan, {**inputs, **labels}, work, stock_main, {"tgtdict": dictionary})
        written = {split: targets[split] for split in plan.written_splits}
        if written:
            _write_trajectories(written, record, work)


def _labels_file(split: str, record: InsertionRecord, work: Work) -> Path:
    return work.staging.folder(_FOLDER) / f"{split}.{record.lang}"


def _make_dictionary(plan: planning.PreprocessPlan, targets: Mapping[str, EncodedText], work: Work) -> str:
    args = plan.args
    if "train" not in targets:
        raise InputError("--trainpref must be set if the dictionary of the trees is not given with --tgtdict")
    train = targets["train"]
    size = {"threshold": args.thresholdtgt, "nwords": args.nwordstgt, "padding_factor": args.padding_factor}
    path = str(work.staging.folder(_FOLDER) / f"dict.{args.target_lang}.txt")
    build_insertion_dictionary(train.counts, len(train.lines), **size).save(path)
    return path


def _write_trajectories(targets: Mapping[str, EncodedText], record: InsertionRecord, work: Work) -> None:
    manifest, output = work.manifest, work.output
    languages = (manifest.source_lang, manifest.target_lang, record.lang)
    prefixes = {split: output / token_prefix(split, *languages) for split in targets}
    stores = {split: Path(f"{prefix}.{STORE_SUFFIX}") for split, prefix in prefixes.items()}
    lines = {store: targets[split].lines for split, store in stores.items()}
    [oracle] = record.oracles
    sampler = TrajectorySampler(oracle, record.trajectories)
    write_stores(lines, sampler, work.pool)
    dictionary = load_dictionary(output, record.lang)
    for split, prefix in prefixes.items():
        text, files = targets[split], data_and_index(stores[split])
        manifest.enter_files(files)
        record.splits[split] = InsertionSplitRecord(
            prefix=prefix.name,
            lines=len(text.lines),
            distinct=len(set(text.lines)),
            nodes=sum(text.counts.values()),
            largest=text.largest,
            unknown=_count_unknown(split, text, dictionary),
            files=[*token_file_names(prefix), *(path.name for path in files)],
        )


def _count_unknown(split: str, text: EncodedText, dictionary: Dictionary) -> int:
    unknown = Counter({word: count for word, count in text.counts.items() if word not in dictionary})
    if unknown:
        message = "[insertion] %s: %d labels are not in the dictionary and become %s: %s"
        logger.warning(message, split, sum(unknown.values()), dictionary.unk_word, most_frequent(unknown))
    return sum(unknown.values())


register_preprocessing(
    "insertion",
    Preprocessing(
        [TASK],
        "insertion-based tree decoding",
        f"with --task {TASK}: every target line is a tree in --target-notation, which is decoded node by node",
        _FLAGS,
        preprocess_insertion,
        makes_trees=True,
    ),
)
