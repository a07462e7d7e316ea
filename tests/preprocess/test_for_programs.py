"""FOR programs and their translation: the definitions, the published programs, the texts, the data sets."""

from __future__ import annotations

import json
import operator
import random
from functools import cache, partial
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.corpora import CorpusError
from preprocess.programs.__main__ import main
from preprocess.programs.for2lam import PUBLISHED, SETTINGS, SUFFIXES, ForSampler
from preprocess.programs.for_language import (
    CHEN,
    COMPARISONS,
    KINDS,
    OPERATORS,
    REBUILD,
    check_program,
    for_text,
    lambda_text,
    read_published,
    to_lambda,
)
from preprocess.programs.splits import chunks, fill
from tests.preprocess.files import DATA, lines
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

BRACKET = notation_named("bracket")
DIALECTS = st.sampled_from((CHEN, REBUILD))


def programs(dialect):
    def draw(seed, budget):
        return ForSampler(random.Random(seed), dialect, budget).program()

    return st.builds(draw, st.integers(0, 10**9), st.integers(0, 40))


def slow_translation(node: Tree, dialect) -> Tree:
    """The definition, by recursion."""
    dummy, function, unit = Tree(dialect.dummy), Tree(dialect.function), Tree("Unit")
    if node.label == "Assign":
        variable, expression = node.children
        return Tree("Let", (variable, expression, unit))
    if node.label == "If":
        condition, first, second = node.children
        return Tree("If", (condition, slow_translation(first, dialect), slow_translation(second, dialect)))
    if node.label == "For":
        variable, start, condition, step, body = node.children
        again = Tree("Let", (dummy, slow_translation(body, dialect), Tree("App", (function, step))))
        return Tree(
            "Letrec", (function, variable, Tree("If", (condition, again, unit)), Tree("App", (function, start)))
        )
    if node.label == "Seq":
        left, right = (slow_translation(child, dialect) for child in node.children)
        if left.label == "Let" and left.children[2] == unit:
            return Tree("Let", (left.children[0], left.children[1], right))
        return Tree("Let", (dummy, left, right))
    raise AssertionError(node.label)


def is_term(node: Tree) -> bool:
    kinds = {"If": "CTT", "Let": "nTT", "Letrec": "nnTT", "App": "nE", "Unit": ""}
    if node.label not in kinds:
        return KINDS.get(node.label) == "E"
    if len(node.children) != len(kinds[node.label]):
        return False
    for kind, child in zip_equal(kinds[node.label], node.children):
        if not {"T": is_term(child), "n": not child.children}.get(kind, KINDS.get(child.label) == kind):
            return False
    return True


TEMPLATES = {"Assign": "{} = {}", "For": "for {} = {} ; {} ; {} do {} endfor", "Seq": "{} ; {}"}
TEMPLATES |= {"Var": "{}", "Const": "{}"}
TEMPLATES |= {"Let": "let {} = {} in {}", "Letrec": "letrec {} {} = {} in {}", "App": "{} {}"}
TEMPLATES |= {tag: f"{{}} {word} {{}}" for tag, word in (OPERATORS | COMPARISONS).items()}


def slow_text(node: Tree, end_of_if: str, right_sequences: bool) -> str:
    """The text of a program, by recursion."""
    if not node.children:
        return "()" if node.label == "Unit" else node.label
    parts = [slow_text(child, end_of_if, right_sequences) for child in node.children]
    side = 0 if node.label == "Seq" and right_sequences else 1
    for group in (("Seq",), tuple(OPERATORS)):
        if node.label in group and node.children[side].label in group:
            parts[side] = f"( {parts[side]} )"
    return {**TEMPLATES, "If": "if {} then {} else {}" + end_of_if}[node.label].format(*parts)


def check_translation(program, dialect):
    translated = to_lambda(program, dialect)
    assert is_term(translated) and translated == slow_translation(program, dialect)
    assert for_text(program, dialect) == slow_text(program, " endif", dialect.right_sequences)
    assert lambda_text(translated) == slow_text(translated, "", False)


@given(DIALECTS.flatmap(lambda dialect: st.tuples(st.just(dialect), programs(dialect))))
def test_translations_and_texts_are_those_of_the_definition(drawn):
    dialect, program = drawn
    check_program(program)
    check_translation(program, dialect)


