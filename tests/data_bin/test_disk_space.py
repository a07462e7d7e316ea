"""A full disk is reported with the bytes that are needed; other errors are not touched."""

from __future__ import annotations

import errno
import os
from collections import namedtuple

import pytest

from tree_fairseq.data_bin import staging
from tree_fairseq.data_bin.staging import reporting_full_disk, require_room
from tree_fairseq.errors import DiskFullError

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def thousand_bytes(monkeypatch):
    monkeypatch.setattr(staging.shutil, "disk_usage", lambda folder: Usage(9000, 8000, 1000))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_a_full_disk_raises(tmp_path, thousand_bytes, number):
    with (
        pytest.raises(DiskFullError, match="12345 bytes are needed.*1000 are free"),
        reporting_full_disk(tmp_path / "new", 12345),
    ):
        raise OSError(number, os.strerror(number))


def test_other_errors_stay_as_they_are(tmp_path):
    for error in (
        PermissionError(errno.EACCES, "no"),
        FileNotFoundError("x"),
        DiskFullError("said before"),
        ValueError("x"),
    ):
        with pytest.raises(type(error)) as caught, reporting_full_disk(tmp_path, 1):
            raise error
        assert caught.value is error


def test_room_is_looked_for_before_writing(tmp_path, thousand_bytes):
    require_room(tmp_path, 1000, "the trees")
    with pytest.raises(DiskFullError, match="the trees.*1001 bytes are needed, 1000 are free"):
        require_room(tmp_path, 1001, "the trees")
