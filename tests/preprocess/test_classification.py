"""Texts and trees with their classes, from the published files to the splits that fairseq-preprocess reads."""

from __future__ import annotations

import tarfile
from collections import Counter

import pytest

from preprocess import toy_corpus
from preprocess.classification import ABOUT, main
from preprocess.corpora import CorpusError
from preprocess.labelled_lines import Labelled, hold_out, write_splits
from tests.preprocess.files import DATA, lines, rows, write
from tree_fairseq.classification.examples import read_examples
from tree_fairseq.trees.bracket import read_forest

NAMES = sorted(ABOUT)
FLAGS = {"imdb": ("--valid", "10"), "movie_reviews": ("--valid", "10")}
SUFFIX = {"sst5": "trees", "sst2": "trees"}
SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    for name in NAMES:
        toy_corpus.main([name, "--output", str(folder / name), "--train", "60", "--test", "12"])
    return folder


def prepare(name, data, output, *flags):
    return main([name, "--data", str(data), "--output", str(output), *FLAGS.get(name, ()), *flags])


@pytest.mark.parametrize("name", NAMES)
def test_splits_are_what_preprocessing_reads(raw, tmp_path, name):
    assert prepare(name, raw / name, tmp_path / "one") == 0
    suffix = SUFFIX.get(name, "tsv")
    assert {path.name for path in (tmp_path / "one").iterdir()} == {f"{split}.{suffix}" for split in SPLITS}
    examples = {split: read_examples(tmp_path / "one" / f"{split}.{suffix}", suffix, None) for split in SPLITS}
    assert all(len(own.counts()) >= 2 and len(own.texts) >= 8 for own in examples.values())
    assert examples["test"].counts().keys() <= examples["train"].counts().keys()
    assert prepare(name, raw / name, tmp_path / "two") == 0
    for split in examples:
        one, two = ((tmp_path / folder / f"{split}.{suffix}").read_bytes() for folder in ("one", "two"))
        assert one == two


@pytest.mark.parametrize("name", NAMES)
def test_every_split_may_be_a_sample(raw, tmp_path, name):
    assert prepare(name, raw / name, tmp_path, "--limit", "3") == 0
    for split in SPLITS:
        assert len(lines(tmp_path / f"{split}.{SUFFIX.get(name, 'tsv')}")) == 3


# --- Stanford Sentiment Treebank -------------------------------------------------------------------------------------

TREES = (
    "(3 (2 a) (4 (3 fine) (2 film\\/show)))",
    "(2 (2 so) (2 so))",
    "(0 dreadful)",
    "(1 (2 -LRB-) (1 (0 bad) (2 2\xa01\\/2)))",
)


@pytest.fixture
def treebank(tmp_path):
    for name in ("train", "dev", "test"):
        write(tmp_path / "data" / "trees" / f"{name}.txt", *TREES)
    return tmp_path / "data"


def test_five_classes_stay_at_their_nodes(treebank, tmp_path):
    assert prepare("sst5", treebank, tmp_path / "out") == 0
    written = lines(tmp_path / "out" / "test.trees")
    assert written[0] == "(3 (2 a) (4 (3 fine) (2 film/show)))"
    assert written[3] == "(1 (2 -LRB-) (1 (0 bad) (2 2_1/2)))"
    assert len(written) == 4


def test_two_classes_leave_neutral_ones_out(treebank, tmp_path, caplog):
    caplog.set_level("INFO")
    assert prepare("sst2", treebank, tmp_path / "out") == 0
    assert lines(tmp_path / "out" / "valid.trees") == [
        "(1 (- a) (1 (1 fine) (- film/show)))", "(0 dreadful)", "(0 (- -LRB-) (0 (0 bad) (- 2_1/2)))",
    ]  # fmt: skip
    assert caplog.text.count("1 of 4 sentences are neutral and left out") == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(5 fine)", "train.txt:1: the label '5' is not a class from 0 to 4"),
        ("(3 (2 a) (NP film))", "the label 'NP' is not a class"),
        ("(3 fine) (3 film)", "train.txt:1: 2 trees where one is expected"),
        ("(3 (2 a)", "train.txt:1:"),
        ("", "0 trees where one is expected"),
    ],
)
def test_lines_that_are_no_trees_of_classes(treebank, tmp_path, capsys, line, message):
    write(treebank / "trees" / "train.txt", line)
    assert prepare("sst5", treebank, tmp_path / "out") == 1
    assert message in capsys.readouterr().err


def test_published_sizes(tmp_path, caplog):
    """Of the development and test sets; training sentences are read in the same way, and take long."""
    if not (DATA / "sst" / "dev.txt").is_file():
        pytest.skip("the treebank is not here")
    caplog.set_level("INFO")
    (tmp_path / "data").mkdir()
    for name, published in (("train", "dev"), ("dev", "dev"), ("test", "test")):
        (tmp_path / "data" / f"{name}.txt").symlink_to(DATA / "sst" / f"{published}.txt")
    assert prepare("sst2", tmp_path / "data", tmp_path / "out") == 0
    assert [len(lines(tmp_path / "out" / f"{split}.trees")) for split in ("valid", "test")] == [872, 1821]
    assert "229 of 1101 sentences are neutral" in caplog.text and "389 of 2210 sentences are neutral" in caplog.text
    trees = [read_forest(line)[0] for line in lines(tmp_path / "out" / "test.trees")[:200]]
    assert {node.label for tree in trees for node in tree.preorder() if not node.is_leaf} == {"0", "1", "-"}


