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


def save_tokenizer(path, pieces, **special: str) -> None:
    """Writes a tokenizer whose pieces are words; ``special`` are the names of its special pieces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library().PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(path)


def save_roberta(path, pieces, **sizes):
    """Writes a small RoBERTa and its tokenizer, whose pieces are words; returns the folder."""
    transformers = library()
    words = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    save_tokenizer(path, words, pad_token="<pad>", unk_token="<unk>", cls_token="<s>", sep_token="</s>")
    torch.manual_seed(0)
    defaults = {
        "vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 12, "pad_token_id": 1, "type_vocab_size": 1,
    }  # fmt: skip
    transformers.RobertaModel(transformers.RobertaConfig(**{**defaults, **sizes})).save_pretrained(path)
    return path


def save_albert(path, pieces, **sizes):
    """Writes a small ALBERT and its tokenizer, whose pieces are words; returns the folder."""
    transformers = library()
    words = [*SPECIAL, *reversed(pieces)]
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    save_tokenizer(path, words, **dict(zip(names, SPECIAL)))
    torch.manual_seed(0)
    defaults = {
        "vocab_size": len(words), "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 40, "pad_token_id": 0, "initializer_range": 0.5,
    }  # fmt: skip
    transformers.AlbertModel(transformers.AlbertConfig(**{**defaults, **sizes})).save_pretrained(path)
    return path
