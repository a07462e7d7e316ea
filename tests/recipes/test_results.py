"""Results that can be repeated: commands, means and comparisons, tables in the pages that equal the files."""

from __future__ import annotations

import copy
import itertools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.recipes.commands import EXAMPLES, environment, library, run_without_reader

results = library("results")
tables = library("result_tables")
pictures = library("result_pictures")
NAMES = sorted(path.stem for path in tables.RESULTS.glob("*.json"))
MEASURED = [name for name in NAMES if "measured" in tables.read_result(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_everything_that_is_needed(name, capsys):
    result = tables.read_result(name)
    assert (EXAMPLES / result["recipe"] / "run.sh").is_file() and len(set(result["seeds"])) >= 3
    assert {system for pair in result["comparisons"] for system in pair} <= set(result["systems"])
    assert all(pair in result["comparisons"] for pair in result.get("headlines", ()))
    assert all(reason[:2] in result["comparisons"] and reason[2] for reason in result.get("reasons", ()))
    assert {other for system in result["systems"].values() for other in system.get("models_of", ())} <= set(
        result["systems"]
    )
    names = list(result["systems"])
    for place, system in enumerate(result["systems"].values()):
        assert system.get("starts_from") in (None, *names[:place])
    assert results.main([name, "--data", "x", "--dry-run"]) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == len(result["systems"]) * len(result["seeds"])
    assert len(set(map(tuple, commands))) == len(commands)
    seeds = list(map(str, result["seeds"]))
    for place, command in enumerate(commands):
        if "--ensemble" in command:  # whose members are of that seed alone
            members = command[command.index("--ensemble") + 1].split(",")
            assert {member[:-1] for member in members} == {seeds[place % len(seeds)]}
            assert len(set(members)) == len(members) > 1 and "--seed" not in command
        else:
            assert command[command.index("--seed") + 1] == seeds[place % len(seeds)]


def test_a_reader_may_stop_before_all_commands_are_printed(tmp_path):
    script = EXAMPLES / "lib/results.py"
    words = sys.executable, script, "geo_trainings", "--data", tmp_path, "--out", tmp_path, "--dry-run"
    done = run_without_reader("stdout", *words)
    assert done.returncode == 0 and not done.stderr


def test_a_seed_may_stand_in_the_options(tmp_path):
    result = {"recipe": "geo", "systems": {"one": {"options": "--ensemble {seed}1,{seed}2", "flags": "--dropout 0"}}}
    command = results.Trainings(result, None, tmp_path).command("one", 4)
    assert command[1:] == shlex.split(f"--out {tmp_path} --ensemble 41,42 -- --dropout 0")


@pytest.mark.parametrize("name", MEASURED)
def test_figures_are_of_all_systems_and_seeds(name):
    result = tables.read_result(name)
    measured = result["measured"]
    assert set(measured["systems"]) == set(result["systems"])
    for system in measured["systems"].values():
        assert all(len(values) == len(result["seeds"]) for values in (*system["metrics"].values(), system["hours"]))
    assert [[pair["system"], pair["baseline"]] for pair in measured["comparisons"]] == result["comparisons"]
    assert all("p_value" in row for pair in measured["comparisons"] for row in pair["metrics"].values())


def test_pages_have_the_tables_of_the_files():
    found = [mark for page in tables.PAGES for mark in tables.MARKED.finditer(page.read_text(encoding="utf-8"))]
    for mark in found:
        assert mark[0] == f"{mark[1]}{tables.shown(mark[2])}{mark[3]}", (
            f"a page differs from examples/results/{mark[2]}.json: run python examples/lib/results.py --pages"
        )
    assert {mark[2] for mark in found} == {*MEASURED, *(f"headlines_{kind}" for kind in tables.KINDS)}
    for kind in tables.KINDS:
        picture = (tables.PICTURES / f"differences_{kind}.svg").read_text(encoding="utf-8")
        compared = [result for result in tables.results_of_kind(kind) if result["comparisons"]]
        assert compared and all(f">{result['title']}<" in picture for result in compared)
    kept = {path.stem for path in tables.PICTURES.glob("*.svg")}
    drawn = {name for name in MEASURED if pictures.is_drawn(tables.read_result(name))}
    text = "".join(page.read_text(encoding="utf-8") for page in tables.PAGES)
    drawn |= {f"differences_{kind}" for kind in tables.KINDS}
    assert kept == drawn == set(re.findall(r"images/results/(\w+)\.svg\)", text))


def test_the_summary_has_the_headlines():
    def pair(system, difference, low, high, p_value):
        row = {"difference": difference, "interval": [low, high], "p_value": p_value}
        return {"system": system, "baseline": "stock", "metrics": {"bleu": row, "chrf": {}}}

    result = {
        "title": "A task",
        "recipe": "geo",
        "metrics": {"sacrebleu": "BLEU"},
        "compared": {"bleu": "BLEU", "chrf": "chrF"},
        "systems": {"stock": {}, "ours": {}, "theirs": {"models_of": ["stock"]}, "other": {}},
        "comparisons": [["ours", "stock"], ["theirs", "stock"], ["other", "stock"]],
        "reasons": [["ours", "stock", "but order"]],
        "measured": {
            "systems": {
                "stock": {"processor_hours": [1, 3], "metrics": {"sacrebleu": [10, 12]}},
                "ours": {"processor_hours": [3, 3], "metrics": {"sacrebleu": [13.5, 11]}},
                "theirs": {"processor_hours": [1, 1], "metrics": {"sacrebleu": [9, 11]}},
                "other": {"metrics": {"sacrebleu": [9, 31]}},
            },
            "comparisons": [
                pair("ours", 1.25, 0.5, 2, 0.01),
                pair("theirs", -1, -2, 0, 0.0004),
                pair("other", 9, -9, 20, 0.3),
            ],
        },
    }
    task = "| [A task](../examples/geo/README.md) |"
    assert tables.summary([result]).splitlines()[2:] == [
        f"{task} ours over stock, BLEU | +1.2 | +0.5 to +2.0 | 0.010 "
        "| yes, though not with every seed, but order | 1.5 times |",
        "|  | theirs over stock, BLEU | -1.0 | -2.0 to 0.0 | < 0.001 | no, it costs | 1.5 times |",
        "|  | other over stock, BLEU | +9.0 | -9.0 to +20.0 | 0.300 | level | not measured |",
    ]
    assert len(tables.summary([{**result, "headlines": [["theirs", "stock"]]}]).splitlines()) == 3
    added = {**result, "comparisons": [*result["comparisons"], ["a new one", "stock"]]}  # which is not measured yet
    assert tables.summary([added]) == tables.summary([result])


def test_the_picture_of_differences_names_a_task_once():
    def row(difference, p_value):
        return {"difference": difference, "interval": [difference - 1, difference + 1], "p_value": p_value}

    figure = pictures.draw_differences(
        [("Agreement", "ours over stock", row(12, 0.001)), ("Agreement", "ours over theirs", row(-3, 0.2))]
        + [("GEO", "ours over stock", row(60, 0.01))]
    )
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["Agreement", "ours over stock", "ours over theirs", "GEO", "ours over stock"]
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in points] == [(12, 1), (-3, 2), (60, 4)]
    assert points[0].get_color() == points[2].get_color() != points[1].get_color()
    marks = " ".join(mark.get_text() for mark in axes.get_xticklabels())
    assert marks == "-5 -2 -1 0 +1 +2 +5 +20 +50"


def test_each_recipe_is_of_one_kind():
    recipes = sorted(path.parent.name for path in tables.EXAMPLES.glob("*/recipe.ini"))
    assert sorted(itertools.chain(*tables.KINDS.values())) == recipes


@pytest.mark.parametrize("kind", tables.KINDS)
def test_names_in_a_picture_of_differences_fit(kind):
    figure = pictures.draw_differences(list(tables.differences(tables.results_of_kind(kind))))
    figure.draw_without_rendering()
    [axes] = figure.axes
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 for upper, lower in zip(boxes, boxes[1:]))
    title = axes.xaxis.label.get_window_extent()
    assert min(box.x0 for box in boxes) >= 0 and title.x1 <= figure.bbox.x1 and title.y0 >= 0


