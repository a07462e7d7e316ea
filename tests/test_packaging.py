"""The distribution: what a wheel contains and requires, and that it works without a checkout of the repository."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from contextlib import closing
from email.parser import Parser
from itertools import islice
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tree_fairseq
from preprocess.english_german.__main__ import pairs
from tests.docs.pages import blocks_of
from tree_fairseq.support.python_versions import zip_equal

ROOT = Path(__file__).resolve().parent.parent
BUILT_FROM = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
CONSOLE_SCRIPTS = ("fairseq-preprocess", "fairseq-train", "fairseq-generate", "fairseq-interactive")
EXTRAS = ("stanza", "pretrained", "figures", "scores", "subwords", "nltk", "dev")
TINY = "--arch tree_transformer_tiny --max-tokens 500 --max-update 2 --num-workers 0 --no-progress-bar"


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """The wheel and the source distribution, built from a copy, because building would leave files in the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in (*BUILT_FROM, "requirements.lock"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "tree_fairseq", copy / "tree_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--no-isolation", cwd=copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(dist) -> Path:
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def run(*command: object, **options) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def files_of_the_package() -> set[str]:
    found = (path for path in (ROOT / "tree_fairseq").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_both_distributions_contain_every_file_of_the_package(dist, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == files_of_the_package()
    assert "tree_fairseq/py.typed" in names  # type checkers read the annotations of the package
    assert any(name.endswith("/LICENSE") for name in names)
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        contents = {name.partition("/")[2] for name in archive.getnames()}
    assert files_of_the_package() | set(BUILT_FROM) <= contents


def test_the_metadata_has_what_an_index_shows(metadata):
    assert metadata["Name"] == "tree-fairseq" and metadata["License"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# tree-fairseq")
    assert {"Typing :: Typed", "Intended Audience :: Science/Research"} <= set(metadata.get_all("Classifier"))
    floor = re.search(r">=3\.(\d+)", metadata["Requires-Python"])
    assert f"Programming Language :: Python :: 3.{floor[1]}" in metadata.get_all("Classifier")


def test_every_requirement_is_in_the_lock_and_none_is_fairseq_or_torch(metadata):
    """pip would try to build fairseq, or replace a torch that was chosen with care."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)$", lock, re.MULTILINE)
    }
    assert set(EXTRAS) | {"all"} <= set(metadata.get_all("Provides-Extra"))
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist")]
    for extra in ("", *EXTRAS):
        needed = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra})]
        for each in needed:
            name = canonicalize_name(each.name)
            assert not name.startswith(("fairseq", "torch"))
            assert name in pinned, f"[{extra}] needs {name}, which requirements.lock lacks"
            assert each.specifier.contains(pinned[name]), f"[{extra}] needs {each}, the lock has {pinned[name]}"
        assert needed and (not extra or any(each.marker is not None for each in needed))


def test_the_citation_names_this_version_and_the_four_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == tree_fairseq.__version__ and citation["license"] == "MIT"
    assert [paper["year"] for paper in citation["references"]] == [2020, 2019, 2023, 2021]
    for paper in citation["references"]:
        assert paper["title"] and paper["authors"] and paper["conference"]["name"]
        assert paper["url"].startswith("https://")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(tree_fairseq.__version__)}\b", changes, re.MULTILINE)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The programs of an environment that has fairseq, torch and the wheel, and sees no checkout."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    paths = sysconfig.get_paths(vars={"base": str(environment), "platbase": str(environment)})
    # It sees the packages of the environment of this test, but for an installation of tree-fairseq.
    others = environment / "others"
    others.mkdir()
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "tree_fairseq" not in path.name and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    Path(paths["purelib"], "others.pth").write_text(f"{others}\n")
    programs = environment / "bin"
    for name in CONSOLE_SCRIPTS:
        lines = Path(sys.executable).with_name(name).read_text().split("\n")
        (programs / name).write_text("\n".join([f"#!{programs / 'python'}", *lines[1:]]))
        (programs / name).chmod(0o755)
    # Without an index, pip fails if it has to download anything.
    install(programs, wheel)
    return programs


def install(programs: Path, what: object) -> str:
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index"]
    return run(*pip, what, cwd=programs)


def test_the_extras_install_by_the_command_that_messages_name(installed):
    """The wheel's own metadata resolves them; the packages themselves are there already."""
    # requirements/python3.9.txt and python3.10.txt leave out ruff and mypy, which run on 3.11.
    extras = [extra for extra in EXTRAS if extra != "dev" or importlib.util.find_spec("mypy")]
    assert "Requirement already satisfied" in install(installed, f"tree-fairseq[{','.join(extras)}]")


@pytest.fixture(scope="module")
def folder_of_text(tmp_path_factory) -> Path:
    """A folder with nothing but parallel text, in words that the bundled parser knows."""
    folder = tmp_path_factory.mktemp("text")
    drawn = list(islice(pairs(seed=3, max_length=10), 48))
    for split, part in (("train", drawn[:32]), ("valid", drawn[32:40]), ("test", drawn[40:])):
        for language, lines in (
            ("en", [" ".join(tree.leaves()) for tree, _ in part]),
            ("de", [text for _, text in part]),
        ):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shell(installed, folder_of_text):
    environment = {**os.environ, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    environment = {**environment, "OMP_NUM_THREADS": "1"}
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"):
        environment.pop(name, None)
    return lambda line: run("bash", "-euc", line, cwd=folder_of_text, env=environment)


def test_an_installed_wheel_has_its_programs(installed, shell):
    path = Path(shell("tree-fairseq path").strip())
    assert path.is_dir() and installed.parent.resolve() in path.parents
    assert shell("python -m tree_fairseq path").strip() == str(path)


def lines_of_readme() -> list[str]:
    """README's commands but for those of a checkout: make, recipes, and the installation itself."""
    blocks = [block for block in blocks_of(ROOT / "README.md") if block.language == "bash"]
    text = "\n".join(block.text for block in blocks).replace("\\\n", " ")
    return [line for line in text.splitlines() if not re.match(r"make |pip |examples/|\s*$", line)]


def test_an_installed_wheel_runs_the_commands_of_the_readme(shell, folder_of_text):
    """From a folder without the repository, in order; trainings are tiny, and the bundled parser needs no download."""
    pytest.importorskip("stanza", reason="README's commands parse with Stanza")
    added = {
        "--tree-parser stanza": " --parser-dir $(tree-fairseq path)/explorer/demo/parser --tree-device cpu",
        "fairseq-preprocess": " --workers 1",
        "fairseq-train data-bin": f" {TINY}",
        "fairseq-interactive": " --max-len-b 10 --parser-dir $(tree-fairseq path)/explorer/demo/parser",
    }
    printed = []
    for line in lines_of_readme():
        printed.append(shell(line + "".join(more for words, more in added.items() if words in line)))
    assert {re.match(r"\S+", line)[0] for line in lines_of_readme()} == {
        "fairseq-train", "tree-fairseq", "fairseq-preprocess", "echo",
    }  # fmt: skip
    assert "NN man" in "".join(printed) and re.search(r"^H-0\t", printed[-1], re.MULTILINE)
    shell("tree-fairseq explore --demo --sentences 2")
    assert "explore.html" in os.listdir(folder_of_text)
    for file in folder_of_text.rglob("*"):
        assert ROOT not in file.resolve().parents


def test_an_installed_wheel_goes_from_questions_to_queries_that_run(shell, folder_of_text):
    """The commands of the page about source code; after two updates all outputs run on the database."""
    for library in ("sqlglot", "sacremoses", "subword_nmt"):
        pytest.importorskip(library, reason="the page needs tree-fairseq[code,subwords]")
    folder = folder_of_text / "queries"
    folder.mkdir()
    pairs = [
        (f"which {column} has {table} {number}", f"SELECT {column} FROM {table} WHERE id = {number}")
        for table, columns in (("city", ("name", "state")), ("river", ("name", "length")))
        for column in columns
        for number in range(10)
    ]
    for name, lines in zip(("questions.txt", "queries.sql"), zip(*pairs)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with closing(sqlite3.connect(folder / "database.sqlite")) as database:
        database.execute("CREATE TABLE city (id INTEGER, name TEXT, state TEXT)")
        database.execute("CREATE TABLE river (id INTEGER, name TEXT, length REAL)")
        database.commit()
    page = (ROOT / "docs/source_code.md").read_text(encoding="utf-8").partition("## From two files to a model")[2]
    commands = page.split("```")[1].removeprefix("bash\n").replace("\\\n", " ").split("\n\n")
    flags = ("", " --workers 1", " --max-update 2 --num-workers 0", "", "")
    printed = [shell(f"cd {folder}; {command.strip()}{more}") for command, more in zip_equal(commands, flags)]
    outputs = (folder / "outputs/generate-test.txt").read_text(encoding="utf-8") + printed[-1]
    queries = re.findall(r"^D-\d+\t\S+\t(.*)$", outputs, re.MULTILINE)
    assert len(queries) == len(pairs) // 10 + 1 and "runs          100.00" in printed[-2]
    with closing(sqlite3.connect(folder / "database.sqlite")) as database:
        for query in queries:
            database.execute(query)
