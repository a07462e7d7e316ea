"""Programs from end to end: any model, any beam and any limit of lengths, and all outputs parse."""

from __future__ import annotations

import json

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, run
from tests.scoring.runs import write_lines
from tree_fairseq.errors import InputError, NotationError
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.tree_positional.checked_search import ProgramCheck
from tree_fairseq.trees.notations import notation_named

PYTHON = [
    ("print the name", "print(name)"),
    ("set x to 3", "x = 3"),
    ("return the sum of a and b", "return a + b"),
    ("if x is empty ,", "if not x :"),
    ("call f with x and a list", "self.f(x, [1, 2])"),
    ("for every item in items ,", "for item in self.items :"),
    ("raise an error", "raise ValueError('no %s' % name)"),
]
SQL = [
    ("all names", "SELECT t.name FROM t"),
    ("how many of them", "SELECT COUNT(*) FROM t AS a, u AS b WHERE a.id = b.id AND b.c > 3"),
    ("the largest", "SELECT name FROM t WHERE size = (SELECT MAX(size) FROM t)"),
    ("those like x", "SELECT DISTINCT a FROM t WHERE b LIKE '%x%' ORDER BY a DESC LIMIT 1"),
]


@pytest.fixture(scope="module", params=[("python", PYTHON), ("sql", SQL)], ids=["python", "sql"])
def trained(request, tmp_path_factory):
    """The folder of a language and a model that has hardly learned anything, so it proposes nonsense."""
    name, pairs = request.param
    folder = tmp_path_factory.mktemp(name)
    for split, times in (("train", 4), ("test", 1)):
        write_lines(folder / f"{split}.en", [source for source, _ in pairs] * times)
        write_lines(folder / f"{split}.code", [target for _, target in pairs] * times)
    target = ("-t", "code", "--target-modality", "tree", "--target-notation", name)
    prefixes = ("--trainpref", folder / "train", "--validpref", folder / "test", "--testpref", folder / "test")
    run("preprocess", "-s", "en", *target, *prefixes, "--destdir", folder / "bin")
    task = ("--task", "structural_translation", "--arch", "tree_positional_transformer_tiny", "--optimizer", "adam")
    limits = ("--max-update", 2, "--max-tokens", 300, "--criterion", "cross_entropy", "--lr", 0.01)
    run("train", folder / "bin", *task, *limits, "--save-dir", folder / "model", "--disable-validation")
    return notation_named(name), folder, len(pairs)


@pytest.mark.parametrize(("beam", "limit"), [(1, 8), (5, 60)])
def test_all_outputs_of_any_model_parse(trained, beam, limit):
    language, folder, size = trained
    model = ("--task", "structural_translation", "--path", folder / "model" / "checkpoint_last.pt")
    search = ("--beam", beam, "--max-len-a", 0, "--max-len-b", limit, "--grammar", "language")
    output = run("generate", folder / "bin", *model, *search, "--gen-subset", "test")
    found = [text for text, _ in hypotheses(output).values()]
    assert len(found) == size
    for text in found:
        language.read(text)


@pytest.mark.parametrize("trained", [("python", PYTHON)], ids=["python"], indirect=True)
def test_outputs_begin_with_the_types_that_are_named(trained):
    _, folder, size = trained
    model = ("--task", "structural_translation", "--path", folder / "model" / "checkpoint_last.pt")
    search = ("--beam", 2, "--max-len-a", 0, "--max-len-b", 30, "--gen-subset", "test", "--grammar")
    found = hypotheses(run("generate", folder / "bin", *model, *search, "language:Opener"))
    assert len(found) == size and all(text.endswith(":") for text, _ in found.values())
    with pytest.raises(NotationError, match="no program of the data has a node of type 'Opened'.*Did you mean Opener"):
        run("generate", folder / "bin", *model, *search, "language:Opened")
    with pytest.raises(InputError, match="--schema is for SQL, and the target is python"):
        run("generate", folder / "bin", *model, *search, "language", "--schema", folder / "schema.sql")


