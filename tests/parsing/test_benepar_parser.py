"""benepar: the library itself with a tiny model where it is installed, and a stand-in with its documented interface."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import nltk
import pytest

from tree_fairseq.errors import MissingLibraryError, ParserUnavailableError
from tree_fairseq.parsing.benepar_parser import tree_over_words
from tree_fairseq.parsing.parsers import ParserOptions, build_parser
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree

SENTENCES = [["the", "(", "old", ")", "man"], ["sleeps"], ["a[b]", "{", "c"]]


class StandInBenepar(ModuleType):
    """``benepar.Parser(path, batch_size).parse_sents(inputs)`` gives ``nltk`` trees with brackets by name."""

    def __init__(self):
        super().__init__("benepar")
        self.InputSentence = lambda words: SimpleNamespace(words=words)

    def Parser(self, path, batch_size):
        if "broken" in path:
            raise RuntimeError("not a checkpoint")
        config = {"label_vocab": {"": 0, "S": 1, "S::VP": 2}, "tag_vocab": {"UNK": 0, "NN": 1}}
        return SimpleNamespace(_parser=SimpleNamespace(config=config, to=lambda device: None), parse_sents=self._parse)

    @staticmethod
    def _parse(inputs):
        names = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
        for given in inputs:
            escaped = ["".join(names.get(character, character) for character in word) for word in given.words]
            yield nltk.Tree(
                "TOP", [nltk.Tree("S", [nltk.Tree("NN" if k else "UNK", [w]) for k, w in enumerate(escaped)])]
            )


@pytest.fixture(params=["stand-in", "library"])
def benepar_model(request, tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "benepar", StandInBenepar())
        monkeypatch.setattr("importlib.metadata.version", lambda name: "0.2.0")
        path.write_text("weights")
        return path
    return save_benepar_model(path)


def save_benepar_model(path):
    """A model of benepar with random weights: characters, one layer, three labels."""
    pytest.importorskip("benepar", reason="benepar is not installed: pip install tree-fairseq[benepar]")
    import torch
    from benepar.char_lstm import RetokenizerForCharLSTM
    from benepar.nkutil import HParams
    from benepar.parse_chart import ChartParser

    torch.manual_seed(1)
    sizes = dict.fromkeys(["d_char_emb", "d_kv"], 8) | dict.fromkeys(["d_model", "d_ff"], 32)
    sizes |= dict.fromkeys(["d_label_hidden", "d_tag_hidden"], 16) | {"num_heads": 2, "num_layers": 1}
    names = ("char_lstm_input", "morpho_emb", "relu", "residual", "attention")
    dropouts = {f"{name}_dropout": 0.0 for name in names}
    switches = {"use_chars_lstm": True, "use_encoder": True, "predict_tags": True, "force_root_constituent": True}
    settings = HParams(
        **sizes,
        **dropouts,
        **switches,
        use_pretrained=False,
        encoder_max_len=64,
        tag_loss_scale=1.0,
        pretrained_model="",
    )
    characters = RetokenizerForCharLSTM.build_vocab([["the", "man"]])
    model = ChartParser({"UNK": 0, "NN": 1}, {"": 0, "S": 1, "NP": 2, "S::VP": 3}, characters, settings)
    torch.save({"config": model.config, "state_dict": model.state_dict()}, path)
    return path


def check_parser(parser) -> None:
    """What every parser owes: trees over the words, in order, whose labels are in the inventory."""
    trees = parser.parse(SENTENCES)
    assert [tree.leaves() for tree in trees] == SENTENCES and parser.parse(SENTENCES[::-1])[::-1] == trees
    labels = {node.label for tree in trees for node in tree.subtrees()}
    assert labels <= set(parser.inventory()) and set(parser.tags()) <= set(parser.inventory())
    assert {tag for tree in trees for _, tag in tree.tagged_words()} <= set(parser.tags())
    write_forest(tuple(trees))


def test_benepar(benepar_model):
    parser = build_parser(ParserOptions(name="benepar", parser_dir=str(benepar_model), device="cpu"))
    check_parser(parser)
    identity = parser.identity()
    assert identity["name"] == "benepar" and identity["version"]
    benepar_model.write_bytes(benepar_model.read_bytes() + b" ")
    other = build_parser(ParserOptions(name="benepar", parser_dir=str(benepar_model), device="cpu"))
    assert other.identity() != identity


def test_benepar_without_its_model(benepar_model, tmp_path):
    with pytest.raises(
        ParserUnavailableError, match=r"benepar_fr2 is not installed.*benepar.download\('benepar_fr2'\)"
    ):
        build_parser(ParserOptions(name="benepar", lang="fr"))
    with pytest.raises(ParserUnavailableError, match="benepar has no model for 'fi'.* ar, de, en.*--parser-package"):
        build_parser(ParserOptions(name="benepar", lang="fi"))
    with pytest.raises(ParserUnavailableError, match="no such file or folder"):
        build_parser(ParserOptions(name="benepar", parser_dir=str(tmp_path / "nothing")))
    broken = tmp_path / "broken.pt"
    broken.write_text("x")
    with pytest.raises(ParserUnavailableError, match=r"benepar cannot load .*broken.pt"):
        build_parser(ParserOptions(name="benepar", parser_dir=str(broken))).parse([["a"]])


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "benepar", None)
    with pytest.raises(MissingLibraryError, match=r"--tree-parser benepar needs benepar.*tree-fairseq\[benepar\]"):
        build_parser(ParserOptions(name="benepar"))


def test_trees_of_other_words_are_refused():
    tree = nltk.Tree.fromstring("(S (NN a) (NN -LRB-))")
    assert tree_over_words(tree, ["a", "("]) == Tree("S", [Tree("NN", [Tree("a")]), Tree("NN", [Tree("(")])])
    assert tree_over_words(tree, ["a", "b"]) is None and tree_over_words(tree, ["a"]) is None
    mixed = tree_over_words(nltk.Tree("S", ["a", nltk.Tree("NP", ["b"])]), ["a", "b"])
    assert write_forest((mixed,)) == "(S (XX a) (NP b))"
