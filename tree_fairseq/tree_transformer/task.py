"""Translation from sentences with constituency trees."""

import dataclasses
import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

import numpy as np
from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.sequence_generator import SequenceGeneratorWithAlignment
from fairseq.tasks import register_task
from torch import Tensor

from tree_fairseq.data_bin.label_dictionary import load_label_dictionary
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import joined, side_prefixes
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.errors import CorruptFileError, DataFolderError, DictionaryMismatchError, MissingTreesError
from tree_fairseq.nn.sides import CONSTITUENCY, Side
from tree_fairseq.nn.tasks import TranslationWithTreesConfig, TranslationWithTreesTask
from tree_fairseq.nn.tree_batch import ReducedTrees, TreeReader, kept_counts
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine
from tree_fairseq.tree_transformer.dataset import InferenceDataset, ParsedLines, TreeLanguagePairDataset, unpack_trees
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeTranslationConfig(TranslationWithTreesConfig):
    """fairseq's translation options and those of trees."""

    unary_chains: ChoiceEnum(["lowest", "join"]) = field(
        default="lowest",
        metadata={
            "help": "a chain of constituents over the same words is one node: with the 'lowest' label, or "
            "all labels joined"
        },
    )
    count_nodes: bool = field(
        default=False,
        metadata={
            "help": "--max-tokens counts a source sentence's tree nodes with its tokens; by default batches "
            "are those of the stock translation task"
        },
    )
    parser_dir: Optional[str] = field(
        default=None,
        metadata={"help": "folder of the parser's model, where new text is parsed and it is not where tree.json says"},
    )


