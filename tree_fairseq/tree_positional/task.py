"""Translation between sequences and symbol trees: programs, logical forms, parses."""

import dataclasses
import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from torch import Tensor

from tree_fairseq.data_bin.grammar import load_grammar
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.data_bin.symbol_sides import SymbolSideRecord, tree_of_forest
from tree_fairseq.errors import DataFolderError, DictionaryMismatchError, MissingTreesError
from tree_fairseq.nn.command_output import print_brackets
from tree_fairseq.nn.sides import SYMBOLS, Side
from tree_fairseq.nn.tasks import TranslationWithTreesConfig, TranslationWithTreesTask
from tree_fairseq.nn.validation_accuracy import ValidationAccuracyConfig, ValidationAccuracyTask
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.tree_positional.dataset import SymbolTreePairDataset, collate_symbol_trees
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Forest, Tree

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class StructuralTranslationConfig(ValidationAccuracyConfig, TranslationWithTreesConfig):
    """fairseq's translation options and those of symbol trees."""

    grammar: ChoiceEnum(["none", "data"]) = field(
        default="none",
        metadata={"help": "data: a symbol is generated only under parents and branches where training data has it"},
    )
    parser_dir: Optional[str] = field(
        default=None,
        metadata={"help": "folder of the parser's model, where new text is parsed and it is not where tree.json says"},
    )


