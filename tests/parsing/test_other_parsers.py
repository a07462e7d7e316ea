"""benepar, SuPar and spaCy: the libraries themselves with tiny models where they are installed; and stand-ins with the
interface of their documentation for benepar and SuPar, which have no release since 2021."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import nltk
import pytest

from tree_fairseq.errors import MissingLibraryError, ParserUnavailableError
from tree_fairseq.parsing.benepar_parser import tree_over_words
from tree_fairseq.parsing.dependencies import parse_dependencies
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, build_parser
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree

SENTENCES = [["the", "(", "old", ")", "man"], [], ["sleeps"], ["a[b]", "{", "c"]]


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
    """A model file for benepar, and the module that loads it."""
    path = tmp_path / "model.pt"
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "benepar", StandInBenepar())
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
    assert [tree.leaves() if tree else [] for tree in trees] == SENTENCES
    assert parser.parse(SENTENCES[::-1])[::-1] == trees and parser.parse([]) == []
    labels = {node.label for tree in trees if tree for node in tree.subtrees()}
    assert labels <= set(parser.inventory()) and set(parser.tags()) <= set(parser.inventory())
    assert {tag for tree in trees if tree for _, tag in tree.tagged_words()} <= set(parser.tags())
    write_forest(tuple(filter(None, trees)))


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


class StandInSupar(ModuleType):
    """``supar.Parser.load(name).predict(sentences).trees`` are ``nltk`` trees whose tags are ``_``."""

    def __init__(self):
        super().__init__("supar")
        self.Parser = SimpleNamespace(load=self._load)

    def _load(self, name):
        if "broken" in name or name == "crf-con-en":
            raise RuntimeError(f"File {name} unavailable. Please try other sources.")
        vocabulary = SimpleNamespace(stoi={"<pad>": 0, "NP": 1, "S+VP": 2, "NP|<>": 3})
        chart = {"CHART": SimpleNamespace(vocab=vocabulary)} if "dep" not in name else {}
        return SimpleNamespace(predict=self._predict, transform=SimpleNamespace(root="TOP"), **chart)

    @staticmethod
    def _predict(sentences, buckets, batch_size, verbose, prob):
        names = {"(": "-LRB-", ")": "-RRB-"}
        trees = [
            nltk.Tree("TOP", [nltk.Tree("NP", [nltk.Tree("_", [names.get(w, w)]) for w in words])])
            for words in sentences
        ]
        return SimpleNamespace(trees=trees)


@pytest.fixture(params=["stand-in", "library"])
def supar_model(request, tmp_path, monkeypatch):
    """A model file for SuPar, and the module that loads it."""
    path = tmp_path / "model"
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "supar", StandInSupar())
        path.write_text("weights")
        return path
    pytest.importorskip("supar", reason="SuPar is not installed: pip install tree-fairseq[supar]")
    from supar.parsers import CRFConstituencyParser

    text = tmp_path / "train.pid"
    text.write_text("(TOP (S (NP (_ the) (_ old) (_ man)) (VP (_ sleeps)) (_ .)))\n")
    sizes = ("embed", "pretrained", "feat_embed", "char_embed", "char_hidden", "lstm_hidden", "span_mlp", "label_mlp")
    settings = {f"n_{name}": 8 for name in sizes} | dict.fromkeys(["train", "dev", "test"], str(text))
    built = CRFConstituencyParser.build(
        str(path),
        min_freq=1,
        encoder="lstm",
        feat=["char"],
        embed=None,
        n_lstm_layers=1,
        mbr=True,
        build=True,
        **settings,
    )
    built.save(str(path))
    return path


def test_supar(supar_model):
    parser = build_parser(ParserOptions(name="supar", parser_dir=str(supar_model), device="cpu"))
    check_parser(parser)
    assert parser.tags() == ["XX"] and "S" in parser.inventory() and "VP" in parser.inventory()
    assert parser.identity()["model"] != build_parser(ParserOptions(name="supar")).identity()["model"] == "crf-con-en"


def test_supar_without_its_model(supar_model, tmp_path):
    with pytest.raises(ParserUnavailableError, match="SuPar has no model for 'de'.* en, zh"):
        build_parser(ParserOptions(name="supar", lang="de"))
    broken = tmp_path / "broken"
    broken.write_text("x")
    with pytest.raises(ParserUnavailableError, match="broken is not a model of SuPar"):
        build_parser(ParserOptions(name="supar", parser_dir=str(broken))).parse([["a"]])


def test_supar_says_how_to_download(monkeypatch):
    monkeypatch.setitem(sys.modules, "supar", StandInSupar())
    with pytest.raises(ParserUnavailableError, match=r"crf-con-en cannot be loaded.*supar.Parser.load\('crf-con-en'\)"):
        build_parser(ParserOptions(name="supar")).parse([["a"]])


@pytest.fixture
def spacy_options(tmp_path):
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install tree-fairseq[spacy]")
    return ParserOptions(name="spacy", parser_dir=str(save_benepar_model(tmp_path / "model.pt")), device="cpu")


def test_spacy(spacy_options):
    parser = build_parser(spacy_options)
    check_parser(parser)
    assert parser.identity() == build_parser(spacy_options).identity()
    # A full stop within a line does not cut it.
    assert parser.parse([["a", ".", "B", "c"]])[0].leaves() == ["a", ".", "B", "c"]


def test_spacy_finds_tokens_and_sentences(spacy_options):
    line = "The  man (isn't) here. He sleeps."
    whole = LineParser(spacy_options.replace(tokenize="parser")).parse_lines([line, " "])
    tokens = ["The", "man", "(", "is", "n't", ")", "here", ".", "He", "sleeps", "."]
    assert whole[0].sentences == 1 and whole[0].forest[0].leaves() == tokens and whole[1].written == ""
    (cut,) = LineParser(spacy_options.replace(tokenize="parser", ssplit="punct")).parse_lines([line])
    assert [len(tree.leaves()) for tree in cut.forest] == [8, 3]


def test_spacy_has_dependencies_if_its_pipeline_has_a_parser(spacy_options, tmp_path):
    import spacy

    pipeline = spacy.blank("en")
    component = pipeline.add_pipe("parser")
    for label in ("nsubj", "det", "ROOT"):
        component.add_label(label)
    pipeline.initialize()
    pipeline.to_disk(tmp_path / "pipeline")
    parser = build_parser(spacy_options.replace(package=str(tmp_path / "pipeline")))
    (found,) = parse_dependencies(parser, "spacy", [["The", "man", "sleeps"]])
    assert [word.form for word in found] == ["The", "man", "sleeps"]
    assert sum(word.head == 0 and word.relation == "root" for word in found) == 1
    assert all(0 <= word.head <= 3 and word.head != number for number, word in enumerate(found, start=1))
    with pytest.raises(ParserUnavailableError, match="no dependency parser; --parser-package"):
        parse_dependencies(build_parser(spacy_options), "spacy", [["a"]])
    with pytest.raises(ParserUnavailableError, match="python -m spacy download no_such_pipeline"):
        build_parser(spacy_options.replace(package="no_such_pipeline"))


@pytest.mark.parametrize("name", ["benepar", "supar", "spacy"])
def test_a_missing_library_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError, match=rf"--tree-parser {name} needs {name}.*tree-fairseq\[{name}\]"):
        build_parser(ParserOptions(name=name))


def test_trees_of_other_words_are_refused():
    tree = nltk.Tree.fromstring("(S (NN a) (NN -LRB-))")
    assert tree_over_words(tree, ["a", "("]) == Tree("S", [Tree("NN", [Tree("a")]), Tree("NN", [Tree("(")])])
    assert tree_over_words(tree, ["a", "b"]) is None and tree_over_words(tree, ["a"]) is None
    mixed = tree_over_words(nltk.Tree("S", ["a", nltk.Tree("NP", ["b"])]), ["a", "b"])
    assert write_forest((mixed,)) == "(S (XX a) (NP b))"
