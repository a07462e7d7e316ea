"""Single sentences, or pairs of them, to be classified or rated: the files of a split, and new lines.

A pair is one line of tokens: the first sentence, EOS, the second; every line ends with EOS, as all lines of fairseq do. So
EOS separates sentences as the separator of pretrained encoders does, and needs no symbol of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

import numpy as np
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.classification.dataset import LabelledTexts
from tree_fairseq.classification.folder import CLASS, TEXT, ClassificationRecord
from tree_fairseq.classification.numbers import NumberDictionary
from tree_fairseq.classification.rows import class_targets, example_class
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import found_impl, joined, token_file_names, token_prefix
from tree_fairseq.errors import CorruptFileError, EmptyDocumentError, LabelColumnError, LongSentenceError
from tree_fairseq.trees.text import tokens as words_of

SEPARATOR = "</s>"
"""Between the sentences of a pair, in the text that fairseq reads; its dictionaries have it as their EOS."""

_PATH = "input"


def joined_sentences(
    sentences: Sequence[str], is_pair: bool, path: str | Path | None = None, line: int | None = None
) -> str:
    """The sentences of an example in one line.

    Args:
        sentences: one or two, their words separated by blanks
        is_pair: how many there must be
        path, line: where they come from, for errors

    Raises:
        LabelColumnError: there are more or fewer; or a word looks like what separates them
        EmptyDocumentError: a sentence has no word
    """
    if len(sentences) != 1 + is_pair:
        if is_pair:
            what = (
                "there is no tab between the sentences of a pair"
                if len(sentences) < 2
                else f"{len(sentences)} sentences where a pair is expected"
            )
            raise LabelColumnError(what, path, line, hint="A pair is a text, a tab and a text.")
        raise LabelColumnError(
            "a tab in a text",
            path,
            line,
            hint="Replace it by a blank; two sentences are read as a pair from pairs only.",
        )
    for number, sentence in enumerate(sentences, start=1):
        words = words_of(sentence)
        if not words:
            what = f"sentence {number} of the pair has no text" if is_pair else "there is no text"
            raise EmptyDocumentError(what, path, line, hint="Leave the line out: there is nothing to tell a class by.")
        if SEPARATOR in words:
            raise LabelColumnError(
                f"a text has the word {SEPARATOR}, which ends sentences", path, line, hint="Write it in another way."
            )
    return f" {SEPARATOR} ".join(sentences)


def load_sentences(
    folder: Path,
    split: str,
    combine: bool,
    text_dictionary: Dictionary,
    class_dictionary: Dictionary,
    dataset_impl: str | None,
    limit: int,
    shuffle: bool = False,
) -> LabelledTexts:
    """Opens the files of a split and makes sure that they belong together, as far as that is quickly done.

    Args:
        folder: where they are
        split: name of the first part
        combine: whether there may be more parts than one: ``train``, ``train1``, ...
        text_dictionary, class_dictionary: of the tokens; the latter of numbers where these are to be told
        dataset_impl: kind of the token files; None to find it out
        limit: tokens that a model may read at most
        shuffle: whether texts of the same length come in random order

    Raises:
        MissingTreesError: the folder has none for the split
        CorruptFileError, DictionaryMismatchError: they do not belong together
        LongSentenceError: a text is longer than the limit
    """
    manifest = Manifest.load(folder)
    record = manifest.verify_section(ClassificationRecord, folder, [])
    numbers = itertools.count() if combine else [0]
    names = list(itertools.takewhile(record.splits.__contains__, (f"{split}{number or ''}" for number in numbers)))
    manifest.verify_section(ClassificationRecord, folder, names or [split])
    manifest.files[f"dict.{TEXT}.txt"].verify_content(folder / f"dict.{TEXT}.txt")
    texts = [folder / token_prefix(name, TEXT, CLASS, TEXT) for name in names]
    for prefix in texts:
        for file in token_file_names(prefix, found_impl(prefix)):
            manifest.files[file].verify_size(folder / file)
    sources = [_tokens(prefix, text_dictionary, dataset_impl) for prefix in texts]
    labels = joined([_tokens(folder / record.splits[name].prefix, class_dictionary, dataset_impl) for name in names], 1)
    counts = [len(lines) for lines in sources]
    lengths = np.concatenate([np.asarray(lines.sizes, np.int64) for lines in sources])
    if sum(counts) != len(labels):
        raise CorruptFileError(f"{folder}: {sum(counts)} texts and {len(labels)} labels of '{split}'. Preprocess again")
    for index in np.flatnonzero(lengths > limit)[:1].tolist():
        part = int(np.searchsorted(np.cumsum(counts), index, side="right"))
        _refuse_long(int(lengths[index]), limit, str(texts[part]), index + 1 - sum(counts[:part]))
    return LabelledTexts(joined(sources, 1), lengths, text_dictionary, labels, target_reader(class_dictionary), shuffle)


def target_reader(dictionary: Dictionary) -> Callable[[Tensor, int], int | float]:
    """What tells the target of a line of tokens: its class from 0, or, with a dictionary of numbers, its number."""
    if not isinstance(dictionary, NumberDictionary):
        return lambda tokens, index: example_class(class_targets(tokens, dictionary), index)

    def number(tokens: Tensor, index: int) -> float:
        value = dictionary.value(tokens)
        if value != value:
            raise CorruptFileError(f"the label of example {index + 1} is no number. Preprocess again")
        return value

    return number


class NewSentences(list):
    """Token tensors of lines that are to be classified; fairseq's interactive command hands on the list as it is.

    Args:
        tokens: ``[N]`` int64 each, with EOS
        first: number of the first line, from 0
    """

    def __init__(self, tokens: Sequence[Tensor], first: int = 0):
        super().__init__(tokens)
        self.first = first


class NewTexts(LabelledTexts):
    """Lines to classify. Its batches carry the lines' numbers as ``constraints``, the only road by which they reach the task.

    Args:
        lines: the lines
        dictionary: of their tokens
    """

    def __init__(self, lines: NewSentences, dictionary: Dictionary):
        super().__init__(lines, np.array([len(tokens) for tokens in lines], np.int64), dictionary)
        self.first = lines.first

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """A batch with the numbers ``[B, 1]``."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            batch["constraints"] = (self.first + batch["id"]).unsqueeze(1)
        return batch


