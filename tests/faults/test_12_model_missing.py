"""Fault 12: no model and no network: one clear error with the command that helps; a language without a model is
refused.
"""

from __future__ import annotations

import pytest

from tree_fairseq.errors import LanguageWithoutParserError, ParserUnavailableError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

stanza = pytest.importorskip("stanza", reason="Stanza is not installed")

COMMAND = "python -c \"import stanza; stanza.download('{}', model_dir='stanza_models'"


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    """Stanza's own folder is empty, and its download fails as it does without a network."""
    from requests.exceptions import ConnectionError
    from stanza.resources import common

    def fail(*arguments, **options):
        raise ConnectionError("Max retries exceeded")

    monkeypatch.setattr(common, "DEFAULT_MODEL_DIR", str(tmp_path / "stanza_resources"))
    monkeypatch.setattr(common, "request_file", fail)
    return tmp_path


def test_the_error_has_the_exact_command(no_network):
    with pytest.raises(ParserUnavailableError) as raised:
        LineParser(ParserOptions(lang="de"))
    message = str(raised.value)
    assert (
        COMMAND.format("de") in message
        and "--parser-dir stanza_models" in message
        and "could not be downloaded" in message
    )


def test_french_is_refused_with_what_there_is(no_network, caplog):
    with pytest.raises(LanguageWithoutParserError) as raised:
        LineParser(ParserOptions(lang="fr"))
    message = str(raised.value)
    assert "'fr'" in message and "da, de, en, es" in message and "--tree-parser brackets" in message


def test_models_that_are_there_need_no_network(no_network):
    folder = no_network / "stanza_resources"
    (folder / "en").mkdir(parents=True)
    (folder / "resources.json").write_text(
        '{"en": {"packages": {"default": {"pos": "p", "constituency": "c"}}, '
        '"pos": {"p": {}}, "constituency": {"c": {}}}}'
    )
    for processor, package in (("pos", "p"), ("constituency", "c")):
        (folder / "en" / processor).mkdir()
        (folder / "en" / processor / f"{package}.pt").write_text("model")
    assert LineParser(ParserOptions(lang="en")).identity()["parser"]["name"] == "stanza"


def test_without_stanza_the_error_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(ParserUnavailableError, match=r"pip install 'tree-fairseq\[stanza\]'"):
        LineParser(ParserOptions(lang="en"))
