"""Learning curves from the logs of ``fairseq-train``: loss and other metrics by number of updates."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from examples.lib.plots import Line, Plot, draw_plots
from tree_fairseq.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The line of metrics, in fairseq's forms simple, tqdm or JSON; on the console, the logger's name stands before it.
_LINE = re.compile(r"^(?:.*\| (?:train_inner|valid) \| )?(epoch \d+(?::| \| valid on ).*|\{.*\})$", re.MULTILINE)
_IS_VALIDATION = re.compile(r"epoch \d+ \| valid on |\{.*\"valid_")
_VALUE = re.compile(r"([A-Za-z_]\w*)[= ](-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan))(?![\w.])")
_BEST = "best_"  # begins the name of the metric by which fairseq chooses checkpoints
_UNITS = {"loss": "loss (base 2)", "nll_loss": "negative log-likelihood (bits a token)", "ppl": "perplexity"}


@dataclass
class Curves:
    """The metrics of one run in training and on the validation set, by number of updates, as its log has them."""

    name: str
    training: dict[str, dict[int, float]] = field(default_factory=dict)
    validation: dict[str, dict[int, float]] = field(default_factory=dict)
    best_metric: str = "loss"

    def metrics(self) -> list[str]:
        """Returns the loss, and the metric by which checkpoints are chosen, if it is another one."""
        return list(dict.fromkeys(["loss", self.best_metric]))


def read_curves(log: str | os.PathLike, name: str | None = None) -> Curves:
    """Reads the output of ``fairseq-train`` or its ``--log-file``, in the format ``simple``, ``tqdm`` or ``json``.

    Where a run was continued, the later value of an update counts. ``name`` is that of the lines in a picture, by
    default the name of the file without its ending.

    Raises:
        InputError: there is no such file, or it has no metrics
    """
    path = Path(log)
    curves = Curves(name or path.stem)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"the log cannot be read: {error.strerror}", path) from None
    for content in _LINE.findall(text):
        is_validation = _IS_VALIDATION.match(content) is not None
        values = _values(content)
        for position in ("epoch", "update"):
            values.pop(position, None)
        updates = values.pop("num_updates", None)
        if updates is None:
            continue
        found = curves.validation if is_validation else curves.training
        for metric, value in values.items():
            if is_validation and metric.startswith(_BEST):
                curves.best_metric = metric[len(_BEST) :]
            elif math.isfinite(value):
                found.setdefault(metric, {})[int(updates)] = value
    if not curves.training and not curves.validation:
        raise InputError(
            "no line of the log has metrics", path, hint="Give the output of fairseq-train, or --log-file."
        )
    return curves


def _values(content: str) -> dict[str, float]:
    """Returns the numbers of a line by name."""
    if not content.startswith("{"):
        return {name: float(value) for name, value in _VALUE.findall(content)}
    try:
        pairs = json.loads(content).items()
    except ValueError:
        return {}
    values = {}
    for name, value in pairs:
        try:
            values[name[len("valid_") :] if name.startswith("valid_") else name] = float(value)
        except (TypeError, ValueError):
            continue
    return values


def draw_curves(runs: Sequence[Curves], metrics: Sequence[str] | None = None) -> Figure:
    """Draws a plot for each metric, with a line for each run: solid on the validation set, dashed in training.

    ``metrics`` are by default the loss and the metrics by which the runs choose their checkpoints.

    Raises:
        InputError: a metric is in none of the logs
        MissingLibraryError: matplotlib is not installed
    """
    chosen = list(dict.fromkeys(metrics or [metric for run in runs for metric in run.metrics()]))
    plots = []
    for metric in chosen:
        lines = []
        for run in runs:
            for split, found, dashed in (("validation", run.validation, False), ("training", run.training, True)):
                if points := sorted(found.get(metric, {}).items()):
                    lines.append(Line(f"{run.name}, {split}", points, dashed, group=run.name))
        if lines:
            plots.append(Plot(metric, "updates", _UNITS.get(metric, metric), lines, logarithmic=False))
        elif metrics:
            known = sorted({name for run in runs for names in (run.training, run.validation) for name in names})
            raise InputError(f"no log has the metric {metric!r}; there are {', '.join(known)}")
    return draw_plots(plots)
