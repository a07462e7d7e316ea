"""Compares the structural search with fairseq's beam search, and counts how many of its outputs are trees."""

from __future__ import annotations

import random
from types import SimpleNamespace

import torch
from fairseq.data.data_utils import collate_tokens
from fairseq.sequence_generator import SequenceGenerator

from tests.benchmarks.figures import Figure, time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Report, milliseconds
from tests.benchmarks.translation_models import build, dictionary, stock_batch
from tests.tree_positional.all_trees import Vocabulary
from tree_fairseq.nn.modalities import SYMBOLS as SYMBOL_TREES
from tree_fairseq.nn.modalities import Side
from tree_fairseq.tree_positional import model  # noqa: F401  (registers the architectures)
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS

BATCH, BEAM, WORDS, SYMBOLS = 64, 5, 12, 30
# ATIS has 433 words that occur twice, and this many symbols of each arity.
SOURCE_WORDS, ARITIES = 437, {0: 61, 1: 10, 2: 102}
OUTPUTS = 10_000
UPDATES, UPDATES_AT_ONCE = 50, 5
ARCHITECTURES = {"tree": "tree_positional_transformer_semantic_parsing", "stock": "transformer_semantic_parsing"}
OWN_EMBEDDINGS = {"share_all_embeddings": False, "dropout": 0.1}
SEARCHES = {"tree": "structural", "stock": "fairseq's"}


def task_for(vocabulary: Vocabulary) -> SimpleNamespace:
    return SimpleNamespace(
        source_dictionary=dictionary(SOURCE_WORDS),
        target_dictionary=vocabulary.dictionary,
        source_side=Side(),
        target_side=Side(SYMBOL_TREES, symbols=vocabulary.table),
        cfg=SimpleNamespace(),
    )


def semantic_parsing(traversal: str, binarization: str) -> Vocabulary:
    """Returns a vocabulary with as many symbols as ATIS has."""
    arities = [arity for arity, count in ARITIES.items() for _ in range(count)]
    return Vocabulary.of(arities, traversal, binarization, unknown=True)


def speed(settings: Settings):
    """Times both searches on the same number of words, symbols and steps.

    Returns:
        the timing by name, and the number of symbols in all outputs
    """
    size, symbols = settings.choose((BATCH, SYMBOLS), (2, 5))
    vocabulary = semantic_parsing("dfs", "lcrs")
    task = task_for(vocabulary)
    batch = stock_batch(task, size, WORDS, symbols)
    options = {"beam_size": BEAM, "max_len_a": 0, "max_len_b": symbols}
    models = {name: build(architecture, task, **OWN_EMBEDDINGS) for name, architecture in ARCHITECTURES.items()}
    made = {
        "tree": StructuralGenerator(
            [models["tree"]], task.target_dictionary, symbols=task.target_side.symbols, **options
        ),
        "stock": SequenceGenerator([models["stock"]], task.target_dictionary, min_len=symbols, **options),
    }
    # Random weights do not know when to stop, so both must write the same number of symbols: leaves come last.
    made["tree"].model.penalties = 100.0 * (vocabulary.table.arity == 0)

    def generate(name: str):
        return made[name].generate([models[name]], batch)

    lengths = {len(hypothesis["tokens"]) for name in made for hypotheses in generate(name) for hypothesis in hypotheses}
    if lengths != {symbols + 1}:
        raise ValueError(f"the outputs to compare have {sorted(lengths)} tokens")
    timing = side_by_side({name: lambda name=name: generate(name) for name in made}, settings.choose(15, 1))
    return timing, size * symbols


def teach(model: torch.nn.Module, batch: dict, trees: list[torch.Tensor], dictionary, updates: int) -> None:
    ends, pad = dictionary.eos(), dictionary.pad()
    target = collate_tokens(trees, pad, ends)
    previous = collate_tokens(trees, pad, ends, move_eos_to_beginning=True)
    sources = {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model.train()
    for _ in range(updates):
        logits, _ = model(**sources, prev_output_tokens=previous)
        wanted = target.masked_fill(target.eq(ends), pad)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=pad)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def validity(settings: Settings) -> tuple[int, int, int]:
    """Counts the trees among outputs of untrained and trained, sharp and flat models, for random limits and encodings.

    Returns:
        the numbers of trees within their limit, of outputs, and of outputs of trained models
    """
    wanted, chance = settings.choose(OUTPUTS, 100), random.Random(0)
    valid = outputs = taught = 0
    is_taught = False
    while outputs < wanted or not taught:
        vocabulary = semantic_parsing(chance.choice(TRAVERSALS), chance.choice(BINARIZATIONS))
        task = task_for(vocabulary)
        model = build("tree_positional_transformer_tiny", task, seed=outputs, **OWN_EMBEDDINGS)
        if is_taught:
            batch = stock_batch(task, BATCH, chance.randrange(1, 20), 1)
            guesses = StructuralGenerator(
                [model],
                task.target_dictionary,
                symbols=task.target_side.symbols,
                beam_size=1,
                max_len_b=chance.randrange(5, 40),
            ).generate([model], batch)
            trees = [found[0]["tokens"] for found in guesses]
            teach(model, batch, trees, task.target_dictionary, settings.choose(UPDATES, UPDATES_AT_ONCE))
        model.decoder.output_projection.weight.data.mul_(chance.choice([0.1, 1, 10]))
        limit_a, limit_b = chance.choice([0, 0.5, 2]), chance.randrange(1, 40)
        options = {
            "beam_size": BEAM,
            "max_len_a": limit_a,
            "max_len_b": limit_b,
            "len_penalty": chance.choice([0, 1, 2]),
        }
        made = StructuralGenerator([model], task.target_dictionary, symbols=task.target_side.symbols, **options)
        words = chance.randrange(1, 20)
        limit = int(limit_a * (words + 1) + limit_b)
        for hypotheses in made.generate([model], stock_batch(task, BATCH, words, 1)):
            outputs += len(hypotheses)
            taught += len(hypotheses) if is_taught else 0
            valid += sum(
                vocabulary.is_tree(found["tokens"]) and len(found["tokens"]) - 1 <= limit for found in hypotheses
            )
        is_taught = not is_taught
    return valid, outputs, taught


def run(settings: Settings) -> Report:
    timing, tokens = speed(settings)
    valid, outputs, taught = validity(settings)
    rows = [("beam search", "symbols a second", "ms, fastest to slowest", "processor ms")]
    for name in ("tree", "stock"):
        label, taken = f"{SEARCHES[name]}, {ARCHITECTURES[name]}", timing[name]
        rows.append((label, f"{tokens / taken.median:.0f}", taken.spread, milliseconds(taken.processor_median)))
    faster = "structural search, times as many symbols a second as the stock search"
    trees = "share of outputs that are trees"
    return Report(
        "structural_beam",
        f"b={settings.choose(BATCH, 2)}, beam {BEAM}, n={WORDS} words, outputs of {settings.choose(SYMBOLS, 5)} "
        f"symbols, {sum(ARITIES.values())} different symbols as in ATIS",
        [
            time_ratio("ratio", timing["tree"], timing["stock"], 0.85, what=faster, processor=True),
            Figure("validity", valid / outputs, 1, False, trees, f"{valid} trees", f"{outputs} outputs"),
        ],
        [rows],
        [
            f"{valid} of {outputs} outputs under random limits are trees; {taught} outputs are of trained models.",
            "The speed includes the encoder.",
        ],
    )
