"""Tries the commands of a page without running them: each is parsed by the program's own parser.

:data:`CHECKS` is the one place that says how a command is tested, by the program that it starts. A command whose
program is missing there fails. Some pages' commands are also run: test_first_run.py,
tests/test_extend.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from tests.docs.pages import ROOT

PLUGIN = ROOT / "tree_fairseq"
SHELL = {
    "awk", "cat", "cd", "cp", "curl", "docker", "docker/build.sh", "echo", "export", "git", "head", "ls", "mkdir", "mv",
    "open", "printf", "rm", "sed", "source", "xdg-open", ".venv/bin/activate", "conda",
    "ray", "sbatch", "split",
}  # fmt: skip
"""Programs that are no part of this project. A page names them to prepare something; they are not tried."""

# Words that stand for others: a reader puts something in their place, or leaves them out.
_LEFT_OUT = re.compile(r"^(…|\.\.\.|\[.*\])$")


class CommandError(Exception):
    """A page shows a command that the program would refuse."""


class Parsed(BaseException):
    """A program's parser accepted its arguments; nothing after it runs."""


def commands_of(text: str) -> list[list[str]]:
    """The commands of a block, word by word; pipes, loops and assignments are taken apart."""
    text = re.sub(r"^\$ ", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    text = re.sub(r"\$\((?:tree-fairseq path|python -m tree_fairseq(?: path)?)\)", str(PLUGIN), text)
    found = []
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split, lexer.commenters = True, "#"
        command: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|;&"):
                found.append(command)
                command = []
            elif word not in ("do", "then", "fi"):
                command.append(word)
    return [kept for command in found if (kept := _without_shell(command))]


def _without_shell(command: list[str]) -> list[str]:
    """A command without assignments before it and without redirections; nothing of the head of a loop."""
    while command and re.fullmatch(r"\w+=.*", command[0], re.DOTALL):
        command = command[1:]
    if not command or command[0] in ("for", "done", "if", "while"):
        return []
    for place, word in enumerate(command):
        if set(word) <= set("<>"):
            command = command[:place]
            break
    return command


def check(command: list[str]) -> None:
    """Tries a command; raises CommandError if its program would refuse it."""
    program, *arguments = command
    if program in SHELL:
        return
    for pattern, function in CHECKS.items():
        if re.fullmatch(pattern, program):
            return function(program, arguments)
    raise CommandError(f"nobody tests the program {program!r}: add it to tests/docs/commands.py")


def _fairseq(program: str, arguments: list[str]) -> None:
    from fairseq import options

    name = program[len("fairseq-") :]
    kinds = {"interactive": "interactive_generation", "generate": "generation", "train": "training"}
    if name == "score":
        return _accepted(lambda: importlib.import_module("fairseq_cli.score").cli_main(), program, arguments)
    words = [str(PLUGIN) if word == "tree_fairseq" else word for word in arguments]
    if "my_plugin" in words:
        return None  # tests/test_extend.py runs it
    if "--user-dir" in words and words[words.index("--user-dir") + 1] != str(PLUGIN):
        raise CommandError(f"--user-dir {words[words.index('--user-dir') + 1]} is not the plugin")
    is_partial = words != [word for word in words if not _LEFT_OUT.match(word)]
    words = [word for word in words if not _LEFT_OUT.match(word)]

    def parse() -> None:
        parser = getattr(options, f"get_{kinds.get(name, name if name != 'preprocess' else 'preprocessing')}_parser")()
        if is_partial:
            _only_known(parser, words)
        elif name == "preprocess":
            parser.parse_args(words)
        else:
            options.parse_args_and_arch(parser, words)

    _accepted(parse, program, words)


def _only_known(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """For a command that leaves a part out: every flag must exist."""
    known = {flag for action in parser._actions for flag in action.option_strings}
    unknown = [word for word in words if word.startswith("--") and word != "--" and word.split("=")[0] not in known]
    if unknown:
        raise CommandError(f"unknown flags: {' '.join(unknown)}")


def _own(program: str, arguments: list[str]) -> None:
    from tree_fairseq.__main__ import main

    if any(_LEFT_OUT.match(word) for word in arguments):
        arguments = [word for word in arguments if not _LEFT_OUT.match(word)] or ["--help"]
    _accepted(lambda: main(arguments), "tree-fairseq", arguments)


def _python(program: str, arguments: list[str]) -> None:
    if arguments and arguments[0] == "-m":
        module, *rest = arguments[1:]
        if module in ("pip", "venv", "ipykernel", "jupyter", "http.server", "mkdocs"):
            return
        if module == "tree_fairseq":
            return _own(program, rest)
        if importlib.util.find_spec(module) is None:
            raise CommandError(f"there is no module {module}")
        _accepted(lambda: runpy.run_module(module, run_name="__main__"), module, rest)
    elif arguments and arguments[0].endswith(".py") and not arguments[0].startswith("my_"):
        if not (ROOT / arguments[0]).is_file():
            raise CommandError(f"there is no file {arguments[0]}")
        _accepted(lambda: runpy.run_path(str(ROOT / arguments[0]), run_name="__main__"), arguments[0], arguments[1:])


def _torchrun(program: str, arguments: list[str]) -> None:
    module, *rest = arguments[arguments.index("-m") + 1 :]
    if module.startswith("fairseq_cli."):
        return _fairseq(f"fairseq-{module[len('fairseq_cli.') :]}", rest)
    return _python("python", ["-m", module, *rest])


def _make(program: str, arguments: list[str]) -> None:
    """Targets exist, and so do variables. ``make --dry-run`` would run some lines: those that start make again."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    if "--" in arguments:
        place = arguments.index("--")
        arguments, options = arguments[:place], arguments[place + 1 :]
        if arguments != ["gpu"]:
            raise CommandError("only `make gpu` passes on what stands after --")
        _python("python", ["-m", "tests.gpu", *options])
    for word in arguments:
        name, is_variable, _ = word.partition("=")
        found = rf"\$[({{]{name}\b|\$[({{]\w+ \$\({name}\)" if is_variable else rf"^{re.escape(name)}:(?!=)"
        if not re.search(found, text, re.MULTILINE):
            raise CommandError(f"the Makefile has no {'variable' if is_variable else 'target'} {name}")


def _recipe(program: str, arguments: list[str]) -> None:
    if any(_LEFT_OUT.match(word) for word in arguments) or not (ROOT / program).exists():
        if not (ROOT / program).exists() and "mine" not in program:
            raise CommandError(f"there is no recipe {program}")
        return
    place = arguments.index("--") if "--" in arguments else len(arguments)
    dry = ["--dry-run"] if "--help" not in arguments and "quickstart" not in program else ["--help"]
    words = [*arguments[:place], *dry, *arguments[place:]]
    with tempfile.TemporaryDirectory() as place:
        for name in ("DATA", "OUT", "TREES", "DIR"):
            (Path(place) / name).mkdir()
            (Path(place) / name / "some").touch()  # a folder that is not empty is all that --dry-run asks of data
        words = [re.sub(r"\$?\b(DATA|OUT|TREES|DIR)\b", rf"{place}/\1", word) for word in words]
        done = subprocess.run(
            [str(ROOT / program), *words], cwd=ROOT, env=_without_fork_server(), capture_output=True, text=True
        )
    if done.returncode:
        raise CommandError(done.stderr[-2000:])


def _without_fork_server() -> dict[str, str]:
    """This interpreter's programs first; a dry run imports nothing that takes long."""
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}


def _pip(program: str, arguments: list[str]) -> None:
    """What is installed is this folder, a wheel, or an extra that exists; no other distribution has this name."""
    section = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]\n")[2]
    extras = set(re.findall(r"^(\w+) = \[", section.partition("\n[")[0], re.MULTILINE))
    for word in arguments:
        named = re.search(r"\[([\w,]+)\]", word)
        if named and not set(named[1].split(",")) <= extras:
            raise CommandError(f"pyproject.toml has no extra {named[1]}")


