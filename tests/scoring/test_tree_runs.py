"""Runs that generate trees: right trees, and validity."""

from __future__ import annotations

import pytest

from tests.scoring.runs import outcomes, score, scores, write_lines, write_outputs
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding

REFERENCES = ["( f ( and x y ) )", "x", "( g ( h ( and ( f x ) ( f y ) ) ) )", "( f x y )"]
RIGHT_UNORDERED = ["(f (and y x))", "x", "( g ( h ( and ( f y ) ( f x ) ) ) )", "( f y x )"]


@pytest.fixture
def workspace(tmp_path):
    write_lines(tmp_path / "words" / "test.lf", REFERENCES)
    write_outputs(tmp_path / "runs" / "tree", RIGHT_UNORDERED)
    return tmp_path


def judge(folder, *flags, run="tree", notation="bracket"):
    arguments = ["--references", folder / "words", "--target-lang", "lf"]
    return score("structural", folder, *arguments, *(["--notation", notation] if notation else []), *flags, run=run)


def metrics(folder):
    return scores(folder)["metrics"]


def data_folder(folder, **records):
    (folder / "data").mkdir(exist_ok=True)
    files = {f"dict.{language}.txt": FileRecord(0, "") for language in ("nl", "lf")}
    Manifest("nl", "lf", files=files, **records).save(folder / "data")
    return ["--data", folder / "data"]


def test_trees_match_in_order_and_without_and_are_scored_by_size_and_depth(workspace, capsys):
    assert judge(workspace) == 0
    found = scores(workspace)
    right = {"accuracy": 25, "accuracy_unordered": 75, "validity": 1}
    assert found["metrics"] == right
    assert found["by_size"]["test"] == [{"from": 0, "to": 10, "sentences": 4, **right}]
    rows = [(row["from"], row["to"], row["sentences"], row["accuracy_unordered"]) for row in found["by_depth"]["test"]]
    assert rows == [(0, 2, 3, pytest.approx(100 * 2 / 3)), (3, 4, 1, 100)]
    assert "1.0000" in capsys.readouterr().out


def test_hypotheses_that_generation_marked_and_their_steps(workspace, capsys):
    """The notation can read all these lines; generation marked some of them as invalid or partial."""
    texts = ["( f ( and x y ) )", "( ( x ) )", "( @R@ ( g x ) y )", "( f x y )"]
    marks = ["", " invalid", " partial invalid", " partial"]
    rows = [f"S-{n}\tx\nH-{n}\t-1.0\t{text}\nI-{n}\t{n + 4}{more}" for n, (text, more) in enumerate(zip(texts, marks))]
    write_lines(workspace / "runs/tree/generate-test.txt", [*rows, "Generate test with beam=1: x"])
    assert judge(workspace) == 0
    found = scores(workspace)
    assert found["metrics"] == {"accuracy": 50, "accuracy_unordered": 50, "validity": 0.5, "steps": 5.5}
    assert found["partial"] == {"test": 2} and outcomes(workspace)["test"]["validity"] == "1001"
    assert [row["steps"] for row in found["by_depth"]["test"]] == pytest.approx([(4 + 5 + 7) / 3, 6])
    assert "2 outputs reached a limit" in capsys.readouterr().out


def test_steps_need_a_line_for_every_sentence(workspace):
    with open(workspace / "runs/tree/generate-test.txt", "a") as stream:
        stream.write("I-0\t4\n")
    assert judge(workspace) == 0
    assert "steps" not in metrics(workspace)


def test_a_data_folder_of_insertion(workspace, caplog):
    record = InsertionRecord("lf", "bracket", True, ["centrality"], 1, 1, {})
    data = data_folder(workspace, sections={"insertion": record})
    assert judge(workspace, *data, notation=None) == 0
    assert metrics(workspace)["accuracy_unordered"] == 75
    assert judge(workspace, *data, "--symbols", notation=None) == 1
    assert "holds no symbol trees of lf" in caplog.text


@pytest.mark.parametrize("binarization", ["lcrs", "none"])
@pytest.mark.parametrize("traversal", ["dfs", "bfs"])
def test_symbols_of_a_stock_model(workspace, traversal, binarization):
    encoding = SymbolEncoding(traversal, binarization)
    record = SymbolSideRecord("target", "tree", "bracket", traversal, binarization, "^", 2)
    data = data_folder(workspace, symbols={"lf": record})
    symbols = [" ".join(encoding.encode(notation_named("bracket").read(line))) for line in REFERENCES]
    write_outputs(workspace / "runs" / "tree", [*symbols[:2], symbols[2] + " x^0", "<unk>"])
    assert judge(workspace, *data, "--symbols", notation=None) == 0
    assert metrics(workspace) == {"accuracy": 50, "accuracy_unordered": 50, "validity": 0.5}
    write_outputs(workspace / "runs" / "tree", RIGHT_UNORDERED)
    assert judge(workspace, *data, notation=None) == 0
    assert metrics(workspace)["accuracy_unordered"] == 75


