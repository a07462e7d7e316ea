"""Sentences and pairs of them through fairseq's own commands: train, generate, interactive, and the hub; from scratch
and pretrained.
"""

from __future__ import annotations

import re

import pytest

from tests.end_to_end.commands import lines_of, run
from tests.end_to_end.roads import take_all
from tests.end_to_end.sentences import BAD, FORMATS, GOOD, KINDS, PLAIN, TASK, preprocess, train, write_rows
from tests.nn.pretrained import save_albert
from tree_fairseq import hub
from tree_fairseq.errors import InputError


@pytest.fixture(scope="module")
def folders(shared):
    """A preprocessed folder of each kind, and the lines of its test set."""

    def make(folder, kind: str):
        return preprocess(write_rows(folder, kind), kind, folder / "data")

    made = {kind: shared(f"{kind} rows", lambda folder, kind=kind: make(folder, kind)) for kind in FORMATS}
    return {
        kind: (folder / "data", (folder / "test.tsv").read_text().splitlines()) for kind, (folder, _) in made.items()
    }


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
    without = train(data, tmp_path / "without", "sentence", "--no-chart", "--treeformer-height", 10)
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
                "train", folders["sentence"][0], *TASK, "--arch", arch, *KINDS["sentence"], "--cpu", "--batch-size",
                8, "--no-save",
            )  # fmt: skip
    with pytest.raises(InputError, match="Use --criterion tree_regression"):
        train(folders["rated"][0], tmp_path, "sentence")
    with pytest.raises(InputError, match="Use --criterion tree_classification"):
        train(folders["sentence"][0], tmp_path, "rated")


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
