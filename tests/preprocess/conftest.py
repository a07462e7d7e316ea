"""Fixtures that several files of this folder share."""

from __future__ import annotations

import pytest

from preprocess import toy_corpus


@pytest.fixture(scope="session")
def toy_agreement(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement")
    toy_corpus.main(["sva", "--output", str(folder), "--train", "60", "--test", "12"])
    return folder
