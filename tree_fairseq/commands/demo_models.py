"""The models that come with the package, for sentences that a user of ``tree-fairseq explore --demo --serve`` types.

The page itself shows records and needs none of them (:func:`tree_fairseq.commands.explore.demo_document`).
"""

from functools import cache
from pathlib import Path

from tree_fairseq import hub
from tree_fairseq.explorer import DEMO
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.questions import QuestionsToSql
from tree_fairseq.explorer.systems import System

SYSTEMS = {
    "with_positions": "tree positions",
    "without_positions": "transformer, same search",
    "as_text": "transformer, subwords",
}
"""The bundled systems that write SQL: the folder of each, and its name on the page."""


def questions(folder: Path = DEMO / "archipelago") -> QuestionsToSql:
    """Loads the models that write SQL, and their database; raises InputError without the extra ``code``."""
    database = folder / "archipelago.sqlite"
    searched = {"grammar": "language", "schema": str(database)}
    options = {"with_positions": searched, "without_positions": searched, "as_text": {}}
    systems = [
        System(hub.from_pretrained(folder / name, **options[name]), title, beam=5, max_len_a=0, max_len_b=150)
        for name, title in SYSTEMS.items()
    ]
    return QuestionsToSql(systems, database)


def translations() -> Comparison:
    """Loads the model that translates; it needs the extras ``stanza`` and ``subwords``."""
    return Comparison([System(hub.from_pretrained(DEMO), "model")], "English to German")


TABS = [cache(questions), cache(translations)]
"""Load the models that answer in each tab of the page."""
