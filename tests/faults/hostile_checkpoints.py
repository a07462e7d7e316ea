"""Checkpoints as an enemy writes them: each would run code, or fill the memory, in a program that trusts it."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch

GIGABYTE = 1 << 30


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


class Call:
    """Calls a function that ``weights_only`` allows when it is unpickled."""

    def __init__(self, function: Callable, *arguments: object):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@dataclass
class _Storage:
    key: str
    numbers: int


class ForgedTensor:
    """A tensor of 32-bit numbers that says of itself whatever it likes."""

    def __init__(self, size: tuple[int, ...], stride: tuple[int, ...], stored: int, key: str = "0"):
        self.size, self.stride, self.storage = size, stride, _Storage(key, stored)

    def __reduce__(self):
        function = torch._utils._rebuild_tensor_v2
        return function, (self.storage, 0, self.size, self.stride, False, OrderedDict())


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: object):
        if isinstance(value, _Storage):
            return "storage", torch.FloatStorage, value.key, "cpu", value.numbers
        return None


def _record(archive: zipfile.ZipFile, name: str, **values: Any) -> zipfile.ZipInfo:
    """Enters a record whose bytes the caller writes."""
    record = zipfile.ZipInfo(name)
    for field, value in {"CRC": 0, **values}.items():
        setattr(record, field, value)
    archive.filelist.append(record)
    archive.NameToInfo[name] = record
    archive._didModify = True
    return record


def forge(path: Path, state: dict, write_records: Callable[[zipfile.ZipFile], None] | None = None) -> None:
    """Writes an archive like torch's with any records; by default ``data/0`` has ten zeros."""
    pickled = io.BytesIO()
    _Pickler(pickled, 2).dump(state)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("data.pkl", pickled.getvalue()), ("byteorder", b"little"), ("version", b"3\n")):
            archive.writestr(f"archive/{name}", content)
        if write_records is None:
            archive.writestr("archive/data/0", bytes(40))
        else:
            write_records(archive)


