"""Text of every kind of folder is tokenised and split as asked for, and typed text in the same way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, read_lines, write_lines
from tests.end_to_end.commands import run
from tests.faults.test_34_subwords import build
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.text_record import TextRecord
from tree_fairseq.data_bin.token_files import load_dictionary, token_ids, token_words
from tree_fairseq.errors import MissingLibraryError
from tree_fairseq.parsing.pieces import learn_subwords
from tree_fairseq.preprocessing import text_files

SOURCE = [
    "the small boat sinks near the lighthouse .",
    "the lights of the house sink .",
    "a small house sinks slowly .",
    "the boats near the house are small .",
    "he 's near the lighthouse , slowly sinking .",
]
TARGET = [
    "das kleine Boot sinkt beim Leuchtturm .",
    "die Lichter des Hauses sinken .",
    "ein kleines Haus sinkt langsam .",
    "die Boote beim Haus sind klein .",
    "er ist beim Leuchtturm , langsam sinkend .",
]
PROGRAMS = ["( sinks boat )", "( sink ( lights house ) )", "( sinks house )", "( small boats )", "( near he )"]
TREES = [f"(2 {' '.join(f'(1 {word})' for word in line.split())})" for line in SOURCE]
BPE, PIECES = ("--learn-subwords", 30), ("--learn-subwords", 45, "--bpe", "sentencepiece")
PARSER = ("--tree-parser", "right-branching", "--tree-lang", "en")


def write_text(folder: Path) -> Path:
    """Writes every text: ``en`` and ``de``, programs ``lf``, examples ``tsv`` and ``pair.tsv``."""
    texts = {"en": SOURCE, "de": TARGET, "lf": PROGRAMS, "trees": TREES}
    texts["tsv"] = [f"{line}\t{number % 2}" for number, line in enumerate(SOURCE)]
    for split in ("train", "valid", "test"):
        for name, lines in texts.items():
            write_lines(folder / f"{split}.{name}", lines)
        pairs = [f"{line}\t{other}\t{number % 2}" for number, (line, other) in enumerate(zip(SOURCE, SOURCE[::-1]))]
        write_lines(folder / "pairs" / f"{split}.tsv", pairs)
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


def preprocess(text: Path, destination: Path, *flags: object, splits=("train", "valid", "test")) -> Path:
    run("preprocess", *prefixes(text, *splits), "--destdir", destination, *flags)
    assert check_folder(destination) == []
    return destination


def record_of(folder: Path) -> TextRecord:
    return Manifest.load(folder).section(TextRecord)


def stored(folder: Path, prefix: str, lang: str) -> list[list[int]]:
    return [ids.tolist() for ids in token_ids(folder / prefix, load_dictionary(folder, lang))]


KINDS = {
    "translation": (("-s", "en", "-t", "de"), ("-s", "en", "-t", "de"), "test.en-de.en"),
    "tree_translation": (("-s", "en", "-t", "de", *PARSER), (), "test.en-de.en"),
    "structural_translation": (("-s", "en", "-t", "lf", "--target-modality", "tree"), (), "test.en-lf.en"),
    "structural_translation of parses": (
        ("-s", "en", "-t", "lf", "--source-modality", "constituency", "--target-modality", "tree", *PARSER),
        (),
        "test.en-lf.en",
    ),
    "tree_insertion": (("-s", "en", "-t", "lf", "--trajectories", 1), (), "test.en-lf.en"),
    "tree_classification": (PARSER, (), "test.text-class.text"),
    "tree_sentence_classification": ((), (), "test.text-class.text"),
    "tree_sentence_classification of pairs": (("--input-format", "pair"), (), "test.text-class.text"),
}


@pytest.mark.parametrize("subwords", [BPE, PIECES], ids=["bpe", "sentencepiece"])
@pytest.mark.parametrize("name", KINDS)
def test_typed_text_has_the_tokens_of_the_folder(text, tmp_path, name, subwords):
    flags, later, prefix = KINDS[name]
    task_name = ("--task", name.split()[0])
    texts = text / "pairs" if "pairs" in name else text
    folder = preprocess(texts, tmp_path / "bin", *task_name, *flags, *subwords)
    [model] = folder.glob("subwords.*")
    (tmp_path / "moved").mkdir()
    folder = shutil.copytree(folder, tmp_path / "moved" / "bin")
    task, tokenizer, bpe = build(folder, *task_name, *later)
    assert tokenizer is None
    examples = [line.rpartition("\t")[0] for line in read_lines(texts / "test.tsv")]
    lines = examples if "text" in prefix else SOURCE
    tokens, _ = task.get_interactive_tokens_and_lengths(lines, bpe.encode)
    expected = stored(folder, prefix, "text" if "text" in prefix else "en")
    eos = task.source_dictionary.eos()
    assert [[index for index in line.tolist() if index != eos] for line in tokens] == [
        [index for index in line if index != eos] for line in expected
    ]
    is_split = [bpe.encode(line) for line in SOURCE]
    assert is_split != SOURCE
    if name in ("translation", "tree_translation"):
        words = token_words(folder / "test.en-de.de", load_dictionary(folder, "de"))
        assert [bpe.decode(" ".join(line)) for line in words] == TARGET
        assert model.name in ("subwords.codes", "subwords.model")
    else:
        # Trees and classes are not text.
        assert [bpe.decode(line) for line in (*PROGRAMS, "@@ x", "\u2581x")] == [*PROGRAMS, "@@ x", "\u2581x"]


def test_ready_made_trees_are_split_by_a_given_model(text, tmp_path):
    codes = tmp_path / "codes"
    learn_subwords([text / "train.en"], "bpe", 20, codes)
    brackets = ("-s", "trees", "-t", "de", "--tree-parser", "brackets", "--bpe-codes", codes)
    folder = preprocess(text, tmp_path / "bin", "--task", "tree_translation", *brackets)
    codes.unlink()
    task, _, bpe = build(folder, "--task", "tree_translation")
    [*lines], _ = task.get_interactive_tokens_and_lengths(TREES, bpe.encode)
    ends = [task.source_dictionary.eos()]
    expected = stored(folder, "test.trees-de.trees", "trees")
    assert [line.tolist() for line in lines] == [[*line, *ends] for line in expected]
    assert any(
        "@@" in word for line in token_words(folder / "test.trees-de.trees", task.source_dictionary) for word in line
    )


def test_lines_that_are_split_already_stay_as_they_are(text, tmp_path):
    """The folder is byte for byte that of stock fairseq on the same pieces, beside tree.json and the model."""
    codes, pieces = tmp_path / "codes", tmp_path / "pieces"
    learn_subwords([text / "train.en", text / "train.de"], "bpe", 30, codes)
    from subword_nmt.apply_bpe import BPE as StockBpe

    with open(codes, encoding="utf-8") as file:
        stock = StockBpe(file)
    for split in ("train", "valid", "test"):
        for lang in ("en", "de"):
            write_lines(pieces / f"{split}.{lang}", list(map(stock.process_line, read_lines(text / f"{split}.{lang}"))))
    sides = ("-s", "en", "-t", "de")
    run("preprocess", *prefixes(pieces, "train", "valid", "test"), "--destdir", tmp_path / "stock", *sides)
    expected = {name: content for name, content in folder_bytes(tmp_path / "stock").items() if "log" not in name}
    for name, source in (("split", pieces), ("whole", text)):
        found = folder_bytes(preprocess(source, tmp_path / name, *sides, "--bpe-codes", codes))
        assert found.pop("subwords.codes") == codes.read_bytes()
        assert {name: content for name, content in found.items() if name in expected} == expected
    learned = folder_bytes(preprocess(text, tmp_path / "learned", *sides, *BPE))
    assert learned["subwords.codes"] == codes.read_bytes()


def test_each_side_has_its_own_model_if_asked_for(text, tmp_path):
    sides = ("-s", "en", "-t", "de")
    en, de = tmp_path / "en", tmp_path / "de"
    for codes, lang in ((en, "en"), (de, "de")):
        learn_subwords([text / f"train.{lang}"], "bpe", 10, codes)
    given = preprocess(text, tmp_path / "given", *sides, "--bpe-codes", f"{en},{de}")
    assert (given / "subwords.en.codes").read_bytes() == en.read_bytes()
    assert (given / "subwords.de.codes").read_bytes() == de.read_bytes()
    only_source = preprocess(text, tmp_path / "source", *sides, "--bpe-codes", f"{en},")
    assert set(record_of(only_source).sides) == {"en"}
    assert list(token_words(only_source / "test.en-de.de", load_dictionary(only_source, "de")))[0] == TARGET[0].split()


@pytest.mark.parametrize("subwords", [BPE, PIECES], ids=["bpe", "sentencepiece"])
def test_the_same_text_always_gives_the_same_model(text, tmp_path, subwords):
    """Also with other numbers of workers."""
    folders = [
        preprocess(text, tmp_path / str(workers), "-s", "en", "-t", "de", *subwords, "--workers", workers)
        for workers in (1, 3)
    ]
    one, other = (
        {name: text for name, text in folder_bytes(folder).items() if "log" not in name} for folder in folders
    )
    assert one == other
    [path] = folders[0].glob("subwords.*")
    assert record_of(folders[0]).sides["en"].sha256 == Manifest.load(folders[0]).files[path.name].sha256


def test_only_the_training_text_is_learned_from(text, tmp_path):
    other = tmp_path / "text"
    shutil.copytree(text, other)
    for lang in ("en", "de"):
        write_lines(other / f"test.{lang}", ["zyx zyx zyx zyx zyx"] * 50)
    sides = ("-s", "en", "-t", "de")
    folders = [preprocess(source, tmp_path / name, *sides, *BPE) for source, name in ((text, "one"), (other, "two"))]
    assert len({(folder / "subwords.codes").read_bytes() for folder in folders}) == 1


def test_raw_text_is_tokenised_first_and_output_becomes_raw_again(tmp_path):
    raw = {"en": ["He's near the house, isn't he?"] * 3, "de": ["Er ist beim „Haus“, nicht wahr?"] * 3}
    for lang, lines in raw.items():
        write_lines(tmp_path / f"train.{lang}", lines)
    flags = ("--task", "tree_translation", "-s", "en", "-t", "de", *PARSER, "--tokenizer", "moses", "--apply-tokenizer")
    folder = preprocess(tmp_path, tmp_path / "bin", *flags, "--learn-subwords", 5, splits=("train",))
    settings = {"moses_no_dash_splits": False, "moses_no_escape": False, "tokenizer": "moses"}
    sides = record_of(folder).sides
    assert sides["de"].tokenizer == {**settings, "source_lang": "de", "target_lang": "de"}
    assert sides["en"].tokenizer == {**settings, "source_lang": "en", "target_lang": "en"}
    _, tokenizer, bpe = build(folder, "--task", "tree_translation")
    [written, *_] = map(" ".join, token_words(folder / "train.en-de.en", load_dictionary(folder, "en")))
    assert "&apos;" in written.replace("@@ ", "")
    assert bpe.encode(tokenizer.encode(raw["en"][0])) == written
    assert bpe.encode("@@ \u2581x").replace("@@ ", "") == "@@ \u2581x" != bpe.encode("@@ \u2581x")
    [target, *_] = map(" ".join, token_words(folder / "train.en-de.de", load_dictionary(folder, "de")))
    assert tokenizer.decode(bpe.decode(target)) == raw["de"][0]


def test_a_tokeniser_without_its_data_is_named_before_anything_is_written(text, tmp_path, monkeypatch):
    def fail(line: str) -> None:
        raise LookupError("Resource 'punkt_tab' not found.")

    monkeypatch.setattr(pytest.importorskip("nltk"), "word_tokenize", fail)
    flags = ("-s", "en", "-t", "de", "--tokenizer", "nltk", "--apply-tokenizer")
    with pytest.raises(MissingLibraryError, match="--tokenizer nltk needs data .* nltk.downloader punkt"):
        preprocess(text, tmp_path / "bin", *flags)
    assert not list(tmp_path.glob("bin*"))


def test_a_split_that_is_added_is_prepared_like_the_folder(text, tmp_path):
    """Without flags, and also into a folder of its own that uses the dictionaries."""
    sides = ("-s", "en", "-t", "de")
    whole = preprocess(text, tmp_path / "whole", *sides, *BPE)
    part = preprocess(text, tmp_path / "part", *sides, *BPE, splits=("train", "valid"))
    dictionaries = ("--srcdict", part / "dict.en.txt", "--tgtdict", part / "dict.de.txt")
    own = preprocess(text, tmp_path / "own", *sides, *dictionaries, splits=("test",))
    preprocess(text, part, *sides, *dictionaries, splits=("test",))
    for name in ("test.en-de.en.bin", "test.en-de.de.bin", "subwords.codes"):
        assert folder_bytes(part)[name] == folder_bytes(own)[name] == folder_bytes(whole)[name]
    assert set(record_of(part).splits) == {"train", "valid", "test"}
    assert record_of(own).sides == record_of(whole).sides


def test_a_killed_run_keeps_the_model_that_it_learned(text, tmp_path, monkeypatch):
    flags = ("-s", "en", "-t", "de", *BPE)

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(text_files.TextPlan, "enter", stop)
        with pytest.raises(KeyboardInterrupt):
            preprocess(text, tmp_path / "bin", *flags)
    assert not (tmp_path / "bin").exists()
    monkeypatch.setattr(text_files, "learn_subwords", None)
    folder = preprocess(text, tmp_path / "bin", *flags)
    assert (folder / "subwords.codes").exists()


def test_folders_without_the_flags_are_as_before(text, tmp_path):
    folder = preprocess(text, tmp_path / "bin", "--task", "tree_translation", "-s", "en", "-t", "de", *PARSER)
    assert "text" not in json.loads((folder / "tree.json").read_text(encoding="utf-8"))
    assert not list(folder.glob("subwords*"))
    _, tokenizer, bpe = build(folder, "--task", "tree_translation")
    assert (tokenizer, bpe) == (None, None)
    assert [" ".join(line) for line in token_words(folder / "test.en-de.en", load_dictionary(folder, "en"))] == SOURCE
