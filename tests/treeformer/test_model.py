"""Treeformer in training and in generation: what may and what may not change its output."""

from __future__ import annotations

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from tests.nn.tiny import PAD, build, logits, net_input, pairs, stock_flags, tiny_task
from tree_fairseq.treeformer.model import ChartCrossAttention

TASK = tiny_task()
ARCH = "treeformer_tiny"
LENGTHS = (14, 1, 4, 11, 2)
FLAGS = ("--treeformer-height", "4")


def model_of(*flags: str, **options):
    return build(TASK, *FLAGS, *flags, arch=ARCH, **options)


@pytest.fixture(scope="module")
def model():
    return model_of()


def inputs_of(*batch, **options) -> dict:
    inputs = net_input(list(batch), **options)
    del inputs["source_spans"]
    return inputs


BATCH = inputs_of(*pairs(TASK, *LENGTHS))
REAL = BATCH["prev_output_tokens"].ne(PAD)


# What changes nothing, and what does


def test_phrases_are_read_up_to_their_height(model):
    expected = logits(model, BATCH)
    lower = model_of("--treeformer-height", "3")
    lower.load_state_dict(model.state_dict())
    assert not torch.allclose(logits(lower, BATCH)[REAL], expected[REAL], atol=1e-4)


def test_the_decoder_attends_as_fairseq_s_attention_does():
    """Its own weights on keys and values that are laid out for it, in evaluation and in training, whose kernels
    differ.
    """
    model = model_of("--no-phrase-bias")
    expected = logits(model, BATCH)
    trained = model_of("--dropout", "0", "--no-phrase-bias")
    trained.load_state_dict(model.state_dict())
    torch.testing.assert_close(logits(trained.train(), BATCH)[REAL], expected[REAL], rtol=1e-4, atol=1e-5)

    stock = build(TASK, *stock_flags(), arch="transformer")
    stock.load_state_dict({name: weight for name, weight in model.state_dict().items() if ".chart." not in name})
    encoded = model.encoder(BATCH["src_tokens"])
    cells = encoded["cells"][0]
    memory = {**encoded, "encoder_out": encoded["cell_states"], "encoder_padding_mask": [cells.unused]}
    with torch.no_grad():
        stocks = stock.decoder(BATCH["prev_output_tokens"], encoder_out=memory)[0]
    torch.testing.assert_close(stocks[REAL], expected[REAL], rtol=1e-4, atol=1e-5)


def test_attention_is_that_of_tokens_and_of_cells(model):
    """``--print-alignment`` and ``--replace-unk`` look for the greatest weight among source tokens."""
    extra = model(**BATCH)[1]
    attention, of_cells = extra["attn"][0], extra["cell_attn"][0]
    padding = BATCH["src_tokens"].eq(PAD)
    assert attention.shape == (*BATCH["prev_output_tokens"].shape, padding.size(1))
    torch.testing.assert_close(attention.sum(-1)[REAL], torch.ones(int(REAL.sum())))
    assert not attention.transpose(1, 2)[padding].any()
    assert of_cells.size(2) == 15 * 4 - 6  # fourteen words and EOS


# Generation


def generate(models, batch, beam: int = 4, **options) -> list[list[dict]]:
    inputs = inputs_of(*batch)
    del inputs["prev_output_tokens"]
    generator = SequenceGenerator(models, TASK.target_dictionary, beam_size=beam, max_len_b=8, **options)
    return generator.generate(models, {"id": torch.arange(len(batch)), "net_input": inputs})


def test_an_ensemble_with_a_stock_transformer_averages_probabilities(model):
    stock = build(TASK, *stock_flags(), arch="transformer", seed=3)
    (pair,) = pairs(TASK, 6)
    (hypotheses,) = generate([model, stock], [pair])
    tokens = hypotheses[0]["tokens"]
    pair.target = tokens[:-1].numpy()
    mean = sum(logits(one, inputs_of(pair))[0].softmax(-1) for one in (model, stock)) / 2
    expected = mean.gather(1, tokens[:, None])[:, 0].log()
    torch.testing.assert_close(hypotheses[0]["positional_scores"], expected, rtol=1e-4, atol=1e-4)


