"""Sentences and pairs of them through fairseq's own commands: train, generate, interactive, and the hub; from scratch
and pretrained.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.end_to_end.commands import lines_of, run
from tests.end_to_end.roads import take_all
from tests.nn.pretrained import save_albert
from tree_fairseq import hub
from tree_fairseq.errors import InputError, LongSentenceError

TASK = ("--task", "tree_sentence_classification")
GOOD, BAD, PLAIN = ("good", "great"), ("bad", "dull"), ("a", "film", "it", "is")
KINDS = {
    "sentence": ("--criterion", "tree_classification", "--best-checkpoint-metric", "matthews"),
    "pair": ("--criterion", "tree_classification", "--best-checkpoint-metric", "f1"),
    "rated": ("--criterion", "tree_regression", "--best-checkpoint-metric", "pearson"),
}
FORMATS = {"sentence": (), "pair": ("--input-format", "pair"), "rated": ("--input-format", "pair", "--regression")}


def row(chooser: random.Random, kind: str) -> str:
    """A sentence is good or bad; a pair is alike if both are."""
    tells = [chooser.choice((GOOD, BAD)) for _ in range(1 if kind == "sentence" else 2)]
    texts = [" ".join([*chooser.choices(PLAIN, k=chooser.randint(0, 3)), chooser.choice(words)]) for words in tells]
    alike = tells[0] is (GOOD if kind == "sentence" else tells[-1])
    return "\t".join([*texts, f"{4.5 * alike:.3f}" if kind == "rated" else str(int(alike))])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A preprocessed folder of each kind, and the lines of its test set."""
    made = {}
    for kind in FORMATS:
        data = preprocess(tmp_path_factory.mktemp(kind), kind)
        made[kind] = data, (data.parent / "test.tsv").read_text().splitlines()
    return made


def preprocess(folder: Path, kind: str) -> Path:
    """Writes rows of a kind into a folder, and preprocesses them; returns the folder of the data."""
    folder.mkdir(exist_ok=True)
    chooser, prefixes = random.Random(kind), []
    for split, size in (("train", 64), ("valid", 13), ("test", 11)):
        (folder / f"{split}.tsv").write_text("".join(f"{row(chooser, kind)}\n" for _ in range(size)))
        prefixes += [f"--{split}pref", folder / split]
    run("preprocess", *TASK, *FORMATS[kind], *prefixes, "--destdir", folder / "data")
    return folder / "data"


