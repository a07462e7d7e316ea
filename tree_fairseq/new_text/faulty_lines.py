"""New lines that cannot be read: each costs its own hypothesis, and the others come out as if it were not there.

``tree-fairseq translate`` reads with :func:`read_with_care`. So does ``fairseq-interactive`` under the tasks of this
package, through two functions that take the places of its own.
"""

from __future__ import annotations

import itertools
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import Callable, Optional, TypeVar

import torch

from tree_fairseq.errors import InputError, LeafMismatchError, LongSentenceError
from tree_fairseq.support.files import standard_input
from tree_fairseq.tasks.pair_dataset import InputLines
from tree_fairseq.tasks.tree_task import TreeTask
from tree_fairseq.tasks.unknown_tokens import count_typed
from tree_fairseq.trees.text import decode_line

Read = TypeVar("Read")

# What a tokeniser, a parser or a reader of trees raises about a line.
_FAULTS = (InputError, LeafMismatchError, RecursionError, UnicodeError)
_UNDECODED = "surrogateescape"  # keeps bytes that are not UTF-8, so that a line with them can be named later


def read_with_care(
    read: Callable[[InputLines], Read], lines: InputLines, path: str, stops: bool = False, skips_blank: bool = True
) -> tuple[Optional[Read], list[int]]:
    """Reads all lines that ``read`` can read, together. A sentence on standard error names each other line.

    With ``stops``, the first faulty line ends the command with its error. Blank lines may be left out, without a word.
    Returns what was read, None if all lines are faulty, and the places of the readable lines among all.
    """

    def report(place: int, error: Exception) -> None:
        problem = _with_place(error, path, lines.first_line + place)
        if stops:
            raise problem from None
        sys.stderr.write(f"{str(problem).removesuffix('.')}. The hypothesis of this line is empty.\n")

    def read_some(places: Sequence[int]) -> Read:
        return read(InputLines([lines[place] for place in places], lines.first_line + places[0]))

    def without_faults(places: list[int]) -> list[int]:
        try:
            read_some(places)
            return places
        except Exception as error:
            if not _is_fault(error):
                raise
            if len(places) == 1:
                report(places[0], error)
                return []
            middle = len(places) // 2
            return without_faults(places[:middle]) + without_faults(places[middle:])

    places = []
    for place, line in enumerate(lines):
        try:
            decode_line(line.encode("utf-8", _UNDECODED), path, lines.first_line + place)
            if line.strip() or not skips_blank:
                places.append(place)
        except (InputError, UnicodeError) as error:  # text of Python may have what no encoding has
            report(place, error)
    try:
        return (read_some(places), places) if places else (None, [])
    except Exception as error:
        if not _is_fault(error):
            raise
    # Only the message about a line that is read alone has the right number.
    places = without_faults(places)
    return (read_some(places), places) if places else (None, [])


def _is_fault(error: Exception) -> bool:
    return isinstance(error, _FAULTS) or _is_about_length(error)


def _with_place(error: Exception, path: str, number: int) -> Exception:
    if _is_about_length(error):
        hint = "Give a shorter line, or a greater --max-tokens."
        return LongSentenceError(
            "the line is longer than the model reads, or --max-tokens allows", path, number, hint=hint
        )
    if isinstance(error, InputError):
        return error.at(path, number)
    if isinstance(error, LeafMismatchError):  # its message names the line
        return error
    return InputError(f"the line cannot be read ({type(error).__name__}: {error})", path, number)


def _is_about_length(error: Exception) -> bool:
    """Whether fairseq raised an error because a line is longer than the model reads, or than a batch."""
    cause = error.__cause__ or error
    return type(error) is Exception or isinstance(cause, AssertionError) and "max_tokens" in str(cause)


# fairseq-interactive


def read_buffers(path: str, buffer_size: int) -> Iterator[InputLines]:
    """Yields ``buffer_size`` lines at a time of a text, or of standard input (``-``), whatever their bytes are."""
    first, raw_lines = 1, _raw_lines(path)
    while buffer := list(itertools.islice(raw_lines, max(buffer_size, 1))):
        buffer[0] = buffer[0].removeprefix(BOM_UTF8) if first == 1 else buffer[0]
        yield InputLines([raw.decode("utf-8", _UNDECODED).strip() for raw in buffer], first)
        first += len(buffer)


def _raw_lines(path: str) -> Iterator[bytes]:
    if path != "-":
        with open(path, "rb") as file:
            yield from file
    elif sys.stdin is None or hasattr(sys.stdin, "buffer"):
        yield from iter(standard_input().readline, b"")
    else:
        yield from (line.encode("utf-8", _UNDECODED) for line in sys.stdin)


def with_any_bytes(buffered_read: Callable) -> Callable:
    """Returns what takes the place of fairseq's ``buffered_read``, which ends at a byte that is not UTF-8."""
    return lambda path, buffer_size: read_buffers(path, buffer_size)


def with_faulty_lines(make_batches: Callable) -> Callable:
    """Wraps fairseq's ``make_batches``: tasks of this package also get a batch of the faulty lines, without tokens.

    They answer it with empty hypotheses (:meth:`TreeTask.inference_step`). Tasks of fairseq end at a faulty line.
    """

    def make_batches_with_care(lines, cfg, task, max_positions, encode_fn) -> Iterator:
        def read(readable: InputLines) -> list:
            return list(make_batches(readable, cfg, task, max_positions, encode_fn))

        path = "input" if cfg.interactive.input == "-" else cfg.interactive.input
        is_stock = not isinstance(task, TreeTask)
        batches, places = read_with_care(read, lines, path, stops=is_stock, skips_blank=not is_stock)
        if is_stock:  # tasks of this package count themselves
            count_typed(task, [encode_fn(line).split() for line in lines])
        for batch in batches or ():
            yield batch._replace(ids=torch.tensor(places)[batch.ids])
        if faulty := sorted(set(range(len(lines))).difference(places)):
            tokens = torch.zeros(len(faulty), 0, dtype=torch.int64)
            constraints = tokens.new_zeros(len(faulty), 1) if cfg.generation.constraints else None
            batch_of_fairseq = sys.modules[make_batches.__module__].Batch
            yield batch_of_fairseq(torch.tensor(faulty), tokens, tokens.sum(1), constraints)

    return make_batches_with_care
