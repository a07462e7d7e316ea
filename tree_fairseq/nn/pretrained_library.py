"""HuggingFace's optional package ``transformers``, which only this file imports: encoders, tokenizers, word pieces."""

import functools
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Optional

from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from tree_fairseq.compat import stand_in_for_broken_torchaudio
from tree_fairseq.errors import InputError, option

_INSTALL = "Install it: pip install 'tree-fairseq[pretrained]'."
LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""Options of loading: nothing is fetched, and no code of a model runs."""
# All that an encoder and its tokenizer are made of; weights in forms that can run code are not fetched.
_WANTED = ["*.json", "*.model", "*.txt", "*.safetensors"]


def library() -> ModuleType:
    """Imports the package."""
    stand_in_for_broken_torchaudio()
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise InputError(f"a pretrained encoder needs the package transformers ({error})", hint=_INSTALL) from error


def encoder_folder(name: str | os.PathLike) -> Path:
    """The folder of an encoder: its name if that is a path, otherwise a folder that is fetched from the hub."""
    path = Path(name)
    if path.exists() or path.is_absolute() or len(path.parts) > 2 or os.fspath(name).startswith("."):
        return path
    # The hub's own package comes with transformers.
    library()
    hub = importlib.import_module("huggingface_hub")
    try:
        return Path(hub.snapshot_download(repo_id=os.fspath(name), allow_patterns=_WANTED))
    # Errors of the hub, the network and the file system have no common base.
    except Exception as error:
        problem = f"{name} is not a folder, and no encoder of that name can be fetched from the hub: {error}"
        raise InputError(problem, hint="Give a folder, or check the name.") from error


def load_tokenizer(folder: str | os.PathLike):
    """Loads the tokenizer of an encoder's folder."""
    transformers = library()
    files = "The tokenizer's files (tokenizer.json, vocab.txt, spiece.model, ...)"
    hint = f"{files} belong beside config.json; its save_pretrained() writes them."
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL)
    except Exception as error:
        raise InputError(f"no tokenizer can be loaded: {error}", folder, hint=hint) from error
    # If its files are missing, transformers makes a tokenizer without any words from config.json.
    if not set(tokenizer.get_vocab()).difference(tokenizer.all_special_tokens):
        raise InputError("no tokenizer can be loaded: there is no vocabulary", folder, hint=hint)
    return tokenizer


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

    def encode(self, text: str) -> str:
        """The pieces of a text, separated by blanks."""
        return " ".join(self.tokenizer.tokenize(text))

    def decode(self, text: str) -> str:
        """The text itself, because models generate trees and classes, which a tokenizer would change."""
        return text
