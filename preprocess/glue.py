"""Turn a task of GLUE into splits as Patel and Flanigan (2023) have them: the first stage of the recipe ``glue``.

    python -m preprocess.glue cola --data DIR --output DIR [--pieces-of DIR] [--subset N] [--limit N]

A tenth of the training data selects, the official development set is tested (Appendix, "GLUE"). Writes
``OUTPUT/{train,valid,test}.tsv``, a sentence (or a sentence, a tab and another) and its label a line, as ``fairseq-preprocess
--task tree_sentence_classification`` reads them: words in lower case, or the pieces of a pretrained encoder's tokenizer. Then
there is ``OUTPUT/dict.text.txt``, too, for ``--srcdict``: the test set has pieces that the training set lacks.
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
from tree_fairseq.nn.pretrained_library import PretrainedPieces, PretrainedPiecesConfig

SEED = 1


def load(name: str, data: Path, seed: int = SEED) -> Splits:
    """The splits of a task; ``test1`` is MNLI's mismatched development set.

    Args:
        seed: of the tenth that selects, the same for all models

    Raises:
        CorpusError: files are missing or malformed
    """
    task = TASKS[name]
    train, *tests = (task.read(data, split) for split in task.splits)
    train, valid = hold_out(train, round(len(train) / 10), seed, by_class=not task.is_rated)
    return {"train": train, "valid": valid, **{f"test{number or ''}": lines for number, lines in enumerate(tests)}}


def segmenter(name: str) -> Callable[[str], str]:
    """What makes words of a sentence: Moses, where a task's are not cut yet."""
    if TASKS[name].is_tokenized:
        return str.lower
    return Tokenizer(TokenizerOptions("en", lower=True, normalize=True))


def segmented(splits: Splits, segment: Callable[[str], str]) -> Splits:
    """The same examples, their sentences as tokens; those of a pair with a tab between.

    Raises:
        CorpusError: nothing is left of a sentence
    """
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
        "--pieces-of", help="folder (or name on the hub) of the pretrained encoder whose pieces are written"
    )
    parser.add_argument("--subset", type=int, help="train on a random sample of that many examples")
    parser.add_argument("--limit", type=int, help="a random sample of that many examples of every split")
    parser.add_argument("--seed", type=int, default=SEED, help="of what is drawn (default: %(default)s)")
    return parser.parse_args(arguments)


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes what the command line asks for; how many examples each split has."""
    splits = shorten(load(args.name, args.data, args.seed), args.subset, args.limit, args.seed)
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
