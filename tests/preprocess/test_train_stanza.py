"""The bundled parser: how it is trained, how it is scored, and that what is bundled is good."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from preprocess import train_stanza
from preprocess.english_german.__main__ import pairs
from tree_fairseq.trees.bracket import read_tree

BUNDLED = Path(__file__).resolve().parents[2] / "examples/quickstart/stanza-en"
MODELS = ("constituency.pt", "tagger.pt", "pretrain.pt")
GOLD_TEXT = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ barks))))"
GOLD = read_tree(GOLD_TEXT)


def test_score_counts_labels_and_spans():
    assert train_stanza.score([(GOLD, GOLD)]) == 1.0
    other = read_tree("(ROOT (S (NP (DT the)) (VP (NN dog) (VBZ barks))))")
    # S is right, NP and VP span something else: one of three on either side.
    assert train_stanza.score([(GOLD, other)]) == pytest.approx(1 / 3)
    assert train_stanza.score([(GOLD, GOLD), (GOLD, other)]) == pytest.approx(2 / 3)
    assert train_stanza.score([(GOLD, read_tree("(ROOT (X the) (X dog) (X barks))"))]) == 0.0


def test_evaluator_has_what_stanza_reads():
    result = SimpleNamespace(gold=GOLD_TEXT, predictions=[SimpleNamespace(tree=GOLD_TEXT)])
    with train_stanza.PythonEvaluator(kbest=None) as evaluator:
        response = evaluator.process([result, result])
    assert response.f1 == 1.0 and response.treeF1 == [1.0, 1.0]
    assert response.HasField("f1") and not response.HasField("kbestF1")


def test_tags_stand_in_both_columns():
    rows = [line.split("\t") for line in train_stanza.conllu([GOLD]).splitlines() if line]
    tagged = [("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]
    assert [(row[1], row[3], row[4]) for row in rows] == [(word, tag, tag) for word, tag in tagged]
    assert train_stanza.conllu([GOLD, GOLD]).count("\n\n") == 2


def test_cooccurrences_by_hand():
    words, counts = train_stanza.cooccurrences([["a", "b", "c"], ["a", "b"]], window=1)
    assert words == ["a", "b", "c"]
    assert counts.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]


def test_word_vectors_are_deterministic_and_know_neighbours(tmp_path):
    sentences = [tree.leaves() for tree, _ in islice(pairs(seed=5, max_length=20), 1500)]
    words, matrix = train_stanza.vectors(sentences, dimensions=16)
    again = train_stanza.vectors(sentences, dimensions=16)
    assert words == again[0] and np.array_equal(matrix, again[1])
    assert matrix.shape == (len(words), 16) and matrix.dtype == np.float32
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    similar = lambda first, second: float(unit[words.index(first)] @ unit[words.index(second)])
    assert similar("will", "can") > similar("will", "king")
    train_stanza.write_vectors(tmp_path / "vectors.txt", words, matrix)
    header, first, *_ = (tmp_path / "vectors.txt").read_text(encoding="utf-8").splitlines()
    assert header == f"{len(words)} 16" and first.split()[0] == words[0] and len(first.split()) == 17


def test_slim_drops_optimizers_and_paths(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    for name in MODELS:
        config = {"save_dir": "/home/somebody/x", "hidden": 3, "retag_package": None}
        config["wordvec_pretrain_file"] = "/home/somebody/pretrain.pt"
        params = {"config": config, "model": {"weight": torch.ones(2)}}
        torch.save({"params": params, "optimizer_state_dict": {"state": torch.ones(9999)}}, whole / name)
    size = train_stanza.slim(whole, tmp_path / "out")
    assert size < 3 * 9999 * 4
    saved = torch.load(tmp_path / "out/constituency.pt", weights_only=True)
    assert "somebody" not in repr(saved) and "optimizer_state_dict" not in saved
    config = saved["params"]["config"]
    assert (config["hidden"], config["retag_package"], config["retag_method"]) == (3, "default", "xpos")
    assert torch.equal(saved["params"]["model"]["weight"], torch.ones(2))


def test_bundled_model_is_small_and_harmless_to_load():
    assert sum((BUNDLED / name).stat().st_size for name in MODELS) < 2_000_000
    for name in MODELS:
        saved = torch.load(BUNDLED / name, map_location="cpu", weights_only=True)
        assert "optimizer_state_dict" not in saved
        assert b"/tmp" not in (BUNDLED / name).read_bytes() and b"/home" not in (BUNDLED / name).read_bytes()


def test_bundled_model_parses_unseen_sentences_with_its_own_tags():
    # Not the seed of its training; the corpus of the quickstart has seed 1 and is unseen too.
    trees_ = [tree for tree, _ in islice(pairs(seed=77, max_length=24), 150)]
    assert train_stanza.evaluate(BUNDLED, trees_) > 0.9
