"""Inputs that a model does not read, such as the trees of a stock architecture, are dropped."""

from collections.abc import Collection
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import EnsembleModel, EnsembleModelWithAlignment
from torch import nn
from torch.nn import functional


def trees_read(model) -> tuple[str, ...]:
    """Returns the names of the trees in ``net_input`` that a model, or its class, reads; fairseq's models read none."""
    return getattr(model, "tree_inputs", ())


def drop_trees(model: nn.Module, names: Collection[str]) -> None:
    """Drops the named trees from the ``net_input`` of a model that does not read them.

    A stock architecture can then train on a folder with trees, and join an ensemble of models that read them
    (:class:`TreeEnsemble`).
    """
    model.unread_trees = frozenset(names)
    model.register_forward_pre_hook(lambda module, args, kwargs: (args, inputs_read(module, kwargs)), with_kwargs=True)


def end_sources(model: nn.Module, dictionary: Dictionary) -> None:
    """Gives a model of another task the sources that it was trained on, which end with EOS even if they are trees."""
    model.source_end = (dictionary.eos(), dictionary.pad())


def inputs_read(model: nn.Module, inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns the inputs as a model reads them: without :func:`drop_trees`' trees, with the end of :func:`end_sources`.

    Sources are ``[B, N]``, padded on either side.
    """
    unread = getattr(model, "unread_trees", ())
    read = {name: value for name, value in inputs.items() if name not in unread}
    if hasattr(model, "source_end"):
        tokens, (eos, pad) = read["src_tokens"], model.source_end
        after = (torch.arange(1, 1 + tokens.size(1), device=tokens.device) * tokens.ne(pad)).amax(1, keepdim=True)
        read["src_tokens"] = functional.pad(tokens, (0, 1), value=pad).scatter(1, after, eos)
        read["src_lengths"] = read["src_lengths"] + 1
    return read


class TreeEnsemble(EnsembleModel):
    """fairseq's ensemble; it calls the encoders past the hooks of torch, so it drops their unread trees itself."""

    def forward_encoder(self, net_input: dict[str, Any]) -> Optional[list[dict]]:
        """Encodes a batch by each model; None if the models have no encoder."""
        if not self.has_encoder():
            return None
        return [model.encoder.forward_torchscript(inputs_read(model, net_input)) for model in self.models]


class AlignedTreeEnsemble(TreeEnsemble, EnsembleModelWithAlignment):
    """An ensemble that drops unread trees, for a generator with ``--print-alignment``."""
