"""The steps of searches for trees: partial trees against decoded ones, and observed searches against themselves."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.explorer.untrained import untrained
from tests.strategies import symbol_trees
from tree_fairseq.drawing.views import tree_record
from tree_fairseq.errors import ArityMismatchError, StructuralSearchError
from tree_fairseq.explorer.systems import System
from tree_fairseq.tree_insertion.views import NOTHING
from tree_fairseq.tree_positional.views import OPEN_LABEL, PartialTree
from tree_fairseq.trees.symbols import NULL, SymbolEncoding
from tree_fairseq.trees.tree import Forest, Tree, tree_from_preorder

ENCODINGS = [SymbolEncoding(traversal, form) for traversal in ("dfs", "bfs") for form in ("lcrs", "none")]


def filled(encoding: SymbolEncoding, symbols: list[str]) -> Forest:
    """The tree of some symbols with a leaf ``?`` at each open node, by trying; the root's open sibling is a tree."""
    count = 1 + sum(encoding.split(symbol)[1] - 1 for symbol in symbols)
    leaves = [encoding.join(OPEN_LABEL, 0)] * count
    try:
        return (encoding.decode([*symbols, *leaves]),)
    except ArityMismatchError:
        for place in range(count):
            try:
                tree = encoding.decode([*symbols, *leaves[:place], NULL, *leaves[place + 1 :]])
                return (tree, Tree(OPEN_LABEL))
            except ArityMismatchError:
                continue
        raise


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: f"{encoding.traversal}-{encoding.binarization}")
@given(tree=symbol_trees(), data=st.data())
def test_partial_trees_are_whole_ones_with_leaves_at_their_open_nodes(encoding, tree, data):
    symbols = encoding.encode(tree)
    known = data.draw(st.integers(0, len(symbols)))
    partial = PartialTree.of(range(known), _Symbols(encoding, symbols))
    if known == len(symbols):
        assert partial.forest == (tree,) and partial.next is None
    else:
        assert partial.forest == filled(encoding, symbols[:known])
    nodes = [node for part in partial.forest for node in part.preorder()]
    assert partial.open == [place for place, node in enumerate(nodes) if node.label == OPEN_LABEL]
    if known < len(symbols):
        # The next symbol fills the node that is said to be next, unless it is <null>.
        label = encoding.split(symbols[known])[0]
        after = PartialTree.of(range(known + 1), _Symbols(encoding, symbols))
        if label != NULL:
            assert [node.label for part in after.forest for node in part.preorder()][partial.next] == label


class _Symbols:
    """A dictionary whose ids are places in a list of symbols."""

    def __init__(self, encoding: SymbolEncoding, symbols: list[str]):
        self.encoding, self.symbols = encoding, symbols

    def __getitem__(self, index: int) -> str:
        return self.symbols[index]


@pytest.fixture(scope="module")
def searched(symbol_system):
    """The first sentences of the test set, the hypotheses of a search that nobody observes, and the views."""
    sentences = list(symbol_system.reader.read_split("test", 3))
    task, models = symbol_system.task, symbol_system.models
    generation = copy.deepcopy(symbol_system.interface.cfg.generation)
    generation.beam, generation.max_len_b = 3, 9
    alone = task.build_generator(models, generation)
    plain = [task.inference_step(alone, models, sentence.sample)[0] for sentence in sentences]
    return [(best, symbol_system.explain(sentence)) for best, sentence in zip(plain, sentences)]


def test_the_observer_changes_nothing(searched, symbol_system):
    for plain, output in searched:
        assert output.hypothesis == symbol_system.task.target_dictionary.string(plain[0]["tokens"])
        assert output.score == pytest.approx(float(plain[0]["score"]), abs=1e-3)


def test_the_steps_lead_from_an_open_root_to_the_result(searched, symbol_system):
    for plain, output in searched:
        steps = output.views["beam"]["steps"]
        assert output.views["beam"]["beam"] == 3
        assert steps[0] == {
            "hypotheses": [{**steps[0]["hypotheses"][0], "open": [0], "next": 0, "score": 0.0, "parent": -1}]
        }
        last = {tuple(found["tree"]["labels"]): found for found in steps[-1]["hypotheses"]}
        assert all(not found["open"] and not found["candidates"] for found in last.values())
        best = last[tuple(output.views["beam"]["result"]["labels"])]
        assert best["tree"] == output.views["beam"]["result"]
        # The score of the search is divided by the number of symbols, <null> among them.
        symbols = len(plain[0]["tokens"]) - 1
        assert best["score"] / symbols == pytest.approx(float(plain[0]["score"]), abs=1e-3)


