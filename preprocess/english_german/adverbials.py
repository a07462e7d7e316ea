"""The adverbials of the grammar: English, German, and the part of speech of the English phrase."""

from __future__ import annotations

from preprocess.english_german.derivation import Adverbial

FREQUENCIES = [
    Adverbial(english, german, "RB")
    for english, german in (
        ("often", "oft"),
        ("always", "immer"),
        ("sometimes", "manchmal"),
        ("rarely", "selten"),
        ("never", "nie"),
        ("usually", "meistens"),
    )
]
MANNERS = [
    Adverbial(english, german, "RB")
    for english, german in (
        ("quickly", "schnell"),
        ("slowly", "langsam"),
        ("carefully", "vorsichtig"),
        ("secretly", "heimlich"),
        ("quietly", "leise"),
    )
]
TIMES = {
    "past": [
        Adverbial("yesterday", "gestern", "NP"),
        Adverbial("last week", "letzte Woche", "NP"),
        Adverbial("last night", "letzte Nacht", "NP"),
        Adverbial("last year", "letztes Jahr", "NP"),
        Adverbial("then", "dann", "RB"),
    ],
    "present": [
        Adverbial("today", "heute", "NP"),
        Adverbial("now", "jetzt", "RB"),
        Adverbial("every day", "jeden Tag", "NP"),
        Adverbial("every morning", "jeden Morgen", "NP"),
        Adverbial("in the evening", "am Abend", "PP"),
        Adverbial("in winter", "im Winter", "PP"),
    ],
    "future": [
        Adverbial("tomorrow", "morgen", "NP"),
        Adverbial("soon", "bald", "RB"),
        Adverbial("next week", "nächste Woche", "NP"),
        Adverbial("next year", "nächstes Jahr", "NP"),
        Adverbial("in the afternoon", "am Nachmittag", "PP"),
    ],
}
