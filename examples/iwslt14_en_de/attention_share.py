"""Measures how much of the decoder's cross-attention falls on tree nodes (Table 4 of Nguyen et al. 2020).

    python examples/iwslt14_en_de/attention_share.py data-bin --path checkpoint.pt --subset test --json attention.json

Under teacher forcing, every target token attends to the words, the EOS symbol and the nodes of the source. For each
decoder layer the table has the share of attention on nodes and the share of heads whose largest weight is on a node;
below it is the share of nodes among words and nodes. EOS attracts attention but is neither phrase nor word, so shares
are given with it and without.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from fairseq import checkpoint_utils, utils
from torch import Tensor, nn

import tree_fairseq
from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.support.files import write_json
from tree_fairseq.support.logs import failed
from tree_fairseq.tree_transformer.model import TreeCrossAttention

logger = logging.getLogger(__name__)

KINDS = 3  # of source positions: words, EOS, nodes


class LayerShare:
    """Sums over the target tokens and heads of one layer: attention, and largest weights, by kind of position."""

    def __init__(self):
        self.mass = torch.zeros(KINDS, dtype=torch.float64)
        self.argmaxes = torch.zeros(KINDS, dtype=torch.int64)

    def add(self, weights: Tensor, kinds: Tensor, real: Tensor) -> None:
        """Adds the weights ``[H, B, T, S]`` of a batch.

        ``kinds``, ``[B, S]``, is 2 at nodes, 1 at EOS and 0 elsewhere. ``real``, ``[B, T]``, is False at padding.
        """
        rows = weights.permute(1, 2, 0, 3)[real]  # R x H x S
        kinds = kinds.long().unsqueeze(1).expand(-1, real.shape[1], -1)[real].unsqueeze(1).expand_as(rows)  # R x H x S
        best = kinds.gather(-1, rows.argmax(-1, keepdim=True))  # R x H x 1
        self.mass += torch.stack([rows[kinds == kind].sum(dtype=torch.float64) for kind in range(KINDS)]).cpu()
        self.argmaxes += torch.bincount(best.flatten(), minlength=KINDS).cpu()

    def summary(self) -> dict[str, float]:
        """Returns the shares of attention and of largest weights on nodes and on EOS, and on nodes without EOS."""
        rows, figures = int(self.argmaxes.sum()), {}
        for name, sums in (("mass", self.mass), ("argmax", self.argmaxes)):
            _, end, node = sums.tolist()
            figures |= {f"node_{name}": node / rows, f"end_{name}": end / rows}
            figures[f"node_{name}_of_tree"] = node / max(rows - end, 1e-12)
        return figures


def cross_attentions(model: nn.Module) -> list[TreeCrossAttention]:
    """Returns the cross-attention of each decoder layer. Raises ScoringError if they do not read trees."""
    layers = getattr(getattr(model, "decoder", None), "layers", [])
    found = [getattr(layer, "encoder_attn", None) for layer in layers]
    if not found or not all(isinstance(attention, TreeCrossAttention) for attention in found):
        name = type(model).__name__
        raise ScoringError(f"{name} does not attend to tree nodes; give a checkpoint of a tree_transformer")
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
    """Computes shares per layer and over all layers, of batches on the model's device, from two dictionaries.

    ``node_share`` is the share of nodes among words and nodes of the source trees.
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
    overrides = {"data": str(data)}
    (model, *_), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    on_gpu = torch.cuda.is_available() and not cpu
    model.to("cuda" if on_gpu else "cpu")
    task.load_dataset(subset)
    iterator = task.get_batch_iterator(
        task.dataset(subset), max_tokens=max_tokens, max_positions=utils.resolve_max_positions(model.max_positions())
    ).next_epoch_itr(shuffle=False)
    batches = (utils.move_to_cuda(sample) if on_gpu else sample for sample in iterator)
    return attention_share(model, batches, (task.source_dictionary, task.target_dictionary))


def table(shares: dict) -> str:
    """Formats the shares as a table in percent."""
    columns = list(shares["mean"])
    lines = ["layer  " + "  ".join(columns)]
    for name, row in [*enumerate(shares["layers"], 1), ("mean", shares["mean"])]:
        lines.append(f"{name:<5}  " + "  ".join(f"{100 * row[column]:{len(column)}.1f}" for column in columns))
    return "\n".join([*lines, f"nodes among words and nodes: {100 * shares['node_share']:.1f}"])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    about = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(description=about)
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
        return failed(error, logger)
    sys.stdout.write(table(shares) + "\n")
    if args.json is not None:
        write_json(args.json, shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())
