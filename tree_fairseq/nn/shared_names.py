"""The part that the dictionaries of a source and a target share: texts of words, names and their pieces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, texts_of
from tree_fairseq.parsing.pieces import BPE_JOINER, SENTENCEPIECE_MARK

_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class SharedTexts:
    """The texts that symbols of both dictionaries have, numbered from 1; 0 is for all others.

    Attributes:
        of_source: ``[V_source]`` int64, the number of the text of each symbol of the source
        of_target: ``[V]`` int64, the same of the target
        symbols: ``[1 + C, K]`` int64, the symbols of the target with each of the C texts, padded with padding
        is_symbol: ``[1 + C, K]`` bool, false for this padding
    """

    of_source: Tensor
    of_target: Tensor
    symbols: Tensor
    is_symbol: Tensor

    @classmethod
    def of(cls, source: Dictionary, target: Dictionary) -> SharedTexts:
        """Finds the texts of two dictionaries."""
        sources, targets = texts_of(source), texts_of(target)
        wanted, found = set(sources) - {None}, defaultdict(list)
        for symbol, text in enumerate(targets):
            if text in wanted:
                found[text].append(symbol)
        numbers = {text: number for number, text in enumerate(found, 1)}
        of_source, of_target = (torch.tensor([numbers.get(text, 0) for text in texts]) for texts in (sources, targets))
        return cls(of_source, of_target, *_padded([[], *found.values()], target.pad()))


@dataclass(frozen=True)
class SharedNames:
    """Names in pieces: those of the source, and the spelled leaves of the target.

    Attributes:
        is_name: ``[V_source]`` bool, a name or a piece of one
        is_open, is_inner: ``[V_source]`` bool; a token continues the name before it if that is open and it is inner
        is_part: ``[V]`` bool, a piece of a spelled leaf, or a subword that goes on
        pieces: ``[V]`` int64, the number of pieces of a spelled leaf; 0 for other symbols of the target
        leaves: ``[1 + L, K]`` int64, the spelled leaves of each number of pieces, padded with padding
        is_leaf: ``[1 + L, K]`` bool, false for this padding
    """

    is_name: Tensor
    is_open: Tensor
    is_inner: Tensor
    is_part: Tensor
    pieces: Tensor
    leaves: Tensor
    is_leaf: Tensor

    @classmethod
    def of(cls, source: Dictionary, target: Dictionary) -> SharedNames:
        """Finds the names of two dictionaries."""
        if isinstance(source, SymbolDictionary):
            is_name = is_open = is_inner = [source.is_piece(symbol) for symbol in range(len(source))]
        else:
            # SentencePiece marks where a word begins, subword-nmt where it goes on.
            is_name = [bool(text and _NAME.fullmatch(text)) for text in texts_of(source)]
            has_starts = any(word.startswith(SENTENCEPIECE_MARK) for word in source.symbols)
            is_open = [has_starts or word.endswith(BPE_JOINER) for word in source.symbols]
            is_inner = [not word.startswith(SENTENCEPIECE_MARK) for word in source.symbols]
        if isinstance(target, SymbolDictionary):
            pieces = [target.pieces(symbol) for symbol in range(len(target))]
            is_part = [target.is_piece(symbol) for symbol in range(len(target))]
        else:
            pieces, is_part = [0] * len(target), [word.endswith(BPE_JOINER) for word in target.symbols]
        leaves: list[list[int]] = [[] for _ in range(1 + max(pieces))]
        for symbol, count in enumerate(pieces):
            leaves[count].append(symbol)
        tables = (torch.tensor(table) for table in (is_name, is_open, is_inner, is_part, pieces))
        return cls(*tables, *_padded([[], *leaves[1:]], target.pad()))

    @staticmethod
    def find(tables: Any, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Finds the names in sources ``[R, N]``, given these tables.

        Returns:
            ``[R, N]`` int64, how many pieces of its name stand before each token, and the number of pieces of the name
            that begins at a token, or 0
        """
        is_name = tables.is_name[tokens]
        continues = is_name & tables.is_inner[tokens]
        continues[:, 1:] &= (is_name & tables.is_open[tokens])[:, :-1]
        continues[:, 0] = False
        starts = is_name & ~continues
        number = starts.cumsum(1) * is_name  # of the name of each token, from 1
        lengths = torch.zeros(len(tokens), tokens.size(1) + 1, dtype=torch.int64, device=tokens.device)
        lengths.scatter_add_(1, number, is_name.long())
        return _since(~continues), lengths.gather(1, number) * starts

    @staticmethod
    def written(tables: Any, symbols: Tensor) -> Tensor:
        """Returns how many pieces of an unfinished name end at each of the symbols ``[R, T]`` of a target, int64."""
        return _since(~tables.is_part[symbols])


def _since(ends: Tensor) -> Tensor:
    """How many columns ago the last true one was, ``[R, N]`` int64; those before the first count from the start."""
    columns = torch.arange(1, 1 + ends.size(1), device=ends.device)
    return columns - (columns * ends).cummax(1).values


def _padded(rows: Sequence[Iterable[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Rows of different lengths as one table, and where it is not padding."""
    table = torch.full((len(rows), max(1, *map(len, rows))), pad)
    is_entry = torch.zeros_like(table, dtype=torch.bool)
    for number, row in enumerate(rows):
        table[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
        is_entry[number, : len(row)] = True
    return table, is_entry
