"""``fairseq-preprocess`` with trees: stock files are stock, stock flags keep their meaning, trees lie beside."""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections import Counter
from pathlib import Path

import pytest
from fairseq import options
from fairseq.data import Dictionary
from fairseq_cli import preprocess

import tree_fairseq
from tests.data_bin.corpora import (
    folder_bytes,
    forests_with_words,
    prefixes,
    read_lines,
    run_preprocess,
    write_corpus,
    write_lines,
)
from tests.end_to_end.commands import run_in_process
from tests.fork_server import programs
from tests.parsing.fake_parsers import LOADS_VARIABLE, LOG_VARIABLE, noted
from tree_fairseq import errors
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.preprocessing.run import renaming_in_log
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

PACKAGE = Path(tree_fairseq.__file__).parent
TREES = ("--tree-parser", "brackets")
SPLITS = ("train", "valid", "valid1", "test", "test1")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), train=60, valid=9, valid1=5, test=6, test1=3)


def without_trees(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if "tree" not in name and "dict.label" not in name}


def both_ways(
    corpus: Path,
    folder: Path,
    *flags: object,
    without: tuple[str, ...] = (),
    trees: Path | None = None,
    ours: tuple[str, ...] = (),
) -> tuple[Path, Path]:
    splits = [split for split in SPLITS if split not in without]
    run_preprocess(*prefixes(corpus / "leaves", *splits), "--destdir", folder / "stock", *flags)
    run_preprocess(*prefixes(trees or corpus / "mixed", *splits), "--destdir", folder / "ours", *flags, *TREES, *ours)
    return folder / "stock", folder / "ours"


def exported(data: Path, lang: str, split: str, corpus: Path) -> list[str]:
    forests = forests_with_words(data, lang, split, corpus / f"leaves/{split}.{lang}")
    return [write_forest(forest) for forest in forests]


def test_what_the_wrapping_relies_on_is_there():
    # The parser is built by a function looked up in its module; so is main, after the arguments were parsed.
    assert "add_preprocess_args" in options.get_preprocessing_parser.__code__.co_names
    assert "main" in preprocess.cli_main.__code__.co_names
    names = "source_lang target_lang trainpref validpref testpref destdir srcdict tgtdict joined_dictionary only_source"
    names += " dict_only dataset_impl workers align_suffix alignfile"
    assert set(names.split()) <= set(vars(options.get_preprocessing_parser().parse_args([])))


def test_without_a_parser_the_command_is_the_stock_one(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", tmp_path / "bin")
    assert not [path.name for path in (tmp_path / "bin").iterdir() if "tree" in path.name or "label" in path.name]
    assert any(symbol.startswith("(") for symbol in Dictionary.load(str(tmp_path / "bin/dict.en.txt")).symbols)


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--joined-dictionary",),
        ("--only-source",),
        ("--thresholdsrc", 3, "--thresholdtgt", 2, "--padding-factor", 1),
        ("--nwordssrc", 9, "--nwordstgt", 12),
        ("--dataset-impl", "raw"),
        ("--dict-only",),
    ],
    ids=lambda flags: " ".join(map(str, flags)) or "plain",
)
def test_token_files_are_those_of_stock_fairseq(corpus, tmp_path, flags):
    stock, ours = both_ways(corpus, tmp_path, *flags)
    files = folder_bytes(ours)
    assert without_trees(files) == folder_bytes(stock)
    assert "dict.label.en.txt" in files and "tree.json" in files
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("stock", "ours")] == []
    assert check_folder(ours) == []
    written = [] if "--dict-only" in flags else list(SPLITS)
    assert list(Manifest.load(ours).side("en").splits) == written
    for split in written:
        assert exported(ours, "en", split, corpus) == read_lines(corpus / f"trees/{split}.en")


@pytest.mark.parametrize("sides", ["source", "target", "source,target"])
def test_trees_of_either_side_or_both(corpus, tmp_path, sides):
    folder = tmp_path / "text"
    folder.mkdir()
    for side, lang in (("source", "en"), ("target", "de")):
        for split in SPLITS:
            os.link(corpus / ("trees" if side in sides else "leaves") / f"{split}.{lang}", folder / f"{split}.{lang}")
    stock, ours = both_ways(corpus, tmp_path, "--joined-dictionary", trees=folder, ours=("--tree-sides", sides))
    assert without_trees(folder_bytes(ours)) == folder_bytes(stock)
    manifest = Manifest.load(ours)
    assert [manifest.sides[lang].side for lang in manifest.sides] == sides.split(",")
    assert check_folder(ours) == []
    for lang in manifest.sides:
        assert exported(ours, lang, "valid", corpus) == read_lines(corpus / f"trees/valid.{lang}")


