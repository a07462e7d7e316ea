"""Recipe files: the settings of a recipe, and commands with gaps for them.

A recipe file is an INI file. ``like = NAME`` starts from ``examples/lib/NAME.ini``. These sections are special:

``[options]``               options of the command line: ``--name METAVAR = help``
``[checks]``                ``name = pattern: message`` or ``name = one of WORDS``, for the values of options
``[architecture PATTERN]``  settings for the architectures that match; ``--arch`` must match one of these patterns
``[when CONDITIONS]``       settings for some values of options, or of other settings, whose names are in braces:
                            ``[when --toy without --parser]``, ``[when --schedule paper --arch *big*]``,
                            ``[when --stage !bounds]``, ``[when {task} translation]``, and ``[when --data train.tsv]``:
                            the folder of the data has that file
``[paper]``                 what the paper reports, by architecture; for readers

The titles of all other sections are for readers, too. An option that is given is also a setting. Where a setting occurs
several times, ``[when --toy ...]`` wins over ``[when]`` and ``[architecture]``, these win over plain sections, and
later sections win over earlier ones.

In values, ``{name}`` is another setting. Alone it is replaced by all of its words; in quotes or within a word, by one
text. A part in brackets is left out where a setting in it is empty: ``[--subset {subset}]``. Text in single quotes is
literal. Several lines are several commands, a backslash continues a line, and a line ``{name}`` is replaced by the
commands of that setting. Lines that mention ``{split}`` are repeated for every split, and likewise for the other names
in ``LOOPS``.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import count, groupby
from pathlib import Path
from typing import Callable, Optional, Union

LIBRARY = Path(__file__).resolve().parent
LOOPS = {
    "split": "splits",
    "set": "set_names",
    "member": "members",
    "sweep_layer": "sweep_layers",
    "sweep_height": "sweep_heights",
}
"""Consecutive lines that mention the first are repeated for each word of the second."""
_TOKEN = re.compile(r"\s+|'[^']*'|\"[^\"]*\"|\{[a-z0-9_]+\}|[\[\]]|[^\s'\"\[\]{]+|\{")
_GAP = re.compile(r"\{([a-z0-9_]+)\}")
Word = list
"""Its parts: literal text, gaps and groups."""


class RecipeError(Exception):
    """A recipe that cannot do what it was asked to do."""


class Gap(str):
    """The name of a setting whose value is filled in."""


class Group(list):
    """Words that are left out where a setting in them is empty."""

    def gaps(self) -> list[Gap]:
        """The settings that must not be empty."""
        return [part for word in self for part in word if isinstance(part, Gap)]


def parse(text: str) -> list[Word]:
    """Splits a value into words of literal text, gaps and groups."""
    return _parse(iter(_TOKEN.findall(text)))


def _parse(tokens) -> list[Word]:
    words: list[Word] = []
    word: Word = []
    for token in tokens:
        if token.isspace() or token == "]":
            if word:
                words.append(word)
            word = []
            if token == "]":
                return words
        elif token == "[":
            word.append(Group(_parse(tokens)))
        elif token[0] == "'":
            word.append(token[1:-1])
        elif token[0] == '"':
            # The empty text keeps a gap in quotes from being the whole word, so that its words become one.
            word += ["", *(Gap(part) if odd else part for odd, part in _alternating(token[1:-1]))]
        else:
            word.append(Gap(token[1:-1]) if _GAP.fullmatch(token) else token)
    return [*words, word] if word else words


def _alternating(text: str):
    return ((index % 2 == 1, part) for index, part in enumerate(_GAP.split(text)) if part)


class Section:
    """A section of a recipe file: conditions and settings."""

    def __init__(self, title: str, values: dict[str, str]) -> None:
        kind, *words = title.split()
        self.title, self.values = title, values
        self.conditions: list[tuple[str, bool, Optional[str]]] = []  # name, whether it is set, pattern
        self.architectures = words if kind == "architecture" else []
        if kind == "when":
            self._read_conditions(words)
        elif kind == "architecture":
            self.conditions = [("arch", True, "|".join(words))]
        self.rank = 0 if not self.conditions else 2 if any(name == "toy" for name, *_ in self.conditions) else 1

    def _read_conditions(self, words: list[str]) -> None:
        is_set = True
        for word in words:
            if word == "without":
                is_set = False
            elif word.startswith(("--", "{")):
                self.conditions.append((setting_name(word.strip("{}")), is_set, None))
                is_set = True
            else:
                self.conditions[-1] = (*self.conditions[-1][:2], word)


def setting_name(option: str) -> str:
    """The name of the setting that an option gives: ``keep_valid`` for ``--keep-valid``."""
    return option.lstrip("-").replace("-", "_")


def read_sections(path: Path) -> list[Section]:
    """The sections of a recipe file, those of the file that it is like first.

    Raises:
        RecipeError: the file does not exist, or it is not an INI file
    """
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment]
    try:
        # A number makes titles different: conditions may come again.
        numbers = count()
        text = path.read_text(encoding="utf-8")
        parser.read_string(
            re.sub(r"^\[(.+)\]$", lambda title: f"[{next(numbers)} {title[1]}]", text, flags=re.M), str(path)
        )
    except (OSError, configparser.Error) as error:
        raise RecipeError(str(error)) from error
    sections = [Section(title.partition(" ")[2], dict(parser[title])) for title in parser.sections()]
    for section in sections:
        if "like" in section.values:
            return read_sections(LIBRARY / f"{section.values['like']}.ini") + sections
    return sections


def check_names(sections: list[Section], known: Iterable[str]) -> None:
    """Looks for gaps whose settings nobody sets, such as misspelt ones.

    Args:
        known: names that are set elsewhere

    Raises:
        RecipeError: there is such a gap
    """
    options = {
        setting_name(option.split()[0])
        for section in sections
        if section.title == "options"
        for option in section.values
    }
    set_somewhere = {name for section in sections for name in section.values} | options | {*known} | {*LOOPS}
    for number, section in enumerate(sections):
        later = {name for other in sections[number + 1 :] if not other.conditions for name in other.values}
        for name, text in section.values.items():
            for gap in _GAP.findall(text):
                # A recipe that replaces a setting of its kind need not fill the gaps of that one.
                if gap not in set_somewhere and name not in later:
                    raise RecipeError(f"{name} in [{section.title}] needs {{{gap}}}, which is not set anywhere")


class Settings:
    """What a recipe file says, under the options that were given.

    Args:
        sections: of the file
        given: options and places by name; they win over the file
        computed: functions of the settings, by the name of what they compute
    """

    def __init__(
        self,
        sections: list[Section],
        given: dict[str, Union[str, list[str]]],
        computed: dict[str, Callable[[Settings], list[str]]],
    ) -> None:
        self.sections, self.given, self.computed = sections, given, computed
        self.options = {
            setting_name(option.split()[0]): (option, text)
            for section in sections
            if section.title == "options"
            for option, text in section.values.items()
        }
        # The winner comes first.
        self._ranked = sorted(sections, key=lambda section: section.rank)[::-1]

    def at(self, **given: Union[str, list[str]]) -> Settings:
        """The same recipe with other values."""
        return Settings(self.sections, {**self.given, **given}, self.computed)

    def raw(self, name: str) -> Optional[str]:
        """The value as the file has it, or None."""
        for section in self._ranked:
            if name in section.values and section.title not in ("options", "checks", "paper") and self._holds(section):
                return section.values[name]
        return None

    def _holds(self, section: Section) -> bool:
        return all(self._is(*condition) for condition in section.conditions)

    def _is(self, name: str, is_set: bool, pattern: Optional[str]) -> bool:
        value = self.text(name)
        if pattern is None:
            return bool(value) is is_set
        if name == "data":
            return bool(value) and (Path(value) / pattern).exists()
        pattern = _GAP.sub(lambda match: self.text(match[1]), pattern)
        return any(fnmatchcase(value, way) for way in pattern.lstrip("!").split("|")) is not pattern.startswith("!")

    def words(self, name: str) -> list[str]:
        """The words of a setting; none where nobody has set it."""
        if name in self.given:
            value = self.given[name]
            return list(value) if isinstance(value, list) else [value] if value else []
        if name in self.computed:
            return self.computed[name](self)
        return self.expand(self.raw(name) or "")

    def text(self, name: str) -> str:
        """The value of a setting as one text."""
        return " ".join(self.words(name))

    def prose(self, name: str) -> str:
        """A setting that is a message: gaps are filled in, everything else is literal."""
        return self.fill(" ".join((self.raw(name) or "").split()))

    def fill(self, text: str) -> str:
        """A text with its gaps filled in."""
        return _GAP.sub(lambda match: self.text(match[1]), text)

    def expand(self, text: str) -> list[str]:
        """The words of a value of a recipe file."""
        return self._expand(parse(text))

    def _expand(self, words: list[Word]) -> list[str]:
        found: list[str] = []
        for word in words:
            if len(word) == 1 and isinstance(word[0], Gap):
                found += self.words(word[0])
            elif len(word) == 1 and isinstance(word[0], Group):
                found += self._group(word[0])
            else:
                found.append("".join(map(self._part, word)))
        return found

    def _group(self, group: Group) -> list[str]:
        return self._expand(group) if all(self.words(name) for name in group.gaps()) else []

    def _part(self, part: Union[str, Group]) -> str:
        if isinstance(part, Gap):
            return self.text(part)
        return " ".join(self._group(part)) if isinstance(part, Group) else part

    def lines(self, name: str) -> list[tuple[Settings, str]]:
        """The lines of a setting, each with the settings that it is to be expanded under: loops are unrolled."""
        unrolled = []
        for variable, group in groupby(self._flat(name), key=_loop_variable):
            lines = list(group)
            scopes = [self.at(**{variable: word}) for word in self.words(LOOPS[variable])] if variable else [self]
            unrolled += [(scope, line) for scope in scopes for line in lines]
        return unrolled

    def commands(self, name: str) -> list[list[str]]:
        """The commands of a setting."""
        return [words for scope, line in self.lines(name) if (words := scope.expand(line))]

    def _flat(self, name: str) -> list[str]:
        lines: list[str] = []
        for line in (self.raw(name) or "").replace("\\\n", " ").splitlines():
            gap = _GAP.fullmatch(line.strip())
            lines += self._flat(gap[1]) if gap else [line.strip()] if line.strip() else []
        return lines


def _loop_variable(line: str) -> str:
    return next((name for name in _GAP.findall(line) if name in LOOPS), "")
