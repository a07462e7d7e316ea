"""The symbol trees of a whole command: dictionaries of symbols, text for stock fairseq to binarize, records."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairseq.data import Dictionary

from tree_fairseq.data_bin.folder_trees import enter_files
from tree_fairseq.data_bin.grammar import collect_grammar, write_grammar
from tree_fairseq.data_bin.inputs import TextInput
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.symbol_dictionary import build_symbol_dictionary, require_symbols
from tree_fairseq.data_bin.symbol_sides import SymbolSide, SymbolSideRecord, SymbolSplitRecord
from tree_fairseq.data_bin.symbol_text import (
    SymbolText,
    count_words,
    encode_symbol_text,
    merged_counts,
    write_known_symbols,
)
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.preprocessing.plan import PreprocessPlan
from tree_fairseq.trees.text import read_lines, tokens

logger = logging.getLogger(__name__)

Inputs = Mapping[tuple[str, str], TextInput]


def grammar_name(lang: str) -> str:
    """File name of the symbols that were seen under each other."""
    return f"grammar.{lang}.txt"


def add_symbol_side(manifest: Manifest, side: SymbolSide, replaced_splits: list[str]) -> SymbolSideRecord:
    """The entry of a side, new or the existing one less the splits that will be written again.

    Raises:
        DataFolderError: splits that stay were encoded in another way
    """
    new = side.record()
    old = manifest.symbols.get(side.lang)
    if old is not None:
        for name in old.splits.keys() & set(replaced_splits):
            manifest.forget_split(side.lang, name)
        if old.splits and not old.makes_same_symbols(new):
            raise DataFolderError(
                f"{', '.join(old.splits)} of the folder were made for {side.lang} from {old.modality}s in the notation {old.notation}, "
                f"--traversal {old.traversal} --binarization {old.binarization} --arity-mark {old.mark!r}, which is not what was asked "
                "for now: ask for the same, or choose another destination"
            )
        new.splits, new.grammar, new.degree = old.splits, old.grammar, old.degree
    manifest.symbols[side.lang] = new
    return new


@dataclass
class SymbolFiles:
    """Symbols of all sides and splits on their way to token files.

    Attributes:
        plan: what is to be done
        staging: where it is done
        texts: the lines as symbols, by language and split
        dictionaries: files of dictionaries that were made here, by language
        unknown: how many symbols no dictionary has, by language and split
    """

    plan: PreprocessPlan
    staging: Staging
    texts: dict[str, dict[str, SymbolText]]
    dictionaries: dict[str, Path] = field(default_factory=dict)
    unknown: dict[tuple[str, str], int] = field(default_factory=dict)
    _degrees: dict[str, int] = field(default_factory=dict)

    @classmethod
    def encode(
        cls, plan: PreprocessPlan, inputs: Inputs, staging: Staging, cache: Path, pool: ProcessPool
    ) -> SymbolFiles:
        """Reads and encodes all lines of all sides.

        Raises:
            SymbolTreeError: a line is no tree; it names the file and the line
        """
        texts = {
            side.lang: {
                split.name: encode_symbol_text(
                    inputs[split.name, side.lang], side, staging, f"{split.name}.{side.lang}", pool=pool, cache=cache
                )
                for split in plan.splits
            }
            for side in plan.symbol_sides
        }
        return cls(plan, staging, texts)

    def write_text(self, leaves: Path) -> Namespace:
        """Makes dictionaries and writes the lines that stock fairseq is to binarize.

        Args:
            leaves: folder for ``SPLIT.LANG``

        Returns:
            changes to the arguments of stock fairseq: the dictionaries

        Raises:
            DictionaryMismatchError, ArityMismatchError: a given dictionary does not fit
        """
        args = self.plan.args
        changes = {}
        if args.joined_dictionary and self.texts:
            path = (
                args.srcdict
                or args.tgtdict
                or self._make_dictionary(self.plan.languages, leaves, "joined", args.thresholdsrc, args.nwordssrc)
            )
            changes = {"srcdict": str(path), "tgtdict": None}
            given = dict.fromkeys(self.plan.languages, Path(path))
        else:
            given = {}
            for side in self.plan.symbol_sides:
                is_source = side.side == "source"
                path = args.srcdict if is_source else args.tgtdict
                if not path:
                    limits = (args.thresholdsrc, args.nwordssrc) if is_source else (args.thresholdtgt, args.nwordstgt)
                    path = self._make_dictionary([side.lang], leaves, side.lang, *limits)
                changes["srcdict" if is_source else "tgtdict"] = str(path)
                given[side.lang] = Path(path)
        for side in self.plan.symbol_sides:
            dictionary = Dictionary.load(str(given[side.lang]))
            self._degrees[side.lang] = require_symbols(dictionary, side.encoding, str(given[side.lang]))
            for split, text in self.texts[side.lang].items():
                self.unknown[side.lang, split] = write_known_symbols(
                    text, side, dictionary, leaves / f"{split}.{side.lang}"
                )
        return Namespace(**changes)

    def _make_dictionary(self, languages, leaves: Path, name: str, threshold: int, nwords: int) -> Path:
        if not self.plan.args.trainpref:
            raise InputError("--trainpref must be set if the dictionary of a side with trees is not given")
        sides = {side.lang: side for side in self.plan.symbol_sides if side.lang in languages}
        words = [count_words(leaves / f"train.{lang}") for lang in languages if lang not in sides]
        counts = merged_counts([*(self.texts[lang]["train"].counts for lang in sides), *words])
        # Arities that only other splits have are known, too: their symbols are unknown, not impossible.
        degree = max(text.degree for lang in sides for text in self.texts[lang].values())
        encoding = next(iter(sides.values())).encoding
        dictionary = build_symbol_dictionary(
            counts, encoding, degree, threshold=threshold, nwords=nwords, padding_factor=self.plan.args.padding_factor
        )
        path = self.staging.folder("symbols") / f"dict.{name}.txt"
        dictionary.save(str(path))
        return path

    def enter(self, manifest: Manifest, output: Path, leaves: Path) -> None:
        """Writes what lies beside the token files, and enters everything into the manifest.

        Args:
            manifest: with the sides' entries (:func:`add_symbol_side`) and the token files
            output: folder of the token files
            leaves: folder of the lines that they were made of
        """
        for side in self.plan.symbol_sides:
            record = manifest.symbols[side.lang]
            record.degree = self._degrees[side.lang]
            if side.side == "target" and "train" in self.texts[side.lang]:
                record.grammar = grammar_name(side.lang)
                lines = map(tokens, read_lines(leaves / f"train.{side.lang}"))
                write_grammar(output / record.grammar, collect_grammar(lines, side.encoding))
                enter_files(manifest, [output / record.grammar])
            for split in self.plan.written_splits:
                text = self.texts[side.lang][split]
                prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, side.lang)
                record.splits[split] = SymbolSplitRecord(
                    prefix,
                    text.lines,
                    text.symbols,
                    text.depth,
                    self.unknown[side.lang, split],
                    token_file_names(output / prefix, found_impl(output / prefix)),
                )
