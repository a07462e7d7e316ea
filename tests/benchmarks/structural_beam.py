"""Compares the structural search with fairseq's beam search, and counts how many of its outputs are trees.

Symbols are those of logical forms, or of programs: productions and pieces, under a grammar by types of fields.
"""

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
from tree_fairseq.data_bin.grammar import FieldTable
from tree_fairseq.nn.modalities import SYMBOLS as SYMBOL_TREES
from tree_fairseq.nn.modalities import Side
from tree_fairseq.tree_positional import model  # noqa: F401  (registers the architectures)
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS

BATCH, BEAM, WORDS, SYMBOLS = 64, 5, 12, 30
LONG = 120  # words of a description, or symbols of a program to translate
# ATIS has 433 words that occur twice, and this many symbols of each arity.
SOURCE_WORDS, ARITIES = 437, {0: 61, 1: 10, 2: 102}
# A program has this many productions of each arity, and pieces of names; a field has some of the productions.
PROGRAM_ARITIES, FIELDS, SHARE = {0: 10_020, 1: 200, 2: 200, 3: 80}, 42, 0.1
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


def vocabulary_of(counts: dict[int, int], traversal: str = "dfs", binarization: str = "none") -> Vocabulary:
    """A vocabulary with so many symbols of each arity."""
    arities = [arity for arity, count in counts.items() for _ in range(count)]
    return Vocabulary.of(arities, traversal, binarization, unknown=True)


def field_table(vocabulary: Vocabulary, fields: int = FIELDS) -> FieldTable:
    """A random grammar: each field has a share of the productions, and every second one all leaves."""
    random_numbers = torch.Generator().manual_seed(0)
    table = vocabulary.table
    allowed = torch.rand(fields, len(table.arity), generator=random_numbers) < SHARE
    allowed[::2] |= table.arity == 0
    wanted = torch.randint(fields, (len(table.arity), table.degree), generator=random_numbers)
    has_branch = torch.arange(table.degree) < table.arity[:, None]
    return FieldTable(wanted.where(has_branch, torch.tensor(-1)), allowed & (table.arity >= 0))


def leaves_last(decoder: torch.nn.Module, is_leaf: torch.Tensor) -> None:
    """Makes leaves improbable, because both searches must write as many symbols, and random weights would stop."""
    decoder.layers[-1].final_layer_norm.bias.data.fill_(1.0)
    # Probabilities of e^-30; a softmax over many that no float can hold would be slower.
    decoder.output_projection.weight.data[is_leaf] -= 30 / decoder.output_projection.in_features


def speed(settings: Settings, vocabulary: Vocabulary, grammar: FieldTable | None = None, words: int = WORDS):
    """Times both searches on the same number of words, symbols and steps.

    Returns:
        the timing by name, and the number of symbols in all outputs
    """
    size, symbols = settings.choose((BATCH, SYMBOLS), (2, 5))
    task = task_for(vocabulary)
    batch = stock_batch(task, size, words, symbols)
    options = {"beam_size": BEAM, "max_len_a": 0, "max_len_b": symbols}
    models = {name: build(architecture, task, **OWN_EMBEDDINGS) for name, architecture in ARCHITECTURES.items()}
    trees = {"symbols": task.target_side.symbols, "grammar": grammar}
    made = {
        "tree": StructuralGenerator([models["tree"]], task.target_dictionary, **trees, **options),
        "stock": SequenceGenerator([models["stock"]], task.target_dictionary, min_len=symbols, **options),
    }
    leaves_last(models["tree"].decoder, vocabulary.table.arity == 0)

    def generate(name: str):
        return made[name].generate([models[name]], batch)

    lengths = {len(hypothesis["tokens"]) for name in made for hypotheses in generate(name) for hypothesis in hypotheses}
    if lengths != {symbols + 1}:
        raise ValueError(f"the outputs to compare have {sorted(lengths)} tokens")
    rounds = settings.choose(15 if words == WORDS and grammar is None else 7, 1)
    return side_by_side({name: lambda name=name: generate(name) for name in made}, rounds), size * symbols


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
        vocabulary = vocabulary_of(ARITIES, chance.choice(TRAVERSALS), chance.choice(BINARIZATIONS))
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
    timing, tokens = speed(settings, vocabulary_of(ARITIES, binarization="lcrs"))
    programs = vocabulary_of(PROGRAM_ARITIES)
    by_grammar, _ = speed(settings, programs, field_table(programs))
    long, _ = speed(settings, vocabulary_of(ARITIES, binarization="lcrs"), words=settings.choose(LONG, WORDS))
    valid, outputs, taught = validity(settings)
    rows = [("beam search", "symbols a second", "ms, fastest to slowest", "processor ms")]
    for symbols, timings in (("short sources", timing), ("programs", by_grammar), ("long sources", long)):
        for name in ("tree", "stock"):
            taken = timings[name]
            label = f"{SEARCHES[name]}, {ARCHITECTURES[name]}, {symbols}"
            rows.append((label, f"{tokens / taken.median:.0f}", taken.spread, milliseconds(taken.processor_median)))
    faster = "structural search, times as many symbols a second as the stock search"
    grammar = "the same under a grammar of 500 productions and 10,000 pieces"
    longer = f"the same, from sources of {LONG} words"
    trees = "share of outputs that are trees"
    return Report(
        "structural_beam",
        f"b={settings.choose(BATCH, 2)}, beam {BEAM}, n={WORDS} words, outputs of {settings.choose(SYMBOLS, 5)} "
        f"symbols, {sum(ARITIES.values())} different symbols as in ATIS, {sum(PROGRAM_ARITIES.values())} of programs",
        [
            time_ratio("ratio", timing["tree"], timing["stock"], 0.95, what=faster, processor=True),
            time_ratio("long_sources", long["tree"], long["stock"], 0.95, what=longer, processor=True),
            time_ratio("grammar", by_grammar["tree"], by_grammar["stock"], 0.95, what=grammar, processor=True),
            Figure("validity", valid / outputs, 1, False, trees, f"{valid} trees", f"{outputs} outputs"),
        ],
        [rows],
        [
            f"{valid} of {outputs} outputs under random limits are trees; {taught} outputs are of trained models.",
            "The speed includes the encoder.",
        ],
    )
