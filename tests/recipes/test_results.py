"""Results that can be repeated: commands, runs and comparisons; tables in the pages that equal the files."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.recipes.commands import EXAMPLES, LIBRARY, ROOT, commands_in, environment, parsed

sys.path.insert(0, str(LIBRARY))
results = importlib.import_module("results")
sys.path.remove(str(LIBRARY))


def test_every_file_says_what_is_needed():
    for path in results.FILES:
        result = results.read_result(path.stem)
        systems = result["systems"]
        assert (EXAMPLES / result["recipe"] / result.get("script", "run.sh")).is_file(), path
        assert result["kind"] in results.KINDS and len(set(result["seeds"])) >= 3, path
        assert {system for pair in result["comparisons"] for system in pair} <= set(systems), path
        assert all(pair in result["comparisons"] for pair in result.get("headlines", ())), path
        assert all(reason[:2] in result["comparisons"] for reason in result.get("reasons", ())), path
        assert {other for own in systems.values() for other in own.get("models_of", ())} <= set(systems), path
        if "measured" in result:
            measured = result["measured"]
            assert set(measured["systems"]) == set(systems), path
            for own in measured["systems"].values():
                assert all(len(each) == len(result["seeds"]) for each in (*own["metrics"].values(), own["hours"])), path
            compared = [[pair["system"], pair["baseline"]] for pair in measured["comparisons"]]
            assert compared == result["comparisons"], path


# Their commands are also read as fairseq reads them; all others are known to the recipes.
READ = ("geo_ensembles", "overnight_publications", "cogs_trees", "for2lam_small")


@pytest.mark.parametrize("name", [path.stem for path in results.FILES])
def test_commands_of_a_file_are_those_of_the_recipe_and_of_fairseq(tmp_path, name, monkeypatch):
    monkeypatch.setenv("PATH", environment(is_served=False)["PATH"])
    (tmp_path / "some").touch()
    data = str(tmp_path) if "data" in results.read_result(name) else ""
    experiment = results.Experiment(results.read_result(name), data, Path("/out"))
    outputs = set()
    for system in experiment.result["systems"]:
        command = experiment.command(system, 2, "--dry-run")
        printed = results.subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for line in commands_in(printed):
            if name in READ and line[0] in ("fairseq-train", "fairseq-generate"):
                parsed(line)
        outputs.add(experiment.places(system, 2)["outputs"])
    assert len(outputs) == len(experiment.result["systems"])


def test_pages_have_the_tables_of_the_files():
    marks = [mark for page in results.PAGES for mark in results.MARKED.finditer(page.read_text(encoding="utf-8"))]
    for mark in marks:
        assert mark[0] == f"{mark[1]}{results.shown(mark[2])}{mark[3]}", f"{mark[2]}: run results.py --pages"
    wanted = {path.stem for path in results.FILES if "measured" in results.read_result(path.stem)}
    assert {mark[2] for mark in marks} == wanted | {f"headlines_{kind}" for kind in results.KINDS}
    text = "".join(page.read_text(encoding="utf-8") for page in results.PAGES)
    pictures = {path.stem for path in (ROOT / "docs/images/results").glob("*.svg")}
    drawn = {name for name in wanted if results.plots(results.read_result(name))}
    assert pictures == drawn | {f"differences_{kind}" for kind in results.KINDS}
    assert all(f"images/results/{name}.svg" in text for name in pictures)


def measured(*accuracies, p_value=0.01, figure="accuracy"):
    """A result of two systems, `a` and `b`; the accuracy of `b` is 50 with each seed."""
    row = {"difference": sum(accuracies) / len(accuracies) - 50, "interval": [-1, 3], "p_value": p_value}
    systems = {
        name: {"metrics": {"exact": list(found)}, "hours": [1] * 3, "processor_hours": [2 if name == "a" else 1] * 3}
        for name, found in (("a", accuracies), ("b", [50, 50, 50]))
    }
    comparisons = [{"system": "a", "baseline": "b", "metrics": {"right": row}}]
    return {
        "title": "A task",
        "recipe": "geo",
        "metrics": {"exact": "accuracy"},
        "compared": {"right": figure},
        "systems": {"a": {}, "b": {}},
        "seeds": [1, 2, 3],
        "comparisons": [["a", "b"]],
        "measured": {"systems": systems, "comparisons": comparisons, "date": "today", "machine": "a machine"},
    }


def row_of(result):
    return next(line for line in results.table(result).splitlines() if line.startswith("| a over b "))


def test_a_table_names_seeds_that_do_not_agree():
    assert row_of(measured(53, 52, 48)) == "| a over b | **+1.0** (-1.0 to +3.0, p = 0.010); by seed +3.0, +2.0, -2.0 |"
    assert row_of(measured(53, 52, 48, p_value=0.05)) == "| a over b | +1.0 (-1.0 to +3.0, p = 0.050) |"
    for agreed in (measured(53, 51, 50), measured(53, 52, 48, figure="on another set")):
        assert "by seed" not in row_of(agreed)
    assert "| a | 51 (53, 52, 48) | 2.00 |" in results.table(measured(53, 52, 48))
    assert results.table({"metrics": {}}) == "Not measured yet.\n"


def test_the_summary_says_what_helps_and_what_it_costs():
    result = {**measured(53, 52, 48), "reasons": [["a", "b", "but order"]]}
    assert results.summary([result]).splitlines()[2:] == [
        "| [A task](results/geo.md) | a over b, accuracy "
        "| **+1.0** (-1.0 to +3.0, p = 0.010); by seed +3.0, +2.0, -2.0 "
        "| yes, but order | 2.0 times |"
    ]
    assert "| level |" in results.summary([measured(53, 53, 53, p_value=0.2)])
    assert "no, it costs" in results.summary([measured(43, 43, 43, p_value=0.0001)])
    assert len(results.summary([{**result, "headlines": []}]).splitlines()) == 2


def test_pictures_show_means_over_the_seeds():
    result = measured(53, 52, 48)
    result["curve"] = {"metric": "loss", "title": "loss"}
    result["parts"] = {"title": "words"}
    own = result["measured"]["systems"]["a"]
    own["curve"] = [[[100, 4.0], [200, 3.0], [300, 2.0]], [[90, 4.0], [190, 3.0], [290, 2.0]]]
    own["parts"] = [{"1-5 (7)": 10.0, "6+ (3)": 20.0}, {"1-5 (7)": 20.0, "6+ (3)": 30.0}]
    curve, part = results.plots(result)
    assert curve.lines[0].points == [(100, pytest.approx(3.95)), (200, pytest.approx(2.95))]
    assert part.lines[0].points == [(1, 15), (6, 25)] and part.across == "words, from"
    [axes] = results.draw_differences([result]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A task", "a over b"]


# A recipe whose commands take no time: outputs are right where the digits of OUTCOMES say so.
RECIPE = f"""#!/usr/bin/env bash
: "${{DATA:=}}" "${{SEED:=1}}" "${{OUTCOMES:=10}}"
. "{LIBRARY}/recipe.sh"; recipe "$@"
RUN=$OUT/runs/$(named OUTCOMES)-seed$SEED$FLAGS_NAME
step "$OUT/text" bash -c 'mkdir "$1"; echo x >> "$1/count"' - "$OUT/text"
step "$RUN/checkpoints" bash -c 'mkdir "$2"; echo "$@" > "$2/flags"; [[ "$*" != *--fail* ]]' fairseq-train \\
    --save-dir "$RUN/checkpoints" --seed "$SEED" "${{TRAIN_FLAGS[@]}}"
