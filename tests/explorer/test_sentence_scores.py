"""The metrics of single sentences."""

from __future__ import annotations

import pytest
import sacrebleu

from tree_fairseq.explorer.sentence_scores import metric_of


def test_text_has_sentence_bleu(tree_system):
    metric = metric_of(tree_system.task, tree_system.dictionary)
    ours, theirs = "der alte Mann schläft .", "der alte Hund schläft ."
    expected = sacrebleu.sentence_bleu(ours, [theirs], use_effective_order=True).score
    assert metric.name == "sentence BLEU"
    assert metric.compare(ours, [], theirs, []) == pytest.approx(expected, abs=0.006)
    assert metric.compare(theirs, [], theirs, []) == 100


@pytest.mark.parametrize("name", ["symbol_system", "insertion_system"])
def test_trees_match_or_not(request, name):
    system = request.getfixturevalue(name)
    metric = metric_of(system.task, system.dictionary)
    first, *others = [sentence.target for sentence in system.reader.read_split("test", 6)]
    different = next(other for other in others if other != first)
    assert metric.name == "exact match"
    assert metric.compare("", first, "", first) == 100
    assert metric.compare("", different, "", first) == 0
    assert metric.compare("", first[:1] * 2, "", first) == 0


def test_classes_are_right_or_not(class_system):
    metric = metric_of(class_system.task, class_system.dictionary)
    assert (metric.name, metric.compare("1", [], "1", []), metric.compare("0", [], "1", [])) == ("right class", 100, 0)
