"""A checkpoint or a parser's model that would run code is refused; test_38_untrusted_checkpoints has all commands."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
import torch

from tests.faults.hostile_checkpoints import Payload
from tree_fairseq.errors import ParserError
from tree_fairseq.parsing.parsers import ParserOptions, build_parser


def test_a_parser_s_model_is_refused(marker, tmp_path):
    bundled = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "stanza-en"
    folder = shutil.copytree(bundled, tmp_path / "parser")
    model = torch.load(folder / "constituency.pt", map_location="cpu", weights_only=True)
    torch.save({**model, "payload": Payload(marker)}, folder / "constituency.pt")
    with pytest.raises((ParserError, pickle.UnpicklingError, RuntimeError)):
        parser = build_parser(ParserOptions(name="stanza", lang="en", parser_dir=str(folder)))
        parser.parse([["the", "man", "sleeps", "."]])
