"""Sequence models of trees: what may and what may not change their output, and a GRU that follows trees by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from tests.nn.tiny import build, tiny_task
from tests.tree_insertion.insertion_pairs import LABELS, Examples, insertion_task
from tree_fairseq.errors import MissingTreesError
from tree_fairseq.tree_insertion import sequences, tree_gru  # noqa: F401  (register)
from tree_fairseq.tree_insertion.tree_gru import bracket_links

PAD, EOS = 1, 2
NUMBERS = 3
FIRST = LABELS + 5  # of the brackets
EXAMPLES = Examples(1, 1, 1, seed=2)
TOKENS = [
    [FIRST, 5, 6, FIRST + 2, 7, 8, FIRST + 1, 9, FIRST + 3],
    [5],
    [FIRST, 6, FIRST + 2, 7, FIRST + 4, 5, 8, FIRST + 1, 6, FIRST + 3, FIRST + 5],
]
VARIANTS = {
    "left to right": ("insertion_left_to_right_tiny", ()),
    "left to right, tree": ("insertion_left_to_right_tiny", ("--insertion-encoder", "tree", "--decoder-learned-pos")),
    "tree gru": ("tree_gru_tiny", ("--decoder-layers", "2")),
    "tree gru, tree": ("tree_gru_tiny", ("--insertion-encoder", "tree", "--share-decoder-input-output-embed")),
    "insertion": ("sequence_insertion_transformer_tiny", ()),
    "insertion, tree": (
        "sequence_insertion_transformer_tiny",
        ("--insertion-encoder", "tree", "--share-decoder-input-output-embed"),
    ),
}
CAUSAL = [name for name in VARIANTS if "insertion" not in name]
INSERTING = [name for name in VARIANTS if "insertion" in name]


def model_of(variant: str, *flags: str):
    arch, own = VARIANTS[variant]
    task = insertion_task()
    task.insertion = SimpleNamespace(numbered=True, splits={"train": SimpleNamespace(largest=NUMBERS)})
    return build(task, *own, *flags, arch=arch).double()


def inputs_of(variant: str, rows=(0, 1, 2), spare: int = 0) -> dict:
    inputs = EXAMPLES.net_input(list(rows), spare=spare, trees="tree" in VARIANTS[variant][1])
    del inputs["partial_tree"]
    return inputs


def stacked(rows: list[list[int]], spare: int = 0) -> torch.Tensor:
    width = max(map(len, rows)) + spare
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


@pytest.mark.parametrize("variant", CAUSAL)
def test_an_example_alone_a_step_at_a_time_equals_the_batch(variant):
    model, rows = model_of(variant), [[EOS, *tokens] for tokens in TOKENS]
    assert len(model.sequences) == FIRST + 2 * NUMBERS
    with torch.no_grad():
        together, _ = model(**inputs_of(variant, spare=2), prev_output_tokens=stacked(rows, spare=2))
        assert together.shape[2] == len(model.sequences)
        for row, tokens in enumerate(rows):
            encoder_out, state = model.read(**inputs_of(variant, [row])), {}
            for length in range(1, len(tokens) + 1):
                logits, _ = model.decoder(
                    torch.tensor([tokens[:length]]), encoder_out=encoder_out, incremental_state=state
                )
                torch.testing.assert_close(logits[0, -1], together[row, length - 1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", ["tree gru", "tree gru, tree"])
def test_states_move_with_hypotheses(variant):
    model = model_of(variant)
    prefixes = torch.tensor([[EOS, FIRST, 5, 6], [EOS, FIRST, 7, FIRST + 2]])
    order = torch.tensor([1, 1, 0])
    sources = inputs_of(variant, [0, 0])
    with torch.no_grad():
        encoder_out, state = model.read(**sources), {}
        model.decoder.set_beam_size(1)
        for length in range(1, 4):
            model.decoder(prefixes[:, :length], encoder_out=encoder_out, incremental_state=state)
        model.decoder.reorder_incremental_state_scripting(state, order)
        moved = model.encoder.reorder_encoder_out(encoder_out, order)
        found, _ = model.decoder(prefixes[order], encoder_out=moved, incremental_state=state)
        expected, _ = model(**inputs_of(variant, [0, 0, 0]), prev_output_tokens=prefixes[order])
        torch.testing.assert_close(found[:, -1], expected[:, -1], rtol=1e-6, atol=1e-6)


def states_by_recursion(cell, inputs: list[torch.Tensor], tokens: list[int]) -> list[torch.Tensor]:
    """The states of a layer, one column after the other with a stack of what is open."""
    nothing = inputs[0].new_zeros(cell.hidden_size)
    states: list[torch.Tensor] = []
    opened: list[torch.Tensor] = []  # the states that predicted the brackets that are open
    for vector, token in zip(inputs, tokens):
        previous = states[-1] if states else nothing
        if token >= FIRST and (token - FIRST) % 2 == 0:
            opened.append(previous)
        elif token >= FIRST:
            previous = opened.pop()
        parent = opened[-1] if opened else nothing
        states.append(cell(torch.cat([vector, parent])[None], previous[None])[0])
    return states


def test_the_gru_follows_the_tree():
    model = model_of("tree gru")
    decoder = model.decoder
    rows = [[EOS, *tokens] for tokens in TOKENS]
    logits, _ = model(**inputs_of("tree gru"), prev_output_tokens=stacked(rows))
    weights = [
        torch.randn(len(row), logits.size(2), dtype=torch.double, generator=torch.Generator().manual_seed(1))
        for row in rows
    ]
    sum((logits[row, : len(tokens)] * weights[row]).sum() for row, tokens in enumerate(rows)).backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    total = 0.0
    for row, tokens in enumerate(rows):
        encoder_out = model.read(**inputs_of("tree gru", [row]))
        states = list(decoder.embed_tokens.weight[tokens])
        for cell in decoder.cells:
            states = states_by_recursion(cell, states, tokens)
        memory = encoder_out["encoder_out"][0]
        query = torch.stack(states)[:, None]
        attended, _ = functional.multi_head_attention_forward(
            query, memory, memory, query.size(2), decoder.attention.num_heads, None,
            torch.cat([getattr(decoder.attention, f"{part}_proj").bias for part in "qkv"]), None, None, False, 0.0,
            decoder.attention.out_proj.weight, decoder.attention.out_proj.bias,
            need_weights=False, use_separate_proj_weight=True,
            q_proj_weight=decoder.attention.q_proj.weight, k_proj_weight=decoder.attention.k_proj.weight,
            v_proj_weight=decoder.attention.v_proj.weight,
        )  # fmt: skip
        joined = torch.tanh(decoder.join(torch.cat([query, attended], dim=2)))[:, 0]
        expected = joined @ decoder.output_projection.weight.T
        torch.testing.assert_close(logits[row, : len(tokens)], expected, rtol=1e-6, atol=1e-6)
        total = total + (expected * weights[row]).sum()
    total.backward()
    for name, weight in model.named_parameters():
        if weight.grad is not None:
            torch.testing.assert_close(gradients[name], weight.grad, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", INSERTING)
def test_slots_are_between_tokens_that_see_each_other(variant):
    model, rows = model_of(variant), [[0, *tokens, EOS] for tokens in TOKENS]
    with torch.no_grad():
        partial = stacked(rows, spare=1)
        output = model(**inputs_of(variant, spare=2), partial_sequence=partial)
        width = partial.size(1)
        assert output["slot"].tolist() == [
            width * row + place for row, tokens in enumerate(rows) for place in range(len(tokens) - 1)
        ]
        memory = model.encode(**inputs_of(variant))
        for row, tokens in enumerate(rows):
            alone = torch.tensor([tokens])
            states, _ = model.decoder.extract_features(
                alone, model.read(**inputs_of(variant, [row])), full_context_alignment=True
            )
            pairs = [torch.cat([states[0, place + 1], states[0, place]]) for place in range(len(tokens) - 1)]
            expected = torch.stack([model.decoder.output_layer(model.slots(pair)) for pair in pairs])
            torch.testing.assert_close(output["logits"][output["slot"] // width == row], expected, rtol=1e-6, atol=1e-6)
            selected = model.decode(memory.select(torch.tensor([row])), alone)
            torch.testing.assert_close(selected["logits"], expected, rtol=1e-6, atol=1e-6)
        # The first slot sees the last token, as nothing is masked.
        changed = alone.clone()
        changed[0, -2] = 9
        assert not torch.allclose(model.decode(memory.select(torch.tensor([2])), changed)["logits"][0], expected[0])


@pytest.mark.parametrize("variant", INSERTING)
def test_several_partial_sequences_of_a_sentence_are_scored_as_each_alone(variant):
    model, sentences = model_of(variant), [2, 0, 0]
    partial = stacked([[EOS, *row, EOS] for row in TOKENS])
    together = model(**inputs_of(variant), partial_sequence=partial, sentences=torch.tensor(sentences))
    alone = model(**inputs_of(variant, sentences), partial_sequence=partial)
    assert together["slot"].equal(alone["slot"])
    torch.testing.assert_close(together["logits"], alone["logits"], rtol=1e-9, atol=1e-9)


def test_what_does_not_go_with_the_models_is_refused():
    with pytest.raises(MissingTreesError, match="--task tree_insertion"):
        build(tiny_task(), arch="tree_gru_tiny")


def links_by_stack(tokens: list[int]) -> tuple[list[int], list[int]]:
    """Finds previous siblings and parents token by token, with a stack."""
    previous, parents = [], []
    opened: list[int] = []  # columns of the brackets that are open
    for column, token in enumerate(tokens):
        before = column - 1
        if token >= FIRST and (token - FIRST) % 2 == 0:
            opened.append(column)
        elif token >= FIRST and opened:
            before = opened.pop() - 1
        previous.append(before)
        parents.append(opened[-1] - 1 if opened else -1)
    return previous, parents


@given(
    st.lists(
        st.lists(st.sampled_from([4, 5, *range(FIRST, FIRST + 4)]), min_size=9, max_size=9), min_size=1, max_size=3
    )
)
def test_links_are_those_of_a_stack(rows):
    rows = [[2, *row] for row in rows]
    # A closing bracket that closes none is like a label, for what follows it, too.
    previous, parents = bracket_links(torch.tensor(rows), FIRST)
    expected = [links_by_stack(row) for row in rows]
    assert previous.tolist() == [links[0] for links in expected]
    assert parents.tolist() == [links[1] for links in expected]
    for column in range(1, 11):
        last = bracket_links(torch.tensor(rows)[:, :column], FIRST, last=True)
        assert [part.squeeze(1).tolist() for part in last] == [
            [links[side][column - 1] for links in expected] for side in (0, 1)
        ]