CHECKS: dict[str, Callable[[str, list[str]], None]] = {
    r"fairseq-(preprocess|train|generate|interactive|validate|score)": _fairseq,
    r"(\S*/)?tree-fairseq": _own,
    r"(\S*/)?python3?(\.\d+)?": _python,
    r"torchrun": _torchrun,
    r"make": _make,
    r"examples/[\w/]+\.sh": _recipe,
    r"(\S*/)?pip": _pip,
}
"""How a command is tried, by its program. Each raises CommandError if the program would refuse it."""


def _accepted(run: Callable[[], object], program: str, arguments: list[str]) -> None:
    """Runs a program up to the end of its parser's work."""
    parse_args = argparse.ArgumentParser.parse_args
    depth = 0

    def parse(self, *given, **options):
        nonlocal depth
        depth += 1
        try:
            result = parse_args(self, *given, **options)
        finally:
            depth -= 1
        if depth == 0 and self.add_help:
            raise Parsed
        return result

    errors = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(argparse.ArgumentParser, "parse_args", parse))
        stack.enter_context(mock.patch.object(sys, "argv", [program, *arguments]))
        stack.enter_context(contextlib.redirect_stderr(errors))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(_path_restored())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)  # a module that runs again although it was imported
        try:
            if run():
                raise CommandError(f"{program} {shlex.join(arguments)}: {errors.getvalue()[-600:]}")
        except Parsed:
            return
        except SystemExit as end:
            if end.code not in (None, 0):
                raise CommandError(f"{program} {shlex.join(arguments)}: {errors.getvalue()[-600:]}") from None
        except CommandError:
            raise
        except Exception as error:
            raise CommandError(f"{program} {shlex.join(arguments)}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _path_restored() -> Iterator[None]:
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before
