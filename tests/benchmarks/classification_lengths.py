"""Training and inference time of classifiers over the length of one sentence: figure 5b of Nguyen et al. (2020)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

import torch

from tests.benchmarks.classification_models import Task, build, sequence_batch, training_step, tree_batch
from tests.benchmarks.corpora import english_sentences
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import milliseconds
from tree_fairseq.drawing.plots import Line, Plot, plots_to_svg
from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

# Few, as for one sentence the update of a large table takes longer than all the rest, in all models alike.
WORDS = 1_000
LENGTHS = (10, 20, 40, 70, 100, 150, 200)
NAMES = {
    "stock": "transformer",
    "tree": "Tree-Transformer",
    "tree_lstm": "Tree-LSTM, by height",
    "recursive": "Tree-LSTM, by node",
}
PICTURE = "classification_lengths.svg"

Rows = list[tuple[str, ...]]


def over_lengths(settings: Settings) -> tuple[list[Rows], str]:
    """Times all classifiers on one sentence, and draws it.

    Returns:
        tables of training and of inference in milliseconds, and a line on parser and picture
    """
    lengths = settings.choose(LENGTHS, (4, 6))
    parse, parser_name = a_parser(settings)
    task = Task(words=WORDS)
    steps = {name: training_step(name, task) for name in NAMES}
    models = {name: build(name, task).eval() for name in NAMES}
    training: dict[str, list[float]] = {name: [] for name in NAMES.values()}
    inference: dict[str, list[float]] = {name: [] for name in NAMES.values()}
    inference.update({parsed(NAMES[name]): [] for name in ("tree", "recursive")})
    for length in lengths:
        trees, line = tree_batch(task, 1, length), sentence(length)
        batches = {name: sequence_batch(task, 1, length) if name == "stock" else trees for name in NAMES}
        works: dict[tuple[str, str], Callable[[], object]] = {}
        for name, title in NAMES.items():
            works["training", title] = lambda step=steps[name], batch=batches[name]: step(batch)
            works["inference", title] = lambda model=models[name], batch=batches[name]: infer(model, batch)
        for name in ("tree", "recursive"):
            works["inference", parsed(NAMES[name])] = lambda name=name: (
                parse(line),
                infer(models[name], batches[name]),
            )
        for (kind, title), taken in side_by_side(works, settings.choose(7, 1)).items():
            (training if kind == "training" else inference)[title].append(taken.median)
    plots = [plot("Training step", lengths, training), plot("Inference", lengths, inference)]
    path = Path(settings.output) / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plots_to_svg(plots), encoding="utf-8", newline="\n")
    tables = [table("training, batch 1, ms", lengths, training), table("inference, batch 1, ms", lengths, inference)]
    return (
        tables,
        f"Over the length of a sentence, the transformer over its n leaves, {WORDS} words; parsed by {parser_name}; "
        f"drawn in {path}",
    )


def parsed(name: str) -> str:
    """Name of a classifier that has its parser before it."""
    return f"{name}, parsing too"


@torch.no_grad()
def infer(model: torch.nn.Module, batch: dict) -> torch.Tensor:
    """Probabilities of the classes."""
    return model(**batch["net_input"])["logits"].softmax(1)


def sentence(length: int) -> str:
    """So many words of the bundled grammar, as one line."""
    words = itertools.chain.from_iterable(line.split() for line in english_sentences(length))
    return " ".join(itertools.islice(words, length))


def a_parser(settings: Settings) -> tuple[Callable[[str], object], str]:
    """What parses one line: Stanza with the models asked for, or right-branching trees where Stanza is not installed.

    Returns:
        the function and a name for it
    """
    options = ParserOptions(name="stanza", lang="en", parser_dir=str(settings.parser_dir), device="cpu")
    try:
        parser = LineParser(options)
        parser.parse_lines(["Loads the models ."])
        name = f"Stanza with {settings.parser_dir.name}"
    except ParserUnavailableError:
        parser, name = LineParser(ParserOptions(name="right-branching")), "right branches, as Stanza is not installed"
    return lambda line: parser.parse_lines([line]), name


def table(title: str, lengths: Sequence[int], seconds: dict[str, list[float]]) -> Rows:
    """A row for each length."""
    rows = [(f"n: {title}", *seconds)]
    return rows + [(str(n), *(milliseconds(values[k]) for values in seconds.values())) for k, n in enumerate(lengths)]


def plot(title: str, lengths: Sequence[int], seconds: dict[str, list[float]]) -> Plot:
    """The same as lines."""
    lines = [Line(name, [(n, 1e3 * value) for n, value in zip(lengths, values)]) for name, values in seconds.items()]
    return Plot(title, "length of the sentence", "milliseconds", lines)
