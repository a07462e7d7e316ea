"""Questions and SQL of the text2sql sets (Finegan-Dollak et al. 2018): ``NAME.json`` becomes aligned splits.

    python -m preprocess.text2sql geography --data DIR --output DIR --split query

Names of variables stay in both texts; ``{split}.variables`` has their values. Of ten folds, the last is the test.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, read_json_list, write_columns

SPLITS = {"dev": "valid", "test": "test", "8": "valid", "9": "test", "exclude": "excluded"}
SPLITS.update(dict.fromkeys(("train", *"01234567"), "train"))


def prepare(path: Path, output: Path, kind: str) -> dict[str, int]:
    """Writes the splits by query or by question; returns their sizes. Raises CorpusError for splits of other names."""
    rows: dict[str, list[tuple[str, str, str]]] = {"train": [], "valid": [], "test": [], "excluded": []}
    for entry in read_json_list(path):
        for sentence in entry["sentences"]:
            split = SPLITS.get(name := str(entry["query-split"] if kind == "query" else sentence["question-split"]))
            if split is None:
                raise CorpusError(f"{path}: the {kind} split of a pair is {name!r}; give another --split")
            texts = (sentence["text"], entry["sql"][0])
            rows[split].append((*(" ".join(text.split()) for text in texts), json.dumps(sentence["variables"])))
    del rows["excluded"]
    return {split: write_columns(output / split, ("en", "sql", "variables"), rows[split]) for split in rows}


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.text2sql", description=__doc__.split("\n")[0])
    parser.add_argument("name", help="of the set: geography, atis, advising, or another file NAME.json of --data")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of NAME.json")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the splits")
    parser.add_argument("--split", choices=("query", "question"), default="query", help="what is new in the test set")
    args = parser.parse_args()
    path = args.data / f"{args.name}.json"
    return prepare_data_set("text2sql", args.name, lambda: prepare(path, args.output, args.split))


if __name__ == "__main__":
    raise SystemExit(main())
