"""Batches of symbol trees: parents and branches of each column, and no EOS, because a tree ends by itself."""

from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_positional.symbol_batches import ENCODINGS
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary, build_symbol_dictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.tasks.pair_dataset import SymbolPairDataset, collate_symbol_trees
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import NULL, unknown_symbol
from tree_fairseq.trees.tree import Tree


def dictionary_of(forest, encoding):
    counts = {symbol: 1 for tree in forest for symbol in encoding.encode(tree)}
    degree = max(encoding.split(symbol)[1] for symbol in counts)
    plain = build_symbol_dictionary(counts, encoding, degree, threshold=-1, nwords=-1, padding_factor=8)
    return SymbolDictionary(plain, encoding, notation_named("bracket"))


def encoded(forest, dictionary):
    return [
        dictionary.encode_line(" ".join(dictionary.encoding.encode(tree)), add_if_not_exist=False).long()
        for tree in forest
    ]


def paths_from_columns(parents, branches):
    """Branches from the root down, by following parents one by one."""
    paths = []
    for column in range(len(parents)):
        path = []
        while column >= 0 and branches[column] >= 0:
            path.insert(0, branches[column])
            column = parents[column]
        paths.append(tuple(path))
    return paths


def paths_of_binary_form(tree):
    """Every symbol's path in the left-child right-sibling form, with those of absent siblings, by recursion."""

    def visit(siblings, path):
        if not siblings:
            return {path: NULL}
        found = {path: siblings[0].label}
        if siblings[0].children:
            found.update(visit(siblings[0].children, (*path, 0)))
            found.update(visit(siblings[1:], (*path, 1)))
        elif siblings[1:]:
            found.update(visit(siblings[1:], (*path, 1)))
        return found

    return visit((tree,), ())


def paths_of_tree(tree):
    def visit(node, path):
        return {path: node.label} | {
            key: value for n, child in enumerate(node.children) for key, value in visit(child, (*path, n)).items()
        }

    return visit(tree, ())


@given(st.lists(symbol_trees(), min_size=1, max_size=4), st.sampled_from(ENCODINGS), st.booleans())
def test_parents_and_branches_give_the_path_of_every_node(forest, encoding, left_pad):
    dictionary = dictionary_of(forest, encoding)
    tokens = encoded(forest, dictionary)
    pairs = LanguagePairDataset(
        ListDataset(tokens, [len(row) for row in tokens]),
        [len(row) for row in tokens],
        dictionary,
        left_pad_source=left_pad,
        shuffle=False,
    )
    data = SymbolPairDataset(pairs, dictionary.table(), None)
    batch = data.collater([data[number] for number in range(len(data))])
    net_input = batch["net_input"]
    assert not net_input["src_tokens"].eq(dictionary.eos()).any()
    for row, number in enumerate(batch["id"].tolist()):
        ids = net_input["src_tokens"][row].tolist()
        parents, branches = (net_input["source_symbol_tree"][name][row].tolist() for name in ("parents", "branches"))
        labels = {
            path: dictionary.encoding.split(dictionary[index])[0]
            for index, path in zip(ids, paths_from_columns(parents, branches))
            if index != dictionary.pad()
        }
        wanted = (
            paths_of_binary_form(forest[number]) if encoding.binarization == "lcrs" else paths_of_tree(forest[number])
        )
        assert labels == wanted


@given(symbol_trees(), st.sampled_from(ENCODINGS))
def test_targets_have_no_eos_and_inputs_begin_with_it(tree, encoding):
    dictionary = dictionary_of([tree], encoding)
    [tokens] = encoded([tree], dictionary)
    words = ListDataset([torch.tensor([5, 2])], [2])
    target = ListDataset([tokens], [len(tokens)])
    pairs = LanguagePairDataset(words, [2], Dictionary(), target, [len(tokens)], dictionary, shuffle=False)
    batch = (data := SymbolPairDataset(pairs, None, dictionary.table())).collater([data[0]])
    previous, wanted = batch["net_input"]["prev_output_tokens"][0], batch["target"][0]
    assert previous[0] == dictionary.eos() and previous[1:].equal(tokens[:-1])
    assert wanted[:-1].equal(tokens[:-1]) and wanted[-1] == dictionary.pad()
    assert batch["ntokens"] == len(tokens) - 1
    parents = batch["net_input"]["previous_symbol_tree"]["parents"][0]
    assert parents[0] == -1 and parents[1] == -1 and bool((parents[2:] >= 1).all())
    assert dictionary.tree(tokens) == tree and dictionary.string(tokens) == notation_named("bracket").write(tree)


def test_a_row_that_is_not_a_tree_is_refused():
    dictionary = dictionary_of([Tree("f", [Tree("x")])], ENCODINGS[0])
    with pytest.raises(SymbolTreeError, match="sentence 1"):
        collate_symbol_trees(torch.tensor([[dictionary.index("f^2"), dictionary.eos()]]), dictionary.table())


def test_unknown_symbols_keep_their_arity_and_incomplete_trees_are_written_as_symbols():
    dictionary = dictionary_of([Tree("f", [Tree("x")])], ENCODINGS[0])
    assert dictionary[dictionary.index("strange^2")] == unknown_symbol(2)
    assert dictionary.index("strange^7") == dictionary.index("strange") == dictionary.unk()
    assert dictionary.string([dictionary.index("f^2"), dictionary.index("x^0")]) == "f^2 x^0"
    assert set(dictionary.unknown_ids()) == {
        dictionary.unk(),
        *(dictionary.index(unknown_symbol(arity)) for arity in range(3)),
    }
    assert set(dictionary.table().arity[dictionary.unknown_ids()[1:]].tolist()) == {0, 1, 2}