def test_a_table_has_the_seeds_that_do_not_agree():
    def result(*accuracies, p_value=0.01, figure="accuracy"):
        row = {"difference": sum(accuracies) / len(accuracies) - 50, "interval": [-1, 3], "p_value": p_value}
        systems = {name: {"metrics": {"exact": found}} for name, found in (("a", accuracies), ("b", [50, 50, 50]))}
        measured = {
            "systems": {name: {**system, "hours": [1, 1, 1]} for name, system in systems.items()},
            "comparisons": [{"system": "a", "baseline": "b", "metrics": {"right": row}}],
            "date": "today",
            "machine": "a machine",
        }
        return {
            "metrics": {"exact": "accuracy"},
            "compared": {"right": figure},
            "systems": {"a": {}, "b": {}},
            "seeds": [1, 2, 3],
            "measured": measured,
        }

    def line(result):
        return next(line for line in tables.table(result).splitlines() if line.startswith("| a over b "))

    assert line(result(53, 52, 48)) == ("| a over b | **+1.0** (-1.0 to +3.0, p = 0.010); by seed +3.0, +2.0, -2.0 |")
    assert line(result(47, 52, 48)).endswith("p = 0.010); by seed -3.0, +2.0, -2.0 |")
    assert line(result(53, 52, 48, p_value=0.05)) == "| a over b | +1.0 (-1.0 to +3.0, p = 0.050) |"
    for agreed in (result(53, 51, 50), result(53, 52, 48, p_value=0.05), result(53, 52, 48, figure="on another set")):
        assert "by seed" not in line(agreed)


