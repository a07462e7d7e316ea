"""Scores runs of generated trees, from files to files."""

from __future__ import annotations

import json

import pytest

from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.scoring.__main__ import SCORERS, main
from tree_fairseq.scoring.structural import StructuralScorer
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding

REFERENCES = ["( f ( and x y ) )", "x", "( g ( h ( and ( f x ) ( f y ) ) ) )", "( f x y )"]
RIGHT_UNORDERED = ["(f (and y x))", "x", "( g ( h ( and ( f y ) ( f x ) ) ) )", "( f y x )"]


def write_outputs(folder, hypotheses, closing=True):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, text in reversed(list(enumerate(hypotheses))):
        rows.append(f"S-{number}\tx")
        rows += [] if text is None else [f"H-{number}\t-1.0\t{text}", f"H-{number}\t-2.0\tworse"]
    rows += ["Generate test with beam=5: BLEU4 = 1.0"] if closing else []
    (folder / "generate-test.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def score(folder, *flags, run="tree", notation="bracket"):
    arguments = ["--run", str(folder / "runs" / run), "--references", str(folder / "words"), "--target-lang", "lf"]
    arguments += ["--notation", notation] if notation else []
    return StructuralScorer.main([*arguments, *flags])


def scores(folder, run="tree"):
    return json.loads((folder / "runs" / run / "score.json").read_text())


@pytest.fixture
def workspace(tmp_path):
    write_lines(tmp_path / "words" / "test.lf", REFERENCES)
    write_outputs(tmp_path / "runs" / "tree", RIGHT_UNORDERED)
    return tmp_path


def test_metrics_and_the_result(workspace, capsys):
    assert score(workspace, "--describe", "arch=a", "--result", str(workspace / "result.json")) == 0
    result = json.loads((workspace / "result.json").read_text())
    assert result["metric"] == "accuracy" and result["score"] == 25
    assert result["accuracy_unordered"] == 75 and result["validity"] == 1
    assert result["runs"] == [
        {
            "run": "tree",
            "arch": "a",
            "metrics": {"accuracy": 25, "accuracy_unordered": 75, "validity": 1},
            "differences": [],
        }
    ]
    assert result["by_size"]["test"] == [
        {"from": 0, "to": 10, "sentences": 4, "accuracy": 25, "accuracy_unordered": 75, "validity": 1}
    ]
    assert [
        (row["from"], row["to"], row["sentences"], row["accuracy_unordered"]) for row in result["by_depth"]["test"]
    ] == [(0, 2, 3, 100 * 2 / 3), (3, 4, 1, 100)]
    assert "validity = 1.0000" in capsys.readouterr().out


def test_steps_and_hypotheses_that_generation_marked(workspace, capsys):
    """The notation can read all these lines; generation marked some of them as invalid or partial."""
    texts = ["( f ( and x y ) )", "( ( x ) )", "( @R@ ( g x ) y )", "( f x y )"]
    marks = ["", "U-1\tinvalid", "U-2\tpartial invalid", "U-3\tpartial"]
    rows = [
        f"S-{n}\tx\nH-{n}\t-1.0\t{text}\n{more}\nI-{n}\t{n + 4}\n" for n, (text, more) in enumerate(zip(texts, marks))
    ]
    (workspace / "runs/tree/generate-test.txt").write_text(
        "".join(rows) + "Generate test with beam=1: BLEU4 = 1.0\n", encoding="utf-8"
    )
    assert score(workspace, "--result", str(workspace / "result.json")) == 0
    result = json.loads((workspace / "result.json").read_text())
    assert (result["accuracy"], result["validity"], result["steps"], result["partial"]) == (50, 0.5, 5.5, {"test": 2})
    assert json.loads((workspace / "runs/tree/outcomes.json").read_text())["test"]["validity"] == "1001"
    assert [row["steps"] for row in result["by_depth"]["test"]] == [(4 + 5 + 7) / 3, 6]
    assert "2 outputs of test reached a limit" in capsys.readouterr().out


def test_steps_need_a_line_for_every_sentence(workspace):
    with open(workspace / "runs/tree/generate-test.txt", "a") as stream:
        stream.write("I-0\t4\n")
    assert score(workspace) == 0
    assert "steps" not in scores(workspace)["metrics"]


def test_a_data_folder_of_insertion(workspace, caplog):
    record = InsertionRecord("lf", "bracket", True, ["exact"], 1, 1, {})
    (workspace / "data").mkdir()
    Manifest(
        "nl",
        "lf",
        files={f"dict.{lang}.txt": FileRecord(0, "") for lang in ("nl", "lf")},
        sections={"insertion": record},
    ).save(workspace / "data")
    assert score(workspace, "--data", str(workspace / "data"), notation=None) == 0
    assert scores(workspace)["metrics"]["accuracy_unordered"] == 75
    assert score(workspace, "--data", str(workspace / "data"), "--symbols", notation=None) == 1
    assert "holds no symbol trees of lf" in caplog.text


def test_wrong_and_invalid_outputs(workspace, caplog):
    write_outputs(workspace / "runs" / "tree", ["( f ( and x <unk> ) )", None, "( g ( h", ""])
    assert score(workspace) == 0
    found = scores(workspace)
    assert found["metrics"] == {"accuracy": 0, "accuracy_unordered": 0, "validity": 0.25}
    assert "1 of 4 sentences have no output" in caplog.text
    assert json.loads((workspace / "runs/tree/outcomes.json").read_text())["test"]["validity"] == "1000"


def test_an_unknown_symbol_is_never_right(workspace):
    write_lines(workspace / "words" / "test.lf", ["( f <unk> )"])
    write_outputs(workspace / "runs" / "tree", ["( f <unk> )"])
    assert score(workspace) == 0
    assert scores(workspace)["metrics"] == {"accuracy": 0, "accuracy_unordered": 0, "validity": 1}


def test_unordered_labels_can_be_named(workspace):
    assert score(workspace, "--unordered", "f") == 0
    assert scores(workspace)["metrics"]["accuracy_unordered"] == 50
    assert score(workspace, "--unordered") == 0
    assert scores(workspace)["metrics"]["accuracy_unordered"] == 25


def test_prolog_conjunctions_have_no_order(workspace):
    write_lines(workspace / "words" / "test.lf", ["job ( ANS ) , language ( ANS , languageid0 )"])
    write_outputs(workspace / "runs" / "tree", ["language(ANS,languageid0), job(ANS)"])
    assert score(workspace, notation="prolog") == 0
    assert scores(workspace)["metrics"] == {"accuracy": 0, "accuracy_unordered": 100, "validity": 1}


def test_labels_of_sets_end_the_names_of_metrics(workspace):
    write_lines(workspace / "words" / "test1.lf", ["x"])
    (workspace / "runs/tree/generate-test1.txt").write_text("S-0\tx\nH-0\t-1\t( x\n")
    assert score(workspace, "--sets", "test=seen", "test1=new") == 0
    metrics = scores(workspace)["metrics"]
    assert (metrics["accuracy_seen"], metrics["accuracy_new"]) == (25, 0)
    assert (metrics["validity_seen"], metrics["validity_new"], metrics["validity"]) == (1, 0, 0.8)
    assert score(workspace, "--sets", "test=", "test1=new") == 0
    assert scores(workspace)["metrics"]["validity"] == 1


def test_references_may_be_one_file(workspace, caplog):
    arguments = [
        "--run",
        str(workspace / "runs/tree"),
        "--references",
        str(workspace / "words/test.lf"),
        "--notation",
        "bracket",
    ]
    assert StructuralScorer.main(arguments) == 0
    assert scores(workspace)["metrics"]["accuracy_unordered"] == 75
    assert StructuralScorer.main([*arguments, "--sets", "test=", "test1=x"]) == 1
    assert "one file for 2 sets" in caplog.text


def test_differences_from_another_run(workspace):
    write_outputs(workspace / "runs" / "stock", ["( f ( and x y ) )", "y", "x", "x"])
    assert score(workspace, run="stock") == 0
    assert score(workspace, "--against", str(workspace / "runs" / "stock")) == 0
    rows = {row["metric"]: row for row in scores(workspace)["differences"]}
    assert set(rows) == {"accuracy", "accuracy_unordered"}
    assert rows["accuracy"]["difference"] == 0 and rows["accuracy"]["p_value"] == 1
    row = rows["accuracy_unordered"]
    assert (row["only_system"], row["only_baseline"], row["difference"], row["p_value"]) == (2, 0, 50, 0.5)
    assert row["baseline"] == "stock"


def test_metrics_of_groups(workspace):
    write_lines(workspace / "words" / "test.groups", ["a b", "a", "", "b"])
    assert score(workspace, "--group-metrics", "b") == 0
    found = scores(workspace)
    assert found["groups"]["test"]["a"] == {"sentences": 2, "accuracy": 50, "accuracy_unordered": 100, "validity": 1}
    assert found["metrics"]["accuracy_unordered_b"] == 50
    assert "accuracy_a" not in found["metrics"]


def test_programs_of_ifttt(workspace):
    reference = "( ROOT IF ( TRIGGER A ( FUNC f PARAMS ) ) THEN ( ACTION B ( FUNC g PARAMS ) ) )"
    outputs = [reference, reference.replace("g P", "h P"), reference.replace("B", "C"), "( ROOT"]
    write_lines(workspace / "words" / "test.lf", [reference] * 4)
    write_outputs(workspace / "runs" / "tree", outputs)
    assert score(workspace, "--scheme", "ifttt", "--primary", "channel_function_accuracy") == 0
    metrics = scores(workspace)["metrics"]
    assert (metrics["channel_accuracy"], metrics["channel_function_accuracy"], metrics["accuracy"]) == (50, 25, 25)
    assert metrics["production_f1"] == pytest.approx(200 * (5 + 4 + 4) / (15 + 20))


@pytest.mark.parametrize("binarization", ["lcrs", "none"])
@pytest.mark.parametrize("traversal", ["dfs", "bfs"])
def test_symbols_of_a_stock_model(workspace, traversal, binarization):
    encoding = SymbolEncoding(traversal, binarization)
    record = SymbolSideRecord("target", "tree", "bracket", traversal, binarization, encoding.mark, 2)
    (workspace / "data").mkdir()
    files = {"dict.lf.txt": FileRecord(0, "")}
    Manifest("nl", "lf", files=files, symbols={"lf": record}).save(workspace / "data")
    symbols = [" ".join(encoding.encode(notation_named("bracket").read(line))) for line in REFERENCES]
    write_outputs(workspace / "runs" / "tree", [*symbols[:2], symbols[2] + " x^0", "<unk>"])
    assert score(workspace, "--data", str(workspace / "data"), "--symbols", notation=None) == 0
    assert scores(workspace)["metrics"] == {"accuracy": 50, "accuracy_unordered": 50, "validity": 0.5}
    write_outputs(workspace / "runs" / "tree", RIGHT_UNORDERED)
    assert score(workspace, "--data", str(workspace / "data"), notation=None) == 0
    assert scores(workspace)["metrics"]["accuracy_unordered"] == 75


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: (w / "runs/tree/generate-test.txt").unlink(), "generate with that run first"),
        (
            lambda w: write_outputs(w / "runs/tree", [*RIGHT_UNORDERED, "x"]),
            "a hypothesis of sentence 4, the references are 4",
        ),
        (lambda w: write_outputs(w / "runs/tree", RIGHT_UNORDERED[:3]), "sentence 3 was not translated"),
        (
            lambda w: write_outputs(w / "runs/tree", [None, *RIGHT_UNORDERED[1:]], closing=False),
            "closing line is missing",
        ),
        (lambda w: (w / "words/test.lf").unlink(), "test.lf is missing"),
        (lambda w: (w / "words/test.lf").write_text(""), "is empty"),
        (lambda w: write_lines(w / "words/test.lf", ["x", "( f", "x", "x"]), "test.lf:2:1"),
        (lambda w: write_lines(w / "words/test.groups", ["a"]), "has 1 lines"),
    ],
)
def test_messages_about_files_that_do_not_fit(workspace, caplog, break_it, message):
    break_it(workspace)
    assert score(workspace) == 1
    assert message in caplog.text
    assert not (workspace / "runs/tree/score.json").exists()


