"""Every flag of every mode of a command is read, or refused with the flag that does the job."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from argparse import Action, ArgumentParser, Namespace

import pytest

from tests.data_bin.corpora import prefixes, write_lines
from tests.docs.pages import ROOT
from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import TASK
from tree_fairseq import hub
from tree_fairseq.__main__ import COMMANDS
from tree_fairseq.__main__ import main as command_line
from tree_fairseq.commands import explore, induce, parse, translate
from tree_fairseq.errors import InputError, OutsideTreeError
from tree_fairseq.explorer.server import ExplorerServer
from tree_fairseq.parsing.line_parser import LineParser, require_read
from tree_fairseq.parsing.parsers import ARGUMENTS, ParserOptions
from tree_fairseq.scoring.__main__ import SCORERS

TREE = "(S (NP-SBJ (NN a)) (VP (VB b)))"
RIGHT, BRACKETS = ("--tree-parser", "right-branching"), ("--tree-parser", "brackets")
# Values that are not the defaults, except that --tree-parser may be given as it is by default.
VALUES = {
    "--tree-parser": "stanza", "--tree-lang": "xx", "--parser-dir": "models", "--parser-package": "p",
    "--tree-batch-size": "7", "--tree-ssplit": "punct", "--tree-tokenize": "parser", "--tree-subwords": "bpe",
    "--corenlp-url": "http://localhost:1", "--tree-strip-function-tags": None,
    "--tree-device": "cpu", "--on-parse-error": "flat", "--max-parse-failures": "9", "--parse-cache": "cache",
    "--keep-empty": None, "--tree-tag-separators": "=",
    "--engine": "slurm", "--ray-address": "auto",
    "--workers": "2", "--shard": "0/1", "--join": "other", "--format": "json", "--binarize": None, "--spans": None,
    "--read": "python", "--text": "c",
}  # fmt: skip
MODES = {
    "text": (*RIGHT, "--text", "a b"), "brackets": (*BRACKETS, "--text", TREE),
    "penn": ("FILE", "--read", "penn"), "bracket": ("FILE", "--read", "bracket"), "corpus": ("FILE", "OUT", *BRACKETS),
    "shard": ("FILE", "OUT", "--shard", "0/1", *BRACKETS), "join": ("--join", "OUT"),
}  # fmt: skip
# The language is a fact about the text, which folders keep; a cache changes the time alone; the last one is read when a
# parser fails.
HARMLESS = {"tree_lang", "parse_cache", "on_parse_error"}


NOTES: set[str] = set()


class Noted(Namespace):
    """Arguments that note their names when they are read."""

    def __getattribute__(self, name):
        NOTES.add(name)
        return super().__getattribute__(name)


class NotedOptions(ParserOptions):
    """Options of a parser that note, by their arguments, which of them are read."""

    def __getattribute__(self, name):
        # Labels are cut at separators, which the other flag sets to the usual ones.
        NOTES.update({ARGUMENTS.get(name, name), *(["tree_strip_function_tags"] if name == "tag_separators" else [])})
        return super().__getattribute__(name)


def noting_options(options: ParserOptions, *rest, **more) -> LineParser:
    noted = NotedOptions(**options.to_json())
    NOTES.difference_update(ARGUMENTS.values())  # all were read to make the options
    return LineParser(noted, *rest, **more)


@pytest.mark.parametrize("flag", VALUES)
@pytest.mark.parametrize("mode", MODES)
def test_a_flag_of_parse_is_read_or_refused(mode, flag, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"FILE": "in.trees", "OUT": "out.trees"}
    base = [names.get(word, word) for word in MODES[mode]]
    if flag in base and flag != "--text":
        pytest.skip("the mode has it")
    write_lines(tmp_path / "in.trees", [TREE])
    if mode == "join":
        assert parse.main(["in.trees", "out.trees", "--shard", "0/1", *BRACKETS]) == 0
    read_arguments = parse._parse_arguments
    monkeypatch.setattr(parse, "_parse_arguments", lambda given: Noted(**vars(read_arguments(given))))
    if mode in ("text", "brackets", "penn"):
        monkeypatch.setattr(parse, "LineParser", noting_options)
    NOTES.clear()
    value = [] if VALUES[flag] is None else [VALUES[flag]]
    with contextlib.suppress(SystemExit):
        parse.main([*base, flag, *value])
        assert flag[2:].replace("-", "_") in NOTES | HARMLESS
        return
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("tree-fairseq parse: error:") and any(each in said for each in (flag, *value))


SIDES = ("-s", "en", "-t", "de")
IGNORED = [
    ((*SIDES, "--engine", "ray"), "--engine", "--tree-parser"),
    ((*SIDES, "--tree-sides", "target"), "--tree-sides", "--tree-parser"),
    ((*SIDES, *RIGHT, "--traversal", "bfs"), "--traversal", "--source- or --target-modality tree"),
    ((*SIDES, *RIGHT, "--target-notation", "json"), "--target-notation", "--target-modality tree"),
    ((*SIDES, *RIGHT, "--leaf-merges", 5), "--leaf-merges", "a programming language"),
    ((*SIDES, *RIGHT, "--parser-dir", "m"), "--parser-dir", "stanza, benepar"),
    ((*SIDES, *BRACKETS, "--tree-ssplit", "punct"), "--tree-ssplit", "stanza"),
    ((*SIDES, *RIGHT, "--moses-no-dash-splits"), "--moses-no-dash-splits", "--tokenizer moses"),
    ((*SIDES, "--source-modality", "tree", "--target-modality", "tree", "--bpe", "bert"), "--bpe", "both sides"),
    ((*SIDES, *RIGHT, "--bpe", "gpt2"), "--bpe gpt2", "subword_nmt or sentencepiece"),
    ((*SIDES, "--source-modality", "tree", "--on-parse-error", "flat"), "--on-parse-error", "no flat tree.* skip-pair"),
    (("--task", "tree_insertion", *SIDES, "--max-parse-failures", 9), "--max-parse-failures", "--tree-parser"),
    (("--task", "tree_insertion", *SIDES, "--traversal", "bfs"), "--traversal", "tree"),
    (("--task", "tree_classification", *RIGHT, "--source-notation", "json"), "--source-notation", "tree"),
    (("--task", "tree_sentence_classification", "--tree-device", "cpu"), "--tree-device", "--tree-parser"),
]  # fmt: skip


@pytest.mark.parametrize("flags, flag, way_out", IGNORED)
def test_a_flag_of_preprocessing_that_nothing_reads_is_refused_at_once(tmp_path, flags, flag, way_out):
    for end in ("en", "de", "tsv"):
        write_lines(tmp_path / f"train.{end}", ["(a b)\tx" if end == "tsv" else "(a b)"])
    with pytest.raises(InputError, match=f"{flag} would be ignored.*[:.] .*{way_out}"):
        run("preprocess", *prefixes(tmp_path, "train"), "--destdir", tmp_path / "bin", *flags)
    assert not list(tmp_path.glob("bin*"))


def test_options_that_one_of_two_parsers_reads_are_for_both():
    sides = ParserOptions("stanza", ssplit="punct", parser_dir="m"), ParserOptions("brackets", ssplit="punct")
    require_read(*sides)
    with pytest.raises(InputError, match="--tree-parser brackets,balanced: it goes with --tree-parser stanza, benepar"):
        require_read(ParserOptions("brackets", parser_dir="m"), ParserOptions("balanced", ssplit="punct"))


# Every command, with modes of it; values are for flags that need others than FILE or 3.
SCORED = ("score", "FILE", "--references", "FILE")
SETS = ("--run", "RUN", "--references", "RUN")
LAW = [
    ("path",), ("repairs",), ("options",), ("options", "tree_transformer_tiny"), ("check", "DATA"), ("export", "DATA"),
    ("pieces", "FILE", "--pieces-of", "FILE"), ("average", "PATH", "PATH", "--output", "NEW"),
    ("release", "DATA", "--path", "PATH", "--output", "NEW"),
    ("translate", "DATA", "--path", "PATH", "--input", "FILE"), ("induce", "DATA", "--path", "PATH", "--input", "FILE"),
    ("translate", "DATA", "--path", "PATH", "--gen-subset", "test"), ("explore", "--demo"),
    ("explore", "DATA", "--path", "PATH", "--input", "FILE"), ("explore", "DATA", "--path", "PATH", "--serve"),
    SCORED, (*SCORED, "--metrics", "tree"), (*SCORED, "--metrics", "brackets", "--baseline", "FILE"),
    ("score", "seeds", *SCORED[1:], "--baseline", "FILE"),
    ("score", "classification", *SETS), ("score", "regression", *SETS),
    ("score", "structural", *SETS, "--notation", "bracket", "--target-lang", "x"),
    ("score", "code", *SETS, "--notation", "sql", "--target-lang", "x"), ("score", "sql", *SETS, "--target-lang", "x"),
    ("score", "rouge", "--run", "RUN", "--references", "RUN", "--target-lang", "x"),
    ("score", "bleu", "--run", "RUN", "--words", "RUN", "--source-lang", "x", "--target-lang", "x"),
]  # fmt: skip
OTHERS = {
    "--metrics": "ter", "--against": "RUN", "--port": "0", "--notation": "json", "--detokenize": "en", "--json": "NEW",
    "--result": "NEW", "--output": "NEW", "--checkpoint": "PATH", "--data": "DATA", "--tree-parser": "flat",
}  # fmt: skip


NO_MODELS = {"induce", "pieces"}  # that work in these modes; all their flags are read before


def own_flags(parser: ArgumentParser, command: str) -> list[Action]:
    module = {"translate": translate, "induce": induce, "explore": explore}.get(command)
    names = module._add_flags(ArgumentParser()) if module else [action.dest for action in parser._actions]
    return [each for each in parser._actions if each.option_strings and each.dest in names and each.dest != "help"]


@pytest.mark.parametrize("mode", LAW, ids=" ".join)
def test_a_flag_of_any_command_is_read_or_refused(mode, trained, tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RUN").mkdir()
    values, parsers = {"DATA": trained.data, "PATH": trained.best}, []
    read = ArgumentParser.parse_args

    def parse_args(parser, arguments=None, namespace=None):
        parsers.append(parser)
        return Noted(**vars(read(parser, arguments, namespace)))

    monkeypatch.setattr(ArgumentParser, "parse_args", parse_args)
    monkeypatch.setattr(ExplorerServer, "run", lambda server: server.server_close())

    def outcome(*more: str) -> str:
        NOTES.clear(), caplog.clear(), capsys.readouterr(), parsers.clear()
        shutil.rmtree(tmp_path / "NEW", ignore_errors=True)
        write_lines(tmp_path / "FILE", ["(a b)"])
        write_lines(tmp_path / "RUN/generate-test.txt", ["H-0\t0\t1"])
        write_lines(tmp_path / "RUN/test.tsv", ["a b\t1"])
        write_lines(tmp_path / "RUN/test.x", ["(a b)"])
        status = 0
        with contextlib.suppress(SystemExit):
            status = command_line([str(values.get(word, word)) for word in (*mode, *more)])
        return f"{status} {caplog.text} {capsys.readouterr().err}"

    said = outcome()
    assert said.startswith("0") or mode[0] in NO_MODELS, said
    ignored = []
    for action in own_flags(parsers[0], mode[0]):
        flag = action.option_strings[-1]
        value = next(iter(action.choices)) if action.choices else "3" if action.type is int else "FILE"
        said = outcome(flag, *([] if action.nargs == 0 else [OTHERS.get(flag, value)]))
        if flag not in mode and action.dest not in NOTES and flag not in said:
            ignored.append(flag)
    assert not ignored


def test_every_command_is_tried():
    # The flags of annotate are those of preprocessing.
    assert {mode[0] for mode in LAW} | {"parse", "annotate"} == {*COMMANDS}
    assert {mode[1] for mode in LAW if mode[0] == "score"} - {"FILE"} == {*SCORERS}


OF_FAIRSEQ = [
    ("explore", ("DATA", "--path", "PATH", "--input", "FILE", "--gen-subset", "test"), "--gen-subset would be"),
    ("explore", ("DATA", "--path", "PATH", "--constraints"), "--constraints does not work .*; use fairseq-generate"),
    ("explore", ("DATA", "--path", "PATH", "--lm-path", "PATH"), "--lm-path does not work .*; use fairseq-generate"),
    ("translate", ("DATA", "--path", "PATH", "--gen-subset", "test", "--input", "FILE"), "--input would be"),
    ("translate", ("DATA", "--path", "PATH", "--nbest", "2"), "--nbest would be .* --sorted"),
    ("induce", ("DATA", "--path", "PATH", "--beam", "2"), "--beam would be ignored: .* without a search"),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, message", OF_FAIRSEQ)
def test_a_flag_of_a_command_that_nothing_reads_is_refused(name, arguments, message, trained, tmp_path, caplog):
    write_lines(tmp_path / "lines", ["a"])
    values = {"FILE": str(tmp_path / "lines"), "DATA": str(trained.data), "PATH": str(trained.best)}
    assert command_line([name, *(values.get(word, word) for word in arguments)]) == 1
    assert re.search(message, caplog.text)


def test_new_text_of_a_folder_of_ready_made_trees_is_said_to_be_trees(trained):
    with pytest.raises(
        InputError, match="--parser-dir would be ignored with --tree-parser brackets: .*tree-fairseq parse"
    ):
        hub.from_pretrained(trained.folder, data_name_or_path=trained.data, parser_dir="models")
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    with pytest.raises(
        OutsideTreeError, match="came ready-made, so new lines are trees.*tree-fairseq parse.*--tree-parser"
    ):
        model.translate(["the cat sleeps ."])


def test_a_tokeniser_takes_the_languages_of_the_folder_and_subwords_name_their_file(trained):
    flags = (trained.data, *TASK, "--path", trained.best, "--beam", 1, "--cpu", "--gen-subset", "valid")
    assert "\nD-0\t" in run("generate", *flags, "--tokenizer", "moses")
    with pytest.raises(InputError, match="--bpe subword_nmt does not say .* give --bpe-codes FILE"):
        run("generate", *flags, "--bpe", "subword_nmt")


WITHOUT_EXTRAS = """
import sys
missing = "stanza sacremoses subword_nmt sentencepiece transformers matplotlib nltk rouge_score sqlglot tree_sitter"
sys.modules.update(dict.fromkeys(missing.split()))
from tree_fairseq.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command, status, said",
    [
        ("parse --text 'a b' --tree-parser right-branching", 0, "(X (X a) (X b))"),
        ("check DATA", 0, "all is well"),
        ("score DATA/dict.en.txt --references DATA/dict.en.txt", 0, "bleu"),
        ("explore --demo --output /dev/null", 0, "open it in a browser"),
        ("translate DATA --path PATH --cpu --beam 1 --gen-subset valid --tokenizer moses", 1, "tree-fairseq[subwords]"),
        ("parse --text 'a b'", 1, "tree-fairseq[stanza]"),
    ],
)
def test_first_steps_need_no_extra_and_other_steps_name_theirs(command, status, said, trained, tmp_path):
    command = command.replace("DATA", str(trained.data)).replace("PATH", str(trained.best))
    line = [sys.executable, "-c", WITHOUT_EXTRAS, *shlex.split(command)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == status and said in done.stdout + done.stderr and "Traceback" not in done.stderr
