"""The German side: converts derivations to words in German order, verb second or verb last."""

from __future__ import annotations

from dataclasses import replace

from preprocess.english_german import german_forms as forms
from preprocess.english_german.derivation import (
    Agreement,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Relative,
    Sentence,
    agreement,
)
from preprocess.english_german.lexicon import NOMINALIZED, Adjective

COMMA = ","
PREPOSITIONS = {
    "with": ("mit", "dat"),
    "without": ("ohne", "acc"),
    "from": ("aus", "dat"),
    "out of": ("aus", "dat"),
    "in": ("in", "dat"),
    "into": ("in", "acc"),
    "on": ("auf", "dat"),
    "onto": ("auf", "acc"),
    "to": ("zu", "dat"),
    "behind": ("hinter", "dat"),
    "in front of": ("vor", "dat"),
    "next to": ("neben", "dat"),
    "under": ("unter", "dat"),
    "about": ("über", "acc"),
    "for": ("für", "acc"),
    "by": ("von", "dat"),
    "through": ("durch", "acc"),
}
CONJUNCTIONS = {
    "because": "weil",
    "although": "obwohl",
    "while": "während",
    "before": "bevor",
    "after": "nachdem",
    "if": "wenn",
}
MODALS = {"can": "können", "must": "müssen", "should": "sollen", "may": "dürfen"}
QUESTION_WORDS = {"where": "wo", "why": "warum", "when": "wann", "subject": "wer", "object": "was"}
INTERROGATIVE = {"nom": "wer", "acc": "wen", "dat": "wem"}


def noun_phrase(phrase: NounPhrase, case: str) -> list[str]:
    """Returns the words of a noun phrase in ``case``, with its modifiers and its coordinated phrase."""
    words = _core(phrase, case)
    if phrase.modifier is not None:
        words = words + prepositional_phrase(phrase.modifier)
    if phrase.relative is not None:
        words = words + relative(phrase.relative, phrase)
    if phrase.conjunct is not None:
        words = words + ["und", *noun_phrase(phrase.conjunct, case)]
    return words


def _core(phrase: NounPhrase, case: str) -> list[str]:
    if phrase.pronoun:
        return [forms.pronoun(phrase.pronoun, case)]
    if phrase.name:
        return [phrase.name]
    if phrase.nominalized:
        return [forms.determiner("the", case, "m", True), NOMINALIZED[phrase.nominalized]]
    gender, plural = phrase.noun.gender, phrase.plural
    determiner = forms.determiner(phrase.determiner, case, gender, plural)
    adjectives = [forms.adjective(value, phrase.determiner, case, gender, plural) for value in phrase.adjectives]
    return ([determiner] if determiner else []) + adjectives + [forms.noun(phrase.noun, case, plural)]


def prepositional_phrase(phrase: PrepositionalPhrase, goal: bool = False) -> list[str]:
    """Returns the words of a prepositional phrase; ``goal`` selects the accusative of direction."""
    preposition, case = PREPOSITIONS[phrase.preposition]
    if goal and phrase.preposition in ("in", "on", "under", "behind", "in front of", "next to"):
        case = "acc"
    return forms.contract([preposition, *noun_phrase(phrase.noun_phrase, case)])


def relative(clause: Relative, head: NounPhrase) -> list[str]:
    """Returns a relative clause between commas; the pronoun has the gender of the head and the case of the gap."""
    case = "nom" if clause.gap == "subject" else clause.clause.verb.german_case
    pronoun = forms.relative_pronoun(case, head.noun.gender, head.plural)
    introduced = [pronoun]
    if clause.gap == "object" and clause.clause.verb.german_preposition:
        introduced = [clause.clause.verb.german_preposition, pronoun]
    return [COMMA, *introduced, *verb_last(clause.clause, subject_outside=clause.gap == "subject"), COMMA]


