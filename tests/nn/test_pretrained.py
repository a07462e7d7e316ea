"""Pretrained encoders from a local folder, tested with a small BERT of random weights."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from tests.nn.pretrained import library, save_roberta
from tests.nn.tiny import arguments, build, dictionary
from tests.tree_insertion.insertion_pairs import TINY, Examples, insertion_task
from tree_fairseq.errors import InputError, MissingLibraryError
from tree_fairseq.nn.pretrained import PretrainedEncoder

PIECES = [*(f"s{k}" for k in range(18)), "##ly"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    transformers = library()
    path = tmp_path_factory.mktemp("bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *reversed(PIECES)]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


SOURCE = dictionary(*(f"s{k}" for k in range(20)), "##ly")
SENTENCES = [[4, 9, 24], [23, 5, 6, 7, 8], [11]]


def batch(left_pad: bool) -> torch.Tensor:
    tokens = torch.full((3, 7), SOURCE.pad())
    for row, sentence in enumerate(SENTENCES):
        ended = torch.tensor([*sentence, SOURCE.eos()])
        first = 7 - len(ended) if left_pad else 0
        tokens[row, first : first + len(ended)] = ended
    return tokens


def states_of(encoder_out: dict, row: int) -> torch.Tensor:
    """States of a sentence, its start first, without those of padding."""
    return encoder_out["encoder_out"][0][~encoder_out["encoder_padding_mask"][0][row], row]


@pytest.mark.parametrize("left_pad", [True, False])
def test_states_equal_those_of_the_library(folder, left_pad, caplog):
    transformers = library()
    encoder = PretrainedEncoder.from_folder(SOURCE, folder).eval()
    assert "2 of 21 symbols" in caplog.text, "s18 and s19 are no pieces"
    stock = transformers.BertModel.from_pretrained(folder).eval()
    vocabulary = (folder / "vocab.txt").read_text().split()
    with torch.no_grad():
        output = encoder(batch(left_pad))
        for row, sentence in enumerate(SENTENCES):
            pieces = [
                "[CLS]",
                *(SOURCE[index] if SOURCE[index] in vocabulary else "[UNK]" for index in sentence),
                "[SEP]",
            ]
            alone = stock(input_ids=torch.tensor([[vocabulary.index(piece) for piece in pieces]])).last_hidden_state[0]
            torch.testing.assert_close(states_of(output, row), alone, rtol=1e-4, atol=1e-5)
            # The start is followed by the columns of the source.
            padding = output["encoder_padding_mask"][0][row].tolist()
            assert padding == [False, *batch(left_pad)[row].eq(SOURCE.pad()).tolist()]
            assert output["src_lengths"][0][row] == len(alone)
    assert (encoder.width, encoder.max_positions()) == (16, 23)


def test_rows_can_be_reordered(folder):
    encoder = PretrainedEncoder.from_folder(SOURCE, folder).eval()
    order = torch.tensor([2, 0, 0])
    with torch.no_grad():
        moved = encoder.reorder_encoder_out(encoder(batch(True)), order)
        expected = encoder(batch(True)[order][:, -6:])
    for row in range(3):
        assert moved["src_lengths"][0][row] == expected["src_lengths"][0][row]
        torch.testing.assert_close(states_of(moved, row), states_of(expected, row), rtol=1e-4, atol=1e-5)
    assert moved["src_tokens"][0].equal(batch(True)[order])


def test_positions_after_that_of_padding_are_read_to_the_last(tmp_path):
    """RoBERTa's positions begin after that of padding, so its table is longer than what it reads."""
    folder = save_roberta(tmp_path, PIECES, max_position_embeddings=12, pad_token_id=1)
    encoder = PretrainedEncoder.build(SOURCE, folder, None).eval()
    assert encoder.max_positions() == 9, "12 positions less two that are not used and one of the start"

    def read(length: int) -> torch.Tensor:
        return encoder(torch.tensor([[*[5] * (length - 1), SOURCE.eos()]]))["encoder_out"][0]

    with torch.no_grad():
        assert read(9).isfinite().all()
        with pytest.raises((IndexError, RuntimeError), match="index"):
            read(10)
    facts = json.dumps({**json.loads(encoder.describe()), "max_pieces": 11})
    assert PretrainedEncoder.build(SOURCE, None, facts).max_positions() == 9, "what a checkpoint says is checked"


