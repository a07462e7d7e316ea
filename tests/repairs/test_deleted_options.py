"""Checkpoints with options of earlier versions load."""

from __future__ import annotations

from omegaconf import OmegaConf

from tree_fairseq.repairs.checkpoint_loading import drop_deleted_options


def state_of(model: dict, task: dict, criterion: dict) -> dict:
    return {"cfg": OmegaConf.create({"model": model, "task": task, "criterion": criterion})}


def test_options_that_no_part_reads_are_dropped_and_others_stay():
    state = state_of(
        {"_name": "tree_to_tree_lstm", "hidden_size": 7, "embedding_init_scale": 0.1},
        {"_name": "tree_insertion", "deletion": False, "wrong_nodes": 0.1, "trajectories": 9, "rerank_path": "left.pt"},
        {"_name": "rdrop_cross_entropy", "rdrop_alpha": 5.0, "label_smoothing": 0.1},
    )
    drop_deleted_options(state)
    assert state["cfg"].model == {"_name": "tree_to_tree_lstm", "hidden_size": 7}
    assert state["cfg"].task == {"_name": "tree_insertion", "trajectories": 9}
    assert state["cfg"].criterion == {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1}


def test_a_state_without_settings_stays_as_it_is():
    for state in ({}, {"cfg": None}):
        drop_deleted_options(state)
