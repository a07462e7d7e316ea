"""Architectures and flags of the insertion-based tree decoder."""

from __future__ import annotations

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

from tests.nn.tiny import arguments, build, tiny_task
from tests.tree_insertion.insertion_pairs import TINY, Examples, build_insertion, insertion_task
from tree_fairseq.errors import InputError, MissingTreesError

SIZES = {  # layers, width, feed-forward, heads: section 4 of the paper
    "tree_insertion_transformer": (6, 512, 2048, 8),
    "tree_insertion_transformer_overnight": (6, 768, 3072, 12),
    TINY: (2, 64, 128, 4),
}
EXAMPLES = Examples(5, 3)


@pytest.mark.parametrize("arch", SIZES)
def test_architectures_have_their_sizes(arch):
    args = arguments(arch)
    for side in ("encoder", "decoder"):
        names = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
        assert tuple(getattr(args, f"{side}_{name}") for name in names) == SIZES[arch]
        assert getattr(args, f"{side}_normalize_before")


def test_the_architectures_are_those_of_the_table():
    assert {name for name in ARCH_CONFIG_REGISTRY if name.startswith("tree_insertion")} == set(SIZES)


@pytest.mark.parametrize(
    "flags",
    [
        ("--decoder-embed-dim", "32", "--decoder-attention-heads", "2"),
        ("--decoder-embed-dim", "32", "--decoder-output-dim", "24"),
        ("--share-decoder-input-output-embed", "--layernorm-embedding"),
        ("--decoder-embed-dim", "32", "--absolute-positions", "--no-decoder-final-norm"),
        ("--dropout", "0.3", "--attention-dropout", "0.2", "--activation-dropout", "0.2"),
    ],
)
def test_flags_of_fairseqs_transformer(flags):
    model = build_insertion(*flags).train()
    output = model(**EXAMPLES.net_input())
    assert output["logits"].isfinite().all() and output["logits"].size(1) == 14
    output["logits"].sum().backward()


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--checkpoint-activations",), "--checkpoint-activations does not work"),
        (("--decoder-layerdrop", "0.1"), "--decoder-layerdrop does not work"),
        (("--insertion-encoder", "pretrained"), "Give it: --encoder-path"),
    ],
)
def test_options_that_do_not_go_together_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        build_insertion(*flags)


def test_a_task_with_other_targets_is_refused():
    with pytest.raises(MissingTreesError, match="use --task tree_insertion"):
        build(tiny_task(), arch=TINY)


def test_an_encoder_of_trees_needs_them():
    task = insertion_task()
    assert build(task, "--insertion-encoder", "tree", arch=TINY).tree_inputs == ("source_spans",)
    assert build(task, arch=TINY).tree_inputs == ()
    del task.source_side
    with pytest.raises(MissingTreesError, match="preprocess with --tree-parser"):
        build(task, "--insertion-encoder", "tree", arch=TINY)
