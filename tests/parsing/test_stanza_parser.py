"""Stanza with real models, on few sentences, because each test that loads them takes seconds."""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace

import pytest

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.stanza_trees import choose_tag_column, tag_words
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import forest_leaves

stanza_parser = pytest.importorskip("tree_fairseq.parsing.stanza_parser", reason="Stanza is not installed")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def parser(english_models):
    return stanza_parser.StanzaParser(ParserOptions(parser_dir=str(english_models), device="cpu"))


SENTENCES = ["the man sleeps .", "x", "the man sees the woman that sleeps .", "( the man )", "&amp; ! ? 17 Ω straße"]


def test_trees_cover_the_words_in_every_batch(parser):
    sentences = [sentence.split() for sentence in SENTENCES]
    trees = parser.parse(sentences)
    assert [tree.leaves() for tree in trees] == sentences
    assert [parser.parse([words])[0] for words in sentences] == trees
    assert parser.parse(sentences[::-1])[::-1] == trees


def test_every_word_has_a_tag_and_every_label_is_in_the_inventory(parser):
    trees = parser.parse([sentence.split() for sentence in SENTENCES])
    nodes = [node for tree in trees for node in tree.preorder() if not node.is_leaf]
    tags = {node.label for node in nodes if node.is_preterminal}
    assert "" not in tags and tags <= set(parser.tags())
    assert {node.label for node in nodes} <= set(parser.inventory())
    assert set(parser.tags()) <= set(parser.inventory())
    # The inventory has more labels than these sentences.
    assert {node.label for node in nodes} != set(parser.inventory())


def test_threads_and_garbage_collection_are_restored(parser):
    before = torch.get_num_threads()
    seen = []
    document = parser._parse_document
    try:
        parser._parse_document = lambda tagged: (
            seen.append((torch.get_num_threads(), gc.isenabled())),
            document(tagged),
        )[1]
        torch.set_num_threads(2)
        parser.parse([["the", "man"]])
        assert torch.get_num_threads() == 2 and gc.isenabled() and seen == [(1, False)]
        gc.disable()
        parser.parse([["the", "man"]])
        assert not gc.isenabled()
    finally:
        gc.enable()
        del parser._parse_document
        torch.set_num_threads(before)


def test_a_sentence_without_a_tree_does_not_shift_the_others(parser, monkeypatch):
    """Stanza leaves it out of its results without a message."""
    model = parser._model()
    whole = model.parse_tagged_words

    def dropping(words, batch_size):
        return [tree for tree in whole(words, batch_size) if tree.leaf_labels() != ["x"]]

    monkeypatch.setattr(model, "parse_tagged_words", dropping)
    trees = parser.parse([sentence.split() for sentence in SENTENCES])
    assert [tree and tree.leaves() for tree in trees] == [
        None if sentence == "x" else sentence.split() for sentence in SENTENCES
    ]


def test_lack_of_memory_halves_the_batch(parser, monkeypatch):
    model = parser._model()
    whole = model.parse_tagged_words
    sizes = []

    def limited(words, batch_size):
        sizes.append(len(words))
        if len(words) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return whole(words, batch_size)

    monkeypatch.setattr(model, "parse_tagged_words", limited)
    lines = LineParser(ParserOptions(), parser).parse_lines(SENTENCES)
    assert [forest_leaves(line.forest) for line in lines] == [sentence.split() for sentence in SENTENCES]
    assert not any(line.failed for line in lines) and sizes == [5, 3, 2, 1, 2]


