"""Which models the task that grows trees takes for sequence models, and what each of them is given."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.tiny_programs import write_corpus
from tests.nn.tiny import arguments, stock_flags
from tests.tree_insertion.test_preprocessing import preprocess
from tests.tree_insertion.test_task import batches, task_of
from tree_fairseq.errors import InputError
from tree_fairseq.tree_insertion import sequence_insertion, sequence_model, tree_gru  # noqa: F401  (register)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("programs"), (60, 10, 10))
    return preprocess(corpus, tmp_path_factory.mktemp("data") / "bin")


@pytest.mark.parametrize(
    "arch, name",
    [
        ("insertion_left_to_right_tiny", "prev_output_tokens"),
        ("sequence_insertion_transformer_tiny", "partial_sequence"),
    ],
)
def test_models_are_given_sequences(folder, arch, name):
    task = task_of(folder)
    model = task.build_model(arguments(arch))
    largest = task.insertion.splits["train"].largest
    assert len(model.sequences) == len(task.target_dictionary) + 2 * largest == len(model.decoder.embed_tokens.weight)
    for batch in batches(task, "train"):
        assert set(batch["net_input"]) == {"src_tokens", "src_lengths", name}
        output = model(**batch["net_input"])
        logits = output["logits"] if isinstance(output, dict) else output[0]
        assert logits.shape[-1] == len(model.sequences) and torch.isfinite(logits).all()


def test_supervision_reaches_the_batches(folder):
    def shares(**options):
        task = task_of(folder, **options)
        task.build_model(arguments("sequence_insertion_transformer_tiny"))
        return torch.cat([batch["slot_target"]["probability"] for batch in batches(task, "train")])

    uniform = shares(sequence_supervision="uniform")
    assert torch.allclose(1 / uniform, (1 / uniform).round(), atol=1e-4)
    assert shares(target_temperature=10.0).std() < shares(target_temperature=1.0).std() < shares().std()


def test_what_writes_no_trees_is_refused(folder):
    with pytest.raises(InputError, match="--arch transformer writes no trees"):
        task_of(folder).build_model(arguments("transformer", *stock_flags()))
    with pytest.raises(InputError, match="--deletion"):
        task_of(folder, deletion=True).build_model(arguments("tree_gru_tiny"))
