"""tree-fairseq options: every flag of every architecture with its default and its meaning; the pages have the same."""

import re
from argparse import Namespace
from pathlib import Path

import pytest
from fairseq import options

from tests.nn.tiny import arguments
from tree_fairseq.commands.model_options import architectures, as_markdown, main, model_options
from tree_fairseq.errors import InputError

PAGES = Path(__file__).resolve().parents[2] / "docs" / "methods"
TABLE = re.compile(r"<!-- tree-fairseq options (\w+) --markdown -->\n(.*?)\n<!-- end of the table -->", re.DOTALL)


@pytest.mark.parametrize("architecture", architectures())
def test_every_flag_has_a_meaning_and_the_default_of_a_training(architecture):
    found = {option.flag.split()[0]: option for option in model_options(architecture)}
    assert found and all(option.meaning for option in found.values())
    trained = model_args(architecture)
    for flag, option in found.items():
        value = getattr(trained, flag[2:].replace("-", "_"), option.default)
        assert option.default == {None: "–", True: "on", False: "off"}.get(value, str(value)), flag


def model_args(architecture: str) -> Namespace:
    return options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", architecture])


def test_flags_of_stock_models_are_left_out_and_those_of_the_paper_are_marked():
    found = {option.flag.split()[0]: option for option in model_options("tree_positional_transformer_tiny")}
    assert "--encoder-layers" not in found and "--dropout" not in found
    assert found["--tree-decay-init"].default == "uniform" and found["--tree-decay-init"].published == "paper"
    assert found["--tree-position-dim"].default == "512"  # of this architecture
    assert model_options("tree_to_tree_lstm")[0].default == "512"  # of a dataclass
    assert arguments("tree_positional_transformer_tiny").tree_position_dim == 512


def test_names_are_listed_and_a_wrong_one_is_corrected(capsys):
    assert main([]) == 0
    assert "treeformer_cogs" in capsys.readouterr().out.splitlines()
    with pytest.raises(InputError, match="Did you mean treeformer"):
        model_options("treefomer")
    assert main(["treeformer"]) == 0
    assert "--treeformer-height HEIGHT  (default: 10)" in capsys.readouterr().out


def test_the_tables_of_the_pages_are_what_the_command_prints():
    tables = [found for page in sorted(PAGES.glob("*.md")) for found in TABLE.findall(page.read_text(encoding="utf-8"))]
    assert {name for name, _ in tables} >= {"tree_transformer", "tree_positional_transformer", "treeformer"}
    for name, table in tables:
        assert table == as_markdown(model_options(name)), f"run tree-fairseq options {name} --markdown"
