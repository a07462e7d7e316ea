"""The commands and the Python of the pages run, in the order in which a reader meets them, in a small world.

Each page of :data:`WORLDS` has a folder with the files that it speaks of. Its commands run there as they are written;
:func:`small` only makes trainings tiny, and takes a parser that needs no download.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from preprocess.english_german.__main__ import pairs
from tests.docs.commands import PLUGIN, commands_of
from tests.docs.pages import ROOT, blocks_of, name_of, pages
from tests.end_to_end import tiny_classes, tiny_programs
from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.fixtures import STOCK_SIZES
from tree_fairseq.__main__ import main

STANZA = ("--parser-dir", str(ROOT / "examples/quickstart/stanza-en"), "--tree-device", "cpu")
NO_PARSER = ("--tree-parser", "right-branching")
PREPARED = ("make", "pip", "export", "torchrun", "python", "curl", "docker", "cd")
"""Programs whose commands are parsed in test_commands.py and not run here."""


def write_translations(folder: Path) -> None:
    rows = [(" ".join(tree.leaves()), german) for tree, german in islice(pairs(seed=5, max_length=10), 24)]
    for split in ("train", "valid", "test"):
        for language, side in (("en", 0), ("de", 1)):
            (folder / f"{split}.{language}").write_text("".join(f"{row[side]}\n" for row in rows), encoding="utf-8")
    (folder / "text").write_text(f"{rows[0][1]}\n", encoding="utf-8")


def write_programs(folder: Path) -> None:
    tiny_programs.write_corpus(folder, (24, 8, 8))


def write_examples(folder: Path) -> None:
    tiny_classes.write_examples(folder, "documents", (24, 8, 8))
    tiny_classes.write_examples(folder, "trees", (24, 8, 8))


WORLDS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "docs/getting_started.md": (write_translations, STANZA),
    "docs/methods/treeformer.md": (write_translations, ()),
    "docs/methods/tree_positional.md": (write_programs, ()),
    "docs/methods/tree_insertion.md": (write_programs, ()),
    "docs/methods/classification.md": (write_examples, NO_PARSER),
}
"""For each page: what writes its files, and the flags of a parser that works without a network."""


def small(command: list[str], parser: tuple[str, ...]) -> list[str]:
    """The command at a size for tests: the last value of a flag counts, so flags at the end replace those before."""
    program, *words = command
    if program == "fairseq-preprocess":
        return [program, *words, *(parser if "--tree-parser" in words else ()), "--workers", "1"]
    if program == "fairseq-train":
        arch = words[words.index("--arch") + 1]
        kind = re.sub(r"(_(iwslt_de_en|semantic_parsing|tiny))?$", "", arch)
        tiny = STOCK_SIZES if kind == "transformer" else ("--arch", f"{kind}_tiny")
        return [
            program, *words, *map(str, tiny), "--cpu", "--max-update", "2", "--num-workers", "0", "--no-progress-bar",
        ]  # fmt: skip
    if program in ("fairseq-generate", "fairseq-interactive") and "tree_classification" not in words:
        # The folder's model is in a place that only a user may name.
        own = parser[:2] if parser is STANZA and program == "fairseq-interactive" else ()
        return [*command, *own, "--max-len-b", "10"]
    return command


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_page(name: str, folder: Path) -> str:
    """Runs all commands of a page that can be run offline, in order; returns what they said."""
    write, parser = WORLDS[name]
    write(folder)
    said, typed = [], None
    for block in blocks_of(ROOT / name):
        commands = commands_of(block.text) if block.language in ("", "bash") else []
        if any(command[0] in PREPARED or "DIR" in command for command in commands):
            continue
        for command in commands:
            program, *words = small(command, parser)
            if program == "echo":
                typed = f"{words[0]}\n"
            elif program == "tree-fairseq":
                assert main(words) == 0, command
            else:
                words = [word for word in words if word not in ("--user-dir", "tree_fairseq", str(PLUGIN))]
                said.append(run(program[len("fairseq-") :], *words, stdin=typed))
    return "\n".join(said)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Runs the commands of a page once; returns its folder, and what the commands said."""
    made: dict[str, tuple[Path, str]] = {}

    def of(name: str) -> tuple[Path, str]:
        if name not in made:
            folder = tmp_path_factory.mktemp(Path(name).stem)
            with inside(folder):
                made[name] = folder, run_page(name, folder)
        return made[name]

    return of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WORLDS)
def test_the_commands_of_a_page_run(world, name):
    if name == "docs/getting_started.md":
        pytest.importorskip("stanza", reason="parses with the bundled model of Stanza")
    folder, said = world(name)
    assert (folder / "checkpoints/checkpoint_best.pt").is_file() and "done training" in said
    assert len(hypotheses(said)) >= 8


def python_pages() -> list[str]:
    """Pages with Python, apart from the one whose examples tests/test_extend.py runs."""
    named = [name_of(page) for page in pages() if any(block.language == "python" for block in blocks_of(page))]
    return [name for name in named if name != "docs/extending.md"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", python_pages())
def test_the_python_of_a_page_runs(world, name, tmp_path):
    pytest.importorskip("stanza", reason="parses with the bundled model of Stanza")
    folders = {"": "docs/getting_started.md"}
    code = "\n".join(block.text for block in blocks_of(ROOT / name) if block.language == "python")
    if "-of-forms" in code:
        folders.update(
            {"-of-forms": "docs/methods/tree_positional.md", "-of-classes": "docs/methods/classification.md"}
        )
    for suffix, page in folders.items():
        for part in ("data-bin", "checkpoints"):
            (tmp_path / f"{part}{suffix}").symlink_to(world(page)[0] / part)
    with inside(tmp_path):
        exec(compile(offline(code), name, "exec"), {"__name__": "__main__"})


def offline(code: str) -> str:
    """The code with the bundled parser where a parser's model would be downloaded."""
    return code.replace('data_name_or_path="data-bin")', f'data_name_or_path="data-bin", parser_dir={STANZA[1]!r})')
