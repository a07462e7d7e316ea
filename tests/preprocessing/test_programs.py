"""``fairseq-preprocess`` with programs: lines that do not parse, spelled names, and what is said of them."""

from __future__ import annotations

import pytest

from tests.end_to_end.commands import run
from tests.source_code.programs import lines_of
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.errors import InputError, NotationError
from tree_fairseq.source_code.field_types import FieldTypes
from tree_fairseq.trees.notations import notation_named

QUERIES = [
    "SELECT a FROM t",
    "SELECT b, COUNT(*) FROM t WHERE a = 3 AND b <> 'x y^z' GROUP BY b",
    "SELECT c FROM u WHERE c IN (SELECT a FROM t)",
] * 6
WRONG = "SELECT FROM WHERE"


def write(folder, split, queries):
    folder.mkdir(exist_ok=True)
    (folder / f"{split}.sql").write_text("".join(f"{query}\n" for query in queries), encoding="utf-8")
    (folder / f"{split}.en").write_text("".join(f"question {k}\n" for k in range(len(queries))), encoding="utf-8")


def preprocess(folder, destination, *arguments, splits=("train", "test")):
    prefixes = [text for split in splits for text in (f"--{split}pref", folder / split)]
    notation = ("--target-modality", "tree", "--target-notation", "sql")
    return run("preprocess", "-s", "en", "-t", "sql", *prefixes, "--destdir", destination, *notation, *arguments)


def stored(destination, split):
    record = Manifest.load(destination).symbols["sql"]
    notation = record.notation_in(destination)
    words = token_words(destination / f"{split}.en-sql.sql", load_dictionary(destination, "sql"))
    return [notation.write(record.encoding.decode(symbols)) for symbols in words]


def test_programs_come_back_from_the_folder(tmp_path):
    write(tmp_path / "text", "train", QUERIES)
    write(
        tmp_path / "text",
        "test",
        ["SELECT newName FROM veryNew_Table1 WHERE c IN (SELECT myId FROM other)", *QUERIES[:2]],
    )
    log = preprocess(tmp_path / "text", tmp_path / "bin")
    assert stored(tmp_path / "bin", "train") == QUERIES
    # Names that training does not have are spelled with its symbols, which have all characters of ASCII.
    assert (
        stored(tmp_path / "bin", "test")[0] == "SELECT newName FROM veryNew_Table1 WHERE c IN (SELECT myId FROM other)"
    )
    assert "test.sql: a model can produce 100.0 % of the trees" in log
    record = Manifest.load(tmp_path / "bin").symbols["sql"]
    assert record.identity["library"] == "sqlglot"
    assert record.binarization == "none"
    types = FieldTypes.load(tmp_path / "bin" / record.types)
    assert all(types.accepts(record.notation_in(tmp_path / "bin").read(query)) for query in QUERIES)


def test_a_split_is_added_with_the_spelling_of_the_folder(tmp_path):
    write(tmp_path / "text", "train", QUERIES)
    preprocess(tmp_path / "text", tmp_path / "bin", splits=("train",))
    write(tmp_path / "text", "test", QUERIES[:2])
    dictionaries = ("--srcdict", tmp_path / "bin" / "dict.en.txt", "--tgtdict", tmp_path / "bin" / "dict.sql.txt")
    preprocess(tmp_path / "text", tmp_path / "bin", *dictionaries, splits=("test",))
    assert stored(tmp_path / "bin", "test") == QUERIES[:2]
    assert stored(tmp_path / "bin", "train") == QUERIES
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    for name in ("dict.en.txt", "dict.sql.txt"):
        (lonely / name).write_bytes((tmp_path / "bin" / name).read_bytes())
    with pytest.raises(InputError, match=r"spelling\.sql\.json"):
        preprocess(
            tmp_path / "text",
            tmp_path / "other",
            *("--srcdict", lonely / "dict.en.txt", "--tgtdict", lonely / "dict.sql.txt"),
            splits=("test",),
        )


def test_lines_that_do_not_parse_are_all_named(tmp_path):
    write(tmp_path / "text", "train", [QUERIES[0], WRONG, *QUERIES, *[WRONG] * 11])
    with pytest.raises(NotationError) as caught:
        preprocess(tmp_path / "text", tmp_path / "bin", splits=("train",))
    message = str(caught.value)
    assert "train.sql:2:17" in message
    assert "2 more lines" in message
    assert not (tmp_path / "bin").exists()


def test_pairs_that_do_not_parse_are_left_out_and_test_pairs_are_kept_as_wrong(tmp_path):
    write(tmp_path / "text", "train", [QUERIES[0], WRONG, *QUERIES[1:]])
    write(tmp_path / "text", "test", [WRONG, QUERIES[1]])
    log = preprocess(tmp_path / "text", tmp_path / "bin", "--on-parse-error", "skip-pair")
    assert stored(tmp_path / "bin", "train") == QUERIES
    questions = list(token_words(tmp_path / "bin" / "train.en-sql.en", load_dictionary(tmp_path / "bin", "en")))
    assert [words[1] for words in questions[:3]] == ["0", "2", "3"]
    first, second = stored(tmp_path / "bin", "test")
    assert second == QUERIES[1]
    assert not notation_named("sql").accepts(notation_named("bracket").read("<unk>"))
    assert first == "<unk>"
    assert "train: 1 pairs with a line that does not parse are left out" in log
    assert "test: 1 pairs with a line that does not parse stay" in log


def test_programs_on_both_sides(tmp_path):
    lines_of("java")
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "train.java").write_text("int f(int x) {return x;}\nvoid g() {h(1);}\n" * 3, encoding="utf-8")
    (folder / "train.cs").write_text("int F(int x){return x;}\nvoid G(){H(1);}\n" * 3, encoding="utf-8")
    sides = ("--source-modality", "tree", "--source-notation", "java", "--target-modality", "tree")
    notation = ("--target-notation", "csharp", "--joined-dictionary")
    run(
        "preprocess",
        "-s",
        "java",
        "-t",
        "cs",
        "--trainpref",
        folder / "train",
        "--destdir",
        tmp_path / "bin",
        *sides,
        *notation,
    )
    manifest = Manifest.load(tmp_path / "bin")
    assert {lang: side.spelling for lang, side in manifest.symbols.items()} == {
        "java": "spelling.java.json",
        "cs": "spelling.cs.json",
    }


def test_programs_are_not_binarized(tmp_path):
    write(tmp_path / "text", "train", QUERIES)
    with pytest.raises(InputError, match="--binarization lcrs: programs"):
        preprocess(tmp_path / "text", tmp_path / "bin", "--binarization", "lcrs", splits=("train",))
