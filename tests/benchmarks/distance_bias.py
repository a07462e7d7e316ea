"""Compares attention with a bias by distance on long texts with PyTorch's attention and a lookup for each pair."""

from __future__ import annotations

from typing import Any, Callable

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional

from tests.benchmarks.figures import byte_ratio, time_ratio
from tests.benchmarks.measuring import Settings, keep_freed_memory, peak_bytes, side_by_side
from tests.benchmarks.reporting import PEAK_NOTE, TIME_HEADINGS, Report, megabytes, memory_note, time_cells
from tree_fairseq.nn.distance_bias import DistanceAttention, DistanceBiasConfig
from tree_fairseq.nn.distances import BiasRows, linear_distances
from tree_fairseq.nn.shared_memory import join_heads, split_heads

BATCH, TOKENS, WIDTH, HEADS, LIMIT = 5, 700, 64, 4, 16
NAMES = {
    "blocks": "blocks of queries",
    "pairs": "PyTorch's attention, a lookup for each pair",
    "stock": "fairseq's attention, without a bias",
}


class PairwiseAttention(DistanceAttention):
    """The same attention with a bias that is looked up for each pair of tokens."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor, **unread: Any
    ) -> tuple[Tensor, None]:
        """Attends within texts ``[N, B, D]``."""
        heads = [split_heads(project(query), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)]
        place = torch.arange(len(query))
        distances = (place - place[:, None]).abs().clamp(max=LIMIT)
        bias = functional.embedding(distances, self.distance_bias.linear).permute(2, 0, 1)  # H x N x N
        bias = bias.unsqueeze(0).masked_fill(key_padding_mask[:, None, None], float("-inf"))
        return self.out_proj(join_heads(functional.scaled_dot_product_attention(*heads, bias))), None


def candidates(size: int, tokens: int) -> dict[str, Callable[[], list[Tensor]]]:
    """Forward and backward pass on ``size`` texts, the last a tenth shorter; each returns its gradients."""
    torch.manual_seed(0)
    config = DistanceBiasConfig(distance_bias="linear", max_distance=LIMIT)
    ours, stock = DistanceAttention(WIDTH, HEADS, config), MultiheadAttention(WIDTH, HEADS, self_attention=True)
    pairwise = PairwiseAttention(WIDTH, HEADS, config)
    with torch.no_grad():
        ours.distance_bias.linear.normal_()
    pairwise.load_state_dict(ours.state_dict())
    states, gradient = (torch.randn(tokens, size, WIDTH) for _ in range(2))
    states.requires_grad_()
    padding = torch.zeros(size, tokens, dtype=torch.bool)
    padding[-1, tokens - tokens // 10 :] = True

    def step(attention: MultiheadAttention) -> list[Tensor]:
        output, _ = attention(states, states, states, key_padding_mask=padding, need_weights=False)
        return list(torch.autograd.grad(output, [states, *attention.parameters()], gradient))

    def blocks() -> list[Tensor]:
        ours.distance_bias.given = BiasRows(linear_distances(tokens, LIMIT, False, states.device))
        return step(ours)

    return {"blocks": blocks, "pairs": lambda: step(pairwise), "stock": lambda: step(stock)}


def run(settings: Settings) -> Report:
    """Measures speed and memory."""
    size, tokens = settings.choose((BATCH, TOKENS), (2, 12))
    works = candidates(size, tokens)
    memory = {name: peak_bytes(work) for name, work in works.items()}
    kept = keep_freed_memory(settings)
    timing = side_by_side(works, settings.choose(9, 2), warm_up=2)
    rows = [("forward + backward", *TIME_HEADINGS, "peak MB")]
    rows += [(label, *time_cells(timing[name]), megabytes(memory[name])) for name, label in NAMES.items()]
    figures = [
        time_ratio(
            "speedup",
            timing["blocks"],
            timing["pairs"],
            1.5,
            what="a bias by distance on long texts, times as fast as PyTorch's attention with it",
            processor=True,
        ),
        byte_ratio("memory_saving", memory["blocks"], memory["pairs"], 2, what="the same, times less memory"),
    ]
    return Report(
        "distance_bias",
        f"{size} texts of {tokens} tokens, d={WIDTH}, {HEADS} heads",
        figures,
        [rows],
        [PEAK_NOTE + memory_note(kept)],
    )
