"""Every command that reads folders, with every hostile folder: none hangs, fills the memory or writes elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.data_bin.corpora import prefixes, run_preprocess, write_corpus
from tests.end_to_end import tiny_classes
from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import TASK, train
from tests.faults.limits import outcome
from tests.faults.model_commands import ALL, LINE, MODEL_COMMANDS, TRAIN_ONCE, Command
from tests.fork_server import CONSOLE_SCRIPTS
from tree_fairseq import errors, hub
from tree_fairseq.__main__ import COMMANDS
from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.commands import annotate, check, explore, export, release
from tree_fairseq.data_bin.grammar import load_grammar
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.staging import Staging, staging_path
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.server import ExplorerServer
from tree_fairseq.explorer.systems import System
from tree_fairseq.parsing.pieces import load_subword_model
from tree_fairseq.source_code.asdl import AsdlGrammar
from tree_fairseq.support.options import flag_of

TOKENS, TREES = "test.en-de.en", "test.en-de.en.tree"
GIGABYTE = 1 << 30


# Attacks


def _replace(make: Callable[[Path], object], *names: str) -> Callable[[Path], None]:
    def attack(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)
            make(folder / name)

    return attack


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge_count(path: Path) -> None:
    path.write_bytes(struct.pack("<9sQBQ", b"MMIDIDX\x00\x00", 1, 4, 1 << 40) + bytes(1000))


def _index_of_holes(path: Path) -> None:
    lines = GIGABYTE // 3
    path.write_bytes(struct.pack("<9sQBQ", b"MMIDIDX\x00\x00", 1, 4, lines))
    os.truncate(path, path.stat().st_size + 12 * lines)


def _hole(path: Path) -> None:
    path.write_text("a 1\n")
    os.truncate(path, 5 * GIGABYTE)


def _deep(path: Path) -> None:
    path.write_text("[" * 1_000_000)


def _with_empty_record(name: str) -> Callable[[Path], None]:
    """A pipe that ``tree.json`` says is an empty file."""

    def attack(folder: Path) -> None:
        manifest = Manifest.load(folder)
        (folder / name).write_bytes(b"")
        manifest.files[name] = FileRecord.of(folder / name)
        manifest.save(folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return attack


ATTACKS: dict[str, Callable[[Path], None]] = {
    "dictionary is a pipe": _replace(os.mkfifo, "dict.en.txt"),
    "dictionary is a device": _replace(_device, "dict.en.txt", "dict.de.txt"),
    "dictionary is a hole": _replace(_hole, "dict.de.txt"),
    "empty dictionary is a pipe": _with_empty_record("dict.de.txt"),
    "labels are a pipe": _with_empty_record("dict.label.en.txt"),
    "labels are a device": _replace(_device, "dict.label.en.txt"),
    "tree.json is a pipe": _replace(os.mkfifo, "tree.json"),
    "tree.json is a device": _replace(_device, "tree.json"),
    "tree.json is deep": _replace(_deep, "tree.json"),
    "tree.json is a hole": _replace(_hole, "tree.json"),
    "tree.json is a folder": _replace(Path.mkdir, "tree.json"),
    "lines without end": _replace(_huge_count, f"{TOKENS}.idx"),
    "trees without end": _replace(_huge_count, f"{TREES}.idx"),
    "index is a hole": _replace(_index_of_holes, f"{TOKENS}.idx"),
    "index of trees is a hole": _replace(_index_of_holes, f"{TREES}.idx"),
    "index is a pipe": _replace(os.mkfifo, f"{TOKENS}.idx"),
    "tokens are a device": _replace(_device, f"{TOKENS}.bin"),
    "tokens are a pipe": _replace(os.mkfifo, f"{TOKENS}.bin"),
    "trees are a device": _replace(_device, f"{TREES}.bin"),
    "trees are another file": _replace(lambda path: path.symlink_to("/etc/passwd"), f"{TREES}.bin"),
    "raw text is a pipe": _replace(os.mkfifo, TOKENS),
}

# Commands


def _train(folder: Path, _: Path, output: Path) -> object:
    subsets = ("--train-subset", "test", "--valid-subset", "test")
    return train(folder, output / "out", *subsets, *TRAIN_ONCE)


def _preprocess(folder: Path, _: Path, output: Path) -> object:
    text = output / "text"
    (output / "text.en").write_text(LINE + "\n")
    (output / "text.de").write_text("der\n")
    dictionaries = ("--srcdict", folder / "dict.en.txt", "--tgtdict", folder / "dict.de.txt")
    flags = ("-s", "en", "-t", "de", "--testpref", text, "--destdir", folder, "--tree-parser", "brackets")
    return run("preprocess", *TASK, *dictionaries, *flags)


def _annotate(folder: Path, _: Path, output: Path) -> object:
    (folder / "tree.json").unlink()
    return annotate.main([str(folder), "-s", "en", "-t", "de", "--tree-parser", "right-branching"])


COMMANDS_WITH_FOLDERS: dict[str, Command] = {
    "train": _train,
    **MODEL_COMMANDS,
    "preprocess": _preprocess,
    "check": lambda folder, _, output: check.main([str(folder)]),
    "annotate": _annotate,
    "export": lambda folder, _, output: export.main([str(folder), "--split", "test", "--output", str(output / "t")]),
}
READING_ALL = ("train", "generate", "interactive", "hub", "translate", "check")
WITHOUT_FOLDERS = {"path", "parse", "options", "pieces", "average", "score", "repairs", "tree-fairseq"}


def test_every_command_has_a_row():
    """A new command reads no folders, or it gets a row."""
    names = {*COMMANDS, *(name.removeprefix("fairseq-") for name in CONSOLE_SCRIPTS)}
    assert names - WITHOUT_FOLDERS == {*COMMANDS_WITH_FOLDERS} - {"hub"}


@pytest.mark.parametrize("command", COMMANDS_WITH_FOLDERS)
def test_hostile_folders(command, trained, tmp_path):
    """With ``TREE_FAIRSEQ_ALL_ATTACKS=1`` all of them, otherwise every fourth: other commands have the others."""
    found, first = {}, [*COMMANDS_WITH_FOLDERS].index(command)
    for number, (attack, make) in enumerate(ATTACKS.items()):
        if not ALL and (number - first) % 4:
            continue
        if command == "preprocess" and attack.startswith("dictionary is a"):
            continue  # the user names the file in --srcdict, and may want a pipe
        folder, output = tmp_path / attack / "folder", tmp_path / attack / "output"
        shutil.copytree(trained.data, folder)
        output.mkdir()
        make(folder)
        try:
            end = outcome(lambda: COMMANDS_WITH_FOLDERS[command](folder, trained.best, output))
        except AssertionError as error:
            end = f"{error}"
        if end not in ("refused", "done"):
            found[attack] = end
        if attack.startswith(("dictionary", "tree.json is deep")) and command in READING_ALL:
            assert end == "refused", attack
        assert not staging_path(folder).exists() or end == "refused"
    assert found == {}


# Parsers of new text: code, models and servers that a folder names

TRAP = """from pathlib import Path

