"""The READMEs show the commands that the recipes run: exactly those that ``--dry-run`` prints.

``python -m tests.recipes.test_literal_commands`` writes the blocks anew.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from pathlib import Path

import pytest

from tests.recipes.commands import (
    CLASSIFICATION,
    EXAMPLES,
    INSERTION,
    RECIPES,
    ROOT,
    STRUCTURAL,
    TREEFORMER,
    bash,
    commands_in,
    library,
)

ALL = (*RECIPES, *STRUCTURAL, *CLASSIFICATION, *TREEFORMER, *INSERTION, "glue")
GENERATED = ("coffeescript_javascript", "for2lam", "generated_en_de")
MORE = {"iwslt13_fr_en": '--trees "$TREES" ', "glue": "--glue-task cola ", "overnight": "--domain publications "}
SHOWN = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def readme(name: str) -> Path:
    return EXAMPLES / name / "README.md"


def printed(place: Path, command: str) -> str:
    """What a command of a README prints, with the paths of this project left out."""
    places = {name: place / name.lower() for name in ("DATA", "OUT", "TREES")}
    for path in places.values():
        path.mkdir(parents=True, exist_ok=True)
    (places["DATA"] / "some").touch()  # a folder that is not empty is all that --dry-run asks of data
    done = bash(command, **{name: str(path) for name, path in places.items()})
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace(f"{ROOT}/", "")
    for name, path in places.items():
        text = text.replace(str(path), f"@{name}@")
    return text


def words_of(text: str) -> list[list[str]]:
    """The commands of a text word by word, and its comments."""
    comments = [[line] for line in text.splitlines() if line.startswith("#")]
    return comments + commands_in(re.sub(r"\$(DATA|OUT|TREES)\b", r"@\1@", text))


@pytest.mark.parametrize("name", ALL)
def test_the_readme_shows_what_the_recipe_runs(tmp_path, name):
    ((command, shown),) = SHOWN.findall(readme(name).read_text(encoding="utf-8"))
    assert command == command_of(name)
    assert words_of(shown) == words_of(printed(tmp_path, command)), "run python -m tests.recipes.test_literal_commands"


def command_of(name: str) -> str:
    data = "" if name in GENERATED else '--data "$DATA" '
    return f'examples/{name}/run.sh {data}--out "$OUT" {MORE.get(name, "")}--workers 2 --dry-run'


def write_block(name: str) -> None:
    """Writes the section of a README that has the commands, before its citation."""
    command = command_of(name)
    with tempfile.TemporaryDirectory() as place:
        text = printed(Path(place), command)
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        shown = line if line.startswith("#") else library("stages").shown(shlex.split(line))
        lines.append(re.sub(r"\S*@(?:DATA|OUT|TREES)@\S*", lambda word: f'"{word[0]}"', shown))
    body = re.sub(r"@(DATA|OUT|TREES)@", r"$\1", "\n".join(lines))
    block = f"```console\n$ {command}\n{body}\n```\n"
    content = readme(name).read_text(encoding="utf-8")
    if SHOWN.search(content):
        content = SHOWN.sub(lambda _: block, content)
    else:
        section = f"## Commands\n\nThese are the commands that the recipe runs, one stage after the other:\n\n{block}\n"
        content = content.replace("## Citation\n", section + "## Citation\n", 1)
    readme(name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    for recipe_name in ALL:
        write_block(recipe_name)
