"""The course of ``fairseq-preprocess`` with ``--task tree_classification`` or ``--task tree_sentence_classification``.

The files of examples are read and checked first. Their texts and classes then take the places of a source and a target
language: columns are cut into two files in the staging folder, and trees are encoded from the user's own file, with
symbols instead of their classes.
"""

from __future__ import annotations

import functools
import logging
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from tree_fairseq.classification.examples import (
    NODE_SYMBOL,
    ClassCensus,
    ClassTreeReader,
    read_examples,
    take_class_census,
    word_options,
    write_columns,
)
from tree_fairseq.classification.flags import FLAGS, given_classes, settled_arguments
from tree_fairseq.classification.folder import (
    CLASS,
    SENTENCE_TASK,
    SEPARATOR,
    TASK,
    TEXT,
    ClassificationRecord,
    ClassSplitRecord,
)
from tree_fairseq.classification.targets import UNLABELLED, NumberDictionary, class_order
from tree_fairseq.data_bin.constituency_sides import TreeSide
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import PARSED, Staging, staging_path
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.errors import DictionaryMismatchError, InputError, ParserError, UnknownClassError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.preprocessing.hook import Preprocessing, register_preprocessing
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, Split, StockMain, sides_from_arguments
from tree_fairseq.preprocessing.run import run_plan
from tree_fairseq.preprocessing.text_options import model_within_trees, text_requests
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.text import inspect_text, require_parallel

logger = logging.getLogger(__name__)

_FOLDER = "examples"


@dataclass(frozen=True)
class ClassTreeSide(TreeSide):
    """A side of trees that were given with classes at their nodes and are read with symbols instead.

    Attributes:
        symbols: options of the parser that gives the symbols; None if all nodes have the same one
        parses: files with the parses of each split's words, in order, once they are made
    """

    symbols: ParserOptions | None = None
    parses: dict[str, tuple[Path, ...]] = field(default_factory=dict, compare=False)

    def known_labels(self, cache: Path) -> tuple[list[str], list[str]]:
        """Returns all symbols of trees, and those of them that can be directly above words."""
        labels, tags = [], []
        if self.symbols is not None:
            labels, tags = TreeSide(self.side, self.lang, word_options(self.symbols)).known_labels(cache)
        tags = sorted({*tags, NODE_SYMBOL})
        pieces = [tag + SUBWORD_SUFFIX for tag in tags] if self.options.subword_model else []
        return sorted({*labels, *tags, *pieces}), tags

    def line_reader(self, split: str) -> ClassTreeReader:
        return ClassTreeReader(self.options.subword_model, self.parses.get(split, ()))


def preprocess_classification(args: Namespace, stock_main: StockMain) -> None:
    """Does the work of ``fairseq-preprocess`` with one of both tasks; errors name the user's own files."""
    plan = ClassificationPlan.from_arguments(args)
    try:
        run_plan(plan, stock_main)
    except InputError as error:
        own = plan.own_files.get(error.path, error.path)
        raise (error.at(own) if own else error) from None
    except ParserError as error:
        # These errors have their place in the message.
        message = str(error)
        for staged, own in plan.own_files.items():
            message = message.replace(staged, own)
        raise type(error)(message) from None


