"""Attention to pretrained states by source tokens: alone and in a batch, in alignments and in ensembles."""

from __future__ import annotations

import pytest
import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from tests.nn.pretrained import save_albert
from tests.nn.tiny import PAD, build, net_input, pairs, tiny_task
from tree_fairseq.nn import extended_transformer  # noqa: F401  (registers the architectures)

ARCH = "source_encoder_transformer_tiny"
LENGTHS = (7, 4, 1)
TASK = tiny_task()


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    return str(save_albert(tmp_path_factory.mktemp("albert"), TASK.source_dictionary.symbols[4:]))


@pytest.fixture(scope="module")
def pretrained(albert):
    """A model whose cross-attention differs much from word to word."""
    model = build(TASK, "--source-encoder", "pretrained", "--encoder-path", albert, arch=ARCH).double()
    for layer in model.decoder.layers:
        for projection in (layer.encoder_attn.q_proj, layer.encoder_attn.k_proj):
            torch.nn.init.normal_(projection.weight, std=0.8)
    return model


def inputs_of(examples: list, left_pad: bool = True) -> dict:
    return {name: value for name, value in net_input(examples, left_pad).items() if name != "source_spans"}


def direct_attention(model, example) -> Tensor:
    """``[T, N]``, what fairseq's decoder reads of a sentence alone, without what it reads of the start."""
    alone = inputs_of([example])
    encoder_out = model.encoder(alone["src_tokens"])
    _, extra = TransformerDecoderBase.extract_features(model.decoder, alone["prev_output_tokens"], encoder_out)
    return extra["attn"][0][0, :, 1:]


@pytest.mark.parametrize("left_pad", [True, False])
@torch.no_grad()
def test_attention_is_of_source_tokens(pretrained, left_pad):
    examples = pairs(TASK, *LENGTHS)
    inputs = inputs_of(examples, left_pad)
    attention = pretrained(**inputs)[1]["attn"][0]
    is_token = inputs["src_tokens"].ne(PAD)
    assert attention.shape == (len(examples), inputs["prev_output_tokens"].size(1), inputs["src_tokens"].size(1))
    for row, example in enumerate(examples):
        expected = direct_attention(pretrained, example)
        assert not attention[row][:, ~is_token[row]].any()
        torch.testing.assert_close(attention[row, : len(expected), is_token[row]], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("left_pad", [True, False])
def test_alignments_alone_equal_those_in_a_batch(pretrained, left_pad):
    options = {"beam_size": 2, "max_len_b": 6, "print_alignment": "hard"}
    generator = SequenceGeneratorWithAlignment([pretrained], TASK.target_dictionary, **options)
    examples = pairs(TASK, *LENGTHS)

    def found(batch: list) -> list[tuple]:
        sample = {"net_input": inputs_of(batch, left_pad), "target": None}
        ranked = generator.generate([pretrained], sample)
        return [[(best["tokens"].tolist(), best["alignment"]) for best in beam] for beam in ranked]

    together = found(examples)
    assert together == [beam for example in examples for beam in found([example])]
    assert {source for beam in together for _, alignment in beam for source, _ in alignment} > {0}


@torch.no_grad()
def test_an_ensemble_with_a_model_of_another_encoder_has_the_mean_of_attention(pretrained):
    plain = build(TASK, "--source-encoder", "transformer", arch=ARCH, seed=1).double()
    inputs = inputs_of(pairs(TASK, *LENGTHS))
    models = [pretrained, plain]
    for members in (models, models[::-1]):
        generator = SequenceGenerator(members, TASK.target_dictionary, beam_size=2, max_len_b=6)
        for row, ranked in enumerate(generator.generate(members, {"net_input": inputs})):
            best = ranked[0]
            previous = torch.cat([inputs["prev_output_tokens"][:1, :1], best["tokens"][None, :-1]], dim=1)
            one = {
                "src_tokens": inputs["src_tokens"][row : row + 1],
                "src_lengths": inputs["src_lengths"][row : row + 1],
            }
            each = [model(**one, prev_output_tokens=previous)[1]["attn"][0][0] for model in models]
            mean = torch.stack(each).mean(0).T.to(best["attention"])  # N x T
            torch.testing.assert_close(best["attention"], mean, rtol=1e-3, atol=1e-5)