@register_task("tree_translation", dataclass=TreeTranslationConfig)
class TreeTranslationTask(TranslationWithTreesTask):
    """Translates sentences whose trees ``fairseq-preprocess --tree-parser …`` laid beside them.

    Models that read no trees (stock architectures) train on the same folder under this task too.

    Args:
        cfg (TreeTranslationConfig): options
        src_dict: source dictionary
        tgt_dict: target dictionary

    Attributes:
        trees: record of the source's trees; None in a folder without, where the task does without them
    """

    cfg: TreeTranslationConfig
    tree_inputs = ("source_spans",)
    needs_source_trees = True

    def __init__(self, cfg: TreeTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        folder = Path(utils.split_paths(cfg.data)[0])
        manifest = Manifest.load(folder)
        self.trees = manifest.side(cfg.source_lang) if self.needs_source_trees else manifest.sides.get(cfg.source_lang)
        if self.trees is None:
            return
        self.label_dictionary = load_label_dictionary(folder / self.trees.labels)
        logger.info("[%s] label dictionary: %d types", cfg.source_lang, len(self.label_dictionary))
        self.read_tree = TreeReader(self.label_dictionary, cfg.unary_chains)
        self.source_side = Side(CONSTITUENCY, labels=self.label_dictionary)

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split as the stock task does, and the trees beside it.

        Raises:
            MissingTreesError: the folder has none for the split
            CorruptFileError: trees and sentences do not belong together
            DictionaryMismatchError: the folder has other labels than the first
        """
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        if self.trees is None:
            return
        folder = self.folder_of(split, epoch)
        pairs = self.datasets[split]
        trees = self._load_trees(folder, split, combine)
        if len(trees) != len(pairs):
            raise CorruptFileError(f"{folder}: {len(pairs)} sentences but {len(trees)} trees in '{split}'")
        counts = self._node_counts(trees) if self.cfg.count_nodes else None
        logger.info(
            "[%s] --max-tokens counts the longer of source tokens%s and target tokens of each pair",
            split,
            " with tree nodes" if self.cfg.count_nodes else " (tree nodes not counted, see --count-nodes)",
        )
        self.datasets[split] = TreeLanguagePairDataset(
            pairs,
            ReducedTrees(trees, self.read_tree),
            self.label_dictionary.pad(),
            counts,
            # Training has the stock task's batches; a test set is translated to its last line.
            keep_remainder=split != self.cfg.train_subset,
        )

    def folder_of(self, split: str, epoch: int) -> Path:
        """The folder that a split is read from in an epoch: of several folders every epoch trains on another one."""
        paths = utils.split_paths(self.cfg.data)
        return Path(paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0])

    def _node_counts(self, trees) -> np.ndarray:
        """Nodes that a model reads of every pair; shards that are repeated are counted once and repeated."""
        if isinstance(trees, TreeStore):
            return kept_counts(trees)
        ratios = trees.sample_ratios
        return np.concatenate([np.tile(kept_counts(store), ratio) for store, ratio in zip(trees.datasets, ratios)])

    def _load_trees(self, folder: Path, split: str, combine: bool):
        """The stored trees of a split in the order of its sentences."""
        source, target = self.cfg.source_lang, self.cfg.target_lang
        manifest = Manifest.load(folder)
        if load_label_dictionary(folder / manifest.side(source).labels) != self.label_dictionary:
            raise DictionaryMismatchError(
                f"{folder} has other labels than {utils.split_paths(self.cfg.data)[0]}; preprocess it with --srcdict and "
                "--tgtdict of the first folder, which takes its labels along"
            )
        prefixes = side_prefixes(folder, split, source, target, source, "tree", combine)
        if not prefixes:
            raise MissingTreesError(
                f"{folder} has no trees for '{split}' in {source}; "
                f"add them with: python -m tree_fairseq.commands.annotate {folder}"
            )
        manifest.verify_quickly(folder, source, prefixes)
        return joined([TreeStore(prefix) for prefix in prefixes.values()], self.cfg.upsample_primary)

    # New text: fairseq-interactive and the hub

    @functools.cached_property
    def line_parser(self) -> LineParser:
        """Parses new text exactly as the training data was parsed."""
        options = self.trees.options
        if self.cfg.parser_dir is not None:
            options = dataclasses.replace(options, parser_dir=self.cfg.parser_dir)
        return LineParser(options)

    def parse_lines(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[ParsedLine]:
        """Parses new lines; ``encode_fn`` is applied to text, not to bracketed trees."""
        if self.line_parser.wants_encoded_text:
            lines = [encode_fn(line) for line in lines]
        return self.line_parser.parse_lines(lines)

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """The trees of each source line; none in a folder without."""
        if self.trees is None:
            return [() for _ in lines]
        return [line.forest for line in self.parse_lines(lines, encode_fn)]

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]):
        """Parses lines and encodes their leaves: the one road of new text to a model.

        Args:
            lines: one sentence, or as many as the parser was told to expect, each; bracketed trees
                where the training data was bracketed
            encode_fn: tokeniser and subword segmentation

        Returns:
            token tensors that carry their trees, and their lengths
        """
        if self.trees is None:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        parsed = self.parse_lines(lines, encode_fn)
        tokens, trees = [], []
        for line in parsed:
            spans = encode(line.forest)
            trees.append(self.read_tree.from_spans(spans))
            text = " ".join(spans.leaves)
            tokens.append(self.source_dictionary.encode_line(text, add_if_not_exist=False).long())
        return ParsedLines(tokens, trees), [len(item) for item in tokens]

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """A data set of lines to translate; token tensors without trees are parsed by their words."""
        if self.trees is None:
            return super().build_dataset_for_inference(src_tokens, src_lengths, constraints=constraints)
        if constraints is not None:
            raise DataFolderError("--constraints cannot be combined with trees in fairseq-interactive")
        if not isinstance(src_tokens, ParsedLines):
            words = [self.source_dictionary.string(tokens) for tokens in src_tokens]
            parsed, _ = self.get_interactive_tokens_and_lengths(words, lambda line: line)
            src_tokens = ParsedLines(src_tokens, parsed.trees)
        pairs = super().build_dataset_for_inference(src_tokens, src_lengths)
        return InferenceDataset(pairs, src_tokens.trees, self.label_dictionary.pad())

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """fairseq's generator; with ``--replace-unk`` it tells alignments."""
        if seq_gen_cls is None and getattr(args, "replace_unk", None) is not None and not args.print_alignment:
            seq_gen_cls = SequenceGeneratorWithAlignment
            extra_gen_cls_kwargs = {**(extra_gen_cls_kwargs or {}), "print_alignment": "hard"}
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates; trees that came packed as constraints are put back where models expect them."""
        if constraints is not None and "source_spans" not in sample["net_input"]:
            sample["net_input"]["source_spans"] = unpack_trees(constraints)
        return super().inference_step(generator, models, sample, prefix_tokens=prefix_tokens)

    # Training

    def state_dict(self) -> dict:
        """What a checkpoint remembers of the task: how the trees were read, if its model reads any."""
        state = super().state_dict()
        if not self.has_tree_model or self.trees is None:
            return state
        return {**state, "labels": list(self.label_dictionary.symbols), "unary_chains": str(self.cfg.unary_chains)}

    def load_state_dict(self, state_dict: dict) -> None:
        """Makes sure that a checkpoint, such as a member of an ensemble, was trained on trees like these.

        Raises:
            DictionaryMismatchError: it knows other labels, or read unary chains in another way
        """
        state = dict(state_dict)
        labels, unary_chains = state.pop("labels", None), state.pop("unary_chains", None)
        if labels is not None and self.trees is None:
            raise MissingTreesError(f"a checkpoint was trained on trees of the source, and {self.cfg.data} has none")
        if labels is not None and labels != self.label_dictionary.symbols:
            raise DictionaryMismatchError(
                f"a checkpoint was trained with other labels ({len(labels)}) than those of {self.cfg.data} "
                f"({len(self.label_dictionary)}); use the folder that it was trained on, or one that was preprocessed with "
                "its dictionaries (--srcdict)"
            )
        if unary_chains is not None and unary_chains != self.cfg.unary_chains:
            raise DictionaryMismatchError(
                f"a checkpoint was trained with --unary-chains {unary_chains}, this is --unary-chains {self.cfg.unary_chains}"
            )
        super().load_state_dict(state)
