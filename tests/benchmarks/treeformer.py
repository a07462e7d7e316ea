"""Compares Treeformer's chart with its encoder alone, the paper's triple loop and gathers of all splits of a level."""

from __future__ import annotations

from typing import Callable

import torch
from fairseq.optim.adam import Adam
from torch import Tensor

from tests.benchmarks import gathered_chart
from tests.benchmarks.figures import Figure, time_ratio
from tests.benchmarks.measuring import Settings, Timing, keep_freed_memory, peak_bytes, side_by_side
from tests.benchmarks.reporting import (
    PEAK_NOTE,
    TIME_HEADINGS,
    Report,
    megabytes,
    memory_note,
    milliseconds,
    time_cells,
)
from tests.benchmarks.translation_models import Task, build, stock_batch
from tests.nn.tiny import kept_storages
from tests.treeformer import direct_chart
from tree_fairseq.treeformer import model  # noqa: F401  (registers the architectures)
from tree_fairseq.treeformer.chart import Chart, ChartConfig

BATCH, COLUMNS, HEIGHT, WIDTH = 32, 30, 10, 512


def encoder_step(arch: str, output: str, size: int, columns: int) -> Callable[[], None]:
    """Returns a training step of an encoder from a given gradient of its output."""
    task = Task()
    encoder = build(arch, task, share_all_embeddings=False).encoder.train()
    tokens = stock_batch(task, size, columns - 1, 1)["net_input"]["src_tokens"]
    optimizer = Adam(encoder.parameters(), lr=5e-4, betas=(0.9, 0.98), weight_decay=1e-4)
    gradient = torch.randn_like(encoder(tokens)[output][0])

    def step() -> None:
        optimizer.zero_grad()
        encoder(tokens)[output][0].backward(gradient)
        optimizer.step()

    return step


class Charts:
    """Forward and backward pass of the chart and of implementations that compute the same."""

    def __init__(self, size: int, columns: int, height: int):
        torch.manual_seed(0)
        self.chart = Chart(WIDTH, ChartConfig(treeformer_height=height))
        self.states = torch.randn(columns, size, WIDTH, requires_grad=True)
        self.cells = self.chart.cells(torch.zeros(size, columns, dtype=torch.bool))
        self.gradient = torch.randn(self.cells.width, size, WIDTH)

    def _backward(self, encoded: Tensor, gradient: Tensor) -> None:
        torch.autograd.grad(encoded, [self.states, *self.chart.parameters()], gradient)

    def levels(self) -> None:
        self._backward(self.chart(self.states, self.cells), self.gradient)

    def gathered(self, project_once: bool) -> None:
        """Runs gathers of all splits of a level."""
        weights = (self.chart.composition(), self.chart.query[0], self.chart.height)
        encoded = gathered_chart.encode(self.states, *weights, project_once)
        self._backward(encoded, self.gradient.transpose(0, 1))

    def loop(self) -> None:
        """Runs the paper's loops over the first sentence."""
        encoded = direct_chart.encode(
            self.states[:, 0], self.chart.composition(), self.chart.query[0], self.chart.height
        )
        self._backward(torch.stack(list(encoded.values())), self.gradient[:, 0])

    def saved_ratio(self) -> float:
        """Divides the bytes kept for the backward pass, with indices but without parameters, by those of the cells."""
        with kept_storages() as kept:
            encoded = self.chart(self.states, self.cells)
        for parameter in self.chart.parameters():
            kept.pop(parameter.untyped_storage().data_ptr(), None)
        indices = (self.cells.start, self.cells.unused, self.cells.length)
        return (sum(kept.values()) + sum(index.nbytes for index in indices)) / encoded.nbytes


def row_of(label: str, taken: Timing, memory: str) -> tuple[str, ...]:
    return label, *time_cells(taken), memory


def run(settings: Settings) -> Report:
    size, columns, height = settings.choose((BATCH, COLUMNS, HEIGHT), (2, 6, 3))
    charts = Charts(size, columns, height)
    ratio = charts.saved_ratio()
    kept = keep_freed_memory(settings)
    sizes = settings.choose("iwslt_de_en", "tiny")
    encoders = {
        "stock": encoder_step(f"transformer_{sizes}", "encoder_out", size, columns),
        "chart": encoder_step(f"treeformer_{sizes}", "cell_states", size, columns),
    }
    steps = side_by_side(encoders, settings.choose(9, 1))
    works = {
        "levels": charts.levels,
        "projected": lambda: charts.gathered(project_once=True),
        "composed": lambda: charts.gathered(project_once=False),
    }
    passes = side_by_side(works, settings.choose(5, 1))
    loop = side_by_side({"loop": charts.loop}, settings.choose(2, 1), warm_up=0)["loop"]
    rows = [("", *TIME_HEADINGS, "peak MB")]
    rows.append(row_of("training step: encoder", steps["stock"], ""))
    rows.append(row_of("training step: encoder and chart", steps["chart"], ""))
    labels = {"levels": "slices of levels", "projected": "gathers of products", "composed": "gathers of cells"}
    for name, work in works.items():
        rows.append(row_of(f"forward + backward: {labels[name]}", passes[name], megabytes(peak_bytes(work))))
    rows.append(row_of("forward + backward: triple loop, one sentence", loop, ""))
    own = passes["levels"].processor_median
    naive = size * loop.processor_median
    step = "training step of encoder and chart, times as long as the encoder's"
    loops = "the chart, times as fast as the triple loop"
    gathers = "the chart, times as fast as a gather for each level"
    figures = [
        time_ratio("ratio", steps["chart"], steps["stock"], 1.25, at_most=True, what=step, processor=True),
        Figure("speedup_naive", naive / own, 20, False, loops, f"{milliseconds(own)} ms", f"{milliseconds(naive)} ms"),
        time_ratio("speedup_vectorised", passes["levels"], passes["projected"], 1.5, what=gathers, processor=True),
        Figure("memory_ratio", ratio, 1.5, True, what="bytes that the chart keeps, in sizes of its cells"),
    ]
    return Report(
        "treeformer",
        f"b={size}, n={columns}, h={height}, d={WIDTH}, 6 layers of feed-forward 1024, 4 heads",
        figures,
        [rows],
        [
            "Figures compare processor time. A step: forward pass, backward pass of a given gradient, Adam's update.\n"
            f"The triple loop runs on one sentence; its figure is for {size} sentences.\n"
            "Gathers of products multiply each cell once, as the levels do; gathers of cells multiply each split "
            f"({passes['composed'].processor_median / own:.1f} times as long as the levels).\n"
            "memory_ratio: bytes kept for the backward pass, divided by those of the cells.\n"
            + PEAK_NOTE
            + memory_note(kept)
        ],
    )