def test_each_side_may_have_its_own_parser(corpus, tmp_path):
    text, both = prefixes(corpus / "mixed", "train", "valid"), ("--tree-sides", "source,target", "--tree-lang", ",nl")
    run_preprocess(*text, "--destdir", tmp_path / "bin", "--tree-parser", "brackets,balanced", *both)
    sides = Manifest.load(tmp_path / "bin").sides
    assert {lang: (side.options.name, side.options.lang) for lang, side in sides.items()} == {
        "en": ("brackets", "en"),
        "de": ("balanced", "nl"),
    }
    with pytest.raises(errors.InputError, match="--tree-parser"):
        run_preprocess(*text, "--destdir", tmp_path / "no", "--tree-parser", "a,b,c", *both)


def test_alignments_are_those_of_stock_fairseq(corpus, tmp_path):
    for split in ("train", "valid"):
        pairs = []
        for source, target in zip(read_lines(corpus / f"leaves/{split}.en"), read_lines(corpus / f"leaves/{split}.de")):
            pairs.append("0-0" if source and target else "")
        for kind in ("leaves", "mixed"):
            write_lines(corpus / kind / f"{split}.align", pairs)
    flags = ["--align-suffix", "align", "--alignfile", corpus / "mixed/train.align"]
    stock, ours = both_ways(corpus, tmp_path, *flags, without=("valid1", "test", "test1"))
    files = folder_bytes(ours)
    assert "train.align.en-de.idx" in files and "valid.align.en-de.idx" in files and "alignment.en-de.txt" in files
    assert without_trees(files) == folder_bytes(stock)
    # Stock fairseq finds no alignments beside one of several prefixes.
    (tmp_path / "several").mkdir()
    stock, ours = both_ways(corpus, tmp_path / "several", *flags[:2], without=("test", "test1"))
    assert "valid.align.en-de.idx" not in folder_bytes(ours)
    assert without_trees(folder_bytes(ours)) == folder_bytes(stock)


def test_dictionaries_first_and_splits_later(corpus, tmp_path, caplog):
    """``--dict-only``, then the splits one after the other into the same folder, give what one command gives."""
    caplog.set_level(logging.INFO)
    run_preprocess(*prefixes(corpus / "mixed", *SPLITS), "--destdir", tmp_path / "once", *TREES)
    destination = tmp_path / "twice"
    run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", destination, "--dict-only", *TREES)
    given = ["--srcdict", destination / "dict.en.txt", "--tgtdict", destination / "dict.de.txt"]
    given += ["--destdir", destination, *TREES]
    run_preprocess(*prefixes(corpus / "mixed", "train", "valid", "valid1"), *given)
    run_preprocess(*prefixes(corpus / "mixed", "test", "test1"), *given)
    once, twice = folder_bytes(tmp_path / "once"), folder_bytes(destination)
    first, second = json.loads(once.pop("tree.json")), json.loads(twice.pop("tree.json"))
    assert once == twice and first == second
    assert check_folder(destination) == []
    assert (destination / "preprocess.log").read_text().count("Namespace(") == 3


