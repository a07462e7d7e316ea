"""Word vectors from a corpus of some million words: positive pointwise mutual information in a few dimensions.

    python -m preprocess.word_vectors --dictionary DATA-BIN/dict.text.txt --texts train.tsv reviews.txt \\
        --dimensions 64 --output vectors.txt

The file has a vector of length 1 for each word of the dictionary that occurs often enough in the texts, in any case;
``fairseq-train --encoder-embed-path`` reads it. Of the texts, ``.trees`` are bracketed trees, ``.tsv`` have the text
in their first column, and all others have tokens that are separated by blanks.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from preprocess.command import run_command
from preprocess.corpora import CorpusError, write_lines
from preprocess.logical_forms import raw_lines
from preprocess.reviews import split_clitics
from tree_fairseq.trees.bracket import read_forest

logger = logging.getLogger(__name__)


def cooccurrences(sentences: Sequence[Sequence[str]], window: int, min_count: int = 1) -> tuple[list[str], csr_matrix]:
    """Counts how often each pair of words occurs within a window.

    Args:
        sentences: lower-cased words of each sentence
        window: number of words to either side
        min_count: words that occur less often are left out, and the words beside them come together

    Returns:
        the words, most frequent first (ties by spelling), and their symmetric counts [V, V]
    """
    frequency = Counter(word for sentence in sentences for word in sentence)
    kept = (word for word, count in frequency.items() if count >= min_count)
    words = sorted(kept, key=lambda word: (-frequency[word], word))
    index = {word: position for position, word in enumerate(words)}
    # A gap as wide as the window between sentences, so that no window reaches over it.
    rows = [[index[word] for word in sentence if word in index] + [-1] * window for sentence in sentences]
    tokens = np.array([token for row in rows for token in row], dtype=np.int64)
    counts = csr_matrix((len(words), len(words)), dtype=np.float64)
    for offset in range(1, window + 1):
        left, right = tokens[:-offset], tokens[offset:]
        both = (left >= 0) & (right >= 0)
        pairs = csr_matrix((np.ones(both.sum()), (left[both], right[both])), shape=counts.shape)
        counts = counts + pairs + pairs.T
    return words, csr_matrix(counts)


def vectors(
    sentences: Sequence[Sequence[str]], dimensions: int, window: int = 2, min_count: int = 1
) -> tuple[list[str], np.ndarray]:
    """Computes word vectors by truncated singular value decomposition of positive mutual information.

    Levy and Goldberg (2014) describe the method.

    Args:
        sentences: lower-cased words of each sentence, with more than ``dimensions`` different words
        dimensions: number of columns of the result
        window, min_count: see :func:`cooccurrences`

    Returns:
        the words and their vectors [V, dimensions], float32, scaled to unit variance over all entries

    Raises:
        CorpusError: there are too few words
    """
    words, counts = cooccurrences(sentences, window, min_count)
    if len(words) <= dimensions:
        raise CorpusError(f"{len(words)} different words are too few for vectors of {dimensions} dimensions")
    total = counts.sum()
    marginal = np.asarray(counts.sum(axis=1)).ravel()
    entries = counts.tocoo()
    information = np.log(entries.data * total / (marginal[entries.row] * marginal[entries.col]))
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


def read_texts(path: Path) -> list[str]:
    """Reads the texts of a file, one a line; see the module.

    Raises:
        CorpusError: the file is missing
        InputError: a line is not a tree
    """
    if path.suffix == ".trees":
        return [
            " ".join(word for tree in read_forest(line, path=path, line_number=number) for word in tree.leaves())
            for number, line in enumerate(raw_lines(path), 1)
        ]
    return [line.split("\t")[0] if path.suffix == ".tsv" else line for line in raw_lines(path)]


def read_sentences(path: Path) -> list[list[str]]:
    """Reads the lower-cased words of a file's texts. Outside trees, clitics such as *n't* are words of their own.

    Raises:
        CorpusError: the file is missing
        InputError: a line is not a tree
    """
    split = str if path.suffix == ".trees" else split_clitics
    return [split(text.lower()).split() for text in read_texts(path)]


def make_vectors(
    dictionary: Path, texts: Sequence[Path], output: Path, dimensions: int, window: int, min_count: int
) -> None:
    """Computes vectors from texts and writes those of the words of a dictionary.

    Raises:
        CorpusError: a file is missing, there are too few words, or the dictionary has none of them
        InputError: a line is not a tree
    """
    sentences = [sentence for path in texts for sentence in read_sentences(path)]
    words, matrix = vectors(sentences, dimensions, window, min_count)
    index = {word: position for position, word in enumerate(words)}
    symbols = [line.rpartition(" ")[0] for line in raw_lines(dictionary)]
    known = [symbol for symbol in symbols if symbol.lower() in index]
    if not known:
        raise CorpusError(f"{dictionary}: none of its words occurs {min_count} times in the texts")
    rows = matrix[[index[symbol.lower()] for symbol in known]]
    write_vectors(output, known, rows / np.linalg.norm(rows, axis=1, keepdims=True))
    tokens = sum(map(len, sentences))
    logger.info("%d of %d words have vectors, from %d tokens of text", len(known), len(symbols), tokens)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="word_vectors", description="Computes word vectors from texts.")
    parser.add_argument("--dictionary", type=Path, required=True, help="dictionary of a data folder")
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="a sentence or a document a line")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    parser.add_argument("--dimensions", type=int, default=64, help="of a vector (default: %(default)s)")
    parser.add_argument("--window", type=int, default=2, help="words to either side that count (default: %(default)s)")
    parser.add_argument("--min-count", type=int, default=3, help="rarer words have no vector (default: %(default)s)")
    options = parser.parse_args(argv)
    if min(options.dimensions, options.window, options.min_count) < 1:
        parser.error("--dimensions, --window and --min-count take numbers from 1")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _options(argv)
    return run_command("word_vectors", lambda: make_vectors(**vars(options)))


if __name__ == "__main__":
    raise SystemExit(main())
