"""Tiny made-up data sets of utterances and logical forms, in the files of the published ones (``run.sh --toy``).

The few words, symbols and shapes are invented. Nested phrases, conjunctions and repeated symbols give trees of several
depths and arities.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from preprocess.corpora import Pair, write_lines

Draw = Callable[[random.Random], Pair]


def _drawn(draw: Draw, size: int, seed: int) -> list[Pair]:
    generator = random.Random(seed)
    return [draw(generator) for _ in range(size)]


def _write_columns(path: Path, pairs: list[Pair]) -> None:
    write_lines(path, ("\t".join(pair) for pair in pairs))


# --- GEO, ATIS: lambda calculus --------------------------------------------------------------------------------------

_KINDS = (("state", "state:t"), ("citi", "city:t"), ("river", "river:t"), ("lake", "lake:t"))
_RELATIONS = (("in", "loc:t"), ("next to", "next_to:t"), ("that cross", "cross:t"))
_PLACES = ("s0", "c0", "r0")
_MOST = (("largest", "argmax", "size:i"), ("longest", "argmax", "len:i"), ("smallest", "argmin", "size:i"))


def _place(generator: random.Random, level: int = 0) -> Pair:
    """Returns a kind of place with up to two restrictions on variable ``$level``, which may contain other places."""
    kind, predicate = generator.choice(_KINDS)
    variable = f"${level}"
    said, conditions = [kind], [f"( {predicate} {variable} )"]
    for _ in range(generator.randrange(3)):
        word, relation = generator.choice(_RELATIONS)
        if level < 2 and generator.random() < 0.3:
            inner, form = _place(generator, level + 1)
            said.append(f"{word} a {inner}")
            conditions.append(f"( exists ${level + 1} ( and {form} ( {relation} {variable} ${level + 1} ) ) )")
        else:
            place = generator.choice(_PLACES)
            said.append(f"{word} {place}")
            conditions.append(f"( {relation} {variable} {place} )")
    return " ".join(said), f"( and {' '.join(conditions)} )" if len(conditions) > 1 else conditions[0]


def _geography(generator: random.Random) -> Pair:
    words, form = _place(generator)
    asked = generator.randrange(3)
    if asked == 0:
        return f"what {words}", f"( lambda $0 e {form} )"
    if asked == 1:
        return f"how mani {words} are there", f"( count $0 {form} )"
    word, function, measure = generator.choice(_MOST)
    return f"name the {word} {words}", f"( {function} $0 {form} ( {measure} $0 ) )"


def geo(output: Path, train: int, test: int) -> None:
    """Writes ``train.txt`` and ``test.txt``, sorted by length like the published files."""
    for name, size, seed in (("train", train, 1), ("test", test, 2)):
        pairs = _drawn(_geography, size, seed)
        _write_columns(output / f"{name}.txt", sorted(pairs, key=lambda pair: (len(pair[0].split()), pair)))


_RESTRICTIONS = (
    ("on da0", "( day $0 da0 )"),
    ("with al0", "( airline $0 al0 )"),
    ("nonstop", "( nonstop $0 )"),
    ("first class", "( class_type $0 first:cl )"),
    ("in the morn", "( during_day $0 morning:pd )"),
)


def _flight(generator: random.Random) -> Pair:
    said, conditions = ["flight from ci0 to ci1"], ["( flight $0 )", "( from $0 ci0 )", "( to $0 ci1 )"]
    for words, form in generator.sample(_RESTRICTIONS, generator.randrange(3)):
        said.append(words)
        conditions.append(form)
    if generator.random() < 0.3:
        said.append("on da0 or da1")
        conditions.append("( or ( day $0 da0 ) ( day $0 da1 ) )")
    form = f"( and {' '.join(conditions)} )"
    if generator.random() < 0.3:
        return f"what is the cheapest {' '.join(said)}", f"( argmin $0 {form} ( fare $0 ) )"
    return f"show me {' '.join(said)}", f"( lambda $0 e {form} )"


def atis(output: Path, train: int, test: int) -> None:
    """Writes ``train.txt`` and ``dev.txt``, because ATIS is distributed without its test set."""
    for name, size, seed in (("train", train, 1), ("dev", test, 2)):
        _write_columns(output / f"{name}.txt", _drawn(_flight, size, seed))


# --- JOBS: Prolog ----------------------------------------------------------------------------------------------------

_WISHES = (
    ("use languageid0", "language ( ANS , languageid0 )"),
    ("in locid0", "loc ( ANS , locid0 )"),
    ("on platformid0", "platform ( ANS , platformid0 )"),
    ("pay num_salary", "salary_greater_than ( ANS , num_salary , year )"),
    ("as titleid0", "title ( ANS , titleid0 )"),
)
_NEEDS = (("a degre", "req_deg ( ANS )"), ("experi", "req_exp ( ANS )"), ("degid0", "req_deg ( ANS , degid0 )"))


def _job(generator: random.Random) -> Pair:
    said, goals = ["what job"], ["job ( ANS )"]
    for words, goal in generator.sample(_WISHES, 1 + generator.randrange(3)):
        said.append(words)
        goals.append(goal)
    if generator.random() < 0.4:
        needs = generator.sample(_NEEDS, 1 + generator.randrange(2))
        said.append("not requir " + " or ".join(words for words, _ in needs))
        goals.append(f"\\+ ( {' ; '.join(goal for _, goal in needs)} )")
    return " ".join(said), " , ".join(goals)


def jobs(output: Path, train: int, test: int) -> None:
    """Writes ``train.txt`` and ``test.txt``."""
    for name, size, seed in (("train", train, 1), ("test", test, 2)):
        _write_columns(output / f"{name}.txt", _drawn(_job, size, seed))


# --- COGS ------------------------------------------------------------------------------------------------------------

_NAMES = ("Emma", "Liam", "Ava")
_NOUNS = ("cat", "rose", "box", "hero")
_ACTIONS = (("saw", "see"), ("painted", "paint"), ("liked", "like"))
_CLAIMS = (("said", "say"), ("hoped", "hope"))


def _thing(generator: random.Random, nested: bool = True) -> Pair:
    if generator.random() < 0.4:
        name = generator.choice(_NAMES)
        return name, name
    noun, definite = generator.choice(_NOUNS), generator.random() < 0.5
    words, form = f"{'the' if definite else 'a'} {noun}", f"{'* ' if definite else ''}{noun}"
    if nested and generator.random() < 0.3:
        place, place_form = _thing(generator, nested=False)
        words, form = f"{words} beside {place}", f"{form} ( nmod . beside = {place_form} )"
    return words, form


def _sentence(generator: random.Random, depth: int) -> Pair:
    who, agent = _thing(generator, nested=False)
    if depth:
        verb, label = generator.choice(_CLAIMS)
        words, form = _sentence(generator, depth - 1)
        return f"{who} {verb} that {words}", f"{label} ( agent = {agent} , ccomp = {form} )"
    verb, label = generator.choice(_ACTIONS)
    what, theme = _thing(generator)
    return f"{who} {verb} {what}", f"{label} ( agent = {agent} , theme = {theme} )"


def cogs(output: Path, train: int, test: int) -> None:
    """Writes ``{train,dev,test,gen}.tsv`` with variable-free forms; the sentences of ``gen`` are deeper."""
    for name, size, seed in (("train", train, 1), ("dev", test, 2), ("test", test, 3), ("gen", test, 4)):
        depth, category = (2, "cp_recursion") if name == "gen" else (1, "in_distribution")
        generator = random.Random(seed)
        pairs = [_sentence(generator, depth if name == "gen" else generator.randrange(depth + 1)) for _ in range(size)]
        rows = (f"{words[0].upper()}{words[1:]} .\t{form}\t{category}" for words, form in pairs)
        write_lines(output / f"{name}.tsv", rows)


def cogs_original(output: Path, train: int, test: int) -> None:
    """Writes the same files with variables in the logical forms: ``x _ 3`` is word 3."""
    for name, size, seed in (("train", train, 1), ("dev", test, 2), ("test", test, 3), ("gen", test, 4)):
        generator = random.Random(seed)
        rows = []
        for _ in range(size):
            subject, thing = generator.sample(_NOUNS, 2) if name == "gen" else (_NOUNS[0], generator.choice(_NOUNS))
            verb, label = generator.choice(_ACTIONS)
            roles = f"{label} . agent ( x _ 2 , x _ 1 ) AND {label} . theme ( x _ 2 , x _ 4 )"
            form = f"* {subject} ( x _ 1 ) ; {roles} AND {thing} ( x _ 4 )"
            category = "obj_to_subj_common" if name == "gen" else "in_distribution"
            rows.append(f"The {subject} {verb} a {thing} .\t{form}\t{category}")
        write_lines(output / f"{name}.tsv", rows)


# --- active sentences and logical forms ------------------------------------------------------------------------------


def _phrase(generator: random.Random, nouns: tuple[str, ...]) -> str:
    form = f"( AP ( N {generator.choice(nouns)} ) )"
    for _ in range(generator.randrange(3)):
        form = f"( AP ( ADJ {generator.choice(('small', 'red', 'happy'))} ) {form} )"
    return f"( NP ( DET {generator.choice(('the', 'a', 'some'))} ) {form} )"


def active_logical(output: Path, train: int, test: int) -> None:
    """Writes ``{train,validation,test,ood_new}.json`` with both directions; ``ood_new`` has other nouns."""
    for name, size, seed in (("train", train, 1), ("validation", test, 2), ("test", test, 3), ("ood_new", test, 4)):
        generator = random.Random(seed)
        nouns = ("yak", "fig") if name == "ood_new" else ("dog", "tree", "fox")
        lines = []
        for _ in range(size):
            verb = f"( V {generator.choice(('saw', 'moved', 'sold'))} )"
            first, second = _phrase(generator, nouns), _phrase(generator, nouns)
            sides = [f"( S {first} ( VP {verb} {second} ) )", f"( LF {verb} ( ARGS {first} {second} ) )"]
            generator.shuffle(sides)
            lines.append(json.dumps({"source": sides[0], "target": sides[1]}))
        write_lines(output / f"{name}.json", lines)


# --- IFTTT -----------------------------------------------------------------------------------------------------------

_TRIGGERS = (
    ("New photo", "Instagram", "Any_new_photo_by_you", ""),
    ("New tweet", "Twitter", "New_tweet_by_you", ""),
    ("Rain tomorrow", "Weather", "Tomorrow's_forecast_calls_for", "(Condition (Rain))"),
)
_DEEDS = (
    ("send me an email", "Email", "Send_me_an_email", '(Subject ("News: \\"{{Text}}\\"")) (Body ({{Text}}))'),
    ("save to Dropbox", "Dropbox", "Add_file_from_URL", '(File_name ("")) (Folder (ifttt/new))'),
    ("turn on the lights", "Philips_Hue", "Turn_on_lights", ""),
)


def ifttt(output: Path, train: int, test: int) -> None:
    """Writes ``recipe_summaries.tsv``, lists of addresses, and the annotation; one test recipe is missing."""
    generator = random.Random(1)
    header = "File\tURL\tID\tTitle\tDescription\tAuthor\tFeatured\tUses\tFavorites\tCode"
    recipes, answers, number = [header], ["URL\tDescription\tTrigger channel\tTrigger\tAction channel\tAction\tIDs"], 0
    for name, size in (("train", train), ("dev", test), ("test", test)):
        urls = []
        for _ in range(size):
            number += 1
            url = f"https://ifttt.com/recipes/{number}-made-up"
            said, source, trigger, given = generator.choice(_TRIGGERS)
            done, sink, action, wanted = generator.choice(_DEEDS)
            title = f"{said}? {done[0].upper()}{done[1:]}!"
            parts = (_call("TRIGGER", source, trigger, given), _call("ACTION", sink, action, wanted))
            code = f"(ROOT (IF) {parts[0]} (THEN) {parts[1]})"
            recipes.append(f"{number}.html\t{url}\t{number}\t{title}\t{title}\tnobody\tFalse\t0\t0\t{code}")
            urls.append(url)
            if name == "test":
                agreed = generator.randrange(6)
                meant = [text.replace("_", " ") for text in (source, trigger, sink, action)]
                rows = [meant] * agreed + [["unintelligible"] * 4] * (5 - agreed)
                answers += ["\t".join((url, title, *row, "1")) for row in rows]
        gone = ["https://ifttt.com/recipes/0-gone"] if name == "test" else []
        write_lines(output / f"{name}.urls", [*urls, *gone])
    write_lines(output / "recipe_summaries.tsv", recipes)
    write_lines(output / "turk_public.tsv", answers)


def _call(part: str, channel: str, function: str, parameters: str) -> str:
    return f"({part} ({channel}) (FUNC ({function}) (PARAMS{' ' if parameters else ''}{parameters})))"


# --- Overnight --------------------------------------------------------------------------------------------------------

LONG = "edu.stanford.nlp.sempre.overnight.SimpleWorld."
DOMAINS = ("basketball", "blocks", "calendar", "housing", "publications", "recipes", "restaurants", "socialnetwork")

_THINGS = ("meeting", "recipe", "player")
_PROPERTIES = ("author", "place", "owner")
_VALUES = ("alice", "bob", "efron")
_SIZES = (("most", "max"), ("fewest", "min"))


def _sempre(function: str, *arguments: str) -> str:
    return f"(call {LONG}{function} {' '.join(arguments)})"


def _filtered(generator: random.Random, words: str, form: str) -> tuple[str, str]:
    """Adds up to two conditions to a set, the second around the first."""
    for name in generator.sample(_PROPERTIES, generator.randrange(3)):
        value = generator.choice(_VALUES)
        words = f"{words} whose {name} is {value}"
        form = _sempre("filter", form, f"(string {name})", "(string =)", f"en.person.{value}")
    return words, form


def _question(generator: random.Random) -> str:
    thing = generator.choice(_THINGS)
    words, form = _filtered(
        generator, thing, _sempre("getProperty", _sempre("singleton", f"en.{thing}"), "(string !type)")
    )
    if generator.random() < 0.3:
        word, end = generator.choice(_SIZES)
        counted = generator.choice(_PROPERTIES)
        words, form = (
            f"{words} with the {word} {counted}",
            _sempre("countSuperlative", form, f"(string {end})", f"(string {counted})"),
        )
    form = _sempre("listValue", form)
    return f'(example\n  (utterance "{words}")\n  (original "{words}")\n  (targetFormula\n    {form}\n  )\n)'


def overnight(output: Path, train: int, test: int) -> None:
    """Writes ``DOMAIN.paraphrases.{train,test}.examples`` of every domain."""
    for place, domain in enumerate(DOMAINS):
        for split, size, seed in (("train", train, 2 * place), ("test", test, 2 * place + 1)):
            generator = random.Random(seed)
            write_lines(output / f"{domain}.paraphrases.{split}.examples", (_question(generator) for _ in range(size)))


LAYOUTS = {
    "active_logical": active_logical,
    "atis": atis,
    "cogs": cogs,
    "cogs_original": cogs_original,
    "geo": geo,
    "ifttt": ifttt,
    "jobs": jobs,
    "overnight": overnight,
}