class TestTags:
    """A setting that may be wrong names the column of tags that the parser reads."""

    @staticmethod
    def pipeline(xpos, upos, learned, uses_xpos):
        tagger = SimpleNamespace(
            is_composite_xpos=lambda: False, get_known_xpos=lambda: xpos, get_known_upos=lambda: upos
        )
        model = SimpleNamespace(tags=learned, uses_xpos=lambda: uses_xpos)
        return SimpleNamespace(processors={"pos": tagger, "constituency": SimpleNamespace(_model=model)})

    @pytest.mark.parametrize(("uses_xpos", "column"), [(True, "xpos"), (False, "upos")])
    def test_the_named_column_is_read(self, uses_xpos, column, caplog):
        assert (
            choose_tag_column(self.pipeline(["NN", "DT"], ["NOUN", "DET"], ["NN", "DT", "NOUN", "DET"], uses_xpos))
            == column
        )
        assert not caplog.records

    def test_the_other_column_is_read_if_the_named_one_is_empty(self, caplog):
        """A parser trained on gold tags reads upos, which a tagger of Penn tags leaves empty."""
        assert choose_tag_column(self.pipeline(["NN", "DT"], ["_"], ["NN", "DT", "VB"], False)) == "xpos"
        assert "xpos tags; these are used" in caplog.text

    def test_tags_that_the_parser_never_saw_are_refused(self):
        with pytest.raises(ParserUnavailableError, match="DET NOUN.*was trained on.*DT NN"):
            choose_tag_column(self.pipeline(["_"], ["NOUN", "DET"], ["NN", "DT"], True))

    def test_a_word_without_a_tag_gets_an_unknown_tag(self):
        sentence = SimpleNamespace(
            words=[
                SimpleNamespace(text="a", xpos="DT"),
                SimpleNamespace(text="b", xpos=None),
                SimpleNamespace(text="c", xpos="_"),
            ]
        )
        assert tag_words([sentence], "xpos") == [[("a", "DT"), ("b", "XX"), ("c", "XX")]]
        assert tag_words([], "xpos") == []

    def test_a_column_without_tags_is_refused(self):
        with pytest.raises(ParserUnavailableError, match="no word a tag in its column upos"):
            tag_words([SimpleNamespace(words=[SimpleNamespace(text="a", upos=None)] * 5)] * 4, "upos")
        # A single word without a tag is not enough.
        assert tag_words([SimpleNamespace(words=[SimpleNamespace(text="a", upos=None)])], "upos") == [[("a", "XX")]]

    def test_a_real_model_with_the_wrong_setting_gives_the_same_trees(self, english_models, parser, monkeypatch):
        misled = stanza_parser.StanzaParser(ParserOptions(parser_dir=str(english_models), device="cpu"))
        from stanza.models.constituency.lstm_model import LSTMModel

        monkeypatch.setattr(LSTMModel, "uses_xpos", lambda self: not parser._model().args["retag_method"] == "xpos")
        sentences = [sentence.split() for sentence in SENTENCES]
        assert misled.parse(sentences) == parser.parse(sentences)


def test_the_message_names_models_that_cannot_be_read(tmp_path):
    for name in ("constituency.pt", "tagger.pt", "pretrain.pt"):
        (tmp_path / name).write_bytes(b"no model")
    with pytest.raises(ParserUnavailableError, match="cannot load its models.*constituency.pt"):
        stanza_parser.StanzaParser(ParserOptions(parser_dir=str(tmp_path))).parse([["a"]])


def test_nothing_is_written_into_the_users_folder(tmp_path, english_models):
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("constituency.pt", "tagger.pt", "pretrain.pt"):
        (folder / name).symlink_to(english_models / name)
    os.chmod(folder, 0o500)
    stanza_parser.StanzaParser(ParserOptions(parser_dir=str(folder), device="cpu")).parse([["a"]])
    assert sorted(os.listdir(folder)) == ["constituency.pt", "pretrain.pt", "tagger.pt"]


def test_a_tree_is_plausible(gum_models):
    parser = stanza_parser.StanzaParser(ParserOptions(parser_dir=str(gum_models), device="cpu"))
    assert (
        write_forest((parser.parse(["the old man sleeps .".split()])[0],))
        == "(ROOT (S (NP (DT the) (JJ old) (NN man)) (VP (VBZ sleeps)) (. .)))"
    )
