"""The English side: inflection, and trees in the style of the Penn Treebank from derivations."""

from __future__ import annotations

from preprocess.english_german.derivation import (
    Adverbial,
    Agreement,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Relative,
    Sentence,
    agreement,
)
from preprocess.english_german.lexicon import Adjective
from preprocess.english_german.verbs import Verb
from tree_fairseq.trees.tree import Tree

SUBORDINATORS = {"when": ("WHADVP", "WRB")}
QUESTION_ADVERBS = ("where", "why", "when")
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


def word(tag: str, form: str) -> Tree:
    """Returns a preterminal over its word."""
    return Tree(tag, [Tree(form)])


def noun_phrase(phrase: NounPhrase, objective: bool = False) -> Tree:
    """Returns an NP. The innermost NP has the noun and its adjectives; each modifier adds an NP around it."""
    tree = Tree("NP", _core(phrase, objective))
    if phrase.modifier is not None:
        tree = Tree("NP", [tree, prepositional_phrase(phrase.modifier)])
    if phrase.relative is not None:
        tree = Tree("NP", [tree, relative(phrase.relative)])
    if phrase.conjunct is not None:
        tree = Tree("NP", [tree, word("CC", "and"), noun_phrase(phrase.conjunct, objective)])
    return tree


def _core(phrase: NounPhrase, objective: bool) -> list[Tree]:
    if phrase.pronoun:
        return [word("PRP", OBJECT_PRONOUNS[phrase.pronoun] if objective else phrase.pronoun)]
    if phrase.name:
        return [word("NNP", phrase.name)]
    if phrase.nominalized:
        return [word("DT", phrase.determiner), word("NNS", phrase.nominalized)]
    adjectives = [word("JJ", adjective.english) for adjective in phrase.adjectives]
    noun = word("NNS", phrase.noun.plural) if phrase.plural else word("NN", phrase.noun.singular)
    following = (adjectives + [noun])[0].children[0].label
    determiner = article(following) if phrase.determiner == "a" else phrase.determiner
    determiners = [word(DETERMINERS[phrase.determiner], determiner)] if determiner else []
    return determiners + adjectives + [noun]


def prepositional_phrase(phrase: PrepositionalPhrase) -> Tree:
    """Returns a PP; "in front of", "out of" and "next to" are nested phrases as in the treebank."""
    governed = noun_phrase(phrase.noun_phrase, objective=True)
    if phrase.preposition == "in front of":
        front = Tree("NP", [word("NN", "front")])
        return Tree("PP", [word("IN", "in"), Tree("NP", [front, Tree("PP", [word("IN", "of"), governed])])])
    first, _, second = phrase.preposition.partition(" ")
    if second:
        tag = "JJ" if first == "next" else "IN"
        return Tree("PP", [word(tag, first), Tree("PP", [word(TO.get(second, "IN"), second), governed])])
    return Tree("PP", [word(TO.get(first, "IN"), first), governed])


def relative(clause: Relative) -> Tree:
    """Returns a relative clause: (SBAR (WHNP ...) (S ...)), without WHNP if the pronoun is left out."""
    if not clause.pronoun:
        introduced = []
    else:
        introduced = [Tree("WHNP", [word("WP" if clause.pronoun == "who" else "WDT", clause.pronoun)])]
    return Tree("SBAR", [*introduced, declarative(clause.clause, subject_outside=clause.gap == "subject")])


def adverbial(phrase: Adverbial) -> Tree:
    """Returns an ADVP, a bare NP (every day) or a PP (in the evening)."""
    words = phrase.english.split()
    if phrase.kind == "RB":
        return Tree("ADVP", [word("RB", part) for part in words])
    if phrase.kind == "PP":
        determiners = [word("DT", part) for part in words[1:-1]]
        return Tree("PP", [word("IN", words[0]), Tree("NP", [*determiners, word("NN", words[-1])])])
    first = [word("JJ" if part in ("last", "next") else "DT", part) for part in words[:-1]]
    return Tree("NP", [*first, word("NN", words[-1])])


def predicate(value: Adjective | NounPhrase) -> Tree:
    """Returns the phrase after the copula."""
    if isinstance(value, Adjective):
        return Tree("ADJP", [word("JJ", value.english)])
    return noun_phrase(value)


def verb_arguments(clause: Clause) -> list[Tree]:
    """Returns everything in the verb phrase to the right of the main verb, in order."""
    verb, trees = clause.verb, []
    if clause.predicate is not None:
        trees.append(predicate(clause.predicate))
    particle = [Tree("PRT", [word("RP", verb.particle)])] if verb is not None and verb.particle else []
    objects = _objects(clause)
    trees += objects + particle if clause.particle_last else particle + objects
    if clause.agent is not None:
        trees.append(Tree("PP", [word("IN", "by"), noun_phrase(clause.agent, objective=True)]))
    trees += [prepositional_phrase(part) for part in (clause.goal, clause.instrument, clause.place) if part is not None]
    trees += [
        adverbial(part) for part in (clause.manner, None if clause.time_fronted else clause.time) if part is not None
    ]
    if clause.complement is not None:
        trees.append(complement(clause))
    return trees