def test_a_page_may_show_results_that_are_not_measured_yet():
    result = {"metrics": {"bleu": "BLEU"}, "systems": {}, "comparisons": [], "seeds": [1, 2, 3]}
    assert tables.table(result) == "Not measured yet.\n"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A file of results of tiny trainings on made-up data."""
    for module in (results, tables):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setenv("PATH", environment()["PATH"])  # recipes find their programs there
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results toy -->\n<!-- end of results -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(tables.write_pages, "__defaults__", ((page,), tmp_path))
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
        "parts": {"section": "by_size", "set": "test", "metric": "steps", "title": "nodes"},
        "depths": {"section": "by_depth", "set": "test", "metric": "steps", "title": "levels"},
        "curve": {"metric": "accuracy", "title": "right on the validation set"},
        "against": ["steps", "accuracy_unordered"],
    }
    (tmp_path / "toy.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def content_of(folder: Path) -> dict:
    """The toy's file."""
    return json.loads((folder / "toy.json").read_text(encoding="utf-8"))


def test_systems_are_trained_compared_and_shown(toy, capfd, monkeypatch):
    arguments = ["toy", "--data", str(toy / "data"), "--out", str(toy / "out")]
    seconds = itertools.count(0, 5400)
    monkeypatch.setattr(results, "_processor_seconds", lambda: next(seconds))
    assert results.main(arguments) == 0
    measured = content_of(toy)["measured"]
    several = measured["systems"]["several"]
    assert len(several["metrics"]["steps"]) == 1 and all(hours > 0 for hours in several["hours"])
    assert several["updates"] == [8] and several["parameters"] > 1000
    assert several["processor_hours"] == [1.5] and several["parts"][0]
    [pair] = measured["comparisons"]
    values = [measured["systems"][name]["metrics"]["accuracy_unordered"] for name in ("several", "left to right")]
    assert pair["metrics"]["tree_match_unordered"]["difference"] == pytest.approx(values[0][0] - values[1][0])
    text = (toy / "page.md").read_text(encoding="utf-8")
    assert "| several | " in text and "\n| several over left to right | " in text and text.endswith("after\n")
    picture = (toy / "differences_trees.svg").read_text(encoding="utf-8")
    assert ">a toy<" in picture and ">several over left to right<" in picture
    picture = (toy / "toy.svg").read_text(encoding="utf-8")
    parts = " ".join([*several["parts"][0], *several["depths"][0]]).split()
    titles = ("left to right", "nodes", "levels", "right on the validation set")
    assert several["depths"][0] and all(f">{text}<" in picture for text in (*titles, *parts))
    assert [updates for updates, _ in several["curve"][0]][-1] == 8
    lacking = copy.deepcopy(measured)
    del lacking["systems"]["several"]["depths"]
    panels = {axes.get_xlabel(): axes for axes in pictures.draw_result({**content_of(toy), "measured": lacking}).axes}
    assert (len(panels["nodes"].lines), len(panels["levels"].lines)) == (2, 1)
    capfd.readouterr()
    assert results.main(arguments) == 0  # nothing is trained again, and hours stay
    assert content_of(toy)["measured"]["systems"] == measured["systems"]
    assert "train-insertion_left_to_right-seed1: done before" in capfd.readouterr().err


