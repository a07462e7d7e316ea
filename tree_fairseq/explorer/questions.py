"""Questions to SQL: what several systems answer, and the rows that their queries return from a database.

The queries come from models and are not trusted: they run in the child process of
:mod:`tree_fairseq.scoring.query_sandbox`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tree_fairseq.drawing.views import tree_record
from tree_fairseq.errors import InputError
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.document import SentenceRecord
from tree_fairseq.explorer.systems import System
from tree_fairseq.scoring.execution import Database
from tree_fairseq.trees.notations import notation_named

NOTATION = "sql:sqlite"
_ROWS = 8  # that the page shows
_TOKENS = re.compile(r"[^\W\d_]+|\d")


def words_of_question(text: str) -> list[str]:
    """Returns a question as models read it: words in lower case and single digits, without marks."""
    return _TOKENS.findall(text.lower())


class QuestionsToSql(Comparison):
    """Explains questions with systems that write SQL, and runs their queries on a file of SQLite.

    All systems read the words of the first.
    """

    def __init__(self, systems: Sequence[System], database: Path):
        super().__init__(systems, "Question to SQL")
        self._database, self._language = Database(database, shown=_ROWS), notation_named(NOTATION)

    def explain_line(self, line: str, number: int = 0) -> SentenceRecord:
        """Explains a typed question; raises InputError for words that the models do not know."""
        words, dictionary = words_of_question(line), self.systems[0].task.source_dictionary
        unknown = [word for word in words if word not in dictionary]
        if unknown:
            raise InputError(
                f"the models do not know {', '.join(unknown)}", hint="The list has the words that they know."
            )
        record = super().explain_line(" ".join(words), number)
        record.source = line.strip()
        for output in record.systems:
            if output.error is None:
                output.views |= self._answer(output.hypothesis)
        return record

    def tree(self, query: str) -> dict[str, Any]:
        """Returns the tree of a query; raises InputError if it does not parse."""
        return {**tree_record((self._language.read(query),)), "is_program": True}

    def _answer(self, query: str) -> dict[str, Any]:
        """Returns two views: whether a query parses, what is wrong with it, and its first rows; and its tree."""
        try:
            tree = self.tree(query)
        except InputError as error:
            problem = error.message.removeprefix("not SQL: ")
            return {"query": {"parses": False, "problem": problem, "columns": [], "rows": [], "count": 0}}
        found = self._database.answer(query)
        rows = {"columns": list(found.columns), "rows": list(map(list, found.shown)), "count": found.rows}
        return {"query": {"parses": True, "problem": found.error, **rows}, "output_tree": tree}