def test_the_published_example():
    zero, x, y, one = (f"( Const {name} )" if name in "01" else f"( Var {name} )" for name in "0xy1")
    program = BRACKET.read(
        f"( Seq ( If ( Ge {zero} {x} ) ( Assign y {x} ) ( Assign y {y} ) )"
        f" ( Seq ( Assign x {one} ) ( Assign y {one} ) ) )"
    )
    assert for_text(program, CHEN) == "if 0 > x then y = x else y = y endif ; x = 1 ; y = 1"
    target = "let blank = if 0 > x then let y = x in () else let y = y in () in let x = 1 in let y = 1 in ()"
    assert lambda_text(to_lambda(program, CHEN)) == target


def test_a_loop_and_both_kinds_of_sequence():
    loop = BRACKET.read(
        "( For a1 ( Const 0 ) ( Le ( Var a1 ) ( Var a0 ) ) ( Plus ( Var a1 ) ( Const 1 ) )"
        " ( Assign a0 ( Minus ( Var a0 ) ( Minus ( Var a1 ) ( Const 2 ) ) ) ) )"
    )
    assert for_text(loop, REBUILD) == "for a1 = 0 ; a1 < a0 ; a1 + 1 do a0 = a0 - ( a1 - 2 ) endfor"
    assert lambda_text(to_lambda(loop, REBUILD)) == (
        "letrec a9 a1 = if a1 < a0 then let a8 = let a0 = a0 - ( a1 - 2 ) in () in a9 a1 + 1 else () in a9 0"
    )
    one, two, three = (f"( Assign a0 ( Const {number} ) )" for number in "123")
    left = BRACKET.read(f"( Seq ( Seq {one} {two} ) {three} )")
    right = BRACKET.read(f"( Seq {one} ( Seq {two} {three} ) )")
    assert for_text(left, REBUILD) == for_text(right, CHEN) == "a0 = 1 ; a0 = 2 ; a0 = 3"
    assert for_text(left, CHEN) == "( a0 = 1 ; a0 = 2 ) ; a0 = 3"
    assert for_text(right, REBUILD) == "a0 = 1 ; ( a0 = 2 ; a0 = 3 )"
    assert lambda_text(to_lambda(right, REBUILD)) == "let a0 = 1 in let a0 = 2 in let a0 = 3 in ()"
    assert lambda_text(to_lambda(left, REBUILD)) == "let a8 = let a0 = 1 in let a0 = 2 in () in let a0 = 3 in ()"


def test_deep_programs_need_no_recursion():
    program = statement = BRACKET.read("( Assign x ( Const 1 ) )")
    condition = BRACKET.read("( Le ( Var x ) ( Var x ) )")
    for _ in range(2_000):
        program = Tree("If", (condition, program, statement))
    check_program(program)
    assert for_text(program, CHEN).count("endif") == lambda_text(to_lambda(program, CHEN)).count("if") == 2_000


def test_variables_are_declared_before_they_are_read():
    def read_in(tree, declared):
        return all(node.children[0].label in declared for node in tree.preorder() if node.label == "Var")

    def declared_after(node, declared):
        if node.label == "Assign":
            variable, expression = node.children
            assert read_in(expression, declared)
            return declared | {variable.label}
        if node.label == "If":
            condition, *branches = node.children
            assert read_in(condition, declared)
            for branch in branches:
                declared_after(branch, declared)
        elif node.label == "For":
            variable, start, condition, step, body = node.children
            inside = declared | {variable.label}
            assert read_in(start, declared) and read_in(condition, inside) and read_in(step, inside)
            declared_after(body, inside)
        elif len(node.children) == 2:
            first, second = node.children
            return declared_after(second, declared_after(first, declared))
        return declared

    sampler = ForSampler(random.Random(1), REBUILD, 15)
    after = [declared_after(sampler.program(), frozenset(["a0"])) for _ in range(2_000)]
    assert all(names == set(REBUILD.variables[: len(names)]) for names in after)
    assert max(map(len, after)) > 2


@cache
def published(name):
    path = DATA / "for2lam" / name
    if not path.exists():
        pytest.skip(f"{path} is not at hand")
    return read_published(path)


def node_counts(trees):
    counts: dict[str, float] = {}
    for tree in trees:
        for node in tree.preorder():
            counts[node.label] = counts.get(node.label, 0) + 1 / len(trees)
    return counts


@pytest.mark.parametrize("name", PUBLISHED.values())
def test_published_programs(name):
    trees = published(name)
    assert len(trees) == 10_000
    for tree in trees[::25]:
        assert BRACKET.read(BRACKET.write(tree)) == tree
        check_translation(tree, REBUILD)
    assert len({for_text(tree, REBUILD) for tree in trees}) == len(set(trees))