def test_options_of_a_system_may_name_files_beside_the_data(tmp_path):
    result = {"recipe": "sst5", "systems": {"one": {"options": "--vector-texts {data}/../texts.txt"}}}
    command = results.Trainings(result, Path("/data/sst"), tmp_path).command("one", 2)
    assert command[1:] == shlex.split(
        f"--data /data/sst --out {tmp_path} --vector-texts /data/sst/../texts.txt --seed 2"
    )
    assert "DATA/../texts.txt" in results.Trainings(result, None, tmp_path).command("one", 2)


def test_a_training_starts_from_the_last_checkpoint_of_another(toy, monkeypatch):
    content = content_of(toy)
    content["seeds"] = [1, 2]
    content["depths"]["section"] = "groups"  # of which the toy has none
    content["systems"] = {
        "left to right": {"options": "--arch insertion_left_to_right"},
        "trained on": {
            "options": "--arch insertion_left_to_right",
            "flags": "--seed {seed} --max-update 3",
            "starts_from": "left to right",
        },
    }
    content["comparisons"] = [["trained on", "left to right"]]
    (toy / "toy.json").write_text(json.dumps(content), encoding="utf-8")
    assert results.main(["toy", "--data", str(toy / "data"), "--out", str(toy / "out")]) == 0
    measured = content_of(toy)["measured"]["systems"]
    assert measured["trained on"]["updates"] == [3, 3] and measured["trained on"]["parts"]
    assert "depths" not in measured["trained on"]
    logs = {path.parent: path.read_text(encoding="utf-8") for path in toy.rglob("train.log")}

    def given(folder: Path, name: str) -> str:
        return re.findall(rf"'{name}': '?([^,'}}]*)", logs[folder])[-1]

    started = {folder: Path(given(folder, "finetune_from_model")).parents for folder in logs}
    started = {folder: parents[1] for folder, parents in started.items() if len(parents) > 1}
    assert len(started) == 2 and len(set(started.values())) == 2
    assert all(
        first not in started and given(first, "seed") == given(folder, "seed") for folder, first in started.items()
    )


def test_hours_of_a_training_beside_this_one_stay(tmp_path, monkeypatch):
    result = {"recipe": "cogs", "systems": {"one": {}}}
    other = {"other": {"hours": 1.0, "finished": True}}

    def train_while_another_ends(command):
        results.write_json(tmp_path / "hours.json", other)
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(results.subprocess, "run", train_while_another_ends)
    with pytest.raises(results.ScoringError, match="this command failed"):
        results.Trainings(result, None, tmp_path).train("one", 1)
    hours = json.loads((tmp_path / "hours.json").read_text(encoding="utf-8"))
    assert len(hours) == 2 and hours.items() > other.items()


def test_runs_of_one_name_on_other_data_are_told_apart(tmp_path):
    for subset, digest in (("1000", "a"), ("3000", "b")):
        folder = tmp_path / subset / "runs" / "transformer"
        folder.mkdir(parents=True)
        text = json.dumps({"metric": "bleu", "score": 1, "checkpoint": {"sha256": digest}})
        (folder / results.SCORE_FILE).write_text(text, encoding="utf-8")
    for subset, digest in (("3000", "b"), ("1000", "a")):
        top = {"description": {"run": "transformer"}, "checkpoint": {"sha256": digest}}
        (tmp_path / "result.json").write_text(json.dumps(top), encoding="utf-8")
        assert results._folder_of_run(tmp_path) == tmp_path / subset / "runs" / "transformer"