def test_every_hypothesis_is_a_chosen_candidate_of_its_parent(searched):
    for _, output in searched:
        steps = output.views["beam"]["steps"]
        for before, step in zip(steps, steps[1:]):
            chosen = sum(candidate["chosen"] for found in before["hypotheses"] for candidate in found["candidates"])
            waiting = sum(not found["candidates"] for found in before["hypotheses"])
            assert chosen + waiting >= len(step["hypotheses"]) >= 1
            for found in step["hypotheses"]:
                parent = before["hypotheses"][found["parent"]]
                if not parent["candidates"]:
                    assert found["tree"] == parent["tree"] and found["score"] == parent["score"]
                    continue
                costs = [
                    round(parent["score"] + math.log(max(candidate["probability"], 1e-9)), 1)
                    for candidate in parent["candidates"]
                    if candidate["chosen"] and candidate["legal"]
                ]
                assert any(cost == pytest.approx(found["score"], abs=0.3) for cost in costs)


def test_illegal_symbols_are_shown_with_their_reasons(searched):
    reasons = {
        candidate["why"]
        for _, output in searched
        for step in output.views["beam"]["steps"]
        for found in step["hypotheses"]
        for candidate in found["candidates"]
        if not candidate["legal"]
    }
    assert any("not a symbol of trees" in why for why in reasons)
    assert "the grammar does not have it here" in reasons
    assert "" not in reasons
    for _, output in searched:
        for step in output.views["beam"]["steps"]:
            for found in step["hypotheses"]:
                assert all(candidate["legal"] == (candidate["why"] == "") for candidate in found["candidates"])
                assert not any(candidate["chosen"] and not candidate["legal"] for candidate in found["candidates"])


def test_reasons_name_lengths_and_siblings_without_a_grammar(symbol_data):
    model = untrained(symbol_data, "structural_translation", "tree_positional_transformer_tiny")
    system = System(model, beam=2, max_len_b=4)
    system.methods[0].observer.most = len(system.task.target_dictionary)
    [sentence] = system.reader.read_split("test", 1)
    steps = system.explain(sentence).views["beam"]["steps"]
    reasons = {
        (step, candidate["symbol"]): candidate["why"]
        for step, shown in enumerate(steps)
        for found in shown["hypotheses"]
        for candidate in found["candidates"]
    }
    assert reasons[0, NULL] == "the root cannot be missing"
    assert reasons[0, "count^2"] == "" and reasons[0, "</s>"].startswith("not a symbol of trees; 1 open node needs")
    assert any(why in reasons.values() for why in ("only a next sibling can be missing", "the root has no siblings"))
    assert reasons[0, "<unk:1>"] == "a sibling follows it, and the root has no siblings"
    assert any(why.startswith("needs ") and why.endswith((" is left", " are left")) for why in reasons.values())


def test_steps_are_kept_for_one_sentence_at_a_time(symbol_system):
    symbol_system.reader.open_split("test")
    dataset = symbol_system.task.dataset("test")
    batch = dataset.collater([dataset[0], dataset[1]])
    symbol_system.methods[0].begin()
    with pytest.raises(StructuralSearchError, match="one sentence at a time"):
        symbol_system.task.inference_step(symbol_system.generator, symbol_system.models, batch)


def without(record: dict, places: list[int]) -> Tree:
    """A tree without some of its nodes, whose children take their places."""

    def build(place: int) -> tuple[list[Tree], int]:
        after, below = place + 1, []
        for _ in range(record["children"][place]):
            own, after = build(after)
            below += own
        return (below if place in places else [Tree(record["labels"][place], below)]), after

    return build(0)[0][0]


def test_insertions_grow_from_the_root_to_the_hypothesis(insertion_system):
    for sentence in insertion_system.reader.read_split("test", 2):
        output = insertion_system.explain(sentence)
        steps = output.views["insertion"]["steps"]
        assert steps[0]["tree"] == {"labels": ["@R@"], "children": [0]} and steps[0]["inserted"] == []
        final = tree_from_preorder(steps[-1]["tree"]["labels"], steps[-1]["tree"]["children"])
        written = insertion_system.task.target_dictionary.notation
        shown = final.children[0] if len(final.children) == 1 else final
        assert output.hypothesis == written.write(shown)
        for before, step in zip(steps, steps[1:]):
            wanted = sum(slot["predictions"][0]["symbol"] != NOTHING for slot in before["slots"])
            assert len(step["inserted"]) == wanted
            assert tree_record((without(step["tree"], step["inserted"]),)) == before["tree"]


def test_slots_have_kinds_and_probabilities(insertion_system):
    [sentence] = insertion_system.reader.read_split("test", 1)
    views = insertion_system.explain(sentence).views
    for step in views["insertion"]["steps"]:
        for slot in step["slots"]:
            assert 0 <= slot["node"] < len(step["tree"]["labels"])
            assert slot["kind"] in ("descendant", "ancestor", "first child", "next sibling")
            shares = [prediction["probability"] for prediction in slot["predictions"]]
            assert len(shares) == 3 and shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1
    rows = views["cross_attention"]["rows"]
    assert rows == views["insertion"]["steps"][-1]["tree"]["labels"]
