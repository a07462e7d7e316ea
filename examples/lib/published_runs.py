"""Results of a comparison as JSON files of the repository, and the table of a README that is made of them.

    python examples/lib/published_runs.py collect --results examples/NAME/results --words OUT/words --target-lang de \\
        --system "transformer" "examples/NAME/run.sh --arch transformer" OUT/runs/transformer+* --system ...
    python examples/lib/published_runs.py table --results examples/NAME/results

``collect`` writes ``SYSTEM-seedN.json`` for each run: command, seed, updates, loss on the validation set, sacreBLEU. It
writes ``differences.json``, too: each system against the first ones, its baselines, by sacreBLEU's paired bootstrap
over the outputs of all seeds that both have. ``table`` prints the table, where fewer than three seeds have no p-value.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.files import read_json, write_json
from tree_fairseq.scoring.bleu import Side, corpus_score, paired_bootstrap
from tree_fairseq.scoring.outputs import detokenize, read_hypotheses, read_text

SEEDS = 3
"""A claim needs as many."""
_SEED = re.compile(r"'seed': (\d+)")
_VALID = re.compile(r"nll_loss ([\d.]+) \|.*num_updates (\d+)")


def read_run(run: Path, system: str, command: str) -> dict:
    """What a run's log says: seed, updates and the loss on the validation set at their end, nats a token in base 2.

    Raises:
        ScoringError: the log does not have it, because the run did not come to its end
    """
    log = (run / "train.log").read_text(encoding="utf-8")
    seed, validated = _SEED.search(log), [line for line in log.splitlines() if "'valid' subset |" in line]
    found = _VALID.search(validated[-1]) if validated else None
    if seed is None or found is None:
        raise ScoringError(f"{run / 'train.log'} has no seed or no validation; train it to the end")
    return {
        "system": system,
        "command": f"{command} -- --seed {seed[1]}",
        "seed": int(seed[1]),
        "updates": int(found[2]),
        "validation_nll": float(found[1]),
    }


def collect(
    systems: Sequence[tuple[str, str, list[Path]]], words: Path, target: str, baselines: int
) -> tuple[list[dict], list[dict]]:
    """The results of all runs, and the differences of each system to each of the first ones.

    A system is a title, a command and the folders of its runs.
    """
    runs, outputs, side = [], {}, None
    for title, command, folders in systems:
        for folder in folders:
            hypotheses = detokenize(read_hypotheses(folder / "generate-test.txt"), target)
            raw = words / "raw" / f"test.{target}"
            side = side or Side("sacrebleu", read_text(raw, len(hypotheses)), lowercase=True)
            score, signature = corpus_score(side, hypotheses)
            run = {**read_run(folder, title, command), "sacrebleu": score, "signature": signature}
            runs.append(run)
            outputs[title, run["seed"]] = hypotheses
    differences = []
    for place, (title, _, _) in enumerate(systems):
        for baseline, _, _ in systems[: min(place, baselines)]:
            seeds = sorted(seed for name, seed in outputs if name == title and (baseline, seed) in outputs)
            if seeds:
                together = Side("sacrebleu", list(side.references) * len(seeds), side.lowercase)
                ours, theirs = ([line for seed in seeds for line in outputs[name, seed]] for name in (title, baseline))
                found = paired_bootstrap(together, theirs, ours)
                facts = {name: found[name] for name in ("difference", "p_value", "signature")}
                differences.append({"system": title, "baseline": baseline, "seeds": seeds, **facts})
    return runs, differences


def table(folder: Path) -> str:
    """The table of a folder of results: a row for each system, with its mean over the seeds."""
    differences = read_json(folder / "differences.json")
    runs = [read_json(path) for path in sorted(folder.glob("*-seed*.json"))]
    baselines = list(dict.fromkeys(each["baseline"] for each in differences))
    titles = dict.fromkeys([*baselines, *(each["system"] for each in differences)])
    heads = ["model", "seeds", "validation nll", "sacreBLEU 2016", *(f"less {name}, p" for name in baselines)]
    rows = [heads, ["---"] * len(heads)]
    for title in titles:
        own = sorted((run for run in runs if run["system"] == title), key=lambda run: run["seed"])
        scores = [f"{run['sacrebleu']:.2f}" for run in own]
        mean = f"{statistics.fmean(run['sacrebleu'] for run in own):.2f}"
        rows.append(
            [
                title,
                ", ".join(str(run["seed"]) for run in own),
                f"{statistics.fmean(run['validation_nll'] for run in own):.3f}",
                mean if len(own) == 1 else f"{mean} ({', '.join(scores)})",
                *(_difference(differences, title, baseline) for baseline in baselines),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _difference(differences: Sequence[dict], title: str, baseline: str) -> str:
    for each in differences:
        if (each["system"], each["baseline"]) == (title, baseline):
            enough = len(each["seeds"]) >= SEEDS
            p_value = f"{each['p_value']:.3f}" if enough else f"– ({len(each['seeds'])} of {SEEDS} seeds)"
            return f"{each['difference']:+.2f}, {p_value}".replace("-", "−")
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of this script; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("collect", "table"))
    parser.add_argument("--results", type=Path, required=True, help="folder of the JSON files")
    parser.add_argument("--words", type=Path, help="folder with raw/test.LANG, the references")
    parser.add_argument("--target-lang", help="language of the translations")
    parser.add_argument("--baselines", type=int, default=1, help="how many systems are baselines of the others (1)")
    parser.add_argument("--system", nargs="+", action="append", metavar="", help="title, command and folders of runs")
    args = parser.parse_args(arguments)
    try:
        if args.action == "collect":
            systems = [(title, command, [Path(run) for run in runs]) for title, command, *runs in args.system]
            runs, differences = collect(systems, args.words, args.target_lang, args.baselines)
            args.results.mkdir(parents=True, exist_ok=True)
            for run in runs:
                name = re.sub(r"\W+", "-", run["system"].lower())
                write_json(args.results / f"{name}-seed{run['seed']}.json", run)
            write_json(args.results / "differences.json", differences)
        sys.stdout.write(table(args.results))
    except (TreeFairseqError, OSError) as error:
        sys.stderr.write(f"published_runs: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
