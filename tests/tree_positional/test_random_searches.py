"""Random grammars, scores and options: every tree that a search returns is valid, finite, sorted and within its limits.

``TREE_FAIRSEQ_LONG_TESTS=1`` searches for a hundred thousand sentences, which takes about half an hour.
"""

from __future__ import annotations

import logging
import os
import random

import pytest

from tests.fuzz.law import Choices
from tests.tree_positional.random_searches import RandomSearch

IS_LONG = os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0"
PARTS = 100 if IS_LONG else 4
SENTENCES = 1000 if IS_LONG else 100


@pytest.mark.parametrize("part", range(PARTS))
def test_every_tree_of_random_searches_is_right(part, caplog):
    caplog.set_level(logging.ERROR)
    searched, number = 0, 0
    while searched < SENTENCES:
        number += 1
        assert number < 10 * SENTENCES, "nearly all searches are refused"
        seed = f"{part}-{number}"
        try:
            searched += RandomSearch.draw(Choices(random.Random(seed).randbytes(400)), 16).run()
        except Exception as error:
            raise AssertionError(f"the search {seed}") from error
