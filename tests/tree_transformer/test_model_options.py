"""Labels and flags of the Tree-Transformer."""

from __future__ import annotations

import pytest
import torch

from tests.nn.tiny import PAD, build, net_input, pairs, stock_flags, tiny_task
from tree_fairseq.errors import MissingTreesError
from tree_fairseq.tree_transformer.model import INITIAL_ANCESTOR_BIAS

TASK = tiny_task()
BATCH = pairs(TASK, 7, 1, 4, 11, 2)


def logits(model, inputs=None) -> torch.Tensor:
    with torch.no_grad():
        return model(**(inputs or net_input(BATCH)))[0]


def is_new(name: str) -> bool:
    """A weight that fairseq's transformer does not have."""
    return any(part in name for part in ("embed_labels", ".accumulation.", ".phrase_bias."))


def test_an_encoder_may_have_no_layers():
    assert torch.isfinite(logits(build(TASK, "--encoder-layers", "0"))).all()


def test_a_task_without_trees_is_refused():
    task = tiny_task()
    del task.source_side
    with pytest.raises(MissingTreesError, match="--task tree_translation"):
        build(task)


def test_at_first_little_attention_lies_on_nodes():
    inputs = net_input(BATCH)
    with torch.no_grad():
        [of_leaves] = build(TASK)(**inputs)[1]["attn"]
    share = 1 - of_leaves.sum(-1)[inputs["prev_output_tokens"].ne(PAD)].mean()
    assert 0.01 < share < 0.1


def test_labels_have_a_table_of_their_own():
    joined = tiny_task(joined=True)
    model = build(joined, "--share-all-embeddings")
    assert model.encoder.embed_tokens is model.decoder.embed_tokens
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert model.encoder.embed_labels is not model.encoder.embed_tokens
    assert model.encoder.embed_labels.weight.shape == (len(joined.label_dictionary), 64)
    assert not model.encoder.embed_labels.weight[PAD].any()
    assert torch.isfinite(logits(model, net_input(pairs(joined, 7, 3)))).all()


# Ablations


def weights_only_in_the_full_model(*flags) -> set[str]:
    full, ablated = build(TASK).state_dict(), build(TASK, *flags).state_dict()
    assert {name: ablated[name].shape for name in ablated} == {name: full[name].shape for name in ablated}
    return set(full) - set(ablated)


def with_weights_of(model, *flags):
    """The ablated model with what it has of another's weights."""
    ablated = build(TASK, *flags, seed=9)
    own = ablated.state_dict()
    ablated.load_state_dict({name: weight for name, weight in model.state_dict().items() if name in own})
    return ablated


def test_no_hierarchical_embeddings_leaves_out_the_tables_alone():
    flag = "--no-hierarchical-embeddings"
    missing = weights_only_in_the_full_model(flag)
    assert missing and all(".accumulation.embeddings." in name for name in missing)
    full = build(TASK)
    ablated = with_weights_of(full, flag)
    assert not torch.allclose(logits(ablated), logits(full), atol=1e-3)
    for name, parameter in full.named_parameters():
        if name in missing:
            torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(logits(ablated), logits(full), rtol=1e-4, atol=1e-5)


def leaf_states(model) -> torch.Tensor:
    inputs = net_input(BATCH)
    del inputs["prev_output_tokens"]
    with torch.no_grad():
        states = model.encoder(**inputs)["encoder_out"][0]
    return states[: inputs["src_tokens"].size(1)].transpose(0, 1)[inputs["src_tokens"].ne(PAD)]


def test_no_subtree_mask_lets_leaves_see_nodes():
    """Same weights; only then do labels reach the leaves."""
    assert not weights_only_in_the_full_model("--no-subtree-mask")
    full = build(TASK)
    for model, reaches in ((full, False), (with_weights_of(full, "--no-subtree-mask"), True)):
        before = leaf_states(model)
        torch.nn.init.normal_(model.encoder.embed_labels.weight)
        assert torch.allclose(leaf_states(model), before, rtol=1e-4, atol=1e-5) != reaches


def test_leaves_see_the_nodes_above_them_and_no_others():
    flag = "--leaves-to-ancestors"
    full, model = build(TASK), build(TASK, flag)
    missing = set(model.state_dict()) - set(full.state_dict())
    assert missing and all(name.endswith(".self_attn.ancestor_bias") for name in missing)
    model.load_state_dict({**model.state_dict(), **full.state_dict()})
    assert all(model.state_dict()[name].eq(INITIAL_ANCESTOR_BIAS).all() for name in missing)
    for name in missing:
        model.get_parameter(name).data.fill_(-30.0)
    torch.testing.assert_close(leaf_states(model), leaf_states(full), rtol=1e-4, atol=1e-5)
    for name in missing:
        model.get_parameter(name).data.fill_(0.0)
    before = leaf_states(model)
    torch.nn.init.normal_(model.encoder.embed_labels.weight)
    assert not torch.allclose(leaf_states(model), before, atol=1e-3)


def test_without_attention_to_nodes_the_model_is_a_stock_transformer():
    """The encoder's leaves do not see nodes, so nothing of the trees remains."""
    missing = weights_only_in_the_full_model("--no-node-cross-attention")
    new = ("encoder_attn.accumulation.", "encoder_attn.phrase_bias.")
    assert missing and all(any(part in name for part in new) for name in missing)
    ablated = with_weights_of(build(TASK), "--no-node-cross-attention")
    stock = build(TASK, *stock_flags(), arch="transformer")
    stock.load_state_dict({name: weight for name, weight in ablated.state_dict().items() if not is_new(name)})
    inputs = net_input(BATCH)
    expected = logits(stock, {name: value for name, value in inputs.items() if name != "source_spans"})
    real = inputs["prev_output_tokens"].ne(PAD)
    torch.testing.assert_close(logits(ablated, inputs)[real], expected[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "flags", [("--accumulation-denominator", "nodes-only"), ("--vertical-embedding", "root-depth")]
)
def test_the_other_reading_of_the_paper_has_the_same_weights(flags):
    assert not weights_only_in_the_full_model(*flags)
    full = build(TASK)
    assert not torch.allclose(logits(with_weights_of(full, *flags)), logits(full), atol=1e-4)
