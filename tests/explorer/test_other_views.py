"""Views of charts and of classes, against the models themselves and the trees that the data was made from."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.tiny_classes import preprocess, write_examples
from tests.explorer.untrained import matrix_values, untrained
from tree_fairseq.drawing.views import tree_record
from tree_fairseq.explorer.systems import System
from tree_fairseq.treeformer.induction import sentence_splits
from tree_fairseq.trees.bracket import read_tree
from tree_fairseq.trees.tree import Tree


def recursive(weights: dict[tuple[int, int], list[float]], leaves: list[str], start: int, end: int) -> Tree:
    """The tree of a phrase that is split at the point with the greatest weight."""
    if end - start == 1:
        return Tree("X", [Tree(leaves[start])])
    own = weights[start, end]
    middle = start + 1 + own.index(max(own))
    return Tree("X", [recursive(weights, leaves, start, middle), recursive(weights, leaves, middle, end)])


def test_a_chart_has_its_cells_its_splits_and_the_tree_that_they_induce(chart_system):
    sentence = chart_system.reader.read_line("she sees it .")
    view = chart_system.explain(sentence).views["chart"]
    assert view["tokens"] == ["she", "sees", "it", ".", "</s>"] and view["height"] == 4
    expected = [[start, start + size] for size in range(1, 5) for start in range(5 - size + 1)]
    assert view["cells"] == expected
    longer = [tuple(cell) for cell in view["cells"] if cell[1] - cell[0] >= 2]
    weights = dict(zip(longer, view["split_weights"]))
    assert len(weights) == len(view["split_weights"])
    for (start, end), own in weights.items():
        assert len(own) == end - start - 1 and sum(own) == pytest.approx(1, abs=0.003)
    encoder, source = chart_system.models[0].encoder, sentence.sample["net_input"]["src_tokens"]
    [splits] = sentence_splits([encoder], source, encoder.dictionary.pad())
    assert weights[0, 4] == pytest.approx(splits.weights(0, 4).tolist(), abs=0.0006)
    # Weights are rounded; these splits are not ties.
    assert view["tree"] == tree_record((recursive(weights, view["tokens"], 0, 4),))


def test_attention_to_phrases_is_that_of_the_last_layer(chart_system):
    sentence = chart_system.reader.read_line("she sees it .")
    views = chart_system.explain(sentence).views
    shown = matrix_values(views["chart"]["phrase_attention"])
    assert views["chart"]["rows"] == views["cross_attention"]["rows"]
    assert shown.shape == (len(views["chart"]["rows"]), len(views["chart"]["cells"]))
    columns = [[column["start"], column["end"]] for column in views["cross_attention"]["columns"]]
    places = [views["chart"]["cells"].index(column) for column in columns]
    last = matrix_values(views["cross_attention"]["weights"])[-1]
    assert shown[:, places] == pytest.approx(last, abs=0.01)


def test_classes_have_probabilities_and_nodes_their_own(class_system, class_trees):
    lines = (class_trees / "test.trees").read_text(encoding="utf-8").splitlines()
    for sentence, line in zip(class_system.reader.read_split("test", 4), lines):
        output = class_system.explain(sentence)
        view = output.views["classification"]
        with torch.no_grad():
            logits = class_system.models[0](**sentence.sample["net_input"])["logits"][0]
        assert view["classes"] == ["0", "1"]
        assert view["probabilities"] == pytest.approx(logits.softmax(0).tolist(), abs=1e-4)
        assert output.hypothesis == view["classes"][int(logits.argmax())]
        # The words and the shape of the parse are those of the line, so its labels are the classes by place.
        tree = read_tree(line)
        record = tree_record(sentence.forest)
        assert record["children"] == tree_record((tree,))["children"]
        gold = {place: node.label for place, node in enumerate(tree.preorder()) if node.children}
        assert {node["index"]: node["gold"] or "-" for node in view["nodes"]} == gold
        assert {node["predicted"] for node in view["nodes"]} <= {"0", "1"}


def test_new_sentences_have_no_right_classes(class_system):
    view = class_system.explain(class_system.reader.read_line("a good film")).views["classification"]
    assert view["nodes"] and all(node["gold"] is None for node in view["nodes"])


def test_without_classes_of_nodes_there_are_none(class_data):
    flags = "--label-nodes", "root"
    system = System(untrained(class_data, "tree_classification", "tree_transformer_classifier_tiny", *flags))
    assert system.explain(next(system.reader.read_split("test"))).views["classification"]["nodes"] is None


@pytest.fixture(scope="module")
def document_data(tmp_path_factory):
    """Texts of several sentences, parsed to branch to the right."""
    folder = tmp_path_factory.mktemp("documents")
    return preprocess(write_examples(folder / "text", "documents"), "documents", folder / "bin")


@pytest.mark.parametrize("attention", ["sentence", "document"])
def test_documents_show_the_nodes_of_all_sentences(document_data, attention):
    flags = "--leaf-attention", attention
    system = System(untrained(document_data, "tree_classification", "tree_transformer_classifier_tiny", *flags))
    sentence = system.reader.read_line("it is good . the plot is dull .")
    assert len(sentence.forest) == 2 and sentence.depth == 5
    views = system.explain(sentence).views
    assert views["classification"]["nodes"] is None
    if attention == "document":
        # Rows hold several sentences then, and no view shows them.
        assert "accumulation" not in views
        return
    nodes = [(node["start"], node["end"], node["parent"]) for node in views["accumulation"]["nodes"]]
    assert nodes == [(0, 4, -1), (1, 4, 0), (2, 4, 1), (4, 9, -1), (5, 9, 3), (6, 9, 4), (7, 9, 5)]
    weights = matrix_values(views["accumulation"]["weights"])  # layer, node, item
    for number, (start, end, _) in enumerate(nodes):
        below = [9 + place for place, node in enumerate(nodes) if start <= node[0] and node[1] <= end]
        items = {*range(start, end), *below}
        assert weights[:, number].sum(1) == pytest.approx(1, abs=0.04)
        assert not any(weights[:, number, item].any() for item in set(range(16)) - items)