@dataclass(frozen=True)
class ClassificationPlan(PreprocessPlan):
    """The plan for examples and their classes."""

    sentence_separator = SEPARATOR
    text_options: ParserOptions | None = None
    """Those of the parser for new text in a folder of trees, if there is one."""

    @classmethod
    def from_arguments(cls, args: Namespace) -> ClassificationPlan:
        """Makes the plan that arguments ask for."""
        args = settled_arguments(args)
        if args.input_format != "trees":
            plan = PreprocessPlan.from_arguments(args)
            return cls(args, plan.languages, plan.splits, plan.sides)
        plan = PreprocessPlan.from_arguments(Namespace(**{**vars(args), "tree_parser": None}))
        text_options = None
        if args.tree_parser not in (None, "brackets"):
            [text] = sides_from_arguments(args, TEXT, CLASS)
            # The words of trees are whole; so are those of new text until its tree is made.
            text_options = text.options.replace(subwords="none", subword_model=None)
        request = text_requests(args, {"source": TEXT}).get("source")
        model = model_within_trees(request) or args.tree_subword_model
        brackets = ParserOptions("brackets", lang=args.tree_lang, subword_model=model)
        side = ClassTreeSide("source", TEXT, brackets, text_options if args.node_symbols == "parser" else None)
        return cls(args, plan.languages, plan.splits, (side,), text_options=text_options)

    @property
    def text_languages(self) -> dict[str, str]:
        """The texts; classes are names."""
        return {"source": TEXT}

    @property
    def has_trees(self) -> bool:
        """Whether the examples are bracketed trees."""
        return self.args.input_format == "trees"

    @property
    def has_classes(self) -> bool:
        """Whether the classes of the examples are read."""
        return not self.args.only_source

    def _file(self, split: Split) -> Path:
        return split.path("trees" if self.has_trees else "tsv")

    @functools.cached_property
    def census(self) -> dict[str, ClassCensus]:
        """Counts of every split, whose lines are all checked."""
        known = self._given_classes()
        found: dict[str, ClassCensus] = {}
        for split in self.splits:
            found[split.name] = take_class_census(
                self._file(split), self.args.input_format, known, self.has_classes, self.args.regression
            )
            if known is None and self.has_classes:
                known = found["train"].classes
        return found

    @functools.cached_property
    def classes(self) -> list[str]:
        """The classes, or the characters of numbers, in the order of their dictionary."""
        if self.args.regression:
            return NumberDictionary.of_characters().symbols[Dictionary().nspecial :]
        given = self._given_classes()
        return sorted(self.census["train"].classes, key=class_order) if given is None else given

    def _given_classes(self) -> list[str] | None:
        """Returns the classes that the user gives; None if they are those of train."""
        if self.args.regression:
            return []
        if self.args.tgtdict and self.has_classes:
            dictionary = Dictionary.load(self.args.tgtdict)
            names = dictionary.symbols[dictionary.nspecial :]
            if UNLABELLED in names:
                problem = f"{UNLABELLED} marks nodes without a class, and here it is a class"
                raise UnknownClassError(problem, self.args.tgtdict)
            return names
        return given_classes(self.args)

    def inspect(self) -> Inputs:
        """Reads all files of examples, which are listed under the language of the texts."""
        inputs = {(split.name, TEXT): inspect_text(self._file(split)) for split in self.splits}
        for file in inputs.values():
            require_parallel([file])
        for split, census in self.census.items():
            if self.has_classes:
                self._log_counts(split, census)
        return inputs

    def _log_counts(self, split: str, census: ClassCensus) -> None:
        if self.args.regression:
            logger.info("[classes] %s: %d examples with numbers", split, census.lines)
            return
        counts = ", ".join(f"{name} ({census.of_examples[name]})" for name in self.classes)
        logger.info("[classes] %s: %d examples: %s", split, census.lines, counts)
        if self.has_trees:
            nodes, unlabelled = sum(census.counts.values()), census.counts[UNLABELLED]
            logger.info("[classes] %s: %d nodes, %d of them without a class", split, nodes, unlabelled)
        if split == "train" and (absent := [name for name in self.classes if not census.of_examples[name]]):
            logger.warning("[classes] no training example has the class %s", ", ".join(absent))

    def command(self, inputs: Inputs) -> dict[str, Any]:
        """Returns all that decides what the files will be."""
        return {**super().command(inputs), "text_parser": self._text_identity()}

    def _text_identity(self) -> dict[str, Any] | None:
        return None if self.text_options is None else TreeSide("source", TEXT, self.text_options).record().identity

    def begin(self, manifest: Manifest) -> None:
        """Makes the record of classes, or extends that of the folder."""
        record = ClassificationRecord(
            input_format=self.args.input_format,
            node_labels=self.has_trees,
            node_symbols=self.args.node_symbols,
            binarize=self.has_trees and next(iter(self.census.values())).is_binary,
            text_parser=None if self.text_options is None else self.text_options.to_json(),
            text_identity=self._text_identity(),
            regression=self.args.regression,
        )
        old = manifest.section(ClassificationRecord)
        manifest.keep_splits(old, record, self.written_splits, record.contents)
        if record.splits:
            record.binarize = old.binarize
            if record.text_parser is None:
                record.text_parser, record.text_identity = old.text_parser, old.text_identity
        manifest.set_section(record)

    def stage(self, inputs: Inputs, staging: Staging, pool: ProcessPool) -> Inputs:
        """Writes classes, and texts unless they are trees, as files; parses the words of trees that need symbols."""
        folder, staged = staging.folder(_FOLDER), {}
        for split in self.splits:
            files = {lang: folder / f"{split.name}.{lang}" for lang in self.languages}
            if not self.has_trees:
                write_columns(self._columns(split), files.get(CLASS), files[TEXT])
            else:
                del files[TEXT]
                staged[split.name, TEXT] = inputs[split.name, TEXT]
                words = folder / f"{split.name}.words" if self.args.node_symbols == "parser" else None
                write_columns(self.census[split.name].columns, files.get(CLASS), words)
                if words is not None:
                    parsed, options = staging.folder(f"{PARSED}/{words.name}"), word_options(self.text_options)
                    summary = parse_corpus(
                        words, parsed, options, pool=pool, cache=staging.parse_cache, ranks=staging.ranks
                    )
                    self.sides[0].parses[split.name] = tuple(map(Path, summary.shards))
            staged.update({(split.name, lang): inspect_text(path) for lang, path in files.items()})
        return staged

    def _columns(self, split: Split) -> Iterator[tuple[str, str]]:
        examples = read_examples(self._file(split), self.args.input_format, self.has_classes, self.args.regression)
        return ((" ".join(example.classes), example.text) for example in examples)

    def own_dictionaries(self, staging: Staging) -> dict[str, Any]:
        """Writes the dictionary of classes, which fairseq would sort by frequency, or that of numbers."""
        if (self.args.tgtdict and not self.args.regression) or not self.has_classes:
            return {}
        dictionary = Dictionary()
        for name in self.classes:
            dictionary.add_symbol(name, 1 if self.args.regression else self.census["train"].counts[name])
        path = staging.folder(_FOLDER) / f"dict.{CLASS}.txt"
        dictionary.save(str(path))
        return {"tgtdict": str(path)}

    def enter(self, manifest: Manifest, output: Path, pool: ProcessPool) -> None:
        """Enters the classes of the written splits."""
        for split in self.splits if self.written_splits and self.sides else ():
            trees, file = manifest.split(TEXT, split.name), self._file(split)
            if trees.failed:
                logger.warning("[classes] %s: lines with a flat tree: %s", file, ", ".join(map(str, trees.failed)))
            if trees.unknown_labels and self.has_trees:
                # All symbols are known beforehand, and by them pieces of words are recognised.
                raise DictionaryMismatchError(
                    f"the label dictionary beside {self.args.srcdict} lacks the symbols of {trees.unknown_labels} "
                    f"nodes of {file}: it was made for other trees. Give the dictionaries of a folder that was "
                    "preprocessed in the same way"
                )
        for split in self.written_splits if self.has_classes else ():
            prefix, census = token_prefix(split, TEXT, CLASS, CLASS), self.census[split]
            unlabelled = 0 if self.args.regression else census.counts[UNLABELLED]
            files = token_file_names(output / prefix, found_impl(output / prefix))
            record = ClassSplitRecord(prefix, census.lines, sum(census.counts.values()), unlabelled, files)
            manifest.section(ClassificationRecord).splits[split] = record

    @property
    def own_files(self) -> dict[str, str]:
        """The user's file from which each file in the staging folder is made."""
        folder = staging_path(self.args.destdir) / _FOLDER
        return {
            str(folder / f"{split.name}.{kind}"): str(self._file(split))
            for split in self.splits
            for kind in (TEXT, CLASS, "words")
        }


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
