"""Translation between sides of any modality: the base class of such tasks, and translation of parsed sentences."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from fairseq import utils
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CorruptFileError, DataFolderError, MissingTreesError
from tree_fairseq.nn.modalities import CONSTITUENCY, SEQUENCE, SOURCE_INPUTS, SYMBOLS
from tree_fairseq.parsing.trust import require_read_by_parser
from tree_fairseq.tasks.pair_dataset import NewSpanPairDataset, SpanPairDataset, SymbolPairDataset, collate_symbol_trees
from tree_fairseq.tasks.same_data import digest_of, require_same_folders
from tree_fairseq.tasks.sides import ParsedSide, load_side
from tree_fairseq.tasks.tree_task import NewTextConfig, TreeTask, TreeTaskConfig
from tree_fairseq.tasks.unknown_tokens import count_typed
from tree_fairseq.tasks.unread_trees import end_sources
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TranslationWithTreesConfig(NewTextConfig, TranslationConfig):
    """fairseq's translation options and those of trees."""


class TranslationWithTreesTask(TreeTask, TranslationTask):
    """fairseq's translation task over a folder with a ``tree.json``: its sides have modalities."""

    cfg: TranslationWithTreesConfig
    tree_inputs = (*SOURCE_INPUTS, "previous_symbol_tree")
    source_modalities: tuple[str, ...] = (SEQUENCE,)
    """Modalities of sources that the task reads; it takes the first one that the folder holds."""
    target_modalities: tuple[str, ...] = (SEQUENCE,)
    """Modalities of targets that the task reads; it takes the first one that the folder holds."""

    def __init__(self, cfg: TranslationWithTreesConfig, src_dict, tgt_dict):
        if cfg.truncate_source:
            raise DataFolderError(
                "--truncate-source cuts words off whose tree would remain; use --max-source-positions "
                "with --skip-invalid-size-inputs-valid-test, or shorter lines"
            )
        cfg.upsample_primary = max(1, cfg.upsample_primary)
        folder = Path(utils.split_paths(cfg.data)[0])
        self.source_side = load_side(cfg, folder, cfg.source_lang, src_dict, self.source_modalities)
        self.target_side = load_side(cfg, folder, cfg.target_lang, tgt_dict, self.target_modalities)
        require_read_by_parser(self.source_side.options, cfg)
        super().__init__(cfg, self.source_side.dictionary, self.target_side.dictionary)
        self.is_checkpoint_of_ours = True  # the one that was loaded last
        if self.source_side.labels is not None:
            logger.info("[%s] label dictionary: %d types", cfg.source_lang, len(self.source_side.labels))

    @classmethod
    def setup_task(cls, cfg: TranslationWithTreesConfig, **kwargs):
        """Loads the dictionaries; if no languages are given, those of ``tree.json``, even if the folder has no data."""
        folder = utils.split_paths(cfg.data)[0]
        manifest = Manifest.load(folder)
        require_same_folders(cfg.data)
        manifest.verify_texts(folder)
        if cfg.source_lang is None and cfg.target_lang is None:
            cfg.source_lang, cfg.target_lang = manifest.source_lang, manifest.target_lang
        return super().setup_task(cfg, **kwargs)

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split as the stock task does, and the trees of its sides."""
        folder = self.folder_of(split, epoch)
        manifest = Manifest.load(folder)
        manifest.verify_texts(folder, [split])
        for side in (self.source_side, self.target_side):
            if side.modality == SYMBOLS:
                manifest.verify_quickly(folder, side.lang, [split])
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        # Training has the stock task's batches; a test set is translated to its last line.
        keep_remainder = split != self.cfg.train_subset
        pairs = self._with_symbols(self.datasets[split], keep_remainder)
        if self.source_side.modality == CONSTITUENCY:
            trees = self.source_side.load_trees(folder, split, combine)
            if len(trees) != len(pairs):
                raise CorruptFileError(f"{folder}: {len(pairs)} sentences but {len(trees)} trees in '{split}'")
            pairs = SpanPairDataset(pairs, trees, self.source_side.read_tree, keep_remainder)
        self.datasets[split] = pairs

    def _with_symbols(self, pairs, keep_remainder: bool = False):
        symbols = self.source_side.symbols, self.target_side.symbols
        return pairs if symbols == (None, None) else SymbolPairDataset(pairs, *symbols, keep_remainder)

    # New text: fairseq-interactive and the hub

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """Returns the trees of each source line; a sequence has none."""
        return self.source_side.forests(lines, encode_fn)

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]):
        """Returns token tensors of new lines, which carry their trees, and their lengths.

        Lines are written as the training data was; ``encode_fn`` is not applied to trees.
        """
        if self.source_side.modality == SEQUENCE:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        tokens = self.source_side.read_lines(lines, encode_fn)
        count_typed(self, tokens.words)
        return tokens, [len(line) for line in tokens]

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """Makes a data set of lines to translate. Token tensors without trees are parsed by their words."""
        side = self.source_side
        if side.modality != CONSTITUENCY:
            lines = super().build_dataset_for_inference(src_tokens, src_lengths, constraints=constraints)
            return self._with_symbols(lines)
        if constraints is not None:
            raise DataFolderError("--constraints cannot be combined with trees in fairseq-interactive")
        lines = side.with_trees(src_tokens)
        pairs = self._with_symbols(super().build_dataset_for_inference(lines, src_lengths))
        return NewSpanPairDataset(pairs, lines.trees, side.read_tree)

    # Checkpoints

    def load_state_dict(self, state_dict: dict) -> None:
        """Also finds out whether a checkpoint is one of another task."""
        super().load_state_dict(state_dict)
        self.is_checkpoint_of_ours = "symbol_trees" in state_dict

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds the model; that of another task's checkpoint reads EOS after trees, as it did in training."""
        model = super().build_model(cfg, from_checkpoint)
        if from_checkpoint and self.source_side.modality == SYMBOLS and not self.is_checkpoint_of_ours:
            end_sources(model, self.source_dictionary)
        return model

    def checkpoint_facts(self) -> dict[str, Any]:
        """Returns digests of the dictionaries, the labels of constituency trees, and how symbol trees were encoded."""
        facts = self.source_side.facts() if self.source_side.modality == CONSTITUENCY else {}
        sides = {"source": self.source_side, "target": self.target_side}
        facts = {**{f"{name}_dictionary": digest_of(side.dictionary) for name, side in sides.items()}, **facts}
        symbols = {name: side.facts() for name, side in sides.items() if side.modality == SYMBOLS}
        return {**facts, "symbol_trees": symbols} if symbols else facts

    def parses(self) -> dict[str, Any]:
        """Returns what decided the trees of each side that was parsed."""
        sides = {"source": self.source_side, "target": self.target_side}
        records = {name: side.record for name, side in sides.items() if isinstance(side, ParsedSide)}
        return {name: record.identity for name, record in records.items() if record.identity is not None}

    def state_dict(self) -> dict:
        """Returns the state of the task; it has labels of constituency trees only if a model reads them."""
        state = super().state_dict()
        if "source_spans" not in self.trees_of_models:
            state = {name: fact for name, fact in state.items() if name not in ("labels", "keep_unary")}
        return state

    def require_same_data(self, checkpoint: dict, fine_tuning: bool = False) -> None:
        """Also makes sure that the source has trees if the checkpoint's model read them."""
        if "labels" in checkpoint and self.source_side.modality != CONSTITUENCY:
            raise MissingTreesError(f"a checkpoint was trained on trees of the source, and {self.cfg.data} has none")
        super().require_same_data(checkpoint, fine_tuning)

    # Generation

    def generate(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates. The interactive command keeps tokens and constraints alone, so trees are put back."""
        net_input = dict(sample["net_input"])
        if isinstance(generator, SequenceGenerator):
            # The search knows the trees that it makes, and encoders read none of the target.
            net_input.pop("previous_symbol_tree", None)
        if self.source_side.modality == CONSTITUENCY:
            net_input.update(constraints or {})
            constraints = None
        elif self.source_side.symbols is not None and "source_symbol_tree" not in net_input:
            net_input["source_symbol_tree"] = collate_symbol_trees(net_input["src_tokens"], self.source_side.symbols)
        sample = {**sample, "net_input": net_input}
        return super().generate(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)


@dataclass
class AutocastTranslationConfig(TreeTaskConfig, TranslationConfig):
    """fairseq's translation options and those of all tasks of this package."""


@register_task("autocast_translation", dataclass=AutocastTranslationConfig)
class AutocastTranslationTask(TreeTask, TranslationTask):
    """fairseq's translation with ``--cpu-autocast``, for baselines.

    Any folder of fairseq's will do, and checkpoints generate under ``--task translation``.
    """


@register_task("tree_translation", dataclass=TranslationWithTreesConfig)
class TreeTranslationTask(TranslationWithTreesTask):
    """Translates sentences whose constituency trees ``fairseq-preprocess --tree-parser …`` wrote beside them.

    Models that read no trees (stock architectures) train on the same folder under this task too.
    """

    source_modalities = (CONSTITUENCY,)
