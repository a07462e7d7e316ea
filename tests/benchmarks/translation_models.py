"""Models of translation to compare, and batches with the same number of positions for all of them."""

from __future__ import annotations

import argparse
import random
from types import SimpleNamespace

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.optim.adam import Adam
from fairseq.sequence_generator import SequenceGenerator

from tests.benchmarks.random_trees import random_tree
from tree_fairseq.nn.modalities import CONSTITUENCY, Side
from tree_fairseq.nn.tree_batch import collate_trees

# The size of the joint vocabulary of the IWSLT recipe.
WORDS, LABELS = 10_000, 60


def dictionary(symbols: int) -> Dictionary:
    result = Dictionary()
    for k in range(symbols - len(result)):
        result.add_symbol(f"s{k}")
    return result


class Task(SimpleNamespace):
    """The attributes of a task that models and criteria read; both languages share a dictionary."""

    def __init__(self, words: int = WORDS, labels: int = LABELS):
        shared, names = dictionary(words), dictionary(labels)
        super().__init__(
            source_dictionary=shared,
            target_dictionary=shared,
            label_dictionary=names,
            source_side=Side(CONSTITUENCY, labels=names),
            cfg=SimpleNamespace(),
        )


def build(architecture: str, task, seed: int = 0, **options) -> torch.nn.Module:
    """Builds a model with random weights; the options are those of the IWSLT recipe where none are given."""
    args = argparse.Namespace(**{"share_all_embeddings": True, "dropout": 0.3, **options})
    ARCH_CONFIG_REGISTRY[architecture](args)
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[architecture].build_model(args, task)


class Search:
    """Beam search over one batch, with hypotheses of a fixed length, as ``fairseq-generate`` prepares it."""

    def __init__(self, model: torch.nn.Module, task, batch: dict, targets: int, beam: int):
        self.model, self.batch = model.eval(), batch
        self.model.make_generation_fast_(beamable_mm_beam_size=beam, need_attn=False)
        # Random weights do not know when to stop, so all models must write the same number of tokens.
        length = {"max_len_a": 0, "max_len_b": targets, "min_len": targets}
        self.generator = SequenceGenerator([self.model], task.target_dictionary, beam_size=beam, **length)

    def __call__(self) -> list:
        return self.generator.generate([self.model], self.batch)


def tree_batch(task, size: int, leaves: int, nodes: int, targets: int) -> dict:
    """Makes sentences of ``leaves`` tokens and EOS, with trees of ``nodes`` nodes."""
    generator = random.Random(0)
    batch = stock_batch(task, size, leaves, targets)
    pad = task.label_dictionary.pad()
    trees = [random_tree(generator, leaves, nodes, len(task.label_dictionary)) for _ in range(size)]
    batch["net_input"]["source_spans"] = collate_trees(trees, pad)
    return batch


def stock_batch(task, size: int, leaves: int, targets: int) -> dict:
    """Makes sentences of ``leaves`` tokens and EOS, as :class:`fairseq.data.LanguagePairDataset` collates them."""
    words = task.source_dictionary
    random_tokens = torch.Generator().manual_seed(0)

    def sentences(length: int) -> torch.Tensor:
        tokens = torch.randint(words.nspecial, len(words), (size, length), generator=random_tokens)
        return torch.cat([tokens, torch.full((size, 1), words.eos())], dim=1)

    target = sentences(targets)
    return {
        "id": torch.arange(size),
        "nsentences": size,
        "ntokens": target.numel(),
        "net_input": {
            "src_tokens": sentences(leaves),
            "src_lengths": torch.full((size,), leaves + 1),
            "prev_output_tokens": target.roll(1, dims=1),
        },
        "target": target,
    }


class TrainingStep:
    """A step of forward pass, loss, backward pass and Adam's update; the default loss is label-smoothed."""

    def __init__(self, model: torch.nn.Module, task, criterion: FairseqCriterion | None = None):
        self.model = model.train()
        self.criterion = criterion or LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
        self.optimizer = Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), weight_decay=1e-4)

    def __call__(self, batch: dict) -> float:
        loss = self.passes(batch)
        self.optimizer.step()
        return loss

    def passes(self, batch: dict) -> float:
        """Runs a step without the update and returns the loss."""
        self.optimizer.zero_grad()
        loss, sample_size, _ = self.criterion(self.model, batch)
        (loss / sample_size).backward()
        return loss.item()
