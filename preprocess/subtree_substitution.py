"""More training pairs by subtree substitution (Yang et al. 2022): a phrase and its subtree in the place of others.

    tree-fairseq parse DIR/train.nl DIR/train.trees
    python -m preprocess.subtree_substitution --text DIR --source nl --target lf --notation variable-free
        --parses DIR/train.trees --count 20000

* A noun phrase of one sentence takes the place of a noun phrase of another, and its part of the logical form that of
  the other's; clauses likewise. So a phrase moves to places where training never has it.
* Phrases of several sentences nest, deeper than in training: *a cake in the house* and *the house on a table* make *a
  cake in the house on a table*.
* A word takes the place of another that training has in all frames that the first one has: *blessed*, only seen with
  subject and object, that of *helped* in *A cake was helped by Emma*, and ``bless`` that of ``help``. To be an
  utterance is a frame, too: *shark* takes the place of *cake* because training has both alone, with forms of one kind.

`preprocess.phrase_alignment` finds which constituent is which subtree, and the frames: nothing is written by hand about
the language or the forms but the labels of the constituents. Only training pairs are read, and each new pair is made of
training pairs alone.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, read_lines, read_pairs, write_columns
from preprocess.logical_forms import Example
from preprocess.logical_places import node_at, replaced
from preprocess.phrase_alignment import (
    Frame,
    Head,
    LoneWord,
    Parsed,
    Phrase,
    aligned_heads,
    aligned_phrases,
    lone_words,
    said_symbols,
    symbol_classes,
)
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.notations import NOTATIONS, Notation, notation_named
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

LABELS = ("NP", "SBAR")
Kind = tuple[str, str, str]
"""What phrases that may be exchanged have in common: the label of the constituent, the class of the symbol at the root
of its subtree, and the punctuation mark at its end."""
Occurrence = tuple[Parsed, Phrase]
PATIENCE = 10_000
"""Drawing stops after this number of draws that gave nothing new."""


class Substitution:
    """Makes pairs out of parsed training pairs.

    Args:
        pairs: the training set
        labels: constituents of these labels are exchanged for others of the same label
        longest: bound of the words of a new utterance
        generator: the only source of randomness
    """

    def __init__(self, pairs: Sequence[Parsed], labels: Sequence[str], longest: int, generator: random.Random) -> None:
        self.labels, self.longest, self.generator = labels, longest, generator
        symbol_of = said_symbols(pairs)
        self.class_of = symbol_classes(pair.form for pair in pairs)
        self.words_inside = {word for pair in pairs for word in pair.words[1:]}
        # Phrases that may go elsewhere, by kind and number of words, and by kind and each of their words that has a
        # symbol; phrases with another one of their kind inside, by kind; phrases that may be replaced, by label.
        self.of_size: dict[Kind, dict[int, list[Occurrence]]] = defaultdict(lambda: defaultdict(list))
        self.with_word: dict[Kind, dict[str, list[Occurrence]]] = defaultdict(lambda: defaultdict(list))
        self.around: dict[Kind, list[tuple[Parsed, Phrase, Phrase]]] = defaultdict(list)
        self.hosts: dict[str, list[Occurrence]] = defaultdict(list)
        # Heads by word and frame, and the words whose place each word may take.
        self.heads: dict[str, dict[Frame, list[tuple[Parsed, Head]]]] = defaultdict(lambda: defaultdict(list))
        for pair in pairs:
            self._add_heads(pair, symbol_of)
            self._add_phrases(pair, symbol_of)
        lone = lone_words(pairs)
        self.name_of = {**symbol_of, **{word: name for word, (name, _) in lone.items()}}
        # The name of a lone word takes the place of a symbol only where the two are the same for the other word.
        heads = {word: frames for word, frames in self.heads.items() if self.name_of[word] == symbol_of[word]}
        self.places = places_of_words(heads, lone)

    def kind(self, pair: Parsed, phrase: Phrase) -> Kind:
        """Returns the kind of a phrase of a pair."""
        last = words_of(pair, phrase)[-1]
        return phrase.label, self.class_of.get(phrase.symbol, phrase.symbol), "" if last.isalnum() else last

    def _add_heads(self, pair: Parsed, symbol_of: Mapping[str, str]) -> None:
        for head in aligned_heads(pair, symbol_of):
            # A lone word has no place in a sentence; the capital letter of a first word may be that of the sentence.
            if any(head.leaf) or len(pair.words) > 1 and head.word in self.words_inside:
                self.heads[head.word][head.frame].append((pair, head))

    def _add_phrases(self, pair: Parsed, symbol_of: Mapping[str, str]) -> None:
        phrases = [phrase for phrase in aligned_phrases(pair, symbol_of) if phrase.label in self.labels]
        kinds = [self.kind(pair, phrase) for phrase in phrases]
        for phrase, kind in zip(phrases, kinds):
            words = words_of(pair, phrase)
            self.of_size[kind][len(words)].append((pair, phrase))
            for word in {*words} & {*symbol_of}:
                self.with_word[kind][word].append((pair, phrase))
            if phrase.subtree:
                self.hosts[phrase.label].append((pair, phrase))
            self.around[kind] += [
                (pair, phrase, other)
                for other, other_kind in zip(phrases, kinds)
                if other_kind == kind and is_inside(other, phrase)
            ]

    def make(self) -> Optional[Parsed]:
        """Draws a pair; None if what was drawn gives none.

        Words take the place of others in half of the pairs, and phrases nest in a quarter. Phrases are drawn by their
        size or by one of their words. All sizes, words and frames are equally probable, so that those come to all
        places which training has once.
        """
        if self.generator.random() < 0.5:
            return self.with_other_word()
        labels = [label for label in self.labels if self.hosts[label]]
        if not labels:
            return None
        host, hole = self.generator.choice(self.hosts[self.generator.choice(labels)])
        nests = self.generator.random() < 0.5
        guest = self._nested(host, hole) if nests else self._drawn(self.kind(host, hole))
        size = len(host.words) - len(words_of(host, hole)) + len(guest.words)
        if size > self.longest:
            return None
        parse = replaced(host.parse, hole.constituent, guest.parse)
        if host.words[0][0].isupper():
            parse = with_capital(parse)
        return Parsed(parse, replaced(host.form, hole.subtree, guest.form))

    def _drawn(self, kind: Kind) -> Parsed:
        """Draws a phrase; returns its constituent and its subtree."""
        drawn_by: Mapping[Kind, Mapping[Any, Sequence[Occurrence]]] = self.generator.choice(
            (self.of_size, self.with_word)
        )
        phrases = drawn_by[kind] or self.of_size[kind]  # a phrase may have no word with a symbol
        pair, phrase = self.generator.choice(phrases[self.generator.choice(sorted(phrases))])
        return Parsed(self.without_capital(node_at(pair.parse, phrase.constituent)), node_at(pair.form, phrase.subtree))

    def _nested(self, host: Parsed, hole: Phrase) -> Parsed:
        """Draws a phrase, and phrases around it until the host has a number of words that is drawn first."""
        kind = self.kind(host, hole)
        nested = self._drawn(kind)
        outside = len(host.words) - len(words_of(host, hole))
        most = self.generator.randint(min(outside, self.longest), self.longest)
        while self.around[kind]:
            pair, outer, inner = self.generator.choice(self.around[kind])
            size = len(words_of(pair, outer)) - len(words_of(pair, inner)) + len(nested.words)
            if outside + size > most:
                break
            parse = replaced(
                node_at(pair.parse, outer.constituent), inner.constituent[len(outer.constituent) :], nested.parse
            )
            form = replaced(node_at(pair.form, outer.subtree), inner.subtree[len(outer.subtree) :], nested.form)
            nested = Parsed(self.without_capital(parse), form)
        return nested

    def with_other_word(self) -> Optional[Parsed]:
        """Draws a word, a word whose place it may take, a frame of that one, and a pair with it."""
        if not self.places:
            return None
        word = self.generator.choice(list(self.places))
        frames = self.heads[self.generator.choice(self.places[word])]
        pair, head = self.generator.choice(frames[self.generator.choice(sorted(frames))])
        node = Tree(self.name_of[word], node_at(pair.form, head.node).children)
        return Parsed(replaced(pair.parse, head.leaf, Tree(word)), replaced(pair.form, head.node, node))

    def without_capital(self, constituent: Tree) -> Tree:
        """Returns the constituent with a first word as the inside of utterances has it: *the* for *The*, but *Emma*."""
        first, *rest = constituent.leaves()
        small = first[:1].lower() + first[1:]
        if small not in self.words_inside or first in self.words_inside:
            return constituent
        return constituent.map_leaves([small, *rest])


def places_of_words(heads: Mapping[str, Mapping[Frame, object]], lone: Mapping[str, LoneWord]) -> dict[str, list[str]]:
    """Returns for each word the words with heads whose place it may take, if there are any.

    Args:
        heads: by word, its frames
        lone: the result of `lone_words`
    """
    frames: dict[str, set[object]] = {
        word: {*heads.get(word, ())} | ({lone[word].kind} if word in lone else set())
        for word in sorted({*heads, *lone})
    }
    places = {
        word: [other for other in frames if other != word and other in heads and own <= frames[other]]
        for word, own in frames.items()
    }
    return {word: others for word, others in places.items() if others}


def is_inside(inner: Phrase, outer: Phrase) -> bool:
    """Whether a phrase and its subtree are parts of another and its subtree."""
    parts = (inner.constituent, outer.constituent), (inner.subtree, outer.subtree)
    return all(len(below) > len(above) and below[: len(above)] == above for below, above in parts)


def words_of(pair: Parsed, phrase: Phrase) -> list[str]:
    """Returns the words of a phrase."""
    return node_at(pair.parse, phrase.constituent).leaves()


def with_capital(parse: Tree) -> Tree:
    """Returns the parse with a capital letter at the beginning."""
    first, *rest = parse.leaves()
    return parse.map_leaves([first[:1].upper() + first[1:], *rest])


def substitute(
    examples: Sequence[Example],
    parses: Sequence[Tree],
    count: int,
    notation: Notation,
    labels: Sequence[str] = LABELS,
    longest: Optional[int] = None,
    seed: int = 1,
) -> list[Example]:
    """Returns ``count`` new pairs with different utterances, none of them an utterance of ``examples``.

    Args:
        examples: the training set
        parses: the parse of each utterance
        notation: that of the logical forms
        labels: constituents of these labels are exchanged
        longest: bound of the words of a new utterance; None is the longest of ``examples``
        seed: seed of all draws; the same arguments give the same pairs
    """
    pairs = [Parsed(parse, notation.read(example.target)) for example, parse in zip(examples, parses)]
    longest = max(len(pair.words) for pair in pairs) if longest is None else longest
    substitution = Substitution(pairs, labels, longest, random.Random(f"substitution {seed}"))
    phrases = ", ".join(f"{len(substitution.hosts[label])} {label}" for label in labels)
    logger.info("%d pairs; constituents that are aligned with a subtree: %s", len(pairs), phrases)
    logger.info("%d words can take the place of others", len(substitution.places))
    seen, made, fruitless = {" ".join(pair.words) for pair in pairs}, [], 0
    while len(made) < count:
        fruitless += 1
        if fruitless > PATIENCE:
            raise CorpusError(
                f"{len(pairs)} training pairs give only {len(made)} new ones by exchanging words and "
                f"{', '.join(labels)}, not {count}: ask for fewer, or for other labels"
            )
        pair = substitution.make()
        if pair is None or (source := " ".join(pair.words)) in seen:
            continue
        fruitless = 0
        seen.add(source)
        made.append(Example(source, notation.write(pair.form)))
    return made


def read_parses(path: Path, sentences: Sequence[str]) -> list[Tree]:
    """Reads the parses of sentences, one a line."""
    forests = [read_forest(line, path=path, line_number=number) for number, line in enumerate(read_lines(path), 1)]
    if len(forests) != len(sentences):
        raise CorpusError(f"{path} has {len(forests)} parses for {len(sentences)} sentences: parse the same file again")
    for number, (forest, sentence) in enumerate(zip(forests, sentences), 1):
        if len(forest) != 1 or forest[0].leaves() != sentence.split():
            raise CorpusError(f"{path}:{number}: this is not the parse of {sentence!r}: parse the same file again")
    return [parse for [parse] in forests]


def enlarge(args: argparse.Namespace) -> dict[str, int]:
    """Writes the training set of a folder with new pairs; returns its new size."""
    prefix, languages = args.text / "train", (args.source, args.target)
    pairs = list(read_pairs(f"{prefix}.{args.source}", f"{prefix}.{args.target}"))
    examples = [Example(*pair) for pair in pairs]
    parses = read_parses(args.parses, [example.source for example in examples])
    notation = notation_named(args.notation)
    made = substitute(examples, parses, args.count, notation, longest=args.longest, seed=args.seed)
    return {"train": write_columns(args.output or prefix, languages, [*pairs, *(example.pair for example in made)])}


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m preprocess.subtree_substitution", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--text", type=Path, required=True, help="folder of train.SOURCE and train.TARGET")
    parser.add_argument("--output", type=Path, help="prefix of the larger set (default: TEXT/train, which grows)")
    parser.add_argument("--source", default="nl", help="suffix of the utterances (default: %(default)s)")
    parser.add_argument("--target", default="lf", help="suffix of the logical forms (default: %(default)s)")
    parser.add_argument("--notation", choices=sorted(NOTATIONS), required=True, help="notation of the logical forms")
    parser.add_argument("--parses", type=Path, required=True, help="bracketed parses of train.SOURCE, one a line")
    parser.add_argument("--count", type=int, required=True, help="number of new pairs")
    parser.add_argument("--longest", type=int, help="bound of the words of a new utterance (default: as in train)")
    parser.add_argument("--seed", type=int, default=1, help="seed of random draws (default: %(default)s)")
    args = parser.parse_args(arguments)
    return prepare_data_set("subtree_substitution", str(args.text), lambda: enlarge(args))


if __name__ == "__main__":
    raise SystemExit(main())
