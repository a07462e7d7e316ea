"""Trains a small English Stanza model on the grammar's treebank: ``python -m preprocess.train_stanza --out DIR``.

Writes the three files that ``--parser-dir`` reads, ``tagger.pt``, ``constituency.pt`` and ``pretrain.pt``, together
less than 2 MB. Then loads them into a ``stanza.Pipeline`` and prints the labelled F1 with predicted tags. This takes
about seven minutes on one core.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from preprocess.corpora import write_lines
from preprocess.english_german.__main__ import pairs
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.stanza_parser import StanzaParser
from tree_fairseq.scoring.evalb import Parameters, compare, counts, figures
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.tree import Tree

RULES = Parameters(deleted=frozenset({"ROOT"}), equal_labels=frozenset())
"""Punctuation counts, and labels have to be equal."""


def score(pairs: Iterable[tuple[Tree, Tree]]) -> float:
    """Returns F1 of the labelled brackets of all (gold, predicted) trees together, from 0 to 1."""
    return figures(counts(compare((gold,), (found,), RULES) for gold, found in pairs).sum(axis=0))["f1"].item() / 100


class PythonEvaluator:
    """Replaces ``stanza.server.parser_eval.EvaluateParser``: a context manager with ``process``."""

    def __init__(self, *arguments: object, **options: object):
        """Accepts the arguments of the Java evaluator (k-best sizes, class paths) and ignores them."""

    def __enter__(self) -> PythonEvaluator:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def process(self, results: Iterable[object]) -> SimpleNamespace:
        """Scores the parse results of Stanza, which have ``gold`` and ``predictions[0].tree``.

        Returns:
            an object with ``f1``, ``treeF1`` (one for each sentence) and ``HasField``, which Stanza reads
        """
        pairs = [(read_tree(str(result.gold)), read_tree(str(result.predictions[0].tree))) for result in results]
        each = [score([pair]) for pair in pairs]
        return SimpleNamespace(f1=score(pairs), treeF1=each, HasField=lambda name: name in ("f1", "treeF1"))


# Different from the seed of the corpus of examples/quickstart, whose sentences the model must not have seen.
SEED = 2
MAX_LENGTH = 30
WORD_DIMENSIONS = 32
PARSER_ARGUMENTS = (
    "--no_multistage --no_retag --no_bert_model --num_lstm_layers 1 --tag_embedding_dim 16 "
    "--transition_embedding_dim 16 --transition_hidden_size 16 --hidden_size 64 --delta_embedding_dim 32 "
    "--pattn_num_heads 0 --lattn_d_proj 0 --optim adamw --learning_rate 0.002 --train_batch_size 30 "
    "--eval_batch_size 100 --epochs 8"
).split()
TAGGER_ARGUMENTS = (
    "--no_char --word_emb_dim 16 --word_cutoff 3 --hidden_dim 32 --deep_biaff_hidden_dim 32 "
    "--composite_deep_biaff_hidden_dim 16 --tag_emb_dim 8 "
    "--transformed_dim 32 --num_layers 1 --word_dropout 0.1 --dropout 0.2 --batch_size 60 "
    "--eval_interval 300 --fix_eval_interval --max_steps 2700"
).split()

logger = logging.getLogger("preprocess.train_stanza")


def conllu(trees: Sequence[Tree]) -> str:
    """Returns the words and tags as CoNLL-U, with the Penn tag in both tag columns.

    The configuration of a parser decides which of the two columns it reads. A parser whose column is empty parses
    without tags, silently and much worse.
    """
    blocks = []
    for tree in trees:
        rows = [
            f"{position}\t{word}\t_\t{tag}\t{tag}\t_\t{position - 1}\t{'root' if position == 1 else 'dep'}\t_\t_"
            for position, (word, tag) in enumerate(tree.tagged_words(), 1)
        ]
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


def write_treebank(folder: Path, name: str, trees: Sequence[Tree]) -> None:
    """Writes ``NAME.trees`` for the parser and ``NAME.conllu`` for the tagger."""
    (folder / f"{name}.trees").write_text("".join(write_forest((tree,)) + "\n" for tree in trees), encoding="utf-8")
    (folder / f"{name}.conllu").write_text(conllu(trees), encoding="utf-8")


def cooccurrences(sentences: Sequence[Sequence[str]], window: int) -> tuple[list[str], csr_matrix]:
    """Counts how often each pair of words occurs within a window of words to either side.

    Returns the words, most frequent first (ties by spelling), and their symmetric counts [V, V].
    """
    frequency = Counter(word for sentence in sentences for word in sentence)
    words = sorted(frequency, key=lambda word: (-frequency[word], word))
    index = {word: position for position, word in enumerate(words)}
    # A gap as wide as the window between sentences, so that no window reaches over it.
    rows = [[index[word] for word in sentence] + [-1] * window for sentence in sentences]
    tokens = np.array([token for row in rows for token in row], dtype=np.int64)
    counts = csr_matrix((len(words), len(words)), dtype=np.float64)
    for offset in range(1, window + 1):
        left, right = tokens[:-offset], tokens[offset:]
        both = (left >= 0) & (right >= 0)
        pairs = csr_matrix((np.ones(both.sum()), (left[both], right[both])), shape=counts.shape)
        counts = counts + pairs + pairs.T
    return words, csr_matrix(counts)


def vectors(sentences: Sequence[Sequence[str]], dimensions: int, window: int = 2) -> tuple[list[str], np.ndarray]:
    """Computes word vectors by truncated singular value decomposition of positive mutual information.

    Levy and Goldberg (2014) describe the method. There must be more than ``dimensions`` different words. Returns the
    words and their vectors [V, dimensions], float32, scaled to unit variance over all entries.
    """
    words, counts = cooccurrences(sentences, window)
    marginal = np.asarray(counts.sum(axis=1)).ravel()
    entries = counts.tocoo()
    information = np.log(entries.data * counts.sum() / (marginal[entries.row] * marginal[entries.col]))
    positive = csr_matrix((np.maximum(information, 0.0), (entries.row, entries.col)), shape=counts.shape)
    # With a fixed start, the iterative solver returns the same vectors every time.
    left, values, _ = svds(positive, k=dimensions, v0=np.ones(len(words)))
    order = np.argsort(-values)
    scaled = left[:, order] * np.sqrt(values[order])
    return words, (scaled / scaled.std()).astype(np.float32)


def write_vectors(path: Path, words: Sequence[str], matrix: np.ndarray) -> None:
    """Writes the text format of word2vec: a header, then a word and its numbers on each line."""
    rows = (f"{word} {' '.join(f'{value:.5f}' for value in row)}" for word, row in zip(words, matrix))
    write_lines(path, [f"{len(words)} {matrix.shape[1]}", *rows])


def train_word_vectors(folder: Path, trees: Sequence[Tree]) -> None:
    """Writes ``pretrain.pt`` in the format of Stanza."""
    from stanza.models.common.pretrain import Pretrain

    words, matrix = vectors([[word.lower() for word in tree.leaves()] for tree in trees], WORD_DIMENSIONS)
    write_vectors(folder / "pretrain.txt", words, matrix)
    # Stanza converts the text file when the vocabulary is read.
    logger.info(
        "word vectors: %d words", len(Pretrain(str(folder / "pretrain.pt"), str(folder / "pretrain.txt")).vocab)
    )


def _shared_arguments(folder: Path, suffix: str, name: str) -> list[str]:
    settings = {
        "--mode": "train",
        "--lang": "en",
        "--shorthand": "en_grammar",
        "--wordvec_pretrain_file": folder / "pretrain.pt",
        "--train_file": folder / f"train.{suffix}",
        "--eval_file": folder / f"dev.{suffix}",
        "--save_dir": folder,
        "--save_name": name,
    }
    return [str(part) for setting in settings.items() for part in setting] + ["--cpu"]


def train_tagger(folder: Path) -> None:
    """Trains ``tagger.pt`` on ``train.conllu``; keeps the best model on ``dev.conllu``."""
    from stanza.models import tagger

    tagger.main([*TAGGER_ARGUMENTS, *_shared_arguments(folder, "conllu", "tagger.pt")])


def train_parser(folder: Path, trees: int) -> None:
    """Trains ``constituency.pt`` on ``train.trees``; keeps the model with the best F1 on ``dev.trees``."""
    from stanza.models import constituency_parser
    from stanza.models.constituency import parser_training

    java, parser_training.EvaluateParser = parser_training.EvaluateParser, PythonEvaluator
    try:
        shared = _shared_arguments(folder, "trees", "constituency.pt")
        constituency_parser.main([*PARSER_ARGUMENTS, "--epoch_size", str(trees), *shared])
    finally:
        parser_training.EvaluateParser = java


def slim(folder: Path, out: Path) -> int:
    """Copies the three models without optimizer states and without paths; returns their size in bytes together."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("pretrain.pt", "tagger.pt", "constituency.pt"):
        model = torch.load(folder / name, map_location="cpu", weights_only=True)
        for key in ("optimizer_state_dict", "scheduler_state_dict"):
            model.pop(key, None)
        for config in _configurations(model):
            for key, value in config.items():
                if isinstance(value, str) and ("/" in value or value.endswith(".pt")):
                    config[key] = None if key.endswith("file") else ""
            if "retag_package" in config:
                # Parsers read the xpos column of this tagger. Without a package, Stanza would read the other one.
                config["retag_package"], config["retag_method"], config["retag_xpos"] = "default", "xpos", True
        torch.save(model, out / name)
    return sum((out / name).stat().st_size for name in ("pretrain.pt", "tagger.pt", "constituency.pt"))


