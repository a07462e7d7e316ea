"""Targets that read files: stores of trees, ``tree.json``, dictionaries, checkpoints."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils

from tests.fuzz.law import Choices, damaged, scratch, target
from tree_fairseq.commands.release import write_released_model
from tree_fairseq.data_bin.grammar import load_grammar, write_grammar
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord
from tree_fairseq.data_bin.token_files import load_dictionary, token_lengths
from tree_fairseq.data_bin.tree_store import TreeBlock, TreeStore, TreeStoreWriter, load_label_dictionary
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.repairs.checkpoint_loading import load_weights_only

_NO_SEEDS = [b"", bytes(range(0, 250, 7)), b"\x00\x05\x00\x01\x06\x10\x00\x08\x03"]
_ROWS = np.array([[4, 0, 3, 0], [5, 0, 1, 1], [6, 1, 3, 1], [4, 1, 2, 2], [5, 2, 3, 2]], np.int32)


@cache
def _store() -> dict[str, bytes]:
    """The files of a store of three lines, the second of them empty, and of the tokens beside it."""
    with scratch() as folder:
        with TreeStoreWriter(folder / "train.a-b.a.tree") as writer:
            counts = np.array([3, 0, 3], np.int32), np.array([5, 0, 5], np.int32)
            writer.add(TreeBlock(*counts, np.concatenate([_ROWS, _ROWS])))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


@target(lambda: _NO_SEEDS)
def tree_store(data: bytes) -> None:
    """A store of trees, as it is or as tokens of fairseq."""
    choices = Choices(data)
    with scratch() as folder:
        as_tokens = choices.number(2)
        prefix = folder / "train.a-b.a.tree"
        is_damaged = False
        for name, content in sorted(_store().items()):
            found = damaged(content, choices, 3)
            is_damaged |= found != content
            (folder / name).write_bytes(found)
        if as_tokens:
            token_lengths(prefix)
            dataset = data_utils.load_indexed_dataset(str(prefix), None)
            for index in range(len(dataset)):
                dataset[index]
            return
        store = TreeStore(prefix)
        trees = [store[index] for index in range(len(store))]
        block = store.block()
        with TreeStoreWriter(folder / "again") as writer:
            writer.add(block)
        assert (folder / "again.bin").read_bytes() == Path(f"{prefix}.bin").read_bytes()
        for tree in () if is_damaged else trees:
            if len(tree.label):
                labels = Dictionary()
                with contextlib.suppress(TreeFairseqError):
                    tree._replace(label=np.full(len(tree.label), labels.unk())).forest(labels, ["w"] * tree.num_leaves)


@cache
def _manifest() -> bytes:
    split = SplitRecord("train.en-de.en", 3, 6, 10, [2], 0, ["train.en-de.en.tree.bin", "train.en-de.en.tree.idx"])
    side = SideRecord(
        "source", json.loads(json.dumps(ParserOptions("brackets").to_json())), {"name": "brackets"}, "dict.label.en.txt"
    )
    side.splits["train"] = split
    manifest = Manifest("en", "de", {"en": side})
    with scratch() as folder:
        for name in ("dict.en.txt", "dict.label.en.txt", "dict.de.txt", *split.files):
            (folder / name).write_bytes(b"a 1\n")
            manifest.enter_files([folder / name])
        manifest.save(folder)
        return (folder / "tree.json").read_bytes()


_VALUES = [
    *(None, True, 0, -1, 1.5, 1e400, 1 << 70, "", "x", "../x", "/", "\x00", "\ud800"),
    *([], {}, [[]], {"a": 1}, [None]),
]


def _replace_something(value: object, choices: Choices) -> object:
    """A JSON value of which a part was replaced, removed or repeated."""
    if isinstance(value, dict) and value and choices.number(4):
        key = choices.of(sorted(value))
        kind = choices.number(6)
        if kind == 0:
            return {name: other for name, other in value.items() if name != key}
        if kind == 1:
            return {**value, "x": value[key]}
        return {**value, key: _replace_something(value[key], choices)}
    if isinstance(value, list) and value and choices.number(3):
        return [*value[1:], _replace_something(value[0], choices)]
    return choices.of(_VALUES)


@target(lambda: [*_NO_SEEDS, b"\x01" * 9, bytes(range(1, 30))])
def manifest(data: bytes) -> None:
    """``tree.json``."""
    choices = Choices(data)
    with scratch() as folder:
        content = _manifest()
        if choices.number(3):
            value = json.loads(content)
            for _ in range(1 + choices.number(3)):
                value = _replace_something(value, choices)
            content = json.dumps(value).encode()
        else:
            content = damaged(content, choices)
        (folder / "tree.json").write_bytes(content)
        found = Manifest.load(folder)
        found.save(folder)
        assert Manifest.load(folder) == found or "NaN" in (folder / "tree.json").read_text(encoding="utf-8")
        for lang in found.sides:
            with contextlib.suppress(TreeFairseqError):
                ParserOptions.from_json(found.sides[lang].parser)
            found.verify_quickly(folder, lang, found.sides[lang].splits)
        found.verify_texts(folder, ["train"])


@target(lambda: [b"the 10\nman 5\n", b"a 1 #fairseq:overwrite\n<s> 1\n", b"\xff 1\n", b"a b\n", b"<root> 0 a\na 1 b\n"])
def dictionary(data: bytes) -> None:
    """A dictionary of tokens, of labels, and a grammar."""
    with scratch() as folder:
        path = folder / "dict.en.txt"
        path.write_bytes(data)
        for load in (lambda: load_dictionary(folder, "en"), lambda: load_label_dictionary(path)):
            with contextlib.suppress(TreeFairseqError):
                found = load()
                written = io.StringIO()
                found.save(written)
                (folder / "dict.again.txt").write_bytes(written.getvalue().encode("utf-8"))
                assert load_dictionary(folder, "again").symbols == found.symbols
        symbols = Dictionary()
        for word in ("a", "b"):
            symbols.add_symbol(word)
        names = [*symbols.symbols, "<root>"]
        rules = {(names[parent], branch, names[child]) for parent, branch, child in load_grammar(path, symbols)}
        write_grammar(folder / "again", rules)
        assert len(load_grammar(folder / "again", symbols)) == len(rules)


@cache
def _checkpoints() -> tuple[bytes, bytes]:
    """A checkpoint of fairseq's form, and a released model."""
    state = {
        "model": {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.int64)},
        "cfg": {"model": argparse.Namespace(arch="x", size=3), "task": {"_name": "translation"}},
        "extra_state": {"train_iterator": {"epoch": 1}, "best": np.float64(1.5)},
        "task_state": {"labels": ["a"]},
    }
    with scratch() as folder:
        torch.save(state, folder / "a.pt")
        write_released_model(state, folder / "a.safetensors", None)
        return (folder / "a.pt").read_bytes(), (folder / "a.safetensors").read_bytes()


@target(lambda: [*_NO_SEEDS, b"\x01" + bytes(range(0, 200, 9))])
def checkpoint(data: bytes) -> None:
    """A checkpoint, and a released model."""
    choices = Choices(data)
    kind = choices.number(2)
    with scratch() as folder:
        path = folder / ("a.safetensors" if kind else "a.pt")
        path.write_bytes(damaged(_checkpoints()[kind], choices))
        state = load_weights_only(path)
        torch.save(state, folder / "again.pt")
        again = load_weights_only(folder / "again.pt")
        for name, tensor in state["model"].items():
            if isinstance(tensor, torch.Tensor):
                torch.testing.assert_close(again["model"][name], tensor, rtol=0, atol=0, equal_nan=True)
