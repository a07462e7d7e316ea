r"""Fault 4: only ``\n`` and ``\r\n`` end a line; what other readers take for a line break is refused with its place."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import LineBreakError
from tree_fairseq.trees.text import inspect_text, read_lines

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
    for read in (lambda: next(lines), lambda: inspect_text(path)):
        with pytest.raises(LineBreakError) as caught:
            read()
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 5)
        assert f"U+{ord(character):04X}" in str(caught.value)
        assert "Replace the character by a blank" in str(caught.value)


def test_two_carriage_returns_are_one_too_many(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"the man\r\r\n")
    with pytest.raises(LineBreakError, match="CARRIAGE RETURN"):
        list(read_lines(path))
