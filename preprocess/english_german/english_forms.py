"""English inflection: articles, nouns, verbs and their chains of auxiliaries, with the treebank's tags."""

from __future__ import annotations

from preprocess.english_german.derivation import Agreement, Clause
from preprocess.english_german.lexicon import Noun
from preprocess.english_german.verbs import Verb

DETERMINERS = {
    **dict.fromkeys(("the", "a", "this", "these", "every", "some", "all", "no"), "DT"),
    **dict.fromkeys(("my", "your", "his", "her", "our", "their"), "PRP$"),
    **dict.fromkeys(("two", "three", "four", "five"), "CD"),
    "many": "JJ",
}
OBJECT_PRONOUNS = {"I": "me", "you": "you", "he": "him", "she": "her", "we": "us", "they": "them"}
TO = {"to": "TO"}
MODALS = {"future": "will", "can": "can", "must": "must", "should": "should", "may": "may"}


def article(following: str) -> str:
    """Returns the indefinite article before a word."""
    return "an" if following[0] in "aeiou" else "a"


def noun_form(noun: Noun, plural: bool) -> str:
    """Returns the singular or the plural."""
    return noun.plural if plural else noun.singular


def third_person(base: str) -> str:
    """Returns the third person singular: catch -> catches, carry -> carries, go -> goes, see -> sees."""
    if base.endswith(("s", "x", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def progressive_form(verb: Verb) -> str:
    """Returns the form in -ing: lie -> lying, write -> writing, hug -> hugging."""
    if verb.base.endswith("ie"):
        return verb.base[:-2] + "ying"
    if verb.doubles:
        return verb.base + verb.base[-1] + "ing"
    if verb.base.endswith("e") and not verb.base.endswith("ee"):
        return verb.base[:-1] + "ing"
    return verb.base + "ing"


def _finite(verb: Verb | None, past: bool, subject: Agreement) -> tuple[str, str]:
    """Returns tag and form of a finite verb; None means "be"."""
    third = subject.person == 3 and not subject.plural
    if verb is None:
        if past:
            return "VBD", "were" if subject.plural or subject.person == 2 else "was"
        if third:
            return "VBZ", "is"
        return "VBP", "am" if subject == Agreement(1, False) else "are"
    if past:
        return "VBD", verb.past
    return ("VBZ", third_person(verb.base)) if third else ("VBP", verb.base)


def auxiliaries(clause: Clause, subject: Agreement, needs_auxiliary: bool = False) -> list[tuple[str, str]]:
    """Returns tags and forms from the finite verb to the main verb: [("VBZ", "has"), ("VBN", "seen")].

    Args:
        clause: determines the verb (None: the copula), tense, progressive and passive
        subject: person and number of the subject
        needs_auxiliary: whether a full verb gets "do", as in a negation or a question
    """
    third = subject.person == 3 and not subject.plural
    head, main = clause.verb, []
    if clause.passive or clause.progressive:
        main = [("VBN", head.participle) if clause.passive else ("VBG", progressive_form(head))]
        head = None
    base, participle = ("be", "been") if head is None else (head.base, head.participle)
    if clause.tense in MODALS:
        return [("MD", MODALS[clause.tense]), ("VB", base), *main]
    if clause.tense == "pluperfect":
        return [("VBD", "had"), ("VBN", participle), *main]
    if clause.tense == "perfect":
        return [("VBZ", "has") if third else ("VBP", "have"), ("VBN", participle), *main]
    past = clause.tense == "past"
    if head is None or not needs_auxiliary:
        return [_finite(head, past, subject), *main]
    do = ("VBD", "did") if past else ("VBZ", "does") if third else ("VBP", "do")
    return [do, ("VB", base)]
