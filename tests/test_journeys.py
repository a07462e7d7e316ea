"""How many files of the package a piece of work passes through: a reader who follows it has to open that many."""

from __future__ import annotations

from argparse import Namespace

from fairseq.models import ARCH_CONFIG_REGISTRY

from tests.classification.examples import classify, write_trees
from tests.data_bin.corpora import prefixes
from tests.end_to_end.tiny_classes import task_of
from tests.journeys import files_executed


def test_an_sst_tree_to_its_class(tmp_path):
    write_trees(tmp_path, train=20)
    classify("--input-format", "trees", *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin")
    task, args = task_of(tmp_path / "bin"), Namespace(arch="tree_transformer_classifier_tiny")
    ARCH_CONFIG_REGISTRY[args.arch](args)
    model = task.build_model(args).eval()
    predictor, read_lines = task.build_generator([model], Namespace()), task.read_lines
    ranked = []

    def predict() -> None:
        lines = read_lines(["(3 (2 It) (4 (3 works) (2 well)))"], str)
        dataset = task.build_dataset_for_inference(lines, lines.lengths)
        ranked.extend(task.inference_step(predictor, [model], dataset.collater([dataset[0]])))

    files = files_executed(predict)
    assert len(ranked[0]) == 5
    assert len(files) <= 20, sorted(files)