# In the model


def test_it_encodes_for_insertion_and_learns(folder):
    model = build(
        insertion_task(), "--insertion-encoder", "pretrained", "--encoder-path", str(folder), arch=TINY
    ).train()
    model(**Examples(5, 3, 1).net_input())["logits"].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name
    assert model.decoder.layers[0].encoder_attn.kdim == 16


def test_a_checkpoint_loads_without_the_folder(folder, tmp_path):
    copy = tmp_path / "encoder"
    shutil.copytree(folder, copy)
    args = arguments(TINY, "--insertion-encoder", "pretrained", "--encoder-path", str(copy))
    model = ARCH_MODEL_REGISTRY[TINY].build_model(args, insertion_task()).eval()
    shutil.rmtree(copy)
    again = ARCH_MODEL_REGISTRY[TINY].build_model(args, insertion_task()).eval()
    again.load_state_dict(model.state_dict())
    inputs = Examples(5, 3, 1).net_input()
    with torch.no_grad():
        torch.testing.assert_close(again(**inputs)["logits"], model(**inputs)["logits"], rtol=0, atol=0)
    assert json.loads(args.pretrained_description)["config"]["model_type"] == "bert"


# Refusals


def refused(path, message: str, symbols=SOURCE) -> None:
    with pytest.raises(InputError, match=message):
        PretrainedEncoder.from_folder(symbols, path)


def test_missing_and_incomplete_folders_are_refused(tmp_path, folder):
    library()
    refused(None, "--encoder-path DIR")
    refused(tmp_path / "nowhere", "has no config.json")
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(folder / "config.json", empty)
    refused(empty, r"no file of weights \(\*.safetensors\)")


def test_pickled_weights_are_never_loaded(tmp_path, folder):
    pickled = tmp_path / "pickled"
    shutil.copytree(folder, pickled, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save({}, pickled / "pytorch_model.bin")
    refused(pickled, "weights in other forms could run code.*save_pretrained")


def test_truncated_or_incomplete_weights_are_refused(tmp_path, folder):
    from safetensors.torch import load_file, save_file

    torn = tmp_path / "torn"
    shutil.copytree(folder, torn)
    whole = (torn / "model.safetensors").read_bytes()
    (torn / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(torn, "no pretrained encoder can be loaded")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: value for name, value in weights.items() if "layer.1." not in name},
        torn / "model.safetensors",
        metadata={"format": "pt"},
    )
    refused(torn, "lacks 16 of the encoder's, such as encoder.layer.1")


def test_other_kinds_of_model_are_refused(tmp_path, folder):
    transformers = library()
    other = tmp_path / "t5"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    config = transformers.T5Config(vocab_size=24, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)
    transformers.T5Model(config).save_pretrained(other)
    (other / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    refused(other, "a model of type t5 is not just an encoder")


def test_words_that_pad_the_dictionary_do_not_count_as_unknown(folder, caplog):
    PretrainedEncoder.from_folder(
        folder=folder, dictionary=dictionary("s0", "##ly", "madeupword0000", "madeupword0001")
    )
    assert "unknown" not in caplog.text


def test_a_folder_without_tokenizer_files_is_refused(tmp_path, folder):
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("vocab.txt"))
    refused(bare, "no tokenizer can be loaded.*vocab.txt.*belong beside config.json")


def test_sources_that_are_not_split_into_pieces_are_refused(folder):
    refused(folder, "none of the 2 symbols .* such as 'boat'", dictionary("the", "boat"))


def test_the_message_names_the_missing_package(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingLibraryError, match=r"needs transformers.*pip install 'tree-fairseq\[pretrained\]'"):
        PretrainedEncoder.from_folder(SOURCE, tmp_path)
