"""``--as-published`` sets what the papers have, is refused beside a flag that says otherwise, and is kept."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.nn import tiny
from tests.tree_positional.symbol_pairs import Pairs
from tree_fairseq.classification import tree_transformer_classifier, treeformer_classifier  # noqa: F401  (registers)
from tree_fairseq.errors import InputError
from tree_fairseq.tree_insertion import model as tree_insertion  # noqa: F401
from tree_fairseq.treeformer import model as treeformer  # noqa: F401

PUBLISHED = {
    "tree_transformer_tiny": {"no_phrase_bias": True, "leaves_to_ancestors": False},
    "treeformer_tiny": {"treeformer_composition_init": "random", "no_phrase_bias": True},
    "tree_positional_transformer_tiny": {"tree_decay_init": "paper", "query_position": False},
    "tree_insertion_transformer_tiny": {"copy_source": False, "distance_bias": "none"},
    "tree_transformer_classifier_tiny": {"document_root": "first"},
    "treeformer_classifier_tiny": {"treeformer_composition_init": "random", "no_chart_scale": True},
}
OURS = {"no_phrase_bias": False, "treeformer_composition_init": "mean", "tree_decay_init": "uniform"}


@pytest.mark.parametrize("arch", PUBLISHED)
def test_the_default_is_ours_and_the_flag_is_the_paper_s(arch):
    ours, published = tiny.arguments(arch), tiny.arguments(arch, "--as-published")
    assert not ours.as_published and published.as_published
    for name, value in PUBLISHED[arch].items():
        assert getattr(published, name) == value and getattr(ours, name) == OURS.get(name, getattr(ours, name)), name


CONTRARY = [
    *((arch, "--distance-bias linear") for arch in PUBLISHED),
    ("tree_positional_transformer_tiny", "--query-position"),
    ("tree_positional_transformer_tiny", "--tree-decay-init uniform"),
    ("treeformer_tiny", "--treeformer-composition-init mean"),
    ("tree_insertion_transformer_tiny", "--copy-source"),
]


@pytest.mark.parametrize(("arch", "flag"), CONTRARY)
def test_a_flag_that_contradicts_the_paper_is_refused(arch, flag):
    tiny.arguments(arch, *flag.split())
    with pytest.raises(InputError, match=f"{flag.split()[0]} does not work with --as-published"):
        tiny.arguments(arch, "--as-published", *flag.split())


@pytest.mark.parametrize("arch", ["tree_transformer_tiny", "treeformer_tiny"])
def test_a_published_model_knows_no_other_model_s_start(arch):
    task = tiny.tiny_task()
    stock, published = (
        tiny.build(task, *flags, arch=own, seed=3).state_dict()
        for own, flags in (("transformer", tiny.stock_flags()), (arch, ["--as-published"]))
    )
    assert not any("phrase_bias" in name for name in published)
    assert not torch.equal(published["decoder.output_projection.weight"], stock["decoder.output_projection.weight"])
    assert torch.equal(published["encoder.embed_tokens.weight"], stock["encoder.embed_tokens.weight"])  # drawn first


@pytest.mark.parametrize("decays", ["paper", None])
def test_checkpoints_of_other_defaults_load_as_they_were_trained(decays):
    """Their arguments have the defaults of their time, or none if an option is younger than they are."""
    pairs = Pairs(True, True)
    args = tiny.arguments("tree_positional_transformer_tiny")
    for name in ("as_published", *(["tree_decay_init"] if decays is None else [])):
        delattr(args, name)
    args.tree_decay_init = decays or "uniform"
    torch.manual_seed(1)
    trained = type(pairs.model()).build_model(copy.copy(args), pairs.task).eval()
    loaded = type(trained).build_model(args, pairs.task).eval()
    loaded.load_state_dict(trained.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(*(model(**pairs.net_input())[0] for model in (trained, loaded)), rtol=0, atol=0)
    assert args.tree_decay_init == (decays or "uniform") and not args.as_published
