"""Pairs of which a side, or both, are symbol trees, as a fairseq dataset."""

from __future__ import annotations

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.nn.pair_dataset import WrappedPairs
from tree_fairseq.trees.symbols import parents_and_branches

# FROM data/symbol_tree_batch: Where the symbols of a batch stand in their trees: parents and branches, by column.
#
# A batch of symbol trees travels in ``net_input["source_symbol_tree"]`` and ``net_input["previous_symbol_tree"]`` as a
# dict of two tensors over the columns of ``src_tokens`` and ``prev_output_tokens``.


def collate_symbol_trees(tokens: Tensor, symbols: SymbolTable) -> dict[str, Tensor]:
    """Parents and branches of a batch of sequences of symbols.

    Args:
        tokens: ``[B, N]`` ids, padded on either side; ids without an arity (START, EOS, padding) belong to no tree
        symbols: of their dictionary

    Returns:
        ``parents``, the column of each symbol's parent, and ``branches``, its place under it, each ``[B, N]`` int64;
        -1 for the root and for what belongs to no tree

    Raises:
        SymbolTreeError: a row is no tree
    """
    arity = symbols.arity.numpy()[tokens.cpu().numpy()]  # B x N
    firsts = symbols.first_branch.numpy()[tokens.cpu().numpy()]
    parents = np.full(arity.shape, -1, np.int64)
    branches = np.full(arity.shape, -1, np.int64)
    for row, arities in enumerate(arity):
        columns = np.flatnonzero(arities >= 0)
        try:
            own, branch = parents_and_branches(
                arities[columns].tolist(), firsts[row, columns].tolist(), symbols.encoding.traversal
            )
        except SymbolTreeError as error:
            raise type(error)(f"sentence {row + 1} of a batch: {error.message}") from None
        places = np.array(own, np.int64)
        parents[row, columns] = np.where(places >= 0, columns[places], -1)
        branches[row, columns] = branch
    return {
        "parents": torch.from_numpy(parents).to(tokens.device),
        "branches": torch.from_numpy(branches).to(tokens.device),
    }


class SymbolTreePairDataset(WrappedPairs):
    """Adds ``source_symbol_tree`` and ``previous_symbol_tree`` to the batches of a :class:`LanguagePairDataset`.

    A tree ends when no slot is open, so a source tree has no EOS, and none is to be predicted after a target tree.

    Args:
        dataset: pairs of sequences
        source_symbols: of the source's dictionary; None if the source is a sequence
        target_symbols: the same of the target
        keep_remainder: as :class:`WrappedPairs` has it
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        source_symbols: SymbolTable | None,
        target_symbols: SymbolTable | None,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.source_symbols = source_symbols
        self.target_symbols = target_symbols
        dataset.remove_eos_from_source = source_symbols is not None

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates pairs as the wrapped dataset does, and adds the trees.

        Returns:
            fairseq's batch; in ``net_input`` the trees (:mod:`tree_fairseq.tree_positional.dataset`), and in ``target``
            padding in the place of a tree's EOS
        """
        batch = self.dataset.collater(samples, pad_to_length=pad_to_length)
        if not batch:
            return batch
        net_input = batch["net_input"]
        if self.source_symbols is not None:
            net_input["source_symbol_tree"] = collate_symbol_trees(net_input["src_tokens"], self.source_symbols)
        if self.target_symbols is not None and "prev_output_tokens" in net_input:
            net_input["previous_symbol_tree"] = collate_symbol_trees(
                net_input["prev_output_tokens"], self.target_symbols
            )
            ends = batch["target"].eq(self.dataset.eos)
            batch["target"] = batch["target"].masked_fill(ends, self.dataset.tgt_dict.pad())
            batch["ntokens"] -= int(ends.sum())
        return batch
