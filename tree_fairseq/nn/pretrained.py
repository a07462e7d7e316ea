"""Pretrained encoders of HuggingFace's optional package ``transformers``, from a local folder or the hub.

Only this file imports the package: encoders as those of fairseq, their tokenizers, and word pieces of raw text.
"""

import functools
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Optional, Union

import torch
from fairseq.data import Dictionary
from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.tensors import first_tokens, padded_on_the_right
from tree_fairseq.repairs.fairseq_versions import stand_in_for_broken_torchaudio
from tree_fairseq.support.options import option
from tree_fairseq.support.python_versions import import_library

logger = logging.getLogger(__name__)

_UNKNOWN = -1
_DROPOUT = ("hidden_dropout_prob", "hidden_dropout", "dropout")
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
# Nothing is fetched when a model is loaded, and no code of it runs.
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
# All that an encoder and its tokenizer are made of; weights in forms that can run code are not fetched.
_WANTED = ["*.json", "*.model", "*.txt", "*.safetensors"]


def library() -> ModuleType:
    """Imports the package."""
    stand_in_for_broken_torchaudio()
    return import_library("transformers", "pretrained", "a pretrained encoder")


def encoder_folder(name: Union[str, os.PathLike]) -> Path:
    """Returns the folder of an encoder. A name that is not a path is fetched from the hub."""
    path = Path(name)
    if path.exists() or path.is_absolute() or len(path.parts) > 2 or os.fspath(name).startswith("."):
        return path
    hub = import_library("huggingface_hub", "pretrained", "a pretrained encoder")
    try:
        return Path(hub.snapshot_download(repo_id=os.fspath(name), allow_patterns=_WANTED))
    # Errors of the hub, the network and the file system have no common base.
    except Exception as error:
        problem = f"{name} is not a folder, and no encoder of that name can be fetched from the hub: {error}"
        raise InputError(problem, hint="Give a folder, or check the name.") from error


def load_tokenizer(folder: Union[str, os.PathLike]):
    """Loads the tokenizer of an encoder's folder."""
    transformers = library()
    files = "The tokenizer's files (tokenizer.json, vocab.txt, spiece.model, ...)"
    hint = f"{files} belong beside config.json; its save_pretrained() writes them."
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_LOCAL)
    except Exception as error:
        raise InputError(f"no tokenizer can be loaded: {error}", folder, hint=hint) from error
    # If its files are missing, transformers makes a tokenizer without any words from config.json.
    if not set(tokenizer.get_vocab()).difference(tokenizer.all_special_tokens):
        raise InputError("no tokenizer can be loaded: there is no vocabulary", folder, hint=hint)
    return tokenizer


