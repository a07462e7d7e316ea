"""``python -m tests.soak --minutes 120 --directory DIR``: of two equal trainings, one is disturbed; they must agree.

Prints a line for every event and writes ``DIR/soak.json``. The exit status is 1 if something happened that should not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.soak.soak import Course, Soak, draw_faults

ROOT = Path(__file__).resolve().parents[2]
_INTERVAL = 0.5
# A validation and a checkpoint every three minutes, and a fault every five to ten.
_SAVE_SECONDS, _FAULT_SECONDS = 180, (300, 600)


def make_data(folder: Path) -> Path:
    """Writes the quickstart's generated text, and its folder with trees; returns it."""
    words, data = folder / "words", folder / "data-bin"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    parser = ["--tree-parser", "stanza", "--parser-dir", "examples/quickstart/stanza-en", "--tree-lang", "en"]
    splits = [text for split in ("train", "valid") for text in (f"--{split}pref", f"{words}/{split}")]
    for module, *arguments in (
        ("preprocess.english_german", "--out", words, "--train", 4000, "--valid", 300, "--test", 20),
        (
            "fairseq_cli.preprocess",
            *("--user-dir", ROOT / "tree_fairseq", "--task", "tree_translation", "-s", "en", "-t", "de", *splits),
            *("--learn-subwords", 1000, "--joined-dictionary", "--destdir", data, *parser),
        ),
    ):
        command = [sys.executable, "-m", module, *map(str, arguments)]
        with open(folder / "preparation.log", "ab") as log:
            subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=True)
    return data


def training_arguments(data: Path, save_updates: int) -> list[object]:
    return [
        data,
        *("--task", "tree_translation", "--arch", "tree_transformer_tiny", "--cpu", "--share-all-embeddings"),
        *("--optimizer", "adam", "--lr", "1e-3", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 200),
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--dropout", 0.1),
        *("--clip-norm", 1.0, "--max-tokens", 150, "--num-workers", 2, "--seed", 3),
        *("--log-format", "json", "--log-interval", 100),
        *("--validate-interval-updates", save_updates, "--save-interval-updates", save_updates),
        *("--keep-interval-updates", 2, "--keep-last-epochs", 2),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120, help="(default: 120)")
    parser.add_argument("--directory", type=Path, default=Path("out/soak"), help="an empty folder (default: out/soak)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the faults (default: 1)")
    args = parser.parse_args()
    folder = args.directory.resolve()
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "preparation.log").exists():
            parser.error(f"{folder} is not empty")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # A short run has the same course in less time.
    share = min(1.0, args.minutes / 60)
    updates = int(args.minutes * 60 / _INTERVAL)
    apart = tuple(max(1, int(share * seconds / _INTERVAL)) for seconds in _FAULT_SECONDS)
    course = Course(
        arguments=training_arguments(make_data(folder), max(5, int(share * _SAVE_SECONDS / _INTERVAL))),
        updates=updates,
        interval=_INTERVAL,
        faults=draw_faults(updates, apart, args.seed),
        seed=args.seed,
    )
    print(f"{updates} updates of {_INTERVAL} s; faults at {[(each.update, each.kind) for each in course.faults]}")
    outcome = Soak(course, folder).run()
    (folder / "soak.json").write_text(json.dumps(outcome.to_json(), indent=1) + "\n", encoding="utf-8")
    print(
        f"{outcome.updates} updates, {outcome.starts} starts, {outcome.compared} losses compared, "
        f"{outcome.computed_twice} of them computed again: largest difference {outcome.loss_difference:g}, of weights "
        f"{outcome.weight_difference:g}; memory grows by {outcome.bytes_per_hour / 1e6:.2f} MB an hour, of a worker by "
        f"{outcome.worker_bytes_per_hour / 1e6:.2f}"
    )
    print("\n".join(outcome.problems) or "nothing happened that should not")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
