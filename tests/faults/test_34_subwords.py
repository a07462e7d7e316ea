"""Subword models that are missing, changed, of another folder or of another kind; and text that a model cannot read."""

from __future__ import annotations

import json
import re
import shutil
from argparse import Namespace
from pathlib import Path

import pytest
from fairseq import options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq import errors
from tree_fairseq.commands.check import check_folder
from tree_fairseq.tasks.unknown_tokens import count_typed

SENTENCES = ["the small boat sinks near the lighthouse .", "the lights of the house sink .", "a small house sinks ."]
LEARN = ("--learn-subwords", 12)


def text_in(folder: Path, lines=SENTENCES) -> Path:
    for split in ("train", "test"):
        for lang in ("en", "de"):
            write_lines(folder / f"{split}.{lang}", list(lines))
    return folder


def preprocess(text: Path, destination: Path, *flags: object, splits=("train", "test")) -> str:
    return run("preprocess", "-s", "en", "-t", "de", *prefixes(text, *splits), "--destdir", destination, *flags)


@pytest.fixture
def folder(tmp_path) -> Path:
    preprocess(text_in(tmp_path), tmp_path / "bin", *LEARN)
    return tmp_path / "bin"


def build(data: Path, *flags: object):
    """The task of a folder, with its tokeniser and model of subwords, as fairseq-interactive builds them."""
    parser = options.get_interactive_generation_parser()
    args = options.parse_args_and_arch(parser, [str(data), "--path", "none", *map(str, flags)])
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    return task, task.build_tokenizer(cfg.tokenizer), task.build_bpe(cfg.bpe)


def test_a_missing_model_is_named(folder):
    (folder / "subwords.codes").unlink()
    assert any("subwords.codes is missing" in problem for problem in check_folder(folder))
    with pytest.raises(errors.CorruptFileError, match="subwords.codes is missing.*Copy it"):
        build(folder)


def test_a_changed_model_is_named(folder):
    path = folder / "subwords.codes"
    path.write_text(path.read_text(encoding="utf-8") + "q x\n", encoding="utf-8")
    assert any("subwords.codes" in problem for problem in check_folder(folder))
    with pytest.raises(errors.DictionaryMismatchError, match="subwords.codes is not the dictionary or subword model"):
        build(folder)


def test_a_folder_is_not_extended_with_another_model(folder, tmp_path):
    other = text_in(tmp_path / "more", ["quick brown foxes jump over lazy dogs", "brown dogs jump over quick foxes"])
    preprocess(other, tmp_path / "other", *LEARN)
    dictionaries = ("--srcdict", folder / "dict.en.txt", "--tgtdict", folder / "dict.de.txt")
    before = (folder / "tree.json").read_bytes()
    with pytest.raises(errors.DataFolderError, match="subword model of de: .* ask for the same"):
        codes = ("--bpe-codes", tmp_path / "other" / "subwords.codes")
        preprocess(tmp_path, folder, *dictionaries, *codes, splits=("test",))
    assert (folder / "tree.json").read_bytes() == before


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--bpe", "subword_nmt"), "Give --bpe-codes FILE, or --learn-subwords N"),
        (("--bpe", "sentencepiece"), "Give --sentencepiece-model FILE, or --learn-subwords N"),
        (("--bpe-codes", "nowhere"), "nowhere cannot be read"),
        (("--bpe-codes", "CODES", "--sentencepiece-model", "CODES.model"), "name different kinds of models for en"),
        (("--bpe-codes", "CODES", "--bpe", "sentencepiece"), "name different kinds of models"),
        (("--apply-tokenizer",), "Give --tokenizer, such as moses"),
        ((*LEARN, "--tree-parser", "brackets"), "--learn-subwords reads lines of words"),
        ((*LEARN, "--tree-parser", "stanza", "--tree-tokenize", "stanza"), "--learn-subwords reads lines of words"),
        ((*LEARN, "--alignfile", "ALIGN"), "counts the tokens of the text as it is"),
        (("--sentencepiece-model", "CODES.model"), "cannot be read as a sentencepiece model"),
        (("--learn-subwords", 9, "--bpe", "sentencepiece"), "9 subwords cannot be learned from this text"),
    ],
)
def test_flags_that_do_not_fit_are_refused(tmp_path, flags, message):
    codes = write_lines(tmp_path / "codes", ["#version: 0.2", "t h", "th e</w>"])
    shutil.copy(codes, tmp_path / "codes.model")
    align = write_lines(tmp_path / "align", ["0-0"] * len(SENTENCES))
    given = [str(flag).replace("CODES", str(codes)).replace("ALIGN", str(align)) for flag in flags]
    with pytest.raises(Exception, match=message):
        preprocess(text_in(tmp_path), tmp_path / "bin", *given)
    assert not (tmp_path / "bin").exists()


