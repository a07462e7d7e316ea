"""Numbers as lines of characters."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.classification.folder import CHARACTERS, NumberDictionary, class_order, is_number

DICTIONARY = NumberDictionary.of_characters()


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_every_number_has_its_line(value):
    tokens = DICTIONARY.tokens(value)
    assert tokens[-1] == DICTIONARY.eos() and DICTIONARY.unk() not in tokens
    assert DICTIONARY.value(tokens) == pytest.approx(value, rel=1e-5) and is_number(DICTIONARY.string(tokens))


@pytest.mark.parametrize("text", ["5.000", "0", "-1.5", "+2", ".5", "3.", "1e-3", "2.5e+10"])
def test_numbers_are_kept_as_they_were_written(text):
    line = DICTIONARY.encode_line(" ".join(text), add_if_not_exist=False)
    assert is_number(text) and DICTIONARY.string(line) == text and DICTIONARY.value(line) == float(text)


@pytest.mark.parametrize("text", ["", "-", ".", "1e999", "nan", "inf", "1,5", "1.2.3", "five", "0x1", "1_0"])
def test_what_is_no_number(text):
    assert not is_number(text)


def test_a_line_that_is_no_number():
    assert math.isnan(DICTIONARY.value(torch.tensor([DICTIONARY.index("-"), DICTIONARY.eos()])))
    assert DICTIONARY.symbols[DICTIONARY.nspecial :] == list(CHARACTERS)


def test_numbers_are_sorted_as_numbers():
    names = ["pos", "10", "9", "-1", "2.5", "neg", "1e", "+1"]
    assert sorted(names, key=class_order) == ["-1", "+1", "2.5", "9", "10", "1e", "neg", "pos"]