class SentenceReader:
    """Makes token tensors of lines just as those of a folder were made.

    Args:
        is_pair: whether a line is two sentences with a tab between
        dictionary: of the tokens
        limit: tokens that a model may read at most
    """

    def __init__(self, is_pair: bool, dictionary: Dictionary, limit: int):
        self.is_pair = is_pair
        self.dictionary = dictionary
        self.limit = limit

    def __call__(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> NewSentences:
        """Encodes lines.

        Args:
            lines: an example each
            encode_fn: tokeniser and subword segmentation, applied to each sentence
            first_line: number of the first one, from 1

        Raises:
            LabelColumnError, EmptyDocumentError: as :func:`joined_sentences`
            LongSentenceError: a line is longer than the limit
        """
        read = []
        for number, line in enumerate(lines, start=first_line):
            sentences = [encode_fn(sentence) for sentence in line.split("\t")]
            text = joined_sentences(sentences, self.is_pair, _PATH, number)
            read.append(self.dictionary.encode_line(text, add_if_not_exist=False).long())
            if len(read[-1]) > self.limit:
                _refuse_long(len(read[-1]), self.limit, _PATH, number)
        return NewSentences(read, first_line - 1)


def _refuse_long(length: int, limit: int, path: str, line: int) -> None:
    raise LongSentenceError(
        f"a text of {length} tokens, the ends of sentences among them, and --max-source-positions is {limit}", path, line,
        hint="Give a greater --max-source-positions, or preprocess without the line.",
    )  # fmt: skip


def _tokens(prefix: Path, dictionary: Dictionary, dataset_impl: str | None) -> Sequence[Tensor]:
    tokens = data_utils.load_indexed_dataset(str(prefix), dictionary, dataset_impl)
    if tokens is None:
        raise CorruptFileError(f"there is no token data set {prefix}")
    return tokens
