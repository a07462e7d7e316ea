"""Every recipe: it is short, its commands are fairseq's, those of its README are accepted, and it runs through."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.recipes.commands import EXAMPLES, NAMES, ROOT, SCRIPTS, declared, dry_run, environment, parsed, recipe, run

BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = ("Data", "Preprocess", "Train", "Evaluate", "Citation")
PLACES = ("DATA", "OUT", "TREES")
MOST_WORDS = 350
OURS = ("tree_transformer", "treeformer", "tree_positional", "tree_insertion")


def readme(name: str) -> str:
    return (EXAMPLES / name / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def places(tmp_path):
    """A folder of data that is not empty, which is all that --dry-run asks of data, and folders that are not there."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "some").touch()
    return {name: str(tmp_path / name.lower()) for name in PLACES}


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_is_short_and_explains_its_options(script):
    text = (EXAMPLES / script).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100 and text.startswith("#!/usr/bin/env bash\n# ")
    assert subprocess.run(["bash", "-n", str(EXAMPLES / script)]).returncode == 0
    shown = run(script, "--help").stdout
    names = {*declared(script), "OUT", "WORKERS", "TOY", "DRY_RUN", *(["DATA"] if "$DATA" in text else [])}
    missing = {name for name in names if not re.search(rf"--{name.lower().replace('_', '-')}\b", shown)}
    assert not missing, f"the comment at the head lacks {missing}"


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_dry_run_prints_commands_of_fairseq_and_touches_nothing(script, places, tmp_path):
    data = () if declared(script).get("DATA") == "" else ("--data", places["DATA"])
    before = sorted(tmp_path.rglob("*"))
    commands = dry_run(script, *data, "--out", places["OUT"], "--", "--lr", "0.125")
    nowhere = subprocess.run([EXAMPLES / script, *data, "--out", ""], capture_output=True, text=True, cwd=tmp_path)
    assert nowhere.returncode == 1 and "--out is needed" in nowhere.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert {"fairseq-preprocess", "fairseq-train", "fairseq-generate"} <= {command[0] for command in commands}
    arguments = [parsed(command) for command in commands if command[0].startswith("fairseq-")]
    train = next(each for each in arguments if "arch" in each and "save_dir" in each and "lr" in each)
    assert train["arch"] == declared(script)["ARCH"] and train["lr"] == [0.125]
    # A recipe may have measures of its own.
    assert " ".join(commands[-1]).startswith(("tree-fairseq score ", f"python -m examples.{Path(script).parent}."))


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_the_model_of_a_paper_has_no_flag_that_contradicts_it(script, places):
    data = () if declared(script).get("DATA") == "" else ("--data", places["DATA"])
    commands = dry_run(script, *data, "--out", places["OUT"], "--published", "1")
    trained = [parsed(command) for command in commands if command[0] == "fairseq-train"]
    assert all(each["as_published"] for each in trained if each["arch"].startswith(OURS)) and trained


@pytest.mark.parametrize(
    ("script", "options", "trained"),
    [
        ("overnight/run.sh", "--encoder-path DIR", {"encoder_path": "DIR", "max_update": 3200, "warmup_updates": 320}),
        ("overnight/run.sh", "", {"as_published": False}),
        ("overnight/run.sh", "--published 1", {"as_published": True}),
        (
            "text2sql/run.sh",
            "--arch tree_insertion_transformer_tiny --encoder-path DIR",
            {"criterion": "slot_kl_divergence", "insertion_encoder": "pretrained", "encoder_path": "DIR"},
        ),
        (
            "text2sql/run.sh",
            "--arch source_encoder_transformer_tiny --encoder-path DIR",
            {"task": "structural_translation", "source_encoder": "pretrained", "encoder_path": "DIR", "lr": [1e-3]},
        ),
        (
            "text2sql/run.sh",
            "--arch source_encoder_transformer_tiny --encoder-path DIR --target text",
            {"task": "translation", "source_lang": "wp", "target_lang": "bpe", "lr": [1e-3]},
        ),
    ],
)
def test_options_that_change_the_method_give_commands_of_fairseq(script, options, trained, places):
    commands = dry_run(script, "--data", places["DATA"], "--out", places["OUT"], *options.split())
    arguments = [parsed(command) for command in commands if command[0].startswith("fairseq-")]
    train = next(each for each in arguments if "arch" in each and "save_dir" in each)
    trained = {"task": "tree_insertion"} | trained
    assert {name: train[name] for name in trained} == trained


@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        ("--encoder-path DIR --arch transformer_tiny", "give --arch source_encoder_transformer_tiny"),
        ("--schema FILE --arch transformer_tiny --target text", "leave out --target text"),
    ],
)
def test_an_option_is_refused_before_any_work_where_nothing_reads_it(options, way_out, places):
    given = ("--data", places["DATA"], "--out", places["OUT"], *options.split())
    refused = run(Path("text2sql/run.sh"), "--dry-run", *given)
    assert refused.returncode == 1 and way_out in refused.stderr and not refused.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_is_short_and_has_the_usual_sections(name):
    headings = [line[3:] for line in readme(name).splitlines() if line.startswith("## ")]
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)
    assert len(readme(name).split()) <= MOST_WORDS


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_readme_run(name, places):
    blocks = BLOCK.findall(readme(name))
    assert any(f"examples/{name}/run.sh" in block for block in blocks)
    for block in blocks:
        script = re.sub(r"(examples/\S+\.sh)", r"\1 --dry-run", block)
        done = subprocess.run(
            ["bash", "-euc", script], cwd=ROOT, env={**environment(is_served=False), **places}, capture_output=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"


def toy_run(script: Path, shared) -> tuple[Path, str]:
    def make(folder: Path) -> str:
        done = run(script, "--toy", "--out", folder, "--workers", "1")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stderr

    return shared(f"recipe-{script}".replace("/", "-"), make)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_recipe_runs_through_with_toy_data(script, shared):
    folder, _ = toy_run(script, shared)
    result = json.loads((folder / "toy" / "result.json").read_text(encoding="utf-8"))
    assert result["score"] == result[result["metric"]] and result["description"]["recipe"] == script.parent.name


def test_what_is_finished_is_skipped_and_training_goes_on_where_it_ended(shared, tmp_path):
    made, _ = toy_run(Path("geo/run.sh"), shared)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)  # another place makes no other step
    again = recipe("geo", "--toy", "--out", tmp_path)
    assert again.stderr.count("done before") == 6 and not again.stdout
    one = recipe("geo", "--toy", "--out", tmp_path, "--beam", "1")  # another search with the same model
    assert one.stderr.count("done before") == 4 and len(list(tmp_path.rglob("score.json"))) == 2
    stock = ("--arch", "transformer_semantic_parsing", "--search", "structural_translation")
    recipe("geo", "--toy", "--out", tmp_path, *stock)
    [score] = tmp_path.rglob("*-search-structural_translation/score.json")
    assert json.loads(score.read_text(encoding="utf-8"))["metrics"]["validity"] == 1
    longer = recipe("geo", "--toy", "--out", tmp_path, "--", "--max-epoch", "3", "--max-update", "99")
    assert "(epoch 3 @ " in longer.stdout + longer.stderr  # fairseq's line when it goes on
