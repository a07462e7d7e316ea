"""Fixtures that several files of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def marker(tmp_path) -> Path:
    """The file that an attack makes if its code runs; it must not appear."""
    path = tmp_path / "marker"
    yield path
    assert not path.exists()
