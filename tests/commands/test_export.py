"""Exported trees are those that went in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.data_bin.corpora import prefixes, read_lines, run_preprocess, write_corpus
from tests.fork_server import programs
from tree_fairseq.commands.export import main
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A corpus and its folder, whose dictionary has not all words."""
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"), train=40, valid=8)
    folder = tmp_path_factory.mktemp("work") / "bin"
    run_preprocess(
        *prefixes(corpus / "trees", "train", "valid"), "--destdir", folder, "--nwordssrc", 12, "--padding-factor", 1,
        "--tree-parser", "brackets", "--tree-sides", "source,target",
    )  # fmt: skip
    return corpus, folder


@pytest.mark.parametrize("split", ["train", "valid"])
def test_words_are_exact_but_for_unknown_ones(exported, split):
    corpus, folder = exported
    known = {line.split()[0] for line in read_lines(folder / "dict.en.txt")}
    expected = []
    for line in read_lines(corpus / f"trees/{split}.en"):
        forest = read_forest(line)
        words = iter([word if word in known else "<unk>" for word in forest_leaves(forest)])
        expected.append(tuple(tree.map_leaves([next(words) for _ in tree.leaves()]) for tree in forest))
    assert list(export_forests(folder, "en", split)) == expected
    assert any("<unk>" in forest_leaves(forest) for forest in expected)
    # All words of the target are in its dictionary.
    assert [write_forest(forest) for forest in export_forests(folder, "de", split)] == read_lines(
        corpus / f"trees/{split}.de"
    )


def test_the_command(exported, tmp_path, capsys, caplog):
    corpus, folder = exported
    assert main([str(folder), "--split", "valid"]) == 1
    assert "--side" in caplog.text
    assert main([str(folder), "--split", "valid", "--side", "target", "--output", str(tmp_path / "out")]) == 0
    assert read_lines(tmp_path / "out") == read_lines(corpus / "trees/valid.de")
    assert main([str(folder), "--split", "valid", "--side", "target"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out").read_text(encoding="utf-8")
    assert main([str(folder), "--split", "test", "--side", "target"]) == 1
    assert "not for test" in caplog.text
    assert main([str(tmp_path)]) == 1


def test_a_file_gets_its_name_when_it_is_complete(exported, tmp_path, monkeypatch):
    _, folder = exported

    def failing(*arguments):
        yield from list(export_forests(*arguments))[:3]
        raise CorruptFileError("torn")

    monkeypatch.setattr("tree_fairseq.data_bin.kinds.export_forests", failing)
    assert main([str(folder), "--side", "source", "--output", str(tmp_path / "out")]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough(exported):
    _, folder = exported
    command = [programs() / "python", "-m", "tree_fairseq", "export", str(folder), "--side", "source"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 0
