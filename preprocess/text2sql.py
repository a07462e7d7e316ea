"""Questions and SQL of the text2sql sets (Finegan-Dollak et al. 2018): ``NAME.json`` becomes aligned splits.

    python -m preprocess.text2sql geography --data DIR --output DIR --split query

The reference is the first query of an entry. Names of variables stay in both texts; ``OUTPUT/{split}.variables`` has
their values, a JSON object a line, which make the queries run. Sets that come in ten folds are tested on the last one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import read_json_list, write_lines

SPLITS = {"train": "train", "dev": "valid", "test": "test", "8": "valid", "9": "test", "exclude": None}


def prepare(path: Path, output: Path, kind: str, limit: int | None = None) -> Mapping[str, int]:
    """Writes the splits of a set, by query or by question; returns the numbers of pairs."""
    rows: dict[str, list[tuple[str, str, str]]] = {"train": [], "valid": [], "test": []}
    for entry in read_json_list(path):
        for sentence in entry["sentences"]:
            split = SPLITS.get(str(entry["query-split"] if kind == "query" else sentence["question-split"]), "train")
            if split is not None:
                texts = (sentence["text"], entry["sql"][0])
                rows[split].append((*(" ".join(text.split()) for text in texts), json.dumps(sentence["variables"])))
    for split, found in rows.items():
        for column, suffix in enumerate(("en", "sql", "variables")):
            write_lines(output / f"{split}.{suffix}", [row[column] for row in found[:limit]])
    return {split: len(found[:limit]) for split, found in rows.items()}


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.text2sql", description=__doc__.split("\n")[0])
    parser.add_argument("name", help="of the set: geography, atis, advising, or another file NAME.json of --data")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of NAME.json")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the splits")
    parser.add_argument(
        "--split", choices=("query", "question"), default="query", help="test queries are not in training"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="the first N pairs of every split")
    args = parser.parse_args()
    path = args.data / f"{args.name}.json"
    return prepare_data_set("text2sql", args.name, lambda: prepare(path, args.output, args.split, args.limit))


if __name__ == "__main__":
    raise SystemExit(main())
