"""Where the symbols of a batch stand in their trees: parents and branches, by column.

A batch of symbol trees travels in ``net_input["source_tree"]`` and ``net_input["previous_tree"]`` as a dict of two tensors
over the columns of ``src_tokens`` and ``prev_output_tokens``.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tree_fairseq.data.symbol_table import SymbolTable
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.symbols import parents_and_branches


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
    return {"parents": torch.from_numpy(parents).to(tokens.device), "branches": torch.from_numpy(branches).to(tokens.device)}
