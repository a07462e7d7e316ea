"""Small word vectors from a small corpus: positive pointwise mutual information in a few dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds


def cooccurrences(sentences: Sequence[Sequence[str]], window: int) -> tuple[list[str], csr_matrix]:
    """Counts how often each pair of words occurs within a window.

    Args:
        sentences: lower-cased words of each sentence
        window: number of words to either side

    Returns:
        the words, most frequent first (ties by spelling), and their symmetric counts [V, V]
    """
    frequency = Counter(word for sentence in sentences for word in sentence)
    words = sorted(frequency, key=lambda word: (-frequency[word], word))
    index = {word: position for position, word in enumerate(words)}
    counts: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        row = [index[word] for word in sentence]
        for position, word in enumerate(row):
            for neighbour in row[position + 1 : position + 1 + window]:
                counts[word, neighbour] += 1
                counts[neighbour, word] += 1
    rows, columns = zip(*counts) if counts else ((), ())
    return words, csr_matrix((list(counts.values()), (rows, columns)), shape=(len(words), len(words)), dtype=np.float64)


def vectors(sentences: Sequence[Sequence[str]], dimensions: int, window: int = 2) -> tuple[list[str], np.ndarray]:
    """Computes word vectors by truncated singular value decomposition of positive mutual information.

    Levy and Goldberg (2014) describe the method.

    Args:
        sentences: lower-cased words of each sentence, with more than ``dimensions`` different words
        dimensions: number of columns of the result
        window: see :func:`cooccurrences`

    Returns:
        the words and their vectors [V, dimensions], float32, scaled to unit variance over all entries
    """
    words, counts = cooccurrences(sentences, window)
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
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n")
        for word, row in zip(words, matrix):
            file.write(word + " " + " ".join(f"{value:.5f}" for value in row) + "\n")
