"""The grammar: its German is German, its trees are trees of its English, and its corpus is what it says."""

from __future__ import annotations

import random
import re
from itertools import islice

import pytest

from preprocess.english_german import english, german, german_forms
from preprocess.english_german.__main__ import main, pairs
from preprocess.english_german.derivation import (
    TENSES,
    Adverbial,
    Agreement,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Relative,
    Sentence,
    Subordinate,
)
from preprocess.english_german.english import progressive_form, third_person
from preprocess.english_german.lexicon import adjectives, nouns, regular_plural
from preprocess.english_german.sampler import Sampler
from preprocess.english_german.verbs import TABLES, regular_past, verbs
from tests.preprocess.files import lines
from tree_fairseq.trees.bracket import read_tree, write_forest

NOUN = {noun.singular: noun for noun in nouns()}
ADJECTIVE = {adjective.english: adjective for adjective in adjectives()}
SINGULAR, PLURAL = Agreement(3, False), Agreement(3, True)


def verb(base: str, frame: str, particle: str = ""):
    return next(each for each in verbs(frame) if each.base == base and each.particle == particle)


def the(noun: str, *adjective: str, determiner: str = "the", plural: bool = False, **more) -> NounPhrase:
    return NounPhrase(NOUN[noun], plural, determiner, tuple(ADJECTIVE[word] for word in adjective), **more)


def both(clause: Clause) -> tuple[str, str]:
    derivation = Sentence(clause)
    return " ".join(english.sentence(derivation).leaves()), " ".join(german.sentence(derivation))


