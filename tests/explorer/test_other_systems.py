"""Systems of every architecture: each has the views that its parts allow, and no others."""

from __future__ import annotations

import pytest

from tests.explorer.untrained import untrained
from tree_fairseq import hub
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.systems import System

SMALL = (
    *("--encoder-layers", 1, "--encoder-embed-dim", 16, "--encoder-attention-heads", 2),
    *("--decoder-layers", 1, "--decoder-embed-dim", 16, "--decoder-attention-heads", 2),
)
LSTM = ("--encoder-embed-dim", 16, "--encoder-hidden-size", 16, "--decoder-embed-dim", 16, "--decoder-hidden-size", 16)
KINDS = {
    "a tree encoder of the registry": (
        ("data_bin", "tree_translation", "source_encoder_transformer_tiny", "--source-encoder", "tree"),
        ("tree_transformer", {"accumulation", "cross_attention"}),
    ),
    "a stock model": (("data_bin", "tree_translation", "transformer", *SMALL), ("sequence", {"cross_attention"})),
    "a recurrent model": (("data_bin", "translation", "lstm", *LSTM), ("sequence", set())),
    "a recurrent model of trees": (
        ("symbol_data", "structural_translation", "tree_to_tree_lstm_tiny"),
        ("tree_positional", {"beam", "output_tree"}),
    ),
    "a stock model of trees": (
        ("symbol_data", "structural_translation", "transformer", *SMALL),
        ("tree_positional", {"beam", "cross_attention", "output_tree"}),
    ),
    "left to right": (("insertion_data", "tree_insertion", "insertion_left_to_right_tiny"), ("sequence", set())),
    "a sequence": (("insertion_data", "tree_insertion", "sequence_insertion_transformer_tiny"), ("sequence", set())),
    "a Tree-LSTM that classifies": (
        ("class_data", "tree_classification", "tree_lstm_classifier_tiny"),
        ("classification", {"classification"}),
    ),
    "a transformer that classifies": (
        ("class_data", "tree_classification", "transformer_classifier_tiny"),
        ("classification", {"classification"}),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_those_that_a_system_has(request, kind):
    (data, task, arch, *flags), (method, views) = KINDS[kind]
    options = {} if task in ("tree_insertion", "tree_classification") else {"beam": 2, "max_len_b": 6}
    model = untrained(request.getfixturevalue(data), task, arch, *flags)
    system = System(model, **options)
    sentence = next(system.reader.read_split("test"))
    output = system.explain(sentence)
    assert system.record.method == method and output.error is None
    assert set(output.views) == views
    assert isinstance(output.metric, float)
    assert system.reference_tree(sentence) is not None or "output_tree" not in views


def test_an_ensemble_has_the_attention_of_its_first_model(tree_system, data_bin):
    other = untrained(data_bin, "tree_translation", "tree_transformer_tiny", seed=2)
    both = hub.TreeHubInterface(other.cfg, other.task, [*tree_system.models, *other.models]).eval()
    system = System(both, "ensemble", beam=2, max_len_b=8)
    [record] = Comparison([system]).document_of_split("test", 1).sentences
    alone = tree_system.explain(next(tree_system.reader.read_split("test", 1)))
    assert system.record.parameters == 2 * tree_system.record.parameters
    assert record.systems[0].views["accumulation"] == alone.views["accumulation"]
