"""The view of a structural search: its partial trees step by step, their candidates, and why some are illegal.

A search has no observer unless the explorer sets one, and then keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.drawing.views import Explained, Views, register_views, tree_record
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.spelling import SpelledNotation
from tree_fairseq.tree_positional.hypotheses import TreeHypotheses
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import NULL, parents_and_branches
from tree_fairseq.trees.tree import Forest, Tree

OPEN_LABEL = "?"  # the label of open nodes in partial trees

REFUSED = "no program begins like this"
"""Why a symbol is illegal that the grammar has, but the parser or the schema refuses."""

_DIGITS = 4  # of scores and probabilities


@dataclass(frozen=True)
class PartialTree:
    """A tree of which some symbols are known.

    The ``forest`` has the labels of the notation, without ``<null>``; its open nodes are labelled ``?``, and are the
    nodes ``open`` in preorder. The next symbol fills the node ``next``, which is None in a complete tree. A second tree
    in the forest is the open sibling of the root, which left-child right-sibling trees close by ``<null>``.
    """

    forest: Forest
    open: list[int]
    next: int | None

    @classmethod
    def of(cls, ids: Sequence[int], dictionary: SymbolDictionary) -> PartialTree:
        """The partial tree of the first symbols of a sequence."""
        encoding = dictionary.encoding
        symbols = [dictionary[index] for index in ids]
        arities = [encoding.split(symbol)[1] for symbol in symbols]
        # Leaves fill the open nodes; no label of a tree is like theirs.
        leaves = [f"\0{number}" for number in range(1 + sum(arities) - len(arities))]
        symbols += [encoding.join(leaf, 0) for leaf in leaves]
        arities += [0] * len(leaves)
        forest: Forest = ()
        if encoding.binarization == "lcrs":
            places = list(zip(*parents_and_branches(arities, encoding)))
            known = len(symbols) - len(leaves)
            if (0, 1) in places[known:]:
                sibling = places.index((0, 1), known)
                symbols[sibling], forest = NULL, (Tree(leaves[sibling - known]),)
        forest = (encoding.decode(symbols), *forest)
        labels = [node.label for tree in forest for node in tree.preorder()]
        words = [[OPEN_LABEL if word in leaves else word for word in tree.leaves()] for tree in forest]
        return cls(
            tuple(tree.map_leaves(own) for tree, own in zip(forest, words)),
            [place for place, label in enumerate(labels) if label in leaves],
            labels.index(leaves[0]) if leaves else None,
        )


@dataclass
class Candidate:
    """A symbol that may come next: its probability before illegal symbols are masked, and why it is illegal."""

    probability: float
    why: str | None
    chosen: bool = False


@dataclass
class Hypothesis:
    """A partial tree in the beam: its symbols, the sum of its log-probabilities, and its place in the step before."""

    symbols: list[int]
    score: float
    parent: int
    candidates: dict[int, Candidate] = field(default_factory=dict)  # by symbol


class SearchSteps:
    """Keeps the steps of a search over one sentence: set it as ``generator.model.observer``.

    ``steps`` are the hypotheses of each step that are neither dead nor duplicates, each with its ``most`` probable
    candidates and those that went on. Finished trees that wait have no candidates.
    """

    def __init__(self, dictionary: SymbolDictionary, most: int = 8):
        self.symbols, self.most = dictionary.table(), most
        self.forget()

    def forget(self) -> None:
        """Begins anew, for another sentence."""
        self.steps: list[list[Hypothesis]] = []
        self._order: list[int] | None = None
        self._rows: dict[int, int] = {}  # place in the last step by row
        self._masked: Tensor | None = None
        self._unmasked: Tensor | None = None

    def reorder(self, order: Tensor) -> None:
        """Notes the rows of the last step that go on."""
        self._order = order.tolist()

    def keep(self, tokens: Tensor, unmasked: Tensor, masked: Tensor, trees: TreeHypotheses) -> None:
        """Keeps a step: ``tokens`` are ``[R, T]``, START and the symbols so far, and log-probabilities ``[R, V]``."""
        if len(trees.is_growing) != 1:
            raise StructuralSearchError("the steps of a search are kept for one sentence at a time")
        self.note_refused(trees)
        rows = range(len(tokens)) if self.steps else [0]
        ids, complete, dead = tokens[:, 1:].tolist(), trees.is_complete.tolist(), trees.is_dead.tolist()
        found: list[Hypothesis] = []
        places: dict[int, int] = {}
        for row in rows:
            if dead[row]:
                continue
            symbols = [index for index in ids[row] if int(self.symbols.arity[index]) >= 0]
            parent, score = self._choose(row, ids[row])
            places[row] = len(found)
            found.append(Hypothesis(symbols, score, parent))
            if not complete[row]:
                found[-1].candidates = self._candidates(row, unmasked[row], trees)
        self.steps.append(found)
        self._rows, self._masked, self._unmasked = places, masked, unmasked

    def note_refused(self, trees: TreeHypotheses) -> None:
        """Says of candidates of the last step that they were refused when the search was about to take them."""
        for row, symbol in trees.refused:
            if row in self._rows and symbol in (candidates := self.steps[-1][self._rows[row]].candidates):
                candidates[symbol].why = REFUSED
        trees.refused.clear()

    def _choose(self, row: int, ids: list[int]) -> tuple[int, float]:
        """Marks the candidate that led to a row; returns the place of its hypothesis, and the score that it has now."""
        if not self.steps:
            return -1, 0.0
        above = row if self._order is None else self._order[row]
        parent, symbol = self._rows[above], ids[-1]
        before = self.steps[-1][parent]
        if before.candidates:
            own = Candidate(float(self._unmasked[above, symbol].exp()), None)
            before.candidates.setdefault(symbol, own).chosen = True
        return parent, before.score + float(self._masked[above, symbol])

    def _candidates(self, row: int, scores: Tensor, trees: TreeHypotheses) -> dict[int, Candidate]:
        best = scores.topk(min(self.most, len(scores)))
        return {
            index: Candidate(probability, trees.why_illegal(row, index, self.symbols))
            for index, probability in zip(best.indices.tolist(), best.values.exp().tolist())
        }


@register_views
class StructuralViews(Views):
    """The view of a structural beam: the hypotheses of each step, and the tree that the search found."""

    method, rank = "tree_positional", 1

    def __init__(self, task: Any, models: Sequence[nn.Module], generator: StructuralGenerator):
        super().__init__(task, models, generator)
        self.observer = generator.model.observer = SearchSteps(task.target_dictionary)

    @classmethod
    def fits(cls, task: Any, models: Sequence[nn.Module], generator: Any) -> bool:
        return isinstance(generator, StructuralGenerator)

    def begin(self) -> None:
        self.observer.forget()

    def read_output(self, explained: Explained) -> list[str] | None:
        """Reads the symbols without EOS at the end: trees end by themselves, and their models do not predict it."""
        if not getattr(getattr(self.models[0], "decoder", None), "layers", ()):
            return []
        dictionary, ids = self.task.target_dictionary, explained.ids
        previous = torch.tensor([[dictionary.eos(), *ids[:-1]]], device=explained.inputs["src_tokens"].device)
        self.models[0](**explained.inputs, prev_output_tokens=previous)
        return [dictionary[index] for index in ids]

    def views(self, explained: Explained) -> dict[str, Any]:
        self.observer.note_refused(self.generator.model.trees)
        steps = [{"hypotheses": [self._record(hypothesis) for hypothesis in step]} for step in self.observer.steps]
        result = tree_record((self.task.target_dictionary.tree(explained.ids),))
        is_program = isinstance(self.task.target_dictionary.notation, (Language, SpelledNotation))
        return {"beam": {"beam": self.generator.beam_size, "steps": steps, "result": result, "is_program": is_program}}

    def _record(self, hypothesis: Hypothesis) -> dict[str, Any]:
        dictionary = self.task.target_dictionary
        partial = PartialTree.of(hypothesis.symbols, dictionary)
        candidates = [
            {
                "symbol": dictionary[symbol],
                "probability": round(candidate.probability, _DIGITS),
                "legal": candidate.why is None,
                "why": candidate.why or "",
                "chosen": candidate.chosen,
            }
            for symbol, candidate in hypothesis.candidates.items()
        ]
        return {
            "tree": tree_record(partial.forest),
            "open": partial.open,
            "next": partial.next,
            "score": round(hypothesis.score, _DIGITS),
            "parent": hypothesis.parent,
            "candidates": candidates,
        }
