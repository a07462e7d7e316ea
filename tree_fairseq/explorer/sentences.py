"""Reads sentences as models do: those of a split, with their parses and references, and typed lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from fairseq import utils
from fairseq.hub_utils import GeneratorHubInterface

from tree_fairseq.classification.task import ClassificationTask
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.errors import DataFolderError, InputError, MissingTreesError, TreeFairseqError, TreeFormatError
from tree_fairseq.new_text.translations import stored_forest, typed_forests
from tree_fairseq.parsing.pieces import words_by_marks
from tree_fairseq.scoring.frame import depth_of
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import Forest, forest_leaves


@dataclass(frozen=True)
class Sentence:
    """A sentence, ready for a model."""

    number: int  # from 0, of its line in the split, or among the typed lines
    source: str  # as a person reads it
    tokens: Sequence[str] = ()  # as the model reads them, without EOS at the end
    forest: Forest = ()  # the parse, whose leaves are the tokens, or the symbol tree; empty without one
    length: int = 0  # words, or symbols of a symbol tree
    # a batch of this sentence alone, on the model's device; None if the model cannot read it
    sample: Optional[dict[str, Any]] = None
    target: Optional[list[int]] = None  # ids of the reference, or None
    error: Optional[str] = None  # why the model cannot read it, or None

    @property
    def depth(self) -> int:
        """The height of the parse; 0 without one."""
        return depth_of(self.forest)


def readable(interface: GeneratorHubInterface, text: str) -> str:
    """Writes tokens as a person reads them: subwords joined, and detokenised if the model has a tokeniser."""
    joined = interface.remove_bpe(text) if interface.bpe is not None else " ".join(words_by_marks(text.split()).words)
    return interface.detokenize(joined)


class SentenceReader:
    """Reads sentences for the models of a hub interface. Only errors of a whole file or folder are raised."""

    def __init__(self, interface: GeneratorHubInterface):
        self.interface, self.task = interface, interface.task
        self.dictionary = interface.task.source_dictionary
        self.reads_symbols = isinstance(self.dictionary, TreeDictionary)
        self.classifies = isinstance(self.task, ClassificationTask)
        limit = interface.max_positions
        self.longest = limit[0] if isinstance(limit, tuple) else limit

    def open_split(self, split: str) -> int:
        """Loads a split; returns its number of sentences."""
        if split not in self.task.datasets:
            self.task.load_dataset(split)
        return len(self.task.dataset(split))

    def read_split(self, split: str, most: Optional[int] = None) -> Iterator[Sentence]:
        """Reads the first sentences of a split, in its order."""
        self.open_split(split)
        dataset, others = self.task.dataset(split), self._unread_forests(split)
        for number in range(len(dataset) if most is None else min(most, len(dataset))):
            item = dataset[number]
            written = self.dictionary.string(item["source"])
            source = written if self.reads_symbols else readable(self.interface, written)
            forest = stored_forest(self.task, split, number) or next(others, ())
            yield self._sentence(number, source, dataset, item, forest)

    def _unread_forests(self, split: str) -> Iterator[Forest]:
        """Yields the trees of the folder for a task that reads none."""
        if not hasattr(self.task, "source_forests"):
            with contextlib.suppress(MissingTreesError):
                cfg = self.task.cfg
                yield from export_forests(utils.split_paths(cfg.data)[0], cfg.source_lang, split)

    def read_line(self, line: str, number: int = 0) -> Sentence:
        """Reads a typed line: text, or a tree if the training data was trees."""
        line = line.strip()
        if not line:
            return Sentence(number, "", error="the line is blank")
        try:
            typed: list[str] = []  # before the line is parsed, if not only the task can tell
            if not (self.reads_symbols or self.classifies and line.startswith("(")):
                typed = self.interface.segment(line).split()
                with contextlib.suppress(TreeFormatError):
                    typed = forest_leaves(read_forest(line))
            if self.longest is not None and len(typed) >= self.longest:
                words = words_by_marks(typed).words
                return Sentence(number, line, typed, length=len(words), error=self._too_long(len(typed) + 1))
            read, lengths = self.task.get_interactive_tokens_and_lengths([line], self.interface.segment)
            dataset = self.task.build_dataset_for_inference(read, lengths)
            [forest] = typed_forests(self.task, [line], self.interface.segment)
            source = line
            if forest and line.startswith("(") and not self.reads_symbols:
                source = readable(self.interface, " ".join(forest_leaves(forest)))
            return self._sentence(number, source, dataset, dataset[0], forest)
        except InputError as error:
            return Sentence(number, line, error=str(error.at(line=number + 1)))
        except DataFolderError:
            raise
        except TreeFairseqError as error:
            return Sentence(number, line, error=str(error))

    def _sentence(self, number: int, source: str, dataset, item: dict, forest: Forest) -> Sentence:
        ids = item["source"].tolist()
        tokens = [self.dictionary[index] for index in (ids[:-1] if ids[-1:] == [self.dictionary.eos()] else ids)]
        length = len(tokens) if self.reads_symbols else len(words_by_marks(tokens).words)
        if self.longest is not None and len(ids) > self.longest:
            return Sentence(number, source, tokens, forest, length, error=self._too_long(len(ids)))
        if not tokens:
            return Sentence(number, source, error="the line is blank")
        sample = dataset.collater([item])
        target = self._target(sample)
        sample = utils.apply_to_sample(lambda tensor: tensor.to(self.interface.device), sample)
        return Sentence(number, source, tokens, forest, length, sample, target)

    def _too_long(self, size: int) -> str:
        return f"the sentence has {size} tokens, and the model reads at most {self.longest}"

    def _target(self, sample: dict) -> Optional[list[int]]:
        target = sample.get("target")
        if target is None:
            return None
        if self.classifies:
            target = self.task.target_tokens(target)
        outside = (self.task.target_dictionary.pad(), self.task.target_dictionary.eos())
        return [index for index in target[0].tolist() if index not in outside]
