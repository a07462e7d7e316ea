"""``--retain-dropout`` drops attention weights in generation, in the attention of this package as in fairseq's."""

from __future__ import annotations

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig

from tests.nn.tiny import build, net_input, pairs, tiny_task
from tree_fairseq.nn import extended_transformer  # noqa: F401  (registers the architectures)
from tree_fairseq.treeformer import model  # noqa: F401

ONLY_WEIGHTS = ("--dropout", "0", "--activation-dropout", "0", "--attention-dropout", "0.5")


@pytest.mark.parametrize("attention", ["encoder.layers.0.self_attn", "decoder.layers.0.encoder_attn"])
@pytest.mark.parametrize("arch", ["tree_transformer_tiny", "treeformer_tiny", "transformer_distance_bias_tiny"])
@pytest.mark.parametrize("retain", [False, True])
@torch.no_grad()
def test_attention_weights_are_dropped_in_generation_if_asked(arch, attention, retain):
    task, config, calls = tiny_task(), FairseqConfig(), []
    config.generation.retain_dropout = retain
    built = build(task, *ONLY_WEIGHTS, arch=arch)
    built.prepare_for_inference_(config)
    inputs = net_input(pairs(task, 7, 5))
    if arch != "tree_transformer_tiny":
        del inputs["source_spans"]
    module = built.get_submodule(attention)
    hook = module.register_forward_pre_hook(lambda _, *call: calls.append(call), with_kwargs=True)
    built(**inputs)
    hook.remove()
    [(args, kwargs)] = calls
    first, second = (module(*args, **kwargs)[0] for _ in range(2))
    assert torch.equal(first, second) is not retain
