"""Models with other dictionaries of labels or words have nothing to say to one another."""

from __future__ import annotations

import multiprocessing
import shutil
import socket
from pathlib import Path

import pytest
import torch

from tests.data_bin.corpora import write_lines
from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.fixtures import TASK, Training, preprocess, train
from tests.end_to_end.tiny_corpus import make_pairs, write_pairs
from tree_fairseq.commands import average, check
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CheckpointError, DictionaryMismatchError
from tree_fairseq.repairs.writing import hold_folder


@pytest.fixture(scope="module")
def other_labels(tmp_path_factory) -> Training:
    """As many labels as the common model has, one of them another: no shape tells."""
    folder = tmp_path_factory.mktemp("other")
    for seed, (split, size) in enumerate({"train": 160, "valid": 16, "test": 16}.items()):
        pairs = make_pairs(size, seed)
        write_pairs(folder / split, [pair._replace(tree=pair.tree.replace("(NP ", "(NOUNS ")) for pair in pairs])
    preprocess(folder, folder / "data-bin")
    return train(folder / "data-bin", folder / "checkpoints", "--max-update", 1)


def generate(data: Path, *paths: Path) -> str:
    arguments = ("--path", ":".join(map(str, paths)), "--cpu", "--beam", 2, "--max-len-b", 8, "--num-workers", 0)
    return run("generate", data, *TASK, *arguments)


def test_an_ensemble_is_refused(trained, other_labels):
    shapes = [torch.load(training.best, weights_only=True)["model"] for training in (trained, other_labels)]
    assert shapes[0]["encoder.embed_labels.weight"].shape == shapes[1]["encoder.embed_labels.weight"].shape
    for data in (trained.data, other_labels.data):
        with pytest.raises(DictionaryMismatchError, match="other labels"):
            generate(data, trained.best, other_labels.best)


def test_a_model_on_another_folder_is_refused(trained, other_labels):
    with pytest.raises(DictionaryMismatchError, match=str(other_labels.data)):
        generate(other_labels.data, trained.best)


def test_a_stock_model_reads_no_labels(trained, stock_trained, other_labels):
    assert len(hypotheses(generate(other_labels.data, stock_trained.best, other_labels.best))) == 16


def test_other_parses_of_the_same_text_are_named(trained, tmp_path, caplog):
    """The labels are the same, and so are all shapes."""
    folder = Path(shutil.copytree(trained.data, tmp_path / "data"))
    manifest = Manifest.load(folder)
    manifest.sides["en"].identity["parser"] = {"name": "another"}
    manifest.save(folder)
    for action in (
        lambda: generate(folder, trained.best),
        lambda: train(folder, tmp_path, "--max-update", 1, "--restore-file", trained.best, "--no-save"),
    ):
        caplog.clear()
        action()
        assert "other parses than those of" in caplog.text and "not 'another'" in caplog.text
        assert "'lines'" not in caplog.text  # which are the same
    caplog.clear()
    generate(trained.data, trained.best)
    assert "other parses" not in caplog.text


def test_two_trainings_do_not_share_a_folder(trained, tmp_path):
    """The message has the other process and its machine; its end frees the folder."""
    holding, done = (multiprocessing.get_context("fork").Event() for _ in range(2))

    def hold() -> None:
        hold_folder(str(tmp_path))
        holding.set()
        done.wait(60)

    other = multiprocessing.get_context("fork").Process(target=hold)
    other.start()
    assert holding.wait(60)
    with pytest.raises(CheckpointError, match=f"process {other.pid} on {socket.gethostname()} is training with"):
        train(trained.data, tmp_path, "--max-update", 1)
    assert not list(tmp_path.glob("*.pt"))
    done.set()
    other.join()
    train(trained.data, tmp_path, "--max-update", 1)
    train(trained.data, tmp_path, "--max-update", 2)


def test_an_average_is_refused(trained, other_labels, tmp_path, caplog):
    inputs = [str(trained.best), str(other_labels.best)]
    assert average.main([*inputs, "--output", str(tmp_path / "average.pt")]) == 1
    assert "different labels" in caplog.text and not (tmp_path / "average.pt").exists()


@pytest.mark.parametrize("start", [("--finetune-from-model",), ("--reset-optimizer", "--restore-file")])
def test_training_does_not_start_from_other_labels(trained, other_labels, tmp_path, start):
    with pytest.raises(DictionaryMismatchError, match="other labels"):
        train(other_labels.data, tmp_path, "--max-update", 1, *start, trained.best)


@pytest.fixture(scope="module")
def other_words(tmp_path_factory) -> Training:
    """As many words as the common model has, in another order, and another parser."""
    folder = tmp_path_factory.mktemp("words")
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            write_lines(folder / f"{split}.{language}", ["a b b c c c", "d d d d a"] * 8)
    preprocess(folder, folder / "data-bin", parser="right-branching")
    return train(folder / "data-bin", folder / "checkpoints", "--max-update", 1)


def test_folders_members_and_fine_tuning_with_other_words_are_refused(trained, other_words, tmp_path):
    flags = f"--srcdict {trained.data}/dict.en.txt --tgtdict {trained.data}/dict.de.txt"
    with pytest.raises(DictionaryMismatchError, match=f"dict.en.txt.*the parser of en.*{flags}"):
        train(f"{trained.data}:{other_words.data}", tmp_path, "--max-update", 1)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DictionaryMismatchError, match="other words of the source"):
        generate(trained.data, trained.best, other_words.best)
    with pytest.raises(DictionaryMismatchError, match=f"{trained.best}: .* words of the source"):
        train(other_words.data, tmp_path, "--max-update", 1, "--finetune-from-model", trained.best)
    shutil.copy(trained.best, tmp_path / "checkpoint_last.pt")
    with pytest.raises(DictionaryMismatchError, match="checkpoint_last.pt: .* a new training needs another --save-dir"):
        train(other_words.data, tmp_path, "--max-update", 2)


def test_checking_names_files_that_the_folder_does_not_know(other_words, tmp_path, capsys):
    folder = shutil.copytree(other_words.data, tmp_path / "bin")
    shutil.copy(folder / "dict.en.txt", folder / "dict.fr.txt")
    assert check.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "all files are whole" in said and "dict.fr.txt is not in tree.json" in said
