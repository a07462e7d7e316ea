"""Checkpoints from strangers: nothing in them runs, and the memory that they take is in proportion to their size.

``torch.load(weights_only=True)`` alone does not see to this. A small file can hold compressed or overlapping records,
tensors that are larger than their storage, or settings that refer to each other again and again; its settings can ask
for a model of any size; and fairseq passes some settings, such as the layers of ``fconv``, to ``eval``.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import stat
import sys
import tarfile
import threading
import zipfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from tree_fairseq.errors import CheckpointError

_SPARE_BYTES = 1 << 30
_BYTES_PER_BYTE = 8
# A library may start one thread per processor, whose stack counts, and so do the buffers of a GPU's driver.
_STACK_BYTES = 32 << 20
_DRIVER_BYTES = 8 << 30
_SPARE_TENSOR_BYTES = 16 << 20
# A weight that several names share counts for each of them, since averaging copies it for each; released models may be
# in half precision.
_COPIES = 16
_SPARE_VALUES = 100_000
_LONGEST_EXPRESSION = 10_000
_NO_MEMORY = ("allocate memory", "not enough memory", "bad_alloc", "out of memory")
_ADVICE = "do not use this file unless you know who made it"
_loading = threading.RLock()  # the limit is of the whole process


def occupied_bytes(path: str | os.PathLike) -> int:
    """The bytes that a file has on the disk, without its holes; raises CheckpointError if it is a pipe or a device."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(f"{os.fspath(path)} is not a file but a folder, a pipe or a device")
    return min(status.st_size, 512 * status.st_blocks) if status.st_blocks else status.st_size


