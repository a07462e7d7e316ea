"""Compares insertion-based decoding with left-to-right decoding and one sentence at a time; the oracle; training."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import Callable

from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import Figure, time_ratio
from tests.benchmarks.insertion_corpus import LANGUAGES, write_domain
from tests.benchmarks.insertion_decoders import BATCH, SEQUENCE, TREE, Decoder, Size, preprocess_domain
from tests.benchmarks.measuring import Settings, Timing, side_by_side
from tests.benchmarks.naive_insertion import GrownTree, grow
from tests.benchmarks.reporting import TIME_HEADINGS, Report, milliseconds, time_cells
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.store import EncodedTree, TrajectorySampler
from tree_fairseq.trees.notations import notation_named

SIZE, UPDATES = Size(layers=2, width=64, heads=4), 1_500
ALONE = 64  # sentences that are decoded in batches of one
WAYS = 5
STEPS = 8
NAIVE = "insertion, one sentence at a time"


@dataclasses.dataclass(frozen=True)
class Written:
    """Statistics of a decoder's output for a test set."""

    steps: float  # mean number of decoding steps
    length: float  # mean number of labels and brackets of a tree
    right: float  # share of trees that equal the references

    @classmethod
    def by(cls, decoder: Decoder, batches: list[dict]) -> Written:
        found = []
        pad, eos = decoder.task.target_dictionary.pad(), decoder.task.target_dictionary.eos()
        for batch in batches:
            for hypothesis, target in zip_equal(decoder.generate(batch), batch["target"]):
                tokens = [token for token in hypothesis["tokens"].tolist() if token != eos]
                found.append((hypothesis["steps"], len(tokens), tokens == target[target != pad].tolist()))
        return cls(*map(statistics.fmean, zip(*found)))


def run(settings: Settings) -> Report:
    """Trains both decoders, then times search, naive search and training steps, each side by side, and the oracle."""
    with tempfile.TemporaryDirectory() as name, quiet():
        folder = Path(name)
        domain = write_domain(folder / "text", settings.data, settings.choose(None, 8))
        preprocess_domain(folder / "text", folder / "bin")
        size, trained = settings.choose(SIZE, Size(1, 16, 2)), settings.checkpoints
        decoders = {
            kind: Decoder(kind, folder / "bin", size, path)
            for kind, path in zip_equal((TREE, SEQUENCE), trained or (None, None))
        }
        if not trained:
            for decoder in decoders.values():
                decoder.train(settings.choose(UPDATES, 2))
        tests = {kind: decoder.batches("test") for kind, decoder in decoders.items()}
        written = {kind: Written.by(decoder, tests[kind]) for kind, decoder in decoders.items()}
        searches = time_searches(decoders, tests, settings.choose(5, 1))
        alone = time_alone(decoders, settings.choose(ALONE, 2), settings.choose(5, 1))
        steps = time_steps(decoders, settings.choose(7, 1))
        oracle, trees, lines = time_oracle(folder / f"text/train.{LANGUAGES[1]}", settings.choose(5, 1))
        sentences = sum(batch["nsentences"] for batch in tests[TREE])
        same = same_trees(decoders[TREE], tests[TREE])
    searched = [
        ("test set", "steps", "tokens", "right", "sentences a second", "ms, fastest to slowest", "processor ms")
    ]
    for kind, taken in searches.items():
        output = written[TREE if kind == NAIVE else kind]
        statistics_cells = (f"{output.steps:.2f}", f"{output.length:.1f}", f"{output.right:.1%}")
        speed = (f"{sentences / taken.median:.0f}", taken.spread, milliseconds(taken.processor_median))
        searched.append((kind, *statistics_cells, *speed))
    ones = [("batches of one sentence", *TIME_HEADINGS)]
    ones += [(kind, *time_cells(taken)) for kind, taken in alone.items()]
    stepped = [("training step", *TIME_HEADINGS)]
    stepped += [(kind, *time_cells(taken)) for kind, taken in steps.items()]
    looked = [(f"oracle, {WAYS} trajectories of a tree", "processor ms/tree", "processor ms/line", "ms/tree")]
    values = (oracle.processor_median / trees, oracle.processor_median / lines, oracle.median / trees)
    looked.append(("centrality", *(f"{1e3 * value:.3f}" for value in values)))
    updates = decoders[TREE].updates
    models = "from checkpoints" if trained else f"{size}, {updates} updates here"
    left_to_right = f"{written[SEQUENCE].steps:.1f} from left to right"
    what = {
        "steps": "mean number of steps of a tree",
        "speedup": "insertion, times as fast as decoding from left to right",
        "alone": "insertion, times as fast as decoding from left to right, in batches of one sentence",
        "naive": "insertion, times as fast as one sentence at a time",
        "oracle": "the oracle of preprocessing, milliseconds a line",
        "step": "training step of insertion, times as long as from left to right",
    }
    return Report(
        "insertion",
        f"{domain}: {sentences} sentences, batch {BATCH}; {models}",
        [
            # The goal is the number of the paper's decoder on this domain, with a pretrained encoder (Table 2).
            Figure("steps", written[TREE].steps, 6.6, True, what["steps"], f"{written[TREE].steps:.2f}", left_to_right),
            time_ratio("speedup_ltr", searches[TREE], searches[SEQUENCE], 5, what=what["speedup"]),
            time_ratio("speedup_ltr_batch_1", alone[TREE], alone[SEQUENCE], 5, what=what["alone"]),
            time_ratio("speedup_naive", searches[TREE], searches[NAIVE], 10, what=what["naive"]),
            Figure("oracle_ms", 1e3 * oracle.processor_median / lines, 1, True, what["oracle"]),
            time_ratio("step_ratio", steps[TREE], steps[SEQUENCE], 2, at_most=True, what=what["step"]),
        ],
        [searched, ones, stepped, looked],
        [
            f"Tokens: labels and brackets; the references have {reference_length(decoders[TREE], tests[TREE]):.1f}. "
            "The paper's decoders take 6.6 steps on publications by insertion, and 40.9 from left to right.\n"
            "Both have the same encoder and search with beam 1; the decoder from left to right caches its states.\n"
            f"{NAIVE}: the same model, with trees as lists and a loop over slots; {same} of {sentences} trees equal "
            "those of the batches.\n"
            f"The oracle as in preprocessing, in one process: {trees} different trees in {lines} lines of training, "
            "each tree once; oracle_ms is its processor time for a line."
        ],
    )