@pytest.mark.parametrize(
    "line, flags, message",
    [
        (
            "the light@@ house sinks",
            LEARN,
            "3 of 3 lines have the marks of subword-nmt .* are split into subwords already",
        ),
        ("\u2581the \u2581light house", LEARN, "have the marks of SentencePiece .*, line 1 first"),
        ("the light@@ house", (*LEARN, "--bpe", "sentencepiece"), "have the marks of subword-nmt"),
    ],
)
def test_text_that_is_split_already_is_not_learned_from(tmp_path, line, flags, message):
    with pytest.raises(errors.InputError, match=message):
        preprocess(text_in(tmp_path, [line] * 3), tmp_path / "bin", *flags)
    assert not (tmp_path / "bin").exists()


def test_a_folder_of_before_names_a_model_elsewhere(tmp_path):
    """Earlier versions recorded only the place of the model, where a folder of a stranger may name any file."""
    trees = ["(S (DT the) (NN lighthouse))"] * 2
    for lang in ("en", "de"):
        write_lines(tmp_path / f"train.{lang}", trees if lang == "en" else ["der Leuchtturm"] * 2)
    codes = write_lines(tmp_path / "codes", ["#version: 0.2", "t h"])
    flags = ("--task", "tree_translation", "--tree-parser", "brackets", "--bpe-codes", f"{codes},")
    preprocess(tmp_path, tmp_path / "bin", *flags, splits=("train",))
    path = tmp_path / "bin" / "tree.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest.pop("text")
    del manifest["files"]["subwords.en.codes"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    task, tokenizer, bpe = build(tmp_path / "bin", "--task", "tree_translation")
    assert (tokenizer, bpe) == (None, None)
    with pytest.raises(errors.UntrustedFolderError, match="tree.json names the subword model .*codes.*copy it into"):
        task.get_interactive_tokens_and_lengths(trees, str)
    shutil.copy(codes, tmp_path / "bin")
    assert [len(line) for line in task.get_interactive_tokens_and_lengths(trees, str)[0]] == [12, 12]


# The warning about unknown tokens


def typed(caplog, known: list[str], *lines: str) -> list[str]:
    """The warnings about lines, of a task whose source dictionary has some words."""
    dictionary = Dictionary()
    for word in known:
        dictionary.add_symbol(word)
    task = Namespace(source_dictionary=dictionary)
    caplog.clear()
    for line in lines:
        count_typed(task, [line.split()])
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    "known, line, cause",
    [
        (
            ["light@@", "house", "the"],
            "the lighthouse",
            r"reads subwords \(@@\), .* --bpe subword_nmt --bpe-codes FILE",
        ),
        (["\u2581light", "house", "\u2581the"], "the lighthouse", "--bpe sentencepiece --sentencepiece-model FILE"),
        (["the", "light@@", "house"], "The Light@@ house", "trained on lower-cased text"),
        (["the", "man", "sleeps", "."], "the man, the man sleeps.", "add --tokenizer moses"),
        (["The", "Hague"], "the hague", "with its capital letters"),
        (["light@@", "house", "the"], "the (", "of another language or subject"),
        (["the", "man"], "der Mann schläft", "of another language or subject"),
    ],
)
def test_many_unknown_tokens_have_a_cause_and_a_way_out(caplog, known, line, cause):
    [warning] = typed(caplog, known, line, line)
    assert "are unknown to the model" in warning
    assert re.search(cause, warning), warning


def test_few_unknown_tokens_are_no_matter(caplog):
    words = [f"w{number}" for number in range(40)]
    assert typed(caplog, words, " ".join(words[:39]), "w39 Xanadu") == []
    assert len(typed(caplog, words, " ".join(words[:19]), "Xanadu Xanadu", "Xanadu")) == 1


def test_raw_words_typed_into_a_model_of_subwords_are_warned_of(tmp_path, caplog):
    """Stock fairseq's task and a folder that says nothing of its text."""
    preprocess(text_in(tmp_path, ["the light@@ house sinks", "the boat sinks"]), tmp_path / "bin")
    task, tokenizer, bpe = build(tmp_path / "bin")
    assert (tokenizer, bpe) == (None, None)
    count_typed(task, [["the", "lighthouse", "sinks"]])
    assert "1 of 3 tokens of the input (33 %) are unknown" in caplog.text and "--bpe-codes FILE" in caplog.text