def test_a_folder_with_other_dictionaries_or_parses_is_not_added_to(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "mixed", "train", "valid"), "--destdir", tmp_path / "bin", *TREES)
    other = write_corpus(tmp_path / "other", seed=1, train=5, test=4)
    run_preprocess(*prefixes(other / "mixed", "train"), "--destdir", tmp_path / "other-bin", *TREES)
    before = folder_bytes(tmp_path / "bin")
    test = [*prefixes(other / "mixed", "test"), "--destdir", tmp_path / "bin"]
    own = ["--srcdict", tmp_path / "bin/dict.en.txt", "--tgtdict", tmp_path / "bin/dict.de.txt"]
    foreign = ["--srcdict", tmp_path / "other-bin/dict.en.txt", "--tgtdict", tmp_path / "other-bin/dict.de.txt"]
    with pytest.raises(errors.DictionaryMismatchError, match="dict.en.txt"):
        run_preprocess(*test, *foreign, *TREES)
    with pytest.raises(
        errors.DataFolderError, match="trees of en for train, valid in this folder were made differently"
    ):
        run_preprocess(*test, *own, "--tree-parser", "balanced")
    os.link(other / "mixed/test.de", other / "mixed/test.fr")
    with pytest.raises(errors.DataFolderError, match="en-de"):
        run_preprocess(*test, *own, "-t", "fr", *TREES)
    assert folder_bytes(tmp_path / "bin") == before
    run_preprocess(*test, *own, *TREES)
    assert check_folder(tmp_path / "bin") == []


