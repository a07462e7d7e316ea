"""Lets models that read no trees run under a task whose batches have them."""

from __future__ import annotations

import functools

from torch import nn


def hide_trees(model: nn.Module) -> None:
    """Drops ``source_tree`` before a stock model sees it, in training and in generation.

    A stock architecture thereby trains on a folder with trees, and is a member of an ensemble with
    models that read them.
    """

    def drop_argument(module, args, kwargs):
        return args, {name: value for name, value in kwargs.items() if name != "source_tree"}

    model.register_forward_pre_hook(drop_argument, with_kwargs=True)
    # Generators call the encoder's entry point directly, past the hooks of torch.
    encode = model.encoder.forward_torchscript

    @functools.wraps(encode)
    def encode_without_trees(net_input):
        return encode({name: value for name, value in net_input.items() if name != "source_tree"})

    model.encoder.forward_torchscript = encode_without_trees
