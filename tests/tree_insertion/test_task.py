"""The task ``tree_insertion``: batches of partial trees and sequences; options, models and folders that it refuses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.data_bin.corpora import read_lines
from tests.end_to_end.commands import run
from tests.end_to_end.tiny_programs import write_corpus
from tests.nn.tiny import arguments, stock_flags
from tests.tree_insertion.test_preprocessing import preprocess
from tree_fairseq import errors
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_insertion import sequences, tree_gru  # noqa: F401  (register)
from tree_fairseq.tree_insertion.target import ROOT_LABEL
from tree_fairseq.tree_insertion.task import TreeInsertionConfig, TreeInsertionTask
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("programs"), (60, 10, 10))


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    return preprocess(corpus, tmp_path_factory.mktemp("data") / "bin")


def task_of(data: object, **options) -> TreeInsertionTask:
    given = {
        "data": str(data),
        "source_lang": "nl",
        "target_lang": "lf",
        "train_subset": "train",
        "dataset_impl": None,
        "seed": 1,
        "required_seq_len_multiple": 1,
        **options,
    }
    return TreeInsertionTask.setup_task(TreeInsertionConfig(**given))


def batches(task: TreeInsertionTask, split: str, epoch: int = 1, **options) -> list[dict]:
    task.load_dataset(split, combine=split == "train")
    iterator = task.get_batch_iterator(task.dataset(split), max_sentences=16, epoch=epoch, **options)
    return list(iterator.next_epoch_itr(shuffle=False))


def test_batches_of_all_splits(corpus, folder):
    task = task_of(folder)
    assert (
        task.insertion.oracles == ["centrality"] and task.target_dictionary[task.target_dictionary.root] == ROOT_LABEL
    )
    for split in ("train", "valid", "test"):
        lines = read_lines(corpus / f"{split}.lf")
        seen = set()
        for batch in batches(task, split):
            partial = batch["net_input"]["partial_tree"]
            slots = read_partial_trees(partial, task.target_dictionary.pad())["slots"]
            assert partial["slots"].equal(slots) and batch["slot_target"]["slot"].unique().equal(slots)
            for row, index in enumerate(batch["id"].tolist()):
                assert task.target_dictionary.string(batch["target"][row]) == lines[index]
                seen.add(index)
        assert seen == set(range(len(lines)))


def test_training_draws_by_epoch_and_validation_does_not(folder):
    def states(split, epoch):
        return [
            batch["net_input"]["partial_tree"]["labels"].tolist() for batch in batches(task_of(folder), split, epoch)
        ]

    assert states("train", 1) != states("train", 2)
    assert states("train", 2) == states("train", 2)
    assert states("valid", 1) == states("valid", 2)


def test_only_training_sees_several_partial_trees_of_a_target(folder):
    task = task_of(folder, partial_states=3)
    assert any(batch["partial_states"] > batch["nsentences"] for batch in batches(task, "train"))
    assert all(batch["partial_states"] == batch["nsentences"] for batch in batches(task, "valid"))


def test_models_that_insert_into_trees_see_four_partial_trees_and_that_of_the_paper_one(folder):
    def states(arch, *flags, **options):
        task = task_of(folder, **options)
        task.build_model(arguments(arch, *flags))
        most = max(batch["partial_states"] / batch["nsentences"] for batch in batches(task, "train"))
        return task.dataset("train").sampler.states, most > 1

    assert states("tree_insertion_transformer_tiny") == (4, True)
    assert states("tree_insertion_transformer_tiny", partial_states=2) == (2, True)
    assert states("tree_insertion_transformer_tiny", "--as-published") == (1, False)
    assert states("sequence_insertion_transformer_tiny") == (1, False)


@pytest.mark.parametrize("arch", ["tree_insertion_transformer_tiny", "sequence_insertion_transformer_tiny"])
def test_options_reach_the_batches(folder, arch):
    def shares(**options):
        task = task_of(folder, **options)
        task.build_model(arguments(arch))
        return torch.cat([batch["slot_target"]["probability"] for batch in batches(task, "train")])

    # Of ten times the temperature the shares are nearer to each other.
    assert shares(target_temperature=10.0).std() < shares(target_temperature=1.0).std() < shares().std()
    even = 1 / shares(target_distribution="uniform")
    assert torch.allclose(even, even.round(), atol=1e-4)


def test_trees_of_sources_come_along(corpus, tmp_path):
    task = task_of(preprocess(corpus, tmp_path / "bin", "--tree-parser", "right-branching"))
    for batch in batches(task, "train"):
        net_input = batch["net_input"]
        trees = TreeBatch.from_net_input(
            net_input["source_spans"], net_input["src_tokens"], task.source_dictionary.pad()
        )
        # Right-branching trees have one node less than words; EOS is no word.
        assert trees.is_node.sum(1).tolist() == (net_input["src_lengths"] - 2).tolist()
    tokens, lengths = task.get_interactive_tokens_and_lengths(["show rivers in texas"], lambda line: line)
    assert lengths == [5]
    batch = task.build_dataset_for_inference(tokens, lengths)
    assert batch.collater([batch[0]])["net_input"]["source_spans"]["label"].shape == (1, 3)


def test_new_text_without_trees(folder):
    task = task_of(folder)
    tokens, lengths = task.get_interactive_tokens_and_lengths(["show rivers in texas"], lambda line: line)
    data = task.build_dataset_for_inference(tokens, lengths)
    assert set(data.collater([data[0]])["net_input"]) == {"src_tokens", "src_lengths"}
    assert task.source_forests(["show rivers"], lambda line: line) == [()]


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"trajectories": 6}, errors.InputError, "--trajectories is 6, and .* has 5 of each tree"),
        ({"source_lang": "lf", "target_lang": "nl"}, errors.DataFolderError, "has trees for lf, not for nl"),
    ],
)
def test_options_that_do_not_fit(folder, options, error, message):
    with pytest.raises(error, match=message):
        task_of(folder, **options)


def test_trajectories_that_are_not_stored(corpus, tmp_path):
    data = preprocess(corpus, tmp_path / "bin", "--insertion-oracle", "program", "--trajectories", 2)
    with pytest.raises(errors.MissingTreesError, match="it has those of program: preprocess again with .* centrality"):
        task_of(data)
    sampler = task_of(data, insertion_oracle="program", trajectories=1).sampler
    assert (sampler.count, sampler.distribution.kind) == (1, "rank")
    assert task_of(data, insertion_oracle="program").sampler.count == 2


def test_a_checkpoint_with_other_labels_is_refused(folder):
    task = task_of(folder)
    state = task.state_dict()
    task.load_state_dict(state)
    with pytest.raises(errors.DictionaryMismatchError, match="other labels of the targets"):
        task.load_state_dict({**state, "insertion_labels": [*state["insertion_labels"][:-1], "other::1"]})
    with pytest.raises(errors.MissingTreesError, match="trained on trees of the source"):
        task.load_state_dict({**state, "labels": ["NP"], "unary_chains": "lowest"})


def copy_of(folder: Path, destination: Path) -> Path:
    shutil.copytree(folder, destination, copy_function=os.link)
    return destination


def test_folders_after_each_other_have_the_same_labels(corpus, folder, tmp_path):
    other = preprocess(write_corpus(tmp_path / "text", (9, 4, 4)), tmp_path / "other")
    with pytest.raises(errors.DictionaryMismatchError, match="differs from .* in dict.lf.txt, dict.nl.txt"):
        task_of(f"{folder}:{other}")
    same = copy_of(folder, tmp_path / "same")
    task_of(f"{folder}:{same}").load_dataset("train", epoch=2)
    fewer = preprocess(corpus, tmp_path / "fewer", "--trajectories", 2)
    with pytest.raises(errors.DictionaryMismatchError, match="trajectories: 5 and 2"):
        task_of(f"{folder}:{fewer}")


def test_parts_of_a_split_are_joined(corpus, tmp_path):
    prefixes = f"{corpus / 'valid'},{corpus / 'test'}"
    data = tmp_path / "bin"
    splits = ("--trainpref", corpus / "train", "--validpref", prefixes)
    run("preprocess", "--task", "tree_insertion", "-s", "nl", "-t", "lf", *splits, "--destdir", data)
    task = task_of(data, upsample_primary=2)
    task.load_dataset("valid", combine=True)
    joined, lines = task.dataset("valid"), 2 * read_lines(corpus / "valid.lf") + read_lines(corpus / "test.lf")
    assert len(joined) == len(lines)
    sequences = [
        task.target_dictionary.sequence(item["labels"], item["parents"])
        for item in (joined[index] for index in range(len(joined)))
    ]
    assert [task.target_dictionary.string(sequence) for sequence in sequences] == lines


def test_trajectories_of_other_lines_are_refused(folder, tmp_path):
    data = copy_of(folder, tmp_path / "bin")
    for suffix in ("bin", "idx"):
        ours = data / f"valid.nl-lf.lf.insertion.{suffix}"
        ours.unlink()
        shutil.copy(folder / f"test.nl-lf.lf.insertion.{suffix}", ours)
    with pytest.raises(errors.CorruptFileError, match="valid.nl-lf.lf.insertion"):
        task_of(data).load_dataset("valid")


# Sequence models


@pytest.mark.parametrize(
    "arch, names",
    [
        ("insertion_left_to_right_tiny", "prev_output_tokens"),
        ("sequence_insertion_transformer_tiny", "partial_sequence slots"),
    ],
)
def test_models_are_given_sequences(folder, arch, names):
    task = task_of(folder)
    model = task.build_model(arguments(arch))
    largest = task.insertion.splits["train"].largest
    assert len(model.sequences) == len(task.target_dictionary) + 2 * largest == len(model.decoder.embed_tokens.weight)
    for batch in batches(task, "train"):
        assert set(batch["net_input"]) == {"src_tokens", "src_lengths", "source_lengths", *names.split()}
        output = model(**batch["net_input"])
        logits = output["logits"] if isinstance(output, dict) else output[0]
        assert logits.shape[-1] == len(model.sequences) and torch.isfinite(logits).all()


def test_models_that_do_not_fit_are_refused(folder):
    with pytest.raises(errors.InputError, match="--arch transformer does not generate trees"):
        task_of(folder).build_model(arguments("transformer", *stock_flags()))


@pytest.mark.parametrize(
    "arch, criterion, fitting",
    [
        ("tree_insertion_transformer_tiny", "cross_entropy", "slot_kl_divergence"),
        ("sequence_insertion_transformer_tiny", "label_smoothed_cross_entropy", "slot_kl_divergence"),
        ("insertion_left_to_right_tiny", "slot_kl_divergence", "label_smoothed_cross_entropy"),
        ("tree_gru_tiny", "slot_kl_divergence", "label_smoothed_cross_entropy"),
    ],
)
def test_a_criterion_that_does_not_fit_the_model_is_refused(folder, arch, criterion, fitting):
    command = [str(folder), "--task", "tree_insertion", "--arch", arch, "--criterion"]
    task = task_of(folder)
    task.build_model(arguments(arch))

    def criterion_of(name: str):
        args = options.parse_args_and_arch(options.get_training_parser(), [*command, name])
        return task.build_criterion(convert_namespace_to_omegaconf(args).criterion)

    with pytest.raises(errors.InputError, match=f"--criterion {criterion} does not work with the model; use {fitting}"):
        criterion_of(criterion)
    assert criterion_of(fitting) is not None
