"""Compares beam search with Treeformer and with fairseq's transformer on the same sentences."""

from __future__ import annotations

import argparse

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.sequence_generator import SequenceGenerator

from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Report, milliseconds
from tests.benchmarks.translation_models import Task, stock_batch
from tree_fairseq.treeformer import model  # noqa: F401  (registers the architectures)

BATCH, COLUMNS, TARGETS, BEAM = 32, 30, 30, 5
ARCHITECTURES = {"chart": "treeformer_iwslt_de_en", "stock": "transformer_iwslt_de_en"}


class Search:
    """Beam search over one batch with a model of random weights, prepared as ``fairseq-generate`` does.

    Args:
        architecture: of the model
        size: number of sentences
        columns: tokens of each, with EOS
        targets: tokens of each hypothesis
    """

    def __init__(self, architecture: str, size: int, columns: int, targets: int):
        task, args = Task(), argparse.Namespace(share_all_embeddings=True)
        ARCH_CONFIG_REGISTRY[architecture](args)
        self.model = ARCH_MODEL_REGISTRY[architecture].build_model(args, task).eval()
        self.model.make_generation_fast_(beamable_mm_beam_size=BEAM, need_attn=False)
        # Random weights do not know when to stop, so both must write the same number of tokens.
        length = {"max_len_a": 0, "max_len_b": targets, "min_len": targets}
        self.generator = SequenceGenerator([self.model], task.target_dictionary, beam_size=BEAM, **length)
        self.batch = stock_batch(task, size, columns - 1, targets)

    def __call__(self) -> None:
        """Searches once."""
        self.generator.generate([self.model], self.batch)

    def positions(self) -> int:
        """Counts the positions of each sentence to which the decoder attends."""
        inputs = self.batch["net_input"]
        encoded = self.model.encoder(inputs["src_tokens"], inputs["src_lengths"])
        return encoded["cells"][0].width if "cells" in encoded else len(encoded["encoder_out"][0])


def run(settings: Settings) -> Report:
    """Times both on the same sentences and the same number of steps."""
    size, columns, targets = settings.choose((BATCH, COLUMNS, TARGETS), (2, 6, 3))
    works = {name: Search(architecture, size, columns, targets) for name, architecture in ARCHITECTURES.items()}
    timing = side_by_side(works, settings.choose(5, 1))
    rows = [("beam search", "memory", "sentences a second", "ms, fastest to slowest", "processor ms")]
    for name, architecture in ARCHITECTURES.items():
        taken = timing[name]
        cells = (str(works[name].positions()), f"{size / taken.median:.2f}", taken.spread)
        rows.append((architecture, *cells, milliseconds(taken.processor_median)))
    return Report(
        "treeformer_generate",
        f"b={size}, beam {BEAM}, n={columns}, hypotheses of {targets} tokens and EOS",
        [
            time_ratio(
                "ratio", timing["chart"], timing["stock"], 0.95,
                what="beam search, times as many sentences a second as the stock transformer", processor=True,
            )
        ],
        [rows],
        [
            "Both search with fairseq's SequenceGenerator; the time includes the encoder. The figure compares "
            "processor time.\n"
            "Memory: positions of each sentence to which the decoder attends."
        ],
    )  # fmt: skip
