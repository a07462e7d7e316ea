"""Copying from the source: the mixture and the pointer against loops and fairseq's example, texts, checkpoints."""

from __future__ import annotations

import copy
import functools
from types import SimpleNamespace

import pytest
import torch
from fairseq.examples.pointer_generator.pointer_generator_src.transformer_pg import TransformerPointerGeneratorDecoder
from fairseq.models.fairseq_decoder import FairseqDecoder
from torch.nn import functional

from tests.nn.direct_copying import (
    assert_equal_gradients,
    direct_copying,
    direct_mixture,
    direct_places,
    direct_symbols,
)
from tests.nn.tiny import EOS, PAD, build, dictionary, last_loss, net_input, pairs, stock_flags, tiny_task
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, texts_of
from tree_fairseq.errors import InputError
from tree_fairseq.nn.copying import mixture
from tree_fairseq.nn.shared_names import SharedNames
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding

STOCK = "source_encoder_transformer_tiny"
WORDS = dictionary("x", "y@@", "Y", "z", "of@@", "both", ".@@")
SYMBOLS = ('Name\\s"x^0', '"x^0', '"y^0', '"and^0', '"Both^0', '"yy^0', 'arg\\s"X^0', 'Name\\s"y^0')
SYMBOLS += ('"\\s^0', 'Name\\s"^1', 'Name\\s"^2', 'arg\\s"^2', "List\\selts*2^2")
TARGETS = SymbolDictionary(dictionary(*SYMBOLS), SymbolEncoding("dfs", "none"), notation_named("python"))
NAMES = SharedNames(WORDS, TARGETS)


def stock_inputs(task, *lengths: int) -> dict:
    """What a model without trees reads."""
    inputs = net_input(pairs(task, *lengths))
    del inputs["source_spans"]
    return inputs


def mix(logits, weights, tokens, gate, names: SharedNames, with_lengths: bool = False) -> torch.Tensor:
    """The mixture without the pointer's own weights."""
    return mixture(logits, weights, gate, names.find(tokens).symbols if with_lengths else names.of_tokens(tokens))


def random_batch(seed: int, rows: int = 4, columns: int = 3, width: int = 7):
    """Logits, attention, tokens and gates; sources have padding, words twice, and words that no target has."""
    torch.manual_seed(seed)
    tokens = torch.randint(4, len(WORDS), (rows, width))
    for row in range(rows):
        tokens[row, row + 3 :] = PAD
        tokens[row, row + 2] = EOS
    attention = torch.randn(rows, columns, width).double().masked_fill(tokens.eq(PAD)[:, None], -torch.inf).softmax(2)
    return torch.randn(rows, columns, len(TARGETS)).double(), attention, tokens, torch.randn(rows, columns, 1).double()


# The mixture


