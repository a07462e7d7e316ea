"""BLEU of programs as CodeXGLUE computes it, and CodeBLEU (Ren et al. 2020), of which its authors' program is followed.

Tokens are what blanks separate, but for ``token_bleu``. CodeBLEU is the mean of four parts:

* ``ngram_match``: BLEU with NLTK's first smoothing;
* ``weighted_ngram_match``: recall of n-grams in which a keyword counts as much as five other tokens, without a penalty
  for short programs;
* ``ast_match``: the share of the reference's subtrees that occur in the output, by types of nodes;
* ``data_flow_match``: the share of the reference's edges of data flow (:mod:`tree_fairseq.scoring.data_flow`).

Programs are parsed by tree-sitter as they are, comments aside. References without data flow make the last part 0.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tree_fairseq.scoring.data_flow import data_flow
from tree_fairseq.scoring.measures import Measure
from tree_fairseq.source_code.language import LINE_BREAK
from tree_fairseq.source_code.tree_sitter import preorder
from tree_fairseq.support.python_versions import import_library, zip_equal

ORDERS = range(1, 5)
_SMOOTHING = 0.1  # of orders without a match, as in NLTK
_OTHER_WEIGHT = 0.2

_COMMON = (
    "abstract break byte case catch char class const continue default do double else enum finally float for goto if "
    "int interface long new private protected public return short static switch this throw try void volatile while"
)
MODULES_AND_KEYWORDS = {
    "python": ("tree_sitter_python", " ".join(keyword.kwlist)),
    "java": (
        "tree_sitter_java",
        f"{_COMMON} assert boolean extends final implements import instanceof native package strictfp super "
        "synchronized throws transient",
    ),
    "csharp": (
        "tree_sitter_c_sharp",
        f"{_COMMON} as base bool checked decimal delegate event explicit extern false fixed foreach implicit in "
        "internal is lock namespace null object operator out override params readonly ref sbyte sealed sizeof "
        "stackalloc string struct true typeof uint ulong unchecked unsafe ushort using virtual add alias ascending "
        "async await by descending dynamic equals from get global group into join let nameof notnull on orderby "
        "partial remove select set unmanaged value var when where yield",
    ),
    "javascript": (
        "tree_sitter_javascript",
        "await break case catch class const continue debugger default delete do else enum export extends false "
        "finally for function if implements import in instanceof interface let new null package private protected "
        "public return static super switch this throw true try typeof var void while with yield",
    ),
}
"""The module of tree-sitter and the keywords of each language that has a CodeBLEU."""


def total(counts: Counter) -> int:
    """The sum of counts."""
    return sum(counts.values())


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Counts the n-grams of one order."""
    return Counter(tuple(tokens[first : first + order]) for first in range(len(tokens) - order + 1))


def _geometric_mean(matches: np.ndarray, possible: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.log(matches / possible).mean(axis=-1))


