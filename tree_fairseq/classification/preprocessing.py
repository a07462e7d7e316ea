"""``fairseq-preprocess --task tree_classification``, or ``tree_sentence_classification``: examples become a pair of languages,
texts and their classes.

The files of examples are read and judged first. Each becomes two files in the staging folder, texts (or trees without
their classes) and classes; from there on all is as in translation.
"""

from __future__ import annotations

import functools
import logging
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from fairseq.data import Dictionary

from tree_fairseq.classification.class_trees import NODE_SYMBOL, word_options
from tree_fairseq.classification.examples import (
    ClassCensus,
    read_examples,
    take_class_census,
    with_labels_of_parses,
    write_examples,
    write_words,
)
from tree_fairseq.classification.flags import OWN_FLAGS, add_classification_arguments, given_classes, settled_arguments
from tree_fairseq.classification.folder import CLASS, SENTENCE_TASK, TASK, TEXT, ClassificationRecord, ClassSplitRecord
from tree_fairseq.classification.targets import UNLABELLED, NumberDictionary, class_order
from tree_fairseq.data_bin.constituency_sides import TreeSide
from tree_fairseq.data_bin.inputs import TextInput, inspect_text, require_parallel
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import PARSED, Staging, staging_path
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.errors import DictionaryMismatchError, InputError, ParserError, UnknownClassError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.hook import Preprocessing, register_preprocessing
from tree_fairseq.preprocessing.plan import PreprocessPlan, Split
from tree_fairseq.preprocessing.run import run_plan
from tree_fairseq.preprocessing.tree_arguments import sides_from_arguments
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX

# FROM preprocessing/classification_folder: What a folder for classification keeps: its trees' symbols, and how the
# splits that it has were made.


@dataclass(frozen=True)
class ClassTreeSide(TreeSide):
    """Trees that were given with classes at their nodes and are read with symbols in their place.

    Attributes:
        symbols: options of the parser whose labels they have; None where all have the same symbol
    """

    symbols: ParserOptions | None = None

    def known_labels(self, cache: Path) -> tuple[list[str], list[str]]:
        """All symbols that a tree can have."""
        labels, tags = ([], [])
        if self.symbols is not None:
            labels, tags = TreeSide(self.side, self.lang, word_options(self.symbols)).known_labels(cache)
        tags = sorted({*tags, NODE_SYMBOL})
        pieces = [tag + SUBWORD_SUFFIX for tag in tags] if self.options.subword_model else []
        return sorted({*labels, *tags, *pieces}), tags


logger = logging.getLogger(__name__)

Inputs = dict[tuple[str, str], TextInput]

_FOLDER = "examples"


def preprocess_classification(args: Namespace, stock_main: Callable[[Namespace], None]) -> None:
    """Does what ``fairseq-preprocess --task tree_classification`` or ``tree_sentence_classification`` does.

    Args:
        args: of ``fairseq-preprocess``, among them ours
        stock_main: fairseq's own ``main``

    Raises:
        TreeFairseqError: of the class that says what is wrong; it names the user's own files.
    """
    plan = ClassificationPlan.from_arguments(args)
    try:
        run_plan(plan, stock_main)
    except InputError as error:
        raise (error.at(plan.own_file(error.path)) if error.path else error) from None
    except ParserError as error:
        # These have their place in the message.
        raise type(error)(plan.with_own_files(str(error))) from None


