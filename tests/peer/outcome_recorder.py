"""A plugin of pytest: imports a module before all tests, and writes the outcome of each test to a file as JSON.

The environment names them, as ``PEER_PLUGIN`` (may be empty) and ``PEER_OUTCOMES``. This file imports nothing of its
repository, because fairseq's tests are a package of the same name.
"""

from __future__ import annotations

import importlib
import json
import os

import pytest

_WORST = ["passed", "skipped", "failed"]
_outcomes: dict[str, str] = {}


def pytest_configure(config: pytest.Config) -> None:
    if name := os.environ.get("PEER_PLUGIN"):
        importlib.import_module("fairseq" if name == "tree_fairseq" else name)
        plugin = importlib.import_module(name)
        getattr(plugin, "register", lambda: None)()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    before = _outcomes.get(report.nodeid, "passed")
    _outcomes[report.nodeid] = max(before, report.outcome, key=_WORST.index)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.outcome != "passed":
        _outcomes[report.nodeid] = f"{report.outcome} when it was collected"


def pytest_sessionfinish(session: pytest.Session) -> None:
    with open(os.environ["PEER_OUTCOMES"], "w", encoding="utf-8") as file:
        json.dump(_outcomes, file)
