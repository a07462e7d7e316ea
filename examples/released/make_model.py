"""Trains a model by its recipe and packs it with a model card: ``make model NAME=geo DATA=DIR``.

``models.json`` beside this file lists the models. A run that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 10_000_000  # bytes of the weights

CARD = """# {title}

{reads_sentence} {writes_sentence}

| | |
|---|---|
| architecture | `{arch}`, {parameters:,} parameters, stored in half precision |
| data | {data} |
| licence | {licence} |
| trained | {updates:,} updates, {hours:.1f} hours, on {date} |
| checkpoint, SHA-256 | `{sha256}` |

## Scores

{scores}

{agreement} Signatures:

```
{signatures}
```

## Limits

{limits}

## Use

```python
from tree_fairseq import hub

model = hub.from_pretrained("{folder}")
model.translate(["{example}"])
```

## Made by

```
make model NAME={name}{given}
```

which runs `{command}` and `tree-fairseq release`.
"""


def recipe_command(settings: dict, data: str, out: Path, more: list[str]) -> list[str]:
    """Returns the command of the recipe; ``more`` are further options of it, such as ``--toy``."""
    flags = shlex.split(settings.get("flags", ""))
    command = [f"examples/{settings['recipe']}/run.sh", *(["--data", data] if data else []), "--out", str(out)]
    return [*command, *shlex.split(settings.get("options", "")), *more, *(["--", *flags] if flags else [])]


def commands_of(command: list[str]) -> tuple[list[str], list[str]]:
    """Returns the commands of a recipe that translate the last test set and score all of them."""
    end = command.index("--") if "--" in command else len(command)
    dry = [*command[:end], "--dry-run", *command[end:]]
    printed = subprocess.run(dry, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.replace("\\\n", " ")
    lines = [shlex.split(line) for line in printed.splitlines()]
    return [line for line in lines if line[0] == "fairseq-generate"][-1], lines[-1]


def differing_outputs(checkpoint: str, released: Path, data_bin: str) -> tuple[int, int]:
    """Returns how many outputs of the test set the released weights change, and how many there are."""
    outputs = []
    for path in (checkpoint, released):
        command = ["fairseq-generate", data_bin, "--user-dir", "tree_fairseq", "--task", task_of(data_bin)]
        command += ["--path", path, "--beam", "5", "--max-tokens", "4000", "--required-batch-size-multiple", "1"]
        printed = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout
        fields = (line.split("\t") for line in printed.splitlines() if line.startswith("H-"))
        outputs.append({number: text for number, _, text in fields})
    return sum(outputs[0][number] != outputs[1][number] for number in outputs[0]), len(outputs[0])


def task_of(data_bin: str) -> str:
    """Returns the task of a folder: symbol trees have their own."""
    record = json.loads(Path(data_bin, "tree.json").read_text(encoding="utf-8"))
    return "structural_translation" if record.get("symbols") else "tree_translation"


def scores_table(result: dict) -> tuple[str, str]:
    """Returns the metrics of the recipe as a table, and their signatures."""
    numbers = {name: value for name, value in result.items() if isinstance(value, float) and name != "score"}
    lines = ["| metric | score |", "|---|---|", *(f"| {name} | {value:.2f} |" for name, value in numbers.items())]
    signatures = result.get("signatures") or {result["metric"]: "share of the test set, see the recipe's README"}
    return "\n".join(lines), "\n".join(f"{name}: {text}" for name, text in signatures.items())


def main(arguments: list[str] | None = None) -> int:
    """Runs recipe, release and comparison; returns exit status 1 if the weights are too large."""
    models = json.loads((ROOT / "examples/released/models.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="Other options go to the recipe, such as --parser-dir DIR."
    )
    parser.add_argument("name", choices=models)
    parser.add_argument("--data", default="", metavar="DIR", help="the data set, see the README of the recipe")
    parser.add_argument("--out", type=Path, metavar="DIR", help="what is written (default: out/models/NAME)")
    args, more = parser.parse_known_args(arguments)
    settings, out = models[args.name], (args.out or ROOT / "out" / "models" / args.name).resolve()
    command = recipe_command(settings, args.data and os.path.abspath(args.data), out / "recipe", more)
    subprocess.run(command, check=True, cwd=ROOT)

    generate, score = commands_of(command)
    data_bin, checkpoint = generate[1], generate[generate.index("--path") + 1]
    result = json.loads(Path(score[score.index("--result") + 1]).read_text(encoding="utf-8"))
    description, trained = result["description"], result["checkpoint"]
    table, signatures = scores_table(result)
    folder = out / args.name
    if (folder / "model.safetensors").exists():  # of an earlier run
        shutil.rmtree(folder)
    release = ["tree-fairseq", "release", data_bin, checkpoint, "--output", str(folder)]
    subprocess.run([*release, "--dtype", "float16"], check=True, cwd=ROOT)
    weights = folder / "model.safetensors"
    changed, count = differing_outputs(checkpoint, weights, data_bin)
    values = {
        **settings,
        "name": args.name,
        "folder": args.name,
        "arch": description["arch"],
        "parameters": trained["parameters"],
        "updates": trained["updates"],
        "hours": trained["training_seconds"] / 3600,
        "sha256": trained["sha256"],
        "date": datetime.date.today().isoformat(),
        "reads_sentence": f"The model reads {settings['reads']}.",
        "writes_sentence": f"It writes {settings['writes']}.",
        "scores": table,
        "agreement": f"Stored in half precision, the model writes {count - changed} of {count} test outputs as before.",
        "signatures": signatures,
        "given": " DATA=DIR" if args.data else "",
        "command": shlex.join(recipe_command(settings, "DIR" if args.data else "", Path("OUT"), [])),
    }
    # The card comes last: a folder with a card is complete.
    (folder / "README.md").write_text(CARD.format(**values), encoding="utf-8")
    if weights.stat().st_size > LARGEST:
        sys.stderr.write(f"{weights} has more than {LARGEST:,} bytes: choose a smaller model\n")
        return 1
    print(f"{folder}: {weights.stat().st_size / 1e6:.1f} MB of weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
