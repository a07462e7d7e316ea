"""A made-up archipelago: its database, and questions about it with the SQL that answers them.

    python examples/explorer_demo/archipelago.py --database archipelago.sqlite --out text

All names and numbers are drawn from a fixed seed, and are in the public domain (CC0). A question has *conditions*, one
within the other or one after the other: at most three in training, ``valid`` and ``test``, four and more in the second
test set, ``test1``. No question occurs twice. The same arguments write the same text.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLES = {
    "island": "name TEXT PRIMARY KEY, area INTEGER, population INTEGER",
    "city": "name TEXT PRIMARY KEY, island TEXT REFERENCES island, population INTEGER, founded INTEGER",
    "mountain": "name TEXT PRIMARY KEY, island TEXT REFERENCES island, height INTEGER",
    "river": "name TEXT PRIMARY KEY, island TEXT REFERENCES island, length INTEGER",
    "ferry": "origin TEXT REFERENCES city, destination TEXT REFERENCES city, minutes INTEGER, price INTEGER",
}
BEGINNINGS = "al ber cor dun el far gan hol is jor kel lor mar nor os per quil ros sol tam ul ver wes yor zan".split()
ENDINGS = {
    "island": "amia ora una ista enia".split(),
    "city": "ton by ville ford ham wick stad".split(),
    "mountain": "horn fell spitz tind".split(),
    "river": "ach inga ell awa".split(),
}
COUNTS = {"island": 9, "city": 36, "mountain": 15, "river": 15}
FERRIES = 60


class Number(NamedTuple):
    """A column of numbers: its values, the words for more and less of it, for the most and the least, and its unit."""

    column: str
    least: int
    most: int
    more: str  # "higher than"; a column without such a word has "with more than 5 people"
    less: str
    greatest: str
    smallest: str
    unit: str
    how: str  # begins a question about one row


NUMBERS = {
    "island": [
        Number("area", 40, 9000, "larger", "smaller", "largest", "smallest", "square kilometres", "how large"),
        Number("population", 500, 99000, "", "", "most populous", "least populous", "people", ""),
    ],
    "city": [
        Number("population", 100, 60000, "larger", "smaller", "largest", "smallest", "people", "how large"),
        Number("founded", 900, 1990, "younger", "older", "newest", "oldest", "", "how old"),
    ],
    "mountain": [Number("height", 200, 4000, "higher", "lower", "highest", "lowest", "metres", "how high")],
    "river": [Number("length", 5, 400, "longer", "shorter", "longest", "shortest", "kilometres", "how long")],
    "ferry": [
        Number("minutes", 10, 600, "longer", "shorter", "longest", "shortest", "minutes", ""),
        Number("price", 3, 150, "dearer", "cheaper", "dearest", "cheapest", "crowns", ""),
    ],
}
PLURALS = {"island": "islands", "city": "cities", "mountain": "mountains", "river": "rivers", "ferry": "ferries"}
ON_ISLANDS = ("city", "mountain", "river")


class Part(NamedTuple):
    """Words of a question, their SQL, and the number of conditions that they have."""

    words: str
    sql: str
    conditions: int = 1


class Questions:
    """Draws questions about the rows of the archipelago."""

    def __init__(self, rows: dict[str, list[tuple]], seed: int):
        self.draw = random.Random(seed)
        self.names = {table: [row[0] for row in found] for table, found in rows.items() if table != "ferry"}

    def question(self) -> Part:
        """A question and its query."""
        return self.draw.choice(
            [self.listed, self.listed, self.counted, self.best, self.total, self.by_island, self.one]
        )()

    def listed(self) -> Part:
        table = self.table()
        where = self.where(table)
        words = self.draw.choice(["which {}", "list the {}", "show all {}", "what are the {}"]).format(PLURALS[table])
        order = ""
        if self.draw.random() < 0.2:
            column = self.draw.choice(NUMBERS[table]).column
            words, order = f"{words} sorted by {column}", f" ORDER BY {column}"
        return Part(f"{words} {where.words}", f"{self.select(table)}{where.sql}{order}", where.conditions)

    def counted(self) -> Part:
        table = self.table()
        where = self.where(table)
        words = f"how many {PLURALS[table]} are there {where.words}"
        return Part(words, f"SELECT COUNT(*) FROM {table}{where.sql}", where.conditions)

    def best(self) -> Part:
        table, number = self.numbered()
        where, is_greatest = self.where(table), self.draw.random() < 0.6
        word, order = (number.greatest, " DESC") if is_greatest else (number.smallest, "")
        count = 1
        words = f"what is the {word} {table}"
        if self.draw.random() < 0.35:
            count = self.draw.choice([2, 3, 4, 5])
            words = f"what are the {count} {word} {PLURALS[table]}"
        sql = f"{self.select(table)}{where.sql} ORDER BY {number.column}{order} LIMIT {count}"
        return Part(f"{words} {where.words}", sql, where.conditions)

    def total(self) -> Part:
        table, number = self.numbered(without="founded")
        where = self.where(table)
        word, function = self.draw.choice(
            [("average", "AVG"), ("total", "SUM"), ("greatest", "MAX"), ("smallest", "MIN")]
        )
        words = f"what is the {word} {number.column} of the {PLURALS[table]} {where.words}"
        return Part(words, f"SELECT {function}({number.column}) FROM {table}{where.sql}", where.conditions)

    def by_island(self) -> Part:
        table = self.draw.choice(ON_ISLANDS)
        where, plural = self.where(table), PLURALS[table]
        kind = self.draw.randrange(3)
        if kind == 0:
            words, start = f"for each island how many {plural} are there", "SELECT island, COUNT(*)"
            end = " GROUP BY island"
        elif kind == 1:
            words, start = f"which island has the most {plural}", "SELECT island"
            end = " GROUP BY island ORDER BY COUNT(*) DESC LIMIT 1"
        else:
            least = self.draw.choice([1, 2, 3])
            words, start = f"which islands have more than {least} {plural}", "SELECT island"
            end = f" GROUP BY island HAVING COUNT(*) > {least}"
        return Part(f"{words} {where.words}", f"{start} FROM {table}{where.sql}{end}", where.conditions)

    def one(self) -> Part:
        table = self.draw.choice(ON_ISLANDS)
        number, name = NUMBERS[table][0], self.draw.choice(self.names[table])
        column, words = self.draw.choice(
            [(number.column, f"{number.how} is {name}"), ("island", f"on which island is {name}")]
        )
        return Part(words, f"SELECT {column} FROM {table} WHERE name = '{name}'")

    def where(self, table: str) -> Part:
        """The conditions of a question; none now and then."""
        if self.draw.random() < 0.1:
            return Part("", "", 0)
        found = self.conditions(table, depth=0)
        return found._replace(sql=f" WHERE {found.sql}")

    def conditions(self, table: str, depth: int) -> Part:
        """One condition, or more. Only the last may have conditions of its own, so a question has one meaning."""
        parts = [self.simple(table) for _ in range(self.draw.choices([0, 1, 2], [5, 4, 1])[0])]
        parts.append(self.nested(table, depth) if self.draw.random() < 0.45 or not parts else self.simple(table))
        word = "and" if len(parts) > 2 or self.draw.random() < 0.8 else "or"
        words = f" {word} ".join(part.words for part in parts)
        return Part(words, f" {word.upper()} ".join(part.sql for part in parts), sum(part.conditions for part in parts))

    def simple(self, table: str) -> Part:
        """A condition without others."""
        makers = [self.compared, self.compared]
        if table in ON_ISLANDS:
            makers += [self.on_island]
        if table == "ferry":
            makers += [self.of_ferry, self.of_ferry]
        else:
            makers += [self.than_another]
        return self.draw.choice(makers)(table)

    def compared(self, table: str) -> Part:
        number, is_more = self.draw.choice(NUMBERS[table]), self.draw.random() < 0.5
        value, sign = self.draw.randint(number.least, number.most), ">" if is_more else "<"
        sql = f"{number.column} {sign} {value}"
        if number.column == "founded":
            return Part(f"founded {'after' if is_more else 'before'} {value}", sql)
        if number.unit == "people":
            return Part(f"with {'more' if is_more else 'fewer'} than {value} people", sql)
        return Part(f"{number.more if is_more else number.less} than {value} {number.unit}", sql)

    def than_another(self, table: str) -> Part:
        number, is_more = self.draw.choice([each for each in NUMBERS[table] if each.more]), self.draw.random() < 0.5
        name, word, sign = (
            self.draw.choice(self.names[table]),
            number.more if is_more else number.less,
            ">" if is_more else "<",
        )
        return Part(
            f"{word} than {name}", f"{number.column} {sign} (SELECT {number.column} FROM {table} WHERE name = '{name}')"
        )

    def on_island(self, table: str) -> Part:
        name = self.draw.choice(self.names["island"])
        if self.draw.random() < 0.2:
            return Part(f"not on {name}", f"island <> '{name}'")
        return Part(f"on {name}", f"island = '{name}'")

    def of_ferry(self, table: str) -> Part:
        word, column = self.draw.choice([("from", "origin"), ("to", "destination")])
        name = self.draw.choice(self.names["city"])
        return Part(f"{word} {name}", f"{column} = '{name}'")

    def nested(self, table: str, depth: int) -> Part:
        """A condition on the rows of another table, which have conditions of their own."""
        if table == "ferry":
            word, column = self.draw.choice([("from", "origin"), ("to", "destination")])
            return self.those(f"{word} cities", f"{column} IN", "name", "city", depth)
        if table == "island":
            other = self.draw.choice(ON_ISLANDS)
            if self.draw.random() < 0.2:
                return Part(f"without {PLURALS[other]}", f"NOT name IN (SELECT island FROM {other})")
            return self.those(f"with {PLURALS[other]}", "name IN", "island", other, depth)
        if table == "city" and self.draw.random() < 0.5:
            if self.draw.random() < 0.2:
                return Part("without ferries", "NOT name IN (SELECT origin FROM ferry)")
            return self.those("with ferries", "name IN", "origin", "ferry", depth)
        if self.draw.random() < 0.3:
            number, is_greatest = self.draw.choice(NUMBERS["island"]), self.draw.random() < 0.5
            word, order = (number.greatest, " DESC") if is_greatest else (number.smallest, "")
            sql = f"island = (SELECT name FROM island ORDER BY {number.column}{order} LIMIT 1)"
            return Part(f"on the {word} island", sql)
        return self.those("on islands", "island IN", "name", "island", depth)

    def those(self, words: str, start: str, column: str, table: str, depth: int) -> Part:
        found = self.conditions(table, depth + 1)
        return Part(
            f"{words} {found.words}", f"{start} (SELECT {column} FROM {table} WHERE {found.sql})", 1 + found.conditions
        )

    def table(self) -> str:
        return self.draw.choices(list(TABLES), [2, 4, 2, 2, 2])[0]

    def numbered(self, without: str = "") -> tuple[str, Number]:
        table = self.table()
        return table, self.draw.choice([number for number in NUMBERS[table] if number.column != without])

    @staticmethod
    def select(table: str) -> str:
        return f"SELECT {'origin, destination' if table == 'ferry' else 'name'} FROM {table}"


def archipelago(seed: int = 1) -> dict[str, list[tuple]]:
    """The rows of each table."""
    draw = random.Random(seed)
    names: dict[str, list[str]] = {}
    for table, count in COUNTS.items():
        made = [f"{beginning}{ending}".capitalize() for beginning in BEGINNINGS for ending in ENDINGS[table]]
        names[table] = sorted(draw.sample(made, count))
    rows: dict[str, list[tuple]] = {}
    for table in TABLES:
        values = [
            [draw.randint(number.least, number.most) for number in NUMBERS[table]]
            for _ in range(COUNTS.get(table, FERRIES))
        ]
        if table == "ferry":
            pairs = draw.sample(
                [(one, other) for one in names["city"] for other in names["city"] if one != other], FERRIES
            )
            rows[table] = [(*pair, *value) for pair, value in zip(pairs, values)]
        else:
            places = [(draw.choice(names["island"]),) if table in ON_ISLANDS else () for _ in values]
            rows[table] = [(name, *place, *value) for name, place, value in zip(names[table], places, values)]
    return rows


def write_database(path: Path, rows: dict[str, list[tuple]]) -> None:
    """Writes the rows to a new SQLite file; a file of that name is not replaced."""
    if path.exists():
        raise SystemExit(f"{path} exists: remove it, or give another --database")
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")
    for table, columns in TABLES.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[table][0]))})", rows[table])
    database.commit()
    database.execute("VACUUM")
    database.close()


def pairs(rows: dict[str, list[tuple]], seed: int = 1) -> Iterator[tuple[str, str, str, int]]:
    """Yields questions, the same as models read them, queries and numbers of conditions, without end."""
    from tree_fairseq.explorer.questions import words_of_question

    questions, seen = Questions(rows, seed), set()
    while True:
        words, sql, conditions = questions.question()
        line = " ".join(words_of_question(words))
        if line not in seen and len(sql) < 400:
            seen.add(line)
            yield words.strip(), line, sql, conditions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", type=Path, required=True, help="the new SQLite file")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the text")
    parser.add_argument("--train", type=int, default=20000, help="pairs to train on")
    options = parser.parse_args()
    rows = archipelago()
    write_database(options.database, rows)
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = {"test": 300, "valid": 300, "train": options.train, "test1": 300}
    drawn: dict[str, list[tuple[str, ...]]] = {split: [] for split in wanted}
    for *lines, conditions in pairs(rows):
        open_splits = [
            split for split in wanted if len(drawn[split]) < wanted[split] and (split == "test1") == (conditions > 3)
        ]
        if all(len(drawn[split]) == wanted[split] for split in wanted):
            break
        if open_splits:
            drawn[open_splits[0]].append(tuple(lines))
    for split, found in drawn.items():
        for place, ending in enumerate(("questions", "en", "sql")):
            text = "".join(f"{lines[place]}\n" for lines in found)
            (options.out / f"{split}.{ending}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
