"""The insertion-based tree decoder: invariances, inputs that it reads, fairseq's decoder as its twin; its flags."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch
from fairseq import utils
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerDecoderBase
from torch.nn import functional

from tests.nn.direct_copying import assert_equal_gradients, direct_copying
from tests.nn.tiny import arguments, build, sizes_of, tiny_task
from tests.tree_insertion.insertion_pairs import TINY, Examples, build_insertion, insertion_task
from tests.tree_insertion.partial_trees import PAD
from tree_fairseq.data_bin.symbol_dictionary import texts_of
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.shared_memory import STATES, MemoryDecoder
from tree_fairseq.tree_insertion.model import TreeInsertionTransformerModel
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, KINDS
from tree_fairseq.tree_insertion.tree_shapes import CLOSING, NO_NEIGHBOUR, OPENING, ROLES, read_partial_trees

VARIANTS = {
    "transformer": (),
    "tree encoder": ("--insertion-encoder", "tree"),
    "leaves alone": ("--insertion-encoder", "tree", "--no-node-cross-attention", "--no-subtree-mask"),
    "no child relations": ("--no-child-relations",),
    "as published": ("--as-published", "--insertion-encoder", "tree"),
    "absolute": ("--absolute-positions",),
    "absolute, learned": ("--absolute-positions", "--decoder-learned-pos"),
    "copying": ("--copy-source",),
    "copying, tree encoder": ("--copy-source", "--insertion-encoder", "tree"),
}
each_variant = pytest.mark.parametrize("variant", VARIANTS)
EXAMPLES = Examples(7, 1, 4, 10, 2)


def inputs_of(variant: str, *args, **kwargs) -> dict:
    return EXAMPLES.net_input(*args, **kwargs, trees="tree" in VARIANTS[variant])


def dense(output: dict, inputs: dict) -> torch.Tensor:
    """Logits as ``[B, N, 4, V]``, zero where there is no slot."""
    batch, width = inputs["partial_tree"]["labels"].shape
    logits = output["logits"]
    return (
        logits.new_zeros(batch * width * KINDS, logits.size(1))
        .index_copy(0, output["slot"], logits)
        .view(batch, width, KINDS, -1)
    )


# Padding, rows and gradients


@each_variant
def test_several_partial_trees_of_a_sentence_are_scored_as_each_alone(variant):
    model = build_insertion(*VARIANTS[variant]).double()
    inputs = inputs_of(variant)
    partial = inputs.pop("partial_tree")
    sentences = torch.tensor([0, 0, 3, 3, 1])
    together = dense(model(**inputs, partial_tree=partial, sentences=sentences), {"partial_tree": partial})
    weights = torch.randn_like(together)
    (together * weights).sum().backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    alone = inputs_of(variant, sentences.tolist())
    alone = dense(model(**{**alone, "partial_tree": partial}), {"partial_tree": partial})
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)
    (alone * weights).sum().backward()
    for name, weight in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(gradients[name], weight.grad, rtol=1e-7, atol=1e-9)


@each_variant
@pytest.mark.parametrize("left_pad", [True, False])
def test_an_example_alone_equals_the_example_in_a_batch(variant, left_pad):
    model = build_insertion(*VARIANTS[variant]).double()
    inputs = inputs_of(variant, left_pad=left_pad, spare=2)
    with torch.no_grad():
        together = model(**inputs)
        for row in range(5):
            own = inputs_of(variant, [row])
            alone = model(**own)
            count = own["partial_tree"]["labels"].size(1)
            torch.testing.assert_close(dense(together, inputs)[row, :count], dense(alone, own)[0], rtol=1e-6, atol=1e-6)


@each_variant
def test_the_memory_can_be_kept_and_its_rows_chosen(variant):
    model = build_insertion(*VARIANTS[variant]).double()
    inputs = inputs_of(variant)
    partial = inputs.pop("partial_tree")
    with torch.no_grad():
        memory = model.encode(**inputs)
        expected = dense(model(**inputs, partial_tree=partial), {"partial_tree": partial})
        assert len(memory.layers[0].padding) == 5
        for rows in ([0, 1, 2, 3, 4], [3], [4, 0, 0, 2]):
            kept = read_partial_trees({name: partial[name][rows] for name in ("labels", "parents")}, PAD)
            output = model.decode(memory.select(torch.tensor(rows)), kept)
            width = kept["labels"].size(1)
            torch.testing.assert_close(dense(output, {"partial_tree": kept}), expected[rows][:, :width])


@each_variant
def test_decoding_scores_as_training_does(variant):
    """Decoding widens short rows of weights and pads in another way."""
    model = build_insertion(*VARIANTS[variant], "--dropout=0").double()
    inputs = inputs_of(variant)
    trained = model.train()(**inputs)["logits"]
    with torch.no_grad():
        decoded = model.eval()(**inputs)["logits"]
    torch.testing.assert_close(decoded, trained.detach(), rtol=1e-9, atol=1e-9)


@each_variant
def test_padding_gets_no_gradient_and_everything_else_does(variant):
    model = build_insertion(*VARIANTS[variant]).train()
    inputs = inputs_of(variant, spare=2)
    output = model(**inputs)
    functional.cross_entropy(output["logits"], output["slot"] % output["logits"].size(1)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
    for side in (model.encoder, model.decoder):
        assert not side.embed_tokens.weight.grad[PAD].any()


def test_a_slot_copies_as_the_equations_say():
    model = build_insertion("--copy-source").double()
    inputs = inputs_of("copying", spare=2)
    vectors: list[torch.Tensor] = []
    model.decoder.slots.register_forward_hook(lambda module, given, output: vectors.append(output))
    output = model(**inputs)
    tokens, pointer = inputs["src_tokens"], model.decoder.pointer
    assert set(texts_of(model.encoder.dictionary)) & set(texts_of(model.decoder.dictionary)) - {None}
    rows = output["slot"] // (KINDS * inputs["partial_tree"]["labels"].size(1))
    memory = model.encoder(tokens)["encoder_out"][0].transpose(0, 1)
    states = vectors[0].unsqueeze(1)  # Z x 1 x D
    expected = direct_copying(model, states, memory[rows], tokens[rows]).squeeze(1)
    torch.testing.assert_close(output["logits"].exp(), expected, rtol=1e-9, atol=1e-12)
    parameters = [*pointer.parameters(), *model.decoder.slots.parameters()]
    assert_equal_gradients(output["logits"].exp(), expected, parameters)


def test_which_child_a_node_is_shows_in_child_relations_alone():
    """Only relations tell the root's slot in which order its children are."""
    partial = read_partial_trees(
        {"labels": torch.tensor([[4, 5, 6, 7]]), "parents": torch.tensor([[-1, 0, 0, 0]])}, PAD
    )
    turned = {**partial, "labels": torch.tensor([[4, 7, 6, 5]])}
    source = EXAMPLES.net_input([0])
    del source["partial_tree"]
    differences = {}
    for flags in ((), ("--no-child-relations",)):
        model = build_insertion(*flags).double()
        # One layer less: what siblings know of each other does not come to the root in one.
        model.decoder.layers = model.decoder.layers[:1]
        with torch.no_grad():
            memory = model.encode(**source)
            memory = replace(memory, layers=memory.layers[:1])
            root, other = (model.decode(memory, tree)["logits"][0] for tree in (partial, turned))
        differences[flags] = float((root - other).abs().max())
    assert differences[()] > 1e-3 > 1e-9 > differences[("--no-child-relations",)]