def verbs(clause: Clause, subject: Agreement) -> tuple[str, list[str]]:
    """Returns the finite verb without its separable prefix, and the words of the right bracket before a final verb.

    In a simple tense, the bracket of a separable verb contains only the prefix: ("ruft", ["an"]).
    """
    verb, tense = clause.verb, clause.tense
    infinitive = "sein" if verb is None else verb.prefix + verb.infinitive
    participle = "gewesen" if verb is None else forms.participle(verb)
    if clause.passive:
        participle, infinitive = f"{participle} worden", f"{participle} werden"
    if tense in ("perfect", "pluperfect"):
        sein = clause.passive or verb is None or verb.perfect_with_sein
        inflect = forms.present if tense == "perfect" else forms.preterite
        return inflect("sein" if sein else "haben", "", subject), participle.split()
    if tense in MODALS or tense == "future":
        return forms.present(MODALS.get(tense, "werden"), "", subject), infinitive.split()
    auxiliary = "werden" if clause.passive else "sein" if verb is None else ""
    past = tense == "past"
    if auxiliary:
        finite = forms.preterite(auxiliary, "", subject) if past else forms.present(auxiliary, "", subject)
        return finite, forms.participle(verb).split() if clause.passive else []
    if past:
        return forms.preterite(verb.infinitive, verb.preterite, subject), [verb.prefix] if verb.prefix else []
    return forms.present(verb.infinitive, verb.third, subject), [verb.prefix] if verb.prefix else []


def _is_pronoun(phrase: NounPhrase | None) -> bool:
    return phrase is not None and bool(phrase.pronoun) and phrase.conjunct is None


def _negated(phrase: NounPhrase | None) -> tuple[NounPhrase | None, bool]:
    """Negates an indefinite phrase with "kein"; the flag is True if "nicht" is not needed any more."""
    indefinite = phrase is not None and phrase.noun is not None and phrase.determiner in ("a", "")
    return (replace(phrase, determiner="no"), True) if indefinite else (phrase, False)


def middle_field(clause: Clause) -> list[str]:
    """Returns the words between the subject and the right bracket, without the finite verb."""
    verb, thing, absorbed = clause.verb, clause.object, False
    complement = clause.predicate
    prepositional = verb is not None and bool(verb.german_preposition)
    if clause.negated and not prepositional:
        thing, absorbed = _negated(thing)
    if clause.negated and isinstance(complement, NounPhrase):
        complement, absorbed = _negated(complement)
    case = verb.german_case if verb is not None else "acc"
    bare = None if prepositional else thing
    words = noun_phrase(bare, case) if _is_pronoun(bare) else []
    words += noun_phrase(clause.receiver, "dat") if _is_pronoun(clause.receiver) else []
    if clause.time is not None and not clause.time_fronted:
        words += clause.time.german.split()
    words += clause.frequency.german.split() if clause.frequency is not None else []
    for free in (clause.instrument, clause.place):
        words += prepositional_phrase(free) if free is not None else []
    if clause.receiver is not None and not _is_pronoun(clause.receiver):
        words += noun_phrase(clause.receiver, "dat")
    words += noun_phrase(bare, case) if bare is not None and not _is_pronoun(bare) else []
    words += prepositional_phrase(PrepositionalPhrase("by", clause.agent)) if clause.agent is not None else []
    words += clause.manner.german.split() if clause.manner is not None else []
    words += ["nicht"] if clause.negated and not absorbed else []
    if prepositional and thing is not None:
        words += forms.contract([verb.german_preposition, *noun_phrase(thing, verb.german_case)])
    words += prepositional_phrase(clause.goal, goal=verb.frame == "placed") if clause.goal is not None else []
    return words + _predicate(complement)


def _predicate(value: Adjective | NounPhrase | None) -> list[str]:
    if value is None:
        return []
    return [value.german] if isinstance(value, Adjective) else noun_phrase(value, "nom")


def after_field(clause: Clause) -> list[str]:
    """Returns the words after the right bracket: the complement and an adverbial clause that is not fronted."""
    words: list[str] = []
    if clause.complement is not None:
        words += [COMMA, *complement(clause), COMMA]
    if clause.subordinate is not None and not clause.subordinate.fronted:
        words += [COMMA, *subordinate(clause), COMMA]
    return words


