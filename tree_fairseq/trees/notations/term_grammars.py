"""Grammars of the notations of terms: their names, operators and brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from tree_fairseq.trees.notations.notation import LITERAL_CODE, escape_first, escape_name, unescape_name
from tree_fairseq.trees.symbols import UNKNOWN_LABEL

LIST = "[]"  # the label of a list
TAILED_LIST = "[|]"  # the label of a list whose last child is the rest of the list
WHOLE = 1200  # the highest priority of a term in brackets or of a whole line
ARGUMENT = 999  # the highest priority of an argument or of an item of a list
_END = r"(?![^\s(),;\[\]|])"


@dataclass(frozen=True)
class Infix:
    """An operator between terms; ``chained`` means that ``a , b , c`` is one node with three children."""

    priority: int  # as in Prolog, where a higher priority binds more loosely
    left: int  # the highest priorities of the operands without brackets
    right: int
    chained: bool = False
    spaced: bool = False  # whether it is an operator between blanks only, and a part of names elsewhere


def _chain(priority: int) -> Infix:
    return Infix(priority, priority - 1, priority - 1, chained=True)


@dataclass(frozen=True)
class Prefix:
    """Operators before a term, with patterns of their text and of their labels."""

    pattern: str
    label: str
    priority: int  # also the highest priority of the operand


@dataclass(frozen=True)
class TermGrammar:
    """The grammar of a notation of terms."""

    name: str  # of the notation, for messages
    word: str  # pattern of a name without quotation marks
    refused: str  # pattern of the parts that such a name may not contain
    infixes: dict[str, Infix] = field(default_factory=dict)  # by their text
    prefixes: tuple[Prefix, ...] = ()
    quoted: str = "(?!)"  # pattern of names in quotation marks
    lists: bool = False  # whether square brackets contain lists
    spaced: bool = True  # whether brackets are surrounded by blanks
    full_stop: bool = False  # whether a line may end with a full stop, which is no part of the tree
    joints: str = ""  # characters of names that are surrounded by blanks in text but not in labels

    @cached_property
    def token(self) -> re.Pattern:
        """Matches a token; the matching group has the name of its kind. Unexpected characters are ``text``."""
        operators = sorted(self.infixes, key=len, reverse=True)
        kinds = {
            "quoted": rf"(?:{self.quoted}){_END}",
            "unknown": re.escape(UNKNOWN_LABEL) + _END,
            "prefix": "|".join(prefix.pattern for prefix in self.prefixes) or "(?!)",
            "infix": "|".join(map(self._infix_pattern, operators)) or "(?!)",
            "mark": r"[(),\[\]|]" if self.lists else "[(),]",
            "word": self.word,
            "text": r"\S",
        }
        return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))

    def _infix_pattern(self, text: str) -> str:
        if self.infixes[text].spaced:
            return rf"(?<!\S){re.escape(text)}(?!\S)"
        return rf"\b{text}\b" if text.isalpha() else re.escape(text)

    def label_of(self, text: str) -> str:
        """The label of a name or an operator."""
        if self.joints:
            text = re.sub(rf"\s*([{self.joints}])\s*", r"\1", " ".join(text.split()))
        return unescape_name(text)

    def text_of(self, label: str) -> str:
        """The text of a name; the inverse of `label_of`."""
        if label == UNKNOWN_LABEL or re.fullmatch(self.quoted, label):
            return label
        name = escape_name(label, re.compile(f"{LITERAL_CODE}|{self.refused}"))
        text = self.joined(name)
        found = self.token.match(text)
        is_word = found is not None and found.end() == len(text) and self.is_name(found)
        return text if is_word else self.joined(escape_first(name))

    def is_name(self, token: re.Match) -> bool:
        """Whether a token is a name where a term begins, such as ``is`` in ``f ( is )``."""
        return token.lastgroup == "word" or token.lastgroup == "infix" and self.infixes[token.group()].spaced

    def joined(self, label: str) -> str:
        """A label with blanks around the joints."""
        return re.sub(rf"[{self.joints}]", r" \g<0> ", label).rstrip() if self.joints else label

    def prefix_of(self, label: str) -> Prefix | None:
        """The operator with this label, or None."""
        return next((prefix for prefix in self.prefixes if re.fullmatch(prefix.label, label)), None)

    def prefix_priority(self, text: str) -> int:
        """The priority of an operator with this text."""
        return next(prefix.priority for prefix in self.prefixes if re.fullmatch(prefix.pattern, text))


_PLAIN = r"[^\s(),;=*.\\]+"
_CODE = r"\\(?:u[0-9a-f]{4}|e)"
_QUOTED = r"'(?:[^'\\\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|''|\\.)*'"
_REFUSED = r"""[\s(),;\[\]|'"\\=<>]"""

PROLOG = TermGrammar(
    "prolog",
    word=rf"""(?:(?!->|:-)[^\s(),;\[\]|'"\\=<>^]|{_CODE})+""",
    refused=rf"{_REFUSED}|\^|-(?=>)|:(?=-)",
    infixes={
        ":-": Infix(1200, 1199, 1199),
        ";": _chain(1100),
        "->": Infix(1050, 1049, 1050),
        ",": _chain(1000),
        **dict.fromkeys(("=", "\\=", "==", "\\==", "=:=", "=\\=", "<", ">", "=<", ">=", "=.."), Infix(700, 699, 699)),
        **dict.fromkeys(("is", "@<", "@>", "@=<", "@>="), Infix(700, 699, 699, spaced=True)),
        **dict.fromkeys(("+", "-"), Infix(500, 500, 499, spaced=True)),
        **dict.fromkeys(("*", "/", "//", "mod", "rem"), Infix(400, 400, 399, spaced=True)),
        "**": Infix(200, 199, 199, spaced=True),
        "^": Infix(200, 199, 200),
    },
    prefixes=(Prefix(r"\\\+", r"\\\+", 900),),
    quoted=rf"""{_QUOTED}|{_QUOTED.replace("'", '"')}""",
    lists=True,
    full_stop=True,
)
r"""Terms of Prolog, ``answer ( A , ( state ( A ) , \+ next_to ( A , B ) ) )``."""

FUNQL = TermGrammar(
    "funql",
    word=rf"""(?:[^\s()\[\],;|'"\\]|{_CODE})+""",
    refused=r"""[\s()\[\],;|'"\\]""",
    quoted=rf"""{_QUOTED}|{_QUOTED.replace("'", '"')}""",
    lists=True,
    spaced=False,
)
"""Functional query language, ``answer(city(loc_2(stateid('virginia'))))``."""

_PART = rf"(?:[^\s(),;=*.\\]|{_CODE})+"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"

VARIABLE_FREE = TermGrammar(
    "variable-free",
    word=_NAME,
    refused=r"[\s(),;=*\\]|^\.|\.$|\.(?=\.)",
    infixes={"AND": _chain(1000)},
    prefixes=(
        Prefix(rf"\bLAMBDA\s+{_PART}\s*\.", rf"LAMBDA {_PLAIN}\.", 1100),
        Prefix(rf"{_NAME}\s*=", rf"{_PLAIN}(?:\.{_PLAIN})*=", 990),
        Prefix(r"\*", r"\*", 200),
    ),
    joints=".=",
)
"""The meaning of a sentence without variables, ``paint ( agent = Paula , theme = cake ( nmod . in = closet ) )``."""
