"""``fairseq-preprocess --parts``: folders with equal dictionaries, as the commands for each of them would make them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, read_lines, run_preprocess, write_corpus, write_lines
from tests.end_to_end.commands import run as run_command
from tree_fairseq.commands.check import check_folder
from tree_fairseq.errors import DestinationExistsError, InputError
from tree_fairseq.preprocessing import run
from tree_fairseq.trees.text import CHUNK_LINES

LINES = 2 * CHUNK_LINES + 7
PARSED = ("--tree-parser", "right-branching")
BOUNDS = [0, LINES // 3, 2 * LINES // 3, LINES]
KINDS = {
    "brackets": ("mixed", ("--tree-parser", "brackets")),
    "subwords": ("leaves", (*PARSED, "--learn-subwords", 60, "--joined-dictionary")),
    "programs": (
        "code",
        ("--task", "structural_translation", "--target-modality", "tree", "--target-notation", "python"),
    ),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = write_corpus(tmp_path_factory.mktemp("corpus"), train=LINES, valid=9)
    (folder / "code").mkdir()
    for split in ("train", "valid"):
        (folder / "code" / f"{split}.en").symlink_to(folder / "leaves" / f"{split}.en")
        count = len(read_lines(folder / "leaves" / f"{split}.en"))
        write_lines(folder / "code" / f"{split}.de", [f"x{number % 40} = f_{number % 7}()" for number in range(count)])
    return folder


def in_parts(corpus: Path, kind: str, destination: Path, *flags: object) -> None:
    text, own = KINDS[kind]
    arguments = prefixes(corpus / text, "train", "valid")
    run_preprocess(*arguments, "--destdir", destination, "--parts", 3, *own, *flags)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_those_of_one_command_each(corpus, tmp_path, kind):
    text, flags = KINDS[kind]
    in_parts(corpus, kind, tmp_path / "parts")
    first = tmp_path / "single/0"
    for number in range(3):
        for lang in ("en", "de"):
            lines = read_lines(corpus / text / f"train.{lang}")[BOUNDS[number] : BOUNDS[number + 1]]
            write_lines(tmp_path / f"train.{lang}", lines)
        given = [
            "--srcdict",
            first / "dict.en.txt",
            *(() if kind == "subwords" else ("--tgtdict", first / "dict.de.txt")),
        ]
        own = given if number else prefixes(corpus / text, "valid")
        own += [flag for flag in flags if not (number and flag in ("--learn-subwords", 60))]
        run_preprocess("--trainpref", tmp_path / "train", "--destdir", tmp_path / f"single/{number}", *own)
        assert folder_bytes(tmp_path / f"parts/{number}") == folder_bytes(tmp_path / f"single/{number}")
        assert check_folder(tmp_path / f"parts/{number}") == []
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["0", "1", "2", "parts.json"]


def test_a_stopped_command_goes_on_after_the_parts_that_are_complete(corpus, tmp_path, monkeypatch):
    in_parts(corpus, "brackets", tmp_path / "whole")
    calls = []

    def stop_in_the_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write_folder(*arguments)

    write_folder = run.write_folder
    with monkeypatch.context() as patch:
        patch.setattr(run, "write_folder", stop_in_the_second)
        with pytest.raises(KeyboardInterrupt):
            in_parts(corpus, "brackets", tmp_path / "stopped")
    before = (tmp_path / "stopped/0/tree.json").stat().st_mtime_ns
    in_parts(corpus, "brackets", tmp_path / "stopped", "--workers", 2)
    assert (tmp_path / "stopped/0/tree.json").stat().st_mtime_ns == before
    for number in range(3):
        assert folder_bytes(tmp_path / f"stopped/{number}") == folder_bytes(tmp_path / f"whole/{number}")


def test_training_reads_a_part_in_each_epoch(corpus, tmp_path, caplog):
    in_parts(corpus, "brackets", tmp_path / "parts")
    folders = ":".join(str(tmp_path / f"parts/{number}") for number in range(3))
    assert f"fairseq-train {folders}" in caplog.text
    settings = "--optimizer adam --max-tokens 4096 --max-epoch 3 --cpu --disable-validation --no-save".split()
    log = run_command("train", folders, "--task", "tree_translation", "--arch", "tree_transformer_tiny", *settings)
    for number in range(3):
        examples = BOUNDS[number + 1] - BOUNDS[number]
        assert f"{examples} examples from: {tmp_path}/parts/{number}/train.en-de.en" in log, log


def test_what_cannot_be_cut_is_refused(corpus, tmp_path):
    in_parts(corpus, "brackets", tmp_path / "parts")
    with pytest.raises(DestinationExistsError, match="parts of another command"):
        in_parts(corpus, "brackets", tmp_path / "parts", "--thresholdsrc", 2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(DestinationExistsError, match="no parts"):
        in_parts(corpus, "brackets", tmp_path / "other")
    with pytest.raises(InputError, match="a text of 9 lines"):
        run_preprocess("--trainpref", corpus / "mixed/valid", "--destdir", tmp_path / "few", "--parts", 10, *PARSED)
    for flags in (("--parts", 2), ("--parts", 0, *PARSED), ("--parts", 2, "--dict-only", *PARSED)):
        with pytest.raises(InputError, match="--parts N cuts --trainpref"):
            run_preprocess("--trainpref", corpus / "leaves/train", "--destdir", tmp_path / "bin", *flags)
