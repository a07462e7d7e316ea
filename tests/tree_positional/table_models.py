"""Models that are tables: random log-probabilities of the next symbol for every source and prefix."""

from __future__ import annotations

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder

PAD = 1


class TableEncoder(FairseqEncoder):
    """Hands the source on."""

    def forward(self, src_tokens, src_lengths=None, **kwargs):
        return {"source": src_tokens}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"source": encoder_out["source"].index_select(0, new_order)}


class TableLookup:
    """Logits by source and prefix."""

    def scores(self, source: list[int], prefix: list[int]) -> np.ndarray:
        known = [token for token in source if token != PAD]
        random = np.random.default_rng([self.seed, len(known), *known, *prefix])
        return random.normal(size=len(self.dictionary)) * self.sharpness + self.bias

    def look_up(self, prev_output_tokens, encoder_out):
        rows = zip(encoder_out["source"].tolist(), prev_output_tokens[:, 1:].tolist())
        found = np.stack([self.scores(source, prefix) for source, prefix in rows])
        return torch.from_numpy(found)[:, None].to(self.dtype), None

    def max_positions(self):
        return self.positions


class TableDecoder(TableLookup, FairseqDecoder):
    """Reads the whole prefix at every step."""

    def forward(self, prev_output_tokens, encoder_out=None, **kwargs):
        return self.look_up(prev_output_tokens, encoder_out)


class IncrementalTableDecoder(TableLookup, FairseqIncrementalDecoder):
    """Keeps the prefix itself and looks at the last token only."""

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **kwargs):
        state = self.get_incremental_state(incremental_state, "prefix") or {}
        last = prev_output_tokens[:, -1:]
        prefix = torch.cat([state["prefix"], last], dim=1) if state else last
        self.set_incremental_state(incremental_state, "prefix", {"prefix": prefix})
        return self.look_up(prefix, encoder_out)

    def reorder_incremental_state(self, incremental_state, new_order):
        state = self.get_incremental_state(incremental_state, "prefix")
        moved = {"prefix": state["prefix"].index_select(0, new_order)}
        self.set_incremental_state(incremental_state, "prefix", moved)


class TableModel(FairseqEncoderDecoderModel):
    """An encoder and a decoder without parameters.

    ``sharpness`` is the standard deviation of the logits, to which ``bias`` is added.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        seed: int = 0,
        sharpness: float = 1.0,
        bias=0.0,
        is_incremental: bool = True,
        positions: int = 100,
        dtype: torch.dtype = torch.float64,
    ):
        decoder = (IncrementalTableDecoder if is_incremental else TableDecoder)(dictionary)
        decoder.seed, decoder.sharpness, decoder.bias = seed, sharpness, bias
        decoder.positions, decoder.dtype = positions, dtype
        super().__init__(TableEncoder(dictionary), decoder)

    def log_probabilities(self, source: list[int], prefix: list[int], temperature: float = 1.0) -> torch.Tensor:
        """What the model says of the next symbol, ``[V]`` float64."""
        return torch.log_softmax(torch.from_numpy(self.decoder.scores(source, prefix)) / temperature, dim=0)


def batch(sources: list[list[int]]) -> dict:
    width = max(map(len, sources))
    rows = [[PAD] * (width - len(source)) + source for source in sources]
    lengths = torch.tensor([len(source) for source in sources])
    return {"id": torch.arange(len(sources)), "net_input": {"src_tokens": torch.tensor(rows), "src_lengths": lengths}}
