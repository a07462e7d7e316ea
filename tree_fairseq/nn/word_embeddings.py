"""Vectors of words: random ones, or those of a file as fairseq's models read them."""

from __future__ import annotations

import os

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from tree_fairseq.errors import InputError


def build_word_embeddings(cfg, dictionary: Dictionary) -> nn.Embedding:
    """The words' vectors, drawn as fairseq's transformer draws them.

    Args:
        cfg: with ``encoder_embed_dim``, ``encoder_embed_path``, whose vectors take the place of random ones where the file
            has the word, and ``freeze_embeddings``
        dictionary: V words

    Returns:
        ``[V, encoder_embed_dim]``

    Raises:
        InputError: the file holds no vectors, or of another width
    """
    embeddings = TransformerModelBase.build_embedding(cfg, dictionary, cfg.encoder_embed_dim)
    if cfg.encoder_embed_path:
        vectors = _read_vectors(cfg.encoder_embed_path, cfg.encoder_embed_dim)
        utils.print_embed_overlap(vectors, dictionary)
        utils.load_embedding(vectors, dictionary, embeddings)
    embeddings.weight.requires_grad = not cfg.freeze_embeddings
    return embeddings


def _read_vectors(path: str | os.PathLike, width: int) -> dict[str, Tensor]:
    """The vectors of a file, ``[width]`` each, by their words."""
    try:
        with open(path, encoding="utf-8") as lines:
            # fairseq takes the first line for the two numbers and would lose a vector.
            if len(next(lines, "").split()) > 2:
                raise InputError(
                    "the first line is a vector", path, 1,
                    hint="Put a line before it with the number of vectors and that of the numbers in each.",
                )  # fmt: skip
        vectors = utils.parse_embedding(path)
    except (StopIteration, OSError) as error:
        raise InputError("there are no vectors to read", path, hint="Check --encoder-embed-path.") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"a line is not a word and its vector: {error}", path) from error
    for word, vector in vectors.items():
        if len(vector) != width:
            raise InputError(
                f"the vector of {word!r} has {len(vector)} numbers, but --encoder-embed-dim is {width}", path
            )
    return vectors
