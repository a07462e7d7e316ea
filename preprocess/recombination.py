"""Data recombination: further training pairs from the pairs of the training set (Jia and Liang 2016, section 3).

The paper induces a synchronous grammar from pairs of utterances and logical forms and samples new pairs from it. Its
three strategies are here ``KINDS``:

* ``entities`` (AbsEntities): another entity in the place of one that the utterance and the form have both, a slot
  such as ``s0`` or a constant whose name the utterance has, such as ``morning:pd`` and *morn*;
* ``phrases`` (AbsWholePhrases): the whole of one pair in the place of an entity of another: *what is the capital of
  s0* in *what river run through c0*; a set of things becomes a thing of which the set is true;
* ``concat2``, ``concat3``, ... (Concat-k): several pairs one after the other, below a new symbol.

The paper writes the grammar's types by hand. Here training shows what fits where, see `preprocess.logical_places`.
Hosts and guests are training pairs and what ``entities`` and ``phrases`` have made of them, so phrases nest.
"""

from __future__ import annotations

import logging
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from os.path import commonprefix
from typing import NamedTuple, Optional

from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example, Splits
from preprocess.logical_places import (
    SET,
    SLOT,
    Path,
    Places,
    is_condition,
    is_variable,
    kinds,
    node_at,
    number_variables,
    place_of,
    positions,
    replaced,
    sorts,
)
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import unordered_labels
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

KINDS = ("entities", "phrases", "concat2")
KIND = re.compile(r"entities|phrases|concat[2-9]")
JOINED, JOINT = "concat", ";"
"""Symbol and word of pairs that are one after the other."""
OPENERS = frozenset(
    "what which who is are was were give me show list name tell pleas please i'd like want need i".split()
)
"""Words before the phrase that a question is about."""
CLAUSES = frozenset("what which who where when how whose whom is are was were do doe does did can could there".split())
"""Words that make the rest of a question a clause and not a phrase."""
TRIES = 100
"""Draws of one strategy before another one is chosen."""
PATIENCE = 5000
"""Drawing stops after this number of draws that gave nothing new."""


class Pair(NamedTuple):
    """The words of an utterance and its form."""

    words: tuple[str, ...]
    form: Tree


class Entity(NamedTuple):
    """An entity of a pair: its kind, the position of its word, and the paths of its symbol."""

    kind: str
    word: int
    paths: tuple[Path, ...]


def names_word(name: str, word: str) -> bool:
    """Whether a word is the name of a constant, or its stem: *morn* and ``morning``, *earli* and ``early``."""
    common = len(commonprefix((name, word)))
    return common >= max(3, len(word) - 1, len(name) / 2)


def entities(pair: Pair) -> list[Entity]:
    """Returns the entities of a pair whose word occurs once."""
    paths: dict[str, list[Path]] = defaultdict(list)
    for path, node in positions(pair.form):
        if node.is_leaf and not is_variable(node.label):
            paths[node.label].append(path)
    found = []
    for label, where in paths.items():
        if slot := SLOT.fullmatch(label):
            kind, words = slot[1], [index for index, word in enumerate(pair.words) if word == label]
        else:
            name, _, kind = label.partition(":")
            words = [index for index, word in enumerate(pair.words) if kind and names_word(name, word)]
        if len(words) == 1:
            found.append(Entity(kind, words[0], tuple(where)))
    return found


def slots(pair: Pair) -> list[str]:
    """Returns the slots of an utterance in order."""
    return list(dict.fromkeys(word for word in pair.words if SLOT.fullmatch(word)))


def renamed(pair: Pair, names: dict[str, str]) -> Pair:
    """Returns a pair with other slots."""
    form = pair.form.fold(lambda node, children: Tree(names.get(node.label, node.label), children))
    return Pair(tuple(names.get(word, word) for word in pair.words), form)


def apart(pair: Pair, taken: Sequence[str]) -> Pair:
    """Returns a pair whose slots are not among ``taken``: a slot that is taken gets the next number of its kind."""
    used, names = {*taken, *slots(pair)}, {}
    for slot in slots(pair):
        if slot in taken:
            kind, number = SLOT.fullmatch(slot).groups()  # type: ignore[union-attr]
            number = int(number)
            while f"{kind}{number}" in used:
                number += 1
            names[slot] = f"{kind}{number}"
            used.add(names[slot])
    return renamed(pair, names)