step "$RUN/score.json" bash -c 'echo "{{\\"test\\": {{\\"accuracy\\": \\"$5$5$5\\"}}}}" > "$2/outcomes.json"
    echo "{{\\"metrics\\": {{\\"accuracy\\": $6}}, \\"checkpoint\\": {{\\"updates\\": 3, \\"parameters\\": 9}}}}" \\
        > "$2/score.json"' \\
    score --run "$RUN" --references "$OUT/text" "$OUTCOMES" "$SEED"
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", environment(is_served=False)["PATH"])
    monkeypatch.setattr(results, "EXAMPLES", tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(results, "FILES", [tmp_path / "toy.json"])
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results toy -->\n<!-- end of results -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(results.write_pages, "__defaults__", ((page,), tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run.sh").write_text(RECIPE)
    (tmp_path / "mine" / "run.sh").chmod(0o755)
    content = {
        "title": "a toy",
        "kind": "trees",
        "recipe": "mine",
        "seeds": [1, 2],
        "systems": {
            "right": {"options": "--outcomes 1110"},
            "wrong": {"options": "--outcomes 0010"},
            "started": {
                "options": "--outcomes 0110",
                "flags": "--finetune-from-model {run:right}/m.pt:{run:wrong@3}/m.pt",
            },
        },
        "metrics": {"accuracy": "accuracy"},
        "comparisons": [["right", "wrong"]],
        "outcomes": {"accuracy": ["test", "accuracy"]},
        "compared": {"accuracy": "accuracy"},
    }
    (tmp_path / "toy.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def content_of(folder: Path) -> dict:
    return json.loads((folder / "toy.json").read_text(encoding="utf-8"))


def test_systems_are_run_once_compared_and_shown(toy, capfd):
    assert results.main(["toy", "--out", str(toy / "out"), "--jobs", "3"]) == 0
    first = content_of(toy)["measured"]
    assert first["systems"]["right"]["metrics"]["accuracy"] == [1, 2]
    assert first["systems"]["right"]["updates"] == [3, 3] and first["systems"]["right"]["parameters"] == 9
    [pair] = first["comparisons"]
    assert pair["metrics"]["accuracy"]["difference"] == pytest.approx(50)
    assert "| right over wrong | " in (toy / "page.md").read_text() and (toy / "differences_trees.svg").is_file()
    out = toy / "out" / "toy"
    assert (out / "text" / "count").read_text() == "x\n"  # all runs share what one of them prepares
    flags = sorted(path.read_text() for path in out.rglob("flags") if "finetune" in path.read_text())
    assert len(flags) == 2 and all(f"{out}/runs/-outcomes-1110-seed{n}/m.pt" in text for n, text in enumerate(flags, 1))
    assert all("0010-seed3/m.pt" in text for text in flags)  # and that one has been trained
    assert (out / "runs" / "-outcomes-0010-seed3" / "score.json").is_file()
    assert results.main(["toy", "--out", str(toy / "out")]) == 0  # nothing is run again, and hours stay
    assert content_of(toy)["measured"]["systems"] == first["systems"]


def test_a_run_that_fails_is_named_with_its_log(toy, capfd):
    content = content_of(toy)
    content["systems"]["wrong"]["flags"] = "--fail"
    (toy / "toy.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SystemExit):
        results.main(["toy", "--out", str(toy / "out")])
    message = capfd.readouterr().err
    assert "this command failed, see " in message and "recipe.log" in message and "measured" not in content_of(toy)


def test_commands_are_printed_and_faults_are_named(toy, capfd):
    assert results.main(["toy", "--out", str(toy / "out"), "--dry-run", "--local", "--workers 1"]) == 0
    commands = [shlex.split(line) for line in capfd.readouterr().out.splitlines()]
    assert len(commands) == 6 and all(command[command.index("--workers") + 1] == "1" for command in commands)
    assert not (toy / "out").exists()
    (toy / "toy.json").write_text(json.dumps({**content_of(toy), "data": "anything"}), encoding="utf-8")
    for arguments, message in (
        (["toy"], "--data is needed: anything"),
        (["nothing"], "there is no nothing.json; files: toy"),
    ):
        with pytest.raises(SystemExit):
            results.main(arguments)
        assert message in capfd.readouterr().err


def test_groups_of_examples_are_drawn_whole(tmp_path):
    (tmp_path / "test.groups").write_text("".join(f"{group}\n" * 20 for group in "abcde"), encoding="utf-8")
    folders = []
    for name, right in {"ours": ("ab", "abc"), "theirs": ("ad", "a")}.items():
        for seed, groups in enumerate(right):
            folder = tmp_path / f"{name}-{seed}"
            folder.mkdir()
            digits = "".join(("1" if group in groups else "0") * 20 for group in "abcde")
            (folder / "outcomes.json").write_text(json.dumps({"test": {"accuracy": digits}}), encoding="utf-8")
            folders.append(folder)
    result = {"seeds": [1, 2], "outcomes": {"accuracy": ["test", "accuracy"]}, "compared": {"accuracy": ""}}
    rows = []
    for own in (result, {**result, "groups": "{text}/test.groups"}):
        experiment = results.Experiment(own, "", tmp_path)
        rows.append(experiment._compare_outcomes(folders[:2], folders[2:], str(tmp_path))["accuracy"])
    assert rows[0]["difference"] == rows[1]["difference"] == pytest.approx(20)
    assert rows[0]["p_value"] < 0.001 and rows[1]["p_value"] > 0.1 and "of 5 groups" in rows[1]["signature"]


def test_outputs_of_several_test_sets_are_compared(tmp_path):
    right = {
        "test": ["a man sees the dog", "it rains in the park"],
        "test1": ["the boat is on the lake", "no one sleeps"],
    }
    wrong = {**right, "test1": [line.replace("the", "one") for line in right["test1"]]}
    for name, sets in {"ours": right, "theirs": wrong}.items():
        (tmp_path / name).mkdir()
        for test_set, lines in sets.items():
            rows = "".join(f"S-{n}\tx\nH-{n}\t-1.0\t{line}\n" for n, line in enumerate(lines))
            (tmp_path / name / f"generate-{test_set}.txt").write_text(rows, encoding="utf-8")
    for test_set, lines in right.items():
        (tmp_path / f"{test_set}.de").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = {"seeds": [1], "score": "--references {text}/{set}.de --metrics bleu --samples 20"}
    result["compared"] = {"bleu": "BLEU 2016", "test1:bleu": "BLEU 2017"}
    experiment = results.Experiment(result, "", tmp_path)
    rows = experiment._compare_outputs([tmp_path / "ours"], [tmp_path / "theirs"], str(tmp_path))
    assert rows["bleu"]["difference"] == 0 and rows["test1:bleu"]["difference"] > 10
