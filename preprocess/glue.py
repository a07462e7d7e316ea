"""Converts a task of GLUE into the splits of Patel and Flanigan (2023), the first stage of the recipe ``glue``.

    python -m preprocess.glue cola --data DIR --output DIR [--pieces-of DIR] [--limit N]

A tenth of the training data is the validation set, and the official development set is the test set (Appendix, "GLUE").
Writes ``OUTPUT/{train,valid,test}.tsv`` in the format of ``fairseq-preprocess --task tree_sentence_classification``:
every line has a sentence, or a pair of sentences with a tab between them, and its label. Sentences are words in lower
case, or the pieces of the tokenizer of a pretrained encoder. With pieces, ``OUTPUT/dict.text.txt`` contains all pieces
for ``--srcdict``, because the test set has pieces that do not occur in the training set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, write_lines
from preprocess.glue_formats import TASKS
from preprocess.labelled_lines import Splits, hold_out, report, shorten
from preprocess.moses import Tokenizer, TokenizerOptions
from preprocess.word_pieces import all_pieces
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig

SEED = 1


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
        all_pieces(pieces).save(str(args.output / "dict.text.txt"))
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("glue", args.name, lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
