"""The course of ``fairseq-preprocess`` with ``--task tree_classification`` or ``--task tree_sentence_classification``.

The files of examples are read and checked first. Their texts and classes then take the places of a source and a target
language: files in the staging folder have the classes, and the texts, or the trees with symbols in place of classes.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from tree_fairseq.classification.examples import NODE_SYMBOL, Examples, read_examples
from tree_fairseq.classification.folder import (
    CHARACTERS,
    CLASS,
    INPUT_FORMATS,
    SENTENCE_FORMATS,
    SENTENCE_TASK,
    SEPARATOR,
    TASK,
    TEXT,
    UNLABELLED,
    ClassificationRecord,
    ClassSplitRecord,
    class_order,
)
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Staging, Work, staging_path
from tree_fairseq.data_bin.token_files import token_file_names, token_prefix
from tree_fairseq.errors import DictionaryMismatchError, InputError, LabelColumnError, ParserError, UnknownClassError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.preprocessing import plan as planning
from tree_fairseq.preprocessing.run import LOG, Flags, Preprocessing, building, register_preprocessing, write_folder
from tree_fairseq.preprocessing.text_files import text_requests
from tree_fairseq.preprocessing.tree_files import TreeSide
from tree_fairseq.support.options import given_flags, refuse_flags
from tree_fairseq.trees.text import TextInput, inspect_text, read_lines, require_parallel, write_text

logger = logging.getLogger(__name__)

_FOLDER = "examples"


FLAGS: Flags = {
    "--input-format": {
        "choices": (*INPUT_FORMATS, *SENTENCE_FORMATS),
        "help": "tsv: each line is a text, a tab and its class, and the text is parsed; trees: each line is a "
        f"bracketed tree whose labels are classes, or {UNLABELLED} for no class (default: tsv). With --task "
        f"{SENTENCE_TASK} sentence: each line is a text, a tab and its class; pair: each line is a text, a tab, a "
        "text, a tab and the class of both (default: sentence)",
    },
    "--regression": {
        "action": "store_const",
        "const": True,
        "help": f"with --task {SENTENCE_TASK}: each line has a number instead of the class",
    },
}
_COLUMN_NAMES = "label labels class category target gold_label score sentiment rating polarity stars topic".split()
# Other arguments of fairseq-preprocess that a folder of classes cannot have.
_REFUSED = "source_modality target_modality joined_dictionary thresholdtgt nwordstgt only_source".split()


def settled_arguments(args: Namespace) -> Namespace:
    """Returns the arguments with every default filled in, or raises InputError if they do not go together."""
    has_trees, task = args.task == TASK, f"--task {args.task}"
    input_format = args.input_format or ("tsv" if has_trees else "sentence")
    changes = {
        "source_lang": TEXT,
        "target_lang": CLASS,
        "regression": bool(args.regression),
        "input_format": input_format,
        # "text" is the name of a side, not of a language.
        "tree_lang": args.tree_lang or "en" if has_trees else args.tree_lang,
    }
    refused = given_flags(args, *_REFUSED, "regression" if has_trees else "tree_parser")
    refused[f"--input-format {input_format}"] = input_format not in (INPUT_FORMATS if has_trees else SENTENCE_FORMATS)
    refused[f"--source-lang {args.source_lang}"] = args.source_lang not in (None, TEXT)
    refused[f"--target-lang {args.target_lang}"] = args.target_lang not in (None, CLASS)
    refused["--tree-sides target"] = "target" in args.tree_sides
    refuse_flags(refused, task)
    if input_format == "trees" and any(each.kind or each.is_raw for each in text_requests(args, {"": TEXT}).values()):
        hint = "Leave out --bpe-codes, --sentencepiece-model, --learn-subwords and --apply-tokenizer."
        raise InputError("the words of --input-format trees are not tokenised or split", hint=hint)
    if input_format == "tsv" and args.tree_parser is None:
        hint = "Give --tree-parser: stanza, or right-branching if you do not need trees."
        raise InputError("--input-format tsv needs the trees of a parser", hint=hint)
    return Namespace(**{**vars(args), **changes})


def preprocess_classification(args: Namespace, stock_main: planning.StockMain) -> None:
    """Does the work of ``fairseq-preprocess`` with one of both tasks; errors name the user's own files."""
    args = settled_arguments(args)
    own_files = {
        str(staging_path(args.destdir) / _FOLDER / f"{split.name}.{kind}"): str(_file_of(args, split))
        for split in planning.splits_of(args)
        for kind in (TEXT, CLASS)
    }
    try:
        _preprocess(args, stock_main)
    except InputError as error:
        own = own_files.get(error.path, error.path)
        raise (error.at(own) if own else error) from None
    except ParserError as error:
        # These errors have their place in the message.
        message = str(error)
        for staged, own in own_files.items():
            message = message.replace(staged, own)
        raise type(error)(message) from None


