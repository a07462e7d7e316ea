"""What all tasks of this package share, whatever they are for: models that read no trees, resumed runs, half precision on CPUs."""

import functools
from collections.abc import Collection
from dataclasses import dataclass, field

import torch
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.tasks import FairseqTask, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DataFolderError


def trees_read(model) -> tuple[str, ...]:
    """Names of the trees that a model, or the class of one, reads in ``net_input``; fairseq's models read none."""
    return getattr(model, "tree_inputs", ())


def drop_trees(model: nn.Module, names: Collection[str]) -> None:
    """Drops trees from the input of a model that does not read them, in training and in generation.

    A stock architecture can then train on a folder with trees, and be a member of an ensemble with models that read them.

    Args:
        model: an encoder-decoder, or any model that is called with ``net_input`` alone
        names: of the trees in ``net_input``
    """

    def without_trees(inputs: dict) -> dict:
        return {name: value for name, value in inputs.items() if name not in names}

    model.register_forward_pre_hook(lambda module, args, kwargs: (args, without_trees(kwargs)), with_kwargs=True)
    if not isinstance(model, FairseqEncoderDecoderModel):
        return
    # Generators call the encoder's entry point directly, past the hooks of torch.
    encode = model.encoder.forward_torchscript

    @functools.wraps(encode)
    def encode_without_trees(net_input):
        return encode(without_trees(net_input))

    model.encoder.forward_torchscript = encode_without_trees


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeTaskConfig(FairseqDataclass):
    """The options of all tasks of this package."""

    cpu_autocast: bool = field(
        default=False, metadata={"help": "train and validate in bfloat16 on the CPU, as torch.autocast does"}
    )


class TreeTask(FairseqTask):
    """A task over a folder with a ``tree.json``; stands before fairseq's own task among the bases of a class.

    Attributes:
        has_tree_model: whether a model was built that reads trees
    """

    cfg: TreeTaskConfig
    tree_inputs: tuple[str, ...] = ()
    """Names of the trees in ``net_input``, which models that read none never see."""
    has_tree_model = False

    def get_batch_iterator(self, dataset, *args, epoch: int = 1, **kwargs):
        """fairseq's iterator, over the same batches in a resumed run as in an unbroken one.

        fairseq draws ties of length by seed and epoch when it makes batches. An unbroken run makes them
        in its first epoch for all; a resumed one would make others in the epoch that it begins with.
        """
        makes_batches_once = (
            self.can_reuse_epoch_itr(dataset)
            and len(utils.split_paths(self.cfg.data)) == 1
            and not kwargs.get("disable_iterator_cache")
            and not kwargs.get("update_epoch_batch_itr")
        )
        if not makes_batches_once or dataset in self.dataset_to_epoch_iter:
            return super().get_batch_iterator(dataset, *args, epoch=epoch, **kwargs)
        iterator = super().get_batch_iterator(dataset, *args, epoch=1, **kwargs)
        iterator.epoch = max(epoch, 1)
        dataset.set_epoch(epoch)
        return iterator

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture; one that reads no trees never sees them."""
        model = super().build_model(cfg, from_checkpoint)
        read = trees_read(model)
        if unread := [name for name in self.tree_inputs if name not in read]:
            drop_trees(model, unread)
        self.has_tree_model = self.has_tree_model or len(unread) < len(self.tree_inputs)
        return model

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """The stock step, under ``--cpu-autocast`` with a forward pass in bfloat16."""
        return super().train_step(sample, model, self._autocast(criterion), optimizer, update_num, ignore_grad)

    def valid_step(self, sample, model, criterion):
        """The stock step, under ``--cpu-autocast`` in bfloat16."""
        return super().valid_step(sample, model, self._autocast(criterion))

    def _autocast(self, criterion):
        if not self.cfg.cpu_autocast:
            return criterion

        def in_half_precision(*args, **kwargs):
            # The fused attention of torch for CPUs has a backward pass in bfloat16 that is many times slower than its parts.
            with torch.autocast("cpu", dtype=torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
                return criterion(*args, **kwargs)

        return in_half_precision


# FROM tasks/translation_with_trees: What all translation tasks of this package share, whatever their sides are.


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TranslationWithTreesConfig(TreeTaskConfig, TranslationConfig):
    """fairseq's translation options and those of all tasks of this package."""


class TranslationWithTreesTask(TreeTask, TranslationTask):
    """fairseq's translation task over a folder with a ``tree.json``.

    Args:
        cfg (TranslationWithTreesConfig): options
        src_dict: source dictionary
        tgt_dict: target dictionary
    """

    cfg: TranslationWithTreesConfig

    def __init__(self, cfg: TranslationWithTreesConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.truncate_source:
            raise DataFolderError(
                "--truncate-source cuts words off whose tree would remain; use --max-source-positions "
                "with --skip-invalid-size-inputs-valid-test, or shorter lines"
            )
        cfg.upsample_primary = max(1, cfg.upsample_primary)

    @classmethod
    def setup_task(cls, cfg: TranslationWithTreesConfig, **kwargs):
        """Loads the dictionaries; languages that are not given are those of ``tree.json``, also where a
        folder holds no data to tell them by.

        Raises:
            MissingTreesError: the folder has no trees
        """
        if cfg.source_lang is None and cfg.target_lang is None:
            manifest = Manifest.load(utils.split_paths(cfg.data)[0])
            cfg.source_lang, cfg.target_lang = manifest.source_lang, manifest.target_lang
        return super().setup_task(cfg, **kwargs)


# FROM tasks/autocast_translation: fairseq's translation for models that read no trees, in bfloat16 on CPUs: for baselines of tree models that train so.


@register_task("autocast_translation", dataclass=TranslationWithTreesConfig)
class AutocastTranslationTask(TreeTask, TranslationTask):
    """The stock task with ``--cpu-autocast``. Any folder of fairseq's will do, and checkpoints generate under ``--task translation``."""

    cfg: TranslationWithTreesConfig
