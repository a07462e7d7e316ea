"""What the symbols of a dictionary are, as tensors that a model or a search looks up by id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import torch
from torch import Tensor

from tree_fairseq.errors import ArityMismatchError
from tree_fairseq.trees.symbols import NULL, SymbolEncoding


@dataclass(frozen=True)
class SymbolTable:
    """Arities and branches by symbol id, V of them.

    Attributes:
        arity: ``[V]`` int64, number of children; -1 for what is no symbol (EOS, padding, ``<unk>``)
        first_branch: ``[V]`` int64, branch of the first child
        null: id of ``<null>``; None without binarisation
        degree: number of branches n of a node: 2 in binary form, the largest arity otherwise
        encoding: how trees became sequences
    """

    arity: Tensor
    first_branch: Tensor
    null: int | None
    degree: int
    encoding: SymbolEncoding

    @classmethod
    def from_symbols(cls, symbols: Sequence[str], encoding: SymbolEncoding) -> SymbolTable:
        """The table of a dictionary's symbols, in order of their ids."""
        arities = []
        for symbol in symbols:
            try:
                arities.append(encoding.split(symbol)[1])
            except ArityMismatchError:
                arities.append(-1)
        is_binary = encoding.binarization == "lcrs"
        null = list(symbols).index(NULL) if is_binary and NULL in symbols else None
        degree = 2 if is_binary else max(1, *arities)
        firsts = [encoding.first_branch(arity) for arity in arities]
        return cls(torch.tensor(arities), torch.tensor(firsts), null, degree, encoding)

    def to(self, device: torch.device) -> SymbolTable:
        """The table on another device."""
        return SymbolTable(self.arity.to(device), self.first_branch.to(device), self.null, self.degree, self.encoding)