def _preprocess(args: Namespace, stock_main: planning.StockMain) -> None:
    plan, text_options = _make_plan(args)
    inputs = {(split.name, TEXT): inspect_text(_file_of(args, split)) for split in plan.splits}
    for file in inputs.values():
        require_parallel([file])
    examples, classes = _read_examples(args, plan.splits)
    _log_counts(args, examples, classes)
    identity = None if text_options is None else TreeSide("source", TEXT, text_options).record().identity
    command = {**planning.command_of(plan, inputs), "text_parser": identity}
    staging = Staging(plan.destination, command, args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = planning.start_manifest(plan)
    record = _start_record(plan, examples, text_options, identity, manifest)
    text_bytes = sum(file.size for file in inputs.values())
    with building(staging, manifest, args, text_bytes, log=LOG) as work:
        folder, texts = work.staging.folder(_FOLDER), dict[tuple[str, str], TextInput]()
        for name, own in examples.items():
            for lang, lines in ((TEXT, own.texts), (CLASS, map(" ".join, own.classes))):
                texts[name, lang] = write_text(folder / f"{name}.{lang}", lines)
        texts = write_folder(plan, texts, work, stock_main, _class_dictionary(args, examples, classes, work))
        _check_trees(plan, manifest)
        for split in plan.written_splits:
            written = [line.split() for line in read_lines(texts[split, CLASS].path)]
            prefix, counts = token_prefix(split, TEXT, CLASS, CLASS), Counter(itertools.chain.from_iterable(written))
            files = token_file_names(work.output / prefix)
            unlabelled = 0 if args.regression else counts[UNLABELLED]
            record.splits[split] = ClassSplitRecord(prefix, len(written), sum(counts.values()), unlabelled, files)


def _file_of(args: Namespace, split: planning.Split) -> Path:
    return split.path("trees" if args.input_format == "trees" else "tsv")


def _make_plan(args: Namespace) -> tuple[planning.PreprocessPlan, ParserOptions | None]:
    """Makes the plan, and returns the options of the parser for new text in a folder of trees, if there is one."""
    texts = {"source": TEXT}
    if args.input_format != "trees":
        plan, text_options = planning.make_plan(args, texts), None
    else:
        plan = planning.make_plan(Namespace(**{**vars(args), "tree_parser": None}), texts)
        text_options = None
        if args.tree_parser not in (None, "brackets"):
            [text] = planning.tree_sides_of(args, TEXT, CLASS)
            text_options = text.options.replace(subwords="none")
        brackets = ParserOptions("brackets", lang=args.tree_lang)
        side = TreeSide("source", TEXT, brackets, labels=([NODE_SYMBOL], [NODE_SYMBOL]))
        plan = dataclasses.replace(plan, tree_sides=(side,))
    return dataclasses.replace(plan, args=args, text=dataclasses.replace(plan.text, separator=SEPARATOR)), text_options


def _read_examples(args: Namespace, splits: tuple[planning.Split, ...]) -> tuple[dict[str, Examples], list[str]]:
    """Reads and checks the files of all splits; also returns the classes, or the characters of numbers, in order."""
    known, examples = _given_classes(args), dict[str, Examples]()
    for split in splits:
        path = _file_of(args, split)
        examples[split.name] = read_examples(path, args.input_format, known, args.regression)
        if known is None:
            if args.input_format != "trees":
                counts, first = examples["train"].counts_of_examples(), examples["train"].classes[0][0]
                is_alone = counts[first] == 1 and len(counts) > 2
                if is_alone and (first.lower() in _COLUMN_NAMES or list(counts.values()).count(1) == 1):
                    hint = "Leave the line out (tail -n +2). If it is an example, put it elsewhere in the file."
                    raise LabelColumnError(f"a header: no other line has the class {first!r}", path, 1, hint=hint)
            known = sorted({*examples["train"].counts()} - {UNLABELLED}, key=class_order)
    return examples, known or []


def _log_counts(args: Namespace, examples: dict[str, Examples], classes: list[str]) -> None:
    for split, own in examples.items():
        if args.regression:
            logger.info("[classes] %s: %d examples with numbers", split, len(own.texts))
            continue
        counts, of_examples = own.counts(), own.counts_of_examples()
        listed = ", ".join(f"{name} ({of_examples[name]})" for name in classes)
        logger.info("[classes] %s: %d examples: %s", split, len(own.texts), listed)
        if args.input_format == "trees":
            nodes, unlabelled = sum(counts.values()), counts[UNLABELLED]
            logger.info("[classes] %s: %d nodes, %d of them without a class", split, nodes, unlabelled)
        absent = [name for name in classes if not of_examples[name]]
        if split == "train" and absent:
            logger.warning("[classes] no training example has the class %s", ", ".join(absent))


def _given_classes(args: Namespace) -> list[str] | None:
    """Reads the classes of ``--tgtdict``; None if they are those of train. Numbers have their characters instead."""
    if args.regression:
        return [*CHARACTERS]
    if not args.tgtdict:
        return None
    dictionary = Dictionary.load(args.tgtdict)
    names = dictionary.symbols[dictionary.nspecial :]
    if UNLABELLED in names:
        raise UnknownClassError(f"{UNLABELLED} marks nodes without a class, and here it is a class", args.tgtdict)
    return names


def _start_record(
    plan: planning.PreprocessPlan,
    examples: dict[str, Examples],
    text_options: ParserOptions | None,
    identity: dict[str, Any] | None,
    manifest: Manifest,
) -> ClassificationRecord:
    has_trees = plan.args.input_format == "trees"
    record = ClassificationRecord(
        input_format=plan.args.input_format,
        node_labels=has_trees,
        node_symbols={"tsv": "parser", "trees": "constant"}.get(plan.args.input_format, "none"),
        binarize=has_trees and next(iter(examples.values())).is_binary,
        text_parser=None if text_options is None else text_options.to_json(),
        text_identity=identity,
        regression=plan.args.regression,
    )
    old = manifest.section(ClassificationRecord)
    manifest.keep_splits(old, record, plan.written_splits, record.contents)
    if record.splits:
        record.binarize = old.binarize
        if record.text_parser is None:
            record.text_parser, record.text_identity = old.text_parser, old.text_identity
    manifest.sections[record.key] = record
    return record


def _class_dictionary(args: Namespace, examples: dict[str, Examples], classes: list[str], work: Work) -> dict[str, str]:
    """Writes the dictionary of classes or numbers if none is given; fairseq would sort the classes by frequency."""
    if args.tgtdict and not args.regression:
        return {}
    dictionary = Dictionary()
    counts = None if args.regression else examples["train"].counts()
    for name in classes:
        dictionary.add_symbol(name, 1 if counts is None else counts[name])
    path = work.staging.folder(_FOLDER) / f"dict.{CLASS}.txt"
    dictionary.save(str(path))
    return {"tgtdict": str(path)}


def _check_trees(plan: planning.PreprocessPlan, manifest: Manifest) -> None:
    """Logs which lines have flat trees; raises DictionaryMismatchError for symbols that the dictionary lacks."""
    for split in plan.splits if plan.written_splits and plan.tree_sides else ():
        trees, file = manifest.split(TEXT, split.name), _file_of(plan.args, split)
        if trees.failed:
            logger.warning("[classes] %s: lines with a flat tree: %s", file, ", ".join(map(str, trees.failed)))
        if trees.unknown_labels and plan.args.input_format == "trees":
            raise DictionaryMismatchError(
                f"the label dictionary beside {plan.args.srcdict} lacks the symbols of {trees.unknown_labels} "
                f"nodes of {file}: it was made for other trees. Give the dictionaries of a folder that was "
                "preprocessed in the same way"
            )


register_preprocessing(
    "classification",
    Preprocessing(
        [TASK, SENTENCE_TASK],
        "classification",
        f"examples and their classes, with --task {TASK} or, without trees, {SENTENCE_TASK}: --trainpref and the like "
        "name PREFIX.tsv or PREFIX.trees",
        FLAGS,
        preprocess_classification,
    ),
)
