"""Recipe files: which setting wins, how gaps are filled, what becomes a command, what is refused."""

from __future__ import annotations

import shlex

import pytest

from tests.recipes.commands import CLASSIFICATION, EXAMPLES, INSERTION, RECIPES, STRUCTURAL, TREEFORMER, library

FILE = """
# a comment
[options]
--size S = small or big
--names N = names
--toy = tiny

[plain]
size = small
width = 16
layers = 2
flags = --width {width} [--layers {layers}] [--names {names}] --json '{"a b": [1]}'
splits = train test
work =
    mkdir -p {place}
    {inner}
    done [{missing}/never]
inner =
    cp {split}.a \\
        {place}
    cp {split}.b {place}
place = {out}/sizes[-{names}]
missing =

[when --size big]
width = 64

[when --size !small --names]
width = 128

[when --toy]
width = 4

[later]
width = 32
"""


@pytest.fixture
def settings(tmp_path):
    """Makes the settings of the file above under some options."""
    module = library("recipe_file")
    (tmp_path / "recipe.ini").write_text(FILE, encoding="utf-8")
    sections = module.read_sections(tmp_path / "recipe.ini")
    return lambda **given: module.Settings(sections, {"out": "/some where", **given}, {})


@pytest.mark.parametrize(
    ("given", "width"),
    [
        ({}, "32"),
        ({"size": "big"}, "64"),
        ({"size": "big", "names": "x"}, "128"),
        ({"size": "big", "names": "x", "toy": "1"}, "4"),
        ({"size": "big", "width": "7"}, "7"),
    ],
)
def test_toy_wins_over_conditions_and_these_over_the_rest(settings, given, width):
    assert settings(**given).text("width") == width


def test_gaps_groups_and_quotes(settings):
    words = ["--width", "32", "--layers", "2", "--json", '{"a b": [1]}']
    assert settings().words("flags") == words
    assert settings(layers="").words("flags") == words[:2] + words[4:]
    assert settings(names=["a", "b"]).words("flags") == [*words[:4], "--names", "a", "b", *words[4:]]
    assert settings(names="a b").expand("x='{names}' \"{names}\" {names}y") == ["x={names}", "a b", "a by"]


def test_lines_become_commands_and_loops_are_unrolled(settings):
    place = "/some where/sizes-x"
    assert settings(names="x").commands("work") == [
        ["mkdir", "-p", place],
        ["cp", "train.a", place],
        ["cp", "train.b", place],
        ["cp", "test.a", place],
        ["cp", "test.b", place],
        ["done"],
    ]


def test_gaps_that_nothing_fills_are_named(settings):
    module = library("recipe_file")
    with pytest.raises(module.RecipeError, match=r"place in \[plain\] needs \{out\}, which is not set anywhere"):
        module.check_names(settings().sections, [])
    module.check_names(settings().sections, ["out"])


def test_files_that_cannot_be_read_are_named(tmp_path):
    module = library("recipe_file")
    (tmp_path / "recipe.ini").write_text("width = 3\n", encoding="utf-8")
    with pytest.raises(module.RecipeError, match="recipe.ini"):
        module.read_sections(tmp_path / "recipe.ini")
    (tmp_path / "recipe.ini").write_text("[recipe]\nlike = nothing\n", encoding="utf-8")
    with pytest.raises(module.RecipeError, match="nothing.ini"):
        module.read_sections(tmp_path / "recipe.ini")


@pytest.mark.parametrize("name", [*RECIPES, *STRUCTURAL, *CLASSIFICATION, *TREEFORMER, *INSERTION, "glue"])
def test_figures_of_papers_are_those_of_the_readme(name):
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    for section in library("recipe_file").read_sections(EXAMPLES / name / "recipe.ini"):
        if section.title == "paper":
            assert section.values and all(
                figure in readme for text in section.values.values() for figure in text.split()
            )


def test_long_commands_are_printed_in_lines_that_can_be_copied():
    words = ["train", *(f"--flag-{number}" for number in range(30)), "--json", '{"a": 1}']
    lines = library("stages").shown(words).split(" \\\n")
    assert len(lines) > 1 and all(len(line) <= 120 for line in lines)
    assert shlex.split(" ".join(lines)) == words
