"""What the pages promise: README's length, all errors by message, all parts of a page on a method, pictures."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from xml.etree import ElementTree

import pytest
from fairseq.tasks import TASK_REGISTRY

from tests.docs.pages import ROOT, blocks_of, pages
from tree_fairseq import errors
from tree_fairseq.commands.model_options import architectures

TROUBLESHOOTING = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
METHODS = [page for page in (ROOT / "docs/methods").glob("*.md") if page.name != "index.md"]
# Page and words: benchmark and figure
SPEEDS = {
    ("docs/methods/index.md", "{:.2f} times the training step"): ("tree_transformer_step", "ratio"),
    ("docs/methods/index.md", "{:.2f} times the time of the encoder"): ("treeformer", "ratio"),
    ("docs/methods/index.md", "trajectories, {:.1f} ms a line"): ("insertion", "oracle_ms"),
    ("docs/methods/tree_transformer.md", "40 words this is {:.1f} times faster"): ("accumulation", "speedup"),
    ("docs/methods/tree_transformer.md", "needs 1/{:.0f} of the memory;"): ("accumulation", "memory_saving"),
    ("docs/methods/tree_transformer.md", "training step takes {:.2f} times that"): ("tree_transformer_step", "ratio"),
    ("docs/methods/tree_transformer.md", "{:.2f} times as many sentences"): ("tree_transformer_generate", "ratio"),
    ("docs/methods/tree_positional.md", "100 nodes this is {:.1f} times faster"): ("tree_positions", "speedup"),
    ("docs/methods/tree_positional.md", "needs 1/{:.0f} of the memory"): ("tree_positions", "memory_saving"),
    ("docs/methods/treeformer.md", "{:.0f} times faster than the paper's"): ("treeformer", "speedup_naive"),
    ("docs/methods/treeformer.md", "{:.1f} times faster than gathering"): ("treeformer", "speedup_vectorised"),
    ("docs/methods/treeformer.md", "{:.2f} times as many sentences"): ("treeformer_generate", "ratio"),
    ("docs/methods/tree_insertion.md", "{:.1f} times as many sentences"): ("insertion", "speedup_ltr"),
    ("docs/methods/tree_insertion.md", "{:.1f} times as many with one"): ("insertion", "speedup_ltr_batch_1"),
}


def test_readme_is_short_and_has_few_numbers():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    prose = re.sub(r"^```.*?^```|`[^`]*`|\]\([^)]*\)|https?://\S+", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"\d+(?:[.,]\d+)*", prose)) <= 25


def test_speeds_are_those_of_the_benchmarks():
    records = json.loads((ROOT / "docs/benchmarks.json").read_text(encoding="utf-8"))
    stale = []
    for (page, words), (benchmark, figure) in SPEEDS.items():
        [ratio] = [row["ratio"] for row in records[benchmark]["figures"] if row["figure"] == figure]
        if words.format(ratio) not in " ".join((ROOT / page).read_text(encoding="utf-8").split()):
            stale.append(f"{page}: {words.format(ratio)}")
    assert not stale, "docs/benchmarks.json has other figures"


def test_every_error_is_in_troubleshooting():
    classes = [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.TreeFairseqError)
    ]
    missing = [error.__name__ for error in classes if f"`{error.__name__}`" not in TROUBLESHOOTING]
    assert len(classes) > 30 and not missing, "add these errors to docs/troubleshooting.md"


def messages() -> list[str]:
    """The parts of messages that the tables quote, between values."""
    tables = TROUBLESHOOTING.partition("## Options that do not go together")[2].partition("## Questions")[0]
    rows = [row for row in tables.splitlines() if row.startswith("| `")]
    cells = [row.split("|")[2] if re.match(r"\| `\w+Error`", row) else row.split("|")[1] for row in rows]
    quoted = [quote for cell in cells for quote in re.findall(r"`([^`]+)`", cell)]
    return sorted({part.strip() for quote in quoted for part in quote.split("…") if part.strip()})


@pytest.fixture(scope="module")
def source():
    """The strings of the package, with the breaks between adjacent literals closed."""
    text = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "tree_fairseq").rglob("*.py"))
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_quoted_messages_are_those_of_the_program(source):
    assert len(messages()) > 40
    stale = [message for message in messages() if message not in source]
    assert not stale, "correct the quotations in docs/troubleshooting.md"


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_a_page_on_a_method_has_all_parts(page):
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Idea", "Commands", "Options", "What we measured", "Where it does not help"]
    assert re.search(r"!\[.+\]\(\.\./images/\w+\.svg\)", text)
    assert any(block.language == "math" for block in blocks_of(page))


def test_every_picture_of_the_pages_is_drawn_by_the_script(tmp_path):
    pytest.importorskip("matplotlib", reason="draws the pictures: pip install tree-fairseq[figures]")
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs/plugins/pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    shown = {name for page in pages() for name in re.findall(r"images/(\w+)\.svg", page.read_text(encoding="utf-8"))}
    assert shown <= set(pictures.PICTURES)
    assert pictures.main(["--output", str(tmp_path)]) == 0
    for name in pictures.PICTURES:
        drawn = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        kept = ElementTree.parse(ROOT / f"docs/images/{name}.svg").getroot()
        assert drawn.get("viewBox") == kept.get("viewBox"), f"draw it again: python docs/plugins/pictures.py {name}"
        assert len(list(drawn.iter())) > 20


def test_the_map_names_every_folder_and_file_of_the_package():
    shown = (
        (ROOT / "docs/design.md")
        .read_text(encoding="utf-8")
        .partition("tree_fairseq/\n")[2]
        .partition("\npreprocess/")[0]
    )
    package = [
        path
        for path in (ROOT / "tree_fairseq").iterdir()
        if path.name not in ("__pycache__", "__init__.py", "py.typed")
    ]
    missing = [path.name for path in package if not re.search(rf"(?<![\w]){re.escape(path.name)}[/ ]", shown)]
    assert len(package) > 15 and not missing, "describe them in docs/design.md"


def test_the_table_of_names_has_every_task_and_architecture():
    table = (ROOT / "docs/methods/index.md").read_text(encoding="utf-8").partition("## Names")[2].partition("\n## ")[0]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| [")]
    tasks, archs = ({name for row in rows for name in re.findall(r"`(\w+)`", row[column])} for column in (4, 5))
    ours = {name for name, task in TASK_REGISTRY.items() if task.__module__.startswith("tree_fairseq.")}
    assert tasks - {"translation"} == ours - {"autocast_translation"}
    assert archs <= set(architectures())
    assert not [arch for arch in architectures() if not arch.startswith(tuple(archs))]
