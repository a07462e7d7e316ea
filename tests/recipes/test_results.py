"""Results that can be repeated: commands, means and comparisons, tables in the pages that equal the files."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.recipes.commands import EXAMPLES, library

results = library("results")
NAMES = sorted(path.stem for path in results.RESULTS.glob("*.json"))
MEASURED = [name for name in NAMES if "measured" in results.read_result(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_everything_that_is_needed(name, capsys):
    result = results.read_result(name)
    assert (EXAMPLES / result["recipe"] / "run.sh").is_file() and len(set(result["seeds"])) >= 3
    assert {system for pair in result["comparisons"] for system in pair} <= set(result["systems"])
    assert results.main([name, "--data", "x", "--dry-run"]) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == len(result["systems"]) * len(result["seeds"])
    assert all(command[command.index("--seed") + 1] in map(str, result["seeds"]) for command in commands)


@pytest.mark.parametrize("name", MEASURED)
def test_figures_are_of_all_systems_and_seeds(name):
    result = results.read_result(name)
    measured = result["measured"]
    assert set(measured["systems"]) == set(result["systems"])
    for system in measured["systems"].values():
        assert all(len(values) == len(result["seeds"]) for values in (*system["metrics"].values(), system["hours"]))
    assert [[pair["system"], pair["baseline"]] for pair in measured["comparisons"]] == result["comparisons"]
    assert all("p_value" in row for pair in measured["comparisons"] for row in pair["metrics"].values())


def test_pages_have_the_tables_of_the_files():
    shown = set()
    for page in results.PAGES:
        for _, name, _ in (found.groups() for found in results.MARKED.finditer(page.read_text(encoding="utf-8"))):
            shown.add(name)
        text = page.read_text(encoding="utf-8")
        for found in results.MARKED.finditer(text):
            assert found[0] == f"{found[1]}{results.table(results.read_result(found[2]))}{found[3]}", (
                f"{page} differs from examples/results/{found[2]}.json: run python examples/lib/results.py --pages"
            )
    assert shown == set(MEASURED)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A file of results of tiny trainings on made-up data."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results toy -->\n<!-- end of results -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(results.write_pages, "__defaults__", ((page,),))
    content = {
        "title": "a toy",
        "recipe": "overnight",
        "data": "anything",
        "options": "--domain publications --workers 1 --toy",
        "seeds": [1],
        "systems": {
            "several": {"options": "--arch tree_insertion_transformer", "flags": "--partial-states 2"},
            "left to right": {"options": "--arch insertion_left_to_right"},
        },
        "metrics": {"accuracy_unordered": "accuracy", "steps": "steps"},
        "comparisons": [["several", "left to right"]],
        "score": "--references {out}/publications/text/test.lf --metrics tree --unordered filter --samples 20",
        "compared": {"tree_match_unordered": "accuracy"},
    }
    (tmp_path / "toy.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_systems_are_trained_compared_and_shown(toy, capfd, monkeypatch):
    arguments = ["toy", "--data", str(toy / "data"), "--out", str(toy / "out")]
    assert results.main(arguments) == 0
    measured = json.loads((toy / "toy.json").read_text(encoding="utf-8"))["measured"]
    several = measured["systems"]["several"]
    assert len(several["metrics"]["steps"]) == 1 and all(hours > 0 for hours in several["hours"])
    assert several["updates"] == [8] and several["parameters"] > 1000
    [pair] = measured["comparisons"]
    values = [measured["systems"][name]["metrics"]["accuracy_unordered"] for name in ("several", "left to right")]
    assert pair["metrics"]["tree_match_unordered"]["difference"] == pytest.approx(values[0][0] - values[1][0])
    text = (toy / "page.md").read_text(encoding="utf-8")
    assert "| several | " in text and "several over left to right, accuracy: " in text and text.endswith("after\n")
    capfd.readouterr()
    assert results.main(arguments) == 0  # nothing is trained again, and hours stay
    assert json.loads((toy / "toy.json").read_text(encoding="utf-8"))["measured"]["systems"] == measured["systems"]
    assert "train-insertion_left_to_right-seed1: done before" in capfd.readouterr().err


def test_faults_are_named(toy, capfd):
    assert results.main(["nothing", "--data", "x"]) == 1
    assert "results with files: toy" in capfd.readouterr().err
    assert results.main(["toy"]) == 1
    assert "--data is needed: anything" in capfd.readouterr().err
    (toy / "toy.json").write_text((toy / "toy.json").read_text().replace("--toy", "--nonsense"))
    assert results.main(["toy", "--data", "x", "--out", str(toy / "out")]) == 1
    assert "this command failed: " in capfd.readouterr().err and not list(toy.glob("out/**/result.json"))
