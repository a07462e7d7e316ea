"""Documents of sentences as rows against the Tree-Transformer's encoder on whole documents."""

from __future__ import annotations

import pytest
import torch
from fairseq.models.transformer import Embedding, TransformerConfig
from torch.utils._python_dispatch import TorchDispatchMode

from tests.classification.random_documents import PAD, Documents, completed
from tests.nn.tiny import arguments, tiny_task
from tree_fairseq.classification.classifier import DocumentStates
from tree_fairseq.classification.tree_transformer_classifier import DocumentEncoder
from tree_fairseq.errors import InputError
from tree_fairseq.tree_transformer.model import TreeTransformerEncoder

TASK = tiny_task()
SIZES = ([5, 1, 3], [1, 4], [6], [1], [2, 2, 1, 7])  # among them a document and first sentences of one leaf
FLAGS = (
    [],
    ["--no-hierarchical-embeddings"],
    ["--vertical-embedding", "root-depth", "--accumulation-denominator", "nodes-only"],
    ["--no-token-positional-embeddings", "--layernorm-embedding", "--encoder-normalize-before"],
)
WITHIN_SENTENCES = (
    ["--no-subtree-mask"],
    ["--distance-bias", "both"],
    ["--distance-bias", "both", "--no-subtree-mask"],
    ["--distance-bias", "both", "--leaves-to-ancestors"],
)
MODES = [(leaf_attention, root) for leaf_attention in ("document", "sentence") for root in ("first", "mean")]


def build(leaf_attention: str, document_root: str, *flags: str, kind=DocumentEncoder):
    """An encoder in double precision, all of whose kinds have the same weights."""
    cfg = TransformerConfig.from_namespace(arguments("tree_transformer_tiny", *flags))
    cfg.num_labels = len(TASK.label_dictionary)
    cfg.leaf_attention, cfg.document_root = leaf_attention, document_root
    torch.manual_seed(0)
    words = TASK.source_dictionary
    encoder = kind(cfg, words, Embedding(len(words), cfg.encoder.embed_dim, words.pad())).double().eval()
    for name, table in encoder.named_parameters():
        if ".distance_bias." in name:
            torch.nn.init.normal_(table)
    return encoder


def real_states(states: DocumentStates, documents: Documents) -> torch.Tensor:
    """Of all leaves and nodes that are no padding: ``[positions, D]``."""
    position, row, _, _ = documents.pairs()
    return torch.cat([states.leaves, states.nodes], dim=1)[row, position]


