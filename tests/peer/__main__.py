"""``python -m tests.peer --fairseq CHECKOUT``: fairseq's own tests with the plugin and without; see the package."""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import tests.peer

PLUGIN = Path(__file__).resolve().parents[2] / "tree_fairseq"
_SOME_FAILED = 1  # pytest's exit status; a greater one is of a wrong name, or of tests that were not run
# The installed package is tested, not that of the checkout, which has to be built first.
_NOT_LINKED = {"fairseq", "fairseq_cli", "setup.py", "setup.cfg", "pyproject.toml", "pytest.ini", "tox.ini"}


def link_checkout(checkout: Path, folder: Path) -> None:
    """Makes a folder of links to the contents of a checkout, without the package itself."""
    for path in checkout.iterdir():
        if path.name not in _NOT_LINKED and not path.name.endswith(".egg-info"):
            (folder / path.name).symlink_to(path.resolve())


def run_tests(folder: Path, names: Sequence[str], plugin: Path | None, seconds: float) -> dict[str, str]:
    """Runs tests of a folder in a process of their own; returns their outcomes by name."""
    with tempfile.TemporaryDirectory() as modules:
        outcomes = Path(modules) / "outcomes.xml"
        # fairseq 0.12 cannot read its own checkpoints with the default of torch 2.6 and later.
        environment = {**os.environ, "PYTHONPATH": modules, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
        flags = ["-p", "no:cacheprovider", "-q", "--tb=no", "--continue-on-collection-errors"]
        flags += [f"--junitxml={outcomes}", "-o", "junit_family=xunit1"]
        if plugin is not None:
            (Path(modules) / plugin.name).symlink_to(plugin)
            flags += ["-p", "fairseq", "-p", plugin.stem]  # the package registers where fairseq was imported before
        wanted = [name if name.startswith("tests") else f"tests/{name}" for name in names] or ["tests"]
        command = [sys.executable, "-m", "pytest", *flags, "--rootdir", str(folder), *wanted]
        run = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": seconds}
        ended = subprocess.run(command, cwd=folder, env=environment, **run)
        if not outcomes.exists() or ended.returncode > _SOME_FAILED:
            raise SystemExit(f"pytest did not run the tests:\n{ended.stdout[-2000:]}")
        return dict(map(_outcome, ElementTree.parse(outcomes).iter("testcase")))


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    """The name of a test as pytest takes it, and its outcome."""
    path = case.get("file", "")
    classes = case.get("classname", "").removeprefix(path.removesuffix(".py").replace("/", ".")).strip(".")
    name = "::".join(part for part in (path, *classes.split("."), case.get("name", "")) if part)
    found = {child.tag for child in case}
    return name, "failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"


def differences(without: dict[str, str], with_plugin: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The tests whose outcomes differ, with both outcomes; a test that one run lacks is ``missing`` there."""
    names = sorted({*without, *with_plugin})
    both = {name: (without.get(name, "missing"), with_plugin.get(name, "missing")) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def main(arguments: Sequence[str] | None = None, plugin: Path = PLUGIN) -> int:
    """Runs the command; the exit status is 1 if the outcome of a test differs, twice."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.peer",
        description=tests.peer.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--fairseq", type=Path, required=True, metavar="CHECKOUT", help="a folder with fairseq's folder tests")
    add("--only", nargs="+", default=[], metavar="NAME", help="files below tests, such as test_train.py")
    add("--seconds", type=float, default=3600, help="the most that a run may take (default: %(default)s)")
    add("--output", type=Path, metavar="FILE", help="write all outcomes as JSON")
    args = parser.parse_args(arguments)
    if not (args.fairseq / "tests").is_dir():
        parser.error(f"{args.fairseq} has no folder tests")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        link_checkout(args.fairseq, folder)
        without, with_plugin = (run_tests(folder, args.only, path, args.seconds) for path in (None, plugin))
        differing = differences(without, with_plugin)
        runnable = sorted(name for name in differing if "::" in name)
        if runnable:
            print(f"{len(runnable)} tests differ and are run again")
            again = [run_tests(folder, runnable, path, args.seconds) for path in (None, plugin)]
            twice = differences(*again)
            differing = {
                name: twice.get(name, pair) for name, pair in differing.items() if name in twice or "::" not in name
            }
    print(f"{len(without)} tests without the plugin: {_counted(without)}")
    print(f"{len(with_plugin)} tests with the plugin: {_counted(with_plugin)}")
    for name, (before, after) in differing.items():
        print(f"{name}: {before} without the plugin, {after} with it")
    print(f"{len(differing)} tests differ")
    if args.output is not None:
        args.output.write_text(json.dumps({"without": without, "with": with_plugin}, indent=1), encoding="utf-8")
    return 1 if differing else 0


def _counted(outcomes: dict[str, str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(collections.Counter(outcomes.values()).items()))


if __name__ == "__main__":
    sys.exit(main())
