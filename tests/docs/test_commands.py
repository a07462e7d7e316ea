"""Every command of README and of the pages is accepted by its program as it is written there."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.docs.commands import CommandError, check, commands_of
from tests.docs.pages import ROOT, Block, blocks_of, name_of, pages

COMMANDS = {"", "bash", "sh", "console", "shell"}
NOT_RUN = {
    "text", "math", "ini", "json", "yaml", "toml", "bibtex", "html", "xml", "svg", "dockerfile", "diff", "makefile",
}  # fmt: skip
"""Languages of blocks that show what a program writes or reads. Blocks of ``python`` are in test_python.py."""


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_are_accepted(page):
    problems = []
    for block in blocks_of(page):
        if block.language in COMMANDS:
            problems += refused(block)
        elif block.language not in NOT_RUN | {"python"}:
            problems.append(f"{block.page}:{block.line}: nobody tests blocks of {block.language!r}")
    assert not problems, "\n".join(problems)


def refused(block: Block) -> Sequence[str]:
    try:
        commands = commands_of(block.text)
    except ValueError as error:
        return [f"{block.page}:{block.line}: {error}; blocks that are no commands are ```text"]
    problems = []
    for command in commands:
        try:
            check(command)
        except CommandError as error:
            problems.append(f"{block.page}:{block.line}: {error}")
    return problems


@pytest.mark.parametrize(
    "command",
    [
        "fairseq-train data-bin --user-dir tree_fairseq --task tree_translation --arch no_such_model",
        "fairseq-train data-bin --user-dir tree_fairseq --task tree_translation --arch tree_transformer --no-such-flag",
        "fairseq-preprocess --user-dir tree_fairseq -s en -t de --tree-subwords sometimes",
        "fairseq-generate data-bin --no-such-flag …",
        "tree-fairseq check", "tree-fairseq frobnicate", "python -m preprocess.no_such_module", "make no-such-target",
        "make gpu -- --no-such-flag", "make docs -- --quick",
        "examples/no_such_recipe/run.sh", "examples/geo/run.sh --no-such-flag", "pip install 'tree-fairseq[unheard]'",
        "frobnicate --all",
    ],
)  # fmt: skip
def test_a_wrong_command_is_found(command):
    (words,) = commands_of(command)
    with pytest.raises(CommandError):
        check(words)


def flags_in(text: str) -> set[str]:
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {flag for code in re.findall(r"`([^`\n]+)`", text) for flag in re.findall(r"(?<![\w-])--[a-z][\w-]+", code)}


@pytest.fixture(scope="module")
def known_flags():
    """Every flag that this project or fairseq names in its code, options of dataclasses included."""
    from pathlib import Path

    import fairseq

    sources = [
        *(ROOT / "tree_fairseq").rglob("*.py"),
        *(ROOT / "preprocess").rglob("*.py"),
        *(ROOT / "tests/benchmarks").glob("*.py"),
    ]
    sources += [*(ROOT / "examples").rglob("*.py"), *(ROOT / "examples").rglob("*.sh"), ROOT / "Makefile"]
    sources += Path(fairseq.__file__).parent.rglob("*.py")
    return set(re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in sources).replace("_", "-")))


THEIRS = {"--ignore-error", "--only-binary", "--return-first-root", "--only-first-root", "--source-position", "--gpus"}
"""Flags of other programs: the papers' authors' (docs/migration.md) and docker's."""


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_flags_in_the_text_exist(page, known_flags):
    flags = flags_in(page.read_text(encoding="utf-8").replace("_", "-"))
    unknown = {flag for flag in flags - THEIRS if flag not in known_flags and flag.lstrip("-") not in known_flags}
    assert not unknown
