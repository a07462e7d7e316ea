"""``--tree-noise``: degraded parses of every kind of text, the same in any order and in any number of processes."""

from __future__ import annotations

from tests.end_to_end.fixtures import preprocess
from tests.end_to_end.tiny_corpus import make_pairs, write_corpus
from tests.parsing.fake_parsers import ToyParser
from tests.parsing.test_pieces import bpe_codes  # noqa: F401 (a fixture)
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, flat_tree
from tree_fairseq.scoring.evalb import Parameters, compare, counts, figures
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.transforms import degrade
from tree_fairseq.trees.tree import forest_leaves

LINES = [pair.tree for pair in make_pairs(300, 5)]


def forests(lines, **options):
    parser = LineParser(ParserOptions(**{"name": "brackets", **options}))
    return [line.forest for line in parser.parse_lines(lines)]


def labelled_f1(noise: float) -> float:
    pairs = zip(forests(LINES), forests(LINES, noise=noise))
    scores = [compare(gold, found, Parameters()) for gold, found in pairs]
    return float(figures(counts(scores).sum(axis=0))["f1"])


def test_agreement_with_the_parser_falls_with_the_share():
    found = [labelled_f1(noise) for noise in (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)]
    assert found[0] == 100 and found == sorted(found, reverse=True)
    assert all(before - after > 3 for before, after in zip(found, found[1:4]))
    assert found[1] > 80 and found[-1] < 60


def test_a_share_of_zero_is_no_option():
    plain, zero = (ParserOptions(name="brackets", **options) for options in ({}, {"noise": 0.0}))
    assert LineParser(plain).identity() == LineParser(zero).identity()
    assert "noise" not in str(LineParser(plain).identity())
    assert [line.written for line in LineParser(plain).parse_lines(LINES)] == [
        line.written for line in LineParser(zero).parse_lines(LINES)
    ]
    assert LineParser(plain.replace(noise=0.1)).identity() != LineParser(plain.replace(noise=0.2)).identity()


def test_the_sentence_decides_alone():
    alone = [forests([line], noise=0.3)[0] for line in LINES[:40]]
    assert forests(LINES[:40], noise=0.3) == alone
    assert forests(LINES[39::-1], noise=0.3) == alone[::-1]
    joined = " ".join(LINES[:3])
    assert forests([joined], noise=0.3) == [sum(alone[:3], ())]


def test_noise_is_for_words_and_comes_after_the_cache(bpe_codes):
    """Parses in the cache are clean; pieces of words take the places of the words in the degraded tree."""
    words = ["the man sees a boat by the lake", "a boat ."]
    plain, noisy = (
        LineParser(ParserOptions(name="toy", noise=noise, subword_model=str(bpe_codes)), ToyParser())
        for noise in (0.0, 0.5)
    )
    assert plain.cache_key() == noisy.cache_key() and plain.digest() != noisy.digest()
    of_words = LineParser(ParserOptions(name="toy"), ToyParser()).parse_lines(words)
    for line, before, after in zip(of_words, plain.parse_lines(words), noisy.parse_lines(words)):
        pieces = plain._model.split(forest_leaves(line.forest))
        assert before.forest == split_words(line.forest, pieces)
        assert after.forest == split_words(degrade(line.forest, 0.5), pieces)


def trees_of(folder) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in sorted(folder.glob("*")) if path.suffix in (".bin", ".idx", ".txt")
    }


def test_folders_are_the_same_for_any_number_of_processes(tmp_path):
    text = write_corpus(tmp_path / "text", sizes=(300, 16, 16))
    found = []
    for name, flags in {"plain": (), "zero": ("--tree-noise", "0"), "one": ("--tree-noise", "0.3")}.items():
        preprocess(text, tmp_path / name, *flags)
        found.append(trees_of(tmp_path / name))
    preprocess(text, tmp_path / "two", "--tree-noise", "0.3", "--workers", "2")
    plain, zero, one = found
    assert zero == plain and trees_of(tmp_path / "two") == one
    differing = {name for name in one if one[name] != plain[name]}
    # The words and their dictionaries are the same.
    assert "train.en-de.en.tree.bin" in differing
    assert not {name for name in differing if ".tree." not in name and not name.startswith("dict.label")}


def test_the_flat_parser_gives_the_trees_of_failed_parses():
    lines = ["the man sees", "a"]
    parser = LineParser(ParserOptions(name="flat"))
    assert [line.forest for line in parser.parse_lines(lines)] == [(flat_tree(line.split()),) for line in lines]
    assert parser.labels() == (["FRAG", "XX"], ["XX"])
    assert parser.parse_lines([""])[0].forest == ()
