"""The examples in Python of the page about trees give what the page shows."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.docs.pages import ROOT, blocks_of
from tree_fairseq.commands.parse import main

BLOCKS = blocks_of(ROOT / "docs/trees.md")


def test_examples_print_what_the_page_shows():
    pytest.importorskip("nltk")
    names: dict = {}
    examples = 0
    for block, shown in zip(BLOCKS, BLOCKS[1:]):
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, f"{block.page}:{block.line}", "exec"), names)
            assert shown.language == "text" and printed.getvalue() == shown.text, f"{block.page}:{block.line}"
            examples += 1
    assert examples >= 3


def test_the_first_command_prints_the_first_tree(capsys):
    command, shown = BLOCKS[:2]
    assert "--text 'the old man sees the boat'" in command.text
    words = ["--text", "the old man sees the boat", "--tree-parser", "right-branching", "--format", "pretty"]
    assert main(words) == 0 and capsys.readouterr().out == shown.text
