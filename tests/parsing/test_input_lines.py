"""Input lines: existing trees, several sentences on a line, and Moses' entities."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesDetokenizer

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.line_parser import read_bracketed, split_sentences, unescape_entities
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import forest_leaves


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("(S (NP (NN a) (NN b))", "a b"),
        ("(S (NN a))) (NN b)", "a b"),
        ("(NN a b)", "a b"),
        ("(S (NN a) b)", "a b"),
        ("(S () (NN a))", "a"),
        ("(S (NN -LRB-) (NN", "("),
        ("(S (NN ) (NN a))", "a"),
    ],
)
def test_malformed_brackets_keep_the_words(line, words):
    with pytest.raises(TreeFormatError) as stopped:
        read_bracketed(line, "stop", "trees.txt", 7)
    assert str(stopped.value).startswith("trees.txt:7:")
    forest, failed = read_bracketed(line, "flat", "trees.txt", 7)
    assert failed and forest_leaves(forest) == words.split() and len(forest) == 1 and forest[0].label == "FRAG"


@pytest.mark.parametrize(
    "line", ["just text", "(S (NN a)) b", "(NN a\u00a0b)", "()", "(", "(S 1=b 0=a)", "(S (N 1=b) (N 0=a))", "(NN"]
)
def test_ambiguous_words_are_always_refused(line):
    with pytest.raises(TreeFormatError, match="trees.txt:7"):
        read_bracketed(line, "flat", "trees.txt", 7)


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="() \tab-LRB\\=01\u00a0", max_size=25))
def test_any_line_is_read_or_refused(line):
    try:
        forest, _ = read_bracketed(line, "flat")
    except TreeFormatError:
        return
    assert read_bracketed(write_forest(forest), "stop") == (forest, ())


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("a man sleeps", ["a man sleeps"]),
        ("He sleeps . She reads .", ["He sleeps .", "She reads ."]),
        ("what ? no ! yes", ["what ?", "no !", "yes"]),
        ('" He sleeps . " she said .', ['" He sleeps . "', "she said ."]),
        ('He sleeps . " Why ? "', ["He sleeps .", '" Why ? "']),
        ("( He sleeps . ) She reads .", ["( He sleeps . )", "She reads ."]),
        ("Mr. Smith sleeps .", ["Mr. Smith sleeps ."]),
        ("I ... do not know .", ["I ... do not know ."]),
        ("I do not know ... You do .", ["I do not know ...", "You do ."]),
        ("really ?! yes .", ["really ?!", "yes ."]),
        ("really ? ! yes .", ["really ? !", "yes ."]),
        ("他 睡 。 她 读 。", ["他 睡 。", "她 读 。"]),
        ("« oui . » dit-il .", ["« oui . »", "dit-il ."]),
        (". a", [".", "a"]),
    ],
)
def test_sentences_end_after_final_punctuation(line, sentences):
    words = line.split()
    assert [" ".join(words[start:end]) for start, end in split_sentences(words)] == sentences


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "B", ".", "?", '"', "''", "...", "'", ")", "("]), max_size=20))
def test_spans_of_sentences_cover_the_line(words):
    spans = split_sentences(words)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
    assert all(start < end for start, end in spans)
    assert (spans[-1][1] if spans else 0) == len(words)


@pytest.mark.parametrize(
    ("word", "seen"),
    [
        ("&apos;s", "'s"),
        ("&quot;", '"'),
        ("n&apos;t", "n't"),
        ("&#91;", "["),
        ("&#93;", "]"),
        ("&#124;", "|"),
        ("&lt;b&gt;", "<b>"),
        ("&bar;", "|"),
        ("&amp;", "&"),
        ("plain", "plain"),
        ("AT&T", "AT&T"),
        ("&nbsp;", "&nbsp;"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_entities_become_characters(word, seen):
    assert unescape_entities(word) == seen


def test_unescaping_equals_that_of_moses():
    detokenizer = MosesDetokenizer()
    for word in ("&apos;s", "&quot;", "&#91;x&#93;", "&#124;", "&lt;&gt;", "&amp;", "a&amp;b", "none"):
        assert unescape_entities(word) == detokenizer.unescape_xml(word)