@register_task("structural_translation", dataclass=StructuralTranslationConfig)
class StructuralTranslationTask(ValidationAccuracyTask, TranslationWithTreesTask):
    """Translates between sides of which ``fairseq-preprocess --source-modality … --target-modality …`` made symbol
    trees.

    Any architecture trains under it. Whatever the model, generated trees are complete and well-formed. A tree says
    itself where
    it ends, so EOS is not learned: under ``--task translation`` a model that was trained here would never end.

    Args:
        cfg (StructuralTranslationConfig): options
        src_dict: source dictionary
        tgt_dict: target dictionary

    Attributes:
        source_symbols: arities and branches by source id; None if the source is a sequence
        target_symbols: the same for the target
    """

    cfg: StructuralTranslationConfig
    tree_inputs = ("source_symbol_tree", "previous_symbol_tree")

    def __init__(self, cfg: StructuralTranslationConfig, src_dict, tgt_dict):
        folder = Path(utils.split_paths(cfg.data)[0])
        manifest = Manifest.load(folder)
        self.source_record = manifest.symbols.get(cfg.source_lang)
        self.target_record = manifest.symbols.get(cfg.target_lang)
        if self.source_record is None and self.target_record is None:
            raise MissingTreesError(
                f"neither {cfg.source_lang} nor {cfg.target_lang} is symbol trees in {folder}: preprocess with "
                "--source-modality tree "
                "or --target-modality tree, or train with another task"
            )
        src_dict, tgt_dict = _as_symbols(src_dict, self.source_record), _as_symbols(tgt_dict, self.target_record)
        super().__init__(cfg, src_dict, tgt_dict)
        self.source_symbols = None if self.source_record is None else src_dict.table()
        self.target_symbols = None if self.target_record is None else tgt_dict.table()
        self.source_side, self.target_side = (
            Side() if symbols is None else Side(SYMBOLS, symbols=symbols)
            for symbols in (self.source_symbols, self.target_symbols)
        )

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split as the stock task does; its batches get the places of all symbols in their trees.

        Raises:
            MissingTreesError: the folder has no symbol trees for the split
            CorruptFileError, DictionaryMismatchError: files do not belong together
        """
        paths = utils.split_paths(self.cfg.data)
        folder = Path(paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0])
        manifest = Manifest.load(folder)
        for lang, record in ((self.cfg.source_lang, self.source_record), (self.cfg.target_lang, self.target_record)):
            if record is None:
                continue
            other = manifest.symbols.get(lang)
            if other is None or not other.makes_same_symbols(record):
                raise DictionaryMismatchError(
                    f"{folder} does not hold the same kind of trees for {lang} as {paths[0]}: preprocess it with the "
                    "same options"
                )
            manifest.verify_quickly(folder, lang, [split])
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        self.datasets[split] = SymbolTreePairDataset(
            self.datasets[split],
            self.source_symbols,
            self.target_symbols,
            # Training has the stock task's batches; a test set is translated to its last line.
            keep_remainder=split != self.cfg.train_subset,
        )

    # New text: fairseq-interactive and the hub

    @functools.cached_property
    def line_parser(self) -> LineParser:
        """Parses new sentences exactly as the training data was parsed."""
        options = self.source_record.options
        if self.cfg.parser_dir is not None:
            options = dataclasses.replace(options, parser_dir=self.cfg.parser_dir)
        return LineParser(options)

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """The tree of each source line, none where the source is a sequence."""
        if self.source_record is None:
            return [() for _ in lines]
        return [(tree,) for tree in self.read_source(lines, encode_fn)]

    def read_source(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Tree]:
        """The trees of new source lines; ``encode_fn`` is applied to sentences, not to trees.

        Raises:
            SymbolTreeError: a line is no tree
        """
        if self.source_record.options is None:
            return [
                self.source_dictionary.notation.read(line, path="input", line_number=n)
                for n, line in enumerate(lines, 1)
            ]
        if self.line_parser.wants_encoded_text:
            lines = [encode_fn(line) for line in lines]
        return [tree_of_forest(parsed.forest) for parsed in self.line_parser.parse_lines(lines)]

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]):
        """Encodes lines: the one road of new text to a model.

        Args:
            lines: one source each, written as the training data was
            encode_fn: tokeniser and subword segmentation

        Returns:
            token tensors and their lengths
        """
        if self.target_record is not None:
            print_brackets(self.target_dictionary)
        if self.source_record is None:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        encoding, dictionary = self.source_record.encoding, self.source_dictionary
        symbols = [" ".join(encoding.encode(tree)) for tree in self.read_source(lines, encode_fn)]
        tokens = [dictionary.encode_line(line, add_if_not_exist=False).long() for line in symbols]
        return tokens, [len(item) for item in tokens]

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """A data set of sources to translate."""
        pairs = super().build_dataset_for_inference(src_tokens, src_lengths, constraints=constraints)
        return SymbolTreePairDataset(pairs, self.source_symbols, self.target_symbols)

    # Generation

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """fairseq's generator; for a tree target the structural search, which returns valid trees only.

        Raises:
            DataFolderError: ``--grammar data`` without the grammar of the training data
            StructuralSearchError: an option that does not go with trees
        """
        if seq_gen_cls is None and self.target_symbols is not None:
            seq_gen_cls = StructuralGenerator
            structural = {"symbols": self.target_symbols, "grammar": self._grammar()}
            if getattr(args, "print_alignment", None):
                structural["print_alignment"] = args.print_alignment
            extra_gen_cls_kwargs = {**(extra_gen_cls_kwargs or {}), **structural}
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)

    def _grammar(self):
        if self.cfg.grammar == "none":
            return None
        folder = Path(utils.split_paths(self.cfg.data)[0])
        name = self.target_record.grammar
        if name is None or not (folder / name).exists():
            raise DataFolderError(
                f"{folder} has no grammar of {self.cfg.target_lang}: it is written where the training split is "
                "preprocessed"
            )
        return load_grammar(folder / name, self.target_dictionary)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates; where the batch was rebuilt from tokens alone, the places in source trees are found again."""
        net_input = dict(sample["net_input"])
        if isinstance(generator, SequenceGenerator):
            # The search knows the trees that it makes, and encoders want no others.
            net_input.pop("previous_symbol_tree", None)
        if self.source_symbols is not None and "source_symbol_tree" not in net_input:
            net_input["source_symbol_tree"] = collate_symbol_trees(net_input["src_tokens"], self.source_symbols)
        sample = {**sample, "net_input": net_input}
        return super().inference_step(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)

    # Training

    @property
    def _described(self) -> dict:
        """What a model depends on, for its checkpoints."""
        sides = (
            ("source", self.source_record, self.source_symbols),
            ("target", self.target_record, self.target_symbols),
        )
        return {
            side: {
                "traversal": record.traversal,
                "binarization": record.binarization,
                "arities": symbols.arity.tolist(),
            }
            for side, record, symbols in sides
            if record is not None
        }

    def state_dict(self) -> dict:
        """What a checkpoint remembers of the task: how its trees were encoded."""
        return {**super().state_dict(), "symbol_trees": self._described}

    def load_state_dict(self, state_dict: dict) -> None:
        """Makes sure that a checkpoint was trained on trees like these.

        Raises:
            DictionaryMismatchError: its traversal, binarisation or arities are others
        """
        state = dict(state_dict)
        theirs, ours = state.pop("symbol_trees", None), self._described
        if theirs is not None and theirs != ours:
            differing = [
                f"{name} of the {side}"
                for side in ("source", "target")
                for name in ("traversal", "binarization", "arities")
                if theirs.get(side, {}).get(name) != ours.get(side, {}).get(name)
            ]
            raise DictionaryMismatchError(
                f"a checkpoint was trained on other trees than those of {self.cfg.data}: they differ in "
                f"{', '.join(differing)}; use the "
                "folder that it was trained on, or one that was preprocessed with its options and dictionaries "
                "(--srcdict, --tgtdict)"
            )
        super().load_state_dict(state)

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """How many targets of a batch are met symbol by symbol."""
        dictionary = self.target_dictionary
        outside = (dictionary.pad(), dictionary.eos())
        unknown = dictionary.unknown_ids() if isinstance(dictionary, SymbolDictionary) else [dictionary.unk()]
        accurate = 0
        for target, ranked in zip(sample["target"].tolist(), hypotheses):
            wanted = [index for index in target if index not in outside]
            # An unknown symbol is never right, even if the guess is one.
            if ranked and not set(wanted) & set(unknown):
                accurate += wanted == [index for index in ranked[0]["tokens"].tolist() if index not in outside]
        return accurate


def _as_symbols(dictionary, record: Optional[SymbolSideRecord]):
    """A dictionary that knows what its symbols mean, where they mean something."""
    if record is None:
        return dictionary
    return SymbolDictionary(dictionary, record.encoding, notation_named(record.notation))
