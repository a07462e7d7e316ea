"""``fairseq-preprocess`` with programs: lines that do not parse, spelled names, and what is said of them."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.commands import run
from tests.scoring.runs import write_lines
from tests.source_code.programs import lines_of
from tests.source_code.test_field_types import accepts
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.errors import FaultyLinesError, InputError
from tree_fairseq.nn.shared_names import SharedNames
from tree_fairseq.parsing.pieces import load_subword_model
from tree_fairseq.source_code.field_types import FieldTypes

QUERIES = [
    "SELECT a FROM t",
    "SELECT b, COUNT(*) FROM t WHERE a = 3 AND b <> 'x y^z' GROUP BY b",
    "SELECT c FROM u WHERE c IN (SELECT a FROM t)",
] * 6
NEW_NAMES = "SELECT newName FROM veryNew_Table1 WHERE c IN (SELECT myId FROM other_1_2_3_4_5_6_7_8_9)"
WRONG = "SELECT FROM WHERE"


def write(folder, split, queries):
    write_lines(folder / f"{split}.sql", queries)
    write_lines(folder / f"{split}.en", [f"question {k}" for k in range(len(queries))])


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
    write(tmp_path / "text", "test", [NEW_NAMES, *QUERIES[:2]])
    log = preprocess(tmp_path / "text", tmp_path / "bin")
    assert stored(tmp_path / "bin", "train") == QUERIES
    # Names that training does not have are spelled with its symbols, which have all characters of ASCII.
    assert stored(tmp_path / "bin", "test")[0] == NEW_NAMES
    assert "test.sql: a model can produce 100.0 % of the trees" in log
    record = Manifest.load(tmp_path / "bin").symbols["sql"]
    assert record.identity["library"] == "sqlglot" and record.binarization == "none"
    types = FieldTypes.load(tmp_path / "bin" / record.types)
    assert all(accepts(types, record.notation_in(tmp_path / "bin").read(query)) for query in QUERIES)


def test_a_split_is_added_with_the_spelling_of_the_folder(tmp_path):
    write(tmp_path / "text", "train", QUERIES)
    preprocess(tmp_path / "text", tmp_path / "bin", splits=("train",))
    write(tmp_path / "text", "test", QUERIES[:2])
    dictionaries = ("--srcdict", tmp_path / "bin" / "dict.en.txt", "--tgtdict", tmp_path / "bin" / "dict.sql.txt")
    preprocess(tmp_path / "text", tmp_path / "bin", *dictionaries, splits=("test",))
    assert stored(tmp_path / "bin", "test") == QUERIES[:2]
    assert stored(tmp_path / "bin", "train") == QUERIES
    assert Manifest.load(tmp_path / "bin").symbols["sql"].types == "types.sql.txt"  # for --grammar language
    (tmp_path / "bin" / "spelling.sql.json").unlink()
    with pytest.raises(InputError, match=r"spelling\.sql\.json"):
        preprocess(tmp_path / "text", tmp_path / "other", *dictionaries, splits=("test",))


def test_lines_that_do_not_parse_are_all_named(tmp_path):
    write(tmp_path / "text", "train", [QUERIES[0], WRONG, *QUERIES, *[WRONG] * 11])
    with pytest.raises(FaultyLinesError) as caught:
        preprocess(tmp_path / "text", tmp_path / "bin", splits=("train",))
    assert "train.sql:2:17" in str(caught.value) and "2 more lines" in str(caught.value)
    assert not (tmp_path / "bin").exists()


def test_pairs_that_do_not_parse_are_left_out_and_test_pairs_are_kept_as_wrong(tmp_path):
    write(tmp_path / "text", "train", [QUERIES[0], WRONG, *QUERIES[1:]])
    write(tmp_path / "text", "test", [WRONG, QUERIES[1]])
    write(tmp_path / "text", "valid", [*QUERIES, *[WRONG] * 12])
    splits = "train", "valid", "test"
    log = preprocess(tmp_path / "text", tmp_path / "bin", "--on-parse-error", "skip-pair", splits=splits)
    assert stored(tmp_path / "bin", "train") == QUERIES
    questions = list(token_words(tmp_path / "bin" / "train.en-sql.en", load_dictionary(tmp_path / "bin", "en")))
    assert [words[1] for words in questions[:3]] == ["0", "2", "3"]
    assert stored(tmp_path / "bin", "test") == ["<unk>", QUERIES[1]]
    assert "train: 1 pairs with a line that does not parse are left out" in log
    assert "test: 1 pairs with a line that does not parse stay" in log
    assert "valid: 12 pairs with a line that does not parse are left out" in log and "... and 2 more lines\n" in log
    assert "test.sql: a model can produce 50.0 % of the trees" in log


def test_words_of_text_and_names_of_programs_have_the_same_pieces(tmp_path):
    """So a name that is one word of the source can be copied piece by piece, also one that training does not have.

    Pieces that training has in programs alone are in the dictionary of the text, too.
    """
    names = ["getUserName", "userIds_2", "nameOfId", "getIds"]
    write_lines(tmp_path / "train.en", [f"show {name}, please" for name in names] * 2 + ["what is ab?"] * 6)
    write_lines(
        tmp_path / "train.sql", [f"SELECT {name}" for name in names] * 2 + ["SELECT ab"] * 5 + ["SELECT nameB7x"]
    )
    # ab is frequent as a column, but not as a table; please is frequent in questions alone.
    write_lines(tmp_path / "test.en", ["show nameOfUser_2, please", "what is B7xOf?", "what is c of ab please"])
    write_lines(tmp_path / "test.sql", ["SELECT nameOfUser_2", "SELECT B7xOf", "SELECT please FROM ab"])
    preprocess(tmp_path, tmp_path / "bin", "--learn-subwords", 8)
    source, target = (load_dictionary(tmp_path / "bin", lang) for lang in ("en", "sql"))
    record = Manifest.load(tmp_path / "bin").symbols["sql"]
    notation = record.notation_in(tmp_path / "bin")
    names = SharedNames(source, SymbolDictionary(target, record.encoding, notation))
    for split, count in (("train", 13), ("test", 3)):
        lines = (tmp_path / f"{split}.en").read_text().splitlines()[:count]
        words = list(token_words(tmp_path / "bin" / f"{split}.en-sql.en", source))
        symbols = token_words(tmp_path / "bin" / f"{split}.en-sql.sql", target)
        for line, tokens, tree in zip(lines, words, symbols):
            assert " ".join(tokens).replace("@@ ", "") == line
            assert load_subword_model(str(tmp_path / "bin" / "subwords.en.codes")).split_line(line) == " ".join(tokens)
            leaves = {target.index(symbol) for symbol in tree if notation.leaf_text(record.encoding.split(symbol)[0])}
            own = names.of_tokens(torch.tensor([[source.index(token) for token in tokens]]))
            pointed = {symbol for each in own for symbol in each.symbols[each.is_symbol].tolist()}
            assert leaves and leaves <= pointed
    given = tmp_path / "dict.en.txt"
    given.write_text((tmp_path / "bin" / "dict.en.txt").read_text() + "zebra 1\n")
    preprocess(tmp_path, tmp_path / "again", "--learn-subwords", 8, "--srcdict", given)
    assert "zebra" in load_dictionary(tmp_path / "again", "en")


def test_raw_text_keeps_characters_that_names_have(tmp_path):
    write(tmp_path, "train", ["SELECT a WHERE b = 'O''Hara'"] * 6)
    write_lines(tmp_path / "train.en", ['who is "O\'Hara" & <co> [x]?'] * 6)
    flags = ("--tokenizer", "moses", "--apply-tokenizer", "--learn-subwords", 8)
    preprocess(tmp_path, tmp_path / "bin", *flags, splits=("train",))
    [line, *_] = token_words(tmp_path / "bin" / "train.en-sql.en", load_dictionary(tmp_path / "bin", "en"))
    assert "".join(line).replace("@@", "") == 'whois"O\'Hara"&<co>[x]?'


def test_programs_on_both_sides(tmp_path):
    lines_of("java")
    write_lines(tmp_path / "train.java", ["int f(int x) {return x;}", "void g() {h(1);}"] * 3)
    write_lines(tmp_path / "train.cs", ["int F(int x){return x;}", "void G(){H(1);}"] * 3)
    source = ("-s", "java", "--source-modality", "tree", "--source-notation", "java")
    target = ("-t", "cs", "--target-modality", "tree", "--target-notation", "csharp")
    files = ("--trainpref", tmp_path / "train", "--destdir", tmp_path / "bin")
    run("preprocess", *source, *target, *files, "--joined-dictionary")
    symbols = Manifest.load(tmp_path / "bin").symbols
    assert (symbols["java"].spelling, symbols["cs"].spelling) == ("spelling.java.json", "spelling.cs.json")


def test_programs_are_not_binarized(tmp_path):
    write(tmp_path / "text", "train", QUERIES)
    with pytest.raises(InputError, match="--binarization lcrs: programs"):
        preprocess(tmp_path / "text", tmp_path / "bin", "--binarization", "lcrs", splits=("train",))


GOOD, FLAT, BAD = "(S (NN a) (. .))", "(S (NN a)", "no tree"
SKIP = ("--on-parse-error", "skip-pair")


@pytest.mark.parametrize("parser", ["brackets", "faulty", "notation"])
def test_faulty_pairs_are_left_out_for_every_parser_and_stay_in_test_sets(tmp_path, parser):
    faulty = {"brackets": [FLAT, BAD], "faulty": ["a NONE", "b RAISE"], "notation": ["( f", "( f ) )"]}[parser]
    good = {"brackets": GOOD, "faulty": "a b", "notation": "( f a )"}[parser]
    parser = {"faulty": "tests.parsing.fake_parsers:faulty"}.get(parser, parser)
    of_parser = ("--tree-parser", parser, "--max-parse-failures", 2)
    trees = ("--target-modality", "tree") if parser == "notation" else of_parser
    for split in ("train", "test"):
        write_lines(tmp_path / f"{split}.de", [f"w{number}" for number in range(4)])
        write_lines(tmp_path / f"{split}.en", [good, faulty[0], good, faulty[1]])
    sides = ("-s", "de", "-t", "en") if parser == "notation" else ("-s", "en", "-t", "de")
    prefixes = ("--trainpref", tmp_path / "train", "--testpref", tmp_path / "test")
    command = ("preprocess", *sides, *prefixes, *trees)
    log = run(*command, *SKIP, "--destdir", tmp_path / "bin")
    pair, dictionary = f"{sides[1]}-{sides[3]}.de", load_dictionary(tmp_path / "bin", "de")
    assert list(token_words(tmp_path / "bin" / f"train.{pair}", dictionary)) == [["w0"], ["w2"]]
    assert len(list(token_words(tmp_path / "bin" / f"test.{pair}", dictionary))) == 4
    assert "train: 2 pairs with a line that does not parse are left out" in log and "train.en:4" in log
    assert "test: 2 pairs with a line that does not parse stay" in log
    with pytest.raises(Exception, match="train.en:2|1 in every|could not be parsed"):
        run(*command, "--on-parse-error", "stop", "--destdir", tmp_path / "stopped")
