r"""Fault 4: only ``\n`` and ``\r\n`` end a line; what other readers take for a line break is refused with its place."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import LineBreakError, UnsupportedCharacterError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree

BREAKS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def test_the_list_is_all_that_splitlines_knows():
    found = [chr(codepoint) for codepoint in range(0x110000) if len(f"a{chr(codepoint)}b".splitlines()) > 1]
    assert sorted(found) == sorted([*BREAKS, "\n"])


@pytest.mark.parametrize("character", BREAKS)
def test_a_hidden_line_break_is_refused_with_its_place(tmp_path, character):
    path = tmp_path / "train.en"
    path.write_bytes(f"erste\nüber{character}zweite\ndritte\n".encode())
    lines = read_lines(path)
    assert next(lines) == "erste"
    with pytest.raises(LineBreakError) as caught:
        next(lines)
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 5)
    assert f"U+{ord(character):04X}" in str(caught.value)
    assert "Replace the character by a blank" in str(caught.value)


def test_windows_files_read_like_others(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"the man\r\n\r\nsleeps .\r\n")
    assert list(read_lines(path)) == ["the man", "", "sleeps ."]


def test_two_carriage_returns_are_one_too_many(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"the man\r\r\n")
    with pytest.raises(LineBreakError, match="CARRIAGE RETURN"):
        list(read_lines(path))


@pytest.mark.parametrize("character", [*BREAKS, "\n"])
@pytest.mark.parametrize("place", ["(S{}(NN a))", "(S (NN a{}b))", "(S{} (NN a))", "{}(NN a)"])
def test_no_tree_holds_a_line_break(character, place):
    with pytest.raises(UnsupportedCharacterError) as caught:
        read_forest(place.format(character), path="train.mrg", line_number=2)
    assert str(caught.value).startswith(f"train.mrg:2:{place.index('{') + 1}: U+{ord(character):04X}")


@pytest.mark.parametrize("character", [*BREAKS, "\n"])
def test_no_line_break_is_written(character):
    for tree in (Tree("NN", [Tree(f"a{character}b")]), Tree(f"N{character}N", [Tree("a")])):
        with pytest.raises(UnsupportedCharacterError, match=f"U\\+{ord(character):04X}"):
            write_forest((tree,))
