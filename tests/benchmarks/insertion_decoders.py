"""Two decoders to compare on one preprocessed folder: of trees by insertion, and of the same trees left to right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.data import iterators
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import preprocess

import tree_fairseq
from tests.benchmarks.insertion_corpus import LANGUAGES
from tests.benchmarks.translation_models import TrainingStep

BATCH = 32
TREE, SEQUENCE = "insertion", "left to right"
_ARCHITECTURES = {
    TREE: ("tree_insertion_transformer", "slot_kl_divergence"),
    SEQUENCE: ("insertion_left_to_right", "label_smoothed_cross_entropy"),
}  # fmt: skip
_TASK = ("--user-dir", str(Path(tree_fairseq.__file__).parent), "--task", "tree_insertion")
_PAIR = ("-s", LANGUAGES[0], "-t", LANGUAGES[1])


@dataclass(frozen=True)
class Size:
    """The size of the encoder and of the decoder; ``width`` is d."""

    layers: int
    width: int
    heads: int

    @property
    def flags(self) -> list[str]:
        found = []
        for side in ("encoder", "decoder"):
            found += [f"--{side}-layers={self.layers}", f"--{side}-embed-dim={self.width}"]
            found += [f"--{side}-ffn-embed-dim={4 * self.width}", f"--{side}-attention-heads={self.heads}"]
        return found

    def __str__(self) -> str:
        return f"{self.layers} + {self.layers} layers, d={self.width}, {self.heads} heads"


def preprocess_domain(text: Path, destination: Path) -> None:
    prefixes = [f"--{split}pref={text / split}" for split in ("train", "valid", "test")]
    flags = [*_TASK, *_PAIR, *prefixes, "--destdir", str(destination), "--target-notation", "bracket", "--workers", "1"]
    preprocess.main(options.get_preprocessing_parser().parse_args(flags))


class Decoder:
    """A model, its task and data, and the generator that ``fairseq-generate`` would make of it.

    It is loaded from the checkpoint, or has random weights; ``updates`` counts training steps since then.
    """

    def __init__(self, name: str, data: Path, size: Size, checkpoint: Path | None = None):
        arch, criterion = _ARCHITECTURES[name]
        flags = [str(data), *_TASK, *_PAIR, "--arch", arch, "--criterion", criterion, *size.flags]
        flags += ["--dropout", "0.1", "--seed", "1"]
        cfg = convert_namespace_to_omegaconf(
            options.parse_args_and_arch(options.get_training_parser(), input_args=flags)
        )
        torch.manual_seed(0)
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model) if checkpoint is None else self._load(checkpoint)
        self.step = TrainingStep(self.model, self.task, self.task.build_criterion(cfg.criterion))
        cfg.generation.beam = 1
        self.generator = self.task.build_generator([self.model], cfg.generation)
        self.updates = 0
        for split in ("train", "test"):
            self.task.load_dataset(split)

    def _load(self, checkpoint: Path) -> torch.nn.Module:
        [model], _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=self.task)
        return model

    def batches(self, split: str, epoch: int = 1, size: int = BATCH) -> list[dict]:
        """Returns all batches of a split in an epoch, of at most ``size`` sentences."""
        return list(self._iterator(split, epoch, size))

    def train(self, updates: int) -> None:
        """Trains up to a number of updates; the learning rate warms up and then decays to zero."""
        epoch = 1
        groups = self.step.optimizer.param_groups
        while self.updates < updates:
            for batch in self._iterator("train", epoch):
                share = (self.updates + 1) / updates
                for group in groups:
                    group["lr"] = _RATE * min(share / _WARM_UP, (1 - share) / (1 - _WARM_UP))
                self.step(batch)
                self.updates += 1
                if self.updates == updates:
                    break
            epoch += 1

    def generate(self, batch: dict) -> list[dict]:
        self.model.eval()
        return [found[0] for found in self.generator.generate([self.model], batch)]

    def _iterator(self, split: str, epoch: int, size: int = BATCH) -> iterators.EpochBatchIterator:
        found = self.task.get_batch_iterator(
            self.task.dataset(split),
            max_sentences=size,
            seed=1,
            epoch=epoch,
            disable_iterator_cache=True,
            num_workers=0,
        )
        return found.next_epoch_itr(shuffle=split == "train")


_RATE, _WARM_UP = 4e-3, 0.1