class Recombiner:
    """Makes pairs out of training pairs.

    Args:
        pairs: the distinct pairs of the training set
        generator: the only source of randomness
    """

    def __init__(self, pairs: Sequence[Pair], generator: random.Random) -> None:
        self.train, self.pool, self.generator = pairs, list(pairs), generator
        self.places = Places(pair.form for pair in pairs)
        self.longest = max(len(pair.words) for pair in pairs)
        self.lexicon: dict[str, dict[str, str]] = defaultdict(dict)  # kind -> symbol -> word
        for pair in pairs:
            for entity in entities(pair):
                symbol, word = node_at(pair.form, entity.paths[0]).label, pair.words[entity.word]
                if not SLOT.fullmatch(symbol):
                    self.lexicon[entity.kind].setdefault(symbol, word)
                elif not any(map(SLOT.fullmatch, self.lexicon[entity.kind])):
                    self.lexicon[entity.kind][f"{entity.kind}0"] = f"{entity.kind}0"

    def make(self, kind: str) -> Optional[Pair]:
        """Draws a pair of a kind; None if what was drawn does not go together."""
        if kind == "entities":
            return self._kept(self.other_entity(self._drawn()))
        if kind == "phrases":
            return self._kept(self.nested(self._drawn(), self._drawn()))
        return self.joined([self.generator.choice(self.train) for _ in range(int(kind[-1]))])

    def _drawn(self) -> Pair:
        return self.generator.choice(self.pool)

    def _kept(self, pair: Optional[Pair]) -> Optional[Pair]:
        return pair if pair is not None and len(pair.words) <= self.longest else None

    def other_entity(self, pair: Pair) -> Optional[Pair]:
        """Returns the pair with another entity, of any kind that fits in all places of the old one."""
        found = entities(pair)
        if not found:
            return None
        entity = self.generator.choice(found)
        places = [place_of(pair.form, path) for path in entity.paths]
        old = node_at(pair.form, entity.paths[0]).label
        choices = [
            (symbol, word)
            for kind in sorted(self.lexicon)
            if kind == entity.kind or all(self.places.fits(place, {kind}) for place in places)
            for symbol, word in sorted(self.lexicon[kind].items())
            if not (kind == entity.kind and (symbol == old or SLOT.fullmatch(symbol)))
        ]
        if not choices:
            return None
        symbol, word = self.generator.choice(choices)
        rest = [slot for slot in slots(pair) if slot != old]
        if SLOT.fullmatch(symbol):
            [symbol] = [word] = apart(Pair((word,), Tree(symbol)), rest).words
        form = pair.form
        for path in entity.paths:
            form = replaced(form, path, Tree(symbol))
        return Pair((*pair.words[: entity.word], word, *pair.words[entity.word + 1 :]), form)

    def nested(self, host: Pair, guest: Pair) -> Optional[Pair]:
        """Returns the host with the guest in the place of an entity that its form has once; None if it does not fit."""
        found = [entity for entity in entities(host) if len(entity.paths) == 1]
        words = phrase(guest.words)
        if not found or not words:
            return None
        entity = self.generator.choice(found)
        [path] = entity.paths
        restricted = sorts(guest.form)
        is_set = guest.form.label == SET and len(guest.form.children) == 3
        wanted = restricted.get(guest.form.children[0].label, set()) if is_set else kinds(guest.form, restricted)
        if guest.form.is_leaf or not self.places.fits(place_of(host.form, path), wanted):
            return None
        old = host.words[entity.word]
        guest = apart(Pair(words, guest.form), [slot for slot in slots(host) if slot != old])
        # A mark sets the guest's variables apart from the host's until all are numbered.
        marked = {node.label: f"{node.label}'" for node in guest.form.preorder() if is_variable(node.label)}
        inner = renamed(guest, marked).form
        form = _with_set(host.form, path, inner) if is_set else replaced(host.form, path, inner)
        if form is None:
            return None
        said = (*host.words[: entity.word], *guest.words, *host.words[entity.word + 1 :])
        return Pair(said, number_variables(form))

    def joined(self, pairs: Sequence[Pair]) -> Pair:
        """Returns the pairs one after the other; their slots differ."""
        words: list[str] = []
        forms = []
        for pair in pairs:
            pair = apart(pair, [word for word in words if SLOT.fullmatch(word)])
            words += [*([JOINT] if words else []), *pair.words]
            forms.append(pair.form)
        return Pair(tuple(words), Tree(JOINED, forms))


