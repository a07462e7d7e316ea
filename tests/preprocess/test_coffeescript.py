"""CoffeeScript programs and their JavaScript: the parser, the compiler, the published pairs, the data sets.

What needs Node is skipped where Node, or a way to its packages, is missing.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.programs import javascript
from preprocess.programs.__main__ import main
from preprocess.programs.coffee_language import LAYOUT, coffee_text, read_coffee
from preprocess.programs.coffeescript import SETTINGS, SUFFIXES, CoffeeSampler, data_set
from preprocess.programs.javascript import JavaScriptCompiler, NodeError, is_easy, translate_easy
from tests.preprocess.files import DATA, lines
from tree_fairseq.errors import NotationError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

PUBLISHED = DATA / "tree2tree_programs" / "cs_js_BL_mini"
BRACKET = notation_named("bracket")


@pytest.fixture(scope="module")
def modules(request):
    """The folder of the npm packages, kept between runs of the tests."""
    folder = request.config.cache.mkdir("tree-fairseq-programs")
    try:
        javascript.fetch_modules(folder)
    except NodeError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def compiler(modules):
    with JavaScriptCompiler(modules) as opened:
        yield opened


@cache
def published():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED} is not at hand")
    files = sorted(PUBLISHED.glob("preprocessed_progs_*.json"))
    return [pair for path in files for pair in json.loads(path.read_text(encoding="utf-8"))]


def published_tree(node: dict) -> Tree:
    return Tree(node["root"].strip().replace(" ", "_"), [published_tree(child) for child in node["children"]])


def published_words(pair: dict) -> list[str]:
    return [token["type"] if token["type"] in LAYOUT else token["value"] for token in pair["source_prog"]]


def sample(size: int, budget: int, seed: int = 1) -> list[list[str]]:
    sampler = CoffeeSampler(random.Random(seed), "abcxyz", "0123456789", budget)
    return [sampler.program() for _ in range(size)]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x", "( Block ( Value_IdentifierLiteral x ) )"),
        (
            "x = 1 + y * 2 == 3 TERMINATOR",
            "( Block ( Assign ( Value_IdentifierLiteral x ) ( Op_=== ( Op_+ ( Value_NumberLiteral 1 )"
            " ( Op_* ( Value_IdentifierLiteral y ) ( Value_NumberLiteral 2 ) ) ) ( Value_NumberLiteral 3 ) ) ) )",
        ),
        (
            "a if b if c",
            "( Block ( If ( Value_IdentifierLiteral c ) ( Block ( If ( Value_IdentifierLiteral b )"
            " ( Block ( Value_IdentifierLiteral a ) ) ) ) ) )",
        ),
        (
            "a while b while c",
            "( Block ( While ( While ( Value_IdentifierLiteral c ) ( Block ( Value_IdentifierLiteral b ) ) )"
            " ( Block ( Value_IdentifierLiteral a ) ) ) )",
        ),
        (
            "a if b while c",
            "( Block ( If ( While ( Value_IdentifierLiteral c ) ( Block ( Value_IdentifierLiteral b ) ) )"
            " ( Block ( Value_IdentifierLiteral a ) ) ) )",
        ),
        (
            "if a INDENT b TERMINATOR 1 OUTDENT else INDENT while c INDENT d OUTDENT OUTDENT TERMINATOR e",
            "( Block ( If ( Value_IdentifierLiteral a ) ( Block ( Value_IdentifierLiteral b ) ( Value_NumberLiteral 1 "
            ") )"
            " ( Block ( While ( Value_IdentifierLiteral c ) ( Block ( Value_IdentifierLiteral d ) ) ) ) )"
            " ( Value_IdentifierLiteral e ) )",
        ),
    ],
)
def test_tokens_are_read(text, tree):
    assert BRACKET.write(read_coffee(text.split())) == tree
    assert read_coffee(tuple(text.split())) == read_coffee(text.split())


@pytest.mark.parametrize(
    "text",
    [
        *("", "TERMINATOR", "x y", "x +", "+ x", "x = if", "if x", "if x INDENT", "if x INDENT OUTDENT", "x OUTDENT"),
        *("( x", "if x INDENT y OUTDENT else z", "while x INDENT y OUTDENT else INDENT z OUTDENT"),
        "if a INDENT b OUTDENT else INDENT c OUTDENT else INDENT d OUTDENT",
    ],
)
def test_tokens_that_are_no_program(text):
    with pytest.raises(NotationError):
        read_coffee(text.split())


def test_text_of_a_program():
    tokens = (
        "if a INDENT b TERMINATOR while c INDENT d OUTDENT OUTDENT else INDENT e if f OUTDENT TERMINATOR g TERMINATOR"
    )
    assert coffee_text(tokens.split()) == "if a\n  b\n  while c\n    d\nelse\n  e if f\ng\n"


def test_published_sources_are_read():
    for pair in published():
        assert read_coffee(published_words(pair)) == published_tree(pair["source_ast"])


def test_published_targets_are_compiled(compiler):
    results = compiler.translate([coffee_text(published_words(pair)) for pair in published()])
    assert [BRACKET.read(tree) for tree, _ in results] == [published_tree(pair["target_ast"]) for pair in published()]


def test_long_programs_are_about_as_large_as_the_published_ones():
    splits = data_set("B-long", {"train": 1_000, "valid": 0, "test": 0}, 1, None)
    sizes = [sum(word not in "()" for word in program[0].split()) for program in splits["train"]]
    theirs = [sum(1 for _ in published_tree(pair["source_ast"]).preorder()) for pair in published()]
    assert sum(sizes) / len(sizes) == pytest.approx(sum(theirs) / len(theirs), rel=0.1)


# The compiler's own tree, as a nested list of labels, through the words of its listing.
LISTING = """
const coffee = require(require.resolve("coffeescript", { paths: [process.argv[1]] }));
const programs = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(programs.map((program) => coffee.nodes(program).toString())));
"""


def listed_tree(listing: str) -> Tree:
    """The tree of a listing in which every line is a node and two blanks deeper than its parent."""
    rows = [(len(row) - len(row.lstrip()), row.strip()) for row in listing.splitlines() if row.strip()]

    def below(position: int) -> tuple[Tree, int]:
        depth, row = rows[position]
        label, _, value = row.partition(": ")
        children = [Tree(value)] if value else []
        position += 1
        while position < len(rows) and rows[position][0] > depth:
            child, position = below(position)
            children.append(child)
        return Tree(label.replace(" ", "_"), children), position

    return below(0)[0]


def test_the_compiler_parses_as_we_do(modules):
    programs = sample(300, 28) + sample(300, 60, seed=2)
    command = [shutil.which("node"), "-e", LISTING, str(modules)]
    texts = json.dumps([coffee_text(words) for words in programs])
    listings = json.loads(subprocess.run(command, input=texts, capture_output=True, text=True, check=True).stdout)
    for words, listing in zip_equal(programs, listings):
        assert listed_tree(listing) == read_coffee(words), words


def test_easy_programs_need_no_compiler(compiler):
    programs = [words for words in sample(400, 12) + sample(400, 40, seed=3) if is_easy(read_coffee(words))]
    assert 400 < len(programs) < 800
    results = compiler.translate([coffee_text(words) for words in programs])
    for words, result in zip_equal(programs, results):
        assert translate_easy(read_coffee(words)) == result, words


def test_calls_lack_arguments_and_names_of_methods_as_in_the_published_trees(modules):
    with JavaScriptCompiler(modules) as compiler:
        ((tree, _),) = compiler.translate(["if (0 while b)\n  1"])
    assert "( CallExpression ( MemberExpression ( Identifier results ) ) )" in tree


def test_programs_that_the_compiler_refuses(modules):
    with JavaScriptCompiler(modules) as compiler, pytest.raises(NodeError, match="the compiler refuses 'if if'"):
        compiler.translate(["x", "if if"])


def test_node_that_ends_early(tmp_path, modules, monkeypatch):
    monkeypatch.setattr(javascript, "fetch_modules", lambda folder: None)
    with JavaScriptCompiler(tmp_path) as compiler, pytest.raises(NodeError, match="Node ended early: .*coffeescript"):
        compiler.translate(["x"])


def test_without_node(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["coffeescript", "--setting", "A-short", "--output", str(tmp_path / "out")]) == 1
    assert "node is not installed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_folder_of_another_package_is_left_alone(tmp_path):
    (tmp_path / "package.json").write_text("{}")
    with pytest.raises(NodeError, match="contains another package"):
        javascript.fetch_modules(tmp_path)
    assert (tmp_path / "package.json").read_text() == "{}"


def test_npm_that_fails(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network' >&2; exit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(NodeError, match="npm error network"):
        javascript.fetch_modules(tmp_path / "modules")


@given(st.integers(0, 10**9), st.integers(0, 60))
def test_every_program_is_read(seed, budget):
    words = CoffeeSampler(random.Random(seed), "xy", "01", budget).program()
    tree = read_coffee(words)
    assert sorted(tree.leaves()) == sorted(word for word in words if word in "xy01")
    assert coffee_text(words).split() == [word for word in words if word not in LAYOUT]
    assert BRACKET.read(BRACKET.write(tree)) == tree


@pytest.mark.parametrize("setting", SETTINGS)
def test_toy_sets(setting, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = ["coffeescript", "--setting", setting, "--train", "60", "--valid", "10", "--test", "8", "--toy"]
    assert main([*arguments, "--output", str(tmp_path / "a")]) == 0
    assert main([*arguments, "--output", str(tmp_path / "b"), "--seed", "2"]) == 0
    check_sets(tmp_path / "a", setting)
    assert (tmp_path / "a" / "train.cs").read_bytes() != (tmp_path / "b" / "train.cs").read_bytes()


def test_compiled_sets(tmp_path, modules):
    sizes = ["--train", "60", "--valid", "10", "--test", "8"]
    folders = ["--node-modules", str(modules), "--output", str(tmp_path / "a")]
    assert main(["coffeescript", "--setting", "A-long", *sizes, *folders]) == 0
    check_sets(tmp_path / "a", "A-long")
    assert "Identifier ref" in (tmp_path / "a" / "train.js").read_text()


def check_sets(folder: Path, name: str) -> None:
    setting = SETTINGS[name]
    files = {f"{split}.{suffix}" for split in ("train", "valid", "test") for suffix in SUFFIXES}
    assert {path.name for path in folder.iterdir()} == files
    seen: set[str] = set()
    for split, size in (("train", 60), ("valid", 10), ("test", 8)):
        rows = [lines(folder / f"{split}.{suffix}") for suffix in SUFFIXES]
        assert {len(row) for row in rows} == {size}
        for source, target, words, tokens in zip_equal(*rows):
            assert not {source, target} & seen
            seen |= {source, target}
            assert BRACKET.read(source) == read_coffee(words.split())
            assert BRACKET.read(target).label == "BlockStatement"
            assert setting.shortest <= sum(word not in LAYOUT for word in words.split()) <= setting.longest
            assert set(BRACKET.read(source).leaves()) <= set(setting.names + setting.numbers)
            assert tokens[-1] in ";}"
