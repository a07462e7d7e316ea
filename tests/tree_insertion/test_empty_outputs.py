"""Models that insert nothing, or end at once, through ``fairseq-generate`` and its BLEU score."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.commands import hypotheses, run_in_process, script
from tests.end_to_end.insertion import preprocess, steps_and_marks, train
from tests.end_to_end.tiny_programs import write_corpus
from tree_fairseq.tree_insertion.target import ROOT_LABEL

CROSS_ENTROPY = ("--criterion", "label_smoothed_cross_entropy")
EOS = 2
# The layer whose output the labels are scored by; what is printed; and flags of training and of generation.
MODELS = {
    "sequence_insertion_transformer_tiny": ("slots", "", (), ()),
    "insertion_left_to_right_tiny": ("decoder.layer_norm", "", CROSS_ENTROPY, ("--min-len", 0, "--lenpen", 0)),
    "tree_gru_tiny": ("decoder.join", "", CROSS_ENTROPY, ("--min-len", 0, "--lenpen", 0)),
    "tree_insertion_transformer_tiny": ("decoder.slots.maps", ROOT_LABEL, (), ()),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("empty")
    return preprocess(write_corpus(place / "text", (8, 4, 4)), place / "bin")


def always_end(path, layer: str) -> None:
    """Changes the weights of a checkpoint so that EOS has the best score everywhere, whatever the input."""
    state = torch.load(path, weights_only=False)
    weights = state["model"]
    weights[f"{layer}.weight"].zero_()
    weights[f"{layer}.bias"].fill_(1)
    weights["decoder.output_projection.weight"].zero_()[EOS] = 1
    torch.save(state, path)


@pytest.mark.parametrize("arch", MODELS)
def test_empty_outputs_are_scored(arch, folder, tmp_path):
    layer, printed, own, flags = MODELS[arch]
    train(folder, tmp_path, "--arch", arch, "--max-update", 1, "--no-epoch-checkpoints", *own)
    path = tmp_path / "checkpoint_last.pt"
    always_end(path, layer)
    command = [script("fairseq-generate"), folder, "--user-dir", "tree_fairseq", "--task", "tree_insertion"]
    found = run_in_process([*command, "--path", path, "--cpu", "--num-workers", 0, *flags])
    assert found.returncode == 0, found.stdout
    assert [text for text, _ in hypotheses(found.stdout).values()] == [printed] * 4
    assert all(marks for _, marks in steps_and_marks(found.stdout).values()) and "BLEU4 = 0.00" in found.stdout
