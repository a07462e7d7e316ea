"""Files are complete or absent, and the report of a full disk names the bytes that are needed."""

from __future__ import annotations

import errno
import os
import pickle
import stat
from collections import namedtuple

import pytest

from tree_fairseq.errors import CorruptFileError, DiskFullError
from tree_fairseq.support import files
from tree_fairseq.support.files import atomic_file, is_part, read_json, reporting_full_disk, write_json

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def thousand_bytes(monkeypatch):
    monkeypatch.setattr(files.shutil, "disk_usage", lambda folder: Usage(9000, 8000, 1000))


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_gets_its_name_only_when_it_is_complete(tmp_path, sync):
    path = tmp_path / "x"
    with atomic_file(path, "wb", sync=sync) as file:
        file.write(b"abc")
        assert not path.exists()
        [part] = os.listdir(tmp_path)
        assert is_part(part, "x") and not is_part(part, "y") and not is_part("x", "x")
    assert path.read_bytes() == b"abc" and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        (tmp_path / "plain").touch()
        write_json(tmp_path / "x", 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_text_is_utf_8_and_keeps_line_ends(tmp_path):
    with atomic_file(tmp_path / "x") as file:
        file.write("é\n\u2028\r\n")
    assert (tmp_path / "x").read_bytes() == "é\n\u2028\r\n".encode()


def test_a_failure_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_file(path, "wb") as file:
        file.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]


def test_a_device_is_written_to_instead_of_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_json(tmp_path / "pipe", 1)
    assert os.read(reader, 10) == b"1\n" and os.listdir(tmp_path) == ["pipe"]
    os.close(reader)


def full(number):
    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named(tmp_path, monkeypatch, thousand_bytes, number):
    monkeypatch.setattr(files.os, "fsync", full(number))
    with pytest.raises(DiskFullError, match=f"{tmp_path / 'x'} .*1000 bytes are free"):
        write_json(tmp_path / "x", 1)
    assert os.listdir(tmp_path) == []


def test_json(tmp_path):
    write_json(tmp_path / "a", {"b": ["é"]})
    assert read_json(tmp_path / "a") == {"b": ["é"]}
    assert (tmp_path / "a").read_bytes() == '{\n "b": [\n  "é"\n ]\n}\n'.encode()
    assert read_json(tmp_path / "missing") is None
    for content in (b'{"b": [', b"\xff", b""):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(CorruptFileError, match=f"{tmp_path / 'a'} is not JSON"):
            read_json(tmp_path / "a")
    for path, kind in ((tmp_path, "folder"), (os.devnull, "pipe or a device")):
        with pytest.raises(CorruptFileError, match=f"^{path} is a {kind}, not a file$"):
            read_json(path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_the_report_of_a_full_disk(tmp_path, thousand_bytes, number):
    with (
        pytest.raises(DiskFullError, match="12345 bytes are needed.*1000 are free"),
        reporting_full_disk(tmp_path / "new", 12345),
    ):
        raise OSError(number, os.strerror(number))


def test_the_report_adds_the_needed_bytes_to_the_error_of_one_file(tmp_path, monkeypatch, thousand_bytes):
    monkeypatch.setattr(files.os, "fsync", full(errno.ENOSPC))
    with pytest.raises(DiskFullError) as caught:
        write_json(tmp_path / "x", 1)
    error = pickle.loads(pickle.dumps(caught.value))  # as it comes from a worker process
    with pytest.raises(DiskFullError) as caught, reporting_full_disk(tmp_path, 12345):
        raise error
    message = str(caught.value)
    assert str(tmp_path / "x") in message and "12345 bytes are needed" in message
    assert message.count("give the same command again") == 1


def test_the_report_does_not_change_other_errors(tmp_path):
    for error in (
        PermissionError(errno.EACCES, "no"),
        FileNotFoundError("x"),
        DiskFullError("reported before"),
        ValueError("x"),
    ):
        with pytest.raises(type(error)) as caught, reporting_full_disk(tmp_path, 1):
            raise error
        assert caught.value is error
