"""How generated programs are compared with the right ones: as trees, as texts, by BLEU and CodeBLEU.

Programs are compared as trees, so blanks, the case of keywords and the like do not matter. A program that does not
parse is never right, be it an output or a reference.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.code_bleu import MODULES_AND_KEYWORDS, Bleu, CodeBleu, TokenBleu, total
from tree_fairseq.scoring.measures import Measure
from tree_fairseq.source_code.language import Language
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)


class TreeF1(Measure):
    """``tree_f1``: F1 of all nodes of all programs; a node is its label with those of its children.

    A program that does not parse (None) has no nodes.
    """

    def __init__(self, references: Sequence[Tree | None], outputs: Sequence[Tree | None]):
        self._pairs = list(zip_equal(references, outputs))

    @cached_property
    def counts(self) -> np.ndarray:
        """Common nodes, and nodes of both trees, ``[sentences, 3]``."""
        rows = []
        for reference, output in self._pairs:
            wanted, found = _nodes(reference), _nodes(output)
            rows.append([total(wanted & found), total(wanted), total(found)])
        return np.array(rows, np.float64)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        both = sums[..., 1] + sums[..., 2]
        return {"tree_f1": 200 * sums[..., 0] / np.maximum(both, 1)}


def _nodes(tree: Tree | None) -> Counter[tuple[str, ...]]:
    if tree is None:
        return Counter()
    nodes = Language.whole(tree).preorder()
    return Counter((node.label, *(child.label for child in node.children)) for node in nodes)


class Programs:
    """The right programs of a test set, their trees, and how outputs are compared with them.

    Raises ScoringError if the notation is not that of a programming language.
    """

    def __init__(self, texts: Sequence[str], language: Notation):
        if not isinstance(language, Language):
            raise ScoringError("not a programming language: compare its trees by `tree` or `structural`")
        self.texts, self.language = list(texts), language
        self.trees = [self.parse(text) for text in texts]
        self.failed = [number for number, tree in enumerate(self.trees) if tree is None]
        if self.failed:
            message = "%d of %d references are not %s, and no output is right there; the first is %d"
            logger.warning(message, len(self.failed), len(texts), language.name, self.failed[0] + 1)

    def parse(self, text: str) -> Tree | None:
        """The tree of a program; None if it does not parse."""
        try:
            return self.language.read(text)
        except Exception:  # parsers fail in many ways on the texts that models write
            return None

    def outcomes(self, outputs: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, list[bool]]:
        """``exact_match``: the trees are equal; ``exact_text``: the texts are; ``parses``: the output does."""
        pairs = list(zip_equal(trees, self.trees))
        known = [tree if wanted is not None else None for tree, wanted in pairs]
        return {
            "exact_match": exact_matches(known, [wanted or Tree("") for _, wanted in pairs]),
            "exact_text": [text.strip() == output.strip() for text, output in zip_equal(self.texts, outputs)],
            "parses": [tree is not None for tree in trees],
        }

    def measures(self, outputs: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, Measure]:
        """BLEU and F1 of trees, and CodeBLEU if the language has one."""
        found: dict[str, Measure] = {"bleu": Bleu(self.texts, outputs), "token_bleu": TokenBleu(self.texts, outputs)}
        if self.language.name in MODULES_AND_KEYWORDS:
            found["codebleu"] = CodeBleu(self.texts, outputs, self.language.name)
        else:
            logger.info("%s has no CodeBLEU: its keywords and its data flow are not known", self.language.name)
        return {**found, "tree_f1": TreeF1(self.trees, trees)}
