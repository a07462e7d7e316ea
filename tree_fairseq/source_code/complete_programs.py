"""Whether complete programs are ones of their language that run on a schema."""

from __future__ import annotations

from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.trees.tree import Tree


def is_program(tree: Tree, language: Language, schema: Schema | None) -> bool:
    """Whether the language reads what is written for a tree, and it runs on the schema, if there is one."""
    runs = schema is None or schema.runs(language.write(tree))
    return runs and language.accepts(tree) and (schema is None or _is_bound(tree, schema))


def _is_bound(query: Tree, schema: Schema) -> bool:
    """Whether a query keeps the rules for partial ones, some of which SQLite lacks."""
    state = PartialQuery(schema)
    try:
        for node in query.preorder():
            state = state.then(node.label, len(node.children))
    except Unbound:
        return False
    return True