@pytest.mark.parametrize("seed", range(8))
def test_the_mixture_and_its_gradients_equal_loops(seed):
    logits, attention, tokens, gate = random_batch(seed)
    if seed >= 5:  # sources of fewer tokens than there are groups, the last of them with one word twice
        tokens = torch.tensor([[[4, 8], [5, 6], [4, 4]][seed - 5]] * 4)
        attention = functional.normalize(attention[..., :2], p=1, dim=2)
        assert tokens.size(1) < min(len(groups.symbols) for groups in NAMES.groups)
    weights = torch.randn(logits.shape).double()
    found = []
    for computed in ("fast", "direct"):
        leaves = [part.clone().requires_grad_() for part in (logits, attention, gate)]
        if computed == "fast":
            scores = mix(leaves[0], leaves[1], tokens, leaves[2], NAMES, True)
        else:
            source = [direct_places([WORDS[token] for token in row]) for row in tokens.tolist()]
            scores = direct_mixture(*leaves, source, direct_symbols(TARGETS)).log()
        found.append([scores, *torch.autograd.grad((scores * weights).sum(), leaves)])
    fast, direct = found
    torch.testing.assert_close(fast[0], direct[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(fast[1::2], direct[1::2], rtol=1e-10, atol=1e-12)
    # How what is lost is distributed changes with weights that do not sum to one; they always do.
    of_logits = [part[2] - (part[2] * attention).sum(2, keepdim=True) for part in (fast, direct)]
    torch.testing.assert_close(*(part.masked_fill(attention == 0, 0) for part in of_logits), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size, dtype", [(1, torch.float64), (60, torch.float32), (300, torch.float32)])
def test_probabilities_sum_to_one_and_gradients_are_finite(size, dtype):
    """Also where everything or nothing is copied, and for symbols that are never generated."""
    logits, attention, tokens, gate = random_batch(7)
    leaves = [part.to(dtype).requires_grad_() for part in (logits * size, attention, gate * size)]
    scores = mix(leaves[0], leaves[1], tokens, leaves[2], NAMES, True)
    torch.testing.assert_close(scores.exp().sum(2), torch.ones(4, 3, dtype=dtype), rtol=1e-4, atol=1e-4)
    functional.cross_entropy(scores.flatten(0, 1), torch.arange(12) % len(TARGETS)).backward()
    assert all(torch.isfinite(leaf.grad).all() for leaf in leaves)


def test_a_source_without_shared_texts_generates():
    names = SharedNames(dictionary("a", "b"), TARGETS)
    logits, attention, tokens, gate = random_batch(3)
    scores = mix(logits, attention, tokens.clamp(max=5), gate, names)
    torch.testing.assert_close(scores, logits.log_softmax(2))


def test_with_a_joined_dictionary_it_is_fairseqs_pointer_generator():
    """Their words are their own texts; attention to the end of the source copies nothing here, so it has none."""
    words = dictionary(*"abcdefgh")
    logits, attention, tokens, gate = random_batch(1)
    logits = logits[..., :1].new_tensor(torch.randn(4, 3, len(words)).tolist())
    attention = functional.normalize(attention.masked_fill((tokens < 4)[:, None], 0), p=1, dim=2)
    decoder = SimpleNamespace(force_p_gen=None, adaptive_softmax=None, num_oov_types=0, onnx_trace=False)
    decoder.num_types = decoder.num_embeddings = len(words)
    decoder.output_projection = torch.nn.Identity()
    decoder.get_normalized_probs_scriptable = functools.partial(FairseqDecoder.get_normalized_probs_scriptable, decoder)
    logits, attention, gate = (part.float() for part in (logits, attention, gate))  # as theirs are
    theirs = TransformerPointerGeneratorDecoder.output_layer(decoder, logits, attention, tokens, gate.sigmoid())
    ours = mix(logits, attention, tokens, gate, SharedNames(words, words))
    torch.testing.assert_close(ours.exp(), theirs, rtol=1e-5, atol=1e-6)


# Texts


@pytest.mark.parametrize(
    "notation, binarization, symbols",
    [
        ("python", "none", {'Name\\s"x^0': "x", '"get^0': "get", 'Name\\s"^2': None, "Module^0": None, '"\\s^0': " "}),
        ("bracket", "none", {"answer^1": None, "texas^0": "texas", "<null>": None, "<unk:0>": None, "word": None}),
        # In binary form a leaf may have a sibling.
        ("bracket", "lcrs", {"a^0": "a", "b^1": "b", "c^2": None}),
    ],
)
def test_texts_of_symbols_are_those_of_leaves_and_pieces(notation, binarization, symbols):
    made = SymbolDictionary(dictionary(*symbols), SymbolEncoding("dfs", binarization), notation_named(notation))
    assert texts_of(made) == [None] * made.nspecial + list(symbols.values())


def test_words_lose_the_marks_of_subwords():
    words = dictionary("x", "y@@", "\u2581y", "z", "of")
    assert texts_of(words)[words.nspecial :] == ["x", "y", "y", "z", "of"]


# The pointer of a model


@pytest.mark.parametrize("arch", [STOCK, "transformer_distance_bias_tiny"])
def test_a_model_copies_as_the_equations_say(arch):
    task = SimpleNamespace(source_dictionary=WORDS, target_dictionary=TARGETS)
    model = build(task, "--copy-source", arch=arch).double()
    torch.nn.init.constant_(model.decoder.pointer.bonuses[1], 2)
    # Names of several pieces, written from their beginning, are frequent among these.
    torch.manual_seed(0)
    some = torch.tensor([WORDS.index(word) for word in ("y@@", "y@@", "y@@", "x", "Y", "of@@", "both", ".@@")])
    tokens = some[torch.randint(8, (4, 14))]
    tokens[1, 9:], tokens[3, 12:] = PAD, PAD
    some = torch.tensor([TARGETS.index(each) for each in ('"y^0', '"y^0', '"y^0', '"x^0', *SYMBOLS[-5:])])
    previous = some[torch.randint(9, (4, 30))]
    found, _ = model(tokens, tokens.ne(PAD).sum(1), previous)
    decoder, encoder_out = model.decoder, model.encoder(tokens)
    states, _ = decoder.extract_features(previous, encoder_out)
    memory = encoder_out["encoder_out"][0].transpose(0, 1)
    embedded = decoder.embed_scale * decoder.embed_tokens(previous)
    expected = direct_copying(model, states, memory, tokens, previous, embedded)
    torch.testing.assert_close(found.exp(), expected, rtol=1e-9, atol=1e-12)
    assert_equal_gradients(found.exp(), expected, list(decoder.pointer.parameters()))
    with torch.no_grad():
        state, steps = {}, range(1, 1 + previous.size(1))
        in_steps = [decoder(previous[:, :step], encoder_out, incremental_state=state)[0] for step in steps]
        # fairseq's positions are single precision.
        torch.testing.assert_close(torch.cat(in_steps, dim=1), found, rtol=1e-5, atol=1e-6)
        decoder.pointer.names.is_blank.zero_()
        assert not torch.allclose(model(tokens, tokens.ne(PAD).sum(1), previous)[0], found)
        for place in range(4):
            kept = decoder.pointer.bonuses.clone()
            decoder.pointer.bonuses[place] += 1
            assert not torch.allclose(model(tokens, tokens.ne(PAD).sum(1), previous)[0], found)
            decoder.pointer.bonuses.copy_(kept)


@pytest.mark.parametrize("arch", [STOCK, "tree_transformer_tiny"])
def test_a_search_finds_names_once_and_forgets_finished_sentences(arch, monkeypatch):
    """Sentences of one beam or two; the first of them ends after three steps."""
    task = tiny_task(joined=True)
    model = build(task, "--copy-source", arch=arch)
    torch.nn.init.constant_(model.decoder.pointer.bonuses, 2)
    torch.manual_seed(0)
    lengths = (7, 7, 7)  # fairseq's encoder leaves out a mask of padding
    inputs = net_input(pairs(task, *lengths)) if arch != STOCK else stock_inputs(task, *lengths)
    encoder, decoder = model.encoder, model.decoder
    with torch.no_grad():
        encoder_out = model.read(**{name: value for name, value in inputs.items() if name != "prev_output_tokens"})
        found, find = [], SharedNames.find
        monkeypatch.setattr(SharedNames, "find", lambda self, tokens: found.append(1) or find(self, tokens))
        rows = torch.tensor([0, 0, 1, 1, 2, 2])
        previous = torch.randint(4, len(task.target_dictionary), (6, 6))
        encoder_out = encoder.reorder_encoder_out(encoder_out, rows)
        expected, _ = decoder(previous, encoder_out)
        del found[:]
        state, order = {}, torch.arange(6)
        for step, moved in enumerate([[0, 0, 3, 2, 4, 5], [1, 0, 2, 3, 5, 4], [3, 2, 4, 5], [1, 0, 3, 3], [2, 3]], 1):
            scores, _ = decoder(previous[order, :step], encoder_out, incremental_state=state)
            torch.testing.assert_close(scores[:, 0], expected[order, step - 1], rtol=1e-5, atol=1e-5)
            moved = torch.tensor(moved)
            decoder.reorder_incremental_state_scripting(state, moved)
            encoder_out, order = encoder.reorder_encoder_out(encoder_out, moved), order[moved]
        scores, _ = decoder(previous[order], encoder_out, incremental_state=state)
        torch.testing.assert_close(scores[:, 0], expected[order, 5], rtol=1e-5, atol=1e-5)
    assert len(found) == 1


def test_names_of_a_source_are_found_in_subwords_of_either_kind_and_in_trees():
    programs = SymbolDictionary(
        dictionary('Name\\s"^2', '"get^0', '"x^0', 'Name\\s"y^0', 'arg\\s"^1'), TARGETS.encoding, TARGETS.notation
    )
    sentencepiece = dictionary("\u2581get", "x", "\u2581y", ".", "\u2581")
    for source, tokens, names in [
        (WORDS, "x y@@ Y .@@ of@@ both both z", "1 2 -1 0 2 -1 1 1"),
        (WORDS, "y@@ .@@ y@@ y@@ of@@ x x", "1 0 4 -1 -2 -3 1"),
        (sentencepiece, "\u2581get x . \u2581y \u2581get x x", "2 -1 0 1 3 -1 -2"),
        (programs, 'Name\\s"^2 "get^0 "x^0 arg\\s"^1 "x^0 Name\\s"y^0', "0 2 -1 0 1 0"),
    ]:
        ids = [source.eos(), *(source.index(token) for token in tokens.split(" ")), source.eos(), source.pad()]
        found = SharedNames(source, TARGETS).find(torch.tensor([ids]))
        assert " ".join(map(str, (found.lengths - found.before)[0].tolist())) == f"0 {names} 0 0"


def test_the_rest_of_a_model_starts_as_without_a_pointer():
    task = tiny_task(joined=True)
    plain, copying = build(task, arch=STOCK), build(task, "--copy-source", arch=STOCK)
    rest = {name: weight for name, weight in copying.state_dict().items() if not name.startswith("decoder.pointer.")}
    torch.testing.assert_close(rest, dict(plain.state_dict()), rtol=0, atol=0)
    assert plain.decoder.pointer is None and "forward" not in vars(plain.encoder)


@pytest.mark.parametrize(
    "before, after", [("transformer", STOCK), ("transformer", "tree_transformer_tiny"), (STOCK, STOCK)]
)
def test_training_goes_on_from_a_checkpoint_without_a_pointer(before, after):
    task = tiny_task(joined=True)
    sizes = stock_flags() if before == "transformer" else []
    weights = build(task, *sizes, arch=before, seed=3).state_dict()
    model = build(task, "--copy-source", arch=after)
    model.load_state_dict(copy.deepcopy(weights))
    assert torch.equal(model.decoder.embed_tokens.weight, weights["decoder.embed_tokens.weight"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_mixes_in_single_precision(dtype):
    task = tiny_task(joined=True)
    model = build(task, "--copy-source", arch=STOCK)
    inputs = stock_inputs(task, 5, 3)
    with torch.no_grad():
        expected, _ = model(**inputs)
        found, _ = model.to(dtype)(**inputs)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.2)
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(**inputs)[0].float(), expected, rtol=0.1, atol=0.2)


def test_a_copy_of_a_model_reads_its_own_encoder():
    """Averages of weights are kept in a deep copy."""
    task = tiny_task(joined=True)
    model = build(task, "--copy-source", arch=STOCK)
    other = copy.deepcopy(model)
    torch.nn.init.ones_(other.encoder.embed_tokens.weight)
    tokens = stock_inputs(task, 5)["src_tokens"]
    states = [each.encoder(tokens)["encoder_out"][0] for each in (model, other)]
    assert not torch.allclose(*states, atol=1e-3)


@pytest.mark.parametrize("flags", [("--adaptive-softmax-cutoff", "10,20"), ("--no-cross-attention",)])
def test_flags_that_leave_nothing_to_mix_are_refused(flags):
    with pytest.raises(InputError, match=f"{flags[0]} does not work with --copy-source"):
        build(tiny_task(joined=True), "--copy-source", *flags, arch=STOCK)


@pytest.mark.parametrize("flags", [(), ("--copy-source",)])
def test_words_that_training_never_has_as_targets_are_copied(flags):
    """The task is to write the word after `name`; it has forty words that training never has there."""
    words = dictionary("name", *(f"w{number}" for number in range(240)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    model = build(task, *flags, "--dropout", "0", arch=STOCK).train()
    torch.manual_seed(1)

    def batch(first: int, last: int) -> tuple[dict, torch.Tensor]:
        chosen = torch.randint(first, last, (32,))
        tokens = torch.randint(5, len(words), (32, 6))
        tokens[:, 1], tokens[:, 2], tokens[:, 5] = words.index("name"), chosen, EOS
        previous = torch.full((32, 1), EOS)
        return {"src_tokens": tokens, "src_lengths": torch.full((32,), 6), "prev_output_tokens": previous}, chosen

    def loss_of() -> torch.Tensor:
        inputs, chosen = batch(5, 205)
        return functional.cross_entropy(model(**inputs)[0][:, 0], chosen)

    last_loss(model, loss_of, updates=250, rate=2e-3)
    inputs, chosen = batch(205, 245)
    right = model.eval()(**inputs)[0][:, 0].argmax(1).eq(chosen).float().mean()
    assert right > 0.3 if flags else right < 0.1
