"""Counts the files through which a piece of work passes, because a reader who follows it has to open all of them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from fairseq import options
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq_cli import preprocess as stock_preprocess

from tests.classification.examples import classify, write_trees
from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end import tiny_classes
from tests.journeys import files_executed, folders_of
from tests.nn.tiny import build
from tests.tree_insertion import test_task as insertion
from tests.tree_insertion.test_preprocessing import preprocess
from tree_fairseq.classification.criterion import TreeClassificationCriterion
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence
from tree_fairseq.tree_insertion.store import EncodedText, TrajectorySampler, write_stores
from tree_fairseq.trees.text import inspect_text


@pytest.fixture
def sentiment(tmp_path):
    write_trees(tmp_path, train=20)
    classify("--input-format", "trees", *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin")
    task, args = tiny_classes.task_of(tmp_path / "bin"), Namespace(arch="tree_transformer_classifier_tiny")
    ARCH_CONFIG_REGISTRY[args.arch](args)
    return task, task.build_model(args)


def test_from_an_sst_tree_to_its_class(sentiment):
    task, model = sentiment
    predictor, ranked = task.build_generator([model], Namespace()), []
    assert task.line_trees  # is made once for all lines

    def predict() -> None:
        lines = task.read_lines(["(3 (2 It) (4 (3 works) (2 well)))"], str)
        dataset = task.build_dataset_for_inference(lines, lines.lengths)
        ranked.extend(task.inference_step(predictor, [model], dataset.collater([dataset[0]])))

    files = files_executed(predict)
    assert len(ranked[0]) == 5
    assert len(files) <= 17, sorted(files)


def test_from_sst_trees_to_their_loss(sentiment):
    task, model = sentiment
    criterion, losses = TreeClassificationCriterion(task, label_smoothing=0.0), []

    def learn() -> None:
        task.load_dataset("train")
        dataset = task.dataset("train")
        losses.append(criterion(model, dataset.collater([dataset[index] for index in range(4)]))[0])
        losses[0].backward()

    files = files_executed(learn)
    assert losses[0] > 0
    assert len(files) <= 18, sorted(files)


OVERNIGHT = (
    "( call-SW:listValue ( filter ( call-SW:getProperty ( call-SW:singleton en.article ) ( string !type ) ) "
    "( condition ( string publication_date ) ( string = ) ( date 2004 -1 -1 ) ) ) )"
)


def test_from_an_overnight_line_to_the_slot_loss(tmp_path):
    for split in ("train", "valid"):
        (tmp_path / f"{split}.nl").write_text("articles published in 2004\n")
        (tmp_path / f"{split}.lf").write_text(f"{OVERNIGHT}\n")
    folder = preprocess(tmp_path, tmp_path / "bin", splits=("train", "valid"))
    task, pool = insertion.task_of(folder), ProcessPool()
    sampler = TrajectorySampler("centrality", count=5)
    model, criterion = build(task, arch="tree_insertion_transformer_tiny"), SlotKlDivergence(task)
    task.load_dataset("train")
    losses = []

    def learn() -> None:
        source = inspect_text(tmp_path / "train.lf")
        text = EncodedText.read(source, task.target_dictionary.notation, 50, tmp_path / "labels", pool)
        write_stores({folder / "train.nl-lf.lf.insertion": text.lines}, sampler, pool)
        dataset = task.dataset("train")
        losses.append(criterion(model, dataset.collater([dataset[0]]))[0])

    files = files_executed(learn)
    assert losses[0] > 0
    assert len(files) <= 20 and len(folders_of(files)) <= 6, sorted(files)


PARSERS = {"brackets": "(ROOT (S (NP (DT the) (NN boat)) (VBZ sinks)))", "right-branching": "the boat sinks"}
STANZA = Path(__file__).resolve().parents[2] / "shared/models/stanza-en-gum"


@pytest.mark.parametrize(
    "parser", [*PARSERS, pytest.param("stanza", marks=pytest.mark.skipif(not STANZA.exists(), reason="needs a model"))]
)
def test_from_a_line_to_its_bytes_on_disk(tmp_path, parser):
    line = PARSERS.get(parser, "the boat sinks")
    for split in ("train", "valid"):
        write_lines(tmp_path / f"{split}.en", [line, line])
        write_lines(tmp_path / f"{split}.de", ["das Boot sinkt", "das Boot sinkt"])
    command = ["-s", "en", "-t", "de", *prefixes(tmp_path, "train", "valid"), "--tree-parser", parser]
    command += ["--parser-dir", str(STANZA), "--tree-device", "cpu"] if parser == "stanza" else []

    def run() -> None:
        args = options.get_preprocessing_parser().parse_args([*command, "--destdir", str(tmp_path / "bin")])
        stock_preprocess.main(args)

    files = files_executed(run)
    assert (tmp_path / "bin/train.en-de.en.tree.bin").exists()
    assert len(files) <= {"brackets": 17, "right-branching": 20, "stanza": 20}[parser], sorted(files)
