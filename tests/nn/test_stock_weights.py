"""Models that add parts to fairseq's transformer start with its weights, and leave the chance after them as it is."""

from __future__ import annotations

import pytest
import torch

from tests.nn import tiny
from tree_fairseq.nn import extended_transformer  # noqa: F401  (registers the architectures)
from tree_fairseq.nn.stock_weights import built_aside, built_in_place
from tree_fairseq.treeformer import model as treeformer  # noqa: F401

OF_OURS = {
    "tree_transformer_tiny": (".accumulation.", "embed_labels", "phrase_bias", "distance_bias", "ancestor_bias"),
    "treeformer_tiny": (".chart.", "phrase_bias", "distance_bias"),
    "transformer_distance_bias_tiny": ("distance_bias",),
}


def drawn(task, *flags: str, arch: str) -> tuple[dict[str, torch.Tensor], float]:
    weights = tiny.build(task, *flags, arch=arch, seed=7).state_dict()
    return weights, torch.rand(()).item()


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("tree_transformer_tiny", ()),
        ("tree_transformer_tiny", ("--distance-bias", "both", "--leaves-to-ancestors", "--share-all-embeddings")),
        ("treeformer_tiny", ()),
        ("treeformer_tiny", ("--treeformer-composition-init", "random", "--distance-bias", "linear")),
        ("transformer_distance_bias_tiny", ("--distance-bias", "linear")),
    ],
)
def test_the_same_seed_gives_the_weights_of_the_stock_transformer(arch, flags):
    task = tiny.tiny_task(joined="--share-all-embeddings" in flags)
    shared = tuple(flag for flag in flags if flag == "--share-all-embeddings")
    stock, next_of_stock = drawn(task, *tiny.stock_flags(), *shared, arch="transformer")
    ours, next_of_ours = drawn(task, *flags, arch=arch)
    assert next_of_ours == next_of_stock
    assert set(stock) <= set(ours)
    for name, weight in stock.items():
        torch.testing.assert_close(ours[name], weight, rtol=0, atol=0)
    more = set(ours).difference(stock)
    assert more and all(any(part in name for part in OF_OURS[arch]) for name in more)


def test_what_is_built_aside_depends_on_the_seed():
    weights = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        weights.append(built_aside(lambda: torch.nn.Linear(3, 3)).weight)
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_a_part_in_place_of_a_stock_one_keeps_its_own_other_weights():
    stock = torch.nn.Linear(3, 3)
    part = built_in_place(stock, lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3)))
    assert torch.equal(part.bias, stock.bias) and not torch.equal(part.weight, stock.weight)
