"""Files that fairseq writes."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.checkpoint_utils import torch_persistent_save
from fairseq.data import Dictionary
from fairseq.file_io import PathManager
from fairseq.logging import progress_bar

from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.support import files


@pytest.fixture
def progress_logger():
    logger = progress_bar.logger
    handlers, level = [*logger.handlers], logger.level
    logger.setLevel(logging.INFO)
    yield logger
    for handler in {*logger.handlers} - {*handlers}:
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(level)


def test_a_log_file_has_each_line_once_after_several_epochs(tmp_path, progress_logger, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for epoch in range(1, 6):
        name = ("train.log", "./train.log")[epoch % 2]
        progress_bar.progress_bar([], log_format="simple", log_file=name, epoch=epoch).print({"loss": epoch}, "train")
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert lines == [f"epoch {epoch:03d} | loss {epoch}" for epoch in range(1, 6)]
    assert sum(isinstance(handler, logging.FileHandler) for handler in progress_logger.handlers) == 1


def test_another_log_file_is_opened_too(tmp_path, progress_logger):
    for name in ("first.log", "second.log"):
        bar = progress_bar.progress_bar([], "simple", 100, str(tmp_path / name))
    bar.print({"loss": 1})
    assert all(len(path.read_text().splitlines()) == 1 for path in tmp_path.iterdir())


def test_a_copy_gets_its_name_when_it_is_complete(tmp_path, monkeypatch):
    new, last = tmp_path / "new", tmp_path / "checkpoint_last.pt"
    new.write_text("new")
    last.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("torn")

    with monkeypatch.context() as patch:
        patch.setattr(files.shutil, "copyfileobj", fail)
        patch.setattr(files.shutil, "copyfile", lambda source, target: Path(target).write_text("n"))
        with pytest.raises(OSError, match="torn"):
            PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    assert PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "new"


@pytest.fixture
def done(monkeypatch) -> list[tuple[str, str]]:
    """What was put on the disk, and which names were given, in order."""
    done: list[tuple[str, str]] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def name_of(descriptor: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{descriptor}")).name

    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append(("sync", name_of(descriptor))), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append(("name", Path(new).name)), replace(old, new)))
    monkeypatch.setattr(os, "rename", lambda old, new: (done.append(("name", Path(new).name)), rename(old, new)))
    return done


def test_contents_are_on_the_disk_before_the_name(tmp_path, done):
    torch_persistent_save({"a": 1}, str(tmp_path / "c.pt"))
    assert done == [("sync", "c.pt.tmp"), ("name", "c.pt"), ("sync", tmp_path.name)]


def test_our_files_are_on_the_disk_before_their_names_too(tmp_path, done):
    with files.atomic_file(tmp_path / "a") as file:
        file.write("x")
    assert [kind for kind, _ in done] == ["sync", "name", "sync"]
    assert done[1:] == [("name", "a"), ("sync", tmp_path.name)]
    done.clear()
    files.copy_whole(tmp_path / "a", tmp_path / "b")
    assert [kind for kind, _ in done] == ["sync", "name", "sync"] and (tmp_path / "b").read_text() == "x"


class Mortal(VocabularyDatasetBinarizer):
    """Dies at a word."""

    def binarize_line(self, line, summary):
        if "poison" in line:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().binarize_line(line, summary)


@pytest.fixture
def text(tmp_path) -> tuple[Path, Dictionary]:
    lines = [" ".join(f"w{number % 7}" for number in range(length % 9)) for length in range(100)]
    path, dictionary = tmp_path / "text", Dictionary()
    path.write_text("".join(f"{line}\n" for line in lines))
    for word in ("w0", "w1", "w3", "w5"):
        dictionary.add_symbol(word)
    return path, dictionary


@pytest.mark.parametrize("workers", [2, 5, 40])
def test_bytes_and_counts_do_not_depend_on_the_number_of_workers(text, tmp_path, workers):
    path, dictionary = text
    outcomes = []
    for number in (1, workers):
        prefix = str(tmp_path / f"bin{number}")
        summary = FileBinarizer.multiprocess_dataset(
            str(path), "mmap", VocabularyDatasetBinarizer(dictionary), prefix, len(dictionary), num_workers=number
        )
        found = [summary.num_seq, summary.num_tok, dict(summary.replaced)]
        found += [Path(f"{prefix}{suffix}").read_bytes() for suffix in (".bin", ".idx")]
        outcomes.append(found)
    assert outcomes[0] == outcomes[1] and len(list(tmp_path.iterdir())) == 5


def test_a_killed_worker_ends_binarizing(text, tmp_path):
    path, dictionary = text
    path.write_text(path.read_text() + "poison\n")
    with pytest.raises(WorkerDiedError, match="that binarized .* was killed"):
        FileBinarizer.multiprocess_dataset(
            str(path), "mmap", Mortal(dictionary), str(tmp_path / "bin"), len(dictionary), num_workers=2
        )
