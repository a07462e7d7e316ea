"""What the tests of recipes share."""

from __future__ import annotations

import pytest


@pytest.fixture
def base(tmp_path):
    """Options of a full-size run; a folder that is not empty is all that --dry-run asks of data."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "some").touch()
    return "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")