def phrase(words: Sequence[str]) -> tuple[str, ...]:
    """Returns what a question is about: *the capital of s0* of *what is the capital of s0*; () of other questions."""
    start = 0
    while start < len(words) and words[start] in OPENERS:
        start += 1
    rest = tuple(words[start:])
    return () if start == 0 or CLAUSES & {*rest} else rest


def _with_set(form: Tree, path: Path, described: Tree) -> Optional[Tree]:
    """Returns the form with ``( exists $k ( and CONDITIONS ... ) )`` in the place of the condition at the entity."""
    above = path[:-1]
    if not is_condition(form, above):
        return None
    variable, _, body = described.children
    condition = replaced(node_at(form, above), path[-1:], variable)
    conditions = [*(body.children if body.label == "and" else (body,)), condition]
    return replaced(form, above, Tree("exists", [variable, Tree("and", conditions)]))


def _pairs(examples: Sequence[Example], notation: str) -> list[Pair]:
    reader = notation_named(notation)
    read = {
        example.pair: Pair(tuple(example.source.split()), number_variables(reader.read(example.target)))
        for example in examples
    }
    return list(read.values())


def recombine(examples: Sequence[Example], count: int, kinds: Sequence[str], notation: str, seed: int) -> list[Example]:
    """Returns ``count`` new pairs with different utterances, none of them an utterance of ``examples``.

    Args:
        examples: the training set
        kinds: strategies, each chosen equally often; see the module
        notation: that of the logical forms
        seed: seed of all draws; the same arguments give the same pairs
    """
    generator = random.Random(f"recombine {seed}")
    recombiner = Recombiner(_pairs(examples, notation), generator)
    writer, seen = notation_named(notation), {" ".join(example.source.split()) for example in examples}
    made: list[Example] = []
    counts: Counter[str] = Counter()
    fruitless = 0
    while len(made) < count:
        if fruitless * TRIES > PATIENCE:
            raise CorpusError(
                f"{len(examples)} training pairs give only {len(made)} new ones by {', '.join(kinds)}, not {count}: "
                "ask for fewer, or for other kinds"
            )
        kind, fruitless = generator.choice(kinds), fruitless + 1
        for _ in range(TRIES):
            pair = recombiner.make(kind)
            source = "" if pair is None else " ".join(pair.words)
            if pair is not None and source not in seen:
                fruitless = 0
                seen.add(source)
                counts[kind] += 1
                made.append(Example(source, writer.write(pair.form)))
                if not kind.startswith("concat"):
                    recombiner.pool.append(pair)
                break
    logger.info("%d pairs by recombination: %s", count, ", ".join(f"{kind} {counts[kind]}" for kind in kinds))
    return made


def permute(examples: Sequence[Example], count: int, notation: str, seed: int) -> list[Example]:
    """Returns ``count`` training pairs whose forms have the children of ``and`` and ``or`` in another order."""
    generator = random.Random(f"permute {seed}")
    handle, free = notation_named(notation), unordered_labels(notation)
    forms = {example: handle.read(example.target) for example in dict.fromkeys(examples)}
    choices = [e for e, form in forms.items() if any(n.label in free and len(n.children) > 1 for n in form.preorder())]
    seen, made, fruitless = {*forms}, [], 0
    while len(made) < count:
        if not choices or fruitless > PATIENCE:
            raise CorpusError(
                f"{len(examples)} training pairs give only {len(made)} other orders below {', '.join(free)}, not "
                f"{count}: ask for fewer"
            )
        drawn = generator.choice(choices)
        form = forms[drawn].fold(lambda node, children: Tree(node.label, _ordered(node, children, free, generator)))
        new = drawn._replace(target=handle.write(form))
        fruitless = fruitless + 1 if new in seen else 0
        if not fruitless:
            seen.add(new)
            made.append(new)
    logger.info("%d pairs with another order below %s", count, ", ".join(free))
    return made


def _ordered(node: Tree, children: list[Tree], free: Sequence[str], generator: random.Random) -> list[Tree]:
    return generator.sample(children, len(children)) if node.label in free else children


def report_overlap(splits: Splits, made: Sequence[Example]) -> None:
    """Logs how many new utterances validation and test sets have; they are made without looking there, and stay."""
    sources = {example.source for example in made}
    for split in (name for name in splits if name != "train"):
        known = {example.source for example in splits[split]}
        logger.info("%s: %d of %d new utterances occur there", split, len(sources & known), len(sources))
