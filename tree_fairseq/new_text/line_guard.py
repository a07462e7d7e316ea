"""New text whose lines may be faulty: a line that cannot be read gets an empty hypothesis, and the others go on.

``fairseq-interactive`` and ``fairseq-generate --raw`` read lines through a :class:`LineGuard`. The lines that remain
are batched as if the faulty ones were not there, and keep their numbers.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Callable, Optional

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset
from fairseq.tasks import FairseqTask

from tree_fairseq.errors import InputError, LeafMismatchError, LongSentenceError
from tree_fairseq.repairs.compat import replaced
from tree_fairseq.tasks.pair_dataset import CarriedInput, InputLines
from tree_fairseq.tasks.unknown_tokens import uncounted
from tree_fairseq.trees.text import decode_line

logger = logging.getLogger(__name__)

STOP, EMPTY = "stop", "empty"
# What a tokeniser, a parser or a reader of trees raises about a line.
_FAULTS = (InputError, LeafMismatchError, RecursionError, UnicodeError)
_NO_LIMIT = sys.maxsize

Encode = Callable[[str], str]
Listener = Callable[[InputLines, Sequence[int], Encode], None]


class NothingReadableError(InputError):
    """All lines are faulty."""


class LineGuard:
    """Keeps the faults of lines away from a task.

    Args:
        path: of the text, for messages
        stops: whether the first faulty line ends the command with an error; otherwise there is a warning for each
        listener: called with the lines that can be read, their places among all, and the encoding of text
    """

    def __init__(self, path: str, stops: bool = False, listener: Optional[Listener] = None):
        self.path, self._stops, self._listener = path, stops, listener
        self._first = 0  # number of the first of the current lines, from 0
        self._faulty: set[int] = set()  # places among the current lines
        self._places: np.ndarray = np.zeros(0, np.int64)  # of the lines that can be read
        self._answers_faulty = False

    @property
    def faulty(self) -> list[int]:
        """The places of the faulty lines among those that were read last, ascending."""
        return sorted(self._faulty)

    @property
    def lines_read(self) -> int:
        """The number of lines so far, with the faulty ones."""
        return self._first + len(self._faulty) + len(self._places)

    def take(self, raw_lines: Sequence[bytes], strip: bool = False) -> InputLines:
        """Decodes the next lines; those that are not UTF-8 are faulty, and empty in the result."""
        self._first = self.lines_read
        self._faulty, self._places = set(), np.zeros(0, np.int64)
        lines = InputLines(first_line=self._first + 1)
        for place, raw in enumerate(raw_lines):
            try:
                line = decode_line(raw, self.path, self._first + place + 1)
            except InputError as error:
                self._report(place, error)
                line = ""
            lines.append(line.strip() if strip else line)
        self._places = np.array([place for place in range(len(lines)) if place not in self._faulty], np.int64)
        return lines

    def watch(self, task: FairseqTask) -> None:
        """Makes a task read, measure and answer only the lines that can be read."""
        read, build, iterate, generate = (
            task.get_interactive_tokens_and_lengths,
            task.build_dataset_for_inference,
            task.get_batch_iterator,
            task.inference_step,
        )

        def get_interactive_tokens_and_lengths(lines: InputLines, encode_fn: Encode):
            return self._read_all(task, read, lines, encode_fn)

        def build_dataset_for_inference(src_tokens, src_lengths, constraints=None):
            if constraints is not None:
                constraints = constraints[torch.from_numpy(self._places)]
            built = build(src_tokens, src_lengths, constraints=constraints)
            return _RenumberedDataset(built, self._places, self._first) if self._faulty else built

        def get_batch_iterator(dataset, *args, **options):
            with self._filtering(task, options.get("max_tokens"), options.get("ignore_invalid_inputs")):
                if options.get("max_positions") is None:
                    options["max_positions"] = _NO_LIMIT  # otherwise fairseq does not ask for the filter
                return iterate(dataset, *args, **options)

        def inference_step(generator, models, sample, prefix_tokens=None, constraints=None):
            if self._answers_faulty:
                return [[empty_hypothesis()] for _ in sample["net_input"]["src_lengths"]]
            return generate(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)

        task.get_interactive_tokens_and_lengths = get_interactive_tokens_and_lengths
        task.build_dataset_for_inference = build_dataset_for_inference
        task.get_batch_iterator = get_batch_iterator
        task.inference_step = inference_step

    # Faults

    def _report(self, place: int, error: Exception) -> None:
        number = self._first + place + 1
        if isinstance(error, InputError):
            error = error.at(self.path, number)
        elif not isinstance(error, LeafMismatchError):  # whose message names the line
            error = InputError(f"the line cannot be read ({type(error).__name__}: {error})", self.path, number)
        if self._stops:
            raise error
        self._faulty.add(place)
        message = str(error)
        logger.warning("%s%s The hypothesis of this line is empty.", message, "" if message.endswith(".") else ".")

    def _read_all(self, task: FairseqTask, read: Callable, lines: Sequence[str], encode_fn: Encode):
        """Reads the lines that can be read. Raises NothingReadableError if no line can be read."""

        def read_some(places: Sequence[int]):
            first = self._first + (int(places[0]) if len(places) else 0)
            return read(InputLines([lines[place] for place in places], first + 1), encode_fn)

        def find_faults(places: Sequence[int]) -> None:
            try:
                read_some(places)
            except _FAULTS as error:
                if len(places) == 1:
                    self._report(places[0], error)
                    return
                middle = len(places) // 2
                find_faults(places[:middle])
                find_faults(places[middle:])

        places = self._places.tolist()
        if places:
            try:
                found = read_some(places)
            except _FAULTS:
                # Only a line on its own has the right number in its message.
                with uncounted(task):
                    find_faults(places)
                places = [place for place in places if place not in self._faulty]
                found = read_some(places) if places else None
        self._places = np.array(places, np.int64)
        if not places:
            raise NothingReadableError("no line can be read", self.path)
        if self._listener is not None:
            kept = InputLines([lines[place] for place in places], self._first + 1)
            self._listener(kept, places, encode_fn)
        return found

    @contextlib.contextmanager
    def _filtering(self, task: FairseqTask, max_tokens: Optional[int], skips: Optional[bool]) -> Iterator[None]:
        """Counts lines that are too long for the model, or for a batch, among the faulty ones."""
        stock = task.filter_indices_by_size

        def filter_indices_by_size(indices, dataset, max_positions=None, ignore_invalid_inputs=False):
            kept = np.array(stock(indices, dataset, max_positions, True), np.int64)
            if max_tokens is not None:
                kept = np.array([index for index in kept.tolist() if dataset.num_tokens(index) <= max_tokens], np.int64)
            places = self._places
            stops, self._stops = self._stops, self._stops and not skips
            for index in sorted(set(np.asarray(indices).tolist()) - set(kept.tolist())):
                self._report(int(places[index]), _too_long(dataset, index, max_positions, max_tokens))
            self._stops = stops
            return kept

        with replaced(task, "filter_indices_by_size", filter_indices_by_size):
            yield
        self._places = np.array([place for place in self._places.tolist() if place not in self._faulty], np.int64)

    # fairseq-interactive

    @contextlib.contextmanager
    def reading(self, module: ModuleType) -> Iterator[None]:
        """Makes ``fairseq-interactive``, given its module, read lines with care while the ``with`` block runs."""
        make = module.make_batches

        def buffered_read(path: str, buffer_size: int) -> Iterator[InputLines]:
            waiting: list[bytes] = []
            for raw in _raw_lines(path):
                waiting.append(raw)
                if len(waiting) >= buffer_size:
                    yield self.take(waiting, strip=True)
                    waiting = []
            if waiting:
                yield self.take(waiting, strip=True)

        def make_batches(lines, cfg, *settings) -> Iterator:
            with contextlib.suppress(NothingReadableError):
                yield from make(lines, cfg, *settings)
            if self._faulty:
                self._answers_faulty = True
                count = len(self._faulty)
                none = torch.zeros(count, 1, dtype=torch.int64) if cfg.generation.constraints else None
                tokens, lengths = torch.zeros(count, 0, dtype=torch.int64), torch.zeros(count, dtype=torch.int64)
                yield module.Batch(torch.tensor(self.faulty), tokens, lengths, none)
                self._answers_faulty = False

        with replaced(module, "buffered_read", buffered_read), replaced(module, "make_batches", make_batches):
            yield


def empty_hypothesis() -> dict[str, Any]:
    """The hypothesis of a line that cannot be read: no token, and a probability of zero."""
    none = torch.zeros(0)
    return {"tokens": none.long(), "score": -math.inf, "positional_scores": none, "attention": None, "alignment": []}


def empty_lines(number: int) -> str:
    """Returns the lines that fairseq prints for a sentence whose only hypothesis is empty."""
    score = -math.inf
    return f"S-{number}\t\nH-{number}\t{score}\t\nD-{number}\t{score}\t\nP-{number}\t\n"


class _RenumberedDataset(BaseWrapperDataset):
    """Lines without the faulty ones, whose batches have the places of the lines among all as their ids."""

    def __init__(self, dataset: FairseqDataset, places: np.ndarray, first: int):
        super().__init__(dataset)
        self._places, self._first = torch.from_numpy(places), first

    def collater(self, samples: list[dict]) -> dict:
        batch = self.dataset.collater(samples)
        if batch:
            batch["id"] = self._places[batch["id"]]
            carried = batch.get("constraints")
            if isinstance(carried, CarriedInput) and "numbers" in carried:
                carried["numbers"] = batch["id"] + self._first
        return batch


def _raw_lines(path: str) -> Iterator[bytes]:
    if path != "-":
        with open(path, "rb") as file:
            yield from file
        return
    stream = getattr(sys.stdin, "buffer", None)
    if stream is not None:
        yield from iter(stream.readline, b"")
    else:
        yield from (line.encode("utf-8", "surrogateescape") for line in sys.stdin)


def _too_long(dataset: FairseqDataset, index: int, max_positions: Any, max_tokens: Optional[int]) -> InputError:
    length = dataset.num_tokens(index)
    if max_tokens is not None and length > max_tokens:
        limit, hint = f"--max-tokens is {max_tokens}", "Give a greater --max-tokens, or a shorter line."
    else:
        most = max_positions[0] if isinstance(max_positions, (tuple, list)) else max_positions
        limit, hint = f"the model reads at most {most}", "Give a shorter line."
    return LongSentenceError(f"a line of {length} tokens, the end of the sentence among them, and {limit}", hint=hint)
