"""Several trajectories for each sentence: the best one and sampled ones, side by side in a batch, and their ranking.

In every slot of a sampled trajectory a label, or nothing, is drawn from the models' distribution, sharpened or
flattened by a temperature. The draws depend on the seed and the words of a sentence alone, not on its batch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from torch import Tensor

from tree_fairseq.errors import InputError
from tree_fairseq.nn.modalities import TREE_INPUTS
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator, PartialTrees
from tree_fairseq.tree_insertion.sequences import LeftToRightModel


class LeftToRightScorer:
    """Scores trees by one pass of a left-to-right model, which reads all of their symbols at once."""

    def __init__(self, model: LeftToRightModel):
        # Models that fairseq has made fast for generation return nothing here.
        model.eval()
        self.model = model

    def reads(self, tokens: Tensor) -> bool:
        """Returns whether the model has positions for a tree and EOS; ``tokens`` is ``[T]``."""
        return len(tokens) < self.model.decoder.max_positions()

    @torch.no_grad()
    def score(self, net_input: dict[str, Any], sentences: Tensor, trees: Sequence[Tensor]) -> Tensor:
        """Returns the log-probability of each tree, with EOS, given its source, ``[K]`` float64 on the CPU.

        Args:
            net_input: a batch of B sources, which the encoder reads once
            sentences: ``[K]`` int64, which of them is the source of each tree
            trees: K trees ``[T]`` as :meth:`InsertionDictionary.sequence` writes them, numbered like targets
        """
        device, sequences = net_input["src_tokens"].device, self.model.sequences
        self.model.to(device)
        names = ("src_tokens", "src_lengths", *TREE_INPUTS.values())
        memory = self.model.read(**{name: net_input[name] for name in names if name in net_input})
        memory = self.model.encoder.reorder_encoder_out(memory, sentences.to(device))
        end = torch.tensor([sequences.eos()])
        targets = [torch.cat([sequences.numbered(tree), end]) for tree in trees]
        previous = data_utils.collate_tokens([target.roll(1) for target in targets], sequences.pad()).to(device)
        target = data_utils.collate_tokens(targets, sequences.pad()).to(device)  # K x T
        logits, _ = self.model.decoder(previous, encoder_out=memory)
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
        scores = scores.gather(2, target.unsqueeze(2)).squeeze(2)
        return scores.masked_fill(target == sequences.pad(), 0).sum(dim=1).double().cpu()


def load_scorer(task: Any, path: str) -> LeftToRightScorer:
    """Loads the left-to-right model of ``--rerank-path`` for a task ``tree_insertion``, whose data it has to fit.

    Raises InputError if the file has another model, DictionaryMismatchError if it has other labels, and CheckpointError
    if it is damaged.
    """
    # A task remembers the kind of the model that it has built last, so this model has a task of its own.
    own = copy.deepcopy(task.cfg)
    own.eval_accuracy = False
    [model], _ = checkpoint_utils.load_model_ensemble([path], task=type(task).setup_task(own))
    if not isinstance(model, LeftToRightModel):
        raise InputError(
            f"--rerank-path {path} has a model that does not write from left to right",
            hint="Give a checkpoint of --task tree_insertion --arch insertion_left_to_right.",
        )
    return LeftToRightScorer(model)


@dataclass(frozen=True)
class Sampling:
    """How trajectories are drawn.

    Attributes:
        samples: trajectories of each sentence; the first one has the best prediction in every slot
        temperature: of the draws; logits are divided by it
        seed: of the draws
        extra_steps: number of steps that the others may take after the first one is complete; None is no limit
    """

    samples: int
    temperature: float = 1.0
    seed: int = 1
    extra_steps: int | None = None


@dataclass(frozen=True)
class _Kept:
    """The memory of all sentences of a batch; rows that leave the search do not leave it."""

    memory: Any

    def select(self, rows: Tensor) -> _Kept:
        return self


class SampledInsertionGenerator(InsertionGenerator):
    """Generates several trees for each sentence and ranks the different ones; others come after those that are whole.

    Without a ``scorer``, the score of a tree is the sum of the log-probabilities of all predictions of its trajectory,
    the best one if several trajectories end in it. With one, it is the scorer's log-probability of the tree. Trees that
    are incomplete, or too long for the scorer, have the first score and come last. Scores are never divided by lengths.

    ``steps`` of all hypotheses of a sentence is the number of steps of its longest trajectory. A scorer reads all trees
    of a batch in one more pass. Trajectories that are not complete ``extra_steps`` after the first one are partial.
    """

    reasons = {
        **InsertionGenerator.reasons,
        "steps": "{count} were not finished within {limits.steps} steps or --insertion-extra-steps",
    }

    def __init__(
        self,
        models: Sequence,
        dictionary: InsertionDictionary,
        sampling: Sampling,
        limits: InsertionLimits = InsertionLimits(),
        keep_history: bool = False,
        scorer: LeftToRightScorer | None = None,
    ):
        super().__init__(models, dictionary, limits, normalize_scores=False, keep_history=keep_history)
        self.sampling, self.samples = sampling, sampling.samples
        self.scorer = scorer
        self._generators: list[np.random.Generator] = []
        self._last_steps = np.zeros(0)  # of the trajectories of each sentence

    def _encode(self, net_input: dict[str, Any]) -> list:
        tokens = net_input["src_tokens"].tolist()
        lengths = net_input["src_lengths"].tolist()
        # Padding is on one of the sides.
        pad = self.dictionary.pad()
        sources = [row[:length] if row[-1] == pad else row[-length:] for row, length in zip(tokens, lengths)]
        self._generators = [
            np.random.default_rng([self.sampling.seed, trial, *source])
            for source in sources
            for trial in range(self.samples)
        ]
        self._last_steps = np.full(len(sources), np.inf)
        return [_Kept(memory) for memory in super()._encode(net_input)]

    def read(self, memories: list, partial: PartialTrees, sentences: np.ndarray, device: torch.device) -> Tensor:
        """Reads each different tree of a sentence once; many trajectories have the same."""
        rows, copies = _different(partial, sentences // self.samples)
        owners = torch.from_numpy(sentences[rows] // self.samples).to(device)
        own = [kept.memory.select(owners) for kept in memories]
        different = partial.select(rows)
        scores = super().read(own, different, sentences[rows], device)
        counts = np.bincount(different.slot_rows, minlength=len(rows))
        starts, counts = (counts.cumsum() - counts)[copies], counts[copies]
        slots = np.arange(counts.sum()) + np.repeat(starts - (counts.cumsum() - counts), counts)
        return scores.index_select(0, torch.from_numpy(slots).to(device))

    def choose(
        self, scores: Tensor, best: tuple[Tensor, Tensor], partial: PartialTrees, sentences: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """Draws by inverse transform sampling, but for the first trajectory of every sentence."""
        counts = np.bincount(partial.slot_rows, minlength=len(sentences)).tolist()
        noise = [self._generators[row].random(count) for row, count in zip(sentences.tolist(), counts)]
        uniform = torch.from_numpy(np.concatenate(noise)).to(scores.device).unsqueeze(1)  # Z x 1
        cumulative = (scores.double() / self.sampling.temperature).softmax(dim=1).cumsum(dim=1)
        drawn = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True).squeeze(1)
        is_best = torch.from_numpy(sentences % self.samples == 0)[torch.from_numpy(partial.slot_rows)]
        # Rounding may lead past the last label.
        is_best = is_best.to(scores.device) | (drawn == scores.size(1))
        labels = torch.where(is_best, best[1], drawn)
        return scores.gather(1, labels.unsqueeze(1)).squeeze(1), labels

    def ends(self, is_whole: np.ndarray, sentences: np.ndarray, step: int) -> np.ndarray:
        """Adds the trajectories that need too many steps more than the first one of their sentence."""
        owners, trials = np.divmod(sentences, self.samples)
        if self.sampling.extra_steps is not None:
            self._last_steps[owners[is_whole & (trials == 0)]] = step + self.sampling.extra_steps
        return super().ends(is_whole, sentences, step) | (step >= self._last_steps[owners])

    def ranked(self, hypotheses: list[dict], net_input: dict[str, Any]) -> list[list[dict]]:
        """Ranks the different trees of each sentence."""
        groups = [hypotheses[start : start + self.samples] for start in range(0, len(hypotheses), self.samples)]
        found = [self._different_trees(group) for group in groups]
        if self.scorer is None:
            return found
        whole = [
            (sentence, hypothesis)
            for sentence, group in enumerate(found)
            for hypothesis in group
            if hypothesis["is_complete"] and self.scorer.reads(hypothesis["tokens"])
        ]
        if whole:
            sentences, scored = zip(*whole)
            trees = [self.dictionary.renumbered(hypothesis["tokens"]) for hypothesis in scored]
            log_probs = self.scorer.score(net_input, torch.tensor(sentences), trees)
            for hypothesis, log_prob in zip(scored, log_probs.tolist()):
                hypothesis["score"] = log_prob
        first = {id(hypothesis) for _, hypothesis in whole}
        return [sorted(group, key=lambda each: (id(each) not in first, -each["score"])) for group in found]

    def _different_trees(self, hypotheses: list[dict]) -> list[dict]:
        """The best hypothesis of each tree, complete ones first, then by score."""
        steps = max(hypothesis["steps"] for hypothesis in hypotheses)
        found: dict[tuple[int, ...], dict] = {}
        for hypothesis in sorted(hypotheses, key=lambda each: (not each["is_complete"], -each["score"])):
            found.setdefault(tuple(hypothesis["tokens"].tolist()), {**hypothesis, "steps": steps})
        # Many trajectories end in the same nodes, and few of the others differ in the numbers of labels alone.
        trees: dict[str, dict] = {}
        for hypothesis in found.values():
            trees.setdefault(self.dictionary.string(hypothesis["tokens"]), hypothesis)
        return list(trees.values())


def _different(partial: PartialTrees, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds rows with different trees or sentences: the first of each, ascending, and which of them each row equals."""
    depths = partial.shapes.depths
    ends = partial.lengths.cumsum().tolist()
    found: dict[tuple, int] = {}
    rows, copies = [], []
    start = 0
    for row, (sentence, end) in enumerate(zip(sentences.tolist(), ends)):
        key = sentence, partial.labels[start:end].tobytes(), depths[start:end].tobytes()
        if key not in found:
            found[key] = len(rows)
            rows.append(row)
        copies.append(found[key])
        start = end
    return np.array(rows), np.array(copies)
