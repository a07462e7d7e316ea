"""Downloads are verified, archives stay inside their folder."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile

import pytest

from preprocess.fetch import SOURCES, Archive, FetchError, download, extract, fetch, unzip


def make_tar(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_download_verifies_and_keeps(tmp_path):
    source = tmp_path / "source.tgz"
    source.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    archive = Archive(source.as_uri(), f"sha256:{digest}", "kept.tgz")
    folder = tmp_path / "data"
    assert download(archive, folder).read_bytes() == b"content"
    source.unlink()  # the second call does not ask the network
    assert download(archive, folder) == folder / "kept.tgz"


def test_wrong_digest_is_refused_and_not_kept(tmp_path):
    source = tmp_path / "source.tgz"
    source.write_bytes(b"other content")
    with pytest.raises(FetchError, match="published is 00"):
        download(Archive(source.as_uri(), "md5:00"), tmp_path / "data")
    assert not (tmp_path / "data" / "source.tgz").exists()


def test_unreachable_source_names_the_way_out(tmp_path):
    archive = Archive((tmp_path / "nowhere.tgz").as_uri())
    with pytest.raises(FetchError, match=r"put it at .*data/nowhere\.tgz"):
        download(archive, tmp_path / "data")


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_members_outside_the_folder_are_refused(tmp_path, name):
    make_tar(tmp_path / "bad.tgz", [(tarfile.TarInfo("fine"), b"1"), (tarfile.TarInfo(name), b"2")])
    with pytest.raises(FetchError, match="refused"):
        extract(tmp_path / "bad.tgz", tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())
    assert not (tmp_path / "outside").exists()


def test_links_are_refused(tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    make_tar(tmp_path / "bad.tgz", [(link, b"")])
    with pytest.raises(FetchError, match="refused"):
        extract(tmp_path / "bad.tgz", tmp_path / "folder")


def test_torn_archive_is_named(tmp_path):
    (tmp_path / "torn.tgz").write_bytes(b"\x1f\x8b torn")
    with pytest.raises(FetchError, match=r"torn\.tgz: not a readable tar archive"):
        extract(tmp_path / "torn.tgz", tmp_path / "folder")


def make_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_files_of_a_zip_archive_are_put_beside_it(tmp_path, monkeypatch):
    make_zip(tmp_path / "source.zip", {"train.txt": "a\tb\n", "test.txt": "c\td\n"})
    monkeypatch.setitem(SOURCES, "geo", (Archive((tmp_path / "source.zip").as_uri()),))
    assert fetch("geo", tmp_path / "data") == [tmp_path / "data" / "source.zip"]
    assert (tmp_path / "data" / "train.txt").read_text() == "a\tb\n"


def test_zip_members_outside_the_folder_are_refused(tmp_path):
    make_zip(tmp_path / "bad.zip", {"fine": "1", "../outside": "2"})
    (tmp_path / "folder").mkdir()
    with pytest.raises(FetchError, match="refused"):
        unzip(tmp_path / "bad.zip", tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())
    (tmp_path / "torn.zip").write_bytes(b"PK torn")
    with pytest.raises(FetchError, match=r"torn\.zip: not a readable zip archive"):
        unzip(tmp_path / "torn.zip", tmp_path / "folder")
