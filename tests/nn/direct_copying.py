"""The mixture of generating and copying, written from its equation with loops: the twin of the fast one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.nn.tiny import PAD
from tree_fairseq.data_bin.symbol_dictionary import texts_of


@dataclass(frozen=True)
class Place:
    """A token of a source: its text, the pieces of its name before it, and the pieces of the name it begins."""

    text: str | None
    before: int = 0
    length: int = 0


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
    logits: Tensor,
    weights: Tensor,
    gate: Tensor,
    source: Sequence[Sequence[Place]],
    target: Sequence[str | None],
    pieces: Sequence[int] | None = None,
) -> Tensor:
    """Probabilities ``[R, T, V]``: p P_vocab(y), and (1 - p) a_i for the symbols that each token stands for.

    They share it as P_vocab would generate them. What no symbol has is generated.

    Args:
        logits, weights, gate: ``[R, T, V]``, ``[R, T, N]`` and ``[R, T, 1]``
        source: the tokens of the R sources
        target, pieces: the text of each of the V symbols, and the number of pieces of spelled leaves
    """
    pieces = [0] * len(target) if pieces is None else pieces
    rows = []
    for row, places in enumerate(source):
        columns = []
        for column in range(logits.size(1)):
            generated = logits[row, column].exp() / logits[row, column].exp().sum()
            p = 1 / (1 + (-gate[row, column, 0]).exp())
            mixed = [p * generated[symbol] for symbol in range(len(target))]
            for token, place in enumerate(places):
                mass = (1 - p) * weights[row, column, token]
                symbols = [
                    symbol for symbol, text in enumerate(target) if place.text is not None and place.text == text
                ]
                symbols += [symbol for symbol, count in enumerate(pieces) if place.length and place.length == count]
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
    own = [place.text for place in places[:token]]
    if before and before == written and own[-before:] == list(texts[-before:]) and None not in own[-before:]:
        bonus = bonus + bonuses[0]
    if not before and own and own[-1] is not None and own[-1] == texts[-1]:
        bonus = bonus + bonuses[1]
    if count and places[token].length == count:
        bonus = bonus + bonuses[2]
    text = places[token].text
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
    source, symbols = list(map(direct_places, words)), texts_of(decoder.dictionary)
    query, key, value = projected("q", states), projected("k", memory), projected("v", memory)
    scores = (query @ key.transpose(1, 2) / query.size(2) ** 0.5).exp() * ~tokens.eq(PAD)[:, None]  # R x T x N
    attention = scores / scores.sum(2, keepdim=True)
    vectors = [projected("out", attention @ value), states] + ([] if embedded is None else [embedded])
    gate = pointer.gate(torch.cat(vectors, 2))
    if previous is None:
        return direct_mixture(decoder.output_layer(states), attention, gate, source, symbols)
    pieces = pointer.pieces.tolist()
    bonuses = [
        torch.stack([direct_bonus(places, token, *written, pointer.bonuses) for token in range(len(places))])
        for places, row in zip(source, previous.tolist())
        for written in _histories(row, symbols, decoder.dictionary, pieces)
    ]
    raised = scores * torch.stack(bonuses).view_as(scores).exp()  # R x T x N
    total = raised.sum(2, keepdim=True)
    copies = (-gate).exp() * total / scores.sum(2, keepdim=True)  # the odds
    return direct_mixture(decoder.output_layer(states), raised / total, -copies.log(), source, symbols, pieces)


def _histories(row: Sequence[int], texts: Sequence[str | None], dictionary, pieces: Sequence[int]):
    """For each column: the texts so far, how many pieces of a name end there, and the pieces of a spelled leaf."""
    for column, symbol in enumerate(row):
        written = 0
        while written <= column and dictionary[row[column - written]].startswith('"'):
            written += 1
        yield [texts[each] for each in row[: column + 1]], written, pieces[symbol]


def assert_equal_gradients(fast: Tensor, direct: Tensor, parameters: Sequence[Tensor]) -> None:
    """Of the sum of squares of two tensors."""
    found, expected = (
        torch.autograd.grad(each.square().sum(), parameters, retain_graph=True) for each in (fast, direct)
    )
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-12)
