"""Checkpoints as an enemy writes them: they would run code in a program that trusts them, or are no checkpoints."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import torch


class Payload:
    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


class Attacks:
    """Makes hostile copies of a good checkpoint in a folder; code would make the file ``marker``."""

    def __init__(self, good: Path, marker: Path):
        self._good, self.marker = good, marker

    def state(self) -> dict:
        return torch.load(self._good, weights_only=True)

    def with_settings(self, path: Path, **groups: dict[str, object]) -> None:
        """A checkpoint with other settings, by group: ``model={...}``."""
        state = self.state()
        for name, values in groups.items():
            group = state["cfg"][name]
            group.update(values) if isinstance(group, dict) else vars(group).update(values)
        torch.save(state, path)

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
        elsewhere = {"data": str(path.parent / "elsewhere"), "tree_parser": "trap_plugin:x", **target}
        elsewhere |= {"parser_dir": "/nowhere/at/all", "schema": "/dev/zero"}
        target["encoder_embed_path"] = "/dev/zero"
        generation = {"replace_unk": "/etc/hostname", "results_path": str(self.marker), **target}
        self.with_settings(path, common={"user_dir": str(plugin)}, task=elsewhere, model=target, generation=generation)

    def encoder(self, path: Path) -> None:
        """A pretrained encoder that would be fetched."""
        self.with_settings(path, model={"encoder_name": "a-stranger/encoder"})

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
    "payload", "old payload", "bare pickle", "tar archive", "torn", "empty", "noise", "list of numbers", "pipe",
    "device", "folder",
)  # fmt: skip
"""Every reader of checkpoints refuses these."""

OF_MODELS = ("evaluated", "evaluated bytes", "reference", "no model", "encoder")
"""These are refused by who builds the model that a checkpoint describes, and harmless for others."""

HARMLESS = ("settings",)  # These are read as if they were good

RELEASED = (
    "huge shape", "overflowing shape", "huge header", "deep settings", "wrong settings", "released code",
    "noise", "pipe", "device",
)  # fmt: skip
"""These are ``*.safetensors``."""
