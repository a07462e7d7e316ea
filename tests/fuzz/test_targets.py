"""Every target keeps its law: on its seeds, on inputs that once broke it, and on a few hundred new ones."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fuzz.__main__ import load_targets
from tests.fuzz.guided import regressions, search
from tests.fuzz.law import MEMORY, TARGETS, Hang, Target, damaged, hold
from tests.fuzz.law import Choices as _Choices
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CheckpointError, DataFolderError, InputError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.repairs.checkpoint_loading import load_weights_only

load_targets()
# Those that take milliseconds for an input get fewer, so that each target takes about two seconds.
EXAMPLES = {
    "structural_beam": 60,
    "insertion_trees": 150,
    "insertion_sequences": 200,
    "arguments": 60,
    "checkpoint": 80,
    "tree_store": 150,
}
EXPECTED = {
    "brackets", "subword_alignment", "arguments", "tree_store", "manifest", "dictionary", "checkpoint",
    "structural_beam", "insertion_trees", "insertion_sequences",
}  # fmt: skip


def test_all_targets_are_there():
    notations = {f"notation_{name}" for name in ("bracket", "funql", "json", "prolog", "variable_free")}
    assert EXPECTED | notations <= set(TARGETS)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_reader_of_any_bytes_returns_or_raises_an_error_of_the_package(name):
    target = TARGETS[name]
    for data in [*target.seeds(), *(path.read_bytes() for path in regressions(target))]:
        hold(target.read, data)
    search(target, EXAMPLES.get(name, 250), number=1, guided=False)


def test_an_input_that_breaks_the_law_is_noticed(monkeypatch):
    monkeypatch.setattr("tests.fuzz.law.SECONDS", 0.2)

    def wrong(data: bytes) -> None:
        if data:
            raise KeyError(data)

    def endless(data: bytes) -> None:
        while True:
            pass

    def greedy(data: bytes) -> None:
        bytearray(2 * MEMORY)

    hold(wrong, b"")
    for read, error in ((wrong, KeyError), (endless, Hang), (greedy, MemoryError)):
        with pytest.raises(error):
            hold(read, b"x")

    def refusing(data: bytes) -> None:
        raise InputError("no")

    hold(refusing, b"x")


def test_the_search_finds_what_breaks_the_law():
    def read(data: bytes) -> None:
        if data[:1] == b"(" and len(data) > 3:
            raise IndexError(data)

    with pytest.raises(IndexError):
        search(Target("read", read, lambda: [b"(a)"]), 500, number=1)


def test_files_are_damaged_in_eight_ways():
    content = bytes(range(200))
    found = {damaged(content, _Choices(bytes([kind, 10, 5, 7, 1, 2, 3]))) for kind in range(8)}
    assert len(found) == 8 and damaged(content, _Choices(b"")) == content


@pytest.mark.parametrize("change", [{"x": "\ud800"}, {"files": [1]}, {"checksums": {"a": 1}}])
def test_a_manifest_that_fuzzing_found(tmp_path, change):
    values = {"format_version": 1, "package_version": "0", "source_lang": "a", "target_lang": "b"}
    values.update({"sides": {}, "symbols": {}, "files": {}, "checksums": {}, **change})
    (tmp_path / "tree.json").write_text(json.dumps(values))
    with pytest.raises(DataFolderError, match="tree.json"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("values", [["name"], {"x": 1}, {"name": "brackets", "tokenize": "x"}])
def test_options_of_a_parser_that_fuzzing_found(values):
    with pytest.raises(InputError, match="parser"):
        ParserOptions.from_json(values)


def test_a_checkpoint_that_fuzzing_found(tmp_path):
    torch.save({"model": {}}, tmp_path / "a.pt")
    content = (tmp_path / "a.pt").read_bytes()
    for old, new in ((b"little", b"\xba\xbaXXXX"), (b"little", b"medium"), (b"byteorder", b"byte\xf5rder")):
        assert old in content
        (tmp_path / "a.pt").write_bytes(content.replace(old, new))
        with pytest.raises(CheckpointError, match="cannot be read"):
            load_weights_only(tmp_path / "a.pt")
