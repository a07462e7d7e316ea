"""How long the encoder of a trained model takes, by the length of sentences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble

import tree_fairseq  # noqa: F401  registers the models
from tree_fairseq.compat import allow_checkpoint_classes

SENTENCES = 32
"""Of a batch."""
REPETITIONS = 5


def load_encoder(checkpoint: Path) -> torch.nn.Module:
    """The encoder of a checkpoint in evaluation mode, on the GPU where there is one."""
    allow_checkpoint_classes()
    (model,), _ = load_model_ensemble([str(checkpoint)])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.encoder.eval().to(device)


@torch.inference_mode()
def milliseconds(encoder: torch.nn.Module, lengths: Sequence[int]) -> dict[int, float]:
    """Milliseconds for a sentence of each length: the fastest of several batches of random words, which other work
    disturbs least.
    """
    device, words = next(encoder.parameters()).device, encoder.embed_tokens.num_embeddings
    found = {}
    for length in lengths:
        tokens = torch.randint(min(10, words - 1), words, (SENTENCES, length), device=device)
        tokens[:, -1] = encoder.dictionary.eos()
        lengths_of = torch.full((SENTENCES,), length, device=device)
        times = [_seconds(encoder, tokens, lengths_of) for _ in range(1 + REPETITIONS)][1:]
        found[length] = 1000 * min(times) / SENTENCES
    return found


def _seconds(encoder: torch.nn.Module, tokens: torch.Tensor, lengths: torch.Tensor) -> float:
    """Of one batch, waiting for the GPU where there is one."""
    _wait(tokens)
    begin = time.perf_counter()
    encoder(tokens, src_lengths=lengths)
    _wait(tokens)
    return time.perf_counter() - begin


def _wait(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()