class PretrainedEncoder(FairseqEncoder):
    """The last layer's states of a pretrained encoder such as BERT.

    Sources are its word pieces: every symbol of the dictionary is a piece of its vocabulary, or unknown to it. EOS
    becomes its separator, and its start is put before each sentence. The second sentence of a pair, after the first
    EOS, gets segment 1 if the model has segments. ``width`` is E, that of the states.

    Args:
        dictionary: of the source
        model: of ``transformers``
        pieces: ``[V]`` int64, the piece of each symbol; those of BOS, EOS and padding are the start, the separator and
            padding
        max_pieces: longest source, EOS included, unless the model has fewer positions
    """

    def __init__(self, dictionary: Dictionary, model: nn.Module, pieces: Tensor, max_pieces: int):
        super().__init__(dictionary)
        self.model = model
        self.register_buffer("pieces", pieces)
        self.max_pieces = min(max_pieces, _num_positions(model) - 1)
        self.width: int = model.config.hidden_size

    @classmethod
    def build(
        cls, dictionary: Dictionary, folder: Optional[Union[str, os.PathLike]], description: Optional[str], **dropout
    ) -> "PretrainedEncoder":
        """Builds the encoder of a folder, or one that a checkpoint describes, whose weights and pieces it has."""
        if description is None:
            return cls.from_folder(dictionary, folder, **dropout)
        transformers = library()
        facts = json.loads(description)
        config = transformers.AutoConfig.for_model(**facts["config"])
        model = _states_only(transformers.AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32))
        pieces = torch.full((len(dictionary),), dictionary.pad())
        return cls(dictionary, model, pieces, facts["max_pieces"])

    @classmethod
    def from_folder(
        cls,
        dictionary: Dictionary,
        folder: Optional[Union[str, os.PathLike]],
        dropout: Optional[float] = None,
        attention_dropout: Optional[float] = None,
    ) -> "PretrainedEncoder":
        """Loads an encoder from ``config.json``, the tokenizer's files and weights in the form of safetensors.

        Dropout replaces that of the configuration. Raises InputError if the folder does not exist, is not of an
        encoder, or has weights in a form that can run code; the dictionary has none of its pieces; or ``transformers``
        is missing.
        """
        path = _checked(folder)
        transformers = library()
        tokenizer = load_tokenizer(path)
        try:
            config = transformers.AutoConfig.from_pretrained(path, **_LOCAL)
            for value, names in ((dropout, _DROPOUT), (attention_dropout, _ATTENTION_DROPOUT)):
                config.update({name: value for name in names if value is not None and hasattr(config, name)})
            options = {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
            model, report = transformers.AutoModel.from_pretrained(path, config=config, **_LOCAL, **options)
        # Its own exceptions and those of safetensors have no common base.
        except Exception as error:
            raise InputError(f"no pretrained encoder can be loaded: {error}", path) from error
        missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
        if missing:
            raise InputError(f"the file of weights lacks {len(missing)} of the encoder's, such as {missing[0]}", path)
        model = _states_only(model, path)
        pieces = _pieces(dictionary, tokenizer, path)
        logger.info("pretrained encoder %s: %s, width %d", path, type(model).__name__, model.config.hidden_size)
        return cls(dictionary, model, pieces, int(tokenizer.model_max_length) - 1)

    def describe(self) -> str:
        """Returns the encoder as JSON, which checkpoints keep, so that they load without its folder."""
        return json.dumps({"config": self.model.config.to_dict(), "max_pieces": self.max_pieces})

    def forward(self, src_tokens: Tensor, *unread: Any, **options: Any) -> dict[str, list]:
        """Encodes ``src_tokens`` ``[B, N]``, padded on either side, which are part of the output.

        ``encoder_out`` is ``[N + 1, B, E]``, the start and then the columns of the source, and
        ``encoder_padding_mask`` is ``[B, N + 1]``.
        """
        pad = self.dictionary.pad()
        # Pretrained positions count from the left.
        tokens = functional.pad(padded_on_the_right(src_tokens, pad), (1, 0), value=self.dictionary.bos())
        padding = tokens.eq(pad)
        inputs = {"input_ids": self.pieces[tokens], "attention_mask": (~padding).long()}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            is_end = tokens.eq(self.dictionary.eos()).long()
            segments = (is_end.cumsum(1) - is_end).clamp(max=1)  # 0 up to the first EOS, 1 after it
            inputs["token_type_ids"] = segments.masked_fill(padding, 0)
        states = self.model(**inputs).last_hidden_state
        # Where the model reads the start and each token of the source, (B, N + 1)
        places = torch.arange(src_tokens.size(1), device=src_tokens.device)
        first = first_tokens(src_tokens.ne(pad))
        columns = functional.pad((places - first) % max(src_tokens.size(1), 1) + 1, (1, 0))
        return {
            "encoder_out": [states.gather(1, columns.unsqueeze(2).expand_as(states)).transpose(0, 1)],
            "encoder_padding_mask": [padding.gather(1, columns)],
            "src_lengths": [(~padding).sum(1, dtype=torch.int32, keepdim=True)],
            "src_tokens": [src_tokens],
            "encoder_embedding": [],
            "encoder_states": [],
        }

    reorder_encoder_out = TransformerEncoderBase.reorder_encoder_out

    def max_positions(self) -> int:
        """Returns the length of the longest source."""
        return self.max_pieces


def _checked(folder: Optional[Union[str, os.PathLike]]) -> Path:
    """Makes sure that a folder has a configuration and safe weights."""
    if folder is None:
        raise InputError("a pretrained encoder needs its folder", hint="Give it: --encoder-path DIR.")
    path, hint = Path(folder), "Save the encoder with save_pretrained(), which writes model.safetensors."
    if not (path / "config.json").is_file():
        raise InputError("not a folder of a pretrained encoder: it has no config.json", path, hint=hint)
    if not any(path.glob("*.safetensors")):
        problem = "no file of weights (*.safetensors); weights in other forms could run code"
        raise InputError(problem, path, hint=hint)
    return path


def _states_only(model: nn.Module, path: Optional[Path] = None) -> nn.Module:
    """Removes the layer over the first state, which would get no gradient."""
    if model.config.is_encoder_decoder or not hasattr(model.config, "max_position_embeddings"):
        problem = f"a model of type {model.config.model_type} is not just an encoder"
        raise InputError(problem, path, hint="Take one such as BERT.")
    if hasattr(model, "pooler"):
        model.pooler = None
    return model


def _num_positions(model: nn.Module) -> int:
    """Returns the length of the longest sequence. RoBERTa and others do not use positions up to that of padding."""
    tables = (module for name, module in model.named_modules() if name.split(".")[-1] == "position_embeddings")
    padding = [getattr(table, "padding_idx", None) for table in tables]
    unused = max((place + 1 for place in padding if place is not None), default=0)
    return int(model.config.max_position_embeddings) - unused


def _pieces(dictionary: Dictionary, tokenizer, path: Path) -> Tensor:
    """Finds the piece of each symbol."""
    vocabulary = tokenizer.get_vocab()
    special = {
        dictionary.bos(): tokenizer.cls_token_id,
        dictionary.eos(): tokenizer.sep_token_id,
        dictionary.pad(): tokenizer.pad_token_id,
        dictionary.unk(): tokenizer.unk_token_id,
    }
    if None in special.values():
        raise InputError("the tokenizer lacks a start, separator, padding or unknown piece", path)
    found = torch.tensor(
        [special.get(index, vocabulary.get(symbol, _UNKNOWN)) for index, symbol in enumerate(dictionary.symbols)]
    )
    # fairseq fills dictionaries up with made-up words, which no text has.
    ordinary = enumerate(dictionary.symbols[dictionary.nspecial :], dictionary.nspecial)
    words = {index: symbol for index, symbol in ordinary if not symbol.startswith("madeupword")}
    unknown = [symbol for index, symbol in words.items() if found[index] == _UNKNOWN]
    if words and len(unknown) == len(words):
        symbols = f"none of the {len(words)} symbols of the source's dictionary, such as {unknown[-1]!r}"
        hint = "Its sources are sequences of its own word pieces."
        raise InputError(f"{symbols}, is a piece of the pretrained encoder", path, hint=hint)
    if unknown:
        count = f"{len(unknown)} of {len(words)} symbols of the source's dictionary"
        logger.warning("%s are not pieces of %s and unknown to it, such as %r", count, path, unknown[0])
    return found.masked_fill(found == _UNKNOWN, tokenizer.unk_token_id)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class PretrainedPiecesConfig(FairseqDataclass):
    """Options of ``--bpe pretrained_pieces``."""

    pieces_of: Optional[str] = option(
        None, "folder of the pretrained encoder whose pieces are used, or its name on the hub"
    )


@register_bpe("pretrained_pieces", dataclass=PretrainedPiecesConfig)
class PretrainedPieces:
    """Cuts raw text into the word pieces of a pretrained tokenizer, without its start and separator."""

    def __init__(self, cfg):
        if cfg.pieces_of is None:
            hint = "Give its folder: --pieces-of DIR."
            raise InputError("--bpe pretrained_pieces needs an encoder's tokenizer", hint=hint)
        self.folder = encoder_folder(cfg.pieces_of)

    @functools.cached_property
    def tokenizer(self):
        """The tokenizer, loaded when it is needed."""
        return load_tokenizer(self.folder)

    def dictionary(self) -> Dictionary:
        """A dictionary of all pieces, in their order; new text may contain pieces that training does not have.

        Special pieces are left out: fairseq has its own, and the encoder translates them.
        """
        made = Dictionary()
        special = {*self.tokenizer.all_special_tokens, *made.symbols}
        for piece, _ in sorted(self.tokenizer.get_vocab().items(), key=lambda entry: entry[1]):
            if piece not in special:
                made.add_symbol(piece)
        return made

    def encode(self, text: str) -> str:
        """Returns the pieces of a text, separated by blanks."""
        return " ".join(self.tokenizer.tokenize(text))

    def decode(self, text: str) -> str:
        """Returns the text itself: models generate trees and classes, which a tokenizer would change."""
        return text