from tree_fairseq.parsing.parsers import ParserOptions, build_parser, register_parser

Path({marker!r}).touch()
register_parser("trap")(lambda options: build_parser(ParserOptions("right-branching")))
"""
NAMED = {
    "module": {"name": "trap_parser:trap"},
    "pickle": {"name": "benepar", "parser_dir": "{folder}/parser.pt"},
    "path": {"name": "stanza", "parser_dir": "{folder}/../models"},
    "address": {"name": "corenlp", "corenlp_url": "http://192.0.2.1:9000"},
}
"""What a hostile folder says of the parser; the last value is what its user would have to give."""


def _explore_typed(data: Path, path: Path, output: Path) -> object:
    (output / "typed").write_text("a cat\n")
    return explore.main([str(data), "--path", str(path), "--cpu", "--input", str(output / "typed")])


def _explore_served(data: Path, path: Path, _: Path) -> object:
    model = hub.from_pretrained(path.parent, path.name, data)
    with ExplorerServer([lambda: Comparison([System(model)])], "", 0) as server:
        return server.explain("a cat")


TYPING = {
    **{name: MODEL_COMMANDS[name] for name in ("interactive", "hub", "translate")},
    "explore --input": _explore_typed,
    "explore --serve": _explore_served,
    "documents": lambda data, *_: tiny_classes.task_of(data).read_lines(["a film"], str),
    "trees": lambda data, *_: tiny_classes.task_of(data).read_lines(["a film"], str),
}


@pytest.fixture(scope="module")
def classes(tmp_path_factory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("classes")
    texts = {kind: tiny_classes.write_examples(place / kind, kind, (8, 2, 2)) for kind in ("documents", "trees")}
    return {kind: tiny_classes.preprocess(text, kind, place / f"{kind}-bin") for kind, text in texts.items()}


@pytest.fixture
def trap(trained, marker, tmp_path, monkeypatch):
    """Makes a hostile folder; whatever runs its code, unpickles its models or asks its server makes the marker."""

    def make(named: dict[str, str], folder: Path = trained.data) -> Path:
        folder = Path(shutil.copytree(folder, tmp_path / "data"))
        manifest = Manifest.load(folder)
        parsers = [side.parser for side in manifest.sides.values()]
        if record := manifest.section(ClassificationRecord):
            parsers.insert(0, record.text_parser or parsers[0])
        parsers[0].update({name: text.format(folder=folder) for name, text in named.items()})
        manifest.save(folder)
        (folder / "trap_parser.py").write_text(TRAP.format(marker=str(marker)))
        monkeypatch.syspath_prepend(folder)
        return folder

    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **options: marker.touch())
    yield make
    sys.modules.pop("trap_parser", None)


@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("command", TYPING)
def test_a_folder_names_no_code_model_or_server(command, named, trap, trained, classes, tmp_path, caplog):
    folder = trap(NAMED[named], classes.get(command, trained.data))
    option, value = [*NAMED[named].items()][-1]
    (tmp_path / "out").mkdir()
    try:
        assert TYPING[command](folder, trained.best, tmp_path / "out") == 1
        said = caplog.text
    except errors.UntrustedFolderError as error:
        said = str(error)
    flag = "--tree-parser" if option == "name" else flag_of(option)
    assert f"give {flag} {value.format(folder=folder)}" in said


ALL_OF_THEM = {**NAMED["address"], **NAMED["path"], **NAMED["module"]}


@pytest.mark.parametrize("command", sorted({*COMMANDS_WITH_FOLDERS} - {*TYPING, "annotate", "preprocess", "induce"}))
def test_what_a_folder_names_does_not_matter_where_nothing_is_parsed(command, trap, trained, tmp_path):
    (tmp_path / "out").mkdir()
    folder = trap(ALL_OF_THEM)
    assert outcome(lambda: COMMANDS_WITH_FOLDERS[command](folder, trained.best, tmp_path / "out")) == "done"


def test_check_names_what_a_user_has_to_give(trap, capsys):
    assert check.main([str(trap(ALL_OF_THEM))]) == 0
    said = capsys.readouterr().out
    assert "all is well" not in said and all(
        flag in said for flag in ("--tree-parser trap_parser:trap", "--parser-dir /", "--corenlp-url http")
    )


def test_what_a_user_names_runs(trap, trained, marker):
    folder = trap(NAMED["module"])
    flags = ("--path", trained.best, "--cpu", "--max-len-b", 3, "--tree-parser", "trap_parser:trap")
    assert "H-0" in run("interactive", folder, *TASK, *flags, stdin="a cat\n")
    marker.unlink()  # the code of a module that the user named has run
    assert hub.from_pretrained(trained.folder, data_name_or_path=folder, tree_parser="trap_parser:trap").parse(["a b"])


# Places that are written


@pytest.fixture
def outside(tmp_path) -> Path:
    """A file of the user's that must stay as it is."""
    path = tmp_path / "home" / "precious"
    path.parent.mkdir()
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious" and [entry.name for entry in path.parent.iterdir()] == ["precious"]


