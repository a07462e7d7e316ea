"""Trees for which a model has too few positions: fairseq refuses or skips them."""

from __future__ import annotations

import pytest
from fairseq.utils import resolve_max_positions

from tests.faults.test_32_insertion_input import corpus_of
from tests.nn.tiny import arguments
from tests.tree_insertion.test_preprocessing import preprocess
from tests.tree_insertion.test_task import task_of
from tree_fairseq.tree_insertion import sequences, tree_gru  # noqa: F401  (register)

LINES = ("a", "( f a )", "( f ( g a ) )", "( f ( g ( h a ) ) )", "( f a b c d )")
# Tokens that a model reads beside those of the tree: EOS, BOS and EOS, the root and its brackets.
ADDED = {
    "insertion_left_to_right_tiny": ((), 1),
    "sequence_insertion_transformer_tiny": ((), 2),
    "tree_insertion_transformer_tiny": (("--absolute-positions",), 3),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lengths")
    return preprocess(corpus_of(place / "text", train=LINES), place / "bin")


def batched(task, model) -> list[int]:
    """Lines that fairseq's iterator takes."""
    task.load_dataset("train")
    limits = resolve_max_positions(task.max_positions(), model.max_positions())
    iterator = task.get_batch_iterator(
        task.dataset("train"), max_sentences=8, max_positions=limits, ignore_invalid_inputs=True
    )
    return sorted(index for batch in iterator.frozen_batches for index in batch)


@pytest.mark.parametrize("arch", ADDED)
def test_trees_fit_to_the_last_position(arch, folder):
    flags, added = ADDED[arch]
    for positions, places in ((10 + added, [0, 1, 2, 3, 4]), (9 + added, [0, 1, 2, 4]), (4 + added, [0, 1])):
        task = task_of(folder, partial_states=None if "left" in arch else 50)
        model = task.build_model(arguments(arch, *flags, "--max-target-positions", str(positions)))
        assert batched(task, model) == places
        # Whole trees are among the partial ones.
        data = task.dataset("train")
        model(**data.collater([data[index] for index in places])["net_input"])


@pytest.mark.parametrize("arch", ["tree_gru_tiny", "tree_insertion_transformer_tiny"])
def test_models_without_positions_do_not_count_brackets(arch, folder):
    task = task_of(folder)
    assert batched(task, task.build_model(arguments(arch, "--max-target-positions", "7"))) == [0, 1, 2, 3, 4]