def test_a_stock_model_under_the_structural_search_writes_text(workspace):
    """What a run wrote decides, not its task: with --symbols, outputs that are text are read as text."""
    data = data_folder(workspace, symbols={"lf": SymbolSideRecord("target", "tree", "bracket", "dfs", "lcrs", "^", 2)})
    for texts in (RIGHT_UNORDERED, [*RIGHT_UNORDERED[:3], "( f^2 y x )"]):
        write_outputs(workspace / "runs" / "tree", texts)
        assert judge(workspace, *data, notation=None) == 0
        found = metrics(workspace)
        assert judge(workspace, *data, "--symbols", notation=None) == 0
        assert metrics(workspace) == found and found["validity"] == 1 and found["accuracy_unordered"] >= 75
    # A broken sequence of symbols stays one.
    write_outputs(workspace / "runs" / "tree", ["f^2 x^0", "<unk>", "x^0", None])
    assert judge(workspace, *data, "--symbols", notation=None) == 0
    assert metrics(workspace)["validity"] == 0.25


def test_wrong_missing_and_invalid_outputs(workspace, caplog):
    write_outputs(workspace / "runs" / "tree", ["( f ( and x <unk> ) )", None, "( g ( h", ""])
    assert judge(workspace) == 0
    assert metrics(workspace) == {"accuracy": 0, "accuracy_unordered": 0, "validity": 0.25}
    assert "1 of 4 sentences have no output" in caplog.text and outcomes(workspace)["test"]["validity"] == "1000"


def test_labels_whose_children_have_no_order(workspace):
    assert judge(workspace, "--unordered", "f") == 0
    assert metrics(workspace)["accuracy_unordered"] == 50
    assert judge(workspace, "--unordered") == 0
    assert metrics(workspace)["accuracy_unordered"] == 25
    write_lines(workspace / "words" / "test.lf", ["job ( ANS ) , language ( ANS , languageid0 )"])
    write_outputs(workspace / "runs" / "tree", ["language(ANS,languageid0), job(ANS)"])
    assert judge(workspace, notation="prolog") == 0
    assert metrics(workspace) == {"accuracy": 0, "accuracy_unordered": 100, "validity": 1}


def test_lines_without_trees_are_compared(tmp_path):
    write_lines(tmp_path / "words" / "test.lf", ["let a = 1 in ( )", "( (", "if x"])
    write_outputs(tmp_path / "runs" / "tree", ["let a = 1 in ( )", "( )", "if <unk>"])
    assert judge(tmp_path, notation="lines") == 0
    assert metrics(tmp_path) == pytest.approx({"accuracy": 100 / 3, "accuracy_unordered": 100 / 3})


def test_accuracies_are_compared_with_another_run_and_validity_is_not(workspace):
    write_outputs(workspace / "runs" / "stock", ["( f ( and x y ) )", "y", "x", "x"])
    assert judge(workspace, "--against", workspace / "runs" / "stock") == 0
    rows = {row["metric"]: row for row in scores(workspace)["differences"]}
    assert set(rows) == {"accuracy", "accuracy_unordered"}
    assert rows["accuracy"]["difference"] == 0 and rows["accuracy"]["p_value"] == 1
    assert rows["accuracy_unordered"]["difference"] == 50 and 0 < rows["accuracy_unordered"]["p_value"] < 1


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: write_outputs(w / "runs/tree", [*RIGHT_UNORDERED, "x"]), "hypotheses up to H-4, of 5 sentences"),
        (lambda w: write_outputs(w / "runs/tree", RIGHT_UNORDERED[:3]), "sentence 3 was not translated"),
        (
            lambda w: write_outputs(w / "runs/tree", [None, *RIGHT_UNORDERED[1:]], closing=False),
            "closing line is missing",
        ),
        (lambda w: write_lines(w / "words/test.lf", ["x", "( f", "x", "x"]), "test.lf:2:1"),
    ],
)
def test_files_that_do_not_fit_are_named(workspace, caplog, break_it, message):
    break_it(workspace)
    assert judge(workspace) == 1
    assert message in caplog.text


def test_a_notation_or_a_data_folder_is_needed(workspace, caplog):
    assert judge(workspace, notation=None) == 1
    assert "--data is missing" in caplog.text
