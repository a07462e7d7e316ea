"""Fixtures that several folders of tests share; each is made once a session, when it is first asked for."""

from tests.end_to_end.fixtures import corpus, data_bin, stock_trained, trained

__all__ = ["corpus", "data_bin", "stock_trained", "trained"]
