"""The structural search against fairseq's own search, and whether all that it returns are trees."""

from __future__ import annotations

import argparse
import random
from types import SimpleNamespace

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.sequence_generator import SequenceGenerator

from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Figure, Report, milliseconds
from tests.benchmarks.translation_models import dictionary, stock_batch
from tests.generators.all_trees import Vocabulary
from tree_fairseq.generators.structural_search import StructuralGenerator
from tree_fairseq.models import tree_positional_transformer  # noqa: F401  (registers the architectures)
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS

BATCH, BEAM, WORDS, SYMBOLS = 64, 5, 12, 30
# ATIS has 433 words that occur twice, and this many symbols of each arity.
SOURCE_WORDS, ARITIES = 437, {0: 61, 1: 10, 2: 102}
OUTPUTS = 10_000
ARCHITECTURES = {"tree": "tree_positional_transformer_semantic_parsing", "stock": "transformer_semantic_parsing"}
SEARCHES = {"tree": "structural", "stock": "fairseq's"}


def a_task(vocabulary: Vocabulary) -> SimpleNamespace:
    """What models ask a task for: words in, trees out."""
    return SimpleNamespace(
        source_dictionary=dictionary(SOURCE_WORDS), target_dictionary=vocabulary.dictionary,
        source_symbols=None, target_symbols=vocabulary.table, cfg=SimpleNamespace(),
    )


def build(architecture: str, task, seed: int = 0) -> torch.nn.Module:
    """A model with random weights."""
    args = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[architecture](args)
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[architecture].build_model(args, task)


def semantic_parsing(traversal: str, binarization: str) -> Vocabulary:
    """As many symbols as ATIS has."""
    arities = [arity for arity, count in ARITIES.items() for _ in range(count)]
    return Vocabulary.of(arities, traversal, binarization, unknown=True)


def speed(settings: Settings):
    """Times both on the same number of words, symbols and steps.

    Returns:
        the timing by name and the number of symbols of an output
    """
    size, symbols = settings.choose((BATCH, SYMBOLS), (2, 5))
    vocabulary = semantic_parsing("dfs", "lcrs")
    task = a_task(vocabulary)
    batch = stock_batch(task, size, WORDS, symbols)
    # Random weights do not know when to stop: both are made to write the same number of symbols.
    options = {"beam_size": BEAM, "max_len_a": 0, "max_len_b": symbols, "min_len": symbols}
    models = {name: build(architecture, task) for name, architecture in ARCHITECTURES.items()}
    made = {
        "tree": StructuralGenerator([models["tree"]], task.target_dictionary, symbols=task.target_symbols, **options),
        "stock": SequenceGenerator([models["stock"]], task.target_dictionary, **options),
    }

    def generate(name: str):
        return made[name].generate([models[name]], batch)

    lengths = {len(hypothesis["tokens"]) for name in made for hypotheses in generate(name) for hypothesis in hypotheses}
    if lengths != {symbols + 1}:
        raise ValueError(f"outputs of {sorted(lengths)} tokens are compared")
    timing = side_by_side({name: lambda name=name: generate(name) for name in made}, settings.choose(15, 1))
    return timing, size * symbols


def validity(settings: Settings) -> tuple[int, int]:
    """Outputs of untrained models under random limits, sharp and flat, of all forms of trees.

    Returns:
        how many are trees within their limit, and how many there are
    """
    wanted, chance = settings.choose(OUTPUTS, 100), random.Random(0)
    valid = outputs = 0
    while outputs < wanted:
        vocabulary = semantic_parsing(chance.choice(TRAVERSALS), chance.choice(BINARIZATIONS))
        task = a_task(vocabulary)
        model = build("tree_positional_transformer_tiny", task, seed=outputs)
        model.decoder.output_projection.weight.data.mul_(chance.choice([0.1, 1, 10]))
        limit_a, limit_b = chance.choice([0, 0.5, 2]), chance.randrange(1, 40)
        options = {"beam_size": BEAM, "max_len_a": limit_a, "max_len_b": limit_b, "len_penalty": chance.choice([0, 1, 2])}
        made = StructuralGenerator([model], task.target_dictionary, symbols=task.target_symbols, **options)
        words = chance.randrange(1, 20)
        limit = int(limit_a * (words + 1) + limit_b)
        for hypotheses in made.generate([model], stock_batch(task, BATCH, words, 1)):
            outputs += len(hypotheses)
            valid += sum(vocabulary.is_tree(found["tokens"]) and len(found["tokens"]) - 1 <= limit for found in hypotheses)
    return valid, outputs


def run(settings: Settings) -> Report:
    """Times both searches and counts trees."""
    timing, tokens = speed(settings)
    valid, outputs = validity(settings)
    rows = [("beam search", "symbols a second", "ms, fastest to slowest", "processor ms")]
    for name in ("tree", "stock"):
        label, taken = f"{SEARCHES[name]}, {ARCHITECTURES[name]}", timing[name]
        rows.append((label, f"{tokens / taken.median:.0f}", taken.spread, milliseconds(taken.processor_median)))
    return Report(
        "structural_beam",
        f"b={settings.choose(BATCH, 2)}, beam {BEAM}, n={WORDS} words, {settings.choose(SYMBOLS, 5)} symbols an output, "
        f"{sum(ARITIES.values())} symbols as in ATIS",
        [Figure("ratio", timing["stock"].median / timing["tree"].median, 0.85), Figure("validity", valid / outputs, 1)],
        [rows],
        [
            f"{valid} of {outputs} outputs of untrained models under random limits are trees.",
            "The speed is that of encoders and search.",
        ],
    )
