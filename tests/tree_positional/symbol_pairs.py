"""Tiny models with tree positions, and random pairs of sequences and symbol trees for them."""

from __future__ import annotations

import random
from types import SimpleNamespace

import torch
from fairseq.data import Dictionary

from tests.nn.tiny import build, dictionary
from tests.tree_positional.symbol_batches import ENCODINGS, EOS, SymbolBatch
from tree_fairseq.nn import modalities
from tree_fairseq.tasks.pair_dataset import collate_symbol_trees
from tree_fairseq.tree_positional import model  # noqa: F401  (registers the architectures)
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.tree import Tree

ARCH = "tree_positional_transformer_tiny"
MODALITIES = [(True, True), (True, False), (False, True)]


def task_side(symbols) -> modalities.Side:
    """A side of symbol trees; of a sequence where ``symbols`` is None."""
    return modalities.Side() if symbols is None else modalities.Side(modalities.SYMBOLS, symbols=symbols)


def steps_of_a_beam(model, inputs: dict):
    """Decodes five rows step by step; rows are permuted, repeated and left out on the way, as beam search does.

    Yields:
        the output of a step, ``[R, V]``, the rows of the batch that it belongs to, ``[R]``, and the step
    """
    prefix, rows, state = inputs["prev_output_tokens"], torch.arange(5), {}
    encoder_out = model.encoder(inputs["src_tokens"], source_symbol_tree=inputs["source_symbol_tree"])
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for t in range(prefix.size(1)):
            output, _ = model.decoder(prefix[rows, : t + 1], encoder_out=encoder_out, incremental_state=state)
            yield output[:, 0], rows, t
            order = torch.randint(0, len(rows), (5 - t // 4,), generator=generator)
            model.decoder.reorder_incremental_state_scripting(state, order)
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
            rows = rows[order]


def random_tree(chance: random.Random, size: int) -> Tree:
    """A tree of ``size`` nodes and at most three children a node."""
    children = []
    size -= 1
    while size:
        below = size if len(children) == 2 else chance.randint(1, size)
        children.append(random_tree(chance, below))
        size -= below
    return Tree(chance.choice("abcd"), children)


class Side:
    """Sources or targets."""

    def __init__(self, dictionary: Dictionary, symbols, sequences: list[list[int]]):
        self.dictionary, self.symbols, self.sequences = dictionary, symbols, sequences

    @classmethod
    def of_trees(cls, chance: random.Random, encoding: SymbolEncoding, sizes) -> Side:
        largest = [random_tree(random.Random(seed), 12) for seed in range(8)]
        batch = SymbolBatch.of([random_tree(chance, size) for size in sizes] + largest, encoding)
        return cls(batch.dictionary, batch.table, batch.sequences[: len(sizes)])

    @classmethod
    def of_words(cls, chance: random.Random, sizes) -> Side:
        """Random sequences of these lengths."""
        words = dictionary(*(f"w{number}" for number in range(12)))
        return cls(words, None, [[chance.randrange(4, len(words)) for _ in range(size)] for size in sizes])

    def tokens(self, before: bool = False, left_pad: bool = False, spare: int = 0) -> torch.Tensor:
        """``[B, N]``, with START where ``before``, else with the EOS of a sequence."""
        start = [EOS] if before else []
        end = [] if before or self.symbols is not None else [EOS]
        rows = [start + sequence + end for sequence in self.sequences]
        return SymbolBatch(self.dictionary, self.symbols, rows).tokens(left_pad=left_pad, spare=spare)


class Pairs:
    """Pairs of one kind, and a task that knows the dictionaries.

    Targets have the sizes of the sources in reverse order.
    """

    def __init__(self, source_is_tree: bool, target_is_tree: bool, encoding=ENCODINGS[0], sizes=(7, 1, 12, 4), seed=0):
        chance = random.Random(seed)
        self.source, self.target = (
            Side.of_trees(chance, encoding, lengths) if is_tree else Side.of_words(chance, lengths)
            for is_tree, lengths in ((source_is_tree, sizes), (target_is_tree, sizes[::-1]))
        )
        self.task = SimpleNamespace(
            source_dictionary=self.source.dictionary,
            target_dictionary=self.target.dictionary,
            source_side=task_side(self.source.symbols),
            target_side=task_side(self.target.symbols),
        )

    def model(self, *flags: str, arch: str = ARCH, seed: int = 0):
        return build(self.task, *flags, arch=arch, seed=seed)

    def net_input(self, rows=None, left_pad: bool = True, spare: int = 0) -> dict:
        source, target = (
            Side(
                side.dictionary, side.symbols, side.sequences if rows is None else [side.sequences[row] for row in rows]
            )
            for side in (self.source, self.target)
        )
        src_tokens, prev_output_tokens = source.tokens(left_pad=left_pad, spare=spare), target.tokens(before=True)
        net_input = {
            "src_tokens": src_tokens,
            "src_lengths": torch.tensor([len(sequence) for sequence in source.sequences]),
            "prev_output_tokens": prev_output_tokens,
        }
        if source.symbols is not None:
            net_input["source_symbol_tree"] = collate_symbol_trees(src_tokens, source.symbols)
        if target.symbols is not None:
            net_input["previous_symbol_tree"] = collate_symbol_trees(prev_output_tokens, target.symbols)
        return net_input