def time_searches(decoders: dict[str, Decoder], tests: dict[str, list[dict]], repeats: int) -> dict[str, Timing]:
    """Times both decoders on the test set, and one of them without batches."""
    works: dict[str, Callable[[], object]] = {
        kind: lambda kind=kind, decoder=decoder: [decoder.generate(batch) for batch in tests[kind]]
        for kind, decoder in decoders.items()
    }
    works[NAIVE] = lambda: [naive(decoders[TREE], batch) for batch in tests[TREE]]
    return side_by_side(works, repeats)


def time_alone(decoders: dict[str, Decoder], count: int, repeats: int) -> dict[str, Timing]:
    """Times both decoders on some sentences of the test set, in batches of one, as the mean over the batches."""
    works, sizes = {}, {}
    for kind, decoder in decoders.items():
        batches = decoder.batches("test", size=1)
        some = batches[:: max(len(batches) // count, 1)][:count]
        sizes[kind] = len(some)
        works[kind] = lambda decoder=decoder, some=some: [decoder.generate(batch) for batch in some]
    return {kind: taken.per(sizes[kind]) for kind, taken in side_by_side(works, repeats).items()}


def naive(decoder: Decoder, batch: dict) -> list[GrownTree]:
    """Decodes a batch one sentence at a time."""
    decoder.model.eval()
    limits = decoder.generator.limits
    return grow(decoder.model, batch["net_input"], decoder.task.target_dictionary, limits.steps, limits.nodes)


def same_trees(decoder: Decoder, batches: list[dict]) -> int:
    count = 0
    for batch in batches:
        for hypothesis, tree in zip_equal(decoder.generate(batch), naive(decoder, batch)):
            count += (hypothesis["labels"].tolist(), hypothesis["parents"].tolist(), hypothesis["steps"]) == tree
    return count


def reference_length(decoder: Decoder, batches: list[dict]) -> float:
    pad = decoder.task.target_dictionary.pad()
    return statistics.fmean(row.ne(pad).sum().item() for batch in batches for row in batch["target"])


def time_steps(decoders: dict[str, Decoder], repeats: int) -> dict[str, Timing]:
    """Times a training step, as the mean over some batches of an epoch."""
    works = {}
    for kind, decoder in decoders.items():
        decoder.model.train()
        works[kind] = lambda decoder=decoder, batches=decoder.batches("train"): [
            decoder.step(batch) for batch in batches[:STEPS]
        ]
    return {kind: taken.per(STEPS) for kind, taken in side_by_side(works, repeats).items()}


def time_oracle(path: Path, repeats: int) -> tuple[Timing, int, int]:
    """Times the sampler of trajectories on all different trees of a file; also returns how many trees and lines."""
    notation = notation_named("bracket")
    lines = [EncodedTree.of(notation.read(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    trees = list(dict.fromkeys(lines))
    sampler = TrajectorySampler("centrality", WAYS)
    taken = side_by_side({"centrality": lambda: [sampler.item(tree) for tree in trees]}, repeats)
    return taken["centrality"], len(trees), len(lines)