def test_the_label_dictionary_comes_along_with_the_token_dictionary(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", tmp_path / "first", *TREES)
    given = ["--srcdict", tmp_path / "first/dict.en.txt", "--tgtdict", tmp_path / "first/dict.de.txt"]
    write_lines(tmp_path / "train.en", ["(NEW (NN the) (NN man))"])
    write_lines(tmp_path / "train.de", ["der Mann"])
    run_preprocess("--trainpref", tmp_path / "train", *given, "--destdir", tmp_path / "second", *TREES)
    for name in ("dict.label.en.txt", "dict.en.txt"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert Manifest.load(tmp_path / "second").split("en", "train").unknown_labels == 1
    assert [write_forest(forest) for forest in export_forests(tmp_path / "second", "en", "train")] == [
        "(<unk> (NN the) (NN man))"
    ]
    # A dictionary of stock fairseq's brings none: then the labels are train's.
    (tmp_path / "first/dict.label.en.txt").unlink()
    run_preprocess("--trainpref", tmp_path / "train", *given, "--destdir", tmp_path / "third", *TREES)
    assert "NEW" in Dictionary.load(str(tmp_path / "third/dict.label.en.txt"))
    with pytest.raises(errors.InputError, match="labels of en are not known"):
        run_preprocess("--testpref", tmp_path / "train", *given, "--destdir", tmp_path / "fourth", *TREES)


def test_a_finished_destination_is_refused_before_anything_is_read(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", tmp_path / "bin", *TREES)
    before = folder_bytes(tmp_path)
    for flags in (
        (),
        ("--srcdict", tmp_path / "bin/dict.en.txt"),
        ("--tgtdict", tmp_path / "bin/dict.de.txt"),
        ("--joined-dictionary",),
    ):
        with pytest.raises(FileExistsError) as stock:
            run_preprocess(*prefixes(corpus / "leaves", "train"), "--destdir", tmp_path / "bin", *flags)
        with pytest.raises(errors.DestinationExistsError) as ours:
            run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", tmp_path / "bin", *flags, *TREES)
        assert str(stock.value) in str(ours.value)
    assert folder_bytes(tmp_path) == before


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--dataset-impl", "huffman"), "--dataset-impl huffman"),
        (("--dataset-impl", "fasta"), "--dataset-impl fasta"),
        (("--only-source", "--tree-sides", "target"), "--only-source"),
        (("--trainpref", ""), "--trainpref"),
        (("-t", ""), "--target-lang"),
        (("--trainpref", "nowhere/train"), "nowhere/train.en"),
    ],
)
def test_arguments_that_do_not_go_together(corpus, tmp_path, flags, message):
    with pytest.raises(errors.InputError, match=message):
        run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", tmp_path / "bin", *TREES, *flags)
    assert list(tmp_path.iterdir()) == []


def test_malformed_trees_stop_the_command_or_become_flat(corpus, tmp_path):
    lines = read_lines(corpus / "trees/train.en")
    lines[6] = "(S (NN the) (NN man)"
    write_lines(tmp_path / "train.en", lines)
    os.link(corpus / "leaves/train.de", tmp_path / "train.de")
    command = ["--trainpref", tmp_path / "train", "--destdir", tmp_path / "bin", *TREES]
    with pytest.raises(errors.UnclosedTreeError, match="train.en:7:"):
        run_preprocess(*command)
    assert not (tmp_path / "bin").exists()
    run_preprocess(*command, "--on-parse-error", "flat")
    assert Manifest.load(tmp_path / "bin").split("en", "train").failed == [7]
    assert list(export_forests(tmp_path / "bin", "en", "train"))[6] == read_forest("(FRAG (XX the) (XX man))")
    lines[7] = lines[6]
    write_lines(tmp_path / "train.en", lines)
    with pytest.raises(errors.TooManyParseFailuresError, match="Lines: 7, 8$"):
        run_preprocess(*command[:2], "--destdir", tmp_path / "other", *TREES, "--on-parse-error", "flat")


@pytest.mark.parametrize("parser", ["brackets", "right-branching"])
def test_parsers_that_cost_little_show_their_progress_too(tmp_path, capsys, monkeypatch, parser):
    monkeypatch.setattr("tree_fairseq.support.progress.SECONDS_BETWEEN_LINES", 0)
    lines = ["(S (NN a)) (S (NN b))", "", "(S (NN c))"] if parser == "brackets" else ["a b", "", "c"]
    write_lines(tmp_path / "train.en", lines)
    write_lines(tmp_path / "train.de", ["x", "y", "z"])
    run_preprocess(*prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin", "--tree-parser", parser)
    assert "train.en: 3 of 3 lines, " in capsys.readouterr().err


def test_windows_line_ends_change_nothing(corpus, tmp_path):
    for split in ("train", "valid"):
        for lang in ("en", "de"):
            content = (corpus / f"mixed/{split}.{lang}").read_bytes()
            (tmp_path / f"{split}.{lang}").write_bytes(content.replace(b"\n", b"\r\n"))
    run_preprocess(*prefixes(tmp_path, "train", "valid"), "--destdir", tmp_path / "windows", *TREES)
    run_preprocess(*prefixes(corpus / "mixed", "train", "valid"), "--destdir", tmp_path / "unix", *TREES)
    assert folder_bytes(tmp_path / "windows") == folder_bytes(tmp_path / "unix")


def test_plain_text_is_parsed_and_parses_are_kept(corpus, tmp_path, monkeypatch):
    log = tmp_path / "parsed.log"
    monkeypatch.setenv(LOG_VARIABLE, str(log))
    command = [
        "--tree-parser",
        "toy",
        "--tree-subwords",
        "bpe",
        "--no-progress-bar",
        "--parse-cache",
        tmp_path / "cache",
    ]
    run_preprocess(*prefixes(corpus / "leaves", "train", "valid"), "--destdir", tmp_path / "one", *command)
    parsed = noted(log)
    assert parsed and len(parsed) == len(set(parsed))
    assert check_folder(tmp_path / "one") == []
    forests = [*forests_with_words(tmp_path / "one", "en", "train", corpus / "leaves/train.en")]
    assert [" ".join(forest_leaves(forest)) for forest in forests] == read_lines(corpus / "leaves/train.en")
    labels = Dictionary.load(str(tmp_path / "one/dict.label.en.txt"))
    assert {"S", "NP", "VP", "T9", "FRAG", "XX", "T9_sub"} <= set(labels.symbols)
    # From the cache no sentence is parsed twice, and the files are the same.
    run_preprocess(*prefixes(corpus / "leaves", "train", "valid"), "--destdir", tmp_path / "two", *command)
    assert noted(log) == parsed
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def test_what_precedes_the_text_is_dropped_or_named(tmp_path, caplog):
    for lang in ("en", "de"):
        (tmp_path / f"train.{lang}").write_bytes(b"\xef\xbb\xbfa b\nc\n")
        (tmp_path / f"valid.{lang}").write_bytes(b'<doc docid="1">\na\n')
    run_preprocess(*prefixes(tmp_path, "train", "valid"), "--destdir", tmp_path / "bin", "--tree-parser", "flat")
    for lang in ("en", "de"):
        words = token_words(tmp_path / f"bin/train.en-de.{lang}", load_dictionary(tmp_path / "bin", lang))
        assert list(words) == [["a", "b"], ["c"]]
    assert f"{tmp_path}/valid.de:1: a line of markup, which becomes data" in caplog.text


def test_a_stopped_command_parses_what_is_missing_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr("tree_fairseq.parsing.corpus._SMALLEST", 100)
    lines = [f"{'NONE ' * (number % 7 == 0)}w{number} is a {'very ' * (number % 3)}long line" for number in range(40)]
    write_lines(tmp_path / "train.en", lines)
    write_lines(tmp_path / "train.de", lines)
    command = [*prefixes(tmp_path, "train"), "--tree-parser", "faulty", "--max-parse-failures", 10]
    run_preprocess(*command, "--destdir", tmp_path / "unbroken")
    failed = Manifest.load(tmp_path / "unbroken").split("en", "train").failed
    assert failed == [number + 1 for number in range(0, 40, 7)]
    forests = forests_with_words(tmp_path / "unbroken", "en", "train", tmp_path / "train.en")
    assert [" ".join(tree.leaves()) for (tree,) in forests] == lines

    monkeypatch.setenv(LOG_VARIABLE, str(tmp_path / "parsed.log"))

    def stop(store, ids):
        raise RuntimeError("stopped")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="stopped"):
        patch.setattr("tree_fairseq.data_bin.tree_store.relabel", stop)
        run_preprocess(*command, "--destdir", tmp_path / "bin", "--workers", 2)
    parsed = noted(tmp_path / "parsed.log")
    run_preprocess(*command, "--destdir", tmp_path / "bin")
    assert noted(tmp_path / "parsed.log") == parsed
    assert folder_bytes(tmp_path / "bin") == folder_bytes(tmp_path / "unbroken")
    assert not list((tmp_path / "bin").rglob("*-of-*"))


def test_models_are_loaded_once_by_each_worker_for_all_splits_of_a_side(tmp_path, monkeypatch):
    monkeypatch.setattr("tree_fairseq.parsing.corpus._SMALLEST", 100)
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    corpus = write_corpus(tmp_path / "corpus", train=60, valid=30, test=30)
    command = ["--tree-parser", "loading", "--tree-sides", "source,target", "--tree-batch-size", 3, "--workers", 2]
    run_preprocess(*prefixes(corpus / "leaves", "train", "valid", "test"), "--destdir", tmp_path / "bin", *command)
    assert Counter(line.split()[0] for line in noted(tmp_path / "loads")) == {"en": 2, "de": 2}
    assert check_folder(tmp_path / "bin") == []


@pytest.mark.parametrize("command", [("python", "-m", "fairseq_cli.preprocess"), ("fairseq-preprocess",)])
def test_as_a_command(corpus, tmp_path, command):
    text = prefixes(corpus / "mixed", "train", "valid")
    flags = ["--user-dir", PACKAGE, "--task", "translation", "-s", "en", "-t", "de", "--destdir", tmp_path / "bin"]
    result = run_in_process([programs() / command[0], *command[1:], *flags, *TREES, *text], cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    run_preprocess(*text, "--destdir", tmp_path / "here", *TREES)
    assert folder_bytes(tmp_path / "bin") == folder_bytes(tmp_path / "here")


def test_importing_the_plugin_leaves_logging_alone():
    program = (
        "import logging, fairseq; before = list(logging.getLogger().handlers), logging.getLogger().level\n"
        "import tree_fairseq\n"
        "assert (list(logging.getLogger().handlers), logging.getLogger().level) == before, logging.getLogger().handlers"
    )
    result = run_in_process([programs() / "python", "-c", program], cwd=PACKAGE.parent)
    assert result.returncode == 0, result.stdout


def test_names_of_files_that_do_not_stay(caplog):
    logger, arguments = logging.getLogger("fairseq_cli.preprocess"), argparse.Namespace(trainpref="text/train")
    names = {"/staging/leaves/train.en": "text/train.en", "/staging/output": "data-bin"}
    with caplog.at_level(logging.INFO, logger="fairseq_cli.preprocess"):
        with renaming_in_log(names, arguments):
            logger.info(argparse.Namespace(trainpref="/staging/leaves/train"))
            logger.info("[en] /staging/leaves/train.en: 3 sents")
            logger.info("Wrote preprocessed data to /staging/output")
        logger.info("/staging/output")
    assert [record.getMessage() for record in caplog.records] == [
        "Namespace(trainpref='text/train')",
        "[en] text/train.en: 3 sents",
        "Wrote preprocessed data to data-bin",
        "/staging/output",
    ]
