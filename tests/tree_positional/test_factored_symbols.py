"""Embeddings of symbols from labels and arities."""

from __future__ import annotations

import pytest
import torch

from tests.nn.tiny import dictionary
from tests.tree_positional.symbol_batches import ENCODINGS, EOS, PAD
from tests.tree_positional.symbol_pairs import Pairs, task_side
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import InputError
from tree_fairseq.tree_positional.decoder import FactoredEmbedding, FactoredOutput
from tree_fairseq.trees.symbols import NULL, SymbolEncoding

ENCODING = SymbolEncoding(binarization="none")
SYMBOLS = ("f^1", "f^2", "g^1", "g^2", "g^0", "word", "<unk>^1", "f", NULL, "<unk:0>", "<unk:1>", "<pad>^1")
FLAGS = ("--factored-symbols", "--share-decoder-input-output-embed", "--query-position")


def embedding(width: int = 6) -> FactoredEmbedding:
    torch.manual_seed(0)
    return FactoredEmbedding(dictionary(*SYMBOLS), ENCODING, width).double()


def obvious_logits(features: torch.Tensor, table: FactoredEmbedding, symbols: list[str]) -> torch.Tensor:
    """One symbol after the other: the products with the vectors of its label and, if it has one, of its arity."""
    known, columns = {}, []
    for number, symbol in enumerate(symbols):
        label, mark, arity = symbol.rpartition("^")
        is_whole = not mark or label == "<unk>"
        label = symbol if is_whole or label == "<pad>" else label
        row = known.setdefault(label, int(table.label_of[number]))
        assert row == table.label_of[number]
        logit = features @ table.embed_labels.weight[row]
        columns.append(logit if is_whole else logit + features @ table.embed_arities.weight[int(arity)])
    assert len(set(known.values())) == len(known)
    return torch.stack(columns, dim=-1)


def test_logits_are_sums_over_label_and_arity_with_their_gradients():
    table, symbols = embedding(), dictionary(*SYMBOLS).symbols
    features = torch.randn(3, 5, 6, dtype=torch.float64, requires_grad=True)
    ours = FactoredOutput(table)(features)
    obvious = obvious_logits(features, table, symbols)
    torch.testing.assert_close(ours, obvious)
    weights = torch.randn_like(ours)
    parameters = [features, table.embed_labels.weight, table.embed_arities.weight]
    for ours_gradient, obvious_gradient in zip(
        torch.autograd.grad((ours * weights).sum(), parameters),
        torch.autograd.grad((obvious * weights).sum(), parameters),
    ):
        torch.testing.assert_close(ours_gradient, obvious_gradient)


def test_embeddings_are_the_rows_of_the_output():
    table = embedding()
    ids = torch.tensor([[4, 5, 12], [PAD, EOS, 9]])
    assert torch.equal(table(ids), table.weight[ids])
    assert not table(torch.tensor([PAD])).any() and table.weight.shape == (len(SYMBOLS) + 4, 6)


def test_what_is_learned_of_one_arity_moves_the_others():
    pairs = Pairs(True, True, ENCODING)
    model = pairs.model(*FLAGS).train()
    symbols = pairs.target.dictionary.symbols
    first, second = (symbols.index(symbol) for symbol in ("a^1", "a^2"))
    before = model.decoder.embed_tokens.weight.detach().clone()
    loss = model(**pairs.net_input())[0].log_softmax(-1)[..., first].sum()
    loss.backward()
    with torch.no_grad():
        for parameter in model.decoder.embed_tokens.parameters():
            parameter -= 0.1 * parameter.grad
    moved = model.decoder.embed_tokens.weight.detach() - before
    assert moved[second].norm() > 0.1 * moved[first].norm() > 0


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("source", [True, False])
def test_a_model_has_them_on_both_sides_of_trees(encoding, source):
    pairs = Pairs(source, True, encoding)
    model = pairs.model(*FLAGS)
    assert isinstance(model.encoder.embed_tokens, FactoredEmbedding) is source
    assert isinstance(model.decoder.output_projection, FactoredOutput)
    logits, _ = model(**pairs.net_input())
    assert logits.shape[-1] == len(pairs.target.dictionary) and torch.isfinite(logits).all()
    logits.square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.decoder.parameters())
    again = pairs.model(*FLAGS, seed=3)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.decoder.embed_tokens.weight, model.decoder.embed_tokens.weight)


def test_both_sides_may_share_one_table():
    pairs = Pairs(False, True, ENCODING)
    joined = dictionary("a", "w1", *pairs.target.dictionary.symbols[4:])
    table = SymbolTable.from_symbols(joined.symbols, ENCODING)
    pairs.task.source_dictionary = pairs.task.target_dictionary = joined
    pairs.task.target_side = task_side(table)
    model = pairs.model("--factored-symbols", "--share-all-embeddings")
    assert model.encoder.embed_tokens is model.decoder.embed_tokens is model.decoder.output_projection.embedding
    vectors = model.encoder.embed_tokens
    word, symbol = (vectors.weight[joined.index(text)] for text in ("a", "a^1"))
    torch.testing.assert_close(symbol - word, vectors.embed_arities.weight[1])


@pytest.mark.parametrize(
    ("pairs", "flags", "message"),
    [
        (Pairs(True, False), FLAGS[:2], "needs a target of symbol trees"),
        (Pairs(True, True), FLAGS[:1], "Add --share-decoder-input-output-embed"),
        (Pairs(True, True), (*FLAGS, "--adaptive-softmax-cutoff", "5"), "--adaptive-softmax-cutoff does not work with"),
        (Pairs(True, True), (*FLAGS, "--decoder-embed-path", "x"), "--decoder-embed-path does not work with"),
    ],
)
def test_options_that_need_a_vector_for_each_symbol_are_refused(pairs, flags, message):
    with pytest.raises(InputError, match=message):
        pairs.model(*flags)
