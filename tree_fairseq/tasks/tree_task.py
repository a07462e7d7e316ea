"""The base of tasks: trees in batches, facts in checkpoints, resumed runs, half precision on CPUs."""

import argparse
import contextlib
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.sequence_generator import EnsembleModel, EnsembleModelWithAlignment
from fairseq.tasks import FairseqTask
from torch.nn.attention import SDPBackend, sdpa_kernel

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.nn.tensors import has_fast_bfloat16, padding_assumed
from tree_fairseq.support.options import option, refuse_unread
from tree_fairseq.tasks.same_data import differences, require_same_facts
from tree_fairseq.tasks.unread_trees import AlignedTreeEnsemble, TreeEnsemble, drop_trees, trees_read

logger = logging.getLogger(__name__)


def empty_hypothesis() -> dict[str, Any]:
    """Returns the hypothesis of a line that cannot be read: no token, and a probability of zero."""
    none = torch.zeros(0)
    return {"tokens": none.long(), "score": -math.inf, "positional_scores": none, "attention": None, "alignment": []}


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeTaskConfig(FairseqDataclass):
    """The options of all tasks of this package."""

    cpu_autocast: bool = option(False, "train and validate in bfloat16 on the CPU, as torch.autocast does")


@dataclass
class NewTextConfig(TreeTaskConfig):
    """The options of tasks that read parses: what models see of them, and what a folder alone may not decide."""

    keep_unary: bool = option(
        False,
        "models also read the tags of words and all nodes of unary chains; otherwise the lowest node of each chain, if "
        "it is over two words or more",
    )
    tree_parser: Optional[str] = option(
        None, "parser of new text, where tree.json names one outside of the package: MODULE:PARSER"
    )
    parser_dir: Optional[str] = option(
        None, "folder of the parser's model for new text, where it is neither the parser's own place nor in the folder"
    )
    corenlp_url: Optional[str] = option(
        None, "server of --tree-parser corenlp for new text, where it is not on this machine"
    )


