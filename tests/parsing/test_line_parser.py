"""From lines to forests: the leaves equal the tokens after all steps in between."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsing.fake_parsers import FaultyParser, ToyParser, noted
from tests.parsing.test_pieces import bpe_codes  # noqa: F401 (a fixture)
from tree_fairseq.errors import FaultyLinesError, LeafMismatchError, LineBreakError, ParserError, TreeFormatError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import forest_leaves

TOKENS = "the man un@@ for@@ tunate ( ) -LRB- &apos;s &quot; &amp; . ? straße \\( a&lt;b @@ ￭".split()


def toy(options=None, parser=None):
    return LineParser(options or ParserOptions(name="toy"), parser or ToyParser())


def written(parser, *lines):
    return [write_forest(line.forest) for line in parser.parse_lines(list(lines))]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.sampled_from(TOKENS), max_size=12),
    st.sampled_from(["none", "punct"]),
    st.sampled_from(["auto", "none", "bpe"]),
)
def test_leaves_are_the_tokens(tokens, ssplit, subwords):
    options = ParserOptions(name="toy", ssplit=ssplit, subwords=subwords)
    (line,) = toy(options).parse_lines([" ".join(tokens)])
    assert forest_leaves(line.forest) == tokens and not line.failed


def test_the_parser_sees_whole_words_without_entities():
    parser = ToyParser()
    (forest,) = written(toy(parser=parser), "the un@@ for@@ tunate man &apos;s &quot; -LRB- &quot;")
    assert parser.calls == [[["the", "unfortunate", "man", "'s", '"', "-LRB-", '"']]]
    assert (
        "(T9 (T9_sub un@@) (T9_sub for@@) (T9_sub tunate))" in forest
        and "(T2 &apos;s)" in forest
        and "\\-LRB-" in forest
    )


def test_blank_lines_keep_their_position():
    parser = ToyParser()
    assert written(toy(parser=parser), "", "a", "  ", "b c") == [
        "",
        "(S (NP (T1 a)))",
        "",
        "(S (NP (T1 b)) (VP (T1 c)))",
    ]
    assert written(toy(), "") == [""]


def test_several_sentences_make_a_forest():
    line = "he sleeps . she un@@ reads ."
    assert written(toy(), line)[0].count("(S ") == 1
    forest = written(toy(ParserOptions(name="toy", ssplit="punct")), line)[0]
    assert (
        forest
        == "(S (NP (T2 he)) (VP (T6 sleeps) (T1 .))) (S (NP (T3 she)) (VP (T7 (T7_sub un@@) (T7_sub reads)) (T1 .)))"
    )


def test_words_are_split_by_a_subword_model(bpe_codes):
    options = ParserOptions(name="toy", subword_model=bpe_codes)
    (line,) = toy(options).parse_lines(["the weather"])
    leaves = forest_leaves(line.forest)
    assert len(leaves) > 2 and "".join(leaf.replace("@@", "") for leaf in leaves) == "theweather"
    brackets = LineParser(ParserOptions(name="brackets", subword_model=bpe_codes)).parse_lines(
        ["(S (DT the) (NN weather))"]
    )
    assert forest_leaves(brackets[0].forest) == leaves
    assert "NN_sub" in write_forest(brackets[0].forest)


def test_function_tags_are_stripped():
    options = ParserOptions(name="brackets", tag_separators="=", keep_empty=True)
    assert written(LineParser(options), "(S (NP-SBJ=2 (NN a)) (-NONE- x))") == ["(S (NP-SBJ (NN a)) (-NONE- x))"]
    (line,) = LineParser(ParserOptions(name="brackets", strip_function_tags=True)).parse_lines(["((S (N-X a) (ID x)))"])
    assert (line.written, line.left_out) == ("(ROOT (S (N a) (ID x)))", {})


@pytest.mark.parametrize("fault", ["RAISE", "NONE", "LEAVES", "DROP", "HUGE"])
def test_a_failed_sentence_gets_a_flat_tree(fault):
    options = ParserOptions(name="faulty", ssplit="punct")
    lines = toy(options, FaultyParser()).parse_lines(["a b", f"c . d {fault} &amp; x@@ y", "e"])
    assert [line.failed for line in lines] == [False, True, False]
    assert write_forest(lines[1].forest).endswith(f"(FRAG (XX d) (XX {fault}) (XX &amp;) (XX (XX_sub x@@) (XX_sub y)))")
    assert write_forest(lines[1].forest).startswith("(S ")


def test_a_failed_sentence_ends_the_run_if_requested():
    with pytest.raises(LeafMismatchError, match=r"corpus.en:8: .*leaves.*a LEAVES"):
        toy(ParserOptions(name="faulty", on_parse_error="stop"), FaultyParser()).parse_lines(
            ["b", "a LEAVES"], first_line=7, path="corpus.en"
        )


def test_line_breaks_inside_a_line_are_refused():
    with pytest.raises(LineBreakError, match="line 4"):
        toy().parse_lines(["a", "b\x0cc"], first_line=3)


def test_no_break_space_separates_tokens_as_in_fairseq():
    (line,) = toy().parse_lines(["a\u00a0b\u3000c"])
    assert forest_leaves(line.forest) == "a\u00a0b\u3000c".split() == ["a", "b", "c"]


def test_the_message_names_the_line_of_leaves_that_look_discontinuous():
    with pytest.raises(TreeFormatError, match="x.en:5"):
        toy().parse_lines(["1=b 0=a"], first_line=5, path="x.en")


def test_each_sentence_is_parsed_once(parse_log):
    first, second, third, _ = written(toy(), "a b", "c", "a b", "a@@ b")
    assert sorted(noted(parse_log)) == ["a b", "ab", "c"]
    assert first == third != second


def test_the_inventory_has_the_labels_of_flat_trees():
    assert {"S", "NP", "VP", "T1", "FRAG", "XX"} <= set(toy().labels()[0])
    assert "S" not in toy().labels()[1] and {"T1", "XX"} <= set(toy().labels()[1])


def test_function_tags_are_stripped_from_the_inventory():
    class Functional(ToyParser):
        def inventory(self):
            return ["NP-SBJ", "NP", "-LRB-"]

    assert toy(ParserOptions(name="toy", strip_function_tags=True), Functional()).labels()[0] == [
        "-LRB-",
        "FRAG",
        "NP",
        "XX",
    ]


def test_the_identity_depends_on_options_that_change_trees():
    changes = [{"ssplit": "punct"}, {"subwords": "none"}, {"strip_function_tags": True}]
    identities = {toy(ParserOptions(name="toy", **change)).digest() for change in ({}, *changes)}
    assert len(identities) == 1 + len(changes)
    assert toy(ParserOptions(name="toy", batch_size=7, max_parse_failures=5)).identity() == toy().identity()


def test_interactive_passes_encoded_text_only_to_parsers():
    assert toy().wants_encoded_text
    assert not LineParser(ParserOptions(name="brackets")).wants_encoded_text
    assert not LineParser(ParserOptions(name="toy", tokenize="stanza")).wants_encoded_text
    assert LineParser(ParserOptions(name="toy", tokenize="stanza", subwords="sentencepiece")).wants_encoded_text


def test_raw_text_needs_a_parser_that_tokenises():
    with pytest.raises(ParserError, match="--tree-tokenize parser: --tree-parser .* finds no tokens"):
        LineParser(ParserOptions(name="balanced", tokenize="stanza"))


def test_all_faulty_lines_are_named_or_become_flat_or_empty():
    lines = ["(S (NN a)", "(S (NN b))", "x", *["(NN"] * 10]
    with pytest.raises(FaultyLinesError) as caught:
        LineParser(ParserOptions(name="brackets")).parse_lines(lines, 3, "a.mrg")
    assert str(caught.value).startswith("12 lines cannot be read:\na.mrg:3:1: 1 bracket is never closed")
    assert "a.mrg:5:1: 'x' belongs" in str(caught.value) and str(caught.value).endswith("... and 2 more lines")
    assert [error.line for error in pickle.loads(pickle.dumps(caught.value)).errors] == [3, *range(5, 16)]
    skipping = LineParser(ParserOptions(name="brackets", on_parse_error="skip-pair")).parse_lines(lines[:3])
    assert [line.written for line in skipping] == ["(FRAG (XX a))", "(S (NN b))", ""]
    assert [line.failed for line in skipping] == [1, 0, 1]
    # A number of failures that may happen says that they may.
    assert ParserOptions(name="brackets", max_parse_failures=3).on_parse_error == "flat"
