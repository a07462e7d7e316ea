"""Tables and plots of a sweep: depth of the encoder with and without a chart, height of the chart, length of sentences.

    python examples/lib/sweep.py --runs RUN... --metric tokenized_bleu --layers 6 --height 10 --lengths 10 20 40 \\
        --checkpoint checkpoint_best.pt --output OUT

Writes ``sweep.md``, ``sweep.svg`` and ``sweep.png`` to OUT, from the ``score.json`` of the runs. Runs that differ only
in their seed are one row with their mean. The time that encoders take is measured here, on the runs with ``--layers``
layers and ``--height``. Where all runs have the same encoder, depth is left out; without ``--lengths``, time is left
out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from fairseq.checkpoint_utils import load_model_ensemble

import tree_fairseq
from tree_fairseq.drawing.figure_files import write_figure
from tree_fairseq.drawing.plots import Line, Plot, draw_plots
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.runs import SCORE_FILE, read_scores
from tree_fairseq.support.logs import log_to_standard_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHOUT, WITH = "Transformer", "Treeformer"
SENTENCES = 32
"""Of a batch."""
REPETITIONS = 5


@dataclass(frozen=True)
class Row:
    """A model: layers of its encoder, height of its chart (None for none), metric, parameters in millions, runs."""

    layers: int
    height: int | None
    score: float
    parameters: float
    runs: tuple[Path, ...]


def read_rows(runs: Iterable[Path], metric: str) -> list[Row]:
    """The models that were trained, by layers and height.

    Raises:
        ScoringError: a run was not scored, or has not that metric
    """
    found: dict[tuple[int, int | None], list[tuple[Path, dict]]] = {}
    for run in dict.fromkeys(runs):
        scores = read_scores(run / SCORE_FILE)
        if metric not in scores["metrics"]:
            raise ScoringError(f"{run} has no {metric}: score it again")
        description = scores["description"]
        height = int(description["height"]) if "height" in description else None
        found.setdefault((int(description.get("encoder_layers", 0)), height), []).append((run, scores))
    return [
        Row(
            layers, height, statistics.fmean(scores["metrics"][metric] for _, scores in rows),
            rows[0][1]["checkpoint"]["parameters"] / 1e6, tuple(run for run, _ in rows),
        )
        for (layers, height), rows in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or 0))
    ]  # fmt: skip


def load_encoder(checkpoint: Path) -> torch.nn.Module:
    """The encoder of a checkpoint in evaluation mode, on the GPU where there is one."""
    log_to_standard_error()
    tree_fairseq.register()
    (model,), _ = load_model_ensemble([str(checkpoint)])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.encoder.eval().to(device)


@torch.inference_mode()
def milliseconds(encoder: torch.nn.Module, lengths: Sequence[int]) -> dict[int, float]:
    """Milliseconds that a sentence of each length takes: the fastest of several batches of random words."""
    device, words = next(encoder.parameters()).device, encoder.embed_tokens.num_embeddings
    found = {}
    for length in lengths:
        tokens = torch.randint(min(10, words - 1), words, (SENTENCES, length), device=device)
        tokens[:, -1] = encoder.dictionary.eos()
        lengths_of = torch.full((SENTENCES,), length, device=device)
        times = [_seconds(encoder, tokens, lengths_of) for _ in range(1 + REPETITIONS)][1:]
        found[length] = 1000 * min(times) / SENTENCES
    return found


def _seconds(encoder: torch.nn.Module, tokens: torch.Tensor, lengths: torch.Tensor) -> float:
    """Of one batch, waiting for the GPU where there is one."""
    _wait(tokens)
    begin = time.perf_counter()
    encoder(tokens, src_lengths=lengths)
    _wait(tokens)
    return time.perf_counter() - begin


def _wait(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def depth_table(rows: Sequence[Row], height: int, metric: str) -> str:
    """Metric and parameters by depth of the encoder."""
    of = {(row.layers, row.height): row for row in rows}
    lines = []
    for layers in sorted({row.layers for row in rows if (row.layers, None) in of and (row.layers, height) in of}):
        pair = of[layers, None], of[layers, height]
        difference = pair[1].score - pair[0].score
        lines.append([str(layers), *(f"{row.score:.2f} ({row.parameters:.2f}M)" for row in pair), f"{difference:+.2f}"])
    return table(["encoder layers", f"{WITHOUT}: {metric} (parameters)", f"{WITH}, h = {height}", "difference"], lines)


def height_table(rows: Sequence[Row], layers: int, metric: str) -> str:
    """Metric by height of the chart; 1 means an encoder without a chart."""
    own = [row for row in rows if row.layers == layers]
    return table(
        ["h", metric],
        [[f"none ({WITHOUT})" if row.height is None else str(row.height), f"{row.score:.2f}"] for row in own],
    )


def length_table(times: dict[str, dict[int, float]]) -> str:
    """Milliseconds by length."""
    lengths = sorted(next(iter(times.values())))
    lines = [
        [str(n), *(f"{times[name][n]:.2f}" for name in (WITHOUT, WITH)), f"{times[WITH][n] / times[WITHOUT][n]:.2f}"]
        for n in lengths
    ]
    return table(["n", f"{WITHOUT}, ms a sentence", f"{WITH}, ms a sentence", "ratio"], lines)


def plots(rows: Sequence[Row], layers: int, height: int, metric: str, times: dict[str, dict[int, float]]) -> Figure:
    """All of it as one picture.

    Args:
        times: none to leave them out
    """
    with_chart = [row for row in rows if row.height == height]
    without = [row for row in rows if row.height is None]
    heights = [row for row in rows if row.layers == layers and row.height is not None]
    flat = [(row.height, base.score) for row in heights for base in without if base.layers == layers]

    def both(across) -> list[Line]:
        return [
            Line(name, sorted((across(row), row.score) for row in of))
            for name, of in ((WITHOUT, without), (WITH, with_chart))
        ]

    drawn = []
    if _depths_differ(rows):
        drawn += [
            Plot(f"Depth, h = {height}", "encoder layers", metric, both(lambda row: row.layers), logarithmic=False),
            Plot(
                "Parameters",
                "millions of parameters",
                metric,
                both(lambda row: round(row.parameters, 2)),
                logarithmic=False,
            ),
        ]
    by_height = [Line(WITHOUT, flat), Line(WITH, [(row.height, row.score) for row in heights])]
    drawn.append(
        Plot(f"Height{_of_layers(layers)}", "h, the height of the chart", metric, by_height, logarithmic=False)
    )
    if times:
        drawn.append(
            Plot(
                "Encoder",
                "n, tokens of a sentence",
                "milliseconds a sentence",
                [Line(name, sorted(values.items())) for name, values in times.items()],
            )
        )
    return draw_plots(drawn)


def _depths_differ(rows: Sequence[Row]) -> bool:
    return len({row.layers for row in rows}) > 1


def _of_layers(layers: int) -> str:
    return f", {layers} layers" if layers else ""


def main(arguments: list[str] | None = None) -> int:
    """Command line of this script; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="folders with score.json and checkpoints")
    parser.add_argument("--metric", required=True)
    parser.add_argument(
        "--layers",
        type=int,
        default=0,
        help="of the encoder, where the height differs; none where runs do not tell them",
    )
    parser.add_argument("--height", type=int, required=True, help="of the chart, where the depth differs")
    parser.add_argument("--lengths", type=int, nargs="*", default=[], help="of the sentences whose time is taken")
    parser.add_argument("--checkpoint", required=True, help="its name within a run")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(arguments)
    try:
        rows = read_rows(args.runs, args.metric)
        of = {(row.layers, row.height): row.runs[0] / "checkpoints" / args.checkpoint for row in rows}
        for key in ((args.layers, None), (args.layers, args.height)):
            if key not in of:
                layers = f"{key[0]} layers and " if key[0] else ""
                raise ScoringError(f"no run has {layers}{'no chart' if key[1] is None else f'height {key[1]}'}")
    except ScoringError as error:
        sys.stderr.write(f"sweep: {error}\n")
        return 1
    parts, times = (
        [f"## Height of the chart{_of_layers(args.layers)}\n\n{height_table(rows, args.layers, args.metric)}"],
        {},
    )
    if _depths_differ(rows):
        parts.insert(0, f"## Depth of the encoder\n\n{depth_table(rows, args.height, args.metric)}")
    if args.lengths:
        kinds = ((WITHOUT, None), (WITH, args.height))
        times = {name: milliseconds(load_encoder(of[args.layers, height]), args.lengths) for name, height in kinds}
        title = f"## Time of the encoder{_of_layers(args.layers)}, h = {args.height}, by length of sentences"
        parts.append(f"{title}\n\n{length_table(times)}")
    (args.output / "sweep.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    pictures = write_figure(plots(rows, args.layers, args.height, args.metric, times), args.output / "sweep")
    sys.stdout.write("".join(f"{path}\n" for path in (args.output / "sweep.md", *pictures)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