class _DataAction(argparse.Action):
    """Takes the folder, and from its ``tree.json`` the languages, which the options of tokenisers need."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        setattr(namespace, self.dest, values)
        if getattr(namespace, "source_lang", None) is None and getattr(namespace, "target_lang", None) is None:
            with contextlib.suppress(DataFolderError):  # the task itself says what is wrong with a folder
                manifest = Manifest.load(utils.split_paths(values)[0])
                namespace.source_lang, namespace.target_lang = manifest.source_lang, manifest.target_lang


class TreeTask(FairseqTask):
    """A task over a folder with a ``tree.json``; comes before fairseq's own task among the bases of a class."""

    cfg: TreeTaskConfig
    tree_inputs: tuple[str, ...] = ()
    """Names of the trees in ``net_input``, and of what else collaters add; models get what they read of it."""

    def __init__(self, cfg, *args, **kwargs):
        super().__init__(cfg, *args, **kwargs)
        if self.cfg.cpu_autocast and not has_fast_bfloat16():
            logger.warning(
                "this CPU has no AVX-512, so --cpu-autocast makes training several times slower: leave it out here"
            )
        self.trees_of_models: set[str] = set()  # names of those that the models built so far read

    @classmethod
    def add_args(cls, parser) -> None:
        """Adds the options of the task; the languages are those of the folder if none are given."""
        super().add_args(parser)
        [data] = [action for action in parser._actions if action.dest == "data"]
        data.__class__ = _DataAction

    def folder_of(self, split: str, epoch: int) -> Path:
        """Returns the folder of a split in an epoch; of several folders, every epoch trains on another one."""
        paths = utils.split_paths(self.cfg.data)
        return Path(paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0])

    def get_batch_iterator(self, dataset, *args, epoch: int = 1, **kwargs):
        """Returns fairseq's iterator. A resumed training has the same batches as one that was never stopped.

        fairseq orders sentences of equal length by seed and epoch when it makes batches. An unbroken run makes them
        once, in its first epoch; a resumed run would make other batches in the epoch that it begins with.
        """
        makes_batches_once = (
            self.can_reuse_epoch_itr(dataset)
            and len(utils.split_paths(self.cfg.data)) == 1
            and not kwargs.get("disable_iterator_cache")
            and not kwargs.get("update_epoch_batch_itr")
        )
        is_first = makes_batches_once and dataset not in self.dataset_to_epoch_iter
        try:
            iterator = super().get_batch_iterator(dataset, *args, epoch=1 if is_first else epoch, **kwargs)
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            hint = "Raise it, or --max-tokens-valid for validation; --max-source-positions with "
            hint += "--skip-invalid-size-inputs-valid-test leaves long sentences out."
            raise InputError(f"a sentence is longer than --max-tokens allows ({error})", hint=hint) from error
        if not is_first:
            return iterator
        iterator.epoch = max(epoch, 1)
        dataset.set_epoch(epoch)
        return iterator

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture; trees that it does not read are dropped from its input."""
        model = super().build_model(cfg, from_checkpoint)
        if not from_checkpoint:  # which may have the defaults of an earlier version
            self.refuse_unread_flags(model, cfg)
        unread = set(self.tree_inputs).difference(trees_read(model))
        if unread:
            drop_trees(model, unread)
        self.trees_of_models.update(set(self.tree_inputs) - unread)
        return model

    def refuse_unread_flags(self, model, cfg) -> None:
        """Raises InputError about a flag of a training, of the task or of the model ``cfg``, that nothing reads."""
        if hasattr(model, "refuse_unread_flags"):
            model.refuse_unread_flags(cfg)
        if getattr(self.cfg, "keep_unary", False) and not {"source_spans", "sentence_trees"}.intersection(
            trees_read(model)
        ):
            refuse_unread({"keep_unary"}, {"keep_unary": "the model reads no parses"})

    def checkpoint_facts(self) -> dict[str, Any]:
        """Returns what models depend on, which checkpoints keep: values, or dicts of values."""
        return {}

    def parses(self) -> dict[str, Any]:
        """Returns by side what decided its trees, such as name, version and model of the parser."""
        return {}

    def state_dict(self) -> dict:
        """Returns the state of the task, which checkpoints keep, with the parses of the trees that models read."""
        parses = {"parses": self.parses()} if self.trees_of_models else {}
        return {**super().state_dict(), **self.checkpoint_facts(), **parses}

    def require_same_data(self, checkpoint: dict, fine_tuning: bool = False) -> None:
        """Makes sure that a checkpoint's model was trained on data like this; other parses are a warning.

        ``checkpoint`` is the state of the task there; ``fine_tuning`` says whether a new training starts from it.
        Raises DictionaryMismatchError if labels differ, or the way in which trees are read.
        """
        require_same_facts(checkpoint, self.checkpoint_facts(), self.cfg.data)
        theirs, here = checkpoint.get("parses"), self.parses()
        if theirs is not None and theirs != here:
            found = ", ".join(f"{what} {value!r}, not {own!r}" for what, value, own in differences(theirs, here))
            logger.warning("the checkpoint was trained on other parses than those of %s: %s", self.cfg.data, found)

    def load_state_dict(self, state_dict: dict) -> None:
        """Makes sure that a checkpoint, such as a member of an ensemble, was trained on data like this."""
        self.require_same_data(state_dict)
        facts = {*self.checkpoint_facts(), "parses"}
        super().load_state_dict({name: value for name, value in state_dict.items() if name not in facts})

    # Generation

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Builds the generator of fairseq; each model of its ensemble gets the trees that it reads."""
        generator = super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        ensembles = {EnsembleModel: TreeEnsemble, EnsembleModelWithAlignment: AlignedTreeEnsemble}
        if ensemble := ensembles.get(type(getattr(generator, "model", None))):
            generator.model = ensemble(list(generator.model.models)).eval()
        return generator

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Returns the hypotheses of a batch (:meth:`generate`). Those of a batch without tokens are empty."""
        tokens = sample["net_input"]["src_tokens"]
        if not tokens.size(1):  # lines that cannot be read
            return [[empty_hypothesis()] for _ in tokens]
        return self.generate(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)

    def generate(self, generator, models, sample, prefix_tokens=None, constraints=None) -> list[list[dict]]:
        """Generates the hypotheses of each sentence of a batch, the best first."""
        return super().inference_step(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)

    def facts_of(self, hypotheses: list[dict]) -> dict[str, Any]:
        """Returns what ``tree-fairseq translate`` writes about a sentence beside its hypotheses."""
        return {}

    # Training

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """Does the step of fairseq. It never waits for a GPU to ask about padding; ``--cpu-autocast`` uses bfloat16."""
        tokens = sample.get("net_input", {}).get("src_tokens")
        with contextlib.nullcontext() if tokens is None else padding_assumed(tokens):
            return super().train_step(sample, model, self._autocast(criterion), optimizer, update_num, ignore_grad)

    def valid_step(self, sample, model, criterion):
        """Does the step of fairseq; ``--cpu-autocast`` uses bfloat16."""
        return super().valid_step(sample, model, self._autocast(criterion))

    def _autocast(self, criterion):
        if not self.cfg.cpu_autocast:
            return criterion

        def in_half_precision(*args, **kwargs):
            # The backward pass of torch's fused attention on CPUs in bfloat16 is many times slower than its parts.
            with torch.autocast("cpu", dtype=torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
                return criterion(*args, **kwargs)

        return in_half_precision
