"""Lines of a command that do not parse, and programs: how their names are spelled, and what their fields hold."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tree_fairseq.data_bin.staging import PARSED, Work
from tree_fairseq.data_bin.text_record import BPE
from tree_fairseq.errors import InputError, first_of
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, registered_parser
from tree_fairseq.parsing.pieces import BPE_JOINER
from tree_fairseq.preprocessing.plan import Inputs, PreprocessPlan, SymbolSide
from tree_fairseq.preprocessing.text_files import SideRequest
from tree_fairseq.source_code.field_types import probe
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.productions import MOST_CHILDREN, QUOTE, REST, split_leaf
from tree_fairseq.source_code.spelling import CHARACTERS, Spelling, learn_spellings
from tree_fairseq.trees.name_pieces import NamePieces, words_of
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.text import Chunk, FaultyLines, chunk_lines, read_lines, require_parallel, tokens, write_text

logger = logging.getLogger(__name__)

SKIP = "skip-pair"
_PROBED = 20_000  # lines whose fields the parser of the language is asked about

Faults = dict[int, str]  # the numbers of lines that do not parse, with the messages


def prepare_programs(plan: PreprocessPlan, inputs: Inputs, work: Work) -> tuple[PreprocessPlan, Inputs]:
    """Reads all programs; returns the plan with the spelling of each language, and the inputs without faulty pairs.

    With ``--on-parse-error skip-pair`` it reads the lines of all notations. Raises InputError if lines do not parse,
    and ``--on-parse-error`` is not ``skip-pair``.
    """
    skips = plan.args.on_parse_error == SKIP
    languages = {side.lang for side in plan.symbol_sides if isinstance(notation_named(side.notation), Language)}
    sides = [side for side in plan.symbol_sides if side.options is None and (skips or side.lang in languages)]
    faults: dict[str, Faults] = {}
    labels = {lang: Counter[str]() for lang in languages}
    for side in sides:
        for split in plan.splits:
            text = inputs[split.name, side.lang]
            read, wrong = partial(_read_chunk, side.notation, text.path), FaultyLines()
            for found, errors in work.pool.map(read, text.chunks, f"read {text.path}"):
                wrong.errors += errors
                if split.name == "train" and side.lang in labels:
                    labels[side.lang] += found
            if not skips:
                wrong.raise_all()
            faults.setdefault(split.name, {}).update({error.line or 0: str(error) for error in wrong.errors})
    spellings = _spellings(plan, inputs, labels, work) if labels else {}
    changed = tuple(
        dataclasses.replace(side, spelling=spellings.get(side.lang), skips=skips) for side in plan.symbol_sides
    )
    return dataclasses.replace(plan, symbol_sides=changed), _without(inputs, faults, work, "programs")


def _read_chunk(notation: str, path: Path, chunk: Chunk) -> tuple[Counter[str], list[InputError]]:
    """How often each label occurs in a chunk of a file of trees, and the errors about its faulty lines."""
    reader, counts, faults = notation_named(notation), Counter[str](), FaultyLines()
    for number, line in chunk_lines(path, chunk):
        with faults:
            counts.update(node.label for node in reader.read(line, path, number).preorder())
    return counts, faults.errors


def without_unparsed_pairs(plan: PreprocessPlan, inputs: Inputs, work: Work) -> Inputs:
    """Returns the inputs without faulty pairs, in which a parser fails on a sentence or a line is not a tree.

    The parses are kept, so a sentence is parsed once.
    """
    faults: dict[str, Faults] = {}
    for side in (*plan.tree_sides, *plan.symbol_sides):
        for split in plan.splits if side.options is not None else ():
            name, text = f"{split.name}.{side.lang}", inputs[split.name, side.lang]
            options = side.options.replace(max_parse_failures=text.lines)
            found = faults.setdefault(split.name, {})
            if registered_parser(options.name).expensive:
                folder, cache = work.staging.path / PARSED / name, work.staging.parse_cache
                parsed = parse_corpus(text.path, folder, options, pool=work.pool, cache=cache)
                found.update({line: f"{text.path}:{line}: the parser failed" for line in parsed.failed})
            elif options.name == "brackets":
                for failed in work.pool.map(partial(_failed, options, text.path), text.chunks, f"read {text.path}"):
                    found.update(failed)
    return _without(inputs, faults, work, "parsed pairs")


def _failed(options: ParserOptions, path: Path, chunk: Chunk) -> Faults:
    lines = LineParser(options).parse_lines([line for _, line in chunk_lines(path, chunk)], chunk.first_line, path)
    numbered = enumerate(lines, start=chunk.first_line)
    return {number: f"{path}:{number}: {'; '.join(line.failures)}" for number, line in numbered if line.failures}


def _without(inputs: Inputs, faults: dict[str, Faults], work: Work, folder: str) -> Inputs:
    """The inputs without the faulty pairs of training and validation; those of test sets stay, and count as wrong."""
    kept = dict(inputs)
    for (split, suffix), text in inputs.items():
        wrong = faults.get(split)
        if not wrong or split.startswith("test"):
            continue
        path = work.staging.folder(folder) / f"{split}.{suffix}"
        lines = enumerate(read_lines(text.path), start=1)
        kept[split, suffix] = write_text(path, (line for number, line in lines if number not in wrong))
        require_parallel([kept[split, suffix]])  # some lines are left
    for split, wrong in faults.items():
        if wrong:
            fate = "stay, and count as wrong" if split.startswith("test") else "are left out"
            shown = first_of([wrong[number] for number in sorted(wrong)], len(wrong))
            text = "[trees] %s: %d pairs with a line that does not parse %s:\n%s"
            logger.warning(text, split, len(wrong), fate, shown)
    return kept


def _spellings(plan: PreprocessPlan, inputs: Inputs, labels: dict[str, Counter[str]], work: Work) -> dict[str, Path]:
    """The files of the spellings of all sides of programs: those beside given dictionaries, or new ones."""
    texts = [request for request in _cut_texts(plan) if ("train", request.lang) in inputs]
    words: Counter[str] = Counter()
    for request in texts:
        for line in read_lines(inputs["train", request.lang].path):
            words.update(words_of(line))
    found = {side.lang: path for side in plan.symbol_sides if side.lang in labels and (path := _given(plan, side))}
    new = {lang: counts for lang, counts in labels.items() if lang not in found}
    merges = plan.args.learn_subwords if texts else plan.args.leaf_merges
    for lang, spelling in learn_spellings(new, merges, words).items():
        found[lang] = work.staging.folder("programs") / spelling_name(lang)
        spelling.save(found[lang])
    for request in texts:
        Spelling.of_text(list(map(Spelling.load, found.values()))).save(plan.text.learned_model(request, work))
    return found


def _cut_texts(plan: PreprocessPlan) -> list[SideRequest]:
    """The texts whose subwords are learned together with the pieces of names in programs."""
    return [request for request in plan.text.requests.values() if request.must_learn and request.kind == BPE]


def _given(plan: PreprocessPlan, side: SymbolSide) -> Path | None:
    if not (given := plan.given_dictionary(side.lang)):
        return None
    beside = Path(given).parent / spelling_name(side.lang)
    if not beside.exists():
        hint = "Give the dictionary within the folder that it was made for."
        raise InputError(f"{given} has no {beside.name} beside it, which says how names are spelled", hint=hint)
    return beside


def spelling_name(lang: str) -> str:
    """The name of the file of a language's spelling in a folder."""
    return f"spelling.{lang}.json"


