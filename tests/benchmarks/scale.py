"""Arithmetic, memory and time of a training step at the sizes of the recipes, for the page on scale."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.figures import Figure
from tests.benchmarks.measuring import Settings
from tests.benchmarks.reporting import Report
from tests.benchmarks.translation_models import Task, TrainingStep, build, stock_batch, tree_batch
from tests.nn.tiny import kept_storages

# Parameters, gradients and two moments of Adam, in single precision.
BYTES_PER_PARAMETER = 16


@dataclass(frozen=True)
class Setting:
    """The size of a recipe: model, dictionary, sentence, batch and training."""

    name: str
    architecture: str  # of the baseline; the Tree-Transformer has ``tree_`` before it
    words: int  # entries of the joint dictionary
    leaves: int  # of an average sentence
    batch_tokens: int  # target tokens of an update
    updates: int
    sizes: dict[str, int] = field(default_factory=dict)


SETTINGS = (
    Setting(
        "multi30k_en_de", "transformer", 6_000, 14, 4_096, 2_096,
        {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
         (("embed_dim", 256), ("ffn_embed_dim", 512), ("layers", 3), ("attention_heads", 4))},
    ),
    Setting("iwslt14_de_en", "transformer_iwslt_de_en", 10_000, 24, 4_096, 60_000),
    Setting("wmt14_en_de, base", "transformer_wmt_en_de", 33_000, 28, 32_768, 200_000),
    Setting("wmt14_en_de, big", "transformer_wmt_en_de_big", 33_000, 28, 524_288, 20_000),
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A step: parameters, and for each target token operations, bytes kept for the backward pass, and seconds."""

    parameters: int
    operations: float
    kept_bytes: float
    seconds: float


def measure(setting: Setting, tree: bool, tokens: int) -> Step:
    """Measures a step on sentences of the average length that have ``tokens`` target tokens together."""
    task = Task(words=setting.words)
    model = build(f"{'tree_' * tree}{setting.architecture}", task, **setting.sizes)
    size = max(1, tokens // (setting.leaves + 1))
    nodes = round(0.65 * setting.leaves)
    make = (lambda: tree_batch(task, size, setting.leaves, nodes, setting.leaves)) if tree else (
        lambda: stock_batch(task, size, setting.leaves, setting.leaves)
    )  # fmt: skip
    batch, step = make(), TrainingStep(model, task)
    with FlopCounterMode(display=False) as counter, kept_storages() as kept:
        step(batch)
    for parameter in model.parameters():
        kept.pop(parameter.data_ptr(), None)
    start = time.perf_counter()
    step(batch)
    seconds = time.perf_counter() - start
    parameters = sum(parameter.numel() for parameter in model.parameters())
    count = batch["ntokens"]
    return Step(parameters, counter.get_total_flops() / count, sum(kept.values()) / count, seconds / count)


def run(settings: Settings) -> Report:
    tokens = settings.choose(1_000, 30)
    chosen = settings.choose(SETTINGS, SETTINGS[:1])
    rows = [("model", "parameters", "GFLOP a 1,000 tokens", "MB of model and Adam", "MB kept a 1,000 tokens",
             "seconds a 1,000 tokens", "PFLOP in all")]  # fmt: skip
    ratios = []
    for setting in chosen:
        steps = {tree: measure(setting, tree, tokens) for tree in (True, False)}
        ratios.append(steps[True].operations / steps[False].operations)
        for tree, step in steps.items():
            total = setting.batch_tokens * setting.updates
            rows.append((
                f"{setting.name}: {'tree_' * tree}{setting.architecture}", f"{step.parameters:,}",
                f"{1e3 * step.operations / 1e9:.0f}", f"{BYTES_PER_PARAMETER * step.parameters / 1e6:.0f}",
                f"{1e3 * step.kept_bytes / 1e6:.0f}", f"{1e3 * step.seconds:.2f}",
                f"{total * step.operations / 1e15:,.1f}",
            ))  # fmt: skip
    what = "arithmetic of a training step over the stock transformer's, all sizes"
    return Report(
        "scale",
        f"batches of about {tokens} target tokens, sentences of the average length of each corpus, 0.65 nodes a leaf",
        [Figure("operations_ratio", max(ratios), 2.0, True, what)],
        [rows],
        [
            "PFLOP are those of a token times the tokens of the recipe's updates. Kept: what the backward "
            "pass needs, in single precision; half of it in fp16 or bf16."
        ],
    )
