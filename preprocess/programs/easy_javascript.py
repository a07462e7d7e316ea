"""Translates easy CoffeeScript programs to JavaScript without the compiler, to try a recipe without Node.

A program is easy if it has no chains of comparisons and no loops inside of conditions. The translation of other
programs needs auxiliary variables and functions. The compiler translates easy programs in the same way.
"""

from __future__ import annotations

from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

_HEADS = ("If", "While")


def translate_easy(program: Tree) -> tuple[str, str]:
    """Returns the bracketed tree and the tokens of the translation of an easy program."""
    names = _assigned(program)
    return notation_named("bracket").write(_script_tree(program, names)), _script_tokens(program, names)


def is_easy(program: Tree) -> bool:
    """Returns whether a program can be translated without the compiler."""
    for node in program.preorder():
        if node.label == "Op_===" and node.children[0].label == "Op_===":
            return False
        if node.label in _HEADS and node.children[0].label in _HEADS:
            return False
    return True


def _assigned(program: Tree) -> list[str]:
    """Returns the variables that are assigned, in the order in which the compiler declares them."""
    return sorted({node.children[0].children[0].label for node in program.preorder() if node.label == "Assign"})


def _leading_values(program: Tree) -> int:
    """Returns the number of names and numbers that begin a program; the compiler declares variables after them."""
    is_value = [child.label.startswith("Value_") for child in program.children]
    return is_value.index(False) if False in is_value else len(is_value)


def _script_tree(program: Tree, names: list[str]) -> Tree:
    def translate(node: Tree, children: list[Tree]) -> Tree:
        if node.label == "Block":
            is_compound = ("IfStatement", "WhileStatement")
            return Tree(
                "BlockStatement",
                [child if child.label in is_compound else Tree("ExpressionStatement", (child,)) for child in children],
            )
        if node.label in _HEADS:
            return Tree(f"{node.label}Statement", children)
        if not node.children:
            return node
        label = {"Value_IdentifierLiteral": "Identifier", "Value_NumberLiteral": "Literal", "Assign": "="}.get(
            node.label
        )
        return Tree(label or node.label.removeprefix("Op_"), children)

    statements = list(program.fold(translate).children)
    if names:
        declarators = [Tree("VariableDeclarator", (Tree("Identifier", (Tree(name),)),)) for name in names]
        statements.insert(_leading_values(program), Tree("VariableDeclaration", declarators))
    return Tree("BlockStatement", statements)


def _script_tokens(program: Tree, names: list[str]) -> str:
    def translate(node: Tree, children: list[str]) -> str:
        if node.label == "Block":
            return " ".join(
                text if child.label in _HEADS else f"{text} ;" for child, text in zip_equal(node.children, children)
            )
        if node.label in _HEADS:
            condition, *blocks = children
            return f"{node.label.lower()} ( {condition} ) " + " else ".join(f"{{ {block} }}" for block in blocks)
        if not node.children:
            return node.label
        if len(children) == 1:
            return children[0]
        return f" {node.label.removeprefix('Op_').replace('Assign', '=')} ".join(children)

    statements = [translate(Tree("Block", (child,)), [child.fold(translate)]) for child in program.children]
    if names:
        statements.insert(_leading_values(program), f"var {' , '.join(names)} ;")
    return " ".join(statements)