def _compressed_zeros(size: int) -> bytes:
    """Deflated zeros, made without compressing them all: a block that stands for itself is repeated."""
    part = 1 << 26
    made = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = made.compress(bytes(part)) + made.flush(zlib.Z_FULL_FLUSH)
    return block * (size // part) + made.flush(zlib.Z_FINISH)


def _zip_bomb(archive: zipfile.ZipFile) -> None:
    size, start = 3 * GIGABYTE, archive.fp.tell()
    content = _compressed_zeros(size)
    record = _record(
        archive, "archive/data/0", compress_type=8, file_size=size, compress_size=len(content), header_offset=start
    )
    archive.fp.write(record.FileHeader(zip64=False) + content)
    archive.start_dir = archive.fp.tell()


def _overlapping(archive: zipfile.ZipFile) -> None:
    size, start = 1 << 26, archive.fp.tell()
    for number in range(48):
        values = {"compress_type": 0, "file_size": size, "compress_size": size, "header_offset": start}
        record = _record(archive, f"archive/data/{number}", **values)
        if number == 0:
            archive.fp.write(record.FileHeader(zip64=False))
            archive.fp.seek(size, os.SEEK_CUR)
    archive.start_dir = archive.fp.tell()


def _hole(archive: zipfile.ZipFile) -> None:
    size, start = 3 * GIGABYTE, archive.fp.tell()
    values = {"compress_type": 0, "file_size": size, "compress_size": size, "header_offset": start}
    archive.fp.write(_record(archive, "archive/data/0", **values).FileHeader(zip64=False))
    archive.fp.seek(size, os.SEEK_CUR)
    archive.start_dir = archive.fp.tell()


def _laughs(levels: int) -> list:
    """Lists of lists that would have ten to the power of ``levels`` elements if they were written out."""
    lists: list = ["ha"]
    for _ in range(levels):
        lists = [lists] * 10
    return lists


class Attacks:
    """Makes hostile copies of a good checkpoint in a folder; code would make the file ``marker``."""

    def __init__(self, good: Path, marker: Path):
        self._good, self.marker = good, marker

    def state(self) -> dict:
        """The contents of the good checkpoint."""
        return torch.load(self._good, weights_only=True)

    def with_settings(self, path: Path, **groups: dict[str, object]) -> None:
        """A checkpoint with other settings, by group: ``model={...}``."""
        state = self.state()
        for name, values in groups.items():
            group = state["cfg"][name]
            group.update(values) if isinstance(group, dict) else vars(group).update(values)
        torch.save(state, path)

    def without_tensors(self, model: dict[str, object], **more: object) -> dict:
        """The settings of the good checkpoint with another model."""
        return {**self.state(), "model": model, "last_optimizer_state": None, **more}

    def write(self, name: str, path: Path) -> None:
        """Writes the checkpoint of an attack, one of `REFUSED`, `HARMLESS` or `OF_MODELS`."""
        getattr(self, name.replace(" ", "_"))(path)

    # code

    def payload(self, path: Path) -> None:
        state = self.state()
        state["extra_state"]["payload"] = Payload(self.marker)
        torch.save(state, path)

    def old_payload(self, path: Path) -> None:
        state = self.state()
        state["extra_state"]["payload"] = Payload(self.marker)
        torch.save(state, path, _use_new_zipfile_serialization=False)

    def bare_pickle(self, path: Path) -> None:
        path.write_bytes(pickle.dumps({"model": {}, "args": Payload(self.marker)}, 2))

    def tar_archive(self, path: Path) -> None:
        """The format of torch before 0.1.9; torch 2.5 runs code in it, also with ``weights_only``."""
        with tarfile.open(path, "w:") as tar:
            for member in ("storages", "tensors", "pickle"):
                content = pickle.dumps(Payload(self.marker), 2)
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    def settings(self, path: Path) -> None:
        plugin = path.parent / "trap_plugin"
        plugin.mkdir(exist_ok=True)
        (plugin / "__init__.py").write_text(f"from pathlib import Path\nPath({str(self.marker)!r}).touch()\n")
        target = {"_target_": "pathlib.Path.touch", "self": str(self.marker)}
        elsewhere = {"data": str(path.parent / "elsewhere"), "parser_dir": "/nowhere/at/all", **target}
        generation = {"replace_unk": "/etc/hostname", "results_path": str(self.marker), **target}
        self.with_settings(path, common={"user_dir": str(plugin)}, task=elsewhere, model=target, generation=generation)

    def evaluated(self, path: Path) -> None:
        """``fconv`` passes the settings of its layers to ``eval``."""
        self.with_settings(path, model=self.evaluated_settings())

    def evaluated_bytes(self, path: Path) -> None:
        values = self.evaluated_settings()
        self.with_settings(path, model={**values, "encoder_layers": values["encoder_layers"].encode()})

    def evaluated_settings(self) -> dict[str, object]:
        trap = f"[__import__('pathlib').Path({str(self.marker)!r}).touch(), (8, 3)][1:]"
        layers = {"encoder_layers": trap, "decoder_layers": "[(8, 3)] * 2", "decoder_attention": "True"}
        sizes = {"encoder_embed_dim": 8, "decoder_embed_dim": 8, "decoder_out_embed_dim": 8}
        return {"_name": "fconv", "arch": "fconv", "dropout": 0.0, "share_input_output_embed": False, **layers, **sizes}

    def reference(self, path: Path) -> None:
        """Settings that are put together from others, so that none of them is code by itself."""
        model = self.evaluated_settings()
        text = model["encoder_layers"]
        state = self.state()
        state["cfg"]["model"] = {**model, "encoder_layers": "${task.first}${task.second}"}
        state["cfg"]["task"].update(first=text[:9], second=text[9:])
        torch.save(state, path)

    # memory

    def zip_bomb(self, path: Path) -> None:
        numbers = 3 * GIGABYTE // 4
        forge(path, self.without_tensors({"w": ForgedTensor((numbers,), (1,), numbers)}), _zip_bomb)

    def overlapping(self, path: Path) -> None:
        numbers = (1 << 26) // 4
        model = {f"w{key}": ForgedTensor((numbers,), (1,), numbers, str(key)) for key in range(48)}
        forge(path, self.without_tensors(model), _overlapping)

    def hole(self, path: Path) -> None:
        numbers = 3 * GIGABYTE // 4
        forge(path, self.without_tensors({"w": ForgedTensor((numbers,), (1,), numbers)}), _hole)

    def stretched(self, path: Path) -> None:
        forge(path, self.without_tensors({"w": ForgedTensor((700_000_000,), (1,), 10)}))

    def repeated(self, path: Path) -> None:
        forge(path, self.without_tensors({"w": ForgedTensor((30_000, 30_000), (0, 0), 10)}))

    def endless(self, path: Path) -> None:
        forge(path, self.without_tensors({"w": ForgedTensor((1 << 40,), (1,), 1 << 40)}))

    def byte_array(self, path: Path) -> None:
        forge(path, self.without_tensors({"w": Call(bytearray, 3 * GIGABYTE)}))

    def numbers(self, path: Path) -> None:
        forge(path, self.without_tensors({"w": Call(np.ndarray, (3 * GIGABYTE // 8,), np.dtype("f8"))}))

    def laughs(self, path: Path) -> None:
        state = self.without_tensors({})
        state["cfg"]["task"]["laughs"] = _laughs(9)
        forge(path, state)

    def itself(self, path: Path) -> None:
        state = self.without_tensors({})
        state["cfg"]["task"]["itself"] = state["cfg"]
        forge(path, state)

    def many_layers(self, path: Path) -> None:
        self.with_settings(path, model={"encoder_layers": 10**9})

    def wide_layers(self, path: Path) -> None:
        self.with_settings(path, model={"encoder_ffn_embed_dim": 10**7})

    def many_positions(self, path: Path) -> None:
        self.with_settings(path, model={"max_source_positions": 10**8}, task={"max_source_positions": 10**8})

    # files

    def torn(self, path: Path) -> None:
        path.write_bytes(self._good.read_bytes()[:-500])

    def empty(self, path: Path) -> None:
        path.write_bytes(b"")

    def noise(self, path: Path) -> None:
        path.write_bytes(np.random.default_rng(0).bytes(10_000))

    def no_model(self, path: Path) -> None:
        torch.save({"cfg": {"task": {"_name": []}}}, path)

    def list_of_numbers(self, path: Path) -> None:
        torch.save([1, 2, 3], path)

    def pipe(self, path: Path) -> None:
        os.mkfifo(path)

    def device(self, path: Path) -> None:
        path.symlink_to("/dev/zero")

    def folder(self, path: Path) -> None:
        path.mkdir()

    # released models

    def released(self, path: Path, header: dict | bytes, data: bytes = bytes(40)) -> None:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)

    def huge_shape(self, path: Path) -> None:
        self.released(path, {"w": {"dtype": "F32", "shape": [10**10], "data_offsets": [0, 40]}})

    def overflowing_shape(self, path: Path) -> None:
        self.released(path, {"w": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 40]}})

    def huge_header(self, path: Path) -> None:
        path.write_bytes(struct.pack("<Q", 1 << 50) + b"{}")

    def deep_settings(self, path: Path) -> None:
        self.of_format(path, cfg="[" * 100_000 + "]" * 100_000)

    def aliases(self, path: Path) -> None:
        names = {f"a{number}": "w" for number in range(100_000)}
        self.of_format(path, numbers=1 << 20, aliases=names)

    def wrong_settings(self, path: Path) -> None:
        self.of_format(path, cfg="[1, 2]")

    def released_code(self, path: Path) -> None:
        model = {**vars(self.state()["cfg"]["model"]), **self.evaluated_settings()}
        cfg = {**{name: {} for name in ("common", "generation")}, "model": model, "task": {"_name": "tree_translation"}}
        self.of_format(path, cfg=cfg)

    def of_format(self, path: Path, numbers: int = 10, **values: object) -> None:
        settings = {"format": "tree-fairseq 1", "cfg": {}, "task_state": {}, "aliases": {}, **values}
        written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
        tensor = {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}
        self.released(path, {"__metadata__": written, "w": tensor}, bytes(4 * numbers))


REFUSED = (
    "payload", "old payload", "bare pickle", "tar archive", "reference", "zip bomb", "overlapping", "hole", "stretched",
    "repeated", "endless", "byte array", "numbers", "laughs", "itself", "torn", "empty", "noise", "list of numbers",
    "pipe", "device", "folder",
)  # fmt: skip
"""Every reader of checkpoints refuses these."""

OF_MODELS = ("evaluated", "evaluated bytes", "many layers", "wide layers", "many positions", "no model")
"""These are refused by who builds the model that a checkpoint describes, and harmless for others."""

HARMLESS = ("settings",)
"""These are read as if they were good."""

RELEASED = (
    "huge shape", "overflowing shape", "huge header", "deep settings", "aliases", "wrong settings", "released code",
    "noise", "pipe", "device",
)  # fmt: skip
"""These are ``*.safetensors``."""
