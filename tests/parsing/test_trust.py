"""What a folder may decide about new text: all that needs no module, no pickle and no other machine."""

from __future__ import annotations

import shlex
from argparse import Namespace

import pytest

from tree_fairseq.errors import UntrustedFolderError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.trust import options_for_new_text
from tree_fairseq.support.options import flag_of


def named(**options: str) -> Namespace:
    return Namespace(**{"tree_parser": None, "parser_dir": None, "corenlp_url": None, **options})


@pytest.mark.parametrize(
    "options",
    [
        ParserOptions("stanza", lang="de", package="spmrl_charlm"),
        ParserOptions("brackets", parser_dir="/somewhere/else"),
        ParserOptions("right-branching"),
        ParserOptions("benepar", package="benepar_en3"),
        ParserOptions("tree_fairseq.parsing.parsers:random"),
        *(
            ParserOptions("corenlp", corenlp_url=f"http://{host}:9000/x")
            for host in ("localhost", "127.0.0.2", "[::1]")
        ),
    ],
)
def test_a_folder_names_parsers_that_are_here(tmp_path, options):
    assert options_for_new_text(options, tmp_path, named()) == options


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tree_parser", "antigravity:comb"),
        ("tree_parser", "comb"),
        ("tree_parser", "antigravity:stanza"),
        ("parser_dir", "/models"),
        ("parser_dir", "models"),
        *(
            ("corenlp_url", f"http://{host}:9000")
            for host in ("example.com", "localhost@example.com", "127.0.0.1.example.com", "0.0.0.0", "[::2]", "[", "")
        ),
    ],
)
def test_what_a_user_has_to_name_is_in_the_message(tmp_path, option, value):
    options = ParserOptions("stanza").replace(**{"name" if option == "tree_parser" else option: value})
    with pytest.raises(UntrustedFolderError) as caught:
        options_for_new_text(options, tmp_path, named())
    assert f"{tmp_path}/tree.json names" in str(caught.value)
    assert f"give {flag_of(option)} {shlex.quote(value)} (in Python" in str(caught.value)
    assert options_for_new_text(options, tmp_path, named(**{option: value})) == options
    for other in vars(named()).keys() - {option}:
        with pytest.raises(UntrustedFolderError):
            options_for_new_text(options, tmp_path, named(**{other: "stanza"}))


@pytest.mark.parametrize("parser", ["stanza", "benepar"])
def test_a_model_in_the_folder_is_used_if_it_is_loaded_as_weights_only(tmp_path, parser):
    """``tree-fairseq release --parser-dir`` puts it there; the recorded place is of another machine."""
    (tmp_path / "parser").mkdir()
    (tmp_path / "parser" / "constituency.pt").touch()
    options = ParserOptions(parser, parser_dir="/models")
    if parser == "stanza":
        assert options_for_new_text(options, tmp_path, named()).parser_dir == str(tmp_path / "parser")
        (tmp_path / "parser" / "tagger.pt").symlink_to("/dev/zero")
    with pytest.raises(UntrustedFolderError, match="give --parser-dir .*/parser"):
        options_for_new_text(options, tmp_path, named())
    assert options_for_new_text(options, tmp_path, named(parser_dir="mine")).parser_dir == "mine"


def test_a_package_is_no_path(tmp_path):
    with pytest.raises(UntrustedFolderError, match="which is a path"):
        options_for_new_text(ParserOptions("benepar", package="../../model"), tmp_path, named())
