"""With the plugin imported, stock fairseq has the same registries, arguments, defaults and results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.end_to_end.commands import ROOT, run_in_process

ADDED = ("registries", "arguments", "settings")  # the parts in which the plugin may have more


def differences(without: object, with_plugin: object, may_add: bool, place: str = "") -> list[str]:
    """The places where two results differ; more names, or more choices, are fine where something may be added."""
    if isinstance(without, dict) and isinstance(with_plugin, dict):
        found = [f"{place}/{name} is missing" for name in without if name not in with_plugin]
        if not may_add:
            found += [f"{place}/{name} is new" for name in with_plugin if name not in without]
        for name in without.keys() & with_plugin.keys():
            found += differences(without[name], with_plugin[name], may_add, f"{place}/{name}")
        return sorted(found)
    if may_add and isinstance(without, list) and isinstance(with_plugin, list) and len(without) == len(with_plugin):
        found = []
        for number, (before, after) in enumerate(zip(without, with_plugin)):
            more = isinstance(before, list) and isinstance(after, list) and before == after[: len(before)]
            if before != after and not (more and before):
                found.append(f"{place}/{number}: {before} became {after}")
        return found
    return [] if without == with_plugin else [f"{place}: {without} became {with_plugin}"]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> tuple[dict, dict]:
    found = []
    for name, flags in (("without", ()), ("with", ("--plugin",))):
        folder = tmp_path_factory.mktemp(name)
        command = [sys.executable, "-m", "tests.peer.probe", folder, folder / "result.json", *flags]
        # fairseq 0.12 cannot read its own checkpoints with the default of torch 2.6 and later.
        ended = run_in_process(command, cwd=ROOT, env={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"})
        assert ended.returncode == 0, ended.stdout[-3000:]
        found.append(json.loads(Path(folder / "result.json").read_text(encoding="utf-8")))
    return found[0], found[1]


@pytest.mark.parametrize("part", ["registries", "arguments", "settings", "journey"])
def test_stock_behaviour_is_the_same(results, part):
    without, with_plugin = (result[part] for result in results)
    assert differences(without, with_plugin, part in ADDED) == []


def test_differences_are_found():
    assert differences({"a": 1, "b": {"c": 2}}, {"a": 2, "b": {}}, True) == ["/a: 1 became 2", "/b/c is missing"]
    assert differences({"a": 1}, {"a": 1, "b": 2}, True) == [] and differences({}, {"b": 2}, False) == ["/b is new"]
    assert differences({"a": ["x", ["p"], 1]}, {"a": ["x", ["p", "q"], 1]}, True) == []
    assert differences({"a": ["x", ["p"], 1]}, {"a": ["x", ["p", "q"], 2]}, True) == ["/a/2: 1 became 2"]
    assert differences({"a": [["p"]]}, {"a": [["p", "q"]]}, False) != []