# fairseq's decoder as the second implementation


def stock_states(model, inputs: dict, tokens: torch.Tensor, kind: type) -> torch.Tensor:
    """The states of a decoder of fairseq's with the same weights that sees the future too, ``[B, L, D]``."""
    stock = kind(model.cfg, model.decoder.dictionary, model.decoder.embed_tokens).double().eval()
    if not model.cfg.absolute_positions:
        stock.embed_positions = None
    own = stock.state_dict()
    stock.load_state_dict(
        {**own, **{name: weight for name, weight in model.decoder.state_dict().items() if name in own}}
    )
    if model.cfg.absolute_positions:
        table = torch.cat([model.decoder.embed_tokens.weight, model.decoder.embed_brackets.weight])
        stock.embed_tokens = torch.nn.Embedding.from_pretrained(table, padding_idx=PAD)
    source = {name: inputs[name] for name in ("src_tokens", "src_lengths", "source_spans") if name in inputs}
    return stock.extract_features(tokens, model.encoder(**source), full_context_alignment=True)[0]


def logits_of(model, states: torch.Tensor, inputs: dict) -> torch.Tensor:
    partial = inputs["partial_tree"]
    return model.decoder.output_layer(model.decoder.slots(states[partial["labels"] != PAD], partial["neighbours"]))


