"""Tiny made-up data sets in the files of GLUE's tasks (``examples/glue/run.sh --toy``).

A sentence is acceptable if its verb agrees with its subject. An adjective shows whether a film is good. The similarity
of two sentences is the number of parts that they share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from preprocess.corpora import write_lines

_NOUNS = (("The dog", "sleeps"), ("The dogs", "sleep"), ("My sister", "sings"), ("Two men", "sing"))
_ENDS = ("here.", "at night.", "in the boat.", "because they didn't.")
_WORTH = (("superb", 1), ("moving", 1), ("dull", 0), ("weak", 0))


def _sentence(generator: random.Random) -> tuple[str, int]:
    (noun, verb), (_, other), end = generator.choice(_NOUNS), generator.choice(_NOUNS), generator.choice(_ENDS)
    return f"{noun} {other} {end}", int(verb == other)


def _pair(generator: random.Random) -> tuple[str, str, int]:
    """Returns two sentences, and how many of their three parts are the same."""
    rows = [(*generator.choice(_NOUNS), generator.choice(_ENDS)) for _ in range(2)]
    return " ".join(rows[0]), " ".join(rows[1]), sum(left == right for left, right in zip(*rows))


def _cola(generator: random.Random) -> str:
    sentence, label = _sentence(generator)
    return f"made\t{label}\t{'' if label else '*'}\t{sentence}"


def _sst2(generator: random.Random) -> str:
    word, label = generator.choice(_WORTH)
    return f"a {word} film \t{label}"


def _paraphrase(generator: random.Random) -> str:
    first, second, shared = _pair(generator)
    return f"{int(shared > 1)}\t1\t2\t{first}\t{second}"


def _similarity(generator: random.Random) -> str:
    first, second, shared = _pair(generator)
    return f"made\tup\t2023\t1\t{5 * shared / 3:.3f}\t{first}\t{second}"


def _entailment(labels: tuple[str, str, str]) -> Callable[[random.Random], str]:
    def row(generator: random.Random) -> str:
        first, second, shared = _pair(generator)
        return f"1\t{first}\t{second}\t{labels[min(shared, 2)]}"

    return row


_MNLI = _entailment(("contradiction", "neutral", "entailment"))
_SICK = _entailment(("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))


def _layout(
    files: dict[str, bool], row: Callable[[random.Random], str], head: str = ""
) -> Callable[[Path, int, int], None]:
    """Returns a function that writes the given files; the values of ``files`` mark training files."""

    def lines(size: int, seed: int) -> Iterator[str]:
        generator = random.Random(seed)
        if head:
            yield head
        yield from (row(generator) for _ in range(size))

    def write(output: Path, train: int, test: int) -> None:
        for seed, (name, is_train) in enumerate(files.items()):
            write_lines(output / name, lines(train if is_train else test, seed))

    return write


_PLAIN = {"train.tsv": True, "dev.tsv": False}

LAYOUTS = {
    "glue_cola": _layout(_PLAIN, _cola),
    "glue_sst2": _layout(_PLAIN, _sst2, "sentence\tlabel"),
    "glue_mrpc": _layout(_PLAIN, _paraphrase, "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"),
    "glue_stsb": _layout({"sts-train.csv": True, "sts-dev.csv": False}, _similarity),
    "glue_mnli": _layout(
        {"train.tsv": True, "dev_matched.tsv": False, "dev_mismatched.tsv": False},
        _MNLI,
        "index\tsentence1\tsentence2\tgold_label",
    ),
    "glue_sick": _layout(
        {"SICK_train.txt": True, "SICK_test_annotated.txt": False},
        _SICK,
        "pair_ID\tsentence_A\tsentence_B\tentailment_judgment",
    ),
}
