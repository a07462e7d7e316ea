"""Raw text: the parser finds tokens, and pieces are assigned to them by their characters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsing.fake_parsers import ToyTextParser
from tests.parsing.test_pieces import bpe_codes, sentencepiece_model  # noqa: F401 (fixtures)
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import load_subword_model
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import forest_leaves


def raw(parser=None, **changes):
    options = ParserOptions(name="toy", tokenize="stanza", **changes)
    return LineParser(options, parser or ToyTextParser(options))


def forest(parser, line):
    (parsed,) = parser.parse_lines([line])
    return parsed.forest


def test_the_parser_finds_the_tokens():
    assert write_forest(forest(raw(), "The man sleeps.")) == "(S (NP (T3 The)) (VP (T3 man) (T6 sleeps) (T1 .)))"
    assert forest(raw(), "   ") == ()


def test_a_line_may_have_several_sentences():
    assert len(forest(raw(), "He sleeps. She reads.")) == 1
    assert len(forest(raw(ssplit="punct"), "He sleeps. She reads.")) == 2


def test_words_in_pieces_are_joined_and_split_again():
    tree = write_forest(forest(raw(), "▁The ▁ma n ▁sleep s ."))
    assert tree == "(S (NP (T3 ▁The)) (VP (T3 (T3_sub ▁ma) (T3_sub n)) (T6 (T6_sub ▁sleep) (T6_sub s)) (T1 .)))"
    assert write_forest(forest(raw(), "The ma@@ n")) == "(S (NP (T3 The)) (VP (T3 (T3_sub ma@@) (T3_sub n))))"


def test_a_piece_over_two_tokens_joins_them():
    # "n." is one piece and two tokens.
    leaves = forest_leaves(forest(raw(), "▁The ▁ma n."))
    assert leaves == ["▁The", "▁ma", "n."]


@settings(deadline=None, max_examples=60)
@given(text=st.text(alphabet="abthe .,'é()", max_size=25), ssplit=st.sampled_from(["none", "punct"]))
def test_every_piece_is_a_leaf(sentencepiece_model, text, ssplit):
    pieces, _ = load_subword_model(sentencepiece_model).split_text(text)
    parsed = forest(raw(subword_model=sentencepiece_model, ssplit=ssplit), text)
    assert forest_leaves(parsed) == (pieces if text.strip() else [])


def test_codes_split_the_parsers_tokens(bpe_codes):
    leaves = forest_leaves(forest(raw(subword_model=bpe_codes), "The weather."))
    assert leaves[-1] == "." and len(leaves) > 3


def test_a_failed_line_is_split_at_white_space():
    (parsed,) = raw().parse_lines(["NONE of it, really."])
    assert parsed.failed and write_forest(parsed.forest) == "(FRAG (XX NONE) (XX of) (XX it,) (XX really.))"


@pytest.mark.parametrize("drop", [0, 1, 2])
def test_a_line_fails_if_the_parser_loses_text(drop):
    class Losing(ToyTextParser):
        def _parse_line(self, line):
            parsed = super()._parse_line(line)
            words = [leaf for tree in parsed.forest for leaf in tree.leaves()]
            return ParsedText(
                (self.tree(words[:drop] + words[drop + 1 :]),), parsed.offsets[:drop] + parsed.offsets[drop + 1 :]
            )

    (parsed,) = raw(parser=Losing(ParserOptions(tokenize="stanza"))).parse_lines(["He sleeps."])
    assert parsed.failed and forest_leaves(parsed.forest) == ["He", "sleeps."]
