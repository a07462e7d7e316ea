"""Loading a model from Python: defaults, and messages about missing files."""

from __future__ import annotations

import shutil

import pytest

from tests.end_to_end.tiny_corpus import make_pairs
from tree_fairseq import hub
from tree_fairseq.errors import DataFolderError, InputError, LongSentenceError, UnclosedTreeError

TREE = make_pairs(1, 2)[0].tree


def test_one_folder_may_hold_checkpoint_and_dictionaries(trained, tmp_path):
    """Models are shared in this form: a checkpoint, dictionaries and tree.json."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("dict.en.txt", "dict.de.txt", "dict.label.en.txt", "tree.json"):
        shutil.copy(trained.data / name, folder)
    shutil.copy(trained.best, folder / "model.pt")
    alone = hub.from_pretrained(folder)
    beside = hub.from_pretrained(str(trained.folder), data_name_or_path=str(trained.data))
    assert alone.translate([TREE], beam=2) == beside.translate([TREE], beam=2)


def test_the_best_checkpoint_is_the_default_and_others_have_names(trained):
    def first_weight(*names):
        model = hub.from_pretrained(trained.folder, *names, data_name_or_path=trained.data).models[0]
        return model.encoder.embed_labels.weight

    best, early = first_weight(), first_weight("checkpoint1.pt")
    assert best.equal(first_weight("checkpoint_best.pt")) and not best.equal(early)


def test_several_checkpoints_form_an_ensemble(trained):
    model = hub.from_pretrained(trained.folder, "checkpoint3.pt:checkpoint4.pt", data_name_or_path=trained.data)
    assert len(model.models) == 2
    assert len(model.translate([TREE], beam=2)) == 1


@pytest.mark.parametrize("name", [None, "checkpoint9.pt", "checkpoint1.pt:checkpoint9.pt"])
def test_a_missing_checkpoint_is_named(trained, tmp_path, name):
    folder = tmp_path if name is None else trained.folder
    with pytest.raises(DataFolderError, match="checkpoint_best.pt" if name is None else "checkpoint9.pt"):
        hub.from_pretrained(folder, name, data_name_or_path=trained.data)


def test_a_folder_without_dictionaries_or_trees_is_named(trained, tmp_path):
    with pytest.raises(DataFolderError, match="data_name_or_path"):
        hub.from_pretrained(trained.folder)
    for name in ("dict.en.txt", "dict.de.txt"):
        shutil.copy(trained.data / name, tmp_path)
    with pytest.raises(DataFolderError, match="tree.json"):
        hub.from_pretrained(trained.folder, data_name_or_path=tmp_path)


def test_a_string_is_one_sentence_and_a_blank_one_needs_no_search(trained, tmp_path, monkeypatch):
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    for method in (model.translate, model.parse):
        assert method(TREE) == method([TREE])[0]
    assert model.translate(["", TREE, " "]) == ["", model.translate(TREE), ""]
    pages = [tmp_path / "one.html", tmp_path / "many.html"]
    for sentences, page in zip((TREE, [TREE]), pages):
        model.explore(sentences, page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    monkeypatch.setattr(model, "generate", None)
    assert (model.translate(""), model.translate([]), model.parse("")) == ("", [], ())


def test_sentences_may_come_one_by_one(trained, tmp_path):
    """As from an open file, whose lines have their ends: they were read once, and the second time there were none."""
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    sentences = [TREE, "", TREE]
    lines = [f"{TREE}\n", "\n", f"{TREE}\r\n"]
    assert model.translate(iter(lines)) == model.translate(sentences)
    assert model.parse(iter(lines)) == model.parse(sentences)
    model.explore(iter(lines), tmp_path / "page.html")


def test_a_faulty_sentence_is_counted_among_all_and_may_be_skipped(trained, capsys):
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    long = " ".join([TREE] * 1024)
    for read in (model.translate, model.parse):
        with pytest.raises(UnclosedTreeError, match="^input:3:"):
            read(["", TREE, "(S (NN dog)"])
        with pytest.raises(InputError, match="^input:2: the line cannot be read"):
            read(["", "\ud800"])
    with pytest.raises(LongSentenceError, match="^input:3:"):
        model.translate(["", TREE, long])
    assert model.translate([long, "", TREE], skip_invalid_size_inputs=True) == ["", "", model.translate(TREE)]
    assert "input:1: the line is longer" in capsys.readouterr().err
