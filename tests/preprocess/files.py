"""Text files of data sets, and the folder of the published ones."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def rows(folder: Path, split: str = "test") -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in lines(folder / f"{split}.tsv")]


def write(path: Path, *texts: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