def train(data, folder, kind: str, *flags: object, epochs: int = 2) -> str:
    options = (
        "--optimizer",
        "adam",
        "--lr",
        "3e-3",
        "--batch-size",
        8,
        "--max-epoch",
        epochs,
        "--num-workers",
        0,
        "--seed",
        1,
        "--cpu",
    )
    return run(
        "train", data, *TASK, "--arch", "treeformer_classifier_tiny", "--treeformer-height", 3, *KINDS[kind], *options,
        "--maximize-best-checkpoint-metric", "--no-epoch-checkpoints", "--log-format", "simple", "--save-dir", folder,
        *flags,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_all_commands_agree(folders, tmp_path, kind):
    data, lines = folders[kind]
    log = train(data, tmp_path, kind, "--dropout", 0.1)
    assert re.search(rf"best_{KINDS[kind][-1]} ", log)
    path = tmp_path / "checkpoint_best.pt"
    scoring = "regression" if kind == "rated" else "classification"
    texts = [line.rpartition("\t")[0] for line in lines]
    roads = take_all(data, path, TASK, texts, tmp_path, "--scoring", scoring)
    labels = lines_of("T", roads.generated)
    for number, line in enumerate(lines):
        label = line.rpartition("\t")[2]
        assert float(labels[number]) == float(label) if kind == "rated" else labels[number] == label
    assert ("Pearson" if kind == "rated" else "Matthews") in roads.generated
    for best, ours in zip(roads.best, hub.from_pretrained(tmp_path, data_name_or_path=data).classify(texts)):
        if kind == "rated":
            assert ours.value == float(ours.label) == pytest.approx(float(best["text"]), abs=1e-4)
            assert ours.probabilities == {}
        else:
            assert ours.label == best["text"] and sum(ours.probabilities.values()) == pytest.approx(1, abs=1e-3)


def test_a_chart_goes_on_from_an_encoder_without_one(folders, tmp_path):
    data, _ = folders["sentence"]
    without = train(data, tmp_path / "without", "sentence", "--no-chart")
    last = tmp_path / "without" / "checkpoint_last.pt"
    log = train(
        data, tmp_path / "with", "sentence", "--finetune-from-model", last, "--max-update", 1, "--lr", "1e-9", epochs=1
    )
    assert re.search(r"weights that the checkpoint does not have, left as initialised: log_scale, summary\.", log)
    before, after = (
        [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", text)][-1]
        for text in (without, log)
    )
    assert after == pytest.approx(before, abs=0.02)


def test_it_learns(folders, tmp_path):
    log = train(folders["sentence"][0], tmp_path, "sentence", "--dropout", 0, epochs=8)
    assert float(re.findall(r"best_matthews ([\d.]+)", log)[-1]) > 90


def test_what_does_not_go_together(folders, tmp_path):
    for arch in ("tree_lstm_classifier_tiny", "tree_transformer_classifier_tiny"):
        with pytest.raises(InputError, match=f"--arch {arch} reads trees"):
            run(
                "train",
                folders["sentence"][0],
                *TASK,
                "--arch",
                arch,
                *KINDS["sentence"],
                "--cpu",
                "--batch-size",
                8,
                "--no-save",
            )
    with pytest.raises(InputError, match="Use --criterion tree_regression"):
        train(folders["rated"][0], tmp_path, "sentence")
    with pytest.raises(InputError, match="Use --criterion tree_classification"):
        train(folders["sentence"][0], tmp_path, "rated")


def test_texts_that_are_too_long_to_be_trained_on_are_not_left_out(folders, tmp_path):
    data, _ = folders["pair"]
    with pytest.raises(
        LongSentenceError, match=r"example \d+ of those to train on has \d+ tokens.* allows\) 6; there are"
    ):
        train(data, tmp_path / "batch", "pair", "--max-tokens", 6)
    encoder = save_albert(tmp_path / "albert", (*GOOD, *BAD, *PLAIN), max_position_embeddings=7)
    with pytest.raises(LongSentenceError, match=r"of those to train on has \d+ tokens.* reads .* 6; there are"):
        train(data, tmp_path / "encoder", "pair", "--encoder-name", encoder)


@pytest.mark.parametrize("arch", ["transformer_classifier_tiny", "lstm_classifier_tiny"])
def test_other_models_of_sequences_read_the_same_folders(folders, arch):
    log = run(
        "train", folders["pair"][0], *TASK, "--arch", arch, *KINDS["pair"], "--optimizer", "adam", "--lr", "1e-3",
        "--batch-size", 8,
        "--max-update", 2, "--num-workers", 0, "--cpu", "--maximize-best-checkpoint-metric", "--no-save",
        "--log-format", "simple",
    )  # fmt: skip
    assert "f1" in log


@pytest.mark.parametrize("kind", ["pair", "rated"])
def test_a_pretrained_encoder(folders, tmp_path, kind):
    albert = save_albert(tmp_path / "albert", (*GOOD, *BAD, *PLAIN))
    data, lines = folders[kind]
    train(data, tmp_path / "run", kind, "--encoder-name", albert, epochs=1)
    pieces = {"bpe": "pretrained_pieces", "pieces_of": str(albert)}
    model = hub.from_pretrained(tmp_path / "run", data_name_or_path=data, **pieces)
    texts = [line.rpartition("\t")[0] for line in lines]
    plain = hub.from_pretrained(tmp_path / "run", data_name_or_path=data)
    assert model.classify(texts) == plain.classify(texts), "the words of these texts are pieces themselves"