def test_outcomes_of_runs_are_compared(tmp_path):
    def runs(name: str, *outcomes: str) -> list[Path]:
        for seed, digits in enumerate(outcomes):
            folder = tmp_path / f"{name}-{seed}"
            folder.mkdir()
            content = {"test": {"validity": "11111", "accuracy": digits}, "test1": {"accuracy": "0" * 40}}
            (folder / "outcomes.json").write_text(json.dumps(content), encoding="utf-8")
        return sorted(tmp_path.glob(f"{name}-*"))

    result = {
        "outcomes": {"short": ["test", "accuracy"], "long": ["test1", "accuracy"]},
        "compared": {"short": "", "long": ""},
    }
    rows = results.compare(result, runs("ours", "11111", "11110"), runs("theirs", "10100", "00000"), tmp_path)
    assert rows["short"]["difference"] == pytest.approx(90 - 20) and rows["short"]["p_value"] < 0.05
    assert rows["short"]["interval"][0] > 0
    assert rows["long"]["difference"] == 0 and rows["long"]["p_value"] == 1


def test_outcomes_of_groups_are_compared_by_drawing_groups(tmp_path):
    text = tmp_path / "text"
    text.mkdir()
    (text / "test.groups").write_text("".join(f"{group}\n" * 20 for group in "abcde"), encoding="utf-8")

    def runs(name: str, *right: str) -> list[Path]:
        for seed, groups in enumerate(right):
            folder = tmp_path / "runs" / f"{name}-{seed}"
            folder.mkdir(parents=True)
            digits = "".join(("1" if group in groups else "0") * 20 for group in "abcde")
            (folder / "outcomes.json").write_text(json.dumps({"test": {"accuracy": digits}}), encoding="utf-8")
        return sorted((tmp_path / "runs").glob(f"{name}-*"))

    result = {"outcomes": {"accuracy": ["test", "accuracy"]}, "compared": {"accuracy": ""}}
    folders = runs("ours", "ab", "abc"), runs("theirs", "ad", "a")
    sentences = results.compare(result, *folders, tmp_path)["accuracy"]
    groups = results.compare({**result, "groups": "{work}/text/test.groups"}, *folders, tmp_path)["accuracy"]
    assert sentences["difference"] == groups["difference"] == pytest.approx(20)
    assert sentences["p_value"] < 0.001 and groups["p_value"] > 0.1
    assert "of 5 groups" in groups["signature"]


def test_outputs_of_several_test_sets_are_compared(tmp_path):
    right = {
        "test": ["a man sees the dog", "it rains in the park"],
        "test1": ["the boat is on the lake", "no one sleeps"],
    }
    wrong = [line.replace("the", "one") for line in right["test1"]]
    runs = tmp_path / "work" / "runs"
    for name, sets in {"ours": right, "theirs": {**right, "test1": wrong}}.items():
        (runs / name).mkdir(parents=True)
        for test_set, lines in sets.items():
            rows = "".join(f"S-{n}\tx\nH-{n}\t-1.0\t{line}\n" for n, line in enumerate(lines))
            (runs / name / f"generate-{test_set}.txt").write_text(rows, encoding="utf-8")
    for test_set, lines in right.items():
        (tmp_path / f"{test_set}.de").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for folder in ("{out}", "{work}/.."):
        result = {
            "score": f"--references {folder}/{{set}}.de --metrics bleu --samples 20",
            "compared": {"bleu": "BLEU 2016", "test1:bleu": "BLEU 2017"},
        }
        rows = results.compare(result, [runs / "ours"], [runs / "theirs"], tmp_path)
        assert rows["bleu"]["difference"] == 0 and rows["test1:bleu"]["difference"] > 10


