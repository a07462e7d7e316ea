"""Methods whose training steps are compared with stock ones as sentences grow; the work of collaters is included."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Callable

from tests.benchmarks.translation_models import Task, TrainingStep, build, stock_batch
from tests.tree_positional.symbol_batches import SymbolBatch
from tree_fairseq.nn.modalities import SYMBOLS, Side
from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees
from tree_fairseq.tasks.pair_dataset import collate_symbol_trees
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.tree import Tree

TARGETS = 30
TINY = {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in {"layers": 2, "embed_dim": 64, "ffn_embed_dim": 128, "attention_heads": 4}.items()
}
LABELS, ENCODING = 8, SymbolEncoding("dfs", "lcrs")

Work = Callable[[], object]
Works = Callable[[Sequence[NodeArrays], int], tuple[Work, Work]]


@dataclass(frozen=True)
class Method:
    name: str  # of the method
    # makes, for sentences with these trees over so many leaves, a training step of the method, the work of its collater
    # on trees included, and one of the stock model with as many positions
    works: Works
    reads_trees: bool = True  # whether its cost depends on the shape of trees


def tree_transformer(trees: Sequence[NodeArrays], leaves: int) -> tuple[Work, Work]:
    """Steps of the tiny Tree-Transformer and of a transformer of its size."""
    task = Task()
    ours = TrainingStep(build("tree_transformer_tiny", task), task)
    stock = TrainingStep(build("transformer_iwslt_de_en", task, **TINY), task)
    batch = stock_batch(task, len(trees), leaves, TARGETS)
    longer = stock_batch(task, len(trees), leaves + max(map(len, trees)), TARGETS)

    def step() -> None:
        spans = collate_trees(trees, task.label_dictionary.pad())
        ours({**batch, "net_input": {**batch["net_input"], "source_spans": spans}})

    return step, functools.partial(stock, longer)


def treeformer(trees: Sequence[NodeArrays], leaves: int) -> tuple[Work, Work]:
    """Steps of the tiny Treeformer and of a transformer of its size on the same sentences, as many as the trees."""
    task = Task()
    batch = stock_batch(task, len(trees), leaves, TARGETS)
    return functools.partial(_step("treeformer_tiny", task), batch), functools.partial(
        _step("transformer_iwslt_de_en", task, **TINY), batch
    )


def symbols(encoder: str, trees: Sequence[NodeArrays], leaves: int) -> tuple[Work, Work]:
    """Steps over the trees as symbol trees, read by an encoder, and of a transformer over as many tokens."""
    source = SymbolBatch.of([symbol_tree(tree, leaves) for tree in trees], ENCODING)
    words = Task()
    task = SimpleNamespace(
        source_dictionary=source.dictionary,
        target_dictionary=words.target_dictionary,
        source_side=Side(SYMBOLS, symbols=source.table),
        cfg=SimpleNamespace(),
    )
    batch, tokens = stock_batch(words, len(trees), leaves, TARGETS), source.tokens()
    inputs = {**batch["net_input"], "src_tokens": tokens, "src_lengths": tokens.ne(source.dictionary.pad()).sum(1)}
    ours = _step("source_encoder_transformer_tiny", task, source_encoder=encoder)
    stock = _step("transformer_iwslt_de_en", task, **TINY)

    def step() -> None:
        ours({**batch, "net_input": {**inputs, "source_symbol_tree": collate_symbol_trees(tokens, source.table)}})

    return step, functools.partial(stock, {**batch, "net_input": inputs})


def _step(architecture: str, task, **options: object) -> TrainingStep:
    return TrainingStep(build(architecture, task, **{"share_all_embeddings": False, **options}), task)


def symbol_tree(nodes: NodeArrays, leaves: int) -> Tree:
    """A tree over so many leaves, from nodes in preorder; a few labels name its nodes."""
    spans = [(int(end), f"n{label % LABELS}") for end, label in zip(nodes.end, nodes.label)]
    starts, open_nodes = nodes.start.tolist(), []
    position, found = 0, []
    for leaf in range(leaves):
        while position < len(spans) and starts[position] == leaf:
            open_nodes.append((*spans[position], []))
            position += 1
        (open_nodes[-1][2] if open_nodes else found).append(Tree(f"w{leaf % LABELS}"))
        while open_nodes and open_nodes[-1][0] == leaf + 1:
            _, label, children = open_nodes.pop()
            (open_nodes[-1][2] if open_nodes else found).append(Tree(label, children))
    return found[0] if len(found) == 1 else Tree("root", found)


METHODS = (
    Method("tree_transformer", tree_transformer),
    Method("treeformer", treeformer, reads_trees=False),
    Method("tree_positions", functools.partial(symbols, "tree_positional")),
    Method("tree_lstm", functools.partial(symbols, "tree_lstm")),
)
"""Each can be sent to another process."""
