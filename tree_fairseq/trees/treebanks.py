"""Treebanks as they are published: trees over any number of lines, and what they hold beside the words of sentences.

The forms are those of the Penn treebank and its successors (OntoNotes, Switchboard, the Chinese, Arabic and Korean
treebanks), of SPMRL and TIGER, and of the Penn parsed corpora of historical English.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_fairseq.trees.bracket import ROOT, read_forest
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.tree import Forest, Tree

SEPARATORS = "-=#*+:|"
"""The signs that begin function tags, indices and features: ``NP-SBJ=2``, ``NC##m=s##``, ``NP*SB``, ``NX:OA``."""

# Traces without a tag of their own, as in (NP-SBJ *pro*) and (WNP-1 0).
_TRACE = re.compile(r"\*(?:(?:T\d*|ICH|EXP|RNR|PPA|NOT|U|OP|op|\?|CL|PRO|pro|con|exp|arb)\*(?:-\d+)?|-\d+)")
_WITH_ZERO = re.compile(r"(?:C|W[A-Z]*P)(?:[-=].*)?")
_NOTES = ("-NONE-", "-DFL-", "CODE", "METADATA", "META")  # empty elements; the marks of disfluencies; notes
_BESIDE_ROOT = ("ID", "REF", "COMMENT")
_STRANGE = re.compile(r"^\w+[^\w.,$-]+\w+$|_(?!sub$)")
_BESIDE_TREES = re.compile(r"[<%;*]|#(?!FORMAT|BO[ST]|\d+\t)|\(\s*END_OF_TEXT_UNIT\s*\)\s*$")


@dataclass(frozen=True)
class Conventions:
    """The rules by which parts of a treebank's trees are left out."""

    keep_empty: bool = False  # whether empty elements and notes of annotators stay, which are no words of the sentence
    separators: str = ""  # labels are cut at the first of these signs, if there are any

    def apply(self, forest: Forest, left_out: Counter[str]) -> Forest:
        """Returns trees without empty elements, notes and function tags, and counts what it leaves out.

        A constituent that has no word left goes, too, and so does such a tree.
        """
        if not self.keep_empty:
            forest = tuple(kept for tree in forest if (kept := _without_notes(tree, left_out)) is not None)
        return tuple(strip_function_tags(tree, self.separators) for tree in forest) if self.separators else forest


def strip_function_tags(tree: Tree, separators: str = SEPARATORS) -> Tree:
    """Cuts labels and tags at the first separator: ``NP-SBJ=2`` becomes ``NP``; ``-NONE-`` and ``-LRB-`` stay."""
    return tree.map_labels(lambda label: bare_label(label, separators))


@functools.lru_cache(maxsize=10_000)
def bare_label(label: str, separators: str = SEPARATORS) -> str:
    """A label without its function tags; its first character, names of brackets and ``_sub`` are never cut."""
    signs = re.escape(separators)
    label, piece, _ = label.partition(SUBWORD_SUFFIX) if label.endswith(SUBWORD_SUFFIX) else (label, "", "")
    found = re.match(rf"(?:-[A-Z]+-|\*[LR]RB\*|([{signs}])\1*|.)(?:\*[LR]RB\*|[^{signs}])*", label)
    return (found[0] if found else label) + piece


def _without_notes(tree: Tree, left_out: Counter[str]) -> Tree | None:
    if tree.label == ROOT and (kept := [child for child in tree.children if child.label not in _BESIDE_ROOT]):
        left_out.update(child.label for child in tree.children if child.label in _BESIDE_ROOT)
        tree = Tree(ROOT, kept)

    def keep(node: Tree, children: list[Tree | None]) -> Tree | None:
        if not node.children:
            return node
        if name := _note(node):
            left_out[name] += 1
            return None
        kept = [child for child in children if child is not None]
        return Tree(node.label, kept) if kept else None

    return tree.fold(keep)


def _note(node: Tree) -> str:
    """The name of a node that is not part of the sentence, by which it is counted; empty for other nodes."""
    if node.label in _NOTES:
        return node.label
    if node.is_preterminal:
        word = node.children[0].label
        if _TRACE.fullmatch(word) or word == "0" and _WITH_ZERO.fullmatch(node.label):
            return word
    return ""


# What `Conventions.apply` may leave out, as plain lines of brackets have it.
NOTES_IN_TEXT = b"(-NONE- ,(-DFL- ,(CODE ,(META,(ID ,(REF ,(COMMENT , 0), *, \\*".split(b",")


def penn_trees(text: str, skipped: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yields the trees of a text, which may take several lines: the number of the first line, and the tree on one line.

    Lines of markup or comments between trees are counted. A bracket in the first column begins the next tree even if
    this one has not ended: behind a blank line, if all trees before are on one line, and if this one never ends.
    """
    lines = text.split("\n")
    start, in_lines = 0, None
    while start < len(lines):
        line = lines[start].strip()
        if not line or _BESIDE_TREES.match(line):
            skipped["lines of markup"] += bool(line)
            start += 1
            continue
        end, depth, begins = start, 1, []
        while depth > 0 and end < len(lines):
            if end > start and lines[end].startswith("("):
                begins.append(end)
                if in_lines or not lines[end - 1].strip():
                    break
            depth += lines[end].count("(") - lines[end].count(")") - (end == start)
            end += 1
        end = begins[0] if depth > 0 and begins else end
        in_lines = in_lines is not False and end == start + 1
        yield start + 1, " ".join(map(str.strip, lines[start:end]))
        start = end


def read_sentences(line: str, path: str | os.PathLike | None = None, number: int | None = None) -> Forest:
    """Reads the trees of a line as `read_forest` does, without nodes that are not words of a sentence."""
    return Conventions().apply(read_forest(line, path=path, line_number=number), Counter())


def strange_labels(labels: Iterable[str]) -> str:
    """Labels that may still have function tags, because an unusual sign is in them."""
    return ", ".join(sorted(label for label in set(labels) if _STRANGE.search(label))[:3])


def left_out_message(left_out: Counter[str]) -> str:
    """The parts that were left out and how often, for a log; empty if nothing was."""
    return ", ".join(f"{count} {name}" for name, count in left_out.most_common(10) if count)
