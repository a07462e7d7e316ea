"""German inflection: articles, adjectives, nouns, pronouns and verbs."""

from __future__ import annotations

from preprocess.english_german.derivation import Agreement
from preprocess.english_german.lexicon import Adjective, Noun
from preprocess.english_german.verbs import Verb

# Endings by case, in the order masculine, feminine, neuter, plural.
GENDERS = "mfnp"
DEFINITE = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
}
STRONG = {"nom": ("er", "e", "es", "e"), "acc": ("en", "e", "es", "e"), "dat": ("em", "er", "em", "en")}
POSSESSIVE = {"nom": ("", "e", "", "e"), "acc": ("en", "e", "", "e"), "dat": ("em", "er", "em", "en")}
WEAK = {"nom": ("e", "e", "e", "en"), "acc": ("en", "e", "e", "en"), "dat": ("en", "en", "en", "en")}
MIXED = {"nom": ("er", "e", "es", "en"), "acc": ("en", "e", "es", "en"), "dat": ("en", "en", "en", "en")}
RELATIVE = {**DEFINITE, "dat": ("dem", "der", "dem", "denen")}

# English determiner -> German stem and the endings it takes, and the endings of an adjective after it.
STEMS = {
    "this": ("dies", STRONG, WEAK),
    "these": ("dies", STRONG, WEAK),
    "every": ("jed", STRONG, WEAK),
    "all": ("all", STRONG, WEAK),
    "a": ("ein", POSSESSIVE, MIXED),
    "no": ("kein", POSSESSIVE, MIXED),
    "my": ("mein", POSSESSIVE, MIXED),
    "your": ("dein", POSSESSIVE, MIXED),
    "his": ("sein", POSSESSIVE, MIXED),
    "her": ("ihr", POSSESSIVE, MIXED),
    "our": ("unser", POSSESSIVE, MIXED),
    "their": ("ihr", POSSESSIVE, MIXED),
    "some": ("einig", STRONG, STRONG),
    "many": ("viel", STRONG, STRONG),
}
NUMERALS = {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
PRONOUNS = {
    "I": ("ich", "mich", "mir"),
    "you": ("du", "dich", "dir"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "we": ("wir", "uns", "uns"),
    "they": ("sie", "sie", "ihnen"),
}
CASES = ("nom", "acc", "dat")
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("an", "dem"): "am",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
    ("auf", "das"): "aufs",
}
INSEPARABLE = ("be", "er", "ver", "ent", "zer", "ge", "um")

# First, second, third person singular, plural.
IRREGULAR_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind"),
    "haben": ("habe", "hast", "hat", "haben"),
    "werden": ("werde", "wirst", "wird", "werden"),
    "können": ("kann", "kannst", "kann", "können"),
    "müssen": ("muss", "musst", "muss", "müssen"),
    "sollen": ("sollte", "solltest", "sollte", "sollten"),
    "dürfen": ("darf", "darfst", "darf", "dürfen"),
    "wissen": ("weiß", "weißt", "weiß", "wissen"),
}
IRREGULAR_PAST = {"sein": "war", "haben": "hatte", "werden": "wurde"}


def column(gender: str, plural: bool) -> int:
    """Returns the index into a row of endings."""
    return GENDERS.index("p" if plural else gender)


def determiner(english: str, case: str, gender: str, plural: bool) -> str:
    """Returns the German determiner for an English one or "": ("the", "dat", "f", False) -> "der"."""
    index = column(gender, plural)
    if english == "the":
        return DEFINITE[case][index]
    if english in NUMERALS:
        return NUMERALS[english]
    if not english:
        return ""
    stem, endings, _ = STEMS[english]
    return stem + endings[case][index]


def adjective(value: Adjective, english_determiner: str, case: str, gender: str, plural: bool) -> str:
    """An attributive adjective with the ending that its determiner asks for."""
    if english_determiner == "the":
        endings = WEAK
    elif english_determiner in STEMS:
        endings = STEMS[english_determiner][2]
    else:
        endings = STRONG
    return value.stem + endings[case][column(gender, plural)]


