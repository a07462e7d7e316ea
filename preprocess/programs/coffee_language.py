"""A part of CoffeeScript: its tokens, its text, and the syntax trees of the CoffeeScript compiler.

Tokens are the words of the text, and ``INDENT``, ``OUTDENT`` and ``TERMINATOR`` for its layout. Trees have the labels
of the data of Chen, Liu and Song (2018), with an underscore for a blank.

==============================================  =====================================================
tokens                                          tree
==============================================  =====================================================
statement TERMINATOR statement                  ``( Block statement statement )``
``if`` E INDENT block OUTDENT                   ``( If E block )``
``if`` E INDENT block OUTDENT ``else`` ...      ``( If E block block )``
``while`` E INDENT block OUTDENT                ``( While E block )``
S ``if`` E, S ``while`` E                       ``( If E ( Block S ) )``, ``( While E ( Block S ) )``
``x = E``                                       ``( Assign ( Value_IdentifierLiteral x ) E )``
``E + E``, ``E * E``, ``E == E``                ``( Op_+ E E )``, ``( Op_* E E )``, ``( Op_=== E E )``
``x``, ``1``                                    ``( Value_IdentifierLiteral x )``, ``( Value_NumberLiteral 1 )``
==============================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Sequence

from tree_fairseq.errors import NotationError
from tree_fairseq.trees.tree import Tree

INDENT, OUTDENT, TERMINATOR = "INDENT", "OUTDENT", "TERMINATOR"
LAYOUT = frozenset((INDENT, OUTDENT, TERMINATOR))

# Precedence of each operator, and whether it associates to the left. As in the compiler, the condition of an ``if`` or
# a ``while`` behind a statement extends over a following ``while``.
_BINDING = {"if": (0, True), "while": (1, False), "=": (2, False), "==": (3, True), "+": (4, True), "*": (5, True)}
_LABELS = {"if": "If", "while": "While", "=": "Assign", "==": "Op_===", "+": "Op_+", "*": "Op_*"}


def read_coffee(words: Sequence[str]) -> Tree:
    """Returns the tree of a program."""
    statements: list[Tree] = []
    # For every open block: the statements before it, its keyword, and its condition followed by its finished blocks.
    enclosing: list[tuple[list[Tree], str, list[Tree]]] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("if", "while"):
            end = _end_of_line(words, position)
            enclosing.append((statements, word, [_line_tree(words[position + 1 : end])]))
            position = _after(words, end, INDENT)
            statements = []
        elif word == OUTDENT:
            if not enclosing or not statements:
                raise NotationError("the end of a block that has not begun or is empty", column=position + 1)
            outer, head, parts = enclosing.pop()
            parts.append(Tree("Block", statements))
            position += 1
            if head == "if" and position < len(words) and words[position] == "else":
                if len(parts) == 3:
                    raise NotationError("a second 'else'", column=position + 1)
                enclosing.append((outer, head, parts))
                position = _after(words, position + 1, INDENT)
                statements = []
            else:
                statements = outer
                statements.append(Tree(_LABELS[head], parts))
        elif word == TERMINATOR:
            position += 1
        else:
            end = _end_of_line(words, position)
            statements.append(_line_tree(words[position:end]))
            position = end
    if enclosing or not statements:
        raise NotationError("the program has no statement, or its last block does not end")
    return Tree("Block", statements)


def coffee_text(words: Sequence[str]) -> str:
    """Returns the program as a CoffeeScript file."""
    lines: list[str] = []
    line: list[str] = []
    depth = 0
    for word in (*words, TERMINATOR):
        if word not in LAYOUT:
            line.append(word)
            continue
        if line:
            lines.append("  " * depth + " ".join(line) + "\n")
            line = []
        depth += {INDENT: 1, OUTDENT: -1}.get(word, 0)
    return "".join(lines)


def _end_of_line(words: Sequence[str], position: int) -> int:
    return next((end for end in range(position, len(words)) if words[end] in LAYOUT), len(words))


def _after(words: Sequence[str], position: int, expected: str) -> int:
    if position >= len(words) or words[position] != expected:
        found = words[position] if position < len(words) else "the end"
        raise NotationError(f"{found!r} where {expected} is expected", column=position + 1)
    return position + 1


def _line_tree(words: Sequence[str]) -> Tree:
    """Returns the tree of a statement on one line, by operator precedence."""
    operands: list[Tree] = []
    operators: list[str] = []
    for position, word in enumerate(words):
        if position % 2 == 0:
            if word in _BINDING or not word.isalnum():
                raise NotationError(f"{word!r} where a name or a number is expected")
            operands.append(Tree("Value_NumberLiteral" if word.isdigit() else "Value_IdentifierLiteral", (Tree(word),)))
            continue
        if word not in _BINDING:
            raise NotationError(f"{word!r} where an operator is expected")
        binding, is_left = _BINDING[word]
        while operators and (_BINDING[operators[-1]][0] > binding or _BINDING[operators[-1]][0] == binding and is_left):
            _reduce(operands, operators.pop())
        operators.append(word)
    if len(operands) != len(operators) + 1:
        raise NotationError("an operator or a keyword without its operand")
    while operators:
        _reduce(operands, operators.pop())
    return operands[0]


def _reduce(operands: list[Tree], operator: str) -> None:
    right, left = operands.pop(), operands.pop()
    children = (right, Tree("Block", (left,))) if operator in ("if", "while") else (left, right)
    operands.append(Tree(_LABELS[operator], children))
