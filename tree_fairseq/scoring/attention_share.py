"""Measures how much of the decoder's cross-attention falls on tree nodes (Table 4 of Nguyen et al. 2020).

    python -m tree_fairseq.scoring attention data-bin --path checkpoint.pt --subset test

Under teacher forcing, every target token attends to the words, the EOS symbol and the nodes of the source. For each
decoder layer the table has the share of attention on nodes and the share of heads whose largest weight is on a node,
beside the share of nodes among words and nodes. EOS attracts attention but is neither phrase nor word, so shares are
given with it and without.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import checkpoint_utils, utils
from torch import Tensor, nn

import tree_fairseq
from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.files import write_json
from tree_fairseq.tree_transformer.attention import TreeCrossAttention

logger = logging.getLogger(__name__)


@dataclass
class LayerShare:
    """Sums over the target tokens and heads of one layer."""

    node_mass: float = 0.0
    end_mass: float = 0.0
    node_argmaxes: int = 0
    end_argmaxes: int = 0
    rows: int = 0

    def add(self, weights: Tensor, kinds: Tensor, real: Tensor) -> None:
        """Adds a batch.

        Args:
            weights: ``[H, B, T, S]``, each row sums to 1
            kinds: ``[B, S]``, 2 at nodes, 1 at EOS, 0 elsewhere
            real: ``[B, T]`` bool, target tokens without padding
        """
        rows = weights.permute(1, 2, 0, 3)[real]  # R x H x S
        row_kinds = kinds.unsqueeze(1).expand(-1, real.shape[1], -1)[real].unsqueeze(1)  # R x 1 x S
        best = row_kinds.expand_as(rows).gather(-1, rows.argmax(-1, keepdim=True))  # R x H x 1
        self.node_mass += rows.masked_fill(row_kinds != 2, 0).sum(dtype=torch.float64).item()
        self.end_mass += rows.masked_fill(row_kinds != 1, 0).sum(dtype=torch.float64).item()
        self.node_argmaxes += int((best == 2).sum())
        self.end_argmaxes += int((best == 1).sum())
        self.rows += rows.shape[0] * rows.shape[1]

    def summary(self) -> dict[str, float]:
        """Returns the shares of attention and of largest weights: on nodes, on EOS, and on nodes when EOS is left
        out.
        """
        return {
            "node_mass": self.node_mass / self.rows,
            "end_mass": self.end_mass / self.rows,
            "node_mass_of_tree": self.node_mass / max(self.rows - self.end_mass, 1e-12),
            "node_argmax": self.node_argmaxes / self.rows,
            "end_argmax": self.end_argmaxes / self.rows,
            "node_argmax_of_tree": self.node_argmaxes / max(self.rows - self.end_argmaxes, 1),
        }


def cross_attentions(model: nn.Module) -> list[TreeCrossAttention]:
    """Returns the cross-attention of each decoder layer. Raises ScoringError if they do not read trees."""
    layers = getattr(getattr(model, "decoder", None), "layers", [])
    found = [getattr(layer, "encoder_attn", None) for layer in layers]
    if not found or not all(isinstance(attention, TreeCrossAttention) for attention in found):
        raise ScoringError(
            f"{type(model).__name__} does not attend to tree nodes; give a checkpoint of a tree_transformer"
        )
    return found


@contextlib.contextmanager
def watched(attentions: list[TreeCrossAttention]) -> Iterator[list[Tensor]]:
    """Yields a list that holds one ``[H, B, T, S]`` tensor of weights per layer after a forward pass."""
    weights: list[Tensor] = []

    def ask(module, args, kwargs):
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    def keep(module, args, output):
        weights.append(output[1].detach().float())

    handles = [attention.register_forward_pre_hook(ask, with_kwargs=True) for attention in attentions]
    handles += [attention.register_forward_hook(keep) for attention in attentions]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


def position_kinds(source: Tensor, positions: int, eos: int) -> Tensor:
    """Returns ``[B, S]``: 1 at EOS, 2 at every position beyond the N of ``source``, else 0."""
    kinds = torch.full((source.shape[0], positions), 2, dtype=torch.uint8, device=source.device)
    kinds[:, : source.shape[1]] = (source == eos).byte()
    return kinds


@torch.no_grad()
def attention_share(model: nn.Module, batches, dictionaries) -> dict:
    """Computes shares per layer and over all layers.

    Args:
        model: a Tree-Transformer
        batches: of its task's iterator, on the model's device
        dictionaries: source and target dictionary

    Returns:
        ``{"layers": [...], "mean": {...}, "node_share": ..., "words": ..., "nodes": ..., "target_tokens": ...}``, where
        ``node_share`` is the share of nodes among words and nodes of the source trees
    """
    source_dictionary, target_dictionary = dictionaries
    attentions = cross_attentions(model)
    shares = [LayerShare() for _ in attentions]
    words = nodes = target_tokens = 0
    model.eval()
    for sample in batches:
        inputs = sample["net_input"]
        source = inputs["src_tokens"]
        with watched(attentions) as weights:
            model(**inputs)
        real = sample["target"] != target_dictionary.pad()
        words += int(((source != source_dictionary.pad()) & (source != source_dictionary.eos())).sum())
        nodes += int((inputs["source_spans"]["end"] > inputs["source_spans"]["start"]).sum())  # padding spans are empty
        target_tokens += int(real.sum())
        for share, layer in zip(shares, weights):
            share.add(layer, position_kinds(source, layer.shape[-1], source_dictionary.eos()), real)
    layers = [share.summary() for share in shares]
    mean = {name: sum(layer[name] for layer in layers) / len(layers) for name in layers[0]}
    return {
        "layers": layers,
        "mean": mean,
        "node_share": nodes / (nodes + words),
        "words": words,
        "nodes": nodes,
        "target_tokens": target_tokens,
    }


def measure(checkpoint: Path, data: Path, subset: str, max_tokens: int = 4000, cpu: bool = False) -> dict:
    """Measures a checkpoint on a split of a preprocessed folder; see :func:`attention_share`."""
    tree_fairseq.register()
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(data)}
    )
    model = models[0]
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    model.to(device)
    task.load_dataset(subset)
    iterator = task.get_batch_iterator(
        task.dataset(subset), max_tokens=max_tokens, max_positions=utils.resolve_max_positions(model.max_positions())
    ).next_epoch_itr(shuffle=False)
    batches = (utils.move_to_cuda(sample) if device.type == "cuda" else sample for sample in iterator)
    return attention_share(model, batches, (task.source_dictionary, task.target_dictionary))


def table(shares: dict) -> str:
    """Formats the shares as a table in percent."""
    columns = list(shares["mean"])
    lines = ["layer  " + "  ".join(columns)]
    for name, row in [
        *((str(number), row) for number, row in enumerate(shares["layers"], 1)),
        ("mean", shares["mean"]),
    ]:
        lines.append(f"{name:<5}  " + "  ".join(f"{100 * row[column]:{len(column)}.1f}" for column in columns))
    return "\n".join([*lines, f"nodes among words and nodes: {100 * shares['node_share']:.1f}"])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.scoring attention", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, help="folder made by fairseq-preprocess with trees")
    parser.add_argument("--path", type=Path, required=True, help="checkpoint")
    parser.add_argument("--subset", default="test")
    parser.add_argument("--max-tokens", type=int, default=4000, help="of a batch")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    args = parser.parse_args(arguments)
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
    try:
        shares = measure(args.path, args.data, args.subset, args.max_tokens, args.cpu)
    except TreeFairseqError as error:
        logger.error("%s", error)
        return 1
    sys.stdout.write(table(shares) + "\n")
    if args.json is not None:
        write_json(args.json, shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())