def _objects(clause: Clause) -> list[Tree]:
    direct = [] if clause.object is None else [noun_phrase(clause.object, objective=True)]
    if clause.verb is not None and clause.verb.preposition:
        # A gap leaves the preposition behind: the man that she waits for.
        tag = TO.get(clause.verb.preposition, "IN")
        return [Tree("PP", [word(tag, clause.verb.preposition), *direct])]
    if clause.receiver is None:
        return direct
    receiver = noun_phrase(clause.receiver, objective=True)
    if clause.receiver_first:
        return [receiver, *direct]
    return [*direct, Tree("PP", [word("TO", "to"), receiver])]


def complement(clause: Clause) -> Tree:
    """Returns a that-clause, a whether-clause or an infinitive."""
    if clause.verb.frame == "infinitive":
        return infinitive(clause.complement)
    conjunction = "that" if clause.verb.frame == "that" else "whether"
    return Tree("SBAR", [word("IN", conjunction), declarative(clause.complement)])


def infinitive(clause: Clause) -> Tree:
    """Returns an infinitive: (S (VP to (VP ...)))."""
    inner = Tree("VP", [word("VB", clause.verb.base), *verb_arguments(clause)])
    return Tree("S", [Tree("VP", [word("TO", "to"), inner])])


def verb_phrase(clause: Clause, subject: Agreement, inverted: bool = False) -> list[Tree]:
    """Returns the children that the verb contributes to its clause.

    Args:
        inverted: whether a question puts the finite auxiliary before the subject

    Returns:
        an optional adverb and the verb phrase; with ``inverted``, first the finite auxiliary as a preterminal
    """
    chain = auxiliaries(clause, subject, needs_auxiliary=inverted or clause.negated)
    middle = [word("RB", "not")] if clause.negated else []
    middle += [adverbial(clause.frequency)] if clause.frequency is not None else []
    copula = clause.verb is None
    tag, form = chain[-1]
    alone = len(chain) == 1
    between = middle if copula and alone and not inverted else []
    if alone and inverted:
        # Only the copula inverts without an auxiliary: "is the man old".
        return [word(tag, form), *middle, *verb_arguments(clause)]
    phrase = Tree("VP", [word(tag, form), *between, *verb_arguments(clause)])
    for index in range(len(chain) - 2, -1, -1):
        tag, form = chain[index]
        if index == 0 and inverted:
            return [word(tag, form), *middle, phrase]
        phrase = Tree("VP", [word(tag, form), *(middle if index == 0 else []), phrase])
    if clause.conjunct is not None:
        second = verb_phrase(clause.conjunct, subject)
        phrase = Tree("VP", [phrase, word("CC", "and"), *second])
    return [*(middle if alone and not copula else []), phrase]


def declarative(clause: Clause, end: str = "", subject_outside: bool = False) -> Tree:
    """Returns (S ...) of a statement, relative or subordinate clause.

    Args:
        end: the final punctuation, or ""
        subject_outside: whether this is a relative clause whose gap is its subject
    """
    children = []
    if clause.subordinate is not None and clause.subordinate.fronted:
        children += [subordinate(clause), word(",", ",")]
    if clause.time is not None and clause.time_fronted:
        children.append(adverbial(clause.time))
    if not subject_outside:
        children.append(noun_phrase(clause.subject))
    children += _with_subordinate(verb_phrase(clause, agreement(clause.subject)), clause)
    return Tree("S", children + ([word(".", end)] if end else []))


def _with_subordinate(children: list[Tree], clause: Clause) -> list[Tree]:
    """Adds an adverbial clause that is not fronted as the last child of the verb phrase."""
    if clause.subordinate is None or clause.subordinate.fronted:
        return children
    *before, phrase = children
    return [*before, Tree("VP", [*phrase.children, subordinate(clause)])]


def subordinate(clause: Clause) -> Tree:
    """Returns (SBAR (IN because) (S ...)); "when" is an adverb in the treebank."""
    conjunction = clause.subordinate.conjunction
    phrase, tag = SUBORDINATORS.get(conjunction, ("", "IN"))
    introduced = Tree(phrase, [word(tag, conjunction)]) if phrase else word(tag, conjunction)
    return Tree("SBAR", [introduced, declarative(clause.subordinate.clause)])


def question(clause: Clause) -> Tree:
    """Returns (SQ ...) of a yes-no question, (SBARQ (WH... ) (SQ ...)) of other questions."""
    if clause.question == "subject":
        inner = [Tree("SQ", verb_phrase(clause, Agreement(3, False)))]
        return Tree("SBARQ", [Tree("WHNP", [word("WP", "who")]), *inner, word(".", "?")])
    finite, *rest = verb_phrase(clause, agreement(clause.subject), inverted=True)
    inner = [finite, noun_phrase(clause.subject), *rest]
    if clause.question == "yes-no":
        return Tree("SQ", [*inner, word(".", "?")])
    if clause.question in QUESTION_ADVERBS:
        asked = Tree("WHADVP", [word("WRB", clause.question)])
    else:
        asked = Tree("WHNP", [word("WP", "who" if "person" in clause.question else "what")])
    return Tree("SBARQ", [asked, Tree("SQ", inner), word(".", "?")])


def sentence(derivation: Sentence) -> Tree:
    """Returns the whole tree under ROOT, as parsers do."""
    clause = derivation.clause
    if clause.question:
        return Tree("ROOT", [question(clause)])
    if derivation.second is None:
        return Tree("ROOT", [declarative(clause, end=".")])
    comma = [word(",", ",")] if derivation.conjunction == "but" else []
    joined = [declarative(clause), *comma, word("CC", derivation.conjunction), declarative(derivation.second)]
    return Tree("ROOT", [Tree("S", [*joined, word(".", ".")])])
