"""FOR, a small imperative language, its two published dialects, and its translation to LAMBDA, a functional one.

=======================================  ==================================================
tree                                     text
=======================================  ==================================================
``( Assign x E )``                       ``x = E``
``( If C S S )``                         ``if C then S else S endif``
``( For x E C E S )``                    ``for x = E ; C ; E do S endfor``
``( Seq S S )``                          ``S ; S``
``( Var x )``, ``( Const 1 )``           ``x``, ``1``
``( Plus E E )``, ``( Minus E E )``      ``E + E``, ``E - E``
``( Equal E E )``, ``Le``, ``Ge``        ``E == E``, ``E < E``, ``E > E``
=======================================  ==================================================

The literature has two sets of such programs. Of the set of Chen, Liu and Song (2018) only the format is known. Drissi
et al. (2018) reconstructed it and published their validation and test set as JSON.

Operators and ``;`` associate to the left, so only a compound right operand needs brackets. In dialects whose sequences
are nested to the right, the left operand of ``;`` needs them.

LAMBDA has the same expressions and comparisons:

===============================  ============================
tree                             text
===============================  ============================
``Unit``                         ``()``
``( If C T T )``                 ``if C then T else T``
``( Let x T T )``                ``let x = T in T``
``( Letrec f x T T )``           ``letrec f x = T in T``
``( App f E )``                  ``f E``
===============================  ============================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from preprocess.corpora import CorpusError, read_json_list
from tree_fairseq.errors import InputError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

OPERATORS = {"Plus": "+", "Minus": "-"}
COMPARISONS = {"Equal": "==", "Le": "<", "Ge": ">"}

CHILDREN = {"Assign": "nE", "If": "CSS", "For": "nECES", "Seq": "SS", "Var": "n", "Const": "n"}
CHILDREN |= dict.fromkeys((*OPERATORS, *COMPARISONS), "EE")
"""The kinds of the children of a node: ``n`` a name or number, ``E`` expression, ``C`` comparison, ``S`` statement."""

KINDS = dict.fromkeys(("Assign", "If", "For", "Seq"), "S") | dict.fromkeys(COMPARISONS, "C")
KINDS |= dict.fromkeys(("Var", "Const", *OPERATORS), "E")


@dataclass(frozen=True)
class Dialect:
    """The names and conventions of a data set.

    Args:
        variables: all names of variables
        constants: all numbers
        defined: number of variables that a program may read before it assigns any
        dummy: the LAMBDA variable that is never read
        function: the LAMBDA function that a loop becomes
        right_sequences: whether ``a ; b ; c`` is ``( Seq a ( Seq b c ) )`` or ``( Seq ( Seq a b ) c )``
    """

    variables: tuple[str, ...]
    constants: tuple[str, ...]
    defined: int
    dummy: str
    function: str
    right_sequences: bool


CHEN = Dialect(("x", "y", "z"), ("0", "1"), defined=3, dummy="blank", function="func", right_sequences=True)
REBUILD = Dialect(
    tuple(f"a{number}" for number in range(11)),
    tuple(str(number) for number in range(11)),
    defined=1,
    dummy="a8",
    function="a9",
    right_sequences=False,
)


def read_published(path: Path) -> list[Tree]:
    """Reads the programs of a published JSON file, which is a list of programs."""
    notation = notation_named("json")
    programs = []
    elements = read_json_list(path, ": it is one of the two files of published FOR programs")
    for number, element in enumerate(elements, 1):
        try:
            program = notation.read(json.dumps(element))
            check_program(program)
        except (InputError, ValueError) as error:
            raise CorpusError(f"{path}: program {number} is not a FOR program: {error}") from error
        programs.append(program)
    return programs


def check_program(program: Tree) -> None:
    """Checks that a tree is a FOR program. Raises ValueError if a node has an unknown tag or the wrong children."""
    stack = [(program, "S")]
    while stack:
        node, kind = stack.pop()
        if kind == "n":
            if node.children:
                raise ValueError(f"{node.label!r} has children where a name or a number is expected")
            continue
        if KINDS.get(node.label) != kind:
            wanted = ", ".join(tag for tag in KINDS if KINDS[tag] == kind)
            raise ValueError(f"{node.label!r} where one of {wanted} is expected")
        kinds = CHILDREN[node.label]
        if len(kinds) != len(node.children):
            raise ValueError(f"{node.label!r} has {len(node.children)} children instead of {len(kinds)}")
        stack.extend(zip(node.children, kinds))


UNIT = Tree("Unit")


def to_lambda(program: Tree, dialect: Dialect) -> Tree:
    """Translates a FOR program to LAMBDA.

    The translation T is::

        T(Assign x e)      = Let x e Unit
        T(If c p q)        = If c T(p) T(q)
        T(For x i c s p)   = Letrec f x (If c (Let dummy T(p) (App f s)) Unit) (App f i)
        T(Seq p q)         = Let x e T(q)              where T(p) = Let x e Unit
                           = Let dummy T(p) T(q)       otherwise
    """
    dummy, function = Tree(dialect.dummy), Tree(dialect.function)

    def translate(node: Tree, translated: list[Tree]) -> Tree:
        if KINDS.get(node.label) != "S" or not node.children:
            return node
        if node.label == "Assign":
            return Tree("Let", (*node.children, UNIT))
        if node.label == "If":
            return Tree("If", translated)
        if node.label == "Seq":
            first, second = translated
            if first.label == "Let" and first.children[2] == UNIT:
                return Tree("Let", (*first.children[:2], second))
            return Tree("Let", (dummy, first, second))
        variable, start, condition, step, _ = node.children
        again = Tree("Let", (dummy, translated[4], Tree("App", (function, step))))
        return Tree(
            "Letrec", (function, variable, Tree("If", (condition, again, UNIT)), Tree("App", (function, start)))
        )

    return program.fold(translate)


# Numbers are places of children; the other parts are words.
_TEMPLATES: dict[str, tuple[int | str, ...]] = {
    "For": ("for", 0, "=", 1, ";", 2, ";", 3, "do", 4, "endfor"),
    "Var": (0,),
    "Const": (0,),
    "Unit": ("()",),
    "Let": ("let", 0, "=", 1, "in", 2),
    "Letrec": ("letrec", 0, 1, "=", 2, "in", 3),
    "App": (0, 1),
} | {tag: (0, word, 1) for tag, word in COMPARISONS.items()}
_FOR_TEMPLATES = _TEMPLATES | {"Assign": (0, "=", 1), "If": ("if", 0, "then", 1, "else", 2, "endif")}
_LAMBDA_TEMPLATES = _TEMPLATES | {"If": ("if", 0, "then", 1, "else", 2)}


def for_text(program: Tree, dialect: Dialect) -> str:
    """Returns a FOR program as text."""
    return _text(program, _FOR_TEMPLATES, dialect.right_sequences)


def lambda_text(program: Tree) -> str:
    """Returns a LAMBDA program as text."""
    return _text(program, _LAMBDA_TEMPLATES, False)


def _text(program: Tree, templates: dict[str, tuple[int | str, ...]], right_sequences: bool) -> str:
    words: list[str] = []
    stack: list[Tree | str] = [program]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            words.append(node)
        elif not node.children and node.label != "Unit":
            words.append(node.label)
        elif node.label in templates:
            stack.extend(
                part if isinstance(part, str) else node.children[part] for part in reversed(templates[node.label])
            )
        else:
            # An operator or a sequence: one of its operands may need brackets.
            is_sequence = node.label == "Seq"
            operands: list[tuple[Tree | str, ...]] = [(child,) for child in node.children]
            side = 0 if is_sequence and right_sequences else 1
            if node.children[side].label in (("Seq",) if is_sequence else OPERATORS):
                operands[side] = ("(", node.children[side], ")")
            stack.extend(reversed((*operands[0], ";" if is_sequence else OPERATORS[node.label], *operands[1])))
    return " ".join(words)