def noun(value: Noun, case: str, plural: bool) -> str:
    """Returns a noun in its case.

    Dative plurals end in -n (unless in -s), and weak nouns change in the singular, too.
    """
    if not plural:
        return value.german_plural if value.weak and case != "nom" else value.german
    form = value.german_plural
    return form + "n" if case == "dat" and not form.endswith(("n", "s")) else form


def pronoun(english: str, case: str) -> str:
    """Returns the personal pronoun for an English nominative."""
    return PRONOUNS[english][CASES.index(case)]


def relative_pronoun(case: str, gender: str, plural: bool) -> str:
    """Returns a relative pronoun: der, die, das, ... denen."""
    return RELATIVE[case][column(gender, plural)]


def contract(words: list[str]) -> list[str]:
    """Contracts the beginning of a prepositional phrase: in dem -> im."""
    short = CONTRACTIONS.get(tuple(words[:2]))
    return [short, *words[2:]] if short else words


def stem(infinitive: str) -> str:
    """Returns the stem of a verb: arbeiten -> arbeit, lächeln -> lächel, füttern -> fütter."""
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


def _links(stem_: str) -> str:
    """Returns the e between a stem in -d, -t or a heavy cluster and an ending in -s or -t: arbeit-e-t, zeichn-e-t."""
    heavy = stem_[-1] in "mn" and stem_[-2] not in "aeiouäöülmnrh"
    return "e" if stem_[-1] in "dt" or heavy or stem_.endswith("chn") else ""


def second_person(third_stem: str) -> str:
    """Adds the ending -st, which is shortened after a sibilant: du siehst, du sitzt."""
    return third_stem + ("t" if third_stem.endswith(("s", "ß", "z", "x")) else "st")


def present(infinitive: str, third: str, subject: Agreement) -> str:
    """Returns the present tense; ``third`` is the irregular third person singular, or ""."""
    if infinitive in IRREGULAR_PRESENT:
        return IRREGULAR_PRESENT[infinitive][3 if subject.plural else subject.person - 1]
    base = stem(infinitive)
    if subject.plural:
        return infinitive
    if subject.person == 1:
        return (base[:-2] + "l" if base.endswith("el") else base) + "e"
    if third:
        # hält, du hältst; lädt, du lädst; sieht, du siehst.
        vowel = third if base.endswith("t") else third[:-1]
        return third if subject.person == 3 else second_person(vowel)
    base += _links(base)
    return base + "t" if subject.person == 3 else second_person(base)


def preterite(infinitive: str, strong: str, subject: Agreement) -> str:
    """Returns the past tense; ``strong`` is the first person singular of a strong verb, or ""."""
    base = IRREGULAR_PAST.get(infinitive, strong)
    if not base:
        root = stem(infinitive)
        base = root + _links(root) + "te"
    if subject.plural:
        return base + ("n" if base.endswith("e") else "en")
    if subject.person != 2:
        return base
    if base.endswith(("s", "ß", "t")):
        return base + "est"
    return base + "st"


def participle(verb: Verb) -> str:
    """Returns the past participle with its prefix: angerufen, besucht, fotografiert."""
    if verb.german_participle:
        return verb.prefix + verb.german_participle
    root = stem(verb.infinitive)
    bare = verb.infinitive.endswith("ieren") or (not verb.prefix and _inseparable(verb.infinitive))
    return verb.prefix + ("" if bare else "ge") + root + _links(root) + "t"


def _inseparable(infinitive: str) -> bool:
    """Returns whether the verb begins with an unstressed prefix, before at least five letters (not beten, geben)."""
    prefix = next((part for part in INSEPARABLE if infinitive.startswith(part)), "")
    return bool(prefix) and len(infinitive) - len(prefix) > 4


def zu_infinitive(verb: Verb) -> list[str]:
    """Returns the infinitive with zu: zu rufen, but anzurufen."""
    return [f"{verb.prefix}zu{verb.infinitive}"] if verb.prefix else ["zu", verb.infinitive]
