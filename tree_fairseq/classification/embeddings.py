"""fairseq's flags of a transformer's encoder, and word vectors from a file."""

import copy
import os
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from typing import Union

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.models.transformer.transformer_config import EncDecBaseConfig
from torch import Tensor, nn

from tree_fairseq.errors import InputError

_SIZES = "embed_path embed_dim ffn_embed_dim layers attention_heads normalize_before learned_pos layerdrop".split()
_OPTIONS = (
    "activation_fn dropout attention_dropout activation_dropout no_token_positional_embeddings no_scale_embedding "
    "layernorm_embedding checkpoint_activations offload_activations"
).split()


def add_encoder_args(parser: ArgumentParser) -> None:
    """Adds fairseq's flags of a transformer's encoder; architectures set the defaults."""
    _add_fields(parser, EncDecBaseConfig, _SIZES, "--encoder")
    _add_fields(parser, TransformerConfig, _OPTIONS)


def _add_fields(parser: ArgumentParser, config: type, names: Sequence[str], prefix: str = "") -> None:
    """Adds the flags of some fields of a dataclass."""
    kept = [(own.name, own.type, copy.copy(own)) for own in fields(config) if own.name in names]
    flags = make_dataclass(config.__name__, kept, bases=(FairseqDataclass,))
    gen_parser_from_dataclass(parser, flags(), delete_default=True, with_prefix=prefix)


def build_word_embeddings(cfg, dictionary: Dictionary) -> nn.Embedding:
    """Makes the vectors ``[V, encoder_embed_dim]`` of words as fairseq's transformer does.

    Those of the file ``encoder_embed_path`` replace random ones; with ``freeze_embeddings`` none are trained.
    """
    embeddings = TransformerModelBase.build_embedding(cfg, dictionary, cfg.encoder_embed_dim)
    if cfg.encoder_embed_path:
        vectors = _read_vectors(cfg.encoder_embed_path, cfg.encoder_embed_dim)
        utils.print_embed_overlap(vectors, dictionary)
        utils.load_embedding(vectors, dictionary, embeddings)
    embeddings.weight.requires_grad = not cfg.freeze_embeddings
    return embeddings


def _read_vectors(path: Union[str, os.PathLike], width: int) -> dict[str, Tensor]:
    """The vectors of a file, ``[width]`` each, by their words."""
    try:
        with open(path, encoding="utf-8") as lines:
            first = next(lines).split()
        vectors = utils.parse_embedding(path)
    except (StopIteration, OSError, ValueError) as error:
        raise InputError(
            f"no word vectors can be read ({error!r})", path, hint="Check --encoder-embed-path."
        ) from error
    if len(first) > 2:  # fairseq takes the first line for two numbers, and would lose a vector
        hint = "Put a line before it with the number of vectors and that of the numbers in each."
        raise InputError("the first line is a vector", path, 1, hint=hint)
    for word, vector in vectors.items():
        if len(vector) != width:
            problem = f"the vector of {word!r} has {len(vector)} numbers, but --encoder-embed-dim is {width}"
            raise InputError(problem, path)
    return vectors