def test_cells_are_projected_once_per_sentence_and_layer():
    model, calls = model_of(), []
    for layer in model.decoder.layers:
        for projection in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj):
            projection.register_forward_pre_hook(lambda _, inputs: calls.append(tuple(inputs[0].shape[:2])))
    generate([model], pairs(TASK, *LENGTHS), beam=5)
    # n words and EOS have 4 * (n + 1) - 6 cells from three tokens on: not times the beam.
    assert calls == [(4 * 15 - 6, len(LENGTHS))] * 4


def test_keys_are_not_tiled_over_beams(model, monkeypatch):
    """One copy a sentence while it is under way, whatever beams were searched before; the weights that are told,
    too.
    """
    held = []

    def note(attention, query, memory, _):
        held.append((query.size(1), len(memory.keys)))
        return without_weights(attention, query, memory)

    without_weights = ChartCrossAttention._without_weights
    monkeypatch.setattr(ChartCrossAttention, "_without_weights", note)
    fast = model_of()
    fast.load_state_dict(model.state_dict())
    fast.make_generation_fast_(need_attn=False)
    batch = pairs(TASK, *LENGTHS)
    for beam in (5, 1, 3):
        held.clear()
        found, expected = generate([fast], batch, beam=beam), generate([model], batch, beam=beam)
        assert held[0] == (len(batch) * beam, len(batch)) and all(rows == beam * sentences for rows, sentences in held)
        for hypotheses, others in zip(found, expected):
            for hypothesis, other in zip(hypotheses, others):
                assert torch.equal(hypothesis["tokens"], other["tokens"])
                torch.testing.assert_close(
                    hypothesis["positional_scores"], other["positional_scores"], rtol=1e-4, atol=1e-4
                )


def test_rows_may_be_in_any_order(model):
    encoder_out = model.encoder(BATCH["src_tokens"])
    prefix = BATCH["prev_output_tokens"][:, :1]
    expected = model.decoder(prefix, encoder_out=encoder_out)[0]
    for order in ([3, 3, 0, 0], [1, 4, 4], [2]):
        order = torch.tensor(order)
        read = model.encoder.reorder_encoder_out(encoder_out, order)
        found = model.decoder(prefix[order], encoder_out=read, incremental_state={})[0]
        torch.testing.assert_close(found, expected[order], rtol=1e-4, atol=1e-5)


# Architectures, weights and flags


def test_parameters_are_those_of_the_paper():
    """Table 1: 37M is the joined vocabulary; 40M and 42M fit those of table 8, of which the decoder's is tied."""
    task = tiny_task()
    for language, words in (("source", 8844), ("target", 6628)):
        symbols = getattr(task, f"{language}_dictionary")
        for word in range(words - len(symbols)):
            symbols.add_symbol(f"more{word}")
    count = {}
    for name, arch, layers in (
        ("treeformer", "treeformer_iwslt_de_en", "6"),
        ("stock", "transformer_iwslt_de_en", "7"),
    ):
        with torch.device("meta"):
            made = build(task, "--share-decoder-input-output-embed", "--encoder-layers", layers, arch=arch)
        count[name] = sum(parameter.numel() for parameter in made.parameters())
    assert round(count["treeformer"] / 1e6) == 40 and round(count["stock"] / 1e6) == 42


@pytest.mark.parametrize(("height", "length"), [(2, 14), (4, 14), (10, 30), (30, 30)])
def test_at_first_little_attention_lies_on_phrases(height, length):
    """A phrase starts as the mean of its tokens; with the papers' initialisation it starts as none of them."""
    model, batch = model_of("--treeformer-height", str(height)), inputs_of(*pairs(TASK, length))
    extra = model(**batch)[1]
    cells = extra["cell_attn"][0]
    encoded = model.encoder(batch["src_tokens"])
    chart = encoded["cells"][0]
    phrases = (chart.length > 1) & ~chart.unused
    share = (cells * phrases[:, None]).sum(-1)[batch["prev_output_tokens"].ne(PAD)].mean()
    uniform = (phrases.sum(1) / (~chart.unused).sum(1)).mean()
    assert 0.01 < share < 0.1 < uniform
    states = encoded["cell_states"][0]
    for sentence, cell in phrases.nonzero().tolist():
        start, length = int(chart.start[cell]), int(chart.length[cell])
        mean = states[start : start + length, sentence].mean(0)
        assert torch.cosine_similarity(states[cell, sentence], mean, dim=0) > 0.8