def spare_symbols(symbols: Iterable[str], spelling: Path, encoding: SymbolEncoding) -> set[str]:
    """The symbols of a dictionary that training may lack: spelled leaves of any length, pieces, characters of ASCII."""
    model = Spelling.load(spelling)
    heads = {split_leaf(encoding.split(symbol)[0])[0] for symbol in symbols if f" {QUOTE}" in encoding.split(symbol)[0]}
    heads |= {split_leaf(label)[0] for label in model.productions if split_leaf(label)[1] is not None}
    leaves = itertools.product((REST, *(f"{head} {QUOTE}" for head in heads if head)), range(1, MOST_CHILDREN + 1))
    pieces = ((QUOTE + character, 0) for character in {*CHARACTERS, *model.known})
    return {encoding.join(label, arity) for label, arity in itertools.chain(leaves, pieces)}


def spare_words(plan: PreprocessPlan, work: Work) -> dict[str, set[str]]:
    """The pieces of names that the dictionaries of texts beside programs have, even if training lacks them."""
    found = {}
    for request in _cut_texts(plan) if any(side.spelling is not None for side in plan.symbol_sides) else ():
        pieces = {*CHARACTERS, *NamePieces.load(plan.text.learned_model(request, work)).known}
        found[request.lang] = {piece + mark for piece in pieces if not piece.isspace() for mark in ("", BPE_JOINER)}
    return found


def write_types(path: str | os.PathLike, side: SymbolSide, symbols: Path, work: Work) -> None:
    """Writes the types of the fields of a side's language, as training and the language's parser have them.

    ``symbols`` is the file of the trees of training as lines of symbols.
    """
    lines = itertools.islice(read_lines(symbols), _PROBED)
    trees = (side.encoding.decode(tokens(line)) for line in lines)
    run = partial(work.pool.map, work=f"asked the parser of {side.notation}")
    found = probe(notation_named(side.notation), trees, run)
    found.save(path)
    counts = len(found.types), sum(map(len, found.types.values()))
    logger.info("[trees] grammar of %s: %d fields, %d types in them", side.notation, *counts)
