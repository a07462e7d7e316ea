"""Dropped trees: which they are, what takes their place, and that processes and resumed trainings agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.classification.test_dataset import document_data, documents, tree_data, trees  # noqa: F401  (fixtures)
from tests.end_to_end import tiny_classes
from tests.nn.test_span_pairs import TRAIN, load
from tests.nn.tiny import dictionary
from tree_fairseq.classification.targets import IGNORE
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.nn.tree_batch import NodeArrays
from tree_fairseq.parsing.parsers import FLAT_LABEL, flat_tree
from tree_fairseq.tasks.tree_dropout import TreeDropout
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.spans import encode

SHARE = 0.3


def same(ours: NodeArrays, theirs: NodeArrays) -> bool:
    return all(
        np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ("label", "start", "end", "depth")
    )


def parsed(task, forest) -> NodeArrays:
    """The tree as the data set reads it."""
    return task.source_side.read_tree.from_spans(encode(forest))


def expected(task, line: str, is_dropped: bool) -> NodeArrays:
    """The obvious one: the tree that a failed parse gives, through preprocessing."""
    forest = read_forest(line)
    return parsed(task, tuple(flat_tree(tree.leaves()) for tree in forest) if is_dropped else forest)


@pytest.mark.parametrize("unary_chains", ["lowest", "join"])
def test_a_share_of_the_trees_is_that_of_a_failed_parse(data_bin, unary_chains):
    task, dataset = load(data_bin, "train", tree_dropout=SHARE, seed=1, unary_chains=unary_chains)
    drawn = []
    for epoch in range(1, 21):
        dataset.set_epoch(epoch)
        dropped = [dataset.dropout.drops(index) for index in range(len(dataset))]
        drawn.append(dropped)
        for index in range(0, len(dataset), 7 if epoch > 1 else 1):
            assert same(dataset[index]["source_spans"], expected(task, TRAIN[index], dropped[index]))
    assert abs(np.mean(drawn) - SHARE) < 0.03  # of 3,200 draws, five standard deviations
    # Each sentence is dropped in some epochs and kept in others.
    assert sum(0 < sum(epochs) < 20 for epochs in zip(*drawn)) > 150


def test_seed_epoch_and_number_decide(data_bin):
    def draws(seed: int, epoch: int) -> list[bool]:
        _, dataset = load(data_bin, "train", tree_dropout=SHARE, seed=seed)
        dataset.set_epoch(epoch)
        np.random.seed(epoch)  # chance elsewhere plays no part
        return [dataset.dropout.drops(index) for index in range(len(dataset))]

    assert draws(1, 2) == draws(1, 2)
    assert len({tuple(draws(*key)) for key in ((1, 1), (1, 2), (2, 1), (2, 2))}) == 4


def test_other_splits_and_other_trainings_keep_all_trees(data_bin):
    task, valid = load(data_bin, "valid", tree_dropout=1.0, seed=1)
    assert valid.dropout is None
    _, train = load(data_bin, "train")
    assert train.dropout is None and all(
        same(train[index]["source_spans"], expected(task, TRAIN[index], False)) for index in range(len(train))
    )
    _, every = load(data_bin, "train", tree_dropout=1.0, seed=1)
    assert all(len(every[index]["source_spans"]) <= 1 for index in range(len(every)))


def batches_of(iterator) -> list[tuple]:
    return [
        (batch["id"].tolist(), {name: batch["net_input"]["source_spans"][name] for name in ("label", "start", "end")})
        for batch in iterator
    ]


def assert_same_batches(ours: list[tuple], theirs: list[tuple]) -> None:
    assert [ids for ids, _ in ours] == [ids for ids, _ in theirs] != []
    for (_, own), (_, other) in zip(ours, theirs):
        assert all(torch.equal(own[name], other[name]) for name in own)


def test_loading_processes_and_resumed_trainings_drop_the_same_trees(data_bin):
    """The processes live through all epochs, and a training is resumed in the middle of the second one."""

    def iterator(workers: int, epoch: int = 1):
        task, dataset = load(data_bin, "train", tree_dropout=SHARE, seed=1)
        limits = {"max_sentences": 8, "seed": 1, "epoch": epoch, "num_workers": workers}
        return task.get_batch_iterator(dataset, **limits)

    alone, together = iterator(0), iterator(2)
    epochs = []
    for _ in range(2):
        epochs.append(batches_of(alone.next_epoch_itr()))
        assert_same_batches(batches_of(together.next_epoch_itr()), epochs[-1])
    begun = iterator(2)
    batches_of(begun.next_epoch_itr())
    second = begun.next_epoch_itr()
    for _ in range(5):
        next(second)
    resumed = iterator(2, epoch=2)  # as fairseq's trainer does, which knows the epoch
    resumed.load_state_dict(begun.state_dict())
    assert_same_batches(batches_of(resumed.next_epoch_itr()), epochs[1][5:])


def class_trees(dataset, index):
    return dataset[index]["sentences"]


@pytest.mark.parametrize("data", ["tree_data", "document_data"])
def test_roots_and_leaves_of_dropped_trees_keep_their_classes(data, request):
    folder = request.getfixturevalue(data)
    _, kept = tiny_classes.load(folder, "train")
    task, dataset = tiny_classes.load(folder, "train", tree_dropout=0.5, seed=1)
    dropped = [dataset.dropout.drops(index) for index in range(len(dataset))]
    assert 10 < sum(dropped) < 51
    has_label = FLAT_LABEL in task.label_dictionary
    assert has_label == (data == "document_data")
    for index, is_dropped in enumerate(dropped):
        for ours, full in zip(class_trees(dataset, index), class_trees(kept, index)):
            assert (ours.position, ours.length) == (full.position, full.length)
            if not is_dropped:
                assert same(ours.nodes, full.nodes)
                continue
            assert len(ours.nodes) == (full.length > 1)
            for name in ("start", "end", "depth", "label"):
                root = getattr(full.nodes, name)[:1].tolist()
                if name == "label" and has_label:
                    root = [task.label_dictionary.index(FLAT_LABEL)] * len(root)
                assert getattr(ours.nodes, name).tolist() == root
            if full.node_target is not None:
                assert ours.node_target.tolist() == full.node_target[:1].tolist() != [IGNORE]
                assert ours.leaf_target.tolist() == full.leaf_target.tolist()
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    assert batch["nsentences"] == len(dataset)


def test_options_that_drop_nothing_are_refused(data_bin, text_only):
    for share in (-0.1, 1.5):
        with pytest.raises(InputError, match="--tree-dropout"):
            TreeDropout(share, dictionary(FLAT_LABEL), 1)
    with pytest.raises(DataFolderError, match="--tree-dropout drops parses of the source"):
        text_only()


@pytest.fixture
def text_only(tmp_path):
    """Makes a task whose source is a sequence."""
    from tests.end_to_end import test_structural_translation as structural
    from tests.end_to_end import tiny_programs
    from tree_fairseq.tree_positional.task import StructuralTranslationConfig, StructuralTranslationTask

    def make():
        modality = structural.MODALITIES["sequence-to-tree"]
        text = tiny_programs.write_corpus(tmp_path / "text", (8, 4, 4))
        data = structural.preprocess(
            structural.texts_for(text, tmp_path / "sides", modality), tmp_path / "bin", modality
        )
        config = StructuralTranslationConfig(data=str(data), tree_dropout=0.5, seed=1)
        return StructuralTranslationTask.setup_task(config)

    return make
