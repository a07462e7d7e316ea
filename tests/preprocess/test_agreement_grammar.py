"""The grammar of sentence beginnings: its lexicon, its numbers and attractors, and what it adds to the natural ones."""

from __future__ import annotations

from collections import Counter

import pytest

from preprocess.agreement_grammar import MAX_ATTRACTORS, Lexicon, count_tags, generate, third_persons
from preprocess.agreement_subjects import PLURAL, SINGULAR
from preprocess.corpora import CorpusError
from tests.preprocess.files import rows
from tests.preprocess.test_agreement import prepare
from tree_fairseq.trees.bracket import read_forest

SINGULARS, PLURALS = ("cat", "tree", "woman"), ("cats", "trees", "women")
TAGGED = Counter(
    {
        **{("NN", word): 9 for word in SINGULARS},
        **{("NNS", word): 9 for word in PLURALS},
        **{("VBP", "carry"): 2, ("VBZ", "carries"): 3, ("VBZ", "alarms"): 3},
        **{("VBD", "saw"): 4, ("VBN", "seen"): 4, ("VBG", "seeing"): 4, ("JJ", "green"): 5, ("NNP", "emma"): 5},
        **{("NN", "once"): 1, ("NN", "fast"): 5, ("JJ", "fast"): 5, ("VBZ", "is"): 50, ("VBP", "are"): 50},
    }
)


def drawn(size, seed=1, excluded=()):
    return list(generate(Lexicon.of(TAGGED), size, seed, excluded))


def nouns(text):
    return [PLURAL if word in PLURALS else SINGULAR for word in text.split() if word in {*SINGULARS, *PLURALS}]


def test_the_lexicon_has_words_whose_tags_are_sure():
    lexicon = Lexicon.of(TAGGED)
    assert {number: words.words for number, words in lexicon.nouns.items()} == {
        SINGULAR: sorted(SINGULARS), PLURAL: sorted(PLURALS),
    }  # fmt: skip
    assert lexicon.present == {"carries": "carry"}
    assert lexicon.others["JJ"].words == ["fast", "green"]


@pytest.mark.parametrize(("verb", "form"), [("make", "makes"), ("go", "goes"), ("carry", "carries")])
def test_third_persons(verb, form):
    assert form in third_persons(verb)


def test_tags_are_counted_in_every_tree_of_a_line():
    counts = Counter()
    count_tags(read_forest("(S (NP (DT The) (NNS Cats)) (VP (VBP see) (NP (NN cat)))) (NP (NNS cats))"), counts)
    assert counts == {("NNS", "cats"): 2, ("VBP", "see"): 1, ("NN", "cat"): 1}


@pytest.mark.parametrize("tag", ["NN", "JJ", "VBZ"])
def test_texts_with_too_few_words_are_refused(tag):
    with pytest.raises(CorpusError, match=f"too few words for --grammar and --generated-test: none is tagged {tag}"):
        Lexicon.of({(each, word): count for (each, word), count in TAGGED.items() if each != tag})


def test_the_same_seed_gives_the_same_beginnings():
    assert drawn(50) == drawn(50) != drawn(50, seed=2)


def test_numbers_and_attractors_are_even():
    counts = Counter((line.name, line.groups) for line in drawn(5000))
    assert len(counts) == 2 * (MAX_ATTRACTORS + 1)
    assert all(400 < count < 600 for count in counts.values())


def test_subjects_and_attractors_are_what_they_are_said_to_be():
    """Without a lead-in, the first noun is the subject, and the others of another number are the attractors."""
    leading = {"in", "for", "with", "on", "at", "by", "after", "before", "during", "if", "when", "because", "while"}
    leading |= {"although", "since", "as", "though", "however", "therefore", "today", "thus", "moreover", "also"}
    leading |= {"i", "we", "you", "they", "he", "she", "it"}
    checked, wrong = 0, 0
    for line in drawn(3000):
        text, (group,) = line.text, line.groups
        if text.split()[0] in leading or len(text.split()) > 24:
            continue
        found = nouns(text)
        checked += 1
        wrong += found[0] != line.name or group != f"attractors_{sum(number != line.name for number in found[1:])}"
    # Three of ten lead-ins begin with a noun phrase, which these counts cannot tell from a subject.
    assert checked > 1000 and wrong < 0.15 * checked


