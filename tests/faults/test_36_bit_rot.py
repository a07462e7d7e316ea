"""Bit rot: flips, cuts, zeros, swaps and deletions of every file of every kind of folder.

``tree-fairseq check`` finds each of them. A command on the damaged folder ends with an error of this package, or reads
what was written, unless the damage is inside a data file, whose format cannot show it. With
``TREE_FAIRSEQ_ALL_DAMAGES=1`` every file gets every damage, otherwise one and deletion.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import random
import shutil
from pathlib import Path
from typing import Callable

import pytest
from fairseq import tasks
from fairseq.data import data_utils

from tests.data_bin.corpora import prefixes, run_preprocess, write_corpus
from tests.end_to_end import tiny_classes, tiny_programs
from tests.end_to_end.insertion import preprocess as preprocess_insertion
from tests.end_to_end.structural import Modality, texts_for
from tests.end_to_end.structural import preprocess as preprocess_programs
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CorruptFileError, DataFolderError, TreeFairseqError

KINDS = {
    "translation": ("tree_translation", "en", "de"),
    "symbols": ("structural_translation", "source", "target"),
    "insertion": ("tree_insertion", "nl", "lf"),
    "classification": ("tree_classification", "text", "class"),
}
ALL = os.environ.get("TREE_FAIRSEQ_ALL_DAMAGES", "0") != "0"
# What a folder has beside the files that commands read.
UNREAD = {"preprocess.log", "parse-cache"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    corpus = write_corpus(folder / "corpus", train=12, valid=6)
    flags = ("--destdir", folder / "translation", "--tree-parser", "brackets")
    run_preprocess(*prefixes(corpus / "mixed", "train", "valid"), *flags)
    programs = tiny_programs.write_corpus(folder / "programs", (12, 6, 6))
    modality = Modality("tree", "tree")
    preprocess_programs(texts_for(programs, folder / "texts", modality), folder / "symbols", modality)
    preprocess_insertion(programs, folder / "insertion")
    examples = tiny_classes.write_examples(folder / "examples", "trees")
    tiny_classes.preprocess(examples, "trees", folder / "classification")
    return {kind: folder / kind for kind in KINDS}


def task_of(kind: str, folder: Path):
    name, source, target = KINDS[kind]
    if kind == "classification":
        return tiny_classes.task_of(folder)
    config = tasks.TASK_DATACLASS_REGISTRY[name]
    known = {field.name for field in dataclasses.fields(config)}
    values = {"data": str(folder), "source_lang": source, "target_lang": target, "train_subset": "train"}
    others = {"dataset_impl": None, "seed": 1, "required_seq_len_multiple": 1}
    given = {name: value for name, value in {**values, **others}.items() if name in known}
    return tasks.TASK_REGISTRY[name].setup_task(config(**given))


def contents(kind: str, folder: Path) -> list:
    """All that a command reads from a folder: dictionaries, and the examples of each split."""
    task = task_of(kind, folder)
    found: list = [task.source_dictionary.symbols, task.target_dictionary.symbols]
    for split in ("train", "valid"):
        task.load_dataset(split)
        dataset = task.dataset(split)
        found += [repr(dataset[index]) for index in range(len(dataset))]
        dataset.collater([dataset[0], dataset[1]])
    return found


def flip(content: bytes, draw: random.Random, other: bytes) -> bytes:
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def zero(content: bytes, draw: random.Random, other: bytes) -> bytes:
    length = min(len(content), 16)
    place = draw.randrange(len(content) - length + 1)
    return content[:place] + bytes(length) + content[place + length :]


def cut(content: bytes, draw: random.Random, other: bytes) -> bytes:
    return content[: draw.randrange(len(content))]


def swap(content: bytes, draw: random.Random, other: bytes) -> bytes:
    return other


def empty(content: bytes, draw: random.Random, other: bytes) -> bytes:
    return b""


DAMAGES: list[Callable] = [flip, zero, cut, swap, empty]


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_and_every_damage(folders, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "level", logging.ERROR)
    folder = Path(shutil.copytree(folders[kind], tmp_path / "folder"))
    names = sorted(path.name for path in folder.iterdir() if path.name not in UNREAD)
    assert set(names) == {*Manifest.load(folder).files, "tree.json"}
    assert check_folder(folder) == []
    expected, draw, stopped, unseen = contents(kind, folder), random.Random(kind), 0, []
    for number, name in enumerate(names):
        path, content = folder / name, (folder / name).read_bytes()
        same_suffix = [other for other in names if other != name and other.endswith(path.suffix)]
        for damage in DAMAGES if ALL else [DAMAGES[number % len(DAMAGES)]]:
            other = (folder / draw.choice(same_suffix or names)).read_bytes()
            damaged = damage(content, draw, other)
            if damaged == content:
                continue
            path.write_bytes(damaged)
            what = (kind, name, damage.__name__)
            assert any(name in problem for problem in _problems(folder)), what
            if path.suffix != ".bin" or len(damaged) != len(content):
                stopped += _stops_or_reads_the_same(kind, folder, expected, what, unseen)
        path.unlink()
        assert any(name in problem for problem in _problems(folder)), (kind, name, "deleted")
        stopped += _stops_or_reads_the_same(kind, folder, expected, (kind, name, "deleted"), unseen)
        path.write_bytes(content)
    # Other values in tree.json that are possible, too, and nothing else.
    assert {name for _, name, _ in unseen} <= {"tree.json"} and stopped > len(names)
    assert check_folder(folder) == []


def _problems(folder: Path) -> list[str]:
    try:
        return check_folder(folder)
    except DataFolderError as error:
        return [str(error)]


def _stops_or_reads_the_same(kind: str, folder: Path, expected: list, what: tuple, unseen: list) -> bool:
    try:
        found = contents(kind, folder)
    except TreeFairseqError as error:
        text = str(error)
        assert str(folder) in text and "\n" not in text, (what, text)
        return True
    assert what[2] != "deleted" or what[1].startswith(("test.", "grammar.")), what
    if found != expected:
        unseen.append(what)
    return False


# fairseq's own tasks on the same files


@pytest.mark.parametrize(
    "suffix, damage",
    [
        ("bin", lambda content: b""),
        ("bin", lambda content: content[:-2]),
        ("idx", lambda content: b"TNTIDX\x00\x00" + content[8:]),
        ("idx", lambda content: content[:-9]),
        ("idx", None),
    ],
    ids=["empty data", "cut data", "header", "cut index", "no index"],
)
def test_fairseqs_own_errors_name_file_and_way_out(folders, tmp_path, suffix, damage):
    folder = Path(shutil.copytree(folders["translation"], tmp_path / "folder"))
    prefix = folder / "train.en-de.de"
    wrong = Path(f"{prefix}.{suffix}")
    content = wrong.read_bytes()
    wrong.unlink()
    if damage is not None:
        wrong.write_bytes(damage(content))
    with pytest.raises(CorruptFileError) as caught:
        data_utils.load_indexed_dataset(str(prefix))
    assert str(wrong) in str(caught.value) and "reprocess again" in str(caught.value)
