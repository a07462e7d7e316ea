"""Tree-Transformer and Treeformer, whose decoders attend to phrases: what may and may not change their output."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch.nn import functional

from tests.nn.tiny import (
    PAD,
    arguments,
    build,
    logits,
    net_input,
    pairs,
    sizes_of,
    stack,
    stock_flags,
    takes_stock_weights,
    tiny_task,
)
from tree_fairseq.treeformer import model as treeformer  # noqa: F401  (registers the architectures)

TASK = tiny_task()
LENGTHS = (14, 1, 4, 11, 2)  # one of them a single leaf, hence without a phrase
BATCH = pairs(TASK, *LENGTHS)
FLAGS = {"tree_transformer_tiny": (), "treeformer_tiny": ("--treeformer-height", "4")}
NEW = {
    "tree_transformer_tiny": ("embed_labels", ".accumulation.", ".phrase_bias."),
    "treeformer_tiny": (".chart.", ".phrase_bias."),
}
"""Parts of names of weights that fairseq's transformer does not have."""
of_both = pytest.mark.parametrize("arch", FLAGS)


def model_of(arch: str, *flags: str, **options):
    return build(TASK, *FLAGS.get(arch, ()), *flags, arch=arch, **options)


def inputs_of(arch: str, batch, **options) -> dict:
    given = net_input(batch, **options)
    return {name: value for name, value in given.items() if name != "source_spans" or arch == "tree_transformer_tiny"}


def is_new(arch: str, name: str) -> bool:
    return any(part in name for part in NEW[arch])


@of_both
@pytest.mark.parametrize("left_pad", [True, False])
def test_a_sentence_alone_equals_the_sentence_in_a_batch(arch, left_pad):
    model = model_of(arch)
    together = logits(model, inputs_of(arch, BATCH, left_pad=left_pad, width=17))
    for row, pair in enumerate(BATCH):
        alone = logits(model, inputs_of(arch, [pair]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=1e-4, atol=1e-5)


@of_both
def test_padding_gets_no_gradient_and_everything_else_does(arch):
    model = model_of(arch).train()
    output = model(**inputs_of(arch, BATCH, width=17))[0]
    target = stack([pair.target for pair in BATCH], False)
    functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=PAD).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
        assert "embed_" not in name or "encoder" not in name or not parameter.grad[PAD].any(), name


@of_both
def test_incremental_decoding_equals_teacher_forcing(arch):
    model, inputs = model_of(arch), inputs_of(arch, BATCH)
    full, full_extra = model(**inputs)
    prefix = inputs.pop("prev_output_tokens")
    encoder_out = model.encoder(**inputs)
    state, steps, weights = {}, [], []
    for t in range(1, prefix.size(1) + 1):
        output, extra = model.decoder(prefix[:, :t], encoder_out=encoder_out, incremental_state=state)
        steps.append(output)
        weights.append(extra["attn"][0])
    real = prefix.ne(PAD)
    torch.testing.assert_close(torch.cat(steps, dim=1)[real], full[real], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.cat(weights, dim=1)[real], full_extra["attn"][0][real], rtol=1e-4, atol=1e-5)


@of_both
def test_scores_of_beam_search_are_those_of_teacher_forcing(arch):
    """Rows of the beam are permuted and shared while keys and values stay where they are."""
    model, batch = model_of(arch), pairs(TASK, *LENGTHS)
    inputs = inputs_of(arch, batch)
    del inputs["prev_output_tokens"]
    generator = SequenceGenerator([model], TASK.target_dictionary, beam_size=4, max_len_b=8)
    for pair, hypotheses in zip(batch, generator.generate([model], {"net_input": inputs})):
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"]
            assert hypothesis["attention"].shape == (inputs["src_tokens"].size(1), len(tokens))
            pair.target = tokens[:-1].numpy()
            scores = logits(model, inputs_of(arch, [pair]))[0].log_softmax(-1)
            expected = scores.gather(1, tokens[:, None])[:, 0]
            torch.testing.assert_close(hypothesis["positional_scores"], expected, rtol=1e-4, atol=1e-4)


@of_both
def test_a_stock_transformer_s_weights_load_and_the_new_ones_are_named(arch, caplog):
    stock = build(TASK, *stock_flags(), arch="transformer", seed=1)
    model = model_of(arch, seed=2)
    takes_stock_weights(model, stock, partial(is_new, arch), caplog)


@of_both
def test_with_a_bias_of_minus_thirty_the_model_is_a_stock_transformer(arch):
    model = model_of(arch)
    for name, weight in model.named_parameters():
        if "phrase_bias" in name:
            torch.nn.init.constant_(weight, -30.0)
    stock = build(TASK, *stock_flags(), arch="transformer")
    stock.load_state_dict({name: weight for name, weight in model.state_dict().items() if not is_new(arch, name)})
    real = net_input(BATCH)["prev_output_tokens"].ne(PAD)
    expected = logits(stock, inputs_of("transformer", BATCH))[real]
    torch.testing.assert_close(logits(model, inputs_of(arch, BATCH))[real], expected, rtol=1e-5, atol=1e-5)


SIZES = {  # layers, width, feed-forward, heads: of the papers
    "tree_transformer": (6, 512, 2048, 8),
    "tree_transformer_iwslt_de_en": (6, 512, 1024, 4),
    "tree_transformer_wmt_en_de": (6, 512, 2048, 8),
    "tree_transformer_wmt_en_de_big": (6, 1024, 4096, 16),
    "tree_transformer_tiny": (2, 64, 128, 4),
    "treeformer": (6, 512, 2048, 8),
    "treeformer_iwslt_de_en": (6, 512, 1024, 4),
    "treeformer_gigaword": (6, 512, 1024, 4),
    "treeformer_cogs": (2, 512, 512, 4),
    "treeformer_cognition": (6, 512, 1024, 4),
    "treeformer_tiny": (2, 64, 128, 4),
}


@pytest.mark.parametrize("arch", SIZES)
def test_architectures_have_the_sizes_of_the_papers(arch):
    assert sizes_of(arch) == SIZES[arch]
    assert getattr(arguments(arch), "treeformer_height", 10) == 10


@of_both
@pytest.mark.parametrize(
    "flags",
    [
        ("--encoder-normalize-before", "--decoder-normalize-before"),
        ("--layernorm-embedding",),
        ("--encoder-learned-pos", "--max-source-positions", "40", "--no-scale-embedding"),
        ("--decoder-embed-dim", "32", "--decoder-attention-heads", "2", "--attention-dropout", "0.1"),
        ("--encoder-layerdrop", "0.5", "--decoder-layerdrop", "0.5", "--quant-noise-pq", "0.1"),
        ("--checkpoint-activations",),
        ("--no-cross-attention",),
    ],
)
def test_flags_of_the_stock_transformer(arch, flags):
    model = model_of(arch, *flags).train()
    output = model(**inputs_of(arch, BATCH))[0]
    output.sum().backward()
    assert torch.isfinite(output).all()
    assert any(parameter.grad is not None for parameter in model.parameters())
