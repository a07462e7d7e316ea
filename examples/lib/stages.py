"""Runs a recipe's commands: prints them, stops at the first error, skips what was done before with the same inputs."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from recipe_file import RecipeError

WIDTH = 120


def fingerprint(arguments: Iterable[str]) -> str:
    """SHA-256 over texts, files and folders: the key of a stage.

    A file counts with its content, a folder with the names, sizes and times of the files below it, and anything else as
    text. Arguments that start with "=" are text even where a file of that name exists.
    """
    digest = hashlib.sha256()
    for argument in arguments:
        path = Path(argument)
        if argument.startswith("=") or not path.exists():
            kind, content = "text", argument.encode()
        elif path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            rows = (f"{file.relative_to(path)} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
            kind, content = "folder", "\n".join(rows).encode()
        else:
            kind, content = "file", _file_digest(path)
        digest.update(f"{kind} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _file_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.digest()


def shown(words: Sequence[str]) -> str:
    """A command as a reader can copy it; long ones have line breaks, where a flag begins."""
    chunks: list[str] = []
    for word in map(shlex.quote, words):
        if not chunks or word.startswith("-"):
            chunks.append(word)
        else:
            chunks[-1] += f" {word}"
    lines = [chunks[0]]
    for chunk in chunks[1:]:
        if len(lines[-1]) + len(chunk) > WIDTH - 4:
            lines.append(f"    {chunk}")
        else:
            lines[-1] += f" {chunk}"
    return " \\\n".join(lines)


def devices() -> int:
    """The number of GPUs that fairseq-train will use; 1 where it uses the CPU."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None and shutil.which("nvidia-smi"):
        listed = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return max(1, sum(line.startswith("GPU") for line in listed.stdout.splitlines()))
    return len(visible.split(",")) if visible else 1


def batch_flags(total: int, largest: int, unit: str = "--max-tokens") -> list[str]:
    """Flags of a batch of ``total`` tokens (or what ``unit`` counts), at most ``largest`` at a time on a device."""
    on_each = total // devices()
    if on_each <= largest:
        return [unit, str(on_each), "--update-freq", "1"]
    return [unit, str(largest), "--update-freq", str(on_each // largest)]


class Stages:
    """The stages of a recipe in its folder.

    Args:
        recipe: its name, before every line of progress
        work: folder of the stamps
        dry_run: print the commands, run none
    """

    def __init__(self, recipe: str, work: Path, dry_run: bool) -> None:
        self.recipe, self.work, self.dry_run = recipe, work, dry_run
        self._printed: set[str] = set()

    def say(self, text: str) -> None:
        """Prints a line of progress."""
        sys.stdout.flush()
        sys.stderr.write(f"[{self.recipe}] {text}\n")
        sys.stderr.flush()

    def run(self, words: Sequence[str]) -> None:
        """Prints a command and runs it.

        Raises:
            RecipeError: it failed
        """
        if self.dry_run:
            sys.stdout.write(shown(words) + "\n")
            return
        self.say(f"+ {shlex.join(words)}")
        try:
            status = subprocess.run(words).returncode
        except FileNotFoundError as error:
            raise RecipeError(f"{words[0]}: no such command; is the environment installed and active?") from error
        if status:
            raise RecipeError(f"{words[0]} failed with exit status {status}")

    def stage(self, name: str, key: Callable[[], str], work: Callable[[], None]) -> None:
        """Does the work unless it was finished before with the same key.

        The stamp is written when the work has returned, so a stage that was killed is done again.
        """
        if self.dry_run:
            if name not in self._printed:
                self._printed.add(name)
                sys.stdout.write(f"# {name}\n")
                work()
            return
        stamp, wanted = self.work / "stamps" / name, key()
        if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == wanted:
            self.say(f"{name}: done before")
            return
        stamp.parent.mkdir(parents=True, exist_ok=True)
        self.forget(name)
        self.say(f"{name}: start")
        work()
        part = stamp.with_name(f"{name}.part")
        part.write_text(wanted + "\n", encoding="utf-8")
        part.replace(stamp)
        self.say(f"{name}: finished")

    def forget(self, name: str) -> None:
        """Has a stage done again, whatever its key."""
        stamp = self.work / "stamps" / name
        stamp.unlink() if stamp.exists() else None