SCHEMA = "CREATE TABLE t (name TEXT, id INT, size INT, a INT, b TEXT); CREATE TABLE u (id INT, c INT);"


@pytest.mark.parametrize("trained", [("sql", SQL)], ids=["sql"], indirect=True)
@pytest.mark.parametrize(("beam", "limit"), [(1, 8), (1, 60), (3, 30)])
def test_all_queries_of_any_model_run_on_the_schema(trained, beam, limit):
    _, folder, size = trained
    schema = folder / "schema.sql"
    schema.write_text(SCHEMA)
    model = ("--task", "structural_translation", "--path", folder / "model" / "checkpoint_last.pt", "--schema", schema)
    search = ("--beam", beam, "--max-len-a", 0, "--max-len-b", limit, "--grammar", "language")
    output = run("generate", folder / "bin", *model, *search, "--gen-subset", "test")
    found = hypotheses(output)
    assert len(found) == size and f"[trees] 0 of {size} training queries do not run on the schema\n" in output
    for text, _ in found.values():
        assert Schema(SCHEMA).runs(text), text


SEARCHES = {
    "plain": ("--sampling",),
    "top k": ("--sampling", "--sampling-topk", 3),
    "top p": ("--sampling", "--sampling-topp", 0.95),
    "groups": ("--diverse-beam-groups", 2),
    "siblings": ("--diversity-rate", 0.5),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize(("beam", "limit", "seed"), [(2, 8, 1), (4, 20, 2)])
def test_other_searches_find_only_programs(trained, name, beam, limit, seed):
    language, folder, size = trained
    flags = ("--beam", beam, "--nbest", beam, "--max-len-b", limit, "--grammar", "language", "--seed", seed)
    is_sql = (folder / "train.code").read_text().startswith("SELECT")
    if is_sql:
        (folder / "schema.sql").write_text(SCHEMA)
        flags += ("--schema", folder / "schema.sql")
    model = ("--task", "structural_translation", "--path", folder / "model" / "checkpoint_last.pt")
    output = run("generate", folder / "bin", *model, *flags, *SEARCHES[name], "--gen-subset", "test")
    assert len(hypotheses(output)) == size
    for line in output.splitlines():
        if line.startswith("H-"):
            *_, text = line.split("\t")
            language.read(text)
            assert not is_sql or Schema(SCHEMA).runs(text), text


@pytest.mark.parametrize("trained", [("sql", SQL)], ids=["sql"], indirect=True)
def test_a_sentence_without_a_program_is_named_and_its_output_marked(trained, monkeypatch, tmp_path):
    _, folder, size = trained
    model = ("--path", folder / "model" / "checkpoint_last.pt", "--grammar", "language", "--max-len-b", 8, "--beam", 2)
    task, generate = ("--task", "structural_translation"), ("--gen-subset", "test", "--print-step")
    output = run("generate", folder / "bin", *task, *model, *generate)
    assert all(steps.isdecimal() for steps in lines_of("I", output).values()) and "invalid:" not in output
    monkeypatch.setattr(ProgramCheck, "is_program", lambda self, ids: False)
    output = run("generate", folder / "bin", *task, *model, *generate)
    for number, (source, _) in enumerate(SQL):
        assert f"no program for sentence {number} ({source}); its output is not a program" in output
        assert lines_of("I", output)[number].endswith(" invalid")
    output = run("interactive", folder / "bin", *task, *model, stdin="all names\n")
    assert "no program for sentence (all names); its output is not a program" in output
    flags = ("--gen-subset", "test", "--output", tmp_path / "out", "--nbest-json", tmp_path / "out.jsonl")
    run("translate", folder / "bin", *model, *flags)
    found = [json.loads(line)["hypotheses"][0] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [best["unfinished"] for best in found] == [["invalid"]] * size
