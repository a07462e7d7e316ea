"""Tiny made-up data sets of texts and their classes, in the files of the published ones (``run.sh --toy``).

Sentiment is the sum of a few words' values, turned round by "not"; verbs agree with the first noun of their subject.
There are sentences of one word, documents of several sentences, and attractors. In GLUE's tasks, a sentence is
acceptable if its verb agrees with its subject, an adjective shows whether a film is good, and the similarity of two
sentences is the number of parts that they share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

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


# --- GLUE -------------------------------------------------------------------------------------------------------------

_GLUE_NOUNS = (("The dog", "sleeps"), ("The dogs", "sleep"), ("My sister", "sings"), ("Two men", "sing"))
_ENDS = ("here.", "at night.", "in the boat.", "because they didn't.")
_FILMS = (("superb", 1), ("moving", 1), ("dull", 0), ("weak", 0))


def _sentence(generator: random.Random) -> tuple[str, int]:
    (noun, verb), (_, other), end = (
        generator.choice(_GLUE_NOUNS),
        generator.choice(_GLUE_NOUNS),
        generator.choice(_ENDS),
    )
    return f"{noun} {other} {end}", int(verb == other)


def _pair(generator: random.Random) -> tuple[str, str, int]:
    """Returns two sentences, and how many of their three parts are the same."""
    rows = [(*generator.choice(_GLUE_NOUNS), generator.choice(_ENDS)) for _ in range(2)]
    return " ".join(rows[0]), " ".join(rows[1]), sum(left == right for left, right in zip(*rows))


def _cola(generator: random.Random) -> str:
    sentence, label = _sentence(generator)
    return f"made\t{label}\t{'' if label else '*'}\t{sentence}"


def _sst2(generator: random.Random) -> str:
    word, label = generator.choice(_FILMS)
    return f"a {word} film \t{label}"


def _paraphrase(generator: random.Random) -> str:
    first, second, shared = _pair(generator)
    return f"{int(shared > 1)}\t1\t2\t{first}\t{second}"


def _similarity(generator: random.Random) -> str:
    first, second, shared = _pair(generator)
    return f"made\tup\t2023\t1\t{5 * shared / 3:.3f}\t{first}\t{second}"


def _entailment(labels: tuple[str, str, str]) -> Callable[[random.Random], str]:
    def row(generator: random.Random) -> str:
        first, second, shared = _pair(generator)
        return f"1\t{first}\t{second}\t{labels[min(shared, 2)]}"

    return row


_MNLI = _entailment(("contradiction", "neutral", "entailment"))
_SICK = _entailment(("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))


def _layout(
    files: dict[str, bool], row: Callable[[random.Random], str], head: str = ""
) -> Callable[[Path, int, int], None]:
    """Returns a function that writes the given files; the values of ``files`` mark training files."""

    def lines(size: int, seed: int) -> Iterator[str]:
        generator = random.Random(seed)
        if head:
            yield head
        yield from (row(generator) for _ in range(size))

    def write(output: Path, train: int, test: int) -> None:
        for seed, (name, is_train) in enumerate(files.items()):
            write_lines(output / name, lines(train if is_train else test, seed))

    return write


_PLAIN = {"train.tsv": True, "dev.tsv": False}


LAYOUTS = {
    "imdb": imdb,
    "movie_reviews": movie_reviews,
    "sst2": sst,
    "sst5": sst,
    "sva": agreement,
    "glue_cola": _layout(_PLAIN, _cola),
    "glue_sst2": _layout(_PLAIN, _sst2, "sentence\tlabel"),
    "glue_mrpc": _layout(_PLAIN, _paraphrase, "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"),
    "glue_stsb": _layout({"sts-train.csv": True, "sts-dev.csv": False}, _similarity),
    "glue_mnli": _layout(
        {"train.tsv": True, "dev_matched.tsv": False, "dev_mismatched.tsv": False},
        _MNLI,
        "index\tsentence1\tsentence2\tgold_label",
    ),
    "glue_sick": _layout(
        {"SICK_train.txt": True, "SICK_test_annotated.txt": False},
        _SICK,
        "pair_ID\tsentence_A\tsentence_B\tentailment_judgment",
    ),
}
