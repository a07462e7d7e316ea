"""The symbol trees of a command: from lines of trees, or of sentences, to lines of symbols and their dictionaries."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask

from tree_fairseq.data_bin.grammar import collect_grammar, write_grammar
from tree_fairseq.data_bin.records import SymbolSplitRecord
from tree_fairseq.data_bin.staging import PARSED, Work
from tree_fairseq.data_bin.symbol_dictionary import build_symbol_dictionary, require_symbols
from tree_fairseq.data_bin.token_files import most_frequent, token_file_names, token_prefix
from tree_fairseq.errors import ArityMismatchError, InputError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, SymbolSide
from tree_fairseq.preprocessing.programs import spare_symbols, spare_words, spelling_name, write_types
from tree_fairseq.source_code.productions import MOST_CHILDREN
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.symbols import NULL, parents_and_branches, tree_of_forest, unknown_symbol
from tree_fairseq.trees.text import Chunk, FaultyLines, TextInput, chunk_lines, outcome_or_error, read_lines, tokens

logger = logging.getLogger(__name__)

_FAULTY = unknown_symbol(0)  # the only symbol of a line that cannot be read
USUAL_LEVELS = 32  # levels that tree positions remember by default (Shiv & Quirk 2019)


@dataclass
class SymbolText:
    """The file ``source`` as lines of symbols: one tree a line of the file ``path``, symbols separated by blanks."""

    path: Path
    source: Path
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # how often each symbol occurs
    degree: int = 0  # the largest number of branches of a node
    depth: int = -1  # of the deepest tree in the form that was encoded
    deepest_line: int = 0  # number of its line, from 1


def encode_symbol_text(text: TextInput, side: SymbolSide, work: Work, name: str) -> SymbolText:
    """Encodes a file of trees, or of sentences to be parsed, as lines of symbols; ``name`` is that of the new file."""
    result = SymbolText(work.staging.folder("symbols") / name, text.path)
    with open(result.path, "w", encoding="utf-8", newline="\n") as file:

        def keep(written: str, counts: Counter[str], depths: list[int]) -> None:
            file.write(written)
            result.counts += counts
            if (depth := max(depths, default=-1)) > result.depth:
                result.depth, result.deepest_line = depth, result.lines + depths.index(depth) + 1
            result.lines += len(depths)

        if side.options is not None:
            folder, cache = work.staging.path / PARSED / name, work.staging.parse_cache
            for trees, _ in parse_corpus(text.path, folder, side.options, pool=work.pool, cache=cache).shards:
                keep(*_encode(side, text.path, enumerate(read_lines(trees), start=result.lines + 1)))
        else:
            encode, faults = partial(outcome_or_error, partial(_encode_chunk, side, text.path)), FaultyLines()
            for encoded in faults.without_errors(work.pool.map(encode, text.chunks, f"encoded {text.path}")):
                keep(*encoded)
            faults.raise_all()
    arities = (side.encoding.split(symbol)[1] for symbol in result.counts)
    result.degree = 2 if side.encoding.binarization == "lcrs" else max(arities, default=0)
    logger.info(
        "[trees] %s: %d trees, %d symbols of %d types, depth at most %d",
        *(text.path, result.lines, sum(result.counts.values()), len(result.counts), result.depth),
    )
    if side.notation == "json" and any(side.encoding.parts(symbol)[0] == "children" for symbol in result.counts):
        logger.warning(
            "[trees] %s: objects with children are read as any JSON, with symbols for keys and lists; a node of a tree "
            "has label, name or type, perhaps value, and children, which are nodes of the same form",
            text.path,
        )
    if result.depth > USUAL_LEVELS:
        logger.warning(
            "[trees] %s:%d: a symbol is %d levels below the root; tree positions remember the last --tree-levels %d "
            "steps to it, unless more are asked for in training",
            *(text.path, result.deepest_line, result.depth, USUAL_LEVELS),
        )
    return result


def _encode_chunk(side: SymbolSide, path: Path, chunk: Chunk) -> tuple[str, Counter[str], list[int]]:
    return _encode(side, path, chunk_lines(path, chunk))


def _encode(side: SymbolSide, path: Path, numbered: Iterable[tuple[int, str]]) -> tuple[str, Counter[str], list[int]]:
    """Returns lines of trees as lines of symbols, how often each symbol occurs, and the depth of each tree."""
    lines, counts, depths, faults = [], Counter[str](), [], FaultyLines()
    for number, line in numbered:
        try:
            tree = side.reader.read(line) if side.options is None else tree_of_forest(read_forest(line))
            symbols = side.encoding.encode(tree)
        except InputError as error:
            symbols = [_FAULTY]
            if not side.skips:
                faults.add(error.at(path, number))
        lines.append(" ".join(symbols) + "\n")
        counts.update(symbols)
        depths.append(_depth(symbols, side))
    faults.raise_all()
    return "".join(lines), counts, depths


def _depth(symbols: list[str], side: SymbolSide) -> int:
    arities = [side.encoding.split(symbol)[1] for symbol in symbols]
    parents, _ = parents_and_branches(arities, side.encoding)
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return max(depths)


def write_known_symbols(text: SymbolText, side: SymbolSide, dictionary: Dictionary, output: Path) -> int:
    """Writes lines of symbols with ``<unk:a>`` for those that the dictionary lacks, and returns how many these are.

    Raises ArityMismatchError if the dictionary has no symbol of that arity; the error names the file and the line.
    """
    known = {
        symbol: symbol if symbol in dictionary else unknown_symbol(side.encoding.split(symbol)[1])
        for symbol in text.counts
    }
    strange = {symbol for symbol, replaced in known.items() if replaced not in dictionary}
    missing = {symbol for symbol, replaced in known.items() if symbol != replaced}
    impossible = missing | {_FAULTY}
    whole = 0
    with open(output, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(read_lines(text.path), start=1):
            symbols = line.split(" ")
            whole += impossible.isdisjoint(symbols)
            if strange and (found := strange.intersection(symbols)):
                label, arity = side.encoding.split(min(found))
                raise ArityMismatchError(
                    f"{label!r} has {arity} children here, more than any node of the dictionary",
                    text.source,
                    number,
                    hint="Preprocess it together with the training data, or use --binarization lcrs, "
                    "where no node has more than two.",
                )
            file.write(" ".join(map(known.__getitem__, symbols)) + "\n")
    unknown = Counter({symbol: text.counts[symbol] for symbol in missing if symbol != NULL})
    share = 100 * whole / max(1, text.lines)
    logger.info("[trees] %s: a model can produce %.1f %% of the trees with the dictionary", text.source, share)
    if unknown:
        logger.warning(
            "[trees] %s: %d symbols are not in the dictionary and become %s, ...: %s",
            *(text.source, sum(unknown.values()), unknown_symbol(0), most_frequent(unknown)),
        )
    return sum(unknown.values())


@dataclass
class SymbolFiles:
    """The texts of all symbol sides, by language and split, and how many of their symbols the dictionaries lack."""

    plan: PreprocessPlan
    work: Work
    texts: dict[str, dict[str, SymbolText]]
    unknown: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def encode(cls, plan: PreprocessPlan, inputs: Inputs, work: Work) -> SymbolFiles:
        """Reads and encodes all lines of all sides, as :func:`encode_symbol_text`."""
        texts = {
            side.lang: {
                split.name: encode_symbol_text(inputs[split.name, side.lang], side, work, f"{split.name}.{side.lang}")
                for split in plan.splits
            }
            for side in plan.symbol_sides
        }
        return cls(plan, work, texts)

    def write_text(self, leaves: Path) -> dict[str, Any]:
        """Makes dictionaries, returns them as arguments of fairseq's ``main``, and writes its texts to ``leaves``."""
        args, changes = self.plan.args, dict[str, Any]()
        of_source, of_target = (args.thresholdsrc, args.nwordssrc), (args.thresholdtgt, args.nwordstgt)
        if args.joined_dictionary:
            path = args.srcdict or args.tgtdict
            path = path or self._make_dictionary(self.plan.languages, leaves, "joined", *of_source)
            changes = {"srcdict": path, "tgtdict": None}
        else:
            for lang, spare in spare_words(self.plan, self.work).items():
                is_source = lang == args.source_lang
                name, limits = ("srcdict", of_source) if is_source else ("tgtdict", of_target)
                changes[name] = getattr(args, name) or self._make_word_dictionary(lang, leaves, spare, *limits)
        for side in self.plan.symbol_sides:
            if not args.joined_dictionary:
                name, limits = ("srcdict", of_source) if side.side == "source" else ("tgtdict", of_target)
                path = getattr(args, name) or self._make_dictionary([side.lang], leaves, side.lang, *limits)
                changes[name] = path
            dictionary = Dictionary.load(path)
            self.work.manifest.symbols[side.lang].degree = require_symbols(dictionary, side.encoding, path)
            for split, text in self.texts[side.lang].items():
                written = write_known_symbols(text, side, dictionary, leaves / f"{split}.{side.lang}")
                self.unknown[side.lang, split] = written
        return changes

    def _make_dictionary(self, languages: Sequence[str], leaves: Path, name: str, threshold: int, nwords: int) -> str:
        if not self.plan.args.trainpref:
            raise InputError("--trainpref must be set if the dictionary of a side with trees is not given")
        sides = {side.lang: side for side in self.plan.symbol_sides if side.lang in languages}
        counts = sum((self.texts[lang]["train"].counts for lang in sides), Counter())
        for lang in languages:
            if lang not in sides:
                counts.update(itertools.chain.from_iterable(map(tokens, read_lines(leaves / f"train.{lang}"))))
        # Symbols with an arity that only other splits have are unknown symbols, so the dictionary needs that arity.
        degree = max(text.degree for lang in sides for text in self.texts[lang].values())
        spare: set[str] = set()
        for side in sides.values():
            if side.spelling is not None:
                spare |= spare_symbols(self.texts[side.lang]["train"].counts, side.spelling, side.encoding)
                degree = max(degree, MOST_CHILDREN)
        dictionary = build_symbol_dictionary(
            counts,
            next(iter(sides.values())).encoding,
            degree,
            threshold=threshold,
            nwords=nwords,
            padding_factor=self.plan.args.padding_factor,
            all_arities=self.plan.args.all_arities,
            spare=spare,
        )
        path = str(self.work.staging.folder("symbols") / f"dict.{name}.txt")
        dictionary.save(path)
        return path

    def _make_word_dictionary(self, lang: str, leaves: Path, spare: Iterable[str], threshold: int, nwords: int) -> str:
        """fairseq's dictionary, with the ``spare`` words."""
        text = str(leaves / f"train.{lang}")
        dictionary = FairseqTask.build_dictionary([text], threshold=threshold, nwords=nwords, padding_factor=1)
        for word in sorted(spare):
            dictionary.add_symbol(word, 0)
        dictionary.pad_to_multiple_(self.plan.args.padding_factor)
        path = str(self.work.staging.folder("symbols") / f"dict.{lang}.txt")
        dictionary.save(path)
        return path

    def enter(self, leaves: Path) -> None:
        """Writes the grammars of the lines in ``leaves``, and enters everything into the manifest."""
        manifest, output = self.work.manifest, self.work.output
        for side in self.plan.symbol_sides:
            record = manifest.symbols[side.lang]
            if side.side == "target" and "train" in self.texts[side.lang]:
                record.grammar = f"grammar.{side.lang}.txt"
                lines = map(tokens, read_lines(leaves / f"train.{side.lang}"))
                write_grammar(output / record.grammar, collect_grammar(lines, side.encoding))
                manifest.enter_files([output / record.grammar])
                if side.spelling is not None:
                    record.types = f"types.{side.lang}.txt"
                    write_types(output / record.types, side, self.texts[side.lang]["train"].path, self.work)
                    manifest.enter_files([output / record.types])
            if side.spelling is not None:
                record.spelling = spelling_name(side.lang)
                shutil.copyfile(side.spelling, output / record.spelling)
                manifest.enter_files([output / record.spelling])
            for split in self.plan.written_splits:
                text = self.texts[side.lang][split]
                prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, side.lang)
                record.splits[split] = SymbolSplitRecord(
                    prefix,
                    text.lines,
                    sum(text.counts.values()),
                    text.depth,
                    self.unknown[side.lang, split],
                    token_file_names(output / prefix),
                )