SEE = verb("see", "transitive")
CALL = verb("call", "transitive")
BARK = verb("bark", "intransitive")
HELP = verb("help", "dative")
MAN, WOMAN, DOG, DOCTOR, THIEF = map(the, ("man", "woman", "dog", "doctor", "thief"))
YESTERDAY = Adverbial("yesterday", "gestern", "NP")
SENTENCES = {
    "accusative": (
        Clause(the("man", "old"), SEE, "present", object=the("dog", "small", determiner="a")),
        "the old man sees a small dog .",
        "der alte Mann sieht einen kleinen Hund .",
    ),
    "dative plural": (
        Clause(WOMAN, verb("thank", "dative"), "present", object=the("child", "good", determiner="two", plural=True)),
        "the woman thanks two good children .",
        "die Frau dankt zwei guten Kindern .",
    ),
    "ditransitive": (
        Clause(
            the("king"),
            verb("give", "ditransitive"),
            "perfect",
            object=the("crown"),
            receiver=the("queen"),
            receiver_first=True,
        ),
        "the king has given the queen the crown .",
        "der König hat der Königin die Krone gegeben .",
    ),
    "separable, perfect": (
        Clause(MAN, CALL, "perfect", object=DOCTOR),
        "the man has called the doctor .",
        "der Mann hat den Arzt angerufen .",
    ),
    "particle": (
        Clause(MAN, verb("pick", "transitive", "up"), "past", object=the("child"), particle_last=True),
        "the man picked the child up .",
        "der Mann holte das Kind ab .",
    ),
    "fronted time": (
        Clause(MAN, SEE, "past", object=the("house"), time=YESTERDAY, time_fronted=True),
        "yesterday the man saw the house .",
        "gestern sah der Mann das Haus .",
    ),
    "subordinate clause": (
        Clause(DOG, BARK, "past", subordinate=Subordinate("because", Clause(MAN, CALL, "past", object=THIEF), False)),
        "the dog barked because the man called the thief .",
        "der Hund bellte , weil der Mann den Dieb anrief .",
    ),
    "fronted clause": (
        Clause(DOG, BARK, "past", subordinate=Subordinate("when", Clause(MAN, CALL, "pluperfect", object=THIEF), True)),
        "when the man had called the thief , the dog barked .",
        "als der Mann den Dieb angerufen hatte , bellte der Hund .",
    ),
    "subject relative": (
        Clause(
            the("man", relative=Relative(Clause(MAN, SEE, "present", object=the("cat")), "subject", "who")),
            verb("laugh", "intransitive"),
            "future",
        ),
        "the man who sees the cat will laugh .",
        "der Mann , der die Katze sieht , wird lachen .",
    ),
    "object relative": (
        Clause(
            the("judge"),
            SEE,
            "present",
            object=the("child", plural=True, relative=Relative(Clause(MAN, HELP, "perfect"), "object", "")),
        ),
        "the judge sees the children the man has helped .",
        "der Richter sieht die Kinder , denen der Mann geholfen hat .",
    ),
    "prepositional relative": (
        Clause(
            the("bus", relative=Relative(Clause(MAN, verb("wait", "prepositional"), "past"), "object", "that")),
            None,
            "past",
            predicate=ADJECTIVE["red"],
        ),
        "the bus that the man waited for was red .",
        "der Bus , auf den der Mann wartete , war rot .",
    ),
    "infinitive": (
        Clause(the("nurse"), verb("try", "infinitive"), "past", complement=Clause(None, CALL, object=DOCTOR)),
        "the nurse tried to call the doctor .",
        "die Krankenschwester versuchte , den Arzt anzurufen .",
    ),
    "that-clause": (
        Clause(
            NounPhrase(pronoun="I"),
            verb("know", "that"),
            "present",
            complement=Clause(DOG, SEE, "can", object=the("bird", plural=True)),
        ),
        "I know that the dog can see the birds .",
        "ich weiß , dass der Hund die Vögel sehen kann .",
    ),
    "nicht": (
        Clause(DOG, verb("follow", "dative"), "past", negated=True, object=MAN),
        "the dog did not follow the man .",
        "der Hund folgte dem Mann nicht .",
    ),
    "kein": (
        Clause(DOG, SEE, "present", negated=True, object=the("man", determiner="a")),
        "the dog does not see a man .",
        "der Hund sieht keinen Mann .",
    ),
    "passive": (
        Clause(the("letter"), verb("write", "transitive"), "past", passive=True, agent=the("student")),
        "the letter was written by the student .",
        "der Brief wurde vom Studenten geschrieben .",
    ),
    "yes-no question": (
        Clause(
            NounPhrase(pronoun="you"),
            verb("eat", "transitive"),
            "present",
            object=the("apple", determiner="a"),
            question="yes-no",
        ),
        "do you eat an apple ?",
        "isst du einen Apfel ?",
    ),
    "question for the dative": (
        Clause(the("girl"), HELP, "past", question="object-person"),
        "who did the girl help ?",
        "wem half das Mädchen ?",
    ),
    "two-way preposition, goal": (
        Clause(MAN, verb("go", "directed"), "perfect", goal=PrepositionalPhrase("into", the("house"))),
        "the man has gone into the house .",
        "der Mann ist ins Haus gegangen .",
    ),
    "garden path": (
        Clause(
            NounPhrase(determiner="the", nominalized="old"), verb("man", "transitive"), "present", object=the("boat")
        ),
        "the old man the boat .",
        "die Alten bemannen das Boot .",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_sentence(name):
    clause, source, target = SENTENCES[name]
    assert both(clause) == (source, target)


def test_only_the_tree_tells_where_a_prepositional_phrase_belongs():
    telescope = PrepositionalPhrase("with", the("telescope"))
    instrument = Clause(MAN, SEE, "past", object=the("girl"), instrument=telescope)
    attribute = Clause(MAN, SEE, "past", object=the("girl", modifier=telescope))
    assert both(instrument)[0] == both(attribute)[0] == "the man saw the girl with the telescope ."
    assert both(instrument)[1] == "der Mann sah mit dem Fernrohr das Mädchen ."
    assert both(attribute)[1] == "der Mann sah das Mädchen mit dem Fernrohr ."
    assert english.sentence(Sentence(instrument)) != english.sentence(Sentence(attribute))
    assert write_forest((english.sentence(Sentence(instrument)),)) == (
        "(ROOT (S (NP (DT the) (NN man)) (VP (VBD saw) (NP (DT the) (NN girl)) (PP (IN with) (NP (DT the) (NN "
        "telescope)))) (. .)))"
    )


@pytest.mark.parametrize(
    ("infinitive", "subject", "present", "past"),
    [
        ("arbeiten", SINGULAR, "arbeitet", "arbeitete"),
        ("lächeln", Agreement(1, False), "lächle", "lächelte"),
        ("tanzen", Agreement(2, False), "tanzt", "tanztest"),
        ("zeichnen", SINGULAR, "zeichnet", "zeichnete"),
        ("umarmen", SINGULAR, "umarmt", "umarmte"),
        ("füttern", PLURAL, "füttern", "fütterten"),
        ("sein", Agreement(2, False), "bist", "warst"),
        ("haben", PLURAL, "haben", "hatten"),
    ],
)
def test_weak_and_auxiliary_verbs(infinitive, subject, present, past):
    assert german_forms.present(infinitive, "", subject) == present
    assert german_forms.preterite(infinitive, "", subject) == past


@pytest.mark.parametrize(
    ("base", "frame", "particle", "second", "past", "participle"),
    [
        ("read", "transitive", "", "liest", "lasest", "gelesen"),
        ("hold", "transitive", "", "hältst", "hieltest", "gehalten"),
        ("invite", "transitive", "", "lädst", "ludst", "eingeladen"),
        ("eat", "transitive", "", "isst", "aßest", "gegessen"),
        ("photograph", "transitive", "", "fotografierst", "fotografiertest", "fotografiert"),
        ("visit", "transitive", "", "besuchst", "besuchtest", "besucht"),
        ("open", "transitive", "", "machst", "machtest", "aufgemacht"),
        ("know", "that", "", "weißt", "wusstest", "gewusst"),
        ("bark", "intransitive", "", "bellst", "belltest", "gebellt"),
        ("obey", "dative", "", "gehorchst", "gehorchtest", "gehorcht"),
    ],
)
def test_second_person_and_participle(base, frame, particle, second, past, participle):
    found, du = verb(base, frame, particle), Agreement(2, False)
    assert german_forms.present(found.infinitive, found.third, du) == second
    assert german_forms.preterite(found.infinitive, found.preterite, du) == past
    assert german_forms.participle(found) == participle


def test_english_forms():
    assert [third_person(base) for base in ("go", "carry", "catch", "play")] == ["goes", "carries", "catches", "plays"]
    assert [regular_past(base) for base in ("love", "carry", "play")] == ["loved", "carried", "played"]
    verbs_of = (("lie", "located"), ("write", "transitive"), ("see", "transitive"), ("hug", "transitive"))
    assert [progressive_form(verb(*each)) for each in verbs_of] == ["lying", "writing", "seeing", "hugging"]
    plurals = {"cherry": "cherries", "boy": "boys", "box": "boxes", "church": "churches"}
    assert {noun: regular_plural(noun) for noun in plurals} == plurals


def test_every_class_that_a_verb_or_an_adjective_asks_for_has_nouns():
    known = {kind for noun in nouns() for kind in noun.classes} | {"any", "source"}
    asked = {kind for adjective in adjectives() for kind in adjective.classes}
    for frame in TABLES:
        for each in verbs(frame):
            asked |= each.subjects | each.objects | each.instruments
    assert asked <= known


def test_twenty_thousand_distinct_pairs_and_a_real_vocabulary():
    drawn = [(" ".join(tree.leaves()), sentence) for tree, sentence in islice(pairs(seed=1, max_length=24), 20_000)]
    assert len({source for source, _ in drawn}) == 20_000
    assert len({word for source, _ in drawn for word in source.split()}) > 800
    assert len({word for _, target in drawn for word in target.split()}) > 1_500
    assert max(len(line.split()) for pair in drawn for line in pair) <= 24
    for _, target in drawn:
        assert re.search(r", ,|, [.?]|^,", target) is None
        assert len(re.findall(r"[.?]", target)) == 1 and target[-1] in ".?"


def test_every_tense_and_clause_is_drawn():
    text = " ".join(sentence for _, sentence in islice(pairs(seed=3, max_length=30), 3_000))
    sampler = Sampler(random.Random(3))
    tenses = {sampler.sentence().clause.tense for _ in range(2_000)}
    assert tenses == set(TENSES) - {"pluperfect"}  # which belongs to subordinate clauses
    for word in "hatte dass ob weil nachdem zu denen nicht kein wurde wem warum einem den zurück".split():
        assert f" {word} " in text, word


PENN = set(
    "ROOT S SBAR SBARQ SQ NP VP PP ADVP ADJP PRT WHNP WHADVP DT PRP PRP$ NN NNS NNP JJ IN TO CD CC RB RP MD VB VBD "
    "VBG VBN VBP VBZ WP WDT WRB . ,".split()
)


def test_trees_are_well_formed():
    for tree, _ in islice(pairs(seed=4, max_length=40), 1_000):
        assert read_tree(write_forest((tree,))) == tree
        assert tree.label == "ROOT" and len(tree.children) == 1
        for node in tree.preorder():
            if not node.is_leaf:
                assert node.label in PENN
                assert node.is_preterminal or not any(child.is_leaf for child in node.children)


def test_command_line_is_deterministic_and_its_splits_are_apart(tmp_path):
    arguments = ["--train", "300", "--valid", "40", "--test", "50"]
    main(["--out", str(tmp_path / "a"), *arguments])
    main(["--out", str(tmp_path / "b"), *arguments])
    main(["--out", str(tmp_path / "c"), *arguments, "--seed", "9"])
    kinds, counts = ("en", "de", "en.trees"), {"train": 300, "valid": 40, "test": 50}
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {f"{split}.{kind}" for split in counts for kind in kinds}
    seen: set[str] = set()
    for split, count in counts.items():
        sources, targets, trees = (lines(tmp_path / "a" / f"{split}.{kind}") for kind in kinds)
        assert len(sources) == len(targets) == len(trees) == count
        assert [" ".join(read_tree(tree).leaves()) for tree in trees] == sources
        assert not seen & set(sources)
        seen |= set(sources)
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a" / "train.en").read_bytes() != (tmp_path / "c" / "train.en").read_bytes()
