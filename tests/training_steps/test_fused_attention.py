"""Attention of training steps: a fused kernel can take it, and no mask has an element for each head, query and key."""

from __future__ import annotations

import pytest
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tests.training_steps.cases import CASES, FIRST, Step

# Where tables of relations, or fairseq's own cross-attention, need the weights.
OTHERS = (
    "tree_insertion",
    "sequence_insertion",
    "insertion_left",
    "source_encoder",
    "tree_positional",
    "distance_bias",
)
OWN = [case for case in FIRST if "tree" in case.arch and not case.arch.startswith(OTHERS)]
BIASED = [case for case in CASES if "--distance-bias" in case.flags]


class Attention(TorchFunctionMode):
    """Notes the arguments of fused attention, and the numbers of dimensions of what else a softmax is taken of."""

    def __init__(self):
        super().__init__()
        self.queries, self.masks, self.weights = [], [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is functional.scaled_dot_product_attention:
            named = dict(zip(("query", "key", "value", "attn_mask"), args), **(kwargs or {}))
            self.queries += [named[name] for name in ("query", "key", "value")]
            self.masks.append(named["attn_mask"])
        elif func is functional.softmax:
            self.weights.append(args[0].shape)
        return func(*args, **(kwargs or {}))


def attention_of(case, folders) -> Attention:
    step = Step(case, folders)
    with Attention() as found:
        step()
    return found


@pytest.mark.parametrize("case", OWN, ids=[case.name for case in OWN])
def test_a_step_keeps_no_attention_weights(case, folders):
    found = attention_of(case, folders)
    # Weights of heads have three dimensions in fairseq; those of charts and recurrent attention are others.
    assert not [shape for shape in found.weights if len(shape) == 3]
    assert all(part.stride(-1) == 1 for part in found.queries)
    for mask in found.masks:
        _, heads, queries, _ = mask.shape
        has_bias = case in BIASED and mask.requires_grad
        assert heads == 1 or queries == 1 or has_bias, mask.shape


@pytest.mark.parametrize("case", BIASED, ids=[case.name for case in BIASED])
def test_only_a_learned_bias_has_an_element_for_each_head_and_pair(case, folders):
    dense = [mask for mask in attention_of(case, folders).masks if mask.size(1) > 1 and mask.size(2) > 1]
    assert dense and all(mask.requires_grad for mask in dense)
