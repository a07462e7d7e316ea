"""Checkpoints with options of earlier versions: they load, unless such an option changes what the model computes."""

from __future__ import annotations

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from tree_fairseq.errors import CheckpointError
from tree_fairseq.repairs.checkpoint_loading import drop_deleted_options


def state_of(model: dict, task: dict, criterion: dict, as_namespace: bool = False) -> dict:
    """What fairseq makes of a checkpoint with these settings."""
    cfg = {"model": Namespace(**model) if as_namespace else model, "task": task, "criterion": criterion}
    return {"cfg": OmegaConf.create(cfg, flags={"allow_objects": True})}


def test_options_that_no_part_reads_are_dropped_and_others_stay():
    state = state_of(
        {"_name": "tree_to_tree_lstm", "hidden_size": 7, "embedding_init_scale": 0.1},
        {"_name": "tree_insertion", "deletion": False, "wrong_nodes": 0.1, "trajectories": 9, "rerank_path": "left.pt"},
        {"_name": "rdrop_cross_entropy", "rdrop_alpha": 5.0, "label_smoothing": 0.1},
    )
    drop_deleted_options(state, "old.pt")
    assert state["cfg"].model == {"_name": "tree_to_tree_lstm", "hidden_size": 7}
    assert state["cfg"].task == {"_name": "tree_insertion", "trajectories": 9}
    assert state["cfg"].criterion == {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1}


@pytest.mark.parametrize("as_namespace", [False, True])
@pytest.mark.parametrize(
    "option, off, on, flag",
    [
        ("treeformer_heads", 1, 4, "--treeformer-heads"),
        ("signed_distance", False, True, "--signed-distance"),
        ("deletion", False, True, "--deletion"),
        ("treeformer_within_sentences", False, True, "--treeformer-within-sentences"),
        ("document_root", "mean", "super", "--document-root"),
    ],
)
def test_an_option_that_changes_the_model_is_an_error(option, off, on, flag, as_namespace):
    def loaded(value):
        drop_deleted_options(
            state_of({"arch": "treeformer", option: value}, {"_name": "x"}, {"_name": "x"}, as_namespace), "old.pt"
        )

    loaded(off)
    with pytest.raises(CheckpointError, match=f"old.pt was trained with {flag} {on}, which this version does not have"):
        loaded(on)


def test_a_state_without_settings_stays_as_it_is():
    for state in ({}, {"cfg": None}):
        drop_deleted_options(state, "old.pt")
