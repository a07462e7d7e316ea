"""Spelled leaves: names, productions and lists that training does not have are written with its symbols."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source_code.programs import trees_of
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.source_code.productions import MOST_CHILDREN
from tree_fairseq.source_code.python import Python
from tree_fairseq.source_code.registry import notation_of
from tree_fairseq.source_code.spelling import FREQUENT_LEAF, Spelling, learn_spellings
from tree_fairseq.trees.notations import notation_named

TRAINING = ["self.readFileName(x)", "self.readFileName(x, y)", "self.writeFileName(y)", "getBlock(x) + 12"] * 3 + [
    "readAll()"
]


@pytest.fixture(scope="module")
def spelling() -> Spelling:
    counts = Counter(node.label for line in TRAINING for node in Python().read(line).preorder())
    return learn_spellings({"python": counts}, 20)["python"]


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60) | st.from_regex(r"[a-zA-Z_]{1,30}[0-9]{0,3}", fullmatch=True))
def test_pieces_join_to_the_text(spelling, text):
    assert "".join(spelling.pieces(text)) == text
    assert all(piece in spelling.known or len(piece) == 1 for piece in spelling.pieces(text))


@pytest.mark.parametrize("name", ["sql", "python", "java", "csharp"])
def test_a_spelled_program_is_the_same_program(spelling, name):
    language = notation_named(name)
    for tree in trees_of(name):
        spelled = spelling.spell(tree)
        assert language.whole(spelled) == language.whole(tree)
        assert language.write(spelled) == language.write(tree)
        assert all(len(node.children) <= MOST_CHILDREN for node in spelled.preorder())


def test_frequent_leaves_stay_whole_and_others_have_pieces(spelling):
    labels = [node.label for node in spelling.spell(Python().read("self.readBlock(z)")).preorder()]
    assert " ".join(TRAINING).count("self") >= FREQUENT_LEAF
    assert 'Name "self' in labels
    assert next(label for label in labels if label.startswith('"')) == '"read'
    assert "".join(label[1:] for label in labels if label.startswith('"')) == "readBlockz"


def test_a_model_is_saved_and_loaded(spelling, tmp_path):
    spelling.save(tmp_path / "model.json")
    notation = notation_of("python", tmp_path / "model.json")
    line = "self.unknownName(x, [1, 2])"
    assert notation.read(line) == spelling.spell(Python().read(line))
    assert notation.write(notation.read(line)) == line
    (tmp_path / "model.json").write_text('{"merges": 3}')
    with pytest.raises(CorruptFileError, match="spelled leaves"):
        Spelling.load(tmp_path / "model.json")
