"""Converts a task of GLUE into the splits of Patel and Flanigan (2023), the first stage of the recipe ``glue``.

    python -m preprocess.glue cola --data DIR --output DIR [--pieces-of DIR] [--limit N]

A tenth of the training data is the validation set, and the official development set is the test set (Appendix, "GLUE").
Writes ``OUTPUT/{train,valid,test}.tsv`` in the format of ``fairseq-preprocess --task tree_sentence_classification``:
every line has a sentence, or a pair of sentences with a tab between them, and its label. Sentences are words in lower
case, or the pieces of the tokenizer of a pretrained encoder. With pieces, ``OUTPUT/dict.text.txt`` contains all pieces
for ``--srcdict``, because the test set has pieces that do not occur in the training set.

Files have the names and columns of the benchmark (``train.tsv``, ``dev.tsv``) or those of the original data sets (CoLA,
SST-2, MRPC, STS-B, MNLI). SICK resembles MNLI.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, clean_line, raw_lines, write_lines
from preprocess.labelled_lines import Labelled, Splits, hold_out, report, shorten
from preprocess.moses import Tokenizer, TokenizerOptions
from tree_fairseq.classification.folder import is_number
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig

logger = logging.getLogger(__name__)

SEED = 1
_NO_AGREEMENT = "-"


@dataclass(frozen=True)
class Layout:
    """The columns of a file.

    Attributes:
        sentences: names of the columns of sentences, or their numbers from 0 if the file has no line of names
        label: name or number of the column of the label
        columns: smallest number of columns
        bare: numbers of the columns of sentences and label for a file without a line of names; None if the file must
            have that line
    """

    sentences: Sequence[str | int]
    label: str | int
    columns: int = 0
    bare: tuple[int, ...] | None = None


@dataclass(frozen=True)
class GlueTask:
    """A task.

    Attributes:
        about: short description
        splits: names of the training split and of the test splits
        files: returns the choices of files of a split, with their layouts; the first choice that exists is read
        labels: all labels; None if labels are numbers
        is_tokenized: whether blanks already separate the words
    """

    about: str
    splits: tuple[str, ...]
    files: Callable[[str], Sequence[tuple[Sequence[str], Layout]]]
    labels: tuple[str, ...] | None
    is_tokenized: bool = False

    @property
    def is_rated(self) -> bool:
        """Whether labels are numbers."""
        return self.labels is None

    def read(self, data: Path, split: str) -> list[Labelled]:
        """Reads the examples of a split. A tab separates the sentences of a pair."""
        choices = self.files(split)
        for names, layout in choices:
            if (data / names[0]).is_file():
                return [line for name in names for line in self._read_file(data / name, layout)]
        wanted = ", or ".join(" and ".join(names) for names, _ in choices)
        raise CorpusError(f"{data} has no {wanted}")

    def _read_file(self, path: Path, layout: Layout) -> Iterator[Labelled]:
        rows = list(enumerate(raw_lines(path), 1))
        places = (*layout.sentences, layout.label)
        if isinstance(layout.label, str):
            head = rows[0][1] if rows else ""
            if layout.bare is not None and not set(places) & set(head.split("\t")):
                places = layout.bare
            else:
                places, rows = _places(head, places, path), rows[1:]
        needed = max(layout.columns, *(place + 1 for place in places))
        left = 0
        for number, line in rows:
            columns = line.split("\t")
            if len(columns) < needed:
                raise CorpusError(
                    f"{path}:{number}: {len(columns)} columns where {needed} are expected, separated by tabs"
                )
            *sentences, label = (clean_line(columns[place]) for place in places)
            if label == _NO_AGREEMENT and self.labels is not None:
                left += 1
                continue
            for sentence in sentences:
                if not sentence:
                    raise CorpusError(f"{path}:{number}: a sentence is empty")
            self._check(label, path, number)
            yield Labelled("\t".join(sentences), label)
        if not rows:
            raise CorpusError(f"{path} has no examples")
        if left:
            logger.info("%s: %d examples are left out because annotators did not agree on the label", path, left)

    def _check(self, label: str, path: Path, number: int) -> None:
        if self.labels is None:
            if not is_number(label):
                raise CorpusError(f"{path}:{number}: the label is {label!r}, not a number")
        elif label not in self.labels:
            raise CorpusError(f"{path}:{number}: the label is {label!r}, not one of {', '.join(self.labels)}")


def _places(head: str, names: Sequence[str], path: Path) -> tuple[int, ...]:
    columns = [column.strip().removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}") for column in head.split("\t")]
    if missing := [name for name in names if name not in columns]:
        raise CorpusError(f"{path}:1: column {missing[0]!r} is missing; the first line has {', '.join(columns)}")
    return tuple(columns.index(name) for name in names)


# Source, label, the author's mark, sentence.
_COLA = Layout((3,), 1, columns=4)
# Genre, file, year, number, score, both sentences; some files add their licences.
_STS = Layout((5, 6), 4, columns=7)
_SICK = Layout(("sentence_A", "sentence_B"), "entailment_judgment")


def _cola(split: str):
    raw = [f"raw/in_domain_{split}.tsv", *([f"raw/out_of_domain_{split}.tsv"] if split == "dev" else [])]
    return [([f"{split}.tsv"], _COLA), (raw, _COLA)]


def _sst2(split: str):
    return [([f"{split}.tsv"], Layout(("sentence",), "label", bare=(0, 1)))]


def _mrpc(split: str):
    layout = Layout(("#1 String", "#2 String"), "Quality")
    return [([f"{split}.tsv"], layout), ([f"msr_paraphrase_{'test' if split == 'dev' else split}.txt"], layout)]


def _stsb(split: str):
    return [([f"{split}.tsv"], Layout(("sentence1", "sentence2"), "score")), ([f"sts-{split}.csv"], _STS)]


def _mnli(split: str):
    return [([f"{split}.tsv"], Layout(("sentence1", "sentence2"), "gold_label"))]


def _sick(split: str):
    return [([f"SICK_{split}.txt"], _SICK)]


TASKS = {
    "cola": GlueTask("acceptable sentences (Matthews)", ("train", "dev"), _cola, ("0", "1")),
    "sst2": GlueTask("positive reviews (accuracy)", ("train", "dev"), _sst2, ("0", "1"), is_tokenized=True),
    "mrpc": GlueTask("paraphrases (accuracy, F1)", ("train", "dev"), _mrpc, ("0", "1")),
    "stsb": GlueTask("similarity from 0 to 5 (Pearson, Spearman)", ("train", "dev"), _stsb, None),
    "mnli": GlueTask(
        "entailment, matched and mismatched (accuracy)",
        ("train", "dev_matched", "dev_mismatched"),
        _mnli,
        ("contradiction", "entailment", "neutral"),
    ),
    "sick": GlueTask(
        "entailment, similar to MNLI (accuracy)",
        ("train", "test_annotated"),
        _sick,
        ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
    ),
}


def load(name: str, data: Path, seed: int = SEED) -> Splits:
    """Reads the splits of a task; ``test1`` is the mismatched development set of MNLI."""
    task = TASKS[name]
    train, *tests = (task.read(data, split) for split in task.splits)
    train, valid = hold_out(train, round(len(train) / 10), seed, by_class=not task.is_rated)
    return {"train": train, "valid": valid, **{f"test{number or ''}": lines for number, lines in enumerate(tests)}}


def segmenter(name: str) -> Callable[[str], str]:
    """Returns the function that splits a sentence into words: Moses, unless the sentences of the task are tokenised."""
    if TASKS[name].is_tokenized:
        return str.lower
    return Tokenizer(TokenizerOptions("en", lower=True, normalize=True))


def segmented(splits: Splits, segment: Callable[[str], str]) -> Splits:
    """Returns the same examples with tokenised sentences. A tab separates the sentences of a pair."""
    made = {}
    for split, lines in splits.items():
        made[split] = []
        for number, line in enumerate(lines, 1):
            sentences = [segment(sentence) for sentence in line.text.split("\t")]
            if not all(sentence.split() for sentence in sentences):
                raise CorpusError(f"{split}, example {number}: a sentence of {line.text!r} has no token")
            made[split].append(line._replace(text="\t".join(sentences)))
    return made


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.glue", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=TASKS, help="; ".join(f"{name}: {task.about}" for name, task in TASKS.items()))
    parser.add_argument("--data", type=Path, required=True, help="folder of the task")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--pieces-of", help="write the pieces of this pretrained encoder (its folder, or its name on the hub)"
    )
    parser.add_argument("--limit", type=int, help="a random sample of that many examples of every split")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of random draws (default: %(default)s)")
    return parser.parse_args(arguments)


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of examples of each."""
    splits = shorten(load(args.name, args.data, args.seed), args.limit, args.seed)
    pieces = None if args.pieces_of is None else PretrainedPieces(PretrainedPiecesConfig(pieces_of=args.pieces_of))
    splits = segmented(splits, segmenter(args.name) if pieces is None else pieces.encode)
    if not TASKS[args.name].is_rated:
        report(splits)
    files = {split: [f"{line.text}\t{line.name}" for line in lines] for split, lines in splits.items()}
    counts = {split: write_lines(args.output / f"{split}.tsv", rows) for split, rows in files.items()}
    if pieces is not None:
        pieces.dictionary().save(str(args.output / "dict.text.txt"))
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("glue", args.name, lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
