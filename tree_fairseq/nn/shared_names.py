"""The part that the dictionaries of a source and a target share: texts of words, names and their pieces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, texts_of
from tree_fairseq.parsing.pieces import BPE_JOINER, SENTENCEPIECE_MARK

_NAME = re.compile(r"\w+")


class TokenSymbols(NamedTuple):
    """Which symbols of a target the tokens ``[R, N]`` of sources stand for, in M groups of at most K symbols."""

    has_group: Tensor  # ``[R, N]`` bool
    symbols: Tensor  # ``[R, M, K]`` int64
    is_symbol: Tensor  # ``[R, M, K]`` bool, false for padding
    is_own: Tensor  # ``[R, N, M]`` bool, the group of each token that has one

    def select(self, rows: Tensor) -> TokenSymbols:
        """The sources ``rows``, ``[R']`` int64."""
        return TokenSymbols(*(part.index_select(0, rows) for part in self))


class SourceNames(NamedTuple):
    """The names in sources of the tokens ``[R, N]``, and the symbols that the tokens stand for."""

    texts: Tensor  # ``[R, N]`` int64, the number of each token's text; -1 for texts that only the source has
    before: Tensor  # ``[R, N]`` int64, how many pieces of its name stand before each token
    lengths: Tensor  # ``[R, N]`` int64, the number of pieces of the name that begins at a token, or 0
    rank: Tensor  # ``[R, N]`` int64, how many tokens before it have the text of each
    longest: int  # the largest of the lengths
    symbols: list[TokenSymbols]

    def select(self, rows: Tensor | None) -> SourceNames:
        """The sources ``rows``, ``[R']`` int64; all of them without rows."""
        if rows is None:
            return self
        *parts, longest, symbols = self
        return SourceNames(
            *(part.index_select(0, rows) for part in parts), longest, [each.select(rows) for each in symbols]
        )


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

    def of_tokens(self, numbers: Tensor) -> TokenSymbols:
        """The symbols of tokens, given the number ``[R, N]`` of the group of each, or 0.

        There is each group with one of the numbers once, or all groups if these are fewer.
        """
        if len(self.symbols) <= numbers.size(1):
            slots = torch.arange(len(self.symbols), device=numbers.device).expand(len(numbers), -1)  # R x M
        else:
            slots = numbers.masked_fill(earlier_equals(numbers) > 0, 0)
        is_own = (numbers.unsqueeze(2) == slots.unsqueeze(1)) & (slots > 0).unsqueeze(1)
        return TokenSymbols(numbers > 0, self.symbols[slots], self.is_symbol[slots], is_own)


class SharedNames(nn.Module):
    """The texts that two dictionaries share, and names in pieces: those of a source, and spelled leaves of a target.

    Attributes:
        texts: how many numbers of texts there are
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
        self.texts = 1 + len(numbers)
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

    def find(self, tokens: Tensor) -> SourceNames:
        """Finds the names in sources ``[R, N]``."""
        is_name = self.is_name[tokens]
        continues = is_name & self.is_inner[tokens]
        continues[:, 1:] &= (is_name & self.is_open[tokens])[:, :-1]
        continues[:, 0] = False
        starts = is_name & ~continues
        number = starts.cumsum(1) * is_name  # of the name of each token, from 1
        lengths = torch.zeros(len(tokens), tokens.size(1) + 1, dtype=torch.int64, device=tokens.device)
        lengths.scatter_add_(1, number, is_name.long())
        lengths = lengths.gather(1, number) * starts
        texts = self.of_source[tokens]
        texts = texts.masked_fill(texts == 0, -1)
        # A name of a length that no leaf has is copied by its text alone.
        spelled = self.groups[-1]
        known = lengths * (lengths < len(spelled.symbols))
        symbols = [*self.of_tokens(tokens), spelled.of_tokens(known * spelled.is_symbol.any(1)[known])]
        longest = int(lengths.max())
        return SourceNames(texts, runs(continues), lengths, earlier_equals(texts), longest, symbols)

    def of_tokens(self, tokens: Tensor) -> list[TokenSymbols]:
        """The symbols that the tokens ``[R, N]`` stand for by their texts, thus not the spelled leaves."""
        return [groups.of_tokens(groups.of_source[tokens]) for groups in list(self.groups)[:-1]]


def earlier_equals(numbers: Tensor) -> Tensor:
    """How many numbers before each one in its row equal it, ``[R, N]``, both int64."""
    return (numbers.unsqueeze(2) == numbers.unsqueeze(1)).tril(-1).sum(2)


def runs(is_in: Tensor) -> Tensor:
    """How many true columns in a row end at each, ``[R, N]`` int64, given ``[R, N]`` bool."""
    columns = torch.arange(1, 1 + is_in.size(1), device=is_in.device)
    return columns - (columns * ~is_in).cummax(1).values
