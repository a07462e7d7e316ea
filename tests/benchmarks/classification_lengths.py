"""Times training and inference of classifiers by length of sentence, as figure 5b of Nguyen et al. (2020) does."""

from __future__ import annotations

import itertools
from typing import Callable

import torch

from tests.benchmarks.classification_models import Task, build, sequence_batch, training_step, tree_batch
from tests.benchmarks.corpora import english_sentences
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import milliseconds, size_plot, size_table, write_picture
from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

# Few words, because the update of a large table would take longer than everything else, in all models alike.
WORDS = 1_000
LENGTHS = (10, 20, 40, 70, 100, 150, 200)
NAMES = {
    "stock": "transformer",
    "tree": "Tree-Transformer",
    "tree_lstm": "Tree-LSTM, by height",
    "recursive": "Tree-LSTM, by node",
}

Rows = list[tuple[str, ...]]


def over_lengths(settings: Settings) -> tuple[list[Rows], str]:
    """Times all classifiers on one sentence and draws the times.

    Returns:
        tables of training and of inference in milliseconds, and a line on parser and picture
    """
    lengths = settings.choose(LENGTHS, (4, 6))
    parse, parser_name = line_parser(settings)
    task = Task(words=WORDS)
    steps = {name: training_step(name, task) for name in NAMES}
    models = {name: build(name, task).eval() for name in NAMES}
    training: dict[str, dict[int, float]] = {name: {} for name in NAMES.values()}
    inference: dict[str, dict[int, float]] = {name: {} for name in NAMES.values()}
    inference.update({parsed(NAMES[name]): {} for name in ("tree", "recursive")})
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
            (training if kind == "training" else inference)[title][length] = taken.median
    tables, plots = [], []
    for title, measured in (("Training step", training), ("Inference", inference)):
        tables.append(size_table(f"n: {title.lower()}, batch 1, ms", lengths, measured, milliseconds))
        plots.append(size_plot(title, "length of the sentence", "milliseconds", measured, 1e3))
    path = write_picture(settings.output, "classification_lengths.svg", plots)
    return (
        tables,
        f"By length of a sentence: the transformer reads n leaves; {WORDS} words; parsed by {parser_name}; "
        f"drawn in {path}",
    )


def parsed(name: str) -> str:
    return f"{name}, with parsing"


@torch.no_grad()
def infer(model: torch.nn.Module, batch: dict) -> torch.Tensor:
    return model(**batch["net_input"])["logits"].softmax(1)


def sentence(length: int) -> str:
    """Returns a line of ``length`` words of the bundled grammar."""
    words = itertools.chain.from_iterable(line.split() for line in english_sentences(length))
    return " ".join(itertools.islice(words, length))


def line_parser(settings: Settings) -> tuple[Callable[[str], object], str]:
    """Returns a function that parses one line, and its name: Stanza, or right branches if Stanza is not installed."""
    options = ParserOptions(name="stanza", lang="en", parser_dir=str(settings.parser_dir), device="cpu")
    try:
        parser = LineParser(options)
        parser.parse_lines(["Loads the models ."])
        name = f"Stanza with {settings.parser_dir.name}"
    except ParserUnavailableError:
        parser, name = LineParser(ParserOptions(name="right-branching")), "right branches, as Stanza is not installed"
    return lambda line: parser.parse_lines([line]), name