@dataclass(frozen=True)
class ClassificationPlan(PreprocessPlan):
    """What is to be done with examples and their classes.

    Attributes:
        text_options: of the parser for new text in a folder of trees, if there is one
    """

    text_options: ParserOptions | None = None

    @classmethod
    def from_arguments(cls, args: Namespace) -> ClassificationPlan:
        """Understands the arguments.

        Raises:
            InputError: they do not go together.
        """
        args = settled_arguments(args)
        if args.task == SENTENCE_TASK or args.input_format == "tsv":
            plan = PreprocessPlan.from_arguments(args)
            return cls(args, plan.languages, plan.splits, plan.sides)
        plan = PreprocessPlan.from_arguments(Namespace(**{**vars(args), "tree_parser": None}))
        text_options = None
        if args.tree_parser not in (None, "brackets"):
            [text] = sides_from_arguments(args, TEXT, CLASS)
            # The words of trees are whole; so are those of new text until its tree is made.
            text_options = text.options.replace(subwords="none", subword_model=None)
        brackets = ParserOptions("brackets", lang=args.tree_lang, subword_model=args.tree_subword_model)
        side = ClassTreeSide("source", TEXT, brackets, text_options if args.node_symbols == "parser" else None)
        return cls(args, plan.languages, plan.splits, (side,), text_options=text_options)

    @property
    def has_classes(self) -> bool:
        """Whether the examples have classes to be learned."""
        return not self.args.only_source

    @functools.cached_property
    def census(self) -> dict[str, ClassCensus]:
        """What the splits hold, every line judged.

        Raises:
            InputError: a line is not as it should be.
        """
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
        """The classes, in the order of their dictionary."""
        if self.args.regression:
            return NumberDictionary.of_characters().symbols[Dictionary().nspecial :]
        given = self._given_classes()
        return sorted(self.census["train"].classes, key=class_order) if given is None else given

    def _given_classes(self) -> list[str] | None:
        """The classes where train need not tell them; of numbers there are none."""
        if self.args.regression:
            return []
        if self.args.tgtdict and self.has_classes:
            dictionary = Dictionary.load(self.args.tgtdict)
            names = dictionary.symbols[dictionary.nspecial :]
            if UNLABELLED in names:
                raise UnknownClassError(f"{UNLABELLED} stands for no class, and here it is one", self.args.tgtdict)
            return names
        given = given_classes(self.args)
        return None if given is None else sorted(given, key=class_order)

    def _file(self, split: Split) -> Path:
        """The user's file of a split."""
        return split.path("trees" if self.args.input_format == "trees" else "tsv")

    def inspect(self) -> Inputs:
        """Reads all files of examples; they stand under the text's language until they are cut in two.

        Raises:
            InputError: a file is missing or empty, or a line is no example.
        """
        inputs = {(split.name, TEXT): inspect_text(self._file(split)) for split in self.splits}
        for file in inputs.values():
            require_parallel([file])
        for split, census in self.census.items():
            self._say(split, census)
        return inputs

    def _say(self, split: str, census: ClassCensus) -> None:
        if not self.has_classes:
            return
        if self.args.regression:
            logger.info("[classes] %s: %d examples with numbers", split, census.lines)
            return
        counts = ", ".join(f"{name} ({census.of_examples[name]})" for name in self.classes)
        logger.info("[classes] %s: %d examples: %s", split, census.lines, counts)
        if self.args.input_format == "trees":
            logger.info(
                "[classes] %s: %d nodes, %d of them without a class",
                split,
                census.counts.total(),
                census.counts[UNLABELLED],
            )
        if split == "train" and (absent := [name for name in self.classes if not census.of_examples[name]]):
            logger.warning("[classes] no training example has the class %s", ", ".join(absent))

    def command(self, inputs: Inputs) -> dict[str, Any]:
        """All that decides what the files will be."""
        return {**super().command(inputs), "text_parser": self._text_record()}

    def _text_record(self) -> dict[str, Any] | None:
        return None if self.text_options is None else TreeSide("source", TEXT, self.text_options).record().identity

    def begin(self, manifest: Manifest) -> None:
        """Makes the record of classes, or takes over that of the folder.

        Raises:
            DataFolderError: splits that stay were made in another way.
        """
        args = self.args
        record = ClassificationRecord(
            input_format=args.input_format,
            node_labels=args.input_format == "trees",
            node_symbols=args.node_symbols,
            binarize=args.input_format == "trees" and next(iter(self.census.values())).is_binary,
            text_parser=None if self.text_options is None else self.text_options.to_json(),
            text_identity=self._text_record(),
            regression=args.regression,
        )
        old = manifest.section(ClassificationRecord)
        manifest.keep_splits(old, record, self.written_splits, record.contents)
        if record.splits:
            record.binarize = old.binarize
            if record.text_parser is None:
                record.text_parser, record.text_identity = old.text_parser, old.text_identity
        manifest.set_section(record)

    def stage(self, inputs: Inputs, staging: Staging, cache: Path, pool: ProcessPool) -> Inputs:
        """Writes texts (or trees labelled with symbols) and classes of every split."""
        folder = staging.folder(_FOLDER)
        staged = {}
        for split in self.splits:
            examples = read_examples(self._file(split), self.args.input_format, self.has_classes, self.args.regression)
            if self.args.node_symbols == "parser" and self.args.input_format == "trees":
                examples = with_labels_of_parses(examples, self._parse_words(split, staging, cache, pool))
            files = {lang: folder / f"{split.name}.{lang}" for lang in self.languages}
            write_examples(examples, files[TEXT], files.get(CLASS))
            staged.update({(split.name, lang): inspect_text(path) for lang, path in files.items()})
        return staged

    def _parse_words(self, split: Split, staging: Staging, cache: Path, pool: ProcessPool) -> list[Path]:
        """Files with the parses of the words of a split's trees."""
        words = staging.folder(_FOLDER) / f"{split.name}.words"
        write_words(read_examples(self._file(split), self.args.input_format, self.has_classes), words)
        parsed = staging.folder(f"{PARSED}/{words.name}")
        return parse_corpus(words, parsed, word_options(self.text_options), pool=pool, cache=cache).shards

    def own_dictionaries(self, staging: Staging) -> Namespace:
        """The dictionary of classes: fairseq's own would be sorted by frequency. That of numbers is always the same."""
        if (self.args.tgtdict and not self.args.regression) or not self.has_classes:
            return Namespace()
        dictionary = Dictionary()
        for name in self.classes:
            dictionary.add_symbol(name, 1 if self.args.regression else self.census["train"].counts[name])
        path = staging.folder(_FOLDER) / f"dict.{CLASS}.txt"
        dictionary.save(str(path))
        return Namespace(tgtdict=str(path))

    def enter(self, manifest: Manifest, output: Path, pool: ProcessPool) -> None:
        """Enters the classes of the written splits.

        Raises:
            DictionaryMismatchError: the label dictionary that came with a given dictionary is not one of such trees.
        """
        for split in self.splits if self.written_splits and self.sides else ():
            trees = manifest.split(TEXT, split.name)
            if trees.failed:
                logger.warning(
                    "[classes] %s: lines with a flat tree: %s", self._file(split), ", ".join(map(str, trees.failed))
                )
            if trees.unknown_labels and self.args.input_format == "trees":
                # All of them are known beforehand, and which nodes are pieces of words is told by them.
                raise DictionaryMismatchError(
                    f"the label dictionary beside {self.args.srcdict} lacks the symbols of {trees.unknown_labels} nodes of {self._file(split)}: "
                    "it was made for other trees. Give the dictionaries of a folder that was preprocessed in the same way"
                )
        for split in self.written_splits if self.has_classes else ():
            prefix = token_prefix(split, TEXT, CLASS, CLASS)
            census = self.census[split]
            manifest.section(ClassificationRecord).splits[split] = ClassSplitRecord(
                prefix,
                census.lines,
                census.counts.total(),
                0 if self.args.regression else census.counts[UNLABELLED],
                token_file_names(output / prefix, found_impl(output / prefix)),
            )

    def own_file(self, path: str) -> str:
        """The user's file that a file in the staging folder was made of."""
        return self._own_files().get(path, path)

    def with_own_files(self, message: str) -> str:
        """A message that names the user's files in place of those in the staging folder."""
        for staged, own in self._own_files().items():
            message = message.replace(staged, own)
        return message

    def _own_files(self) -> dict[str, str]:
        folder = staging_path(self.args.destdir) / _FOLDER
        return {
            str(folder / f"{split.name}.{kind}"): str(self._file(split))
            for split in self.splits
            for kind in (TEXT, CLASS, "words")
        }


register_preprocessing(
    "classification",
    Preprocessing([TASK, SENTENCE_TASK], OWN_FLAGS, add_classification_arguments, preprocess_classification),
)
