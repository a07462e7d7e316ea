"""Folders of tiny corpora, and models with random weights over them; each is made once for all tests of the room."""

from __future__ import annotations

import pytest

from tests.end_to_end import tiny_classes, tiny_programs
from tests.end_to_end.commands import prefixes_of, run
from tests.explorer.untrained import untrained
from tree_fairseq.explorer.systems import System


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return tiny_programs.write_corpus(tmp_path_factory.mktemp("programs") / "text")


@pytest.fixture(scope="session")
def symbol_data(programs):
    folder = programs.with_name("symbols")
    flags = "--task", "structural_translation", "-s", "nl", "-t", "lf", "--target-modality", "tree"
    run("preprocess", *flags, "--target-notation", "bracket", *prefixes_of(programs), "--destdir", folder)
    return folder


@pytest.fixture(scope="session")
def insertion_data(programs):
    folder = programs.with_name("insertions")
    flags = "--task", "tree_insertion", "-s", "nl", "-t", "lf", "--target-notation", "bracket", "--trajectories", 1
    run("preprocess", *flags, *prefixes_of(programs), "--destdir", folder)
    return folder


@pytest.fixture(scope="session")
def class_trees(tmp_path_factory):
    return tiny_classes.write_examples(tmp_path_factory.mktemp("classes") / "text", "trees")


@pytest.fixture(scope="session")
def class_data(class_trees):
    return tiny_classes.preprocess(class_trees, "trees", class_trees.with_name("bin"))


@pytest.fixture(scope="session")
def tree_system(data_bin):
    return System(untrained(data_bin, "tree_translation", "tree_transformer_tiny"), beam=2, max_len_b=8)


@pytest.fixture(scope="session")
def chart_system(data_bin):
    """A Treeformer, whose phrases have at most four tokens."""
    model = untrained(data_bin, "translation", "treeformer_tiny", "--treeformer-height", 4)
    return System(model, beam=2, max_len_b=8)


@pytest.fixture(scope="session")
def stock_system(data_bin):
    flags = "--encoder-layers", 2, "--decoder-layers", 2, "--encoder-embed-dim", 32, "--decoder-embed-dim", 32
    flags += "--encoder-attention-heads", 4, "--decoder-attention-heads", 4
    return System(untrained(data_bin, "translation", "transformer", *flags), "stock", beam=2, max_len_b=8)


@pytest.fixture(scope="session")
def symbol_system(symbol_data):
    """A transformer with tree positions, whose trees have at most nine symbols."""
    model = untrained(symbol_data, "structural_translation", "tree_positional_transformer_tiny", "--grammar", "data")
    return System(model, beam=3, max_len_b=9)


@pytest.fixture(scope="session")
def insertion_system(insertion_data):
    return System(untrained(insertion_data, "tree_insertion", "tree_insertion_transformer_tiny"))


@pytest.fixture(scope="session")
def class_system(class_data):
    return System(untrained(class_data, "tree_classification", "tree_transformer_classifier_tiny"))