def assert_equal_with_gradients(fast, slow, fast_encoder, slow_encoder):
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)
    probe = torch.randn_like(slow)
    mine, theirs = (
        torch.autograd.grad(output, [*encoder.parameters()], probe, materialize_grads=True)
        for output, encoder in ((fast, fast_encoder), (slow, slow_encoder))
    )
    for (name, _), left, right in zip(fast_encoder.named_parameters(), mine, theirs):
        torch.testing.assert_close(left, right, rtol=1e-7, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("flags", FLAGS)
def test_leaves_that_see_documents_make_forests_of_them(flags):
    documents = Documents(SIZES)
    encoder = build("document", "first", *flags)
    dense_encoder = build("document", "first", *flags, kind=TreeTransformerEncoder)
    text, forest = documents.forests()
    dense = dense_encoder(text, source_spans=forest)["encoder_out"][0]
    states = encoder(documents.rows)
    _, _, column, document = documents.pairs()
    root_column = torch.tensor([text.size(1) if sentences[0] > 1 else 0 for sentences in SIZES])
    slow = torch.cat([dense[column, document], dense[root_column, torch.arange(len(SIZES))]])
    assert_equal_with_gradients(torch.cat([real_states(states, documents), states.roots]), slow, encoder, dense_encoder)


@pytest.mark.parametrize("flags", [*FLAGS, *WITHIN_SENTENCES])
def test_leaves_that_see_sentences_leave_them_alone(flags):
    documents = Documents(SIZES, extra=1)
    encoder = build("sentence", "first", *flags)
    alone_encoder = build("sentence", "first", *flags, kind=TreeTransformerEncoder)
    alone, roots = [], []
    for is_first, text, forest in documents.sentences():
        states = alone_encoder(text, source_spans=forest)["encoder_out"][0][:, 0]
        alone.append(states)
        if is_first:
            roots.append(states[text.size(1)] if len(states) > text.size(1) else states[0])
    states = encoder(documents.rows)
    fast = torch.cat([real_states(states, documents), states.roots])
    assert_equal_with_gradients(fast, torch.cat([*alone, torch.stack(roots)]), encoder, alone_encoder)


@pytest.mark.parametrize("flags", WITHIN_SENTENCES)
def test_options_of_sentences_are_refused_where_leaves_see_documents(flags):
    encoder = build("document", "first", *flags)
    encoder(Documents([[5], [3]]).rows)
    with pytest.raises(InputError, match=f"{flags[0]} does not work with documents.*add --leaf-attention sentence"):
        encoder(Documents(SIZES).rows)


@pytest.mark.parametrize("leaf_attention, document_root", MODES)
def test_what_a_root_depends_on(leaf_attention, document_root):
    """The tests of independence would pass if later sentences were ignored."""
    encoder, documents = build(leaf_attention, document_root), Documents([[4, 3, 5]])
    root = encoder(documents.rows).roots
    documents.rows["tokens"][2, 1] += 1
    changed = not torch.allclose(encoder(completed(documents.rows)).roots, root, atol=1e-6)
    assert changed == (document_root == "mean" or leaf_attention == "document")


@pytest.mark.parametrize("leaf_attention", ["document", "sentence"])
def test_single_sentences_take_the_way_of_the_tree_transformer(leaf_attention, monkeypatch):
    """At no extra cost: nothing is laid out anew."""
    documents = Documents([[5], [1], [3]])
    encoder = build(leaf_attention, "first")
    tree_encoder = build(leaf_attention, "first", kind=TreeTransformerEncoder)
    expected = tree_encoder(documents.rows["tokens"], source_spans=documents.rows)["encoder_out"][0]
    monkeypatch.setattr("tree_fairseq.classification.tree_transformer_classifier.Placement.build", None)
    states = encoder(documents.rows)
    assert torch.equal(torch.cat([states.leaves, states.nodes], dim=1), expected.transpose(0, 1))
    assert torch.equal(states.roots, torch.stack([expected[5, 0], expected[0, 1], expected[5, 2]]))


def test_documents_of_single_leaves_have_no_node():
    documents = Documents([[1], [1, 1]])
    assert documents.rows["label"].shape == (3, 0)
    for mode in MODES:
        states = build(*mode)(documents.rows)
        assert states.nodes.shape == (3, 0, 64) and states.roots.shape == (2, 64)
        assert torch.isfinite(states.roots).all()


@pytest.mark.parametrize("leaf_attention, document_root", MODES)
def test_thousands_of_leaves(leaf_attention, document_root):
    """More than --max-source-positions, for which sinusoidal positions are made when they are needed."""
    documents = Documents([[12] * 200, [3]])
    encoder = build(leaf_attention, document_root, "--max-source-positions", "64").float()
    assert torch.isfinite(encoder(documents.rows).roots).all()


class LargestTensor(TorchDispatchMode):
    """Remembers how many elements the largest tensor had that any operator returned."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


def test_no_tensor_grows_faster_than_the_document():
    """Forward and backward; a tensor of all nodes by all leaves, or by all nodes, would grow fourfold."""
    largest = []
    for sentences in (20, 40):
        encoder = build("document", "mean")
        with LargestTensor() as watched:
            encoder(Documents([[7] * sentences], nodes=6).rows).roots.sum().backward()
        largest.append(watched.elements)
    assert largest[1] <= 2.2 * largest[0]


@pytest.mark.parametrize("leaf_attention, name", [("document", "document has 9"), ("sentence", "sentence has 6")])
def test_learned_positions_that_end_too_early_are_named(leaf_attention, name):
    encoder = build(leaf_attention, "first", "--encoder-learned-pos", "--max-source-positions", "5")
    encoder(Documents([[5], [3]]).rows)
    with pytest.raises(InputError, match=f"a {name} leaves, but learned positions end at 5.*--max-source-positions"):
        encoder(Documents([[6, 3]]).rows)


def test_learned_positions_are_learned_from_the_start_of_the_document():
    documents = Documents([[2, 3], [1]])
    for leaf_attention, read in (("document", 5), ("sentence", 3)):
        encoder = build(leaf_attention, "first", "--encoder-learned-pos", "--max-source-positions", "8")
        encoder(documents.rows).leaves[documents.rows["tokens"].ne(PAD)][:, 0].sum().backward()
        gradient = encoder.embed_positions.weight.grad
        assert gradient[PAD + 1 :].any(1).tolist() == [True] * read + [False] * (8 - read)
