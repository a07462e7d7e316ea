"""Unknown words of a translation are replaced by the words to which they are aligned."""

from __future__ import annotations

import pytest
import torch
from fairseq import utils
from fairseq.data import Dictionary

import tree_fairseq  # noqa: F401  (importing it mends fairseq)
from tree_fairseq.repairs import compat
from tree_fairseq.repairs.compat import replace_unknown_words

SOURCE = ["the", "Xanadu", "sleeps"]
HARD = [(0, 0), (2, 1), (1, 2)]  # source, target
SOFT = [["0.8", "0.1", "0.1"], ["0.1", "0.2", "0.7"], ["0.1", "0.6", "0.3"]]


@pytest.mark.parametrize("alignment", [HARD, SOFT, list(reversed(HARD))])
def test_an_unknown_word_is_replaced_by_a_copy_or_a_translation(alignment):
    words = ["der", "<unk>", "<unk>"]
    assert replace_unknown_words(words, SOURCE, alignment, {}, "<unk>") == ["der", "sleeps", "Xanadu"]
    assert replace_unknown_words(words, SOURCE, alignment, {"sleeps": "schläft"}, "<unk>") == [
        "der",
        "schläft",
        "Xanadu",
    ]


@pytest.mark.parametrize("alignment", [[], [(0, 0)], [(3, 1)]])
def test_a_word_without_alignment_stays(alignment):
    assert replace_unknown_words(["der", "<unk>"], SOURCE, alignment, {}, "<unk>") == ["der", "<unk>"]


def test_known_words_need_no_alignment():
    assert replace_unknown_words(["der", "Hund"], SOURCE, torch.empty(0), {}, "<unk>") == ["der", "Hund"]


def predict(tokens: str, align_dict, remove_bpe=None):
    target = Dictionary()
    for word in ("Leucht@@", "turm", "der"):
        target.add_symbol(word)
    ids = target.encode_line(tokens, add_if_not_exist=False).long()
    return utils.post_process_prediction(ids, "the Xanadu sleeps", HARD, align_dict, target, remove_bpe)


def test_alignments_refer_to_positions_before_subwords_are_joined():
    _, text, _ = predict("Leucht@@ turm zzz", {}, remove_bpe="subword_nmt")
    assert text == "Leuchtturm Xanadu"
    ids, text, alignment = predict("Leucht@@ turm zzz", {})
    assert text == "Leucht@@ turm Xanadu" and len(ids) == 4 and alignment == HARD


def test_without_the_flag_fairseq_is_unchanged():
    _, text, _ = predict("der zzz", None)
    assert text == "der <unk>"


def test_applying_the_change_twice_has_no_effect():
    before = utils.post_process_prediction
    compat.mend_fairseq()
    assert utils.post_process_prediction is before
