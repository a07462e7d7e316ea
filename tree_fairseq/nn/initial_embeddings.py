"""Small initial embeddings: ``--embedding-init-scale`` for the models of this package and fairseq's own.

Tables of tokens, and of labels of trees, are multiplied when a model is made for training. With 0.1 a model begins
with positions and context, and learns words from there (Csordás, Irie & Schmidhuber 2021 found such scales to decide on
systematic generalisation).
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import models
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import MODEL_REGISTRY
from torch import nn

from tree_fairseq.errors import InputError
from tree_fairseq.nn.pretrained import PretrainedEncoder
from tree_fairseq.repairs.compat import wrap
from tree_fairseq.support.options import option, refuse_flags

logger = logging.getLogger(__name__)

STOCK = ("transformer", "lstm", "fconv", "lightconv")
"""fairseq's models that get the flag, and with them all architectures of theirs."""
_TABLES = ("embed_tokens", "embed_labels", "embed_arities", "embed_brackets")
_FLAG = "--embedding-init-scale"


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class InitialEmbeddingsConfig(FairseqDataclass):
    """The option of all models."""

    embedding_init_scale: float = option(
        1.0, "multiplies the random tables of tokens and of labels when a training begins; not those of a checkpoint"
    )


def add_flag(parser) -> None:
    """Adds the flag without a default, so that a model that is made without it has none."""
    gen_parser_from_dataclass(parser, InitialEmbeddingsConfig(), delete_default=True, with_prefix="")


def install() -> None:
    """Gives fairseq's models the flag, and lets it work for all models; a second call does nothing."""
    for name in STOCK:
        wrap(MODEL_REGISTRY[name], "add_args", _with_flag)
    wrap(models, "build_model", _with_scaled_embeddings)


def embedding_tables(model: nn.Module) -> Iterator[nn.Embedding]:
    """Yields the tables of tokens and labels, each once, and none of a pretrained encoder."""
    seen: set[int] = set()
    stack = [model]
    while stack:
        for name, module in stack.pop().named_children():
            if isinstance(module, PretrainedEncoder):
                continue
            if name in _TABLES and isinstance(module, nn.Embedding):
                if id(module.weight) not in seen:
                    seen.add(id(module.weight))
                    yield module
            else:
                stack.append(module)


@torch.no_grad()
def scale_embeddings(model: nn.Module, scale: float) -> None:
    """Multiplies all :func:`embedding_tables`; raises InputError if the model has none."""
    tables = list(embedding_tables(model))
    if not tables:
        raise InputError(f"{_FLAG}: {type(model).__name__} has no tables of tokens; leave it out")
    for table in tables:
        table.weight.mul_(scale)
    rows = sum(len(table.weight) for table in tables)
    logger.info("initial embeddings of %d tokens and labels multiplied by %g", rows, scale)


def _with_flag(add_args: Callable) -> Callable:
    def with_flag(parser) -> None:
        add_args(parser)
        add_flag(parser)

    return with_flag


def _with_scaled_embeddings(build: Callable) -> Callable:
    def build_model(cfg: Any, task: Any, from_checkpoint: bool = False):
        model = build(cfg, task, from_checkpoint)
        scale = getattr(cfg, "embedding_init_scale", 1.0)
        if not from_checkpoint and scale != 1:
            if not 0 < scale < float("inf"):
                raise InputError(f"{_FLAG} {scale}: give a number above 0, such as 0.1")
            paths = ("encoder_embed_path", "decoder_embed_path")
            given = {f"--{path.replace('_', '-')}": getattr(cfg, path, None) for path in paths}
            refuse_flags(given, f"{_FLAG}, which is for random vectors")
            scale_embeddings(model, scale)
        return model

    return build_model
