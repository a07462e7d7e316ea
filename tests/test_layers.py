"""Imports point in one direction, methods do not import each other, and files have a reasonable size."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "tree_fairseq"
# A layer imports the layers above it in this list, and itself.
LAYERS = [
    {"errors"},
    {"support"},
    {"trees"},
    {"repairs"},
    {"source_code", "parsing"},
    {"data_bin"},
    {"preprocessing", "nn", "drawing"},
    {"tasks"},
    {"new_text", "tree_transformer", "tree_positional", "treeformer", "tree_insertion"},
    {"classification"},
    {"scoring"},
    {"explorer"},
    {"commands", "hub"},
    {"plugin"},
    {"__init__", "__main__"},
]
# Packages beside each other do not import each other, except these pairs (importer, imported).
NEIGHBOURS = {("commands", "hub")}
# Packages that a layer does not import.
FORBIDDEN = {
    "errors": {"torch", "fairseq", "fairseq_cli", "stanza"},
    "support": {"torch", "fairseq", "fairseq_cli", "stanza"},
    "trees": {"torch", "fairseq", "fairseq_cli", "stanza"},
    "source_code": {"torch", "fairseq", "fairseq_cli", "stanza"},
    "parsing": {"fairseq", "fairseq_cli"},
}
LONGEST_FILE, SHORTEST_FILE = 400, 40


def room_of(module: str) -> str:
    """The folder, or the file beside the folders, that a module of the package belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def height(room: str) -> int:
    return next(index for index, layer in enumerate(LAYERS) if room in layer)


def imports(path: Path) -> set[str]:
    """Every module that a file imports; ``from package import module`` counts as the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            if node.module == "tree_fairseq":
                # The package itself has the version and register(); all other names are modules.
                names = {alias.name for alias in node.names} - {"__version__", "register"}
                found.update(f"tree_fairseq.{name}" for name in names)
            else:
                found.add(node.module)
    return found


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_room_belongs_to_a_layer():
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files()}
    assert rooms == set().union(*LAYERS)


def wrong_imports(path: Path) -> list[str]:
    """The imports of a file that point against the direction, one line each."""
    own, wrong = path.relative_to(PACKAGE).parts[0].removesuffix(".py"), []
    for module in sorted(imports(path)):
        top = module.split(".")[0]
        if top in FORBIDDEN.get(own, set()):
            wrong.append(f"{name_of(path)}: {own} imports {top}")
        if top == "stanza" and "stanza" not in path.name:
            wrong.append(f"{name_of(path)}: only the adapter of Stanza may import it")
        if top != "tree_fairseq" or module == "tree_fairseq":
            continue
        other = room_of(module)
        if other == own or (own, other) in NEIGHBOURS:
            continue
        if height(other) >= height(own):
            wrong.append(f"{name_of(path)} imports {module}, which stands beside or above {own}")
    return wrong


def test_imports_point_to_lower_layers():
    assert not [line for path in files() for line in wrong_imports(path)]


def test_files_are_neither_too_long_nor_too_short():
    wrong = []
    for path in files():
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST_FILE or (lines < SHORTEST_FILE and not path.name.startswith("__")):
            wrong.append(f"{name_of(path)} has {lines} lines")
    assert not wrong


def test_few_files_lie_loose_in_the_package():
    assert {path.name for path in PACKAGE.glob("*.py")} == {
        "__init__.py", "__main__.py", "errors.py", "hub.py", "plugin.py",
    }  # fmt: skip


def test_files_share_names_only_on_purpose():
    """A base name that several rooms use is one of the house's own names for a part of a method."""
    parts = {
        "__init__", "__main__", "encoder", "decoder", "model", "dataset", "folder", "search", "criterion", "task",
        "preprocessing", "views",
    }  # fmt: skip
    names = [path.stem for path in files()]
    folders = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    shared = {name for name in names if names.count(name) > 1} | (set(names) & folders)
    assert shared <= parts, shared - parts
