"""Classification through fairseq's own commands: train, validate, generate, interactive, and the hub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, run
from tests.end_to_end.roads import take_all
from tests.end_to_end.tiny_classes import TASK, preprocess, train, write_examples
from tree_fairseq import hub
from tree_fairseq.errors import DataFolderError
from tree_fairseq.hub import Classification
from tree_fairseq.support.python_versions import zip_equal

KINDS = ("trees", "tsv", "documents")
TREE_ARCHS = ("tree_transformer_classifier_tiny", "tree_lstm_classifier_tiny")
ARCHS = (*TREE_ARCHS, "transformer_classifier_tiny", "lstm_classifier_tiny")
SCORING = ("--scoring", "classification", "--batch-size", 5, "--num-workers", 0)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return {kind: write_examples(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


@pytest.fixture(scope="module")
def data(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("preprocessed")
    return {kind: preprocess(texts[kind], kind, folder / kind) for kind in KINDS}


@pytest.fixture(scope="module")
def learned(data, tmp_path_factory):
    """A Tree-Transformer after some epochs on trees: its log and its folder."""
    folder = tmp_path_factory.mktemp("learned")
    return train(data["trees"], folder, "--max-epoch", 8), folder


def generate(data, path, *arguments) -> str:
    return run("generate", data, *TASK, "--path", path, "--cpu", *SCORING, *arguments)


def in_order(output: str) -> list[Classification]:
    """The class and the probabilities of each example, which ``--nbest`` prints as hypotheses."""
    found: dict[int, dict[str, float]] = {}
    for number, score, name in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE):
        found.setdefault(int(number), {})[name] = 2 ** float(score)
    for probabilities in found.values():
        assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert sorted(found) == list(range(len(found)))
    return [Classification(next(iter(found[number])), found[number]) for number in range(len(found))]


def assert_same(found: list[Classification], expected: list[Classification]) -> None:
    assert [example.label for example in found] == [example.label for example in expected]
    for ours, theirs in zip(found, expected):
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=2e-4)


def lines_to_classify(texts: dict[str, Path], kind: str) -> list[str]:
    name = "test.trees" if kind == "trees" else "test.tsv"
    return [line.split("\t")[0] for line in (texts[kind] / name).read_text(encoding="utf-8").splitlines()]


def figures(log: str) -> dict[str, str]:
    line = [line for line in log.splitlines() if "valid on 'valid' subset" in line][-1]
    return dict(part.split(" ", 1) for part in line.split("subset | ")[1].split(" | "))


@pytest.mark.parametrize(
    ("kind", "arch"),
    [
        *(("trees", arch) for arch in ARCHS),
        ("tsv", "tree_transformer_classifier_tiny"),
        ("documents", "tree_transformer_classifier_tiny"),
        ("documents", "lstm_classifier_tiny"),
    ],
)
def test_all_commands_agree(texts, data, tmp_path, kind, arch):
    log = train(data[kind], tmp_path, arch=arch)
    valid = figures(log)
    assert ("node_accuracy" in valid) == (kind == "trees" and arch in TREE_ARCHS)
    best = tmp_path / "checkpoint_best.pt"
    again = figures(run("validate", data[kind], "--path", best, "--batch-size", 4, "--cpu", *TASK))
    for name in ("accuracy", "macro_f1", "loss"):
        assert again[name] == valid[name] or float(again[name]) == pytest.approx(float(valid[name]), abs=0.002)
    lines = lines_to_classify(texts, kind)
    roads = take_all(data[kind], best, TASK, lines, tmp_path, nbest=3)
    found = in_order(roads.generated)
    for number, (sentence, line) in enumerate(zip(roads.sentences, lines_of("C", roads.translated).values())):
        assert sentence["source_brackets"][0] == "("
        assert sentence["probabilities"] == pytest.approx(found[number].probabilities, abs=2e-4)
        assert dict(pair.split(" ") for pair in line.split("\t")) == {
            name: f"{value:.4f}" for name, value in sentence["probabilities"].items()
        }
    model = hub.from_pretrained(tmp_path, data_name_or_path=data[kind])
    assert_same(model.classify(lines), found)
    assert model.classify(lines[0]) == model.classify(lines[:1])[0] and model.classify([]) == []
    assert model.parse("") == () and all(len(forest) for forest in model.parse(lines))


def test_it_learns(learned):
    log, _ = learned
    accuracies = [float(value) for value in re.findall(r"valid on 'valid' subset.*? accuracy ([\d.]+)", log)]
    assert accuracies[-1] >= 85 > accuracies[0] or min(accuracies[-3:]) >= 85
    nodes = [float(value) for value in re.findall(r"valid on 'valid' subset.*? node_accuracy ([\d.]+)", log)]
    assert nodes[-1] > 85


def test_what_is_scored_is_what_is_printed(data, learned, tmp_path):
    """Also in the file of ``--results-path``, where every line is that of the terminal."""
    path = learned[1] / "checkpoint_best.pt"
    output = generate(data["trees"], path)
    generate(data["trees"], path, "--results-path", tmp_path)
    file = (tmp_path / "generate-test.txt").read_text(encoding="utf-8")
    kinds = ("S", "T", "H", "D", "P", "Generate", "confusion", "  ")
    assert [line for line in file.splitlines() if line.startswith(kinds)] == [
        line for line in output.splitlines() if line.startswith(kinds)
    ]
    right, found = lines_of("T", file), hypotheses(file)
    pairs = [(right[number], found[number][0]) for number in range(13)]
    accuracy = 100 * sum(target == label for target, label in pairs) / 13
    assert re.search(
        rf"^Generate test with beam=5: accuracy {accuracy:.2f}, macro F1 [\d.]+, .*13 examples$", file, re.MULTILINE
    )
    counts = [[pairs.count((row, column)) for column in "01"] for row in "01"]
    table = file.split("columns predicted\n")[1].splitlines()[1:3]
    assert [[int(count) for count in line.split()[1:]] for line in table] == counts


def test_stock_scores_do_not_stop_it(data, learned):
    path = learned[1] / "checkpoint_best.pt"
    output = run("generate", data["trees"], *TASK, "--path", path, "--cpu", "--max-tokens", 20)
    assert len(hypotheses(output)) == 13 and "BLEU" in output


def test_an_ensemble_has_the_mean_of_probabilities(data, learned, tmp_path):
    """Of models that read trees and models that read none."""
    train(data["trees"], tmp_path, arch="lstm_classifier_tiny")
    paths = [learned[1] / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt"]
    one, two, both = (
        in_order(generate(data["trees"], path, "--nbest", 3)) for path in (*paths, ":".join(map(str, paths)))
    )
    for ours, first, second in zip_equal(both, one, two):
        mean = {name: (first.probabilities[name] + second.probabilities[name]) / 2 for name in ours.probabilities}
        assert ours.probabilities == pytest.approx(mean, abs=2e-4)
    assert any(ours.probabilities != pytest.approx(first.probabilities, abs=1e-2) for ours, first in zip(both, one))


def test_long_documents_are_cut_wherever_they_come_from(texts, data, tmp_path):
    lines = lines_to_classify(texts, "documents")
    limit = ("--max-source-positions", 12)
    log = train(data["documents"], tmp_path, *limit)
    assert re.search(
        r"\[train\] \d+ documents of more than 12 tokens were cut at a sentence: \d+ sentences left out", log
    )
    take_all(data["documents"], tmp_path / "checkpoint_best.pt", TASK, lines, tmp_path, *limit, nbest=2)


def test_translations_are_no_classes(trained):
    with pytest.raises(DataFolderError, match="use translate"):
        hub.from_pretrained(trained.folder, data_name_or_path=trained.data).classify(["a film"])
