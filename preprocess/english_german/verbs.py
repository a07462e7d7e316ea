"""The verbs of the grammar: their forms in both languages, their government, and the nouns that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

# English base[:past[:participle]] [particle or preposition] | German infinitive (separable prefix+rest), third person
# present, preterite, participle of strong verbs; "sein" as the perfect's auxiliary; preposition/case | subjects |
# objects | tools that can be the instrument. "!" after an English base doubles its last consonant. Weak forms are
# derived.
INTRANSITIVE = """
sleep:slept | schlafen schläft schlief geschlafen | person,animal
laugh | lachen | person
cry | weinen | person
work | arbeiten | person
dance | tanzen | person
sing:sang:sung | singen - sang gesungen | person
swim!:swam:swum | schwimmen - schwamm geschwommen sein | person,animal
wait | warten | person
smile | lächeln | person
play | spielen | person,animal
bark | bellen | barker
smoke | rauchen | person
dream | träumen | person
fall:fell:fallen | fallen fällt fiel gefallen sein | person,thing
disappear | verschwinden - verschwand verschwunden sein | person,animal,vehicle
arrive | an+kommen - kam gekommen sein | person,vehicle
get!:got:got up | auf+stehen - stand gestanden sein | person
wake:woke:woken up | auf+wachen sein | person,animal
go:went:gone out | aus+gehen - ging gegangen sein | person
come:came:come back | zurück+kommen - kam gekommen sein | person,animal
run!:ran:run away | weg+laufen läuft lief gelaufen sein | person,animal
give:gave:given up | auf+geben gibt gab gegeben | person
leave:left | ab+fahren fährt fuhr gefahren sein | vehicle
"""

TRANSITIVE = """
see:saw:seen | sehen sieht sah gesehen | person,animal | person,animal,vehicle,place,thing | telescope
watch | beobachten | person,animal | person,animal,vehicle | telescope
photograph | fotografieren | person | person,animal,place | telescope
find:found | finden - fand gefunden | person,animal | person,animal,thing,text,tool,clothing,food
love | lieben | person | person,animal,food,text,place
know:knew:known | kennen - kannte gekannt | person | person,place,text
hear:heard | hören | person,animal | person,animal,vehicle
greet | grüßen | person | person
visit | besuchen | person | person,place
hug! | umarmen | person | person,animal
kiss | küssen | person | person,animal
admire | bewundern | person | person,animal,place,picture
buy:bought | kaufen | person | thing,text,clothing,food,vehicle,machine,tool
sell:sold | verkaufen | person | thing,text,clothing,food,vehicle,machine,tool
carry | tragen trägt trug getragen | person | thing,tool,food,carried
need | brauchen | person | thing,tool,clothing,food,machine,person
repair | reparieren | person | vehicle,machine,closable | hammer
draw:drew:drawn | zeichnen | person | picture,person,animal,place | pen
paint | malen | person | picture,flower,place,animal | brush
write:wrote:written | schreiben - schrieb geschrieben | person | text | pen
read:read | lesen liest las gelesen | person | text
eat:ate:eaten | essen isst aß gegessen | person | food | fork
cut!:cut | schneiden - schnitt geschnitten | person | food | knife
cook | kochen | person | food
touch | berühren | person | person,animal | hammer
chase | jagen | animal,person | animal,person
catch:caught | fangen fängt fing gefangen | person,animal | animal,person | rope
threaten | bedrohen | person | animal,person | knife
hide:hid:hidden | verstecken | person | thing,text,food,clothing
steal:stole:stolen | stehlen stiehlt stahl gestohlen | person | thing,text,clothing,food,vehicle
lose:lost | verlieren - verlor verloren | person | thing,tool,clothing,text
clean | putzen | person | vehicle,closable,place,tool | broom
build:built | bauen | person | place,machine,vehicle | hammer
destroy | zerstören | person | thing,machine,picture,closable | hammer
pull | ziehen - zog gezogen | person,animal | vehicle,animal | rope
push | schieben - schob geschoben | person | vehicle,surface
wash | waschen wäscht wusch gewaschen | person | clothing,vehicle,animal
protect | beschützen | person | person,animal,place
save | retten | person | person,animal
hold:held | halten hält hielt gehalten | person | thing,tool,text,animal
bite:bit:bitten | beißen - biss gebissen | animal | person,animal
feed:fed | füttern | person | animal
man!:manned | bemannen | person | vessel
understand:understood | verstehen - verstand verstanden | person | person,text
call | an+rufen - rief gerufen | person | person
invite | ein+laden lädt lud geladen | person | person
introduce | vor+stellen | person | person
open | auf+machen | person | closable | key
close | zu+machen | person | closable | key
pick up | ab+holen | person | person,text
put!:put:put on | an+ziehen - zog gezogen | person | clothing
take:took:taken off | aus+ziehen - zog gezogen | person | clothing
try on | an+probieren | person | clothing
turn on | ein+schalten | person | machine
turn off | aus+schalten | person | machine
clean up | auf+räumen | person | place
throw:threw:thrown away | weg+werfen wirft warf geworfen | person | thing,text,food,clothing
bring:brought back | zurück+bringen - brachte gebracht | person | thing,text,tool,animal
wake:woke:woken up | auf+wecken | person | person,animal
lock up | ein+sperren | person | person,animal
write:wrote:written down | auf+schreiben - schrieb geschrieben | person | text | pen
"""

DATIVE = """
help | helfen hilft half geholfen | person | person,animal
thank | danken | person | person
follow | folgen sein | person,animal | person,animal,vehicle
answer | antworten | person | person
obey | gehorchen | person | person
trust | vertrauen | person | person
forgive:forgave:forgiven | verzeihen - verzieh verziehen | person | person
congratulate | gratulieren | person | person
please | gefallen gefällt gefiel gefallen | thing,text,picture,place | person
"""

# The second list of classes is the thing given; the receiver is a person.
DITRANSITIVE = """
give:gave:given | geben gibt gab gegeben | person | thing,text,clothing,food,tool
show:showed:shown | zeigen | person | picture,text,place,thing
send:sent | schicken | person | text,picture,thing
lend:lent | leihen - lieh geliehen | person | tool,text,clothing,vehicle
bring:brought | bringen - brachte gebracht | person | food,thing,text
tell:told | erzählen | person | story
promise | versprechen verspricht versprach versprochen | person | present,vehicle
read:read | vor+lesen liest las gelesen | person | text
give:gave:given back | zurück+geben gibt gab gegeben | person | tool,text,vehicle
"""

PREPOSITIONAL = """
wait for | warten auf/acc | person | person,vehicle
think:thought of | denken - dachte gedacht an/acc | person | person,place
talk about | sprechen spricht sprach gesprochen über/acc | person | person,text,place
dream of | träumen von/dat | person | person,place,food
laugh about | lachen über/acc | person | person,animal,picture
ask for | bitten - bat gebeten um/acc | person | tool,food,clothing
search for | suchen nach/dat | person,animal | person,animal,thing,tool
look after | auf+passen auf/acc | person | person,animal
look at | schauen auf/acc | person | picture,clock,person
listen to | zu+hören dative | person | person,radio
"""

LOCATED = """
live | wohnen | person | place
sit!:sat | sitzen - saß gesessen | person,animal | surface
stand:stood | stehen - stand gestanden | person,animal | surface,place
lie:lay:lain | liegen - lag gelegen | animal,thing | surface
"""

# Objects are the goals; "source" means a place that the subject leaves.
DIRECTED = """
go:went:gone | gehen - ging gegangen sein | person,animal | place
run!:ran:run | laufen läuft lief gelaufen sein | person,animal | place
drive:drove:driven | fahren fährt fuhr gefahren sein | person | place
climb | klettern sein | person,animal | surface
jump | springen - sprang gesprungen sein | person,animal | surface
come:came:come | kommen - kam gekommen sein | person,animal,vehicle | place,source
"""

PLACED = """
put!:put | legen | person | thing,text,tool,clothing
throw:threw:thrown | werfen wirft warf geworfen | person | thing,text,food,tool
"""

THAT = """
say:said | sagen | person
think:thought | denken - dachte gedacht | person
know:knew:known | wissen weiß wusste gewusst | person
believe | glauben | person
hope | hoffen | person
hear:heard | hören | person
explain | erklären | person
claim | behaupten | person
notice | bemerken | person
"""

WHETHER = """
ask | fragen | person
know:knew:known | wissen weiß wusste gewusst | person
explain | erklären | person
"""

INFINITIVE = """
try | versuchen | person,animal
promise | versprechen verspricht versprach versprochen | person
decide | beschließen - beschloss beschlossen | person
forget!:forgot:forgotten | vergessen vergisst vergaß vergessen | person
hope | hoffen | person
begin!:began:begun | an+fangen fängt fing gefangen | person,animal
plan! | planen | person
"""

TABLES = {
    "intransitive": INTRANSITIVE,
    "transitive": TRANSITIVE,
    "dative": DATIVE,
    "ditransitive": DITRANSITIVE,
    "prepositional": PREPOSITIONAL,
    "located": LOCATED,
    "directed": DIRECTED,
    "placed": PLACED,
    "that": THAT,
    "whether": WHETHER,
    "infinitive": INFINITIVE,
}


@dataclass(frozen=True)
class Verb:
    """One verb with its frame.

    ``particle`` is an English particle (pick *up*), ``preposition`` an English governed preposition (wait *for*);
    ``german_preposition`` with ``german_case`` governs the German object of a prepositional verb (the preposition is ""
    if German has a bare case). ``doubles`` means that -ing and -ed double the last consonant.
    """

    base: str
    past: str
    participle: str
    doubles: bool
    particle: str
    preposition: str
    prefix: str
    infinitive: str
    third: str
    preterite: str
    german_participle: str
    perfect_with_sein: bool
    german_preposition: str
    german_case: str
    frame: str
    subjects: frozenset[str]
    objects: frozenset[str]
    instruments: frozenset[str]


def _english(column: str, frame: str) -> dict[str, object]:
    forms, _, extra = column.partition(" ")
    base, *irregular = forms.split(":")
    doubles = base.endswith("!")
    base = base.rstrip("!")
    past = irregular[0] if irregular else regular_past(base, doubles)
    participle = irregular[1] if len(irregular) > 1 else past
    kind = "preposition" if frame == "prepositional" else "particle"
    return {
        "base": base,
        "past": past,
        "participle": participle,
        "doubles": doubles,
        "particle": "",
        "preposition": "",
        kind: extra,
    }


def _german(column: str, frame: str) -> dict[str, object]:
    words = column.split()
    prefix, _, infinitive = words[0].rpartition("+")
    sein = "sein" in words[1:]
    governed = next((word for word in words[1:] if "/" in word), "")
    dative = frame == "dative" or "dative" in words[1:]
    strong = [word for word in words[1:] if word not in ("sein", "dative") and "/" not in word]
    third, preterite, participle = strong or ("-", "", "")
    preposition, _, case = governed.partition("/")
    return {
        "prefix": prefix,
        "infinitive": infinitive,
        "third": third.strip("-"),
        "preterite": preterite,
        "german_participle": participle,
        "perfect_with_sein": sein,
        "german_preposition": preposition,
        "german_case": "dat" if dative else case or "acc",
    }


def regular_past(base: str, doubles: bool = False) -> str:
    """Returns the English past tense of a regular verb: carry -> carried, love -> loved, hug -> hugged."""
    if doubles:
        return base + base[-1] + "ed"
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def _classes(columns: list[str], index: int) -> frozenset[str]:
    return frozenset(columns[index].split(",")) if index < len(columns) else frozenset()


@cache
def verbs(frame: str) -> tuple[Verb, ...]:
    """Returns the verbs of one frame (a key of TABLES), in the order of the table."""
    found = []
    for line in TABLES[frame].strip().splitlines():
        columns = [column.strip() for column in line.split("|")]
        found.append(
            Verb(
                **_english(columns[0], frame),
                **_german(columns[1], frame),
                frame=frame,
                subjects=_classes(columns, 2),
                objects=_classes(columns, 3),
                instruments=_classes(columns, 4),
            )
        )
    return tuple(found)
