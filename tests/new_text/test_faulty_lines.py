"""Lines that cannot be read are found, named and left out; the others are read together."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import InputError, LongSentenceError, TextFormatError
from tree_fairseq.new_text.faulty_lines import read_buffers, read_with_care
from tree_fairseq.tasks.pair_dataset import InputLines


def read(lines: InputLines) -> tuple[int, list[str]]:
    """Refuses some lines, as a parser or a batch does; returns the number of the first line, and all lines."""
    for place, line in enumerate(lines):
        if line == "bad":
            raise InputError("the line is bad", line=lines.first_line + place)
        if line == "long":
            raise Exception("Size of sample #0 is invalid (=(9, 0)) since max_positions=(5, 5), skip this example")
    return lines.first_line, list(lines)


@pytest.mark.parametrize("bad", [[], [0], [6], [0, 1, 2], [1, 3, 5], [0, 2, 3, 4, 5, 6]])
def test_faulty_lines_are_left_out_and_named(bad, capsys):
    lines = InputLines([["bad", "long"][place % 2] if place in bad else f"line {place}" for place in range(7)], 11)
    found, places = read_with_care(read, lines, "text")
    assert places == [place for place in range(7) if place not in bad]
    assert found == (11 + places[0], [lines[place] for place in places])
    said = capsys.readouterr().err.splitlines()
    assert [int(line.split(":")[1]) for line in said] == [11 + place for place in bad]
    assert all(line.endswith("The hypothesis of this line is empty.") for line in said)


def test_nothing_is_read_if_all_lines_are_faulty(capsys):
    assert read_with_care(read, InputLines(["bad", "long"]), "text") == (None, [])
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "error"), [("bad", InputError), ("long", LongSentenceError), ("\udcff", TextFormatError)]
)
def test_the_first_faulty_line_ends_the_reading_on_demand(line, error):
    with pytest.raises(error) as caught:
        read_with_care(read, InputLines(["good", line, "good"], 5), "text", stops=True)
    assert (caught.value.path, caught.value.line) == ("text", 6)


def test_errors_of_the_program_are_no_faults_of_a_line():
    def fail(lines: InputLines) -> None:
        raise TypeError("a mistake")

    with pytest.raises(TypeError, match="a mistake"):
        read_with_care(fail, InputLines(["good"]), "text")


@pytest.mark.parametrize(("size", "counts"), [(0, [1] * 5), (2, [2, 2, 1]), (9, [5])])
def test_buffers_have_the_lines_of_a_file_whatever_its_bytes(tmp_path, size, counts):
    (tmp_path / "text").write_bytes(b"one\ntwo\r\n\xff\na\rb\nlast")
    buffers = list(read_buffers(str(tmp_path / "text"), size))
    assert list(map(len, buffers)) == counts
    assert [buffer.first_line for buffer in buffers] == [1 + sum(counts[:place]) for place in range(len(counts))]
    assert sum(map(list, buffers), []) == ["one", "two", "\udcff", "a\rb", "last"]