def test_drawn_programs_are_like_the_published_ones():
    sampler = ForSampler(random.Random(7), REBUILD, 15)
    theirs, ours = node_counts(published(PUBLISHED["test"])), node_counts([sampler.program() for _ in range(4_000)])
    assert sum(theirs.values()) == pytest.approx(sum(ours.values()), rel=0.05)
    for label in theirs:
        if theirs[label] > 0.2:
            assert ours[label] == pytest.approx(theirs[label], rel=0.1), label


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('["x"]', "program 1 is not a FOR program"),
        ('[{"tag": "Const", "contents": 1}]', "'Const' where one of Assign"),
        (
            '[{"tag": "Assign", "contents": ["a0", {"tag": "Var", "contents": ["a", "b"]}]}]',
            "'Var' has 2 children instead of 1",
        ),
    ],
)
def test_published_files_that_are_not_right(content, message, tmp_path):
    path = tmp_path / "test_For.json"
    path.write_text(content)
    with pytest.raises(CorpusError, match=message) as error:
        read_published(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(("setting", "mean"), [("SYN-S", 20), ("SYN-L", 50)])
def test_lengths_of_both_settings(setting, mean, tmp_path):
    sizes = ["--train", "300", "--valid", "50", "--test", "50"]
    assert main(["for2lam", "--setting", setting, *sizes, "--output", str(tmp_path)]) == 0
    lengths = [len(line.split()) for line in lines(tmp_path / "train.raw.for")]
    assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.05)
    assert SETTINGS[setting].shortest <= min(lengths) and max(lengths) <= SETTINGS[setting].longest


def test_command_line(tmp_path, capsys):
    arguments = ["for2lam", "--setting", "SYN-S", "--train", "600", "--valid", "60", "--test", "50"]
    assert main([*arguments, "--output", str(tmp_path / "a")]) == 0
    assert main([*arguments, "--output", str(tmp_path / "b")]) == 0
    assert main([*arguments, "--output", str(tmp_path / "c"), "--seed", "2"]) == 0
    assert main([*arguments, "--output", str(tmp_path / "d"), "--train", "20"]) == 0
    assert "train: 600 programs" in capsys.readouterr().out
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(f"{split}.{kind}" for split in ("train", "valid", "test") for kind in SUFFIXES)
    for name in names:
        first, same, other_seed, fewer = ((tmp_path / folder / name).read_bytes() for folder in "abcd")
        assert first == same != other_seed
        assert name.startswith("train") or first == fewer
    seen: set[str] = set()
    for split, size in (("train", 600), ("valid", 60), ("test", 50)):
        rows = [lines(tmp_path / "a" / f"{split}.{kind}") for kind in SUFFIXES]
        assert {len(row) for row in rows} == {size}
        for source, target, source_text, target_text in zip_equal(*rows):
            tree = BRACKET.read(source)
            assert source not in seen
            seen.add(source)
            assert to_lambda(tree, CHEN) == BRACKET.read(target)
            assert (source_text, target_text) == (for_text(tree, CHEN), lambda_text(BRACKET.read(target)))


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_come_in_order(workers):
    drawn = chunks(partial(operator.mul, 3), workers)
    assert list(islice(drawn, 20)) == list(range(0, 60, 3))
    drawn.close()


def test_published_sets_become_valid_and_test(tmp_path):
    sampler = ForSampler(random.Random(3), REBUILD, 15)
    for name in PUBLISHED.values():
        elements = [to_json(sampler.program()) for _ in range(60)]
        (tmp_path / name).write_text(json.dumps([*elements, elements[0]]))
    arguments = ["for2lam", "--setting", "rebuild", "--train", "400", "--data", str(tmp_path)]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 0
    splits = {name: lines(tmp_path / f"out/{name}.for") for name in ("train", "valid", "test")}
    programs = [line for split in splits.values() for line in split]
    assert len(set(programs)) == len(programs) > len(splits["train"]) == 400 and len(splits["test"]) <= 60


def to_json(tree: Tree):
    if tree.label == "Const":
        return {"tag": "Const", "contents": int(tree.children[0].label)}
    parts = [to_json(child) if child.children else child.label for child in tree.children]
    return {"tag": tree.label, "contents": parts if len(parts) > 1 else parts[0]}


def test_too_few_programs_and_missing_files(tmp_path, capsys):
    with pytest.raises(CorpusError, match="too few different programs for 3 lines of train, only 1"):
        drawn = [[("a", "b")], [("c", "d"), ("e", "b")], *[[("a", "x")]] * 100]
        fill({"train": 3, "valid": 1, "test": 0}, iter(drawn))
    assert main(["for2lam", "--setting", "rebuild", "--data", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert "test_For.json is missing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        main(["for2lam", "--setting", "SYN-S", "--data", str(tmp_path), "--output", str(tmp_path / "out")])
