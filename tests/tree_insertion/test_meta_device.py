"""A training step waits for no tensor: it runs on the meta device, which has shapes but no values."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from fairseq import utils

from tests.tree_insertion.insertion_pairs import Examples, build_insertion, insertion_task
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence
from tree_fairseq.tree_insertion.decoder import DecoderMemory

PARTS = ("keys", "values", "padding")


def on_meta(sample):
    return utils.apply_to_sample(lambda values: values.to("meta"), sample)


@pytest.mark.parametrize(
    "flags", [(), ("--no-child-relations",), ("--absolute-positions",)], ids=["relations", "no children", "absolute"]
)
def test_the_decoder_and_its_loss_run_without_values(flags):
    model = build_insertion(*flags, deletion=True).train()
    inputs = Examples(7, 3, 12).net_input()
    partial = inputs.pop("partial_tree")
    memory = model.encode(**inputs)  # fairseq's encoder asks whether there is padding
    held = DecoderMemory(
        tuple(
            dataclasses.replace(layer, **on_meta({name: getattr(layer, name).detach() for name in PARTS}))
            for layer in memory.layers
        )
    )
    model.decoder.to("meta")
    model.forward = lambda partial_tree: model.decode(held, partial_tree)
    target = {"slot": partial["slots"], "label": partial["slots"] % 9, "probability": torch.ones(len(partial["slots"]))}
    sample = on_meta(
        {"net_input": {"partial_tree": partial}, "slot_target": target, "delete": torch.zeros_like(partial["labels"])}
    )
    criterion = SlotKlDivergence(SimpleNamespace(target_dictionary=insertion_task().target_dictionary))
    loss, _, logged = criterion(model, {**sample, "nsentences": 3, "ntokens": len(partial["slots"])})
    loss.backward()
    assert loss.is_meta and logged["right"].is_meta
    assert all(parameter.grad is not None and parameter.grad.is_meta for parameter in model.decoder.parameters())
