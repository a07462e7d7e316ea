"""Log-probabilities of whole trees under a left-to-right model, which rank the trees that insertions have generated."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from torch import Tensor

from tree_fairseq.errors import DictionaryMismatchError, InputError
from tree_fairseq.nn.modalities import TREE_INPUTS
from tree_fairseq.tree_insertion.sequence_models import LeftToRightModel

_ADVICE = "give a checkpoint of --task tree_insertion --arch insertion_left_to_right"


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

    Raises InputError if the file is missing or has another model, DictionaryMismatchError if it has other dictionaries,
    and CheckpointError if it is damaged.
    """
    if not Path(path).is_file():
        raise InputError(f"--rerank-path {path}: there is no such file; {_ADVICE}")
    settings = checkpoint_utils.load_checkpoint_to_cpu(path).get("cfg") or {}
    trained = getattr(settings.get("task"), "_name", None)
    if trained != "tree_insertion":
        raise InputError(f"--rerank-path {path} has a model of --task {trained}; {_ADVICE}")
    # A task remembers the kind of the model that it has built last, so this model has a task of its own.
    own = copy.deepcopy(task.cfg)
    own.eval_accuracy, own.insertion_samples, own.partial_states = False, 1, 1
    own.insertion_temperature = own.insertion_extra_steps = own.rerank_path = own.rerank_weight = None
    try:
        [model], _ = checkpoint_utils.load_model_ensemble([path], task=type(task).setup_task(own))
    except RuntimeError as error:
        if "size mismatch" not in str(error):
            raise
        raise DictionaryMismatchError(
            f"--rerank-path {path} was trained with other dictionaries than those of {task.cfg.data}; give a model "
            "that was trained on that folder"
        ) from error
    if not isinstance(model, LeftToRightModel):
        arch = getattr(settings.get("model"), "_name", None)
        raise InputError(f"--rerank-path {path} has --arch {arch}, which does not write from left to right; {_ADVICE}")
    return LeftToRightScorer(model)
