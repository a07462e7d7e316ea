"""Questions and SQL of the text2sql sets (Finegan-Dollak et al. 2018): ``NAME.json`` becomes aligned splits.

    python -m preprocess.text2sql geography --data DIR --output DIR --split query

Names of variables stay in both texts; ``{split}.variables`` has their values. Those without quotes become parameters of
SQL, such as ``:year0``. ``schema.sql`` has the tables of ``NAME-schema.csv``. Of ten folds, the last is the test. A set
without a test split, such as Spider, is tested on its dev split, and a tenth of training validates.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, read_json_list, write_columns, write_lines

SPLITS = {"dev": "valid", "test": "test", "8": "valid", "9": "test", "exclude": "excluded"}
SPLITS.update(dict.fromkeys(("train", *"01234567"), "train"))


def prepare(path: Path, output: Path, kind: str) -> dict[str, int]:
    """Writes the splits by query or by question; returns their sizes. Raises CorpusError for splits of other names."""
    rows: dict[str, list[tuple[str, str, str]]] = {"train": [], "valid": [], "test": [], "excluded": []}
    for entry in read_json_list(path):
        names = [variable["name"] for variable in entry.get("variables", [])]
        query = with_parameters(entry["sql"][0], names)
        for sentence in entry["sentences"]:
            split = SPLITS.get(name := str(entry["query-split"] if kind == "query" else sentence["question-split"]))
            if split is None:
                raise CorpusError(f"{path}: the {kind} split of a pair is {name!r}; give another --split")
            texts = (sentence["text"], query)
            rows[split].append((*(" ".join(text.split()) for text in texts), json.dumps(sentence["variables"])))
    del rows["excluded"]
    if not rows["test"]:
        rows["test"], rows["valid"] = rows["valid"], []
    if not rows["valid"]:
        compared = 1 if kind == "query" else 0  # the column in which splits have nothing in common
        held_out = set(list(dict.fromkeys(row[compared] for row in rows["train"]))[::10])
        rows["valid"] = [row for row in rows["train"] if row[compared] in held_out]
        rows["train"] = [row for row in rows["train"] if row[compared] not in held_out]
    schema = path.with_name(f"{path.stem}-schema.csv")
    if schema.is_file():
        write_lines(output / "schema.sql", create_tables(schema))
    return {split: write_columns(output / split, ("en", "sql", "variables"), rows[split]) for split in rows}


def with_parameters(query: str, variables: Iterable[str]) -> str:
    """Marks the variables that stand in no quotes as parameters, because a bare name is one of a column in SQL."""
    names = "|".join(map(re.escape, variables))
    if not names:
        return query
    return re.sub(rf"\"[^\"]*\"|'[^']*'|\b({names})\b", lambda found: (":" if found[1] else "") + found[0], query)


def create_tables(path: Path) -> Iterator[str]:
    """Yields a CREATE TABLE statement for each table of a file of columns. Raises CorpusError for other headings."""
    tables: dict[str, list[str]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            try:
                table, column, kind = (row[name].strip() for name in ("Table Name", "Field Name", "Type"))
            except (AttributeError, KeyError):
                raise CorpusError(f"{path}: a row without Table Name, Field Name and Type") from None
            if table != "-":
                tables.setdefault(table, []).append(f'"{column}" {kind.split("(")[0]}')
    return (f'CREATE TABLE "{table}" ({", ".join(columns)});' for table, columns in tables.items())


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