# --- reviews ---------------------------------------------------------------------------------------------------------


def reviews(folder, size=20):
    for part in ("pos", "neg"):
        write(folder / f"{part}.txt", *(f"{part}  {number} isn't it's" for number in range(size)))


def test_folds_test_on_each_document_once(tmp_path):
    reviews(tmp_path / "data")
    tested = Counter()
    for fold in range(1, 11):
        assert prepare("movie_reviews", tmp_path / "data", tmp_path / "out", "--fold", str(fold)) == 0
        splits = {split: rows(tmp_path / "out", split) for split in SPLITS}
        assert sum(map(len, splits.values())) == len({row for part in splits.values() for row in part}) == 40
        assert [len(splits[split]) for split in SPLITS] == [26, 10, 4]
        assert Counter(name for _, name in splits["valid"]) == {"positive": 5, "negative": 5}
        assert [int(text.split()[1]) // 2 for text, _ in splits["test"]] == [fold - 1] * 4
        tested.update(splits["test"])
    assert len(tested) == 40 and set(tested.values()) == {1}
    assert ("pos 0 is n't it 's", "positive") in tested


def test_the_published_archive_of_reviews_is_read_in_order(tmp_path):
    folder = tmp_path / "unpacked" / "txt_sentoken"
    for part in ("pos", "neg"):
        for number in range(10):
            write(folder / part / f"cv{number:03}_{100 - number}.txt", f"{part} {number} .", "second sentence .")
    (tmp_path / "data").mkdir()
    with tarfile.open(tmp_path / "data" / "review_polarity.tar.gz", "w:gz") as tar:
        tar.add(folder, "txt_sentoken")
    assert prepare("movie_reviews", tmp_path / "data", tmp_path / "out", "--fold", "3", "--valid", "4") == 0
    wanted = {"negative": "neg 2 . second sentence .", "positive": "pos 2 . second sentence ."}
    assert {name: text for text, name in rows(tmp_path / "out")} == wanted
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]


def test_reviews_lose_their_markup(tmp_path):
    for split in ("train", "test"):
        for part in ("pos", "neg"):
            for number in range(4):
                path = tmp_path / "data" / "aclImdb" / split / part / f"{number}_{number}.txt"
                write(path, f"It's {part}<br /><br />3 < 4 &amp; so: {number}")
    assert prepare("imdb", tmp_path / "data", tmp_path / "out", "--valid", "2") == 0
    assert rows(tmp_path / "out")[0] == ("It &apos;s neg 3 &lt; 4 &amp; so : 0", "negative")
    assert Counter(name for _, name in rows(tmp_path / "out", "train")) == {"positive": 3, "negative": 3}


@pytest.mark.parametrize(
    ("name", "make", "flags", "message"),
    [
        ("movie_reviews", lambda data: data.mkdir(), (), "neither pos.txt and neg.txt"),
        ("movie_reviews", lambda data: reviews(data, 9), (), "9 documents of negative are too few"),
        ("movie_reviews", reviews, ("--valid", "36"), "cannot be held out"),
        ("imdb", lambda data: data.mkdir(), (), "neither train/pos"),
        ("imdb", lambda data: write(data / "train" / "pos" / "0_9.txt", "x"), (), "holds no *.txt"),
        ("sst5", lambda data: data.mkdir(), (), "train.txt is missing"),
        ("sst2", lambda data: data.mkdir(), (), "train.txt is missing"),
    ],
)
def test_folders_that_hold_something_else(tmp_path, capsys, name, make, flags, message):
    make(tmp_path / "data")
    assert prepare(name, tmp_path / "data", tmp_path / "out", *flags) == 1
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


# --- what they share -------------------------------------------------------------------------------------------------


def test_held_out_lines_keep_the_shares_of_classes():
    examples = [Labelled(str(number), "ab"[number % 4 == 0]) for number in range(40)]
    train, valid = hold_out(examples, 8, 1)
    assert sorted([*train, *valid], key=lambda line: int(line.text)) == examples
    assert Counter(line.name for line in valid) == {"a": 6, "b": 2}
    assert hold_out(examples, 8, 1)[1] == valid != hold_out(examples, 8, 2)[1]


def test_groups_stand_beside_their_split(tmp_path):
    splits = {"train": [Labelled("a\nb", "x")], "test": [Labelled("c", "x", ("one", "two")), Labelled("d", "y")]}
    assert write_splits(splits, tmp_path, "tsv") == {"train": 1, "test": 2}
    assert lines(tmp_path / "test.groups") == ["one two", ""] and not (tmp_path / "train.groups").exists()
    assert lines(tmp_path / "train.tsv") == ["a b\tx"]
    for broken in ([], [Labelled(" ", "x")]):
        with pytest.raises(CorpusError):
            write_splits({"train": broken}, tmp_path / "none", "tsv")
    assert not (tmp_path / "none").exists()