def test_seconds_of_processors_are_those_of_children():
    before = results._processor_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert results._processor_seconds() - before > 0.15


def test_faults_are_named(toy, capfd):
    assert results.main(["nothing", "--data", "x"]) == 1
    assert "results with files: toy" in capfd.readouterr().err
    assert results.main(["toy"]) == 1
    assert "--data is needed: anything" in capfd.readouterr().err
    (toy / "toy.json").write_text((toy / "toy.json").read_text().replace("--toy", "--nonsense"))
    assert results.main(["toy", "--data", "x", "--out", str(toy / "out")]) == 1
    assert "this command failed: " in capfd.readouterr().err and not list(toy.glob("out/**/result.json"))


def test_a_learning_curve_is_the_mean_over_the_seeds():
    metrics = {"steps": [1, 2], "right": [60, 70]}
    curves = [[[100, 50.0], [200, 60.0]], [[100, 70.0], [200, 80.0], [300, 90.0]]]
    result = {
        "metrics": {"steps": "steps", "right": "accuracy"},
        "curve": {"metric": "accuracy", "title": "accuracy on $valid$"},
        "against": ["steps", "right"],
        "measured": {"systems": {"ours": {"metrics": metrics, "curve": curves}, "untrained": {"metrics": metrics}}},
    }
    figure = pictures.draw_result(result)
    curve, against = figure.axes
    [line] = curve.get_lines()
    assert line.get_xydata().tolist() == [[100, 60], [200, 70]]  # the second seed alone was validated after 300
    assert (curve.get_xlabel(), curve.get_ylabel()) == ("updates", "accuracy on $valid$")
    assert against.get_lines()[0].get_xydata().tolist() == [[1, 60], [2, 70]]
    assert (against.get_xlabel(), against.get_ylabel()) == ("steps", "accuracy")
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "untrained"]


def test_seeds_that_are_validated_at_other_updates_have_a_learning_curve():
    curves = [[[100, 4.0], [200, 3.0], [300, 2.0]], [[90, 4.0], [190, 3.0], [290, 2.0]]]
    result = {
        "metrics": {"right": "accuracy"},
        "curve": {"metric": "loss", "title": "loss"},
        "measured": {"systems": {"ours": {"metrics": {"right": [1, 2]}, "curve": curves}}},
    }
    [line] = pictures.draw_result(result).axes[0].get_lines()
    updates, losses = line.get_xydata().T
    assert updates.tolist() == [100, 200]  # the second was not validated after 300
    assert losses == pytest.approx([3.95, 2.95])  # half of them lie on a line between 90 and 190, or 190 and 290


def test_a_log_without_the_metric_of_a_curve_is_named(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("epoch 001 | valid on 'valid' subset | loss 8.7 | num_updates 54\n", encoding="utf-8")
    assert results.learning_curve(log, "loss") == [[54, 8.7]]
    with pytest.raises(results.ScoringError, match=r"train\.log: no validation line has 'bleu'; there are loss"):
        results.learning_curve(log, "bleu")


def test_a_sweep_has_a_line_through_the_means_and_a_point_for_each_seed():
    result = {
        "metrics": {"bleu": "sacreBLEU"},
        "sweep": {
            "title": "pairs",
            "lines": {"trees": {"10000": "trees, 10k", "1000": "trees, 1k"}, "words": {"1000": "words, 1k"}},
        },
        "measured": {
            "systems": {
                "trees, 1k": {"metrics": {"bleu": [4.0, 6.0]}},
                "trees, 10k": {"metrics": {"bleu": [20.0, 30.0]}},
                "words, 1k": {"metrics": {"bleu": [3.0, 4.0]}},
            }
        },
    }
    figure = pictures.draw_result(result)
    [axes] = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert lines["trees"] == [[0, 5], [1, 25]] and lines["words"] == [[0, 3.5]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1,000", "10,000"]
    points = [line.get_ydata().tolist() for line in axes.get_lines() if line.get_marker() == "o"]
    assert points == [[4, 6], [20, 30], [3, 4]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["trees", "words"]
