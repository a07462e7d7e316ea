"""Django (Oda et al. 2015): lines of Python and their descriptions, with names in the place of strings."""

from __future__ import annotations

import re
from pathlib import Path

from preprocess.corpora import Corpus, Pair, PrepareOptions, parallel, raw_lines

_STRING = re.compile(r"""(["']).*?(?<!\\)\1""")


def name_strings(description: str, code: str) -> Pair:
    """Replaces each string of a description by a name, in both texts (Yin and Neubig 2017); ``'%s'`` stays.

    So a program has ``'_STR0_'`` where the description has ``_STR0_``.
    """
    strings = dict.fromkeys(found[0] for found in _STRING.finditer(description))
    for number, string in enumerate(string for string in strings if string[1:-1] != "%s"):
        description = description.replace(string, f"_STR{number}_")
        code = re.sub(rf"(?<![\"']){re.escape(string)}(?![\"'])", f"'_STR{number}_'", code)
    return " ".join(description.split()), code.strip()


def load_django(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads ``all.anno`` and ``all.code``; the splits are those of the literature since Ling et al. (2016)."""
    sides = map(raw_lines, (data / "all.anno", data / "all.code"))
    pairs = [name_strings(*pair) for pair in parallel(*sides, names=("all.anno", "all.code"))]
    return Corpus({"train": pairs[:16000], "valid": pairs[16000:17000], "test": pairs[17000:]}, {})
