"""The lines that fairseq's commands print about sentences, put in order, and written as hypotheses or as JSON.

A line about a sentence is ``<letter>-<number>``, a tab and a value: ``S-3<TAB>a man sleeps``. ``H-``, ``D-``, ``P-``
and the letters after them belong to one hypothesis of the sentence, and the best hypothesis is the first.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import IO

_LINE = re.compile(r"([A-Z])-(\d+)(?:_\d+)?\t(.*)\n?")
_CLOSING = "Generate "  # begins the line that ends a complete run of fairseq-generate


class OutputLines(io.TextIOBase):
    """A stream that passes lines on, and keeps what they say about sentences.

    Args:
        stream: gets the lines
        is_sorted: hold lines about sentences back, and pass them on by the number of the sentence, from 0; otherwise in
            the order of the sentences, those of one sentence keep their order
        is_quiet: pass no line about a sentence on
        keeps_sentences: collect :attr:`sentences`
    """

    def __init__(self, stream: IO[str], is_sorted: bool = False, is_quiet: bool = False, keeps_sentences: bool = True):
        super().__init__()
        self._stream, self._is_sorted, self._is_quiet, self._keeps = stream, is_sorted, is_quiet, keeps_sentences
        self._unfinished = ""
        self._held: dict[int, list[str]] = {}
        self.sentences: dict[int, dict] = {}
        """By number: ``source`` and ``target`` if they were printed, and ``hypotheses``, the best first (`add`)."""

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, text: str) -> int:
        """Takes a text of any number of lines, whose last one may be unfinished."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        for line in lines:
            self._take(line + "\n")
        return len(text)

    def flush(self) -> None:
        """Flushes the stream; lines that are held back stay so."""
        self._stream.flush()

    def release(self) -> None:
        """Passes on all lines that were held back."""
        for number in sorted(self._held):
            self._stream.writelines(self._held[number])
        self._held.clear()

    def finish(self) -> None:
        """Passes on all that is left. Later texts, such as those of loggers, go straight through."""
        if self._unfinished:
            self._take(self._unfinished)
            self._unfinished = ""
        self.release()
        self._is_sorted = self._keeps = False

    def _take(self, line: str) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            if line.startswith(_CLOSING):
                self.release()
            self._stream.write(line)
            return
        kind, number, value = found[1], int(found[2]), found[3]
        if self._keeps:
            add(self.sentences.setdefault(number, {"hypotheses": []}), kind, value)
        if not self._is_quiet:
            if self._is_sorted:
                self._held.setdefault(number, []).append(line)
            else:
                self._stream.write(line)


def _number(text: str) -> float | None:
    """A score; None for those that JSON cannot express."""
    value = float(text)
    return value if math.isfinite(value) else None


def add(sentence: dict, kind: str, value: str) -> None:
    """Adds a line about a sentence to what is known of it.

    A hypothesis has its ``text`` (of the ``D-`` line), the ``output`` of the model if that differs (``H-``), ``score``
    and ``positional_scores`` in base 2, ``steps``, ``unfinished`` and ``alignment`` if they were printed. Scores that
    are not finite are None.
    """
    hypotheses = sentence["hypotheses"]
    if kind in ("S", "T"):
        sentence["source" if kind == "S" else "target"] = value
    elif kind == "H":
        score, _, text = value.partition("\t")
        hypotheses.append({"text": text, "score": _number(score)})
    elif not hypotheses:
        return
    elif kind == "D":
        text, output = value.partition("\t")[2], hypotheses[-1]["text"]
        hypotheses[-1].update({"text": text} if text == output else {"text": text, "output": output})
    elif kind == "P":
        hypotheses[-1]["positional_scores"] = list(map(_number, value.split()))
    elif kind == "I":
        hypotheses[-1]["steps"] = int(value)
    elif kind == "U":
        hypotheses[-1]["unfinished"] = value.split()
    elif kind == "A":
        hypotheses[-1]["alignment"] = value


def best_texts(sentences: dict[int, dict], numbers: Iterable[int]) -> Iterable[str]:
    """Yields the best hypothesis of each sentence with a number, or an empty text if the sentence has no hypothesis."""
    for number in numbers:
        hypotheses = sentences.get(number, {}).get("hypotheses")
        yield hypotheses[0]["text"] if hypotheses else ""


def json_lines(
    sentences: dict[int, dict],
    numbers: Iterable[int],
    source_brackets: Callable[[int], str | None],
    brackets: Callable[[str], str | None],
) -> Iterable[str]:
    """Yields a line of JSON for each sentence with a number.

    ``source_brackets`` returns the tree of a source, by number, and ``brackets`` that of the text of a model's output;
    None where there is no tree.
    """
    for number in numbers:
        sentence = {"id": number, "source": None, "hypotheses": [], **sentences.get(number, {})}
        if (tree := source_brackets(number)) is not None:
            sentence["source_brackets"] = tree
        for hypothesis in sentence["hypotheses"]:
            if (tree := brackets(hypothesis.get("output", hypothesis["text"]))) is not None:
                hypothesis["brackets"] = tree
        sentence["hypotheses"] = sentence.pop("hypotheses")  # at the end of the line
        yield json.dumps(sentence, ensure_ascii=False)
