"""What one Python, torch and fairseq has made, all others read, with the same results.

``make portability PYTHONS="python3.9 python3.12"`` runs it with interpreters that have the package's environment.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.portability.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = os.environ.get("TREE_FAIRSEQ_PYTHONS", "").split()
VERSIONS = """import sys, torch, numpy, fairseq
print("Python", sys.version.split()[0], *(f"{each.__name__} {each.__version__}" for each in (torch, numpy, fairseq)))
"""
needs_several = pytest.mark.skipif(
    len(PYTHONS) < 2, reason="only one interpreter: name two or more, make portability PYTHONS='python3.9 python3.12'"
)
PAIRS = [*itertools.product(range(len(PYTHONS)), repeat=2)]


def call(python: str, *arguments: object) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [python, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, f"{python}: {done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """What each interpreter reads from each other's folders: a dictionary by (owner, reader)."""
    folder = tmp_path_factory.mktemp("portability")
    methods = ("-m", "tests.portability.methods")
    call(PYTHONS[0], *methods, "write", folder / "text")
    found = {}
    for owner, python in enumerate(PYTHONS):
        print(python, call(python, "-c", VERSIONS).splitlines()[-1])
        call(python, *methods, "make", folder / "text", folder / str(owner))
    owners = [folder / str(owner) for owner in range(len(PYTHONS))]
    for reader, python in enumerate(PYTHONS):
        result = folder / f"read-{reader}.json"
        call(python, *methods, "read", result, *owners)
        for owner, read in enumerate(json.loads(result.read_text(encoding="utf-8"))):
            found[owner, reader] = read
    return found


@needs_several
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("owner", range(len(PYTHONS)))
def test_all_write_the_same_folder(results, owner, method):
    assert results[owner, owner]["files"][method] == results[0, 0]["files"][method]


@needs_several
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("owner", "reader"), PAIRS)
def test_all_read_the_checkpoints_of_all(results, owner, reader, method):
    own, read = (results[owner, one]["hypotheses"][method] for one in (owner, reader))
    assert own and {number: text for number, (text, _) in read.items()} == {
        number: text for number, (text, _) in own.items()
    }
    for number, (_, score) in own.items():
        assert read[number][1] == pytest.approx(score, abs=1e-4)


@needs_several
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("owner", "reader"), PAIRS)
def test_all_go_on_training_from_the_checkpoints_of_all(results, owner, reader, method):
    """The optimizer's state moves, too: two further updates end with the same loss.

    fairseq 0.12.2 and 0.12.3 draw other batches, so that their losses are only alike.
    """
    is_same = results[owner, reader]["fairseq"] == results[owner, owner]["fairseq"]
    (loaded, *losses), (_, *own) = (results[owner, one]["resumed"][method] for one in (reader, owner))
    assert loaded and losses and losses == pytest.approx(own, rel=1e-3 if is_same else 0.2)
