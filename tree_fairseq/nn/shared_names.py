"""The part that the dictionaries of a source and a target share: texts of words, names and their pieces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, texts_of
from tree_fairseq.parsing.pieces import BPE_JOINER, SENTENCEPIECE_MARK

_NAME = re.compile(r"\w+")


class SymbolGroups(nn.Module):
    """Groups of symbols of a target that tokens of a source stand for; a symbol is in one group at most.

    Attributes:
        of_source: ``[V_source]`` int64, the group of each symbol of the source, or 0
        symbols: ``[1 + G, K]`` int64, the symbols of each group, padded with padding
        is_symbol: ``[1 + G, K]`` bool, false for this padding
    """

    of_source: Tensor
    symbols: Tensor
    is_symbol: Tensor

    def __init__(self, of_source: Sequence[int], groups: Sequence[Sequence[int]], pad: int):
        super().__init__()
        symbols = torch.full((len(groups), max(1, *map(len, groups))), pad)
        for number, group in enumerate(groups):
            symbols[number, : len(group)] = torch.tensor(group, dtype=torch.int64)
        for name, table in ("of_source", torch.tensor(of_source)), ("symbols", symbols), ("is_symbol", symbols != pad):
            self.register_buffer(name, table, persistent=False)

    @classmethod
    def of_texts(
        cls, sources: Sequence[str | None], targets: Sequence[str | None], is_in: Sequence[bool], pad: int
    ) -> SymbolGroups:
        """Groups the symbols of a target that ``is_in`` has by their text, if it is one of a source."""
        wanted, found = set(sources) - {None}, defaultdict[Any, list[int]](list)
        for symbol, text in enumerate(targets):
            if text in wanted and is_in[symbol]:
                found[text].append(symbol)
        numbers = {text: number for number, text in enumerate(found, 1)}
        return cls([numbers.get(text, 0) for text in sources], [[], *found.values()], pad)

    def slots(self, numbers: Tensor) -> Tensor:
        """Returns each group with one of the numbers ``[R, N]`` once, ``[R, M]``, or all groups if these are fewer."""
        if len(self.symbols) <= numbers.size(1):
            return torch.arange(len(self.symbols), device=numbers.device).expand(len(numbers), -1)
        is_again = (numbers.unsqueeze(2) == numbers.unsqueeze(1)).tril(-1).any(2)
        return numbers.masked_fill(is_again, 0)


class SharedNames(nn.Module):
    """The texts that two dictionaries share, and names in pieces: those of a source, and spelled leaves of a target.

    Attributes:
        of_source, of_target: ``[V_source]`` and ``[V]`` int64, the number of the text of each symbol, whatever its
            case; 0 for texts that only one of them has
        is_name: ``[V_source]`` bool, a name or a piece of one
        is_open, is_inner: ``[V_source]`` bool; a token continues the name before it if that is open and it is inner
        is_part, is_blank: ``[V]`` bool, a piece of a spelled leaf, or a subword that goes on; a piece that is a blank
        pieces: ``[V]`` int64, the number of pieces of a spelled leaf; 0 for other symbols of the target
        groups: symbols that a token stands for: pieces, or words, of its text; leaves of its text, whatever the case;
            and the spelled leaves of each number of pieces
    """

    of_source: Tensor
    of_target: Tensor
    is_name: Tensor
    is_open: Tensor
    is_inner: Tensor
    is_part: Tensor
    is_blank: Tensor
    pieces: Tensor

    def __init__(self, source: Dictionary, target: Dictionary):
        super().__init__()
        sources, targets = texts_of(source), texts_of(target)
        if isinstance(source, SymbolDictionary):
            is_name = is_open = is_inner = [source.is_piece(symbol) for symbol in range(len(source))]
        else:
            # SentencePiece marks where a word begins, subword-nmt where it goes on.
            is_name = [bool(text and _NAME.fullmatch(text)) for text in sources]
            has_starts = any(word.startswith(SENTENCEPIECE_MARK) for word in source.symbols)
            is_open = [has_starts or word.endswith(BPE_JOINER) for word in source.symbols]
            is_inner = [not word.startswith(SENTENCEPIECE_MARK) for word in source.symbols]
        if isinstance(target, SymbolDictionary):
            pieces = [target.pieces(symbol) for symbol in range(len(target))]
            is_part = [target.is_piece(symbol) for symbol in range(len(target))]
            is_leaf = [not each for each in is_part]
        else:
            pieces, is_leaf = [0] * len(target), [False] * len(target)
            is_part = [word.endswith(BPE_JOINER) for word in target.symbols]
        spelled: list[list[int]] = [[] for _ in range(1 + max(pieces))]
        for symbol, count in enumerate(pieces):
            spelled[count].append(symbol)
        folded = [[text and text.casefold() for text in texts] for texts in (sources, targets)]
        numbers = {text: number for number, text in enumerate(sorted(set(folded[0]) & set(folded[1]) - {None}), 1)}
        tables = {
            "of_source": [numbers.get(text, 0) for text in folded[0]],
            "of_target": [numbers.get(text, 0) for text in folded[1]],
            "is_name": is_name,
            "is_open": is_open,
            "is_inner": is_inner,
            "is_part": is_part,
            "is_blank": [bool(text) and text.isspace() for text in targets],
            "pieces": pieces,
        }
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table), persistent=False)
        words = SymbolGroups.of_texts(sources, targets, [not each for each in is_leaf], target.pad())
        leaves = SymbolGroups.of_texts(*folded, is_leaf, target.pad())
        self.groups = nn.ModuleList([words, leaves, SymbolGroups([], [[], *spelled[1:]], target.pad())])

    def find(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Finds the names in sources ``[R, N]``.

        Returns:
            ``[R, N]`` int64, how many pieces of its name stand before each token, and the number of pieces of the name
            that begins at a token, or 0
        """
        is_name = self.is_name[tokens]
        continues = is_name & self.is_inner[tokens]
        continues[:, 1:] &= (is_name & self.is_open[tokens])[:, :-1]
        continues[:, 0] = False
        starts = is_name & ~continues
        number = starts.cumsum(1) * is_name  # of the name of each token, from 1
        lengths = torch.zeros(len(tokens), tokens.size(1) + 1, dtype=torch.int64, device=tokens.device)
        lengths.scatter_add_(1, number, is_name.long())
        return runs(continues), lengths.gather(1, number) * starts

    def of_tokens(self, tokens: Tensor, lengths: Tensor | None = None) -> list[tuple[Tensor, SymbolGroups]]:
        """Returns the groups, and ``[R, N]`` int64, which of them each of the tokens ``[R, N]`` stands for, or 0.

        ``lengths`` are those of :meth:`find`; without them, no token stands for spelled leaves.
        """
        *of_texts, spelled = self.groups
        found = [(groups.of_source[tokens], groups) for groups in of_texts]
        if lengths is not None:
            # A name of a length that no leaf has is copied by its text alone.
            lengths = lengths * (lengths < len(spelled.symbols))
            found.append((lengths * spelled.is_symbol.any(1)[lengths], spelled))
        return found


def runs(is_in: Tensor) -> Tensor:
    """How many true columns in a row end at each, ``[R, N]`` int64, given ``[R, N]`` bool."""
    columns = torch.arange(1, 1 + is_in.size(1), device=is_in.device)
    return columns - (columns * ~is_in).cummax(1).values
