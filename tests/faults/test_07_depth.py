"""Fault 7: trees of depth 900 to 20,000 pass through everything; a limit is an error that says so."""

from __future__ import annotations

import copy
import os
import pickle
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest
import torch
from fairseq.models import FairseqEncoderDecoderModel

from tests.data_bin.corpora import run_preprocess, write_lines
from tests.strategies import deep_tree
from tests.tree_insertion.slot_batches import DICTIONARY as LABELS
from tests.tree_positional.all_trees import Vocabulary
from tests.tree_positional.random_searches import HashDecoder
from tests.tree_positional.table_models import TableEncoder, batch
from tests.trees.inverses import debinarize
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.errors import DepthLimitError
from tree_fairseq.new_text.translations import in_brackets
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees import bracket
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.notations import NOTATIONS, notation_named
from tree_fairseq.trees.spans import decode, encode, reduce_spans, reduced_depth, unary_chains
from tree_fairseq.trees.subwords import align_pieces, join_words, split_words
from tree_fairseq.trees.tree import Tree, binarize, check_preterminals, collapse_unary, tree_to_text
from tree_fairseq.trees.treebanks import SEPARATORS, Conventions

SEARCHED = 5000 if os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0" else 100
"""Depth of a tree that is searched for."""


@pytest.fixture(params=["900 branching", "20000 branching", "20000 unary"])
def tree(request):
    depth, form = request.param.split()
    return deep_tree(int(depth), form == "branching")


def test_the_tree_itself(tree):
    twin = pickle.loads(pickle.dumps(tree))
    assert twin is not tree and twin == tree and hash(twin) == hash(tree)
    assert copy.deepcopy(tree) == tree
    assert len(list(tree.postorder())) == len(list(tree.preorder()))
    assert repr(tree).count("Tree(") == len(list(tree.preorder()))
    assert tree.map_leaves(tree.leaves()) == tree.map_labels(str)
    assert tree != deep_tree(tree.height() + 1)
    check_preterminals((tree,))


def test_brackets_and_spans(tree):
    line = write_forest((tree,))
    assert read_forest(line) == (tree,)
    encoded = encode((tree,))
    assert decode(encoded) == (tree,)
    assert encoded.spans[:, 2].max() == tree.height() - 1
    kept, top = unary_chains(encoded.spans)
    assert kept.tolist() == reduce_spans(encoded.spans).tolist()
    reduced = encoded.spans[kept]
    depths = reduced_depth(reduced[:, 0], reduced[:, 1]).tolist()
    assert depths == list(range(len(tree.leaves()) - 1))


def test_transforms(tree):
    collapsed = collapse_unary(tree)
    assert collapsed.height() <= tree.height() and collapsed.leaves() == tree.leaves()
    assert debinarize(binarize(tree)) == tree
    assert Conventions(separators=SEPARATORS).apply((tree,), Counter()) == (tree,)


def test_wide_trees_become_deep_ones_and_wide_again():
    wide = Tree("S", deep_tree(2).children * 10_000)
    binary = binarize(wide)
    assert binary.height() > 10_000
    assert debinarize(binary) == wide


def test_subwords(tree):
    count = len(tree.leaves())
    pieces = [["p", "q"]] * count
    forest = split_words((tree,), pieces)
    assert join_words(forest) == (tree.map_leaves(["pq"] * count),)
    offsets = [(2 * place, 2 * place + 2) for place in range(count)]
    crossing = [(0, 1)] + [(2 * place + 1, 2 * place + 3) for place in range(count - 1)] + [(2 * count - 1, 2 * count)]
    names = [str(number) for number in range(len(crossing))]
    aligned = align_pieces((tree,), offsets, crossing, names)
    assert [leaf for aligned_tree in aligned for leaf in aligned_tree.leaves()] == names


def test_drawings(tree):
    assert ElementTree.fromstring(tree_to_svg((tree,))) is not None
    assert len(tree_to_text((tree,))) < 1_000_000


def test_the_limit_is_an_error_that_says_so(monkeypatch):
    line = write_forest((deep_tree(20_000),))
    monkeypatch.setattr(bracket, "DEPTH_LIMIT", 20_000)
    assert read_forest(line)
    monkeypatch.setattr(bracket, "DEPTH_LIMIT", 19_999)
    with pytest.raises(DepthLimitError, match="deeper than 19999") as caught:
        read_forest(line, path="deep.mrg", line_number=4)
    assert str(caught.value).startswith("deep.mrg:4:")


def test_brackets_without_end_meet_the_standing_limit():
    with pytest.raises(DepthLimitError):
        read_forest("(S " * 200_000)


def test_preprocessing_the_store_and_the_export(tmp_path, tree):
    line = write_forest((tree,))
    write_lines(tmp_path / "train.en", ["(S (NN dog))", line, "(S (NN dog))"])
    write_lines(tmp_path / "train.de", ["hund", "tief", "hund"])
    names = ("--trainpref", tmp_path / "train", "--destdir", tmp_path / "bin", "--tree-sides", "source")
    run_preprocess(*names, "--tree-parser", "brackets")
    exported = [write_forest(forest) for forest in export_forests(tmp_path / "bin", "en", "train")]
    assert exported[1] == line and exported[0] == exported[2]


@pytest.mark.parametrize("name", sorted(NOTATIONS))
def test_output_lines_of_deep_programs(name):
    depth = 5000
    vocabulary = Vocabulary.of([0, 1, 2], "dfs", "none")
    dictionary = SymbolDictionary(vocabulary.dictionary, vocabulary.encoding, notation_named(name))
    ids = [dictionary.index("b^1")] * depth + [dictionary.index("a^0")]
    text = dictionary.string(torch.tensor([*ids, dictionary.eos()]))
    brackets = in_brackets(text, dictionary)
    # Notations without a form for some trees write the symbols instead.
    assert text == " ".join(dictionary[index] for index in ids) or brackets.startswith("( b ( b ")
    if name == "bracket":
        assert text.count("(") == depth == brackets.count("(")


def test_output_lines_of_deep_insertions():
    depth = 5000
    label = int(LABELS.label_ids[0])
    sequence = LABELS.sequence([LABELS.root] + [label] * depth, list(range(-1, depth)))
    text = LABELS.string(sequence)
    assert text.count("( a") == depth - 1 and LABELS.tree(sequence.tolist()).height() == depth - 1


@pytest.mark.parametrize("form", [("dfs", "none"), ("bfs", "none"), ("dfs", "lcrs")])
def test_a_search_grows_deep_trees(form):
    vocabulary = Vocabulary.of([0, 1, 2], *form)
    decoder = HashDecoder(vocabulary.dictionary)
    decoder.positions, decoder.sharpness = 2 * SEARCHED, 1e-3
    # Symbols that open a node are likely, all others are not.
    decoder.bias = torch.tensor([10.0 * (arity == 1) for arity in vocabulary.table.arity.tolist()])
    model = FairseqEncoderDecoderModel(TableEncoder(vocabulary.dictionary), decoder)
    generator = StructuralGenerator([model], vocabulary.dictionary, vocabulary.table, beam_size=2, max_len_b=SEARCHED)
    best = generator.generate([model], batch([[4, 2]]))[0][0]
    assert vocabulary.is_tree(best["tokens"]) and best["score"].isfinite()
    assert len(best["tokens"]) - 1 >= SEARCHED - 1