@pytest.mark.parametrize("variant", ["transformer", "tree encoder", "leaves alone"])
def test_without_relations_it_is_fairseqs_decoder_over_a_set_of_nodes(variant):
    model = build_insertion(*VARIANTS[variant]).double()
    inputs = inputs_of(variant)
    memory_type = model.decoder.memory_type
    kind = TransformerDecoderBase
    if memory_type is not STATES:
        kind = functools.partial(MemoryDecoder, memory_type=memory_type)
    with torch.no_grad():
        states = stock_states(model, inputs, inputs["partial_tree"]["labels"], kind)
        assert not torch.allclose(model(**inputs)["logits"], logits_of(model, states, inputs), atol=1e-3)
        torch.nn.init.zeros_(model.decoder.relations.keys)
        torch.nn.init.zeros_(model.decoder.relations.values)
        # fairseq takes the softmax of weights that it returns in single precision.
        torch.testing.assert_close(model(**inputs)["logits"], logits_of(model, states, inputs), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("flags", [(), ("--decoder-normalize-before",)])
def test_slots_as_published_are_tokens_of_fairseqs_decoder_under_a_mask(flags, monkeypatch):
    """Without relations: nodes see nodes, a slot its neighbours, and nobody a slot."""
    monkeypatch.setattr(utils, "softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
    args = arguments(TINY, "--as-published")
    args.decoder_normalize_before = bool(flags)
    model = TreeInsertionTransformerModel.build_model(args, insertion_task()).double().eval()
    for table in (*model.decoder.relations.parameters(), model.decoder.slots.keys, model.decoder.slots.values):
        torch.nn.init.zeros_(table)
    inputs = EXAMPLES.net_input([2])
    partial, count = inputs["partial_tree"], len(model.decoder.dictionary)
    kinds = torch.tensor([{DESCENDANT: 0, ANCESTOR: 1}.get(slot % KINDS, 2) for slot in partial["slots"].tolist()])
    tokens = torch.cat([partial["labels"], count + kinds.unsqueeze(0)], dim=1)
    nodes = partial["labels"].size(1)
    mask = torch.full((tokens.size(1), tokens.size(1)), -torch.inf, dtype=torch.float64)
    mask[:nodes, :nodes] = 0
    for slot, seen in enumerate(partial["neighbours"].tolist()):
        mask[nodes + slot, [number // ROLES for number in seen if number != NO_NEIGHBOUR]] = 0
    monkeypatch.setattr(TransformerDecoderBase, "buffered_future_mask", lambda self, x: mask)
    stock = TransformerDecoderBase(model.cfg, model.decoder.dictionary, model.decoder.embed_tokens).double().eval()
    stock.embed_positions = None
    own = stock.state_dict()
    stock.load_state_dict({name: model.decoder.state_dict().get(name, own[name]) for name in own})
    stock.embed_tokens = torch.nn.Embedding.from_pretrained(
        torch.cat([model.decoder.embed_tokens.weight, model.decoder.slots.embed]), padding_idx=PAD
    )
    with torch.no_grad():
        states = stock.extract_features(tokens, model.encoder(inputs["src_tokens"], inputs["src_lengths"]))[0]
        expected = model.decoder.output_layer(states[0, nodes:])
        torch.testing.assert_close(model(**inputs)["logits"], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("variant", ["absolute", "absolute, learned"])
def test_with_absolute_positions_it_is_fairseqs_decoder_over_brackets(variant, monkeypatch):
    # fairseq takes the softmax of weights that it returns in single precision.
    monkeypatch.setattr(utils, "softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
    model = build_insertion(*VARIANTS[variant]).double()
    opening, closing = model.decoder.embed_brackets.weight
    assert not torch.equal(opening, closing)  # nor zeros, as fairseq's function makes them without a padding
    inputs = EXAMPLES.net_input()
    partial = inputs["partial_tree"]
    count = len(model.decoder.dictionary)
    brackets, places, is_node = partial["brackets"], partial["bracket_places"], partial["labels"] != PAD
    tokens = torch.full(brackets.shape, PAD)
    tokens[brackets == OPENING], tokens[brackets == CLOSING] = count, count + 1
    tokens.view(-1)[places] = partial["labels"][is_node]
    with torch.no_grad():
        states = stock_states(model, inputs, tokens, TransformerDecoderBase)
        of_nodes = torch.zeros(*is_node.shape, states.size(2), dtype=states.dtype)
        of_nodes[is_node] = states.flatten(0, 1)[places]
        torch.testing.assert_close(model(**inputs)["logits"], logits_of(model, of_nodes, inputs))


SIZES = {  # layers, width, feed-forward, heads: section 4 of the paper
    "tree_insertion_transformer": (6, 512, 2048, 8),
    "tree_insertion_transformer_overnight": (6, 768, 3072, 12),
    TINY: (2, 64, 128, 4),
}


@pytest.mark.parametrize("arch", SIZES)
def test_architectures_have_their_sizes(arch):
    assert sizes_of(arch, normalize_before=True) == SIZES[arch]


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
