"""Small models and random sentences with trees, without a folder or a task behind them."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Callable

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch.nn import functional

from tree_fairseq.nn.modalities import CONSTITUENCY, Side
from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees
from tree_fairseq.tree_transformer import model  # noqa: F401  (registers the architectures)

PAD, EOS = 1, 2


def dictionary(*symbols: str) -> Dictionary:
    made = Dictionary()
    for symbol in symbols:
        made.add_symbol(symbol)
    return made


def tiny_task(words: int = 20, labels: int = 6, joined: bool = False) -> SimpleNamespace:
    """The attributes of a task that a model reads: three dictionaries."""
    source = dictionary(*(f"s{k}" for k in range(words)))
    target = source if joined else dictionary(*(f"t{k}" for k in range(words + 3)))
    names = dictionary(*(f"L{k}" for k in range(labels)))
    return SimpleNamespace(
        source_dictionary=source,
        target_dictionary=target,
        label_dictionary=names,
        source_side=Side(CONSTITUENCY, labels=names),
    )


def arguments(arch: str, *flags: str) -> argparse.Namespace:
    """The namespace that fairseq's command line makes of an architecture and flags."""
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=False)
    ARCH_MODEL_REGISTRY[arch].add_args(parser)
    args = parser.parse_args(flags)
    args.arch = arch
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def build(task, *flags: str, arch: str = "tree_transformer_tiny", seed: int = 0):
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[arch].build_model(arguments(arch, *flags), task).eval()


def logits(model, inputs: dict) -> torch.Tensor:
    with torch.no_grad():
        return model(**inputs)[0]


def last_loss(model, loss_of: Callable[[], torch.Tensor], updates: int, rate: float) -> torch.Tensor:
    """Trains a model by Adam; ``loss_of`` makes the loss of an update."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(updates):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def cross_entropy(model, inputs: dict, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(**inputs)[0].flatten(0, 1), target.flatten(), ignore_index=PAD)


@contextlib.contextmanager
def kept_storages() -> Iterator[dict[int, int]]:
    """The bytes of each storage that a forward pass keeps for the backward pass, by address."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept


def sizes_of(arch: str, normalize_before: bool = False) -> tuple[int, ...]:
    """Layers, width, feed-forward width and heads, which have to be the same in encoder and decoder."""
    args = arguments(arch)
    names = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    encoder, decoder = (tuple(getattr(args, f"{side}_{name}") for name in names) for side in ("encoder", "decoder"))
    assert encoder == decoder
    assert args.encoder_normalize_before == args.decoder_normalize_before == normalize_before
    return encoder


def takes_stock_weights(model, stock, is_new, caplog) -> None:
    """A stock transformer's weights load; the new weights stay as they are, and they alone are named in the log."""
    initial = {name: weight.clone() for name, weight in model.state_dict().items()}
    with caplog.at_level(logging.INFO, logger="tree_fairseq"):
        model.load_state_dict(stock.state_dict())
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, initial[name] if is_new(name) else stock.state_dict()[name]), name
        assert is_new(name) == (name in caplog.text), name


def stock_flags() -> list[str]:
    """The size of ``tree_transformer_tiny`` for fairseq's ``transformer``."""
    sizes = {"embed-dim": 64, "ffn-embed-dim": 128, "layers": 2, "attention-heads": 4}
    return [
        text
        for side in ("encoder", "decoder")
        for name, size in sizes.items()
        for text in (f"--{side}-{name}", str(size))
    ]


class Pair:
    """A sentence with a random tree, and a target."""

    def __init__(self, random: np.random.Generator, num_leaves: int, task):
        self.source = random.integers(4, len(task.source_dictionary), num_leaves)
        self.target = random.integers(4, len(task.target_dictionary), int(random.integers(2, 7)))
        self.tree = random_tree(random, num_leaves, len(task.label_dictionary))


def random_tree(random: np.random.Generator, num_leaves: int, num_labels: int) -> NodeArrays:
    """A tree of two or three children a node over ``num_leaves`` leaves."""
    rows, stack = [], [(0, num_leaves, 0)]
    while stack:
        start, end, depth = stack.pop()
        if end - start < 2:
            continue
        rows.append((random.integers(4, num_labels), start, end, depth))
        cuts = random.choice(
            np.arange(start + 1, end), size=min(end - start - 1, int(random.integers(1, 3))), replace=False
        )
        points = [start, *sorted(cuts), end]
        stack.extend((low, high, depth + 1) for low, high in reversed(list(zip(points, points[1:]))))
    return NodeArrays(*np.array(rows, np.int32).reshape(-1, 4).T)


def stack(sentences: list[np.ndarray], left_pad: bool, shift_eos: bool = False, width: int = 0) -> torch.Tensor:
    """``[B, N]`` int64: sentences with EOS, at the front where ``shift_eos``."""
    width = max(width, max(map(len, sentences)) + 1)
    tokens = torch.full((len(sentences), width), PAD)
    for row, sentence in enumerate(sentences):
        sentence = [EOS, *sentence] if shift_eos else [*sentence, EOS]
        first = width - len(sentence) if left_pad else 0
        tokens[row, first : first + len(sentence)] = torch.tensor(sentence)
    return tokens


def net_input(pairs: list[Pair], left_pad: bool = True, width: int = 0) -> dict:
    return {
        "src_tokens": stack([pair.source for pair in pairs], left_pad, width=width),
        "src_lengths": torch.tensor([len(pair.source) + 1 for pair in pairs]),
        "prev_output_tokens": stack([pair.target for pair in pairs], False, shift_eos=True),
        "source_spans": collate_trees([pair.tree for pair in pairs], PAD),
    }


def pairs(task, *lengths: int, seed: int = 0) -> list[Pair]:
    random = np.random.default_rng(seed)
    return [Pair(random, length, task) for length in lengths]
