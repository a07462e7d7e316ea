"""Folders that all training steps share."""

import pytest

from tests.training_steps.cases import Folders


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> Folders:
    return Folders(tmp_path_factory.mktemp("steps"))