@contextlib.contextmanager
def limited_memory(file_bytes: int, what: str) -> Iterator[None]:
    """Lets the process grow by a gigabyte and eight times ``file_bytes`` while the ``with`` block runs; ``what`` is
    read or built then.

    Only Linux has this limit. It is one for all threads: another thread loads checkpoints later, and gets a MemoryError
    if it takes all of this room meanwhile.

    Raises:
        CheckpointError: more was needed
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_loading)
        allowance = _SPARE_BYTES + _BYTES_PER_BYTE * file_bytes
        if sys.platform == "linux":
            driver = _DRIVER_BYTES if torch.cuda.is_available() else 0
            _limit_growth(allowance + driver + _STACK_BYTES * (os.cpu_count() or 1), stack)
        try:
            yield
        except (MemoryError, RuntimeError, SystemError) as error:
            # Where memory ends inside of C code, Python may find no exception: a SystemError.
            if not isinstance(error, RuntimeError) or any(words in str(error) for words in _NO_MEMORY):
                raise CheckpointError(
                    f"{what} needs more than the {allowance >> 20} MB of memory that {file_bytes >> 20} MB of weights "
                    f"can need: it is damaged, or made to fill the memory; {_ADVICE}"
                ) from error
            raise


def _limit_growth(growth: int, stack: contextlib.ExitStack) -> None:
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (soft, used + growth) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    stack.callback(resource.setrlimit, resource.RLIMIT_DATA, (soft, hard))


@contextlib.contextmanager
def limited_parameters(limit: Callable[[], float], what: str) -> Iterator[None]:
    """Raises CheckpointError when a model that is built in the ``with`` block, in this thread, gets more parameters
    than ``limit()`` at that moment.
    """
    made, this = 0, threading.get_ident()

    def count(*_: Any) -> None:
        nonlocal made
        made += threading.get_ident() == this
        if made > limit():
            raise CheckpointError(f"{what} has settings of a larger model than its weights are of; {_ADVICE}")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def require_plain_archive(path: str | os.PathLike) -> None:
    """Raises CheckpointError if the records of a checkpoint are compressed or overlap, or if it is a tar archive.

    ``torch.save`` writes neither. Reading such a tar archive can run code in torch 2.5 and earlier, also with
    ``weights_only=True``.
    """
    with open(path, "rb") as file:
        is_archive = file.read(4) == b"PK\x03\x04"
    if not is_archive:
        with contextlib.suppress(tarfile.TarError, EOFError, ValueError), tarfile.open(path, "r:"):
            raise CheckpointError(f"{path} was not loaded: it is a tar archive, which could run code; {_ADVICE}")
        return
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
    unpacked = sum(record.file_size for record in records)
    if unpacked > os.path.getsize(path) or any(record.compress_type != zipfile.ZIP_STORED for record in records):
        raise CheckpointError(
            f"{path} was not loaded: its records are compressed or overlap, and take {unpacked >> 20} MB of memory. "
            f"No checkpoint is like that; {_ADVICE}"
        )


def require_proportion(state: Any, path: str | os.PathLike) -> None:
    """Raises CheckpointError if tensors are larger than their file, if values are repeated without end, or if settings
    refer to others (``${task.data}``): fairseq writes what they refer to.
    """
    size = occupied_bytes(path)
    tensor_bytes, values = 0, 0
    waiting = [state]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, (torch.Tensor, np.ndarray)):
            tensor_bytes += value.numel() * value.element_size() if isinstance(value, torch.Tensor) else value.nbytes
            if tensor_bytes > _COPIES * (size + _SPARE_TENSOR_BYTES):
                raise CheckpointError(
                    f"{path} was not loaded: its tensors take {tensor_bytes >> 20} MB, and it has {size >> 20} MB on "
                    f"the disk; {_ADVICE}"
                )
        elif isinstance(value, Mapping):
            waiting.extend(value.keys())
            waiting.extend(value.values())
        elif isinstance(value, (Sequence, set)) and not isinstance(value, (str, bytes, bytearray)):
            waiting.extend(value)
        elif isinstance(value, Namespace):
            waiting.append(vars(value))
        elif isinstance(value, str) and "${" in value:
            raise CheckpointError(
                f"{path} was not loaded: a setting is {value[:80]!r}, and no checkpoint of fairseq has settings that "
                f"refer to others; {_ADVICE}"
            )
        if values + len(waiting) > size + _SPARE_VALUES:
            raise CheckpointError(
                f"{path} was not loaded: its settings repeat themselves more than {values} times; {_ADVICE}"
            )


def distrust_expressions(state: Any, path: str | os.PathLike) -> None:
    """Makes fairseq refuse to evaluate settings of a checkpoint that call functions, if it is asked to.

    Settings such as ``[(512, 3)] * 20`` are evaluated as before. The settings are those of a state that
    `require_proportion` has passed.
    """
    settings = [state.get(name) for name in ("cfg", "args")] if isinstance(state, Mapping) else []
    found = {text: os.fspath(path) for text in _texts(settings) if _calls(text)}
    if found:
        for name, module in [*sys.modules.items()]:
            if name.startswith("fairseq.") and module is not None:
                if not isinstance(vars(module).get("eval"), _CarefulEvaluation):
                    module.eval = _CarefulEvaluation()
                module.eval.distrusted.update(found)


class _CarefulEvaluation:
    """Takes the place of ``eval`` in a module, and refuses text of a checkpoint that is more than values."""

    def __init__(self) -> None:
        self.distrusted: dict[str, str] = {}

    def __call__(self, source: Any, *namespaces: Any) -> Any:
        text = _as_text(source)
        if text in self.distrusted:
            raise CheckpointError(
                f"{self.distrusted[text]} was not loaded: a setting is {text[:80]!r}, which could run code; {_ADVICE}. "
                "--model-overrides replaces settings"
            )
        caller = sys._getframe(1)
        return builtins.eval(source, *(namespaces or (caller.f_globals, caller.f_locals)))


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Namespace):
            waiting.append(vars(value))
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, (str, bytes, bytearray)):
            yield _as_text(value)
        elif isinstance(value, (Sequence, set)):
            waiting.extend(value)


def _as_text(source: Any) -> str:
    return bytes(source).decode("utf-8", "replace") if isinstance(source, (bytes, bytearray)) else source


def _calls(text: str) -> bool:
    """Whether a text is a Python expression that does more than name or list values."""
    if "(" not in text and "[" not in text and "**" not in text:
        return False
    if len(text) > _LONGEST_EXPRESSION:
        return True
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return True  # an expression for another Python, at most
    doers = (ast.Call, ast.comprehension, ast.Lambda, ast.Pow)
    return any(isinstance(node, doers) for node in ast.walk(tree))
