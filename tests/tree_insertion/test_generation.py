"""Accuracy of generated hypotheses, and marks of partial and invalid trees."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch

from tests.faults.test_32_insertion_input import corpus_of
from tests.nn.tiny import arguments
from tests.tree_insertion.test_preprocessing import preprocess
from tests.tree_insertion.test_task import batches, task_of
from tree_fairseq import errors
from tree_fairseq.tree_insertion import model, sequences  # noqa: F401  (register)
from tree_fairseq.trees.text import escape_label

LINES = ("( f ( g a ) b )", "( f b )", "a", "( f b ( g a ) )")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("accuracy")
    return preprocess(corpus_of(place / "text", train=LINES, test=(*LINES, "( f strange )")), place / "bin")


def answers(task, *texts):
    """Hypotheses that are these lines of labels and brackets, without numbers."""
    dictionary = task.target_dictionary
    ids = {"(": dictionary.open, ")": dictionary.close, "@R@": dictionary.root}
    return [
        [{"tokens": torch.tensor([ids.get(word) or dictionary.index(word) for word in text.split()])}] for text in texts
    ]


def counted(folder, split, *texts, **options):
    task = task_of(folder, **options)
    (batch,) = batches(task, split)
    order = batch["id"].tolist()
    found = answers(task, *(texts[number] for number in order))
    return task.count_accurate(batch, found)


NUMBERED = ("( f::1 ( g::1 a::1 ) b::1 )", "( f::1 b::1 )", "a::1", "( f::1 b::1 ( g::1 a::1 ) )")


def test_accuracy_counts_trees_that_are_met(folder):
    assert counted(folder, "test", *NUMBERED, "( f::1 b::1 )") == 4
    # The number of a label means nothing, nor do brackets around a single one.
    assert (
        counted(folder, "test", NUMBERED[0].replace("g::1", "b::1"), NUMBERED[1], "( a::1 )", NUMBERED[3], "a::1") == 3
    )


def test_an_unknown_label_is_never_right(folder):
    assert counted(folder, "test", *NUMBERED, "( f::1 <unk> )") == 4


@pytest.mark.parametrize("wrong", ["( f::1 b::1", "f::1 b::1", "( ( f::1 b::1 ) )", "( @R@ f::1 b::1 )", "@R@", "( )"])
def test_what_is_no_tree_is_wrong(folder, wrong):
    assert counted(folder, "test", NUMBERED[0], wrong, *NUMBERED[2:], "a::1") == 3


def test_order_counts_unless_it_is_said_not_to(folder):
    turned = (NUMBERED[3], NUMBERED[1], NUMBERED[2], NUMBERED[0], "a::1")
    assert counted(folder, "test", *turned) == 2
    assert counted(folder, "test", *turned, eval_unordered="g f") == 4
    assert counted(folder, "test", *turned, eval_unordered="g") == 2


def test_a_search_that_finds_nothing_is_wrong(folder):
    task = task_of(folder)
    (batch,) = batches(task, "valid")
    assert task.count_accurate(batch, [[] for _ in batch["target"]]) == 0


def test_outputs_that_are_no_complete_trees_are_marked(folder):
    task = task_of(folder)
    found = answers(task, NUMBERED[0], NUMBERED[1], "( @R@ a::1 b::1 )", "( f::1")
    for (hypothesis,), is_complete in zip(found, (True, False, False, True)):
        hypothesis |= {"is_complete": is_complete, "steps": 12}
        task._mark(hypothesis)
    assert [best["steps"] for best, *_ in found] == ["12", "12 partial", "12 partial invalid", "12 invalid"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    place = tmp_path_factory.mktemp("programs")
    corpus = corpus_of(place / "text", train=("return f(x)", "return x + x"))
    return preprocess(corpus, place / "bin", "--target-notation", "python", splits=("train",))


def generated(task, outputs):
    """The hypotheses of a batch for which the search finds these outputs."""
    generator = SimpleNamespace(generate=lambda *given, **options: outputs)
    return [best for best, *_ in task.generate(generator, [], {"net_input": {}}) if best is not None]


@pytest.mark.parametrize("grammar", ["none", "language"])
def test_outputs_that_are_no_programs_are_marked_or_become_the_nearest(programs, grammar):
    task = task_of(programs, grammar=grammar)
    name, call = 'Name\\s"x::1', next(word for word in task.target_dictionary.symbols if "Call" in word)
    texts = (f"( {call} {name} {name} )", f"( {call} {name} )", f"{name} {name}")
    found = answers(task, *texts)
    for (hypothesis,) in found:
        hypothesis["steps"] = 3
    task.programs = task._program_outputs()
    best = generated(task, found)
    written = [task.target_dictionary.string(each["tokens"]) for each in best]
    if grammar == "none":
        assert [each["steps"] for each in best] == ["3", "3 invalid", "3 invalid"]
        assert task.tree_of(best[2]) is None and written[0] == "return x(x)"
    else:
        assert [each["steps"] for each in best] == ["3", "3 nearest", "3 nearest"]
        assert written == ["return x(x)"] * 3
        assert all(len(each["positional_scores"]) == len(each["tokens"]) for each in best[1:])


def test_options_of_programs_that_nothing_reads_are_refused(folder, programs):
    with pytest.raises(errors.DataFolderError, match="needs programs"):
        task_of(folder, grammar="language")._program_outputs()
    with pytest.raises(errors.InputError, match="it goes with --grammar language"):
        task_of(programs, schema="schema.sql")._program_outputs()


@pytest.mark.parametrize(
    ("notation", "message"),
    [
        (
            "sql",
            "2 of 3 training queries do not run on the schema (the first: no such function: STR_POSITION); "
            "use --target-notation sql:sqlite for a SQLite file",
        ),
        ("sql:sqlite", "1 of 3 training queries do not run on the schema (the first: no such column: nowhere)"),
    ],
)
def test_training_queries_that_do_not_run_are_counted(tmp_path, notation, message, caplog):
    queries = ("SELECT name FROM t", "SELECT INSTR(name, 'x') FROM t", "SELECT nowhere FROM t", "SELECT name FROM t")
    data = preprocess(
        corpus_of(tmp_path / "text", train=queries), tmp_path / "bin", "--target-notation", notation, splits=("train",)
    )
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (name TEXT)")
    caplog.set_level("INFO")
    task_of(data, grammar="language", schema=str(tmp_path / "schema.sql"))._program_outputs()
    assert f"[trees] {message}" in [record.getMessage() for record in caplog.records]


def test_an_output_with_an_invented_column_in_quotes_becomes_a_query_without_it(tmp_path):
    queries = ("SELECT name FROM t", 'SELECT name FROM t WHERE name = "nowhere"')
    data = preprocess(
        corpus_of(tmp_path / "text", train=queries), tmp_path / "bin", "--target-notation", "sql", splits=("train",)
    )
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (name TEXT)")
    programs = task_of(data, grammar="language", schema=str(tmp_path / "schema.sql"))._program_outputs()
    dictionary, language = programs.dictionary, programs.nearest.language
    tree = language.read('SELECT "nowhere" FROM t')
    hypothesis = {
        "tokens": torch.tensor([dictionary.index(f"{escape_label(each.label)}::1") for each in tree.preorder()])
    }
    assert programs.complete(hypothesis, tree) == ["nearest"]
    assert dictionary.string(hypothesis["tokens"]) == "SELECT name FROM t"


@pytest.mark.parametrize(
    ("arch", "nbest"),
    [
        ("tree_insertion_transformer_tiny", 1),
        ("sequence_insertion_transformer_tiny", 1),
        ("insertion_left_to_right_tiny", 2),
    ],
)
def test_whatever_a_model_writes_becomes_a_program(programs, arch, nbest):
    task = task_of(programs, grammar="language")
    trained = task.build_model(arguments(arch))
    generator = task.build_generator([trained], Namespace(beam=nbest, nbest=nbest))
    [batch] = batches(task, "train")
    for ranked in task.generate(generator, [trained], batch):
        assert len(ranked) == nbest
        for output in ranked:
            assert task.target_dictionary.notation.accepts(task.tree_of(output)) and "invalid" not in output["steps"]


def test_labels_that_the_dictionary_lacks_are_no_part_of_the_nearest_program(tmp_path):
    corpus = corpus_of(tmp_path / "text", train=("return f(x)", "return f(x)", "return rare"))
    data = preprocess(corpus, tmp_path / "bin", "--target-notation", "python", "--thresholdtgt", 2, splits=("train",))
    programs = task_of(data, grammar="language")._program_outputs()
    assert programs.nearest.find(["<unk>"]) is not None
    assert not any("unk" in label for label in programs.nearest._fields)
