"""The files of a Stanza parser; the files of these tests are empty."""

from __future__ import annotations

import json
import shlex

import pytest

from tree_fairseq.errors import LanguageWithoutParserError, ParserUnavailableError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.stanza_parser import download_command, find_models, models_digest


def reads(**packages):
    return {"dependencies": [{"model": model, "package": package} for model, package in packages.items()]}


RESOURCES = {
    "en": {
        "lang_name": "English",
        "packages": {
            "default": {"mwt": "combined", "pos": "combined_charlm", "constituency": "ptb3-revised_charlm"},
            "default_fast": {"pos": "combined_nocharlm", "constituency": "ptb3-revised_nocharlm"},
        },
        "tokenize": {"combined": {"md5": "x"}},
        "mwt": {"combined": {"md5": "x"}},
        "pos": {
            "combined_charlm": reads(pretrain="conll17", forward_charlm="1billion"),
            "combined_nocharlm": reads(pretrain="conll17"),
        },
        "constituency": {
            "ptb3-revised_charlm": reads(pretrain="fasttext", backward_charlm="1billion"),
            "ptb3-revised_nocharlm": reads(pretrain="fasttext"),
        },
    },
    "english": {"alias": "en"},
    "fr": {"packages": {"default": {"pos": "combined"}}, "pos": {"combined": {}}},
    "tr": {"packages": {"default": {"pos": "imst"}}, "pos": {"imst": {}}, "constituency": {"starlang": {}}},
    "url": "https://example.org",
}


@pytest.fixture
def official(tmp_path):
    (tmp_path / "resources.json").write_text(json.dumps(RESOURCES))
    for lang, entry in RESOURCES.items():
        if isinstance(entry, dict):
            for processor, packages in entry.items():
                if processor not in ("packages", "alias", "lang_name"):
                    for package, values in packages.items():
                        make(tmp_path / lang / processor / f"{package}.pt")
                        for dependency in values.get("dependencies", ()):
                            make(tmp_path / lang / dependency["model"] / f"{dependency['package']}.pt")
    return tmp_path


def make(path, content="model"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def names(folder, **options):
    models = find_models(folder, ParserOptions(**options))
    return {argument: str(path.relative_to(folder)) for argument, path in models.items()}


FLAT = {
    "constituency_model_path": "constituency.pt",
    "pos_model_path": "tagger.pt",
    "constituency_pretrain_path": "pretrain.pt",
    "pos_pretrain_path": "pretrain.pt",
}


def test_a_flat_folder_is_read(tmp_path):
    for name in ("constituency.pt", "tagger.pt", "pretrain.pt", "tokenizer.pt", "README.md"):
        make(tmp_path / name)
    assert names(tmp_path) == FLAT
    # The user's own models may be of any language.
    assert names(tmp_path, lang="fr") == FLAT
    assert names(tmp_path, tokenize="stanza") == {**FLAT, "tokenize_model_path": "tokenizer.pt"}


def test_a_flat_folder_may_lack_word_vectors(tmp_path):
    for name in ("constituency.pt", "tagger.pt", "forward_charlm.pt"):
        make(tmp_path / name)
    assert set(names(tmp_path).values()) == {"constituency.pt", "tagger.pt", "forward_charlm.pt"}


@pytest.mark.parametrize("missing", ["constituency.pt", "tagger.pt", "tokenizer.pt"])
def test_the_message_names_a_missing_file(tmp_path, missing):
    for name in {"constituency.pt", "tagger.pt", "pretrain.pt", "tokenizer.pt"} - {missing}:
        make(tmp_path / name)
    with pytest.raises(ParserUnavailableError, match=f"lacks {missing}"):
        find_models(tmp_path, ParserOptions(tokenize="stanza"))


def test_stanzas_layout_is_read(official):
    expected = {
        "pos_model_path": "en/pos/combined_charlm.pt",
        "pos_pretrain_path": "en/pretrain/conll17.pt",
        "pos_forward_charlm_path": "en/forward_charlm/1billion.pt",
        "constituency_model_path": "en/constituency/ptb3-revised_charlm.pt",
        "constituency_pretrain_path": "en/pretrain/fasttext.pt",
        "constituency_backward_charlm_path": "en/backward_charlm/1billion.pt",
    }
    assert names(official) == expected == names(official, lang="English")
    tokenizers = {"tokenize_model_path": "en/tokenize/combined.pt", "mwt_model_path": "en/mwt/combined.pt"}
    assert names(official, tokenize="stanza") == {**expected, **tokenizers}


def test_a_package_may_be_one_model_or_a_set(official):
    one = names(official, package="ptb3-revised_nocharlm")
    assert one["constituency_model_path"].endswith("_nocharlm.pt") and one["pos_model_path"].endswith(
        "combined_charlm.pt"
    )
    whole = names(official, package="default_fast")
    assert whole["constituency_model_path"].endswith("_nocharlm.pt") and whole["pos_model_path"].endswith(
        "_nocharlm.pt"
    )
    assert names(official, lang="tr")["constituency_model_path"] == "tr/constituency/starlang.pt"
    with pytest.raises(ParserUnavailableError, match="default_fast, ptb3-revised_charlm"):
        find_models(official, ParserOptions(package="wsj"))


@pytest.mark.parametrize("lang", ["fr", "xx", "url"])
def test_a_language_without_a_model_is_refused(official, lang):
    with pytest.raises(LanguageWithoutParserError) as raised:
        find_models(official, ParserOptions(lang=lang))
    assert "en, tr" in str(raised.value) and "--tree-parser brackets" in str(raised.value)


def test_the_message_names_a_listed_file_that_is_missing(official):
    (official / "en/pretrain/fasttext.pt").unlink()
    with pytest.raises(ParserUnavailableError, match="lacks en/pretrain/fasttext.pt.*stanza.download"):
        find_models(official, ParserOptions())


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_malformed_list_is_refused(tmp_path, content):
    make(tmp_path / "resources.json", content)
    with pytest.raises(ParserUnavailableError, match="resources.json"):
        find_models(tmp_path, ParserOptions())


def test_an_empty_or_missing_folder_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ParserUnavailableError, match="stanza.download"):
            find_models(folder, ParserOptions())


def test_the_digest_depends_on_the_content(tmp_path):
    digests = set()
    for name, content in (("constituency.pt", "a"), ("tagger.pt", "a"), ("pretrain.pt", "a")):
        make(tmp_path / name, content)
    digests.add(models_digest(find_models(tmp_path, ParserOptions())))
    make(tmp_path / "README.md")
    digests.add(models_digest(find_models(tmp_path, ParserOptions())))
    assert len(digests) == 1
    for name in ("constituency.pt", "tagger.pt", "pretrain.pt"):
        make(tmp_path / name, f"changed {name}")
        digests.add(models_digest(find_models(tmp_path, ParserOptions())))
    assert len(digests) == 4


def test_the_download_command_is_one_line():
    parts = shlex.split(download_command("de"))
    assert parts[:2] == ["python", "-c"] and len(parts) == 3
    compile(parts[2], "command", "exec")
    assert "'de'" in parts[2] and "model_dir='stanza_models'" in parts[2]
