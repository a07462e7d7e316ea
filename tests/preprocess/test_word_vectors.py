"""Word vectors of a corpus, for the words of a dictionary."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fairseq import utils
from hypothesis import given
from hypothesis import strategies as st

from preprocess.word_vectors import cooccurrences, main, read_sentences, vectors

TEXT = "a good film\na bad film\nA good play isn't a bad play\n"
TREES = "(3 (2 A) (2 Good))\n(1 (2 Bad) (2 film))\n"
DICTIONARY = "a 9\nGood 8\nbad 7\nfilm 6\nseldom 5\nn't 4\n"


def counts_by_hand(sentences, window, min_count):
    frequency = Counter(word for sentence in sentences for word in sentence)
    counts = Counter()
    for sentence in sentences:
        kept = [word for word in sentence if frequency[word] >= min_count]
        for place, word in enumerate(kept):
            for other in range(max(0, place - window), min(len(kept), place + window + 1)):
                counts[word, kept[other]] += other != place
    return counts


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=9), max_size=6), st.integers(1, 4), st.integers(1, 4))
def test_cooccurrences_are_those_of_every_window(sentences, window, min_count):
    words, counts = cooccurrences(sentences, window, min_count)
    naive = counts_by_hand(sentences, window, min_count)
    assert counts.toarray().tolist() == [[naive[left, right] for right in words] for left in words]


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")


def command(folder, *texts, **options):
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    paths = [str(folder / text) for text in texts]
    output = str(folder / "vectors.txt")
    return main(["--dictionary", str(folder / "dict.txt"), "--texts", *paths, "--output", output, *flags])


def test_words_are_read_from_trees_tables_and_texts(tmp_path):
    write(tmp_path, a_trees=TREES, b_tsv="It's good\tpositive\n", c_txt=TEXT)
    assert read_sentences(tmp_path / "a.trees") == [["a", "good"], ["bad", "film"]]
    write(tmp_path, d_trees="(2 (2 I) (2 (2 don't) (2 know)))\n")
    assert read_sentences(tmp_path / "d.trees") == [["i", "don't", "know"]]
    assert read_sentences(tmp_path / "b.tsv") == [["it", "'s", "good"]]
    assert read_sentences(tmp_path / "c.txt")[2] == "a good play is n't a bad play".split()


def test_the_words_of_a_dictionary_get_vectors_of_length_one(tmp_path):
    write(tmp_path, a_trees=TREES, c_txt=TEXT, dict_txt=DICTIONARY)
    assert command(tmp_path, "a.trees", "c.txt", dimensions=3, min_count=2) == 0
    found = utils.parse_embedding(str(tmp_path / "vectors.txt"))
    assert list(found) == ["a", "Good", "bad", "film"]  # *seldom* does not occur, *n't* only once
    sentences = [*read_sentences(tmp_path / "a.trees"), *read_sentences(tmp_path / "c.txt")]
    words, matrix = vectors(sentences, 3, min_count=2)
    expected = matrix[words.index("good")] / np.linalg.norm(matrix[words.index("good")])
    assert found["Good"].tolist() == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, {}, "c.txt is missing"),
        (
            {"c_txt": TEXT},
            {"dimensions": 5, "min_count": 2},
            "5 different words are too few for vectors of 5 dimensions",
        ),
        ({"c_txt": TEXT, "dict_txt": "x 1\n"}, {"dimensions": 2}, "none of its words occurs 1 times in the texts"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, capsys, files, options, message):
    write(tmp_path, **{"dict_txt": DICTIONARY, **files})
    assert command(tmp_path, "c.txt", **{"min_count": 1, **options}) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "vectors.txt").exists()
