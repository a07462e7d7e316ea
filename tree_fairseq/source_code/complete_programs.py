"""Whether complete programs are ones of their language that run on a schema."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable

from tree_fairseq.errors import InputError
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.source_code.sql import Sql
from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

_MOST_COUNTED = 200  # training queries that are run, because every search waits for them when it starts


def load_schema(path: str | None, language: Language) -> Schema | None:
    """Loads the schema that queries must run on, if there is one. Raises InputError if the language is not SQL."""
    if path is not None and not isinstance(language, Sql):
        raise InputError(f"--schema is for SQL, and the target is {language.name}")
    return None if path is None else Schema.load(path)


def is_program(tree: Tree, language: Language, schema: Schema | None) -> bool:
    """Whether the language reads what is written for a tree, and it runs on the schema, if there is one."""
    return (schema is None or _reason(tree, language, schema) is None) and language.accepts(tree)


def _reason(query: Tree, language: Language, schema: Schema) -> str | None:
    """Why a query does not run, if it does not."""
    return schema.reason(language.write_for_sqlite(query) if isinstance(language, Sql) else language.write(query))


def is_bound(query: Tree, schema: Schema) -> bool:
    """Whether a query keeps the rules for partial ones, some of which SQLite lacks; a search asks while it grows."""
    state = PartialQuery(schema)
    try:
        for node in query.preorder():
            state = state.then(node.label, len(node.children))
    except Unbound:
        return False
    return True


def report_queries_that_do_not_run(queries: Iterable[Tree], language: Language, schema: Schema) -> None:
    """Logs how many of the first training queries do not run on the schema; those with unknown labels do not count."""
    distinct = {
        tuple(node.label for node in query.preorder()): query for query in itertools.islice(queries, _MOST_COUNTED)
    }
    known = [query for labels, query in distinct.items() if not any(UNKNOWN_LABEL in label for label in labels)]
    reasons = [reason for query in known if (reason := _reason(query, language, schema)) is not None]
    counts = f"{len(reasons)} of {len(known)} training queries do not run on the schema"
    # Without a dialect, sqlglot renames functions, such as INSTR to STR_POSITION, and SQLite refuses these names.
    is_renamed = language.name == "sql" and any("no such function" in reason for reason in reasons)
    advice = "; use --target-notation sql:sqlite for a SQLite file" if is_renamed else ""
    logger.info("[trees] %s%s", counts, f" (the first: {reasons[0]}){advice}" if reasons else "")
