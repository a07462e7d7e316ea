"""The nearest program to an output that is none, for models that no grammar guides, such as insertion.

A label says which fields its node has, so the labels in preorder are the program. The distance of two programs is
Levenshtein's, of these labels: how many are left out, added or replaced.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import NamedTuple

from tree_fairseq.source_code.complete_programs import is_program
from tree_fairseq.source_code.field_types import ROOT, FieldTypes, type_of
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.productions import parse_label
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.trees.tree import Tree, tree_from_preorder

_ENDLESS = 10**6  # symbols of a subtree that never ends
_STEPS_AT_END = 64  # so many times more states are taken when all labels are read, because fields may still be open
_MOST_LABELS = 64  # of a field, beside those of the output, that are tried in place of others
_WIDER = 4  # so many times more states are kept where the search finds no program
_LIKELIER = 1e-3  # of the cost of a label
_MOST_CHECKED = 100  # complete programs that the parser, and the database, are asked about


class _State(NamedTuple):
    """The first symbols of a program."""

    open: tuple[str, ...]  # the fields that need a node, the next one first
    needed: int  # the least number of symbols that fill them
    labels: tuple  # (labels before, last label), or ()
    digest: int  # of the labels
    query: PartialQuery | None
    pending: str | None = None  # the last label, if it is not yet in the query


class NearestProgram:
    """Finds programs near other outputs, by a beam search over the labels of the output.

    Args:
        types: which types of nodes the fields of the language hold
        labels: those of programs, the most frequent first
        schema: programs are queries that run on it
        width: states that are kept at each label of the output; with more, the program may be nearer
    """

    def __init__(
        self,
        language: Language,
        types: FieldTypes,
        labels: Iterable[str],
        schema: Schema | None = None,
        width: int = 32,
    ):
        self.language, self.schema, self.width, self._types = language, schema, width, types
        self._start = None if schema is None else PartialQuery(schema)
        self._fields = {label: parse_label(label).fields for label in labels}
        self._kinds = {label: type_of(label) for label in self._fields}
        forms: dict[tuple[str, tuple[str, ...]], str] = {}
        for label, below in self._fields.items():
            forms.setdefault((self._kinds[label], below), label)
        fields = {ROOT, *itertools.chain.from_iterable(self._fields.values())}
        self._smallest = dict.fromkeys(fields, _ENDLESS)
        while (sizes := {name: self._size(name, forms) for name in fields}) != self._smallest:
            self._smallest = sizes
        self._below = {label: self._needed(below) for label, below in self._fields.items()}
        self._others = {name: self._different(name, forms.values()) for name in fields}

    def _allows(self, name: str, label: str | None) -> bool:
        return label in self._kinds and self._types.allows(name, self._kinds[label])

    def _size(self, name: str, forms: Iterable[tuple[str, tuple[str, ...]]]) -> int:
        sizes = (1 + self._needed(fields) for kind, fields in forms if self._types.allows(name, kind))
        return min(sizes, default=_ENDLESS)

    def _needed(self, fields: Iterable[str]) -> int:
        return min(_ENDLESS, sum(self._smallest[name] for name in fields))

    def _different(self, name: str, forms: Iterable[str]) -> list[str]:
        """The labels in a field between which the search chooses: one of each form, and with a schema all names."""
        found: dict[object, str] = {}
        for label in forms if self._start is None else self._fields:
            if self._below[label] < _ENDLESS and self._allows(name, label):
                is_name = self._start is not None and PartialQuery.concern(label)
                found.setdefault(label if is_name else self._fields[label], label)
        return list(found.values())

    def find(self, output: Sequence[str]) -> Tree | None:
        """Returns a program near an output, given as labels in preorder; None if the search finds none.

        It looks for ever more distant programs, then keeps more states, and then takes ever shorter beginnings of the
        output.
        """
        beginnings = [output[: len(output) >> shift] for shift in range(len(output).bit_length() + 1)]
        near = ((output, most, False) for most in (1, 2, math.inf))
        for begun, most, is_wide in itertools.chain(near, ((begun, math.inf, True) for begun in beginnings)):
            for labels in self._candidates(begun, most, is_wide)[:_MOST_CHECKED]:
                tree = tree_from_preorder(labels, [len(self._fields[label]) for label in labels])
                if is_program(tree, self.language, self.schema):
                    return tree
        return None

    def _candidates(self, output: Sequence[str], most: float, is_wide: bool) -> list[list[str]]:
        """Labels of complete programs within a distance, the nearest first; a wide search tries more."""
        width = self.width * (_WIDER if is_wide else 1)
        keeps_nearest = self._start is None and not is_wide  # of the programs that may end alike
        known, most_labels = set(output), len(self._fields) if is_wide else _MOST_LABELS
        others = {
            name: [label for rank, label in enumerate(labels) if rank < most_labels or label in known]
            for name, labels in self._others.items()
        }
        queues: list[list] = [[] for _ in range(len(output) + 1)]  # of the states that have read so many labels
        number = itertools.count()
        finished: list[tuple[float, int, tuple]] = []

        def put(place: int, cost: float, state: _State, label: str | None = None) -> None:
            """Adds a state, or the one with one more label, which is made when it is taken."""
            needed = state.needed if label is None else state.needed + self._growth(state, label)
            # At least so many labels will have been added in the end.
            bound = cost + max(0, needed - (len(output) - place))
            if bound <= most:
                heapq.heappush(queues[place], (bound, next(number), cost, state, label))

        put(0, 0, _State((ROOT,), self._smallest[ROOT], (), 0, self._start))
        for place, queue in enumerate(queues):
            is_end, seen, taken = place == len(output), set(), 0
            while queue and taken < width * (_STEPS_AT_END if is_end else 1):
                _, _, cost, before, last = heapq.heappop(queue)
                following = before if last is None else self._then(before, last)
                key = following.open if keeps_nearest else following.digest
                if key in seen or (state := self._with_pending(following)) is None:
                    continue
                taken += 1
                if not state.open:
                    finished.append((cost + len(output) - place, next(number), state.labels))
                    continue
                seen.add(key)
                wanted = None if is_end else output[place]
                if self._allows(state.open[0], wanted):
                    put(place + 1, cost, state, wanted)
                if not is_end:
                    put(place + 1, cost + 1, state)
                if cost + 1 - 2 * _LIKELIER > most:
                    continue
                for label in others[state.open[0]]:
                    # Of equally near programs, one with labels of the output, or with similar ones, is better.
                    added = cost + 1 - _LIKELIER * (label in known)
                    put(place, added, state, label)
                    if wanted is not None:
                        put(place + 1, added - _LIKELIER * _alike(label, wanted), state, label)
        return [_listed(labels) for distance, _, labels in sorted(finished) if distance <= most]

    def _growth(self, state: _State, label: str) -> int:
        return self._below[label] - self._smallest[state.open[0]]

    def _then(self, state: _State, label: str) -> _State:
        fields, digest = (*self._fields[label], *state.open[1:]), hash((state.digest, label))
        needed = state.needed + self._growth(state, label)
        return _State(fields, needed, (state.labels, label), digest, state.query, label)

    def _with_pending(self, state: _State) -> _State | None:
        """The state whose query has all labels; None if no end of it runs."""
        if state.query is None or state.pending is None:
            return state
        try:
            query = state.query.then(state.pending, len(self._fields[state.pending]))
        except Unbound:
            return None
        return state._replace(query=query, pending=None)


@functools.lru_cache(maxsize=100_000)
def _alike(label: str, other: str) -> float:
    """The share of a label that begins as another one does."""
    return len(commonprefix([label, other])) / len(label)


def _listed(labels: tuple) -> list[str]:
    found = []
    while labels:
        labels, label = labels
        found.append(label)
    return found[::-1]
