"""The mixture of generating and copying, written from its equation with loops: the twin of the fast one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tests.nn.tiny import PAD
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, texts_of


@dataclass(frozen=True)
class Place:
    """A token of a source: its text, the pieces of its name before it, and the pieces of the name it begins."""

    text: str | None
    before: int = 0
    length: int = 0


@dataclass(frozen=True)
class Symbol:
    """A symbol of a target: its text, and whether it is a leaf, which is copied whatever its case."""

    text: str | None
    is_leaf: bool
    pieces: int = 0

    def is_copy_of(self, place: Place) -> bool:
        """Whether a token stands for it."""
        if self.pieces:
            return self.pieces == place.length
        if None in (self.text, place.text):
            return False
        return self.text == place.text or (self.is_leaf and self.text.lower() == place.text.lower())


def direct_symbols(dictionary: Dictionary, spelled: bool = True) -> list[Symbol]:
    """The symbols of a target; without ``spelled`` no name is copied by its number of pieces."""
    has_leaves = isinstance(dictionary, SymbolDictionary)
    return [
        Symbol(
            text,
            has_leaves and not dictionary[number].startswith('"'),
            dictionary.pieces(number) if has_leaves and spelled else 0,
        )
        for number, text in enumerate(texts_of(dictionary))
    ]


def direct_places(words: Sequence[str]) -> list[Place]:
    """The places of a source whose subwords end in @@ where the word goes on: a name is letters, digits and _."""
    texts = [word.removesuffix("@@") for word in words]
    is_name = [text.isidentifier() or text.isdigit() for text in texts]
    goes_on = [name and word.endswith("@@") for name, word in zip(is_name, words)]
    places = []
    for place, text in enumerate(texts):
        start = place
        while is_name[place] and start > 0 and goes_on[start - 1]:
            start -= 1
        end = place
        while goes_on[end] and end + 1 < len(words) and is_name[end + 1]:
            end += 1
        text = None if text in ("<s>", "</s>", "<pad>", "<unk>") else text
        begins = text is not None and is_name[place] and start == place
        places.append(Place(text, place - start, end + 1 - place if begins else 0))
    return places


def direct_mixture(
    logits: Tensor, weights: Tensor, gate: Tensor, source: Sequence[Sequence[Place]], target: Sequence[Symbol]
) -> Tensor:
    """Probabilities ``[R, T, V]``: p P_vocab(y), and (1 - p) a_i for the symbols that each token stands for.

    They share it as P_vocab would generate them. What no symbol has is generated.

    Args:
        logits, weights, gate: ``[R, T, V]``, ``[R, T, N]`` and ``[R, T, 1]``
        source, target: the tokens of the R sources, and the V symbols
    """
    rows = []
    for row, places in enumerate(source):
        columns = []
        for column in range(logits.size(1)):
            generated = logits[row, column].exp() / logits[row, column].exp().sum()
            p = 1 / (1 + (-gate[row, column, 0]).exp())
            mixed = [p * generated[symbol] for symbol in range(len(target))]
            for token, place in enumerate(places):
                mass = (1 - p) * weights[row, column, token]
                symbols = [number for number, symbol in enumerate(target) if symbol.is_copy_of(place)]
                for symbol in symbols or range(len(target)):
                    among = sum(generated[other] for other in (symbols or range(len(target))))
                    mixed[symbol] = mixed[symbol] + mass * generated[symbol] / among
            columns.append(torch.stack(mixed))
        rows.append(torch.stack(columns))
    return torch.stack(rows)


def direct_bonus(
    places: Sequence[Place], token: int, texts: Sequence[str | None], written: int, count: int, bonuses: Tensor
) -> Tensor:
    """What is added to the logit of a token, after symbols of these texts.

    The last ``written`` of them are pieces of a name; the last one is a spelled leaf of ``count`` pieces.
    """
    bonus, before = bonuses.new_zeros(()), places[token].before
    own = [place.text and place.text.lower() for place in places[:token]]
    if before and before <= written and own[-before:] == list(texts[-before:]) and None not in own[-before:]:
        bonus = bonus + bonuses[0]
    words = [text for text in texts if text != " "] or [None]
    if not before and own and own[-1] is not None and own[-1] == words[-1]:
        bonus = bonus + bonuses[1]
    if count and places[token].length == count:
        bonus = bonus + bonuses[2]
    text = places[token].text and places[token].text.lower()
    if not before and text is not None and texts.count(text) > own.count(text):
        bonus = bonus + bonuses[3]
    return bonus


def direct_copying(
    model,
    states: Tensor,
    memory: Tensor,
    tokens: Tensor,
    previous: Tensor | None = None,
    embedded: Tensor | None = None,
) -> Tensor:
    """Probabilities ``[R, T, V]`` of a model whose pointer is one head of attention.

    Args:
        states, memory: ``[R, T, D]`` of the decoder and ``[R, N, D']`` of the encoder
        tokens: ``[R, N]``, the sources
        previous, embedded: ``[R, T]`` and ``[R, T, D]``, the symbols before those of the states, if the pointer sees
            them
    """
    pointer, decoder = model.decoder.pointer, model.decoder
    weights = dict(pointer.attention.named_parameters())

    def projected(name: str, vectors: Tensor) -> Tensor:
        return vectors @ weights[f"{name}_proj.weight"].T + weights[f"{name}_proj.bias"]

    words = [[model.encoder.dictionary[token] for token in row] for row in tokens.tolist()]
    source, symbols = list(map(direct_places, words)), direct_symbols(decoder.dictionary, previous is not None)
    query, key, value = projected("q", states), projected("k", memory), projected("v", memory)
    scores = (query @ key.transpose(1, 2) / query.size(2) ** 0.5).exp() * ~tokens.eq(PAD)[:, None]  # R x T x N
    attention = scores / scores.sum(2, keepdim=True)
    vectors = [projected("out", attention @ value), states] + ([] if embedded is None else [embedded])
    gate = pointer.gate(torch.cat(vectors, 2))
    if previous is None:
        return direct_mixture(decoder.output_layer(states), attention, gate, source, symbols)
    bonuses = [
        torch.stack([direct_bonus(places, token, *written, pointer.bonuses) for token in range(len(places))])
        for places, row in zip(source, previous.tolist())
        for written in _histories(row, symbols, decoder.dictionary)
    ]
    raised = scores * torch.stack(bonuses).view_as(scores).exp()  # R x T x N
    total = raised.sum(2, keepdim=True)
    copies = (-gate).exp() * total / scores.sum(2, keepdim=True)  # the odds
    return direct_mixture(decoder.output_layer(states), raised / total, -copies.log(), source, symbols)


def _histories(row: Sequence[int], symbols: Sequence[Symbol], dictionary: Dictionary):
    """For each column: the texts so far, how many pieces of a name end there, and the pieces of a spelled leaf."""
    for column, symbol in enumerate(row):
        written = 0
        while written <= column and dictionary[row[column - written]].startswith('"'):
            written += 1
        texts = [symbols[each].text for each in row[: column + 1]]
        yield [text and text.lower() for text in texts], written, symbols[symbol].pieces


def assert_equal_gradients(fast: Tensor, direct: Tensor, parameters: Sequence[Tensor]) -> None:
    """Of the sum of squares of two tensors."""
    found, expected = (
        torch.autograd.grad(each.square().sum(), parameters, retain_graph=True) for each in (fast, direct)
    )
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-12)
