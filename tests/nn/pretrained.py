"""Small encoders with random weights, saved by their library, in place of pretrained ones."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from tree_fairseq.nn.pretrained import library as transformers_library

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]


def library():
    """The package ``transformers``; skips the test if it is not installed."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("the package transformers is not installed")
    return transformers_library()


def save_albert(path, pieces, **sizes):
    """Writes a small ALBERT and its tokenizer, whose pieces are words; returns the folder."""
    transformers = library()
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {piece: number for number, piece in enumerate([*SPECIAL, *reversed(pieces)])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(path)
    torch.manual_seed(0)
    defaults = {
        "vocab_size": len(words), "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 40, "pad_token_id": 0, "initializer_range": 0.5,
    }  # fmt: skip
    transformers.AlbertModel(transformers.AlbertConfig(**{**defaults, **sizes})).save_pretrained(path)
    return path
