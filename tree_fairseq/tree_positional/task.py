"""Translation between sequences and symbol trees: programs, logical forms, parses."""

import logging
from dataclasses import dataclass
from typing import Optional

from fairseq import utils
from fairseq.tasks import register_task

from tree_fairseq.data_bin.grammar import FieldTable, TypedGrammar, load_grammar
from tree_fairseq.data_bin.kinds import symbol_trees
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.errors import DataFolderError, MissingTreesError
from tree_fairseq.nn.modalities import CONSTITUENCY, SEQUENCE, SYMBOLS
from tree_fairseq.source_code.asdl import AsdlGrammar
from tree_fairseq.source_code.complete_programs import load_schema, report_queries_that_do_not_run
from tree_fairseq.source_code.field_types import FieldTypes
from tree_fairseq.support.options import changed_options, option, refuse_unread
from tree_fairseq.tasks import INVALID
from tree_fairseq.tasks.translation import TranslationWithTreesConfig, TranslationWithTreesTask
from tree_fairseq.tasks.validation_accuracy import ValidationAccuracyConfig, ValidationAccuracyTask
from tree_fairseq.tree_positional.checked_search import ProgramCheck
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.notations import notation_named

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class StructuralTranslationConfig(ValidationAccuracyConfig, TranslationWithTreesConfig):
    """fairseq's translation options and those of symbol trees."""

    grammar: str = option(
        "none",
        "what the search allows. data: a symbol only under parents and branches that the training data has; language: "
        "what the fields of the programming language hold, and only outputs that its parser reads; language:TYPE,TYPE: "
        "the same, for programs or fragments of these types; or a file with a grammar in ASDL",
    )
    schema: Optional[str] = option(
        None,
        "with --grammar language and SQL: only queries that run on this schema, an SQLite file or a file of CREATE "
        "TABLE statements",
    )


@register_task("structural_translation", dataclass=StructuralTranslationConfig)
class StructuralTranslationTask(ValidationAccuracyTask, TranslationWithTreesTask):
    """Translates between sequences and symbol trees.

    Any architecture trains under this task, and all generated trees are complete and well-formed. A tree ends when it
    has no open node, so models do not learn EOS: under ``--task translation`` a model that was trained here would never
    end.
    """

    cfg: StructuralTranslationConfig
    source_modalities = (SYMBOLS, CONSTITUENCY, SEQUENCE)
    target_modalities = (SYMBOLS, SEQUENCE)

    def __init__(self, cfg: StructuralTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        if SYMBOLS not in (self.source_side.modality, self.target_side.modality):
            raise MissingTreesError(
                f"neither {cfg.source_lang} nor {cfg.target_lang} is symbol trees in {utils.split_paths(cfg.data)[0]}: "
                "preprocess with --source-modality tree or --target-modality tree, or train with another task"
            )
        if self.target_side.modality != SYMBOLS:
            given = changed_options(cfg, StructuralTranslationConfig)
            refuse_unread(given, dict.fromkeys(("grammar", "schema"), "the target is a sequence"))

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Builds fairseq's generator, or for a tree target the structural search."""
        if seq_gen_cls is None and self.target_side.modality == SYMBOLS:
            seq_gen_cls = StructuralGenerator
            extra_gen_cls_kwargs = {
                **(extra_gen_cls_kwargs or {}),
                "symbols": self.target_side.symbols,
                "grammar": self._grammar(),
                "check": self._program_check(),
                "print_alignment": getattr(args, "print_alignment", None),
                "print_step": getattr(args, "print_step", False),
            }
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)

    def generate(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates, and logs each sentence for which the structural search finds no program."""
        found = super().generate(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)
        for row, ranked in enumerate(found):
            if ranked and INVALID in str(ranked[0].get("steps", "")):
                # Batches of fairseq-interactive have no numbers.
                number = f" {int(sample['id'][row])}" if "id" in sample else ""
                tokens = utils.strip_pad(sample["net_input"]["src_tokens"][row], self.source_dictionary.pad())
                text = self.source_dictionary.string(tokens)
                logger.warning(
                    "invalid: the search finds no program for sentence%s (%s); its output is not a program",
                    number,
                    text,
                )
        return found

    def _grammar(self):
        if self.cfg.grammar == "none":
            return None
        folder, record = self.folder_of("train", 1), self.target_side.record
        if self._is_language:
            name, writes = record.types, "preprocessing programs for training (--target-notation sql, ...) writes it"
        elif self.cfg.grammar == "data":
            name, writes = record.grammar, "preprocessing the training split writes it"
        else:
            return self._field_table(AsdlGrammar.load(self.cfg.grammar))
        if name is None or not (folder / name).exists():
            add = "add other splits to the folder that has it, with its dictionaries (--srcdict, --tgtdict)"
            raise DataFolderError(f"{folder} has no grammar of {self.cfg.target_lang}: {writes}; {add}")
        if self.cfg.grammar == "data":
            rules = load_grammar(folder / name, self.target_dictionary)
            return FieldTable.of_rules(rules, self.target_side.symbols)
        _, colon, roots = self.cfg.grammar.partition(":")
        types = FieldTypes.load(folder / name)
        return self._field_table(types.beginning_with(roots.split(",")) if colon else types)

    @property
    def _is_language(self) -> bool:
        return self.cfg.grammar.partition(":")[0] == "language"

    def _field_table(self, grammar: TypedGrammar) -> FieldTable:
        if self.target_side.record.binarization != "none":
            raise DataFolderError(
                f"--grammar {self.cfg.grammar} needs trees as they are: preprocess with --binarization none"
            )
        return FieldTable.of(grammar, self.target_dictionary.symbols, self.target_side.symbols)

    def _program_check(self) -> Optional[ProgramCheck]:
        """The check by the programming language, and by the schema; None without a language."""
        if not self._is_language:
            if self.cfg.schema is not None:
                raise DataFolderError("--schema goes with --grammar language")
            return None
        language = notation_named(self.target_side.record.notation)
        schema = load_schema(self.cfg.schema, language)
        if schema is not None:
            folder = self.folder_of("train", 1)
            source, target = self.cfg.source_lang, self.cfg.target_lang
            if (folder / f"train.{source}-{target}.{target}.bin").exists():  # a folder may have only a test set
                report_queries_that_do_not_run(symbol_trees(folder, target, "train"), language, schema)
        return ProgramCheck(self.target_dictionary, language, schema)

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """Counts the targets of a batch that the best hypothesis matches symbol by symbol."""
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
