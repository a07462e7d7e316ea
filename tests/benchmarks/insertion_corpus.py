"""The corpus of the benchmark of insertion: Overnight's publications, or similar forms that are made up."""

from __future__ import annotations

import tempfile
from pathlib import Path

from preprocess.logical_forms import write_splits
from preprocess.overnight import domains, load
from preprocess.toy_logical_forms import overnight
from tests.benchmarks.commands import quiet

DOMAIN = "publications"
LANGUAGES = ("nl", "lf")
# The sizes of the domain's files.
TRAIN, TEST = 640, 161


def write_domain(folder: Path, data: Path | None, limit: int | None = None) -> str:
    """Writes ``{train,valid,test}.{nl,lf}`` into a folder and returns a description of them.

    ``data`` is a folder of SEMPRE's ``.examples``; forms are made up if it is None or lacks the domain.
    """
    has_domain = data is not None and DOMAIN in domains(data)
    with quiet(), tempfile.TemporaryDirectory() as made_up:
        if not has_domain:
            data = Path(made_up)
            overnight(data, TRAIN, TEST)
        splits = load(data, DOMAIN)
    write_splits({split: examples[:limit] for split, examples in splits.items()}, folder, LANGUAGES)
    return f"Overnight's {DOMAIN}" if has_domain else f"made-up forms like those of Overnight's {DOMAIN}"
