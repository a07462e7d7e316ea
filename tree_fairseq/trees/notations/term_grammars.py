r"""The grammars of Prolog, FunQL and COGS's variable-free forms: names, operators and spacing.

===============================  =====================================================================
text                             tree
===============================  =====================================================================
``f ( a , b )``                  ``f`` over ``a`` and ``b``
``'new york'``                   a leaf; the quotation marks are part of its label
``a , b , c``                    ``,`` over all three; the same with ``;`` and ``AND``
``A \= B``                       ``\=`` over ``A`` and ``B``
``\+ a``                         ``\+`` over ``a``; ``\+ ( a , b )`` is ``\+`` over ``,``
``[ a , b ]``, ``[ a | T ]``     ``[]`` over ``a`` and ``b``, ``[|]`` over ``a`` and ``T``
``* cake``                       ``*`` over ``cake``
``agent = Emma``                 ``agent=`` over ``Emma``
``nmod . in = room``             ``nmod.in=`` over ``room``
``LAMBDA a . LAMBDA e . f``      ``LAMBDA a.`` over ``LAMBDA e.`` over ``f``
``( a )``                        ``()`` over ``a``, if the brackets are not needed
===============================  =====================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from tree_fairseq.trees.notations.notation import LITERAL_CODE, escape_first, escape_name, unescape_name
from tree_fairseq.trees.symbols import UNKNOWN_LABEL

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
    joints: str = ""  # characters of names that are surrounded by blanks in text but not in labels

    @cached_property
    def token(self) -> re.Pattern:
        """Matches a token; the matching group has the name of its kind. Unexpected characters are ``text``."""
        operators = sorted(self.infixes, key=len, reverse=True)
        kinds = {
            "quoted": rf"(?:{self.quoted}){_END}",
            "unknown": re.escape(UNKNOWN_LABEL) + _END,
            "prefix": "|".join(prefix.pattern for prefix in self.prefixes) or "(?!)",
            "infix": "|".join(rf"\b{text}\b" if text.isalpha() else re.escape(text) for text in operators) or "(?!)",
            "mark": r"[(),\[\]|]" if self.lists else "[(),]",
            "word": self.word,
            "text": r"\S",
        }
        return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))

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
        is_word = found is not None and found.lastgroup == "word" and found.end() == len(text)
        return text if is_word else self.joined(escape_first(name))

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
    word=rf"""(?:(?!->|:-)[^\s(),;\[\]|'"\\=<>]|{_CODE})+""",
    refused=rf"{_REFUSED}|-(?=>)|:(?=-)",
    infixes={
        ":-": Infix(1200, 1199, 1199),
        ";": _chain(1100),
        "->": Infix(1050, 1049, 1050),
        ",": _chain(1000),
        **dict.fromkeys(("=", "\\=", "==", "\\==", "=:=", "=\\=", "<", ">", "=<", ">="), Infix(700, 699, 699)),
    },
    prefixes=(Prefix(r"\\\+", r"\\\+", 900),),
    quoted=rf"""{_QUOTED}|{_QUOTED.replace("'", '"')}""",
    lists=True,
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