def test_missing_options_and_missing_outcomes_are_refused(workspace, caplog):
    assert score(workspace, notation=None) == 1
    assert "--data is missing" in caplog.text
    assert score(workspace, "--against", str(workspace / "runs" / "stock")) == 1
    assert "outcomes.json is missing: score that run first" in caplog.text


def test_a_malformed_outcomes_file_is_refused(workspace, caplog):
    write_lines(workspace / "runs" / "stock" / "outcomes.json", ["[]"])
    assert score(workspace, "--against", str(workspace / "runs" / "stock")) == 1
    assert "holds no outcomes" in caplog.text


def test_scorers_are_listed(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("attention", "bleu", "structural"))
    assert main(["chrf"]) == 2
    assert "unknown name 'chrf'" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_scorers_have_options(name, capsys):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0 and "usage" in capsys.readouterr().out


def test_lines_without_trees_are_compared(tmp_path):
    write_lines(tmp_path / "words" / "test.lf", ["let a = 1 in ( )", "( (", "if x"])
    write_outputs(tmp_path / "runs" / "tree", ["let a = 1 in ( )", "( )", "if <unk>"])
    assert score(tmp_path, notation="lines") == 0
    assert scores(tmp_path)["metrics"] == pytest.approx({"accuracy": 100 / 3, "accuracy_unordered": 100 / 3})