def _brevity(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """The penalty of outputs that are shorter than the references; 0 for empty ones."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ours > theirs, 1.0, np.exp(1 - theirs / ours))


class Bleu(Measure):
    """``bleu`` of CodeXGLUE's evaluators: n-grams up to four, one more match of every order (Lin & Och 2004)."""

    name = "bleu"
    signatures = {name: "CodeXGLUE's: tokens between blanks, smoothed by Lin & Och (2004)"}

    def __init__(self, references: Sequence[str], outputs: Sequence[str]):
        pairs = zip_equal(references, outputs)
        self._pairs = [(self.tokens(text), self.tokens(other)) for text, other in pairs]

    @staticmethod
    def tokens(text: str) -> list[str]:
        """The words between blanks."""
        return text.split()

    @cached_property
    def counts(self) -> np.ndarray:
        """Matches and possible matches of each order, and both lengths, ``[sentences, 10]``."""
        rows = []
        for reference, output in self._pairs:
            matches = [total(ngrams(output, order) & ngrams(reference, order)) for order in ORDERS]
            possible = [max(0, len(output) - order + 1) for order in ORDERS]
            rows.append([*matches, *possible, len(output), len(reference)])
        return np.array(rows, np.float64)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        mean = _geometric_mean(sums[..., :4] + 1, sums[..., 4:8] + 1)
        return {self.name: 100 * mean * _brevity(sums[..., 8], sums[..., 9])}


class TokenBleu(Bleu):
    """``token_bleu``: the mean over programs of BLEU of words and signs, smoothed by NLTK's ``method3``."""

    name = "token_bleu"
    signatures = {name: "words and signs as of Yin & Neubig (2017), the mean over programs"}

    @staticmethod
    def tokens(text: str) -> list[str]:
        """The parts of names in camel case, and single signs; all quotation marks are one."""
        apart = re.sub(r"([^A-Za-z0-9_])", r" \1 ", re.sub("[\"']", "`", text.replace(LINE_BREAK, " ")))
        return re.sub(r"([a-z])([A-Z])", r"\1 \2", apart).split()

    @cached_property
    def counts(self) -> np.ndarray:
        """BLEU of each program and 1, ``[sentences, 2]``."""
        matches, possible, lengths = np.split(super().counts, [4, 8], axis=1)
        missing = matches == 0
        smoothed = np.where(missing, 0.5 ** missing.cumsum(axis=1), matches) / np.maximum(possible, 1)
        orders = np.array(ORDERS) <= lengths[:, 1:]  # short references have fewer
        bleu = np.exp((np.log(smoothed) * orders).sum(axis=1) / len(ORDERS)) * _brevity(*lengths.T)
        return np.stack([np.where(missing[:, 0], 0, bleu), np.ones(len(bleu))], axis=1)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        return {self.name: 100 * sums[..., 0] / sums[..., 1]}


class CodeBleu(Measure):
    """``codebleu`` and its four parts."""

    def __init__(self, references: Sequence[str], outputs: Sequence[str], language: str):
        self._pairs = list(zip_equal(references, outputs))
        module, keywords = MODULES_AND_KEYWORDS[language]
        self._keywords = frozenset(keywords.split())
        self._language = language
        library = import_library("tree_sitter", "code", "CodeBLEU")
        self._parser = library.Parser(library.Language(import_library(module, "code", "CodeBLEU").language()))

    @cached_property
    def counts(self) -> np.ndarray:
        """Matches and possible matches of both kinds of n-grams, of subtrees and edges, and lengths, ``[S, 22]``."""
        return np.array([self._counts(*pair) for pair in self._pairs], np.float64)

    def _counts(self, reference: str, output: str) -> list[float]:
        tokens, others = reference.split(), output.split()
        row: list[float] = []
        for order in ORDERS:
            found = ngrams(others, order)
            row += [total(found & ngrams(tokens, order)), max(1, total(found))]
        for order in ORDERS:
            wanted = ngrams(tokens, order)
            common = wanted & ngrams(others, order)
            row += [self._weight(common, order), max(1, self._weight(wanted, order))]
        root, other_root = self.tree(reference), self.tree(output)
        subtrees, found_subtrees = _subtrees(root), set(_subtrees(other_root))
        row += [sum(text in found_subtrees for text in subtrees), len(subtrees)]
        edges, found_edges = (Counter(data_flow(each, self._language)) for each in (root, other_root))
        return [*row, total(edges & found_edges), total(edges), len(others), len(tokens)]

    def _weight(self, found: Counter[tuple[str, ...]], order: int) -> float:
        """The weight of n-grams; only single tokens differ."""
        if order > 1:
            return total(found)
        return sum(count * (1 if token in self._keywords else _OTHER_WEIGHT) for (token,), count in found.items())

    def tree(self, text: str) -> Any:
        """The root of tree-sitter's tree of a program, without comments."""
        text = text.strip().replace(LINE_BREAK, "\n")
        code = text.encode("utf-8", "surrogatepass")
        root = self._parser.parse(code).root_node
        comments = [node.byte_range for node in preorder(root, _is_comment) if _is_comment(node)]
        if not comments:
            return root
        for first, last in reversed(comments):
            code = code[:first] + b" " + code[last:]
        return self._parser.parse(b"\n".join(line for line in code.split(b"\n") if line.strip())).root_node

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        matches, possible = sums[..., 0:20:2], sums[..., 1:20:2]
        length, reference_length = sums[..., 20], sums[..., 21]
        smoothed = np.where(matches == 0, _SMOOTHING, matches)
        has_match = matches[..., 0] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(possible > 0, matches / possible, 0.0)
        parts = {
            "ngram_match": has_match * _geometric_mean(smoothed[..., :4], possible[..., :4])
            * _brevity(length, reference_length),
            "weighted_ngram_match": has_match * _geometric_mean(smoothed[..., 4:8], possible[..., 4:8]),
            "ast_match": shares[..., 8],
            "data_flow_match": shares[..., 9],
        }  # fmt: skip
        values = {"codebleu": sum(parts.values()) / len(parts), **parts}
        return {name: 100 * np.asarray(value) for name, value in values.items()}


def _is_comment(node: Any) -> bool:
    return node.type.endswith("comment")


def _subtrees(root: Any) -> list[str]:
    """The subtrees of a tree as S-expressions of types: that of the root, and those of all nodes with children."""
    return [str(node) for node in preorder(root) if node is root or node.child_count]
