"""Tiny made-up data sets of texts and their classes, in the files of the published ones (``run.sh --toy``).

Sentiment is the sum of a few words' values, turned round by "not"; verbs agree with the first noun of their subject.
There are sentences of one word, documents of several sentences, and attractors.
"""

from __future__ import annotations

import random
from pathlib import Path

from preprocess import toy_glue
from preprocess.corpora import write_lines

# --- Stanford Sentiment Treebank -------------------------------------------------------------------------------------

_WORTH = {"superb": 2, "funny": 1, "the": 0, "film": 0, "is": 0, "and\\/or": 0, "-LRB-": 0, "dull": -1, "dreadful": -2}


def _opinion(generator: random.Random, words: int) -> tuple[str, int]:
    """Returns a binary tree over this number of words, and its value from -2 to 2."""
    if words == 1:
        word, worth = generator.choice(list(_WORTH.items()))
        return f"({worth + 2} {word})", worth
    if generator.random() < 0.15:
        tree, worth = _opinion(generator, words - 1)
        return f"({2 - worth} (2 not) {tree})", -worth
    left = generator.randrange(1, words)
    (first, one), (second, two) = _opinion(generator, left), _opinion(generator, words - left)
    worth = max(-2, min(2, one + two))
    return f"({worth + 2} {first} {second})", worth


def sst(output: Path, train: int, test: int) -> None:
    """Writes ``{train,dev,test}.txt``: bracketed trees with a class at every node."""
    for name, size, seed in (("train", train, 1), ("dev", test, 2), ("test", test, 3)):
        generator = random.Random(seed)
        write_lines(output / f"{name}.txt", [_opinion(generator, generator.randrange(1, 9))[0] for _ in range(size)])


# --- reviews ---------------------------------------------------------------------------------------------------------

_CLAIMS = {
    "pos": ("i loved it .", "it's a superb film .", "you'll laugh , and it ends well !"),
    "neg": ("i hated it .", "it's a dreadful film .", "nobody will laugh ; don't go !"),
}
_FACTS = ("the plot is about a boat .", "it was made in 1930 .", "two sisters meet ( again ) .")


def _review(generator: random.Random, part: str) -> list[str]:
    sentences = [
        *generator.choices(_FACTS, k=generator.randrange(4)),
        *generator.choices(_CLAIMS[part], k=1 + generator.randrange(2)),
    ]
    generator.shuffle(sentences)
    return sentences


def movie_reviews(output: Path, train: int, test: int) -> None:
    """Writes ``pos.txt`` and ``neg.txt``, a document on each line; the reader makes the splits."""
    generator = random.Random(1)
    for part in _CLAIMS:
        write_lines(
            output / f"{part}.txt", ["  ".join(_review(generator, part)) for _ in range((train + 2 * test) // 2)]
        )


def imdb(output: Path, train: int, test: int) -> None:
    """Writes ``aclImdb/{train,test}/{pos,neg}``, a file with markup for each review."""
    generator = random.Random(1)
    for split, size in (("train", train), ("test", test)):
        for part in _CLAIMS:
            for number in range((size + 1) // 2):
                text = (
                    "<br /><br />".join(sentence.capitalize() for sentence in _review(generator, part))
                    .replace(" .", ".")
                    .replace("( again )", "(again) &amp; part")
                )
                write_lines(output / "aclImdb" / split / part / f"{number}_{9 if part == 'pos' else 2}.txt", [text])


# --- agreement -------------------------------------------------------------------------------------------------------

_NOUNS = {"NN": ("key", "door", "author", "lamp"), "NNS": ("keys", "doors", "authors", "lamps")}
_VERBS = {"NN": ("is", "has", "stands"), "NNS": ("are", "have", "stand")}
_TAGS = {"NN": "VBZ", "NNS": "VBP"}


def _clause(generator: random.Random) -> tuple[str, list[str], str, int]:
    """Returns the tree of a sentence, the words of its subject, the tag of its noun, and the number of attractors."""
    tag = generator.choice(("NN", "NNS"))
    tree, words, attractors = f"(NP (DT the) ({tag} {(noun := generator.choice(_NOUNS[tag]))}))", ["the", noun], 0
    for _ in range(generator.randrange(3)):
        other = generator.choice(("NN", "NNS"))
        word = generator.choice(_NOUNS[other])
        tree = f"(NP {tree} (PP (IN near) (NP (DT the) ({other} {word}))))"
        words += ["near", "the", word]
        attractors += other != tag
    verb = generator.choice(_VERBS[tag])
    return f"(ROOT (S {tree} (VP ({_TAGS[tag]} {verb}) (ADVP (RB here))) (. .)))", words, tag, attractors


def agreement(output: Path, train: int, test: int) -> None:
    """Writes ``train.mrg``, ``dev.mrg``, and the test set ``linzen_testset/subj_agr_filtered.{text,gold}``."""
    for name, size, seed in (("train", train, 1), ("dev", test, 2)):
        generator = random.Random(seed)
        write_lines(output / f"{name}.mrg", [_clause(generator)[0] for _ in range(size)])
    generator, sentences, answers = random.Random(3), [], []
    for _ in range(test):
        _, words, tag, attractors = _clause(generator)
        verbs = [_VERBS[number][0] for number in (tag, "NNS" if tag == "NN" else "NN")]
        sentences.append(" ".join([*words, verbs[0], "here . <eos>"]))
        answers.append("\t".join([str(len(words)), *verbs, str(attractors)]))
    folder = output / "linzen_testset"
    write_lines(folder / "subj_agr_filtered.text", sentences)
    write_lines(folder / "subj_agr_filtered.gold", answers)


LAYOUTS = {**toy_glue.LAYOUTS, "imdb": imdb, "movie_reviews": movie_reviews, "sst2": sst, "sst5": sst, "sva": agreement}
