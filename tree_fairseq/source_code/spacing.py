"""Where people write blanks between the tokens of a program, by a small table per language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# In place of the type of a node, for the token of a leaf, and for a sign before an operand or a name.
LEAF, PREFIX = "", "<prefix>"
# For a line break, with the place of the next line as its text; for no blank; and around a node with breaks, and
# before each of its children.
_MARKS = BREAK, TOUCH, BEGIN, END, PART = "<break>", "<touch>", "<begin>", "<end>", "<part>"

_WORD = re.compile(r"[\w$@\"']")
_OPERATORS = frozenset(
    "= == != < > <= >= + - * / % && || & | ^ << >> >>> ?? ? : -> => += -= *= /= %= &= |= ^= <<= >>= >>>= ??= === !== "
    "** instanceof in is as".split()
)
_KEYWORDS = frozenset(
    "if for while switch catch foreach synchronized lock using return else throws throw where do try case new".split()
)
# Nodes whose tokens look like operators but are not, and nodes with one operand.
_NO_OPERATORS = re.compile(
    rf"{PREFIX}|type_(arguments|argument_list|parameters|parameter_list)|nullable_type|annotation|wildcard|array_rank_specifier"
    r"|conditional_access_expression|labeled_statement|switch_label|case_switch_label|.*pointer_type|.*unary_expression"
    r"|update_expression|constructor_initializer|generic_name|member_binding_expression|default_switch_label"
    r"|type_parameter_constraints_clause|argument|name_colon|switch_block_statement_group|switch_section|switch_case"
    r"|switch_default|pair"
)


@dataclass(frozen=True)
class Spacing:
    """The blanks of a language."""

    before_brace: bool = True  # whether a blank precedes ``{``
    before_keyword: frozenset[str] = frozenset(["throws"])  # tokens that a blank precedes
    after_colon: bool = False  # whether a blank follows the colon of a label, a case or a key
    is_apart: bool = False  # whether a blank stands between any two tokens

    def join(self, tokens: Iterable[tuple[str, str]]) -> str:
        """The text of tokens, which come with the type of the node that they belong to, or one of the kinds above."""
        lines: list[str] = []
        line = left = left_type = ""
        is_joined = True  # nothing stands on the line, or the next token touches
        opened: list[str] = []
        nodes: list[list[int]] = []  # the indentation of the line where a node begins, and the column of its last child
        begun: list[list[int]] = []  # nodes whose child begins with the next token
        for text, type_name in tokens:
            if type_name in _MARKS:
                if type_name == BEGIN:
                    nodes.append([indentation(line), 0])
                elif type_name == PART:
                    begun.append(nodes[-1])
                elif type_name == END:
                    nodes.pop()
                else:
                    is_joined = True
                if type_name == BREAK:
                    lines.append(line)
                    line = " " * {"=": nodes[-1][1], ">": nodes[-1][0] + 4, "<": nodes[-1][0]}[text]
                continue
            in_parentheses = bool(opened) and opened[-1] == "("
            if not is_joined and self._has_blank(left, left_type, text, type_name, in_parentheses):
                line += " "
            is_joined = False
            while begun:
                begun.pop()[1] = len(line)
            line += text
            if type_name != LEAF:
                if text in ("(", "{", "["):
                    opened.append(text)
                elif text in (")", "}", "]") and opened:
                    opened.pop()
            elif "\n" in text:
                *whole, line = line.split("\n")
                lines += whole
            left, left_type = text, type_name
        return "\n".join([*lines, line])

    def _has_blank(self, left: str, left_type: str, right: str, right_type: str, in_parentheses: bool) -> bool:
        if self.is_apart:
            return True
        if left == "," and left_type != LEAF:
            return right not in (",", "]", ">")
        if left_type == PREFIX:
            return left[-1] == right[:1] and left[-1] in "+-&"  # `- -x` is not `--x`
        if "?." in (left, right):
            return False
        if left_type == right_type == LEAF:
            return True
        if _WORD.match(left[-1:]) and (right_type == PREFIX or _WORD.match(right[:1])):
            return True
        if left == ";" and left_type != LEAF:
            return in_parentheses and right not in (";", ")")
        if _is_operator(left, left_type) or _is_operator(right, right_type):
            return True
        if right_type != LEAF and right in self.before_keyword:
            return True
        if left == ":" and (left_type == "constructor_initializer" or left_type != LEAF and self.after_colon):
            return True
        if left_type != LEAF and left in _KEYWORDS and right not in (";", "{", "[", "<", ")", "}"):
            return True
        if left[-1:] == right[:1] and left[-1:] in "+-&":
            return True  # `- -x` is not `--x`
        if right == "{" and right_type != LEAF:
            return self.before_brace and left not in ("{", "}", ";", "(", "[")
        return left in (">", "]") and _WORD.match(right[:1]) is not None


def indentation(line: str) -> int:
    """How many blanks and tabs a line begins with."""
    return len(line) - len(line.lstrip(" \t"))


def _is_operator(text: str, type_name: str) -> bool:
    return type_name != LEAF and text in _OPERATORS and _NO_OPERATORS.fullmatch(type_name) is None


TABLE = {
    "java": Spacing(),
    "javascript": Spacing(after_colon=True),
    "bash": Spacing(is_apart=True),
    "c_sharp": Spacing(before_brace=False, before_keyword=frozenset()),
}
