"""Overnight (Wang et al. 2015): aligned splits of one domain.

    python -m preprocess.overnight --data DIR --domain NAME --output DIR [--simplify merged|none] [--valid SHARE] ...

``DIR`` contains the files ``NAME.paraphrases.{train,test}.examples`` of SEMPRE. The command writes utterances and
logical forms in the notation ``bracket`` to ``OUTPUT/{train,valid,test}.{nl,lf}``; the validation split is drawn from
the training file. The order of the conditions of a filter and of the parts of a concatenation does not matter: score
simplified forms with ``--unordered filter call-SW:concat``.

Forms are simplified as in Appendix B of Lukovnikov & Fischer (2021): ``( call F a b )`` becomes ``( call-F a b )``. A
filter becomes ``( filter base ( condition property ) ( condition property comparator value ) ... )``; nested filters
become one filter, whose innermost condition comes first. `restore` undoes all of this. `simplify` also removes repeated
conditions and sorts children whose order does not matter.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, clean_line, raw_lines
from preprocess.logical_forms import Example, Splits, hold_out, report_duplicates, shorten, write_splits
from tree_fairseq.errors import InputError, SymbolTreeError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

LONG = "edu.stanford.nlp.sempre.overnight.SimpleWorld."
SHORT = "SW:"
NOTATION = notation_named("bracket")
CALL = "call"
MERGED_CALL = "call-"
FILTER_CALL = f"{MERGED_CALL}{SHORT}filter"
FILTER = "filter"
CONDITION = "condition"

UNORDERED = (FILTER, f"{MERGED_CALL}{SHORT}concat")
"""Labels of simplified forms for which the order of the children does not matter."""


def merge(tree: Tree) -> Tree:
    """Returns the form with merged calls and filters; `restore` returns the original form."""
    merged = tree.fold(_merge_node)
    if restore(merged) != tree:
        raise SymbolTreeError("the form has labels or filters that only simplified forms have")
    return merged


def simplify(tree: Tree) -> Tree:
    """Returns the merged form without repeated conditions and with sorted unordered children."""
    return merge(tree).fold(_order_node)


def restore(tree: Tree) -> Tree:
    """Returns the original form of a merged one. Conditions that do not form a filter stay as they are."""
    return tree.fold(_restore_node)


def _merge_node(node: Tree, children: list[Tree]) -> Tree:
    label = SHORT + node.label.removeprefix(LONG) if node.label.startswith(LONG) else node.label
    if label != CALL:
        return Tree(label, children)
    if not children or children[0].children:
        raise SymbolTreeError("a call without the name of a function", hint="It is written ( call NAME argument ... ).")
    label = MERGED_CALL + children[0].label
    if label != FILTER_CALL:
        return Tree(label, children[1:])
    if len(children) not in (3, 5):
        raise SymbolTreeError(
            f"a filter with {len(children) - 1} arguments",
            hint="It has a base and a property, and may have a comparator and a value.",
        )
    base, condition = children[1], Tree(CONDITION, children[2:])
    return Tree(FILTER, (*base.children, condition) if base.label == FILTER else (base, condition))


def _order_node(node: Tree, children: list[Tree]) -> Tree:
    if node.label not in UNORDERED:
        return Tree(node.label, children)
    if node.label == FILTER:
        base = [child for child in children if child.label != CONDITION]
        children = base + list(dict.fromkeys(child for child in children if child.label == CONDITION))
    return Tree(node.label, sorted(children, key=NOTATION.write))


def _restore_node(node: Tree, children: list[Tree]) -> Tree:
    if node.label == FILTER and (nested := _restore_filter(children)):
        return nested
    if node.label.startswith(MERGED_CALL):
        name = node.label.removeprefix(MERGED_CALL)
        return Tree(CALL, (Tree(_long(name)), *children))
    return Tree(_long(node.label), children)


def _restore_filter(children: list[Tree]) -> Tree | None:
    """Returns nested filters, one for each condition, or None.

    None means that the children are not one base and conditions of one or three parts.
    """
    bases = [child for child in children if child.label != CONDITION]
    conditions = [child for child in children if child.label == CONDITION]
    if len(bases) != 1 or not all(len(condition.children) in (1, 3) for condition in conditions):
        return None
    nested = bases[0]
    for condition in conditions:
        nested = Tree(CALL, (Tree(f"{LONG}filter"), nested, *condition.children))
    return nested if conditions else None


def _long(label: str) -> str:
    return LONG + label.removeprefix(SHORT) if label.startswith(SHORT) else label


SIMPLIFICATIONS = ("merged", "none")
_START = "(example"


class Query(NamedTuple):
    """An utterance, its logical form, and the number of the first line of the example."""

    utterance: str
    form: Tree
    line: int


def read_examples(path: Path) -> Iterator[Query]:
    """Yields the examples of a file of SEMPRE."""
    start, parts = 0, []
    for number, line in enumerate(raw_lines(path), 1):
        if line.startswith(_START):
            if parts:
                yield _read_example(path, start, parts)
            start, parts = number, [line]
        elif parts:
            parts.append(line)
        elif line.strip():
            raise CorpusError(f"{path}:{number}: an example begins with {_START}")
    if not parts:
        raise CorpusError(f"{path} holds no examples")
    yield _read_example(path, start, parts)


def read_forms(path: Path, simplification: str = "merged") -> Iterator[tuple[str, Tree]]:
    """Yields the utterances and forms of a file, simplified (``merged``) or as they are (``none``)."""
    for query in read_examples(path):
        try:
            yield query.utterance, simplify(query.form) if simplification == "merged" else query.form
        except SymbolTreeError as error:
            raise CorpusError(str(error.at(path, query.line))) from error


def examples_file(data: Path, domain: str, split: str) -> Path:
    """Returns the file of a domain. If it is missing, raises CorpusError, which names the domains of the folder."""
    path = data / f"{domain}.paraphrases.{split}.examples"
    if not path.is_file():
        raise CorpusError(f"{path} is missing; the folder has {', '.join(domains(data)) or 'no domain'}")
    return path


def domains(data: Path) -> list[str]:
    """Returns the domains whose test sets a folder contains."""
    return sorted(path.name.partition(".")[0] for path in data.glob("*.paraphrases.test.examples"))


def load(data: Path, domain: str, simplification: str = "merged", share: float = 0.2, seed: int = 1) -> Splits:
    """Reads the splits of a domain.

    Args:
        share: share of the training file that becomes the validation split
    """
    splits = {}
    for split in ("train", "test"):
        forms = read_forms(examples_file(data, domain, split), simplification)
        splits[split] = [Example(utterance, NOTATION.write(form)) for utterance, form in forms]
    train, valid = hold_out(splits["train"], round(share * len(splits["train"])), seed)
    return {"train": train, "valid": valid, "test": splits["test"]}


def _read_example(path: Path, number: int, lines: list[str]) -> Query:
    try:
        example = NOTATION.read(" ".join(lines).strip(), path=path, line_number=number)
    except InputError as error:
        raise CorpusError(str(error)) from error
    fields = {field.label: field.children for field in example.children}
    utterance, form = (fields.get(name, ()) for name in ("utterance", "targetFormula"))
    if len(utterance) != 1 or len(form) != 1:
        raise CorpusError(f'{path}:{number}: an example has one (utterance "...") and one (targetFormula (...))')
    text = re.fullmatch(r'"(.*)"', utterance[0].label)
    words = clean_line(re.sub(r"\\(.)", r"\1", text[1])) if text else ""
    if not words:
        raise CorpusError(f"{path}:{number}: the utterance is not a text in quotation marks: {utterance[0].label}")
    return Query(words, form[0], number)


def _prepare(args: argparse.Namespace) -> dict[str, int]:
    splits = load(args.data, args.domain, args.simplify, args.valid, args.seed)
    splits = shorten(splits, args.subset, args.limit, args.seed)
    report_duplicates(splits)
    return write_splits(splits, args.output, (args.source, args.target))


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.overnight", description=__doc__.splitlines()[0])
    parser.add_argument("--domain", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--simplify",
        choices=SIMPLIFICATIONS,
        default="merged",
        help=(
            "merged: calls and filters are merged, unordered children sorted; none: as published (default: %(default)s)"
        ),
    )
    parser.add_argument("--valid", type=float, default=0.2, help="share of train to validate on (default: %(default)s)")
    parser.add_argument("--source", default="nl", help="suffix of the utterances (default: %(default)s)")
    parser.add_argument("--target", default="lf", help="suffix of the forms (default: %(default)s)")
    parser.add_argument("--subset", type=int, help="train on a random sample of that many examples")
    parser.add_argument("--limit", type=int, help="only the first examples of every split")
    parser.add_argument("--seed", type=int, default=1, help="seed of random draws (default: %(default)s)")
    parser.add_argument("--data", type=Path, required=True, help="folder of the .examples files")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("overnight", args.domain, lambda: _prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