def test_no_text_of_the_test_set_is_generated():
    texts = {line.text for line in drawn(300)}
    assert not texts & {line.text for line in drawn(300, excluded=texts)}


# --- from files to files ---------------------------------------------------------------------------------------------


def write_lexicon(path):
    lines = [f"(X ({tag} {word}))" for (tag, word), count in TAGGED.items() for _ in range(count)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_generated_and_repeated_beginnings_are_added_to_train_alone(toy_agreement, tmp_path):
    words = write_lexicon(tmp_path / "words.mrg")
    flags = ("--training", toy_agreement, words)
    assert prepare(toy_agreement, tmp_path / "plain", *flags) == 0
    assert prepare(toy_agreement, tmp_path / "more", *flags, "--grammar", 40, "--repeat-attractors", 3) == 0
    plain, more = (rows(tmp_path / name, "train") for name in ("plain", "more"))
    natural, generated = more[:-40], more[-40:]
    counted = Counter(natural)
    assert set(counted) == set(plain)
    for row, count in Counter(plain).items():
        numbers = [
            word.endswith("s") for word in row[0].split() if word.rstrip("s") in ("key", "door", "author", "lamp")
        ]
        assert counted[row] == count * (3 if set(numbers) == {True, False} else 1)
    assert {name for _, name in generated} == {SINGULAR, PLURAL}
    for split in ("valid", "test"):
        assert rows(tmp_path / "plain", split) == rows(tmp_path / "more", split)


def test_a_second_test_set_has_other_generated_beginnings(toy_agreement, tmp_path):
    """With so few words, short beginnings would be drawn for both if those of train were not excluded."""
    words = write_lexicon(tmp_path / "words.mrg")
    flags = ("--training", toy_agreement, words, "--grammar", 1000)
    assert prepare(toy_agreement, tmp_path / "one", *flags) == 0
    assert prepare(toy_agreement, tmp_path / "two", *flags, "--generated-test", 300) == 0
    for split in ("train", "valid", "test"):
        assert rows(tmp_path / "one", split) == rows(tmp_path / "two", split)
    assert not (tmp_path / "one" / "test1.tsv").exists()
    texts = {text for text, _ in rows(tmp_path / "two", "test1")}
    groups = (tmp_path / "two" / "test1.groups").read_text().split()
    assert len(rows(tmp_path / "two", "test1")) == len(groups) == 300
    assert set(groups) <= {f"attractors_{number}" for number in range(MAX_ATTRACTORS + 1)} and len(set(groups)) > 1
    assert not texts & {text for split in ("train", "valid", "test") for text, _ in rows(tmp_path / "two", split)}


def test_validation_half_of_which_has_attractors(toy_agreement, tmp_path):
    assert prepare(toy_agreement, tmp_path / "plain") == 0
    assert prepare(toy_agreement, tmp_path / "half", "--valid-attractors", 5) == 0
    plain = Counter(rows(tmp_path / "plain", "train") + rows(tmp_path / "plain", "valid"))
    half = Counter(rows(tmp_path / "half", "train") + rows(tmp_path / "half", "valid"))
    assert not half - plain and len(rows(tmp_path / "half", "train")) == 55
    valid = [text.split() for text, _ in rows(tmp_path / "half", "valid")]
    # In the toy corpus, every third word from the second is a noun.
    mixed = [len({noun.endswith("s") for noun in words[1::3]}) == 2 for words in valid]
    assert sum(mixed) >= 5 and abs(2 * sum(mixed) - len(valid)) <= sum(mixed)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--valid-attractors", 1000), "training examples have attractors"),
        (("--grammar", 10), "too few words for --grammar"),
        (("--generated-test", 10), "too few words for --grammar and --generated-test"),
    ],
)
def test_what_cannot_be_done_is_said(toy_agreement, tmp_path, capsys, flags, message):
    assert prepare(toy_agreement, tmp_path, *flags) == 1
    assert message in capsys.readouterr().err
