"""Every recipe: it is short, its commands are fairseq's, its README shows them, and it runs through.

``python -m tests.recipes.test_recipes`` writes the commands into the READMEs anew.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.recipes.commands import (
    EXAMPLES,
    NAMES,
    ROOT,
    SCRIPTS,
    commands_in,
    declared,
    dry_run,
    environment,
    parsed,
    recipe,
    run,
)

SHOWN = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = ("Data", "Preprocess", "Train", "Evaluate", "Commands", "Citation")
PLACES = ("DATA", "OUT", "TREES")
MOST_WORDS = 600


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
    assert sorted(tmp_path.rglob("*")) == before
    assert {"fairseq-preprocess", "fairseq-train", "fairseq-generate"} <= {command[0] for command in commands}
    arguments = [parsed(command) for command in commands if command[0].startswith("fairseq-")]
    train = next(each for each in arguments if "arch" in each and "save_dir" in each and "lr" in each)
    assert train["arch"] == declared(script)["ARCH"] and train["lr"] == [0.125]
    # A recipe may have measures of its own.
    assert " ".join(commands[-1]).startswith(("tree-fairseq score ", f"python -m examples.{Path(script).parent}."))


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


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_shows_what_the_recipe_runs(name, places):
    ((command, shown),) = SHOWN.findall(readme(name))
    words = [re.sub(r"\$(DATA|OUT|TREES)\b", r"@\1@", word) for line in commands_in(shown) for word in line]
    assert words == commands_in_words(printed(command, places)), "run python -m tests.recipes.test_recipes"


def commands_in_words(text: str) -> list[str]:
    return [word for line in commands_in(text) for word in line]


def printed(command: str, places: dict[str, str]) -> str:
    """Returns what a command of a README prints, with names in the place of this machine's folders."""
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=ROOT,
        env={**environment(is_served=False), **places},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace(f"{ROOT}/", "")
    for name, path in places.items():
        text = text.replace(path, f"@{name}@")
    return text


def toy_run(script: Path, shared) -> tuple[Path, str]:
    """Runs a recipe once for all tests; returns its folder, and what it said."""

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
    longer = recipe("geo", "--toy", "--out", tmp_path, "--", "--max-epoch", "3", "--max-update", "99")
    assert "(epoch 3 @ " in longer.stdout + longer.stderr  # fairseq's line when it goes on


def write_commands(name: str) -> None:
    """Writes the commands into a README."""
    text = readme(name)
    [(command, _)] = SHOWN.findall(text)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "data").mkdir()
        (Path(place) / "data" / "some").touch()
        shown = printed(command, {each: f"{place}/{each.lower()}" for each in PLACES})
    lines = []
    for words in commands_in(shown):
        line, part = "", ""
        for word in [*map(shlex.quote, words), "-"]:
            word = re.sub(r"\S*@(?:DATA|OUT|TREES)@\S*", lambda found: f'"{found[0].strip(chr(39))}"', word)
            word = re.sub(r"@(DATA|OUT|TREES)@", r"$\1", word)
            if word.startswith("-"):
                if line and len(line.rpartition("\n")[2]) + len(part) > 110:
                    line += " \\\n   "
                line, part = f"{line} {part}".lstrip(" ") if not line else f"{line} {part}", ""
            part += f" {word}" if part else word
        lines.append(line)
    block = f"```console\n$ {command}\n" + "\n".join(lines) + "\n```\n"
    (EXAMPLES / name / "README.md").write_text(SHOWN.sub(lambda _: block, text), encoding="utf-8")


if __name__ == "__main__":
    for each in NAMES:
        write_commands(each)