def complement(clause: Clause) -> list[str]:
    """Returns a dass-clause, an ob-clause or an infinitive with zu, which follows the prefix of a separable verb."""
    inner = clause.complement
    if clause.verb.frame == "infinitive":
        return [*middle_field(inner), *forms.zu_infinitive(inner.verb), *after_field(inner)]
    return ["dass" if clause.verb.frame == "that" else "ob", *verb_last(inner)]


def subordinate(clause: Clause) -> list[str]:
    """Returns an adverbial clause; "when" is "als" for a single past event and "wenn" otherwise."""
    conjunction, inner = clause.subordinate.conjunction, clause.subordinate.clause
    when = "als" if inner.tense in ("past", "pluperfect") else "wenn"
    return [CONJUNCTIONS.get(conjunction, when), *verb_last(inner)]


def _subject(clause: Clause) -> list[str]:
    return [] if clause.subject is None else noun_phrase(clause.subject, "nom")


def _agreement(clause: Clause) -> Agreement:
    return Agreement(3, False) if clause.subject is None else agreement(clause.subject)


def verb_last(clause: Clause, subject_outside: bool = False) -> list[str]:
    """Returns a clause that ends with its finite verb and separable prefix, without the conjunction."""
    subject = _agreement(clause)
    opening = [] if subject_outside else _subject(clause)
    fronted = clause.time.german.split() if clause.time is not None and clause.time_fronted else []
    words = [*opening, *fronted, *_bracketed(clause, subject)]
    if clause.conjunct is not None:
        words += ["und", *_bracketed(clause.conjunct, subject)]
    return words + after_field(clause)


def _bracketed(clause: Clause, subject: Agreement) -> list[str]:
    finite, bracket = verbs(clause, subject)
    if clause.verb is not None and bracket == [clause.verb.prefix]:
        return [*middle_field(clause), clause.verb.prefix + finite]
    return [*middle_field(clause), *bracket, finite]


def verb_second(clause: Clause, first: list[str] | None = None) -> list[str]:
    """Returns a main clause.

    Args:
        first: the words before the finite verb. None means the fronted part of the clause (an adverbial clause or a
            time), or else the subject. An empty list puts the verb first.
    """
    subject = _agreement(clause)
    opening = first
    if first is None and clause.subordinate is not None and clause.subordinate.fronted:
        opening = [*subordinate(clause), COMMA]
    elif first is None and clause.time is not None and clause.time_fronted:
        opening = clause.time.german.split()
    finite, bracket = verbs(clause, subject)
    placed = [*_subject(clause), finite] if opening is None else [*opening, finite, *_subject(clause)]
    words = [*placed, *middle_field(clause), *bracket]
    if clause.conjunct is not None:
        finite, bracket = verbs(clause.conjunct, subject)
        words += ["und", finite, *middle_field(clause.conjunct), *bracket]
    return words + after_field(clause)


def _question(clause: Clause) -> list[str]:
    if clause.question == "yes-no":
        return verb_second(clause, [])
    if clause.question == "object-person":
        preposition = [clause.verb.german_preposition] if clause.verb.german_preposition else []
        return verb_second(clause, [*preposition, INTERROGATIVE[clause.verb.german_case]])
    return verb_second(clause, [QUESTION_WORDS[clause.question]])


def _punctuated(words: list[str], end: str) -> list[str]:
    """Merges adjacent commas, and removes them at the start and before the final mark."""
    kept: list[str] = []
    for word in [*words, end]:
        if word == COMMA and (not kept or kept[-1] == COMMA):
            continue
        if word == end and kept[-1] == COMMA:
            kept.pop()
        kept.append(word)
    return kept


def sentence(derivation: Sentence) -> list[str]:
    """Returns the words of the whole sentence."""
    clause = derivation.clause
    if clause.question:
        return _punctuated(_question(clause), "?")
    words = verb_second(clause)
    if derivation.second is not None:
        joined = [COMMA, "aber"] if derivation.conjunction == "but" else ["und"]
        words += [*joined, *verb_second(derivation.second)]
    return _punctuated(words, ".")
