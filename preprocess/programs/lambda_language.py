"""LAMBDA, a small functional language, and the translation of FOR programs to it.

===============================  ============================
tree                             text
===============================  ============================
``Unit``                         ``()``
``( If C T T )``                 ``if C then T else T``
``( Let x T T )``                ``let x = T in T``
``( Letrec f x T T )``           ``letrec f x = T in T``
``( App f E )``                  ``f E``
===============================  ============================

Expressions and comparisons are those of FOR.
"""

from __future__ import annotations

from preprocess.programs.for_language import KINDS, Dialect
from tree_fairseq.trees.tree import Tree

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
