"""Trains the Tree-Transformer of the recipe for Multi30k for two minutes by fairseq's commands, and scores it."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from preprocess.english_german.__main__ import pairs
from tests.benchmarks.corpora import write_lines
from tests.benchmarks.figures import Figure
from tests.gpu.device import Device
from tests.gpu.parts import Options, Result
from tests.gpu.processes import ended_in_time, fairseq_command
from tree_fairseq.errors import InputError, TreeFairseqError

PLUGIN = Path(__file__).resolve().parents[2] / "tree_fairseq"
TASK = ("--user-dir", str(PLUGIN), "--task", "tree_translation")
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
LINES = {"train": 20_000, "valid": 500, "test": 500}
QUICK_LINES = {"train": 60, "valid": 6, "test": 6}
# The recipe of examples/multi30k_en_de, but for whole words in place of subwords.
MODEL = (
    "--encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256 --encoder-ffn-embed-dim 512 "
    "--decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4 --share-all-embeddings "
    "--dropout 0.3 --optimizer adam --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 1000 --criterion "
    "label_smoothed_cross_entropy --label-smoothing 0.1 --seed 1 --log-format simple --log-interval 50 --no-epoch-"
    "checkpoints --save-interval 1000000"
).split()
BETAS = ("--adam-betas", "(0.9, 0.98)")


class CommandFailedError(TreeFairseqError):
    """A command of fairseq ended with an error or was too slow."""


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = write_corpus(folder / "text", options)
        result.notes = [f"Training: {text}, {options.train_seconds:.0f} seconds."]
        # Parsing on many processors leaves the device alone, and is fast for a small model.
        workers = options.choose(min(16, os.cpu_count() or 1), 1)
        parser = (
            ("--tree-parser", "stanza", "--parser-dir", options.parser_dir, "--tree-device", "cpu")
            if not options.quick
            else ("--tree-parser", "right-branching")
        )
        prefixes = [part for split in SPLITS for part in (f"--{split}pref", folder / "text" / split)]
        command(
            options, "preprocess", 120, *TASK, "-s", "en", "-t", "de", *prefixes, "--destdir", folder / "bin",
            "--joined-dictionary", "--thresholdsrc", 2, "--thresholdtgt", 2, "--workers", workers, *parser,
        )  # fmt: skip
        yield
        log = command(
            options, "train", options.train_seconds + 60, folder / "bin", *train_flags(device, options, folder)
        )
        _read_log(log, result)
        yield
        generated = command(
            options, "generate", 60, folder / "bin", *TASK, "--path", folder / "run" / "checkpoint_last.pt", "--beam",
            options.choose(5, 1), "--max-tokens", 8_000, "--max-len-b", options.choose(200, 5), "--num-workers", 0,
            "--scoring", "sacrebleu", "--quiet", *(() if device.is_gpu else ("--cpu",)),
        )  # fmt: skip
        result.details["bleu"] = _number(r"BLEU4?\D*= ([\d.]+)", generated)
        lines = len((folder / "text" / "test.en").read_text(encoding="utf-8").splitlines())
        bleu = f"{result.details['bleu']} BLEU"
        result.figures.append(
            Figure("bleu", result.details["bleu"], None, what=f"BLEU of {lines} sentences", ours=bleu)
        )
        yield


def write_corpus(folder: Path, options: Options) -> str:
    """Writes the three splits of Multi30k, or of a generated corpus, and describes them."""
    folder.mkdir()
    if options.data is not None:
        for split, stem in SPLITS.items():
            for language in ("en", "de"):
                source = options.data / f"{stem}.lc.norm.tok.{language}"
                if not source.is_file():
                    raise InputError(
                        "Multi30k's text is not there", source, hint="Give the folder data/task1/tok of Multi30k."
                    )
                lines = source.read_text(encoding="utf-8").splitlines()
                write_lines(folder / f"{split}.{language}", lines[: options.choose(None, QUICK_LINES[split])])
        return f"Multi30k in {options.data.name}"
    drawn = pairs(seed=1, max_length=40)
    for split, count in options.choose(LINES, QUICK_LINES).items():
        found = list(itertools.islice(drawn, count))
        write_lines(folder / f"{split}.en", [" ".join(tree.leaves()) for tree, _ in found])
        write_lines(folder / f"{split}.de", [german for _, german in found])
    return "a generated English-German corpus"


def train_flags(device: Device, options: Options, folder: Path) -> list[object]:
    tokens = options.choose(4_096, 300)
    flags = [*TASK, "--arch", options.choose("tree_transformer", "tree_transformer_tiny"), *BETAS]
    flags += options.choose(MODEL, [*_without_sizes(MODEL)])
    flags += ["--max-tokens", tokens, "--save-dir", folder / "run", "--num-workers", options.choose(4, 0)]
    # fairseq stops after an update, and saves, when the time is over.
    flags += ["--stop-time-hours", options.train_seconds / 3600, "--max-update", options.choose(1_000_000, 2)]
    if device.is_gpu:
        flags.append("--bf16" if "bf16" in device.precisions() else "--fp16")
        flags += ["--device-id", device.torch.index or 0]
    else:
        flags.append("--cpu")
    return flags


def _without_sizes(flags: Sequence[str]) -> Iterator[str]:
    """Leaves out the flags of layers and widths, so that the architecture decides."""
    skip = False
    for flag in flags:
        skip_this, skip = skip, flag.startswith(("--encoder-", "--decoder-"))
        if not (skip or skip_this):
            yield flag


def command(options: Options, name: str, seconds: float, *arguments: object) -> str:
    """Runs a command of fairseq and returns its log.

    Raises CommandFailedError if it failed, or took longer than ``seconds``.
    """
    done = ended_in_time([*fairseq_command(options.python, name), *map(str, arguments)], seconds)
    if done.returncode:
        raise CommandFailedError(f"fairseq-{name} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def _read_log(log: str, result: Result) -> None:
    losses = [float(loss) for loss in re.findall(r"train_inner .*?\bloss=?\s*([\d.]+)", log)]
    losses = losses or [float(loss) for loss in re.findall(r"\| loss ([\d.]+)", log)]
    speeds = [float(number) for number in re.findall(r"wps[= ]([\d.]+)", log) if float(number) > 0]
    updates = [int(number) for number in re.findall(r"num_updates[= ](\d+)", log)]
    result.details |= {"losses": losses, "words a second": speeds, "updates": max(updates, default=0)}
    if len(losses) > 1:
        title = "loss at the end of the training, over that at its beginning"
        sides = (f"{losses[-1]:.3f} after {max(updates, default=0)} updates", f"{losses[0]:.3f}")
        result.figures.append(Figure("loss", losses[-1] / losses[0], 0.6, True, title, *sides))
    if speeds:
        speed = sorted(speeds)[len(speeds) // 2]
        title = "target words a second of the training"
        result.figures.append(Figure("speed", speed, None, what=title, ours=f"{speed:.0f}"))


def _number(pattern: str, text: str) -> float:
    found = re.findall(pattern, text)
    return float(found[-1]) if found else float("nan")
