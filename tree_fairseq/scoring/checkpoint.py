"""What a table of results tells of a checkpoint."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from tree_fairseq.average import load_state


def parameter_count(model: dict[str, torch.Tensor]) -> int:
    """Parameters of a saved model, tied matrices counted once.

    Tied matrices are saved under several names, from a GPU as separate copies: equal content is what tells them.
    """
    counts = {}
    for name, tensor in model.items():
        if name.rsplit(".", 1)[-1] in ("version", "_float_tensor"):
            continue  # markers of fairseq's modules
        tied = tensor.dim() > 1
        key = hashlib.sha256(tensor.float().contiguous().numpy()).digest() if tied else name
        counts[key] = tensor.numel()
    return sum(counts.values())


def checkpoint_facts(path: Path) -> dict:
    """SHA-256, parameters, updates, seconds of training."""
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    state = load_state(path)
    history = state.get("optimizer_history") or [{}]
    extra = state.get("extra_state") or {}
    return {
        "sha256": digest,
        "parameters": parameter_count(state["model"]),
        "updates": history[-1].get("num_updates"),
        "training_seconds": extra.get("previous_training_time"),
    }
