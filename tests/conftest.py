"""Fixtures that several folders of tests share; each is made once in a session, at its first use."""

import gc

import fairseq  # noqa: F401  the plugin registers only where fairseq is
from hypothesis import settings

import tree_fairseq
from tests.end_to_end.fixtures import corpus, data_bin, stock_trained, trained
from tests.end_to_end.shared import shared
from tests.hydra_cache import remember_overrides

__all__ = ["corpus", "data_bin", "shared", "stock_trained", "trained"]

# No deadline: the time of an example depends on the load of the machine.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
tree_fairseq.register()
remember_overrides()


def pytest_collection_finish() -> None:
    """Excludes all that was imported from garbage collections: each would take half a second, and find nothing."""
    gc.collect()
    gc.freeze()