def _configurations(model: dict) -> list[dict]:
    """Returns the dictionaries of settings inside a saved model."""
    found, stack = [], [model]
    while stack:
        part = stack.pop()
        for key, value in part.items():
            if key in ("config", "args") and isinstance(value, dict):
                found.append(value)
            elif isinstance(value, dict):
                stack.append(value)
    return found


def evaluate(models: Path, trees: Sequence[Tree]) -> float:
    """Returns the labelled F1 of ``--tree-parser stanza``, with its tagger, on the words of ``trees``."""
    predicted = StanzaParser(ParserOptions(parser_dir=str(models))).parse([tree.leaves() for tree in trees])
    for gold, tree in zip_equal(trees, predicted):
        if tree.leaves() != gold.leaves() or not all(tag for _, tag in tree.tagged_words()):
            raise ValueError(f"words or tags got lost in parsing: {write_forest((gold,))}")
    correct = sum(gold == tree for gold, tree in zip(trees, predicted))
    logger.info("trees that are right to the last label: %d of %d", correct, len(trees))
    return score(zip(trees, predicted))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m preprocess.train_stanza",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the three models")
    parser.add_argument("--trees", type=int, default=6000, help="trees to train on (default %(default)s)")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    drawn = [tree for tree, _ in islice(pairs(SEED, MAX_LENGTH), options.trees + 800)]
    train, dev, test = drawn[: options.trees], drawn[options.trees : options.trees + 300], drawn[options.trees + 300 :]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_treebank(folder, "train", train)
        write_treebank(folder, "dev", dev)
        train_word_vectors(folder, train)
        train_tagger(folder)
        train_parser(folder, options.trees)
        size = slim(folder, options.out)
    print(
        f"{options.out}: {size / 1e6:.2f} MB, labelled F1 {evaluate(options.out, test):.4f} on {len(test)} unseen "
        "sentences with predicted tags"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
