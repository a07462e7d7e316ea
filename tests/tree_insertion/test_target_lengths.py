"""Trees that have more labels and brackets than a model has positions for: they are refused, or skipped."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.end_to_end.commands import run
from tests.nn.tiny import arguments
from tests.strategies import symbol_trees
from tests.tree_insertion.test_dictionary import dictionary_of, ids_of, parents_of
from tests.tree_insertion.test_preprocessing import preprocess
from tests.tree_insertion.test_task import task_of
from tree_fairseq.errors import InputError
from tree_fairseq.tree_insertion import sequences, tree_gru  # noqa: F401  (register)
from tree_fairseq.tree_insertion.store import InsertionStore, encode_item, write_store

LINES = ("a", "( f a )", "( f ( g a ) )", "( f ( g ( h a ) ) )", "( f a b c d )")
# Tokens that a model reads beside those of the tree: EOS, BOS and EOS, the root and its brackets.
ADDED = {
    "insertion_left_to_right_tiny": ((), 1),
    "sequence_insertion_transformer_tiny": ((), 2),
    "tree_insertion_transformer_tiny": (("--absolute-positions",), 3),
}
UNLIMITED = {"tree_gru_tiny": ("--criterion", "label_smoothed_cross_entropy"), "tree_insertion_transformer_tiny": ()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lengths")
    return preprocess(corpus_of(place / "text", LINES), place / "bin")


def corpus_of(folder, lines):
    """Writes a corpus whose splits have equal lines."""
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.nl").write_text("say it\n" * len(lines), encoding="utf-8")
        (folder / f"{split}.lf").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def task_with(folder, arch: str, positions: int, skips: bool = False, **options):
    """Makes a task, and a model with this number of positions."""
    task = task_of(folder, skip_invalid_size_inputs_valid_test=skips, **options)
    flags = ADDED[arch][0] if arch in ADDED else ()
    model = task.build_model(arguments(arch, *flags, "--max-target-positions", str(positions)))
    return task, model


def kept(task, split: str = "train", max_positions=(1024, 1024)) -> list[int]:
    task.load_dataset(split)
    iterator = task.get_batch_iterator(
        task.dataset(split), max_sentences=8, max_positions=max_positions, ignore_invalid_inputs=True
    )
    return sorted(index for batch in iterator.frozen_batches for index in batch)


@given(st.lists(symbol_trees(), min_size=1, max_size=4), st.data())
def test_sizes_are_lengths_of_sequences(tmp_path_factory, trees, data):
    prefix = tmp_path_factory.mktemp("store") / "some"
    lines = [*range(len(trees)), *data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=3))]
    write_store(prefix, [encode_item(parents_of(tree), []) for tree in trees], lines)
    labels = dictionary_of(*trees)
    lengths = [len(labels.sequence(ids_of(tree, labels), parents_of(tree))) for tree in trees]
    store = InsertionStore(prefix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tree_fairseq.tree_insertion.store._BLOCK", data.draw(st.integers(1, 3)))
        assert store.sizes.tolist() == [lengths[line] for line in lines]


@pytest.mark.parametrize("arch", ADDED)
def test_trees_fit_to_the_last_position(arch, folder):
    added = ADDED[arch][1]
    for positions, places in ((10 + added, range(5)), (9 + added, (0, 1, 2, 4)), (4 + added, (0, 1))):
        task, model = task_with(folder, arch, positions, skips=True, partial_states=1 if "left" in arch else 50)
        assert kept(task) == list(places)
        # Whole trees are among the partial ones.
        data = task.dataset("train")
        model(**data.collater([data[index] for index in places])["net_input"])


@pytest.mark.parametrize("arch", ADDED)
def test_the_first_tree_that_is_too_long_is_named(arch, folder):
    added = ADDED[arch][1]
    task, _ = task_with(folder, arch, 6 + added)
    for split in ("train", "valid"):
        with pytest.raises(InputError) as caught:
            task.load_dataset(split)
        assert str(caught.value) == (
            f"{folder / f'{split}.nl-lf.lf'}:3: the tree has 7 labels and brackets, and the model has positions for 6. "
            "Raise --max-target-positions by 4, or skip long trees with --skip-invalid-size-inputs-valid-test."
        )


def test_skipped_trees_are_counted(folder, caplog):
    task, _ = task_with(folder, "insertion_left_to_right_tiny", 8, skips=True)
    with caplog.at_level(logging.WARNING):
        assert kept(task) == [0, 1, 2, 4]
    ours, fairseqs = caplog.messages[-2:]
    assert ours == (
        f"[train] 1 of 5 trees of {folder / 'train.nl-lf.lf'} have more than 7 labels and brackets and are skipped; "
        "the first is line 4"
    )
    assert fairseqs.startswith("1 samples have invalid sizes and will be skipped")


def test_the_limits_of_fairseq_count_labels_as_before(folder):
    task, _ = task_with(folder, "insertion_left_to_right_tiny", 1024)
    # Five labels and EOS are too many, four with their brackets are not.
    assert kept(task, max_positions=(1024, 5)) == [0, 1, 2, 3]


@pytest.mark.parametrize("arch", UNLIMITED)
def test_models_without_positions_read_all_trees(arch, folder, tmp_path):
    run(
        "train", folder, "--task", "tree_insertion", "--arch", arch, "--max-target-positions", 7, "--cpu",
        "--batch-size", 5, "--required-batch-size-multiple", 1, "--max-update", 1, "--optimizer", "adam",
        "--save-dir", tmp_path, *(UNLIMITED[arch] or ("--criterion", "slot_kl_divergence")),
    )  # fmt: skip
    assert (tmp_path / "checkpoint_last.pt").exists()


@pytest.mark.parametrize("is_skipped", [False, True])
def test_training_stops_before_its_first_update_or_skips(is_skipped, folder, tmp_path):
    command = (
        "train", folder, "--task", "tree_insertion", "--arch", "insertion_left_to_right_tiny", "--max-target-positions",
        8, "--cpu", "--batch-size", 2, "--max-epoch", 1, "--optimizer", "adam", "--save-dir", tmp_path,
        "--criterion", "label_smoothed_cross_entropy",
    )  # fmt: skip
    if is_skipped:
        log = run(*command, "--skip-invalid-size-inputs-valid-test")
        assert log.count("have more than 7 labels and brackets and are skipped") == 2
        assert "[train]" in log and "[valid]" in log and "done training" in log
        return
    with pytest.raises(InputError, match=r"valid\.nl-lf\.lf:4: the tree has 10 labels and brackets"):
        run(*command)
    assert not list(tmp_path.glob("*.pt"))


def test_parts_of_a_split_have_their_own_lines(tmp_path):
    text = corpus_of(tmp_path / "text", LINES[:2])
    more = corpus_of(tmp_path / "more", LINES)
    run(
        "preprocess", "--task", "tree_insertion", "-s", "nl", "-t", "lf", "--destdir", tmp_path / "bin",
        "--trainpref", text / "train", "--validpref", f"{text / 'valid'},{more / 'train'}",
        "--target-notation", "bracket",
    )  # fmt: skip
    task, _ = task_with(tmp_path / "bin", "insertion_left_to_right_tiny", 8, upsample_primary=2)
    with pytest.raises(InputError, match=r"valid1\.nl-lf\.lf:4: "):
        task.load_dataset("valid", combine=True)
    task.cfg.skip_invalid_size_inputs_valid_test = True
    task.load_dataset("valid", combine=True)
    indices, ignored = task.dataset("valid").filter_indices_by_size(np.arange(9), (1024, 1024))
    assert (indices.tolist(), ignored) == ([0, 1, 2, 3, 4, 5, 6, 8], [7])
