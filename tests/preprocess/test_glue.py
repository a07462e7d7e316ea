"""GLUE's files, from their published forms to the splits that fairseq-preprocess reads."""

from __future__ import annotations

import pytest
from fairseq.data import Dictionary

from preprocess import toy_corpus
from preprocess.glue import TASKS, load, main
from tests.nn.pretrained import library, save_albert
from tests.preprocess.files import DATA, lines, write
from tree_fairseq.classification.examples import read_examples

MNLI_HEAD = "index\tpromptID\tgenre\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    for name in TASKS:
        toy_corpus.main([f"glue_{name}", "--output", str(folder / name), "--train", "60", "--test", "12"])
    return folder


def prepare(name, data, output, *flags):
    return main([name, *map(str, ("--data", data, "--output", output, *flags))])


@pytest.mark.parametrize("name", TASKS)
def test_a_tenth_selects_and_the_development_set_is_tested(raw, tmp_path, name):
    assert prepare(name, raw / name, tmp_path) == 0
    tests = ("test", "test1") if name == "mnli" else ("test",)
    counts = {split: len(lines(tmp_path / f"{split}.tsv")) for split in ("train", "valid", *tests)}
    assert counts == {"train": 54, "valid": 6, **dict.fromkeys(tests, 12)}
    input_format = "sentence" if name in ("cola", "sst2") else "pair"
    for split in counts:
        examples = read_examples(tmp_path / f"{split}.tsv", input_format, None, is_number=name == "stsb")
        assert len(examples.texts) == counts[split] and all(text == text.lower() for text in examples.texts)


def test_all_models_have_the_same_tenth(raw):
    first, second = (load("cola", raw / "cola") for _ in range(2))
    assert first == second and load("cola", raw / "cola", seed=2) != first


def test_columns_are_found_by_their_names(tmp_path):
    rows = [
        f"{n}\t1\tnews\t( x )\tA dog{n} .\tThere is one.\tneutral\t{label}"
        for n, label in enumerate(("neutral", "entailment", "-", "contradiction"))
    ]
    for name in ("train", "dev_matched", "dev_mismatched"):
        write(tmp_path / f"{name}.tsv", MNLI_HEAD, *rows)
    read = TASKS["mnli"].read(tmp_path, "train")
    # The one without agreement is left out.
    assert [line.name for line in read] == ["neutral", "entailment", "contradiction"]
    assert read[1].text == "A dog1 .\tThere is one."


def test_cola_s_own_release_has_two_development_sets(tmp_path):
    for number, name in enumerate(("in_domain_train", "in_domain_dev", "out_of_domain_dev")):
        write(tmp_path / "raw" / f"{name}.tsv", f"gj04\t{number % 2}\t*\tHe  sleep {number}.")
    assert [line.text for line in TASKS["cola"].read(tmp_path, "dev")] == ["He sleep 1.", "He sleep 2."]


def test_sst_2_with_and_without_names(tmp_path):
    write(tmp_path / "train.tsv", "sentence\tlabel", "good film \t1")
    write(tmp_path / "dev.tsv", "good film\t1", "dull\t0")
    train, dev = (TASKS["sst2"].read(tmp_path, split) for split in ("train", "dev"))
    assert ([line.name for line in train], [line.name for line in dev]) == (["1"], ["1", "0"])


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("cola", ["gj04\t1\tA dog ."], "train.tsv:1: 3 columns where 4 are expected"),
        ("cola", ["gj04\t1\t\tA dog .", "gj04\t2\t\tA dog ."], "train.tsv:2: the label is '2', not one of 0, 1"),
        ("cola", ["gj04\t\t\tA dog ."], "train.tsv:1: the label is ''"),
        ("cola", ["gj04\t1\t\t "], "train.tsv:1: a sentence is empty"),
        ("cola", [], "has no examples"),
        ("sst2", ["sentence\tclass", "a\t1"], "column 'label' is missing"),
        ("mrpc", ["Quality\t#1 String\t#2 String", "1\tone sentence"], "train.tsv:2: 2 columns where 3 are expected"),
        ("mrpc", ["1\t2\t3\ta\tb"], "train.tsv:1: column '#1 String' is missing"),
        ("stsb", ["sentence1\tsentence2\tscore", "a\tb\tfive"], "train.tsv:2: the label is 'five', not a number"),
        (
            "mnli",
            [MNLI_HEAD, "1\t1\tn\tx\ta\tb\tl\tmaybe"],
            "train.tsv:2: the label is 'maybe', not one of contradiction",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, capsys, name, rows, message):
    for split in TASKS[name].splits:
        write(tmp_path / f"{split}.tsv", *rows)
    assert prepare(name, tmp_path, tmp_path / "out") == 1
    assert message in capsys.readouterr().err and not list(tmp_path.glob("out/*"))


def test_missing_files_and_tokenizers_are_named(tmp_path, raw, capsys):
    assert prepare("stsb", tmp_path, tmp_path / "out") == 1
    assert "has no train.tsv, or sts-train.csv" in capsys.readouterr().err
    library()
    assert prepare("cola", raw / "cola", tmp_path / "out", "--pieces-of", tmp_path / "none") == 1
    assert f"glue: {tmp_path / 'none'}: no tokenizer can be loaded" in capsys.readouterr().err


def test_a_pretrained_encoder_gets_its_pieces_and_a_dictionary_of_all(raw, tmp_path):
    words = sorted({word for line in lines(raw / "cola" / "train.tsv") for word in line.split("\t")[3].split()})
    known, unseen = words[:-1], ["zebra", "zoo"]
    encoder = save_albert(tmp_path / "albert", (*known, *unseen))
    assert prepare("cola", raw / "cola", tmp_path / "out", "--pieces-of", encoder) == 0
    written = {word for line in lines(tmp_path / "out" / "train.tsv") for word in line.split("\t")[0].split()}
    assert "<unk>" in written and written <= {*known, "<unk>"}
    dictionary = Dictionary.load(str(tmp_path / "out" / "dict.text.txt"))
    assert set(dictionary.symbols[dictionary.nspecial :]) == {*known, *unseen}


@pytest.mark.skipif(not (DATA / "cola").is_dir(), reason="the published data are not at hand")
@pytest.mark.parametrize(
    ("name", "sizes"),
    [("cola", (7696, 855, 1043)), ("sst2", (6228, 692, 872)), ("stsb", (5174, 575, 1500)), ("sick", (4050, 450, 4927))],
)
def test_the_published_files(name, sizes):
    splits = load(name, DATA / name)
    assert tuple(map(len, splits.values())) == sizes