def test_links_under_final_names_are_replaced(trained, outside, tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    names = ("checkpoint_best.pt", "checkpoint_1_1.pt")
    for name in names:
        (folder / name).symlink_to(outside)
    train(trained.data, folder, "--max-update", 1, "--save-interval-updates", 1)
    for name in names:
        assert not (folder / name).is_symlink() and torch.load(folder / name, weights_only=True)["model"]


@pytest.mark.parametrize("flags", [("--tree-parser", "brackets"), ()])
@pytest.mark.parametrize("name", ["preprocess.log", "train.en-de.en.bin", "dict.de.txt"])
def test_preprocessing_does_not_write_through_links(outside, tmp_path, name, flags):
    corpus = write_corpus(tmp_path / "corpus", train=2, valid=2)
    destination = tmp_path / "data-bin"
    destination.mkdir()
    (destination / name).symlink_to(outside)
    with pytest.raises(errors.InputError, match=f"{name}: this is a link"):
        run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", destination, *flags)


def test_the_staging_folder_is_no_link(outside, tmp_path):
    staging = staging_path(tmp_path / "data-bin")
    staging.symlink_to(outside.parent)
    with pytest.raises(errors.DestinationExistsError, match="is a link"), Staging(tmp_path / "data-bin", {}):
        pass


@pytest.mark.parametrize(
    "ready",
    [
        {"command": {}, "output": "output-1", "files": ["../../home/precious"]},
        {"command": {}, "output": "../elsewhere", "files": ["precious"]},
        {"command": {}, "output": "/elsewhere", "files": ["precious"]},
        {"command": {}, "output": "output-1", "files": ["/elsewhere/precious"]},
        {"command": {}, "output": "output-1", "files": [".."]},
        {"command": {}, "output": "output-1"},
        {"command": {}, "output": 1, "files": []},
        [],
    ],
)
def test_finished_files_come_from_the_staging_folder_alone(outside, tmp_path, ready):
    """A stranger's READY.json would put a file in the place of the user's."""
    staging = staging_path(tmp_path / "data-bin")
    (staging / "output-1").mkdir(parents=True)
    (tmp_path / "data-bin.building" / "home").mkdir()
    (tmp_path / "data-bin.building" / "home" / "precious").write_text("worthless")
    (staging / "READY.json").write_text(json.dumps(ready))
    with pytest.raises(errors.DestinationExistsError, match="READY.json"), Staging(tmp_path / "data-bin", {}) as work:
        work.publish()


def test_releases_take_no_files_of_other_folders(trained, outside, tmp_path):
    folder = Path(shutil.copytree(trained.data, tmp_path / "data-bin"))
    (folder / "notes.txt").symlink_to(outside)
    with pytest.raises(errors.DataFolderError, match="notes.txt is a link to"):
        release.release(folder, trained.best, tmp_path / "released")
    assert not (tmp_path / "released").exists()
    (folder / "notes.txt").unlink()
    (folder / "notes.txt").symlink_to("dict.en.txt")
    assert tmp_path / "released" / "notes.txt" in release.release(folder, trained.best, tmp_path / "released")


# Single files


@pytest.mark.parametrize("make", [os.mkfifo, _device, _hole, Path.mkdir])
def test_other_files_of_folders(tmp_path, make):
    """Grammars, subword models and raw text, which are read by readers of their own."""
    write_corpus(tmp_path / "corpus", train=2, valid=2)
    (tmp_path / "dict.en.txt").write_text("a 1\n")
    dictionary = load_dictionary(tmp_path, "en")
    for name, read in {
        "grammar.txt": lambda path: load_grammar(path, dictionary),
        "a.asdl": AsdlGrammar.load,
        "a.codes": lambda path: load_subword_model(str(path)),
        "a.model": lambda path: load_subword_model(str(path)),
        "train.en-de.en": lambda path: list(token_words(path, dictionary)),
    }.items():
        make(tmp_path / name)
        with pytest.raises(errors.CorruptFileError, match=name):
            outcome(lambda: read(tmp_path / name)) and read(tmp_path / name)
