"""Engines give the bytes of one process: Ray, in any order and whatever it loses, and arrays of jobs."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from tests.data_bin.corpora import folder_bytes, run_preprocess
from tests.fork_server import environment
from tests.parsing.conftest import content, toy_lines, write_text
from tests.parsing.fake_parsers import SLEEP_VARIABLE
from tree_fairseq.commands.parse import main
from tree_fairseq.errors import InputError, MissingLibraryError, TreeFormatError, WorkerDiedError
from tree_fairseq.parsing import corpus
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.ray_engine import RayPool

OPTIONS = ParserOptions(name="toy-batch", batch_size=4, ssplit="punct")

pytestmark = pytest.mark.usefixtures("small_blocks")


class StandIn(ModuleType):
    """Ray with two cores in this process. It answers the last task first, and notes how many it has at once."""

    def __init__(self):
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=ConnectionError)
        self.most, self.noted, self.lost = 0, [], False

    def init(self, **options):
        self.noted.append(options)

    def cluster_resources(self):
        return {"CPU": 2.0, "GPU": 1.0}

    def remote(self, **options):
        self.noted.append(options)
        return lambda function: SimpleNamespace(remote=lambda *task: (function, pickle.dumps(task)))

    def wait(self, tasks, num_returns, fetch_local):
        self.most = max(self.most, len(tasks))
        return tasks[-1:], tasks[:-1]

    def get(self, task):
        if self.lost:
            raise self.exceptions.RayError("the machine is gone")
        function, arguments = task
        return pickle.loads(pickle.dumps(function(*pickle.loads(arguments))))

    def shutdown(self):
        self.noted.append("shutdown")


@pytest.fixture
def ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    return sys.modules["ray"]


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.en", toy_lines(95))


def parse(text, folder, options=OPTIONS, address=None):
    with RayPool(2, address) as pool:
        return content(parse_corpus(text, folder, options, pool=pool).shards)


def test_ray_gives_the_same_bytes_and_has_few_tasks_at_once(text, tmp_path, ray):
    expected = content(parse_corpus(text, tmp_path / "here", OPTIONS).shards)
    assert parse(text, tmp_path / "ray", address="ray://host:1") == expected and ray.most == 4
    assert ray.noted[0]["address"] == "ray://host:1" and "num_cpus" not in ray.noted[0]
    assert ray.noted[1:] == [{"max_retries": 5, "num_cpus": 1}, "shutdown"]


def test_preprocessing_takes_the_same_flags(text, tmp_path, ray):
    flags = ("--tree-parser", "toy", "--tree-ssplit", "punct", "--trainpref", tmp_path / "text", "--only-source")
    for engine in ("local", "ray"):
        run_preprocess(*flags, "--destdir", tmp_path / engine, "--engine", engine)
    assert folder_bytes(tmp_path / "ray") == folder_bytes(tmp_path / "local") and ray.noted[-1] == "shutdown"


def test_a_parser_on_gpus_has_one_for_each_task(text, tmp_path, ray, monkeypatch):
    monkeypatch.setattr(corpus, "_kept", None)
    parse(text, tmp_path / "out", OPTIONS.replace(device="cuda:0"))
    assert ray.noted[0]["num_cpus"] == 2 and ray.noted[1]["num_gpus"] == 1 and ray.most == 2
    assert corpus.own_device() == "cuda:0"


def test_errors_of_ray_name_the_way_out(text, tmp_path, ray, monkeypatch, caplog):
    trees = write_text(tmp_path / "trees", ["(S (NN a))"] * 24 + ["(S (NN a)"])
    with pytest.raises(TreeFormatError, match="trees:25:1: "):
        parse(trees, tmp_path / "out", ParserOptions(name="brackets"))
    ray.lost = True
    with pytest.raises(WorkerDiedError, match="that parsed .* was lost 6 times .*kept. the machine is gone"):
        parse(text, tmp_path / "lost")
    monkeypatch.setattr(ray, "init", lambda **options: (_ for _ in ()).throw(ConnectionError("nobody answers")))
    with pytest.raises(InputError, match="--ray-address host:1: nobody answers"):
        RayPool(1, "host:1")
    command = [str(text), str(tmp_path / "trees"), "--tree-parser", "toy"]
    assert main([*command, "--engine", "ray", "--parse-cache", "cache"]) == 1 and "one machine" in caplog.text
    assert main([*command, "--ray-address", "auto"]) == 1 and "it goes with --engine ray" in caplog.text
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingLibraryError, match=r"tree-fairseq\[ray\]"):
        RayPool(1)


def kill_once(mark):
    """Kills its process, unless one was killed before."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return os.getpid()


@pytest.mark.skipif("not __import__('importlib').util.find_spec('ray')", reason="Ray is not installed")
def test_a_cluster_of_this_machine_repeats_what_it_lost(text, tmp_path, monkeypatch):
    monkeypatch.setenv(SLEEP_VARIABLE, "0.05")
    expected = content(parse_corpus(text, tmp_path / "here", OPTIONS).shards)
    with RayPool(2) as pool:
        calls = [(tmp_path / "killed", number) for number in range(40)]
        answers = list(pool.stream(kill_once, calls, "slept"))
        assert sorted(number for number, _ in answers) == list(range(40)) and len({pid for _, pid in answers}) <= 3
        assert content(parse_corpus(text, tmp_path / "ray", OPTIONS, pool=pool).shards) == expected


SBATCH = """#!/bin/sh
# Runs the jobs of an array one after the other, the last one first.
script=$(cat)
last=$(echo "$script" | sed -n 's/^#SBATCH.*--array=0-\\([0-9]*\\).*/\\1/p')
for SLURM_ARRAY_TASK_ID in $(seq "$last" -1 0); do
    export SLURM_ARRAY_TASK_ID
    echo "$script" | sh || exit 1
done
"""


def test_slurm_runs_the_script_of_an_array(text, tmp_path, monkeypatch, capsys):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    flags = ["text.en", "the trees", "--tree-parser", "balanced"]
    assert main([*flags, "--engine", "slurm", "--workers", "3"]) == 0
    served = environment()
    subprocess.run([sbatch], input=capsys.readouterr().out.encode(), env=served, check=True)
    assert main(["--join", "the trees"]) == 0 and main([*flags[:1], "at once", *flags[2:]]) == 0
    assert (tmp_path / "the trees").read_bytes() == (tmp_path / "at once").read_bytes()
    assert len(list((tmp_path / "the trees.shards").glob("*-of-3.trees"))) == 3


def test_slurm_has_one_job_at_least_as_the_other_engines_have_one_process(capsys):
    assert main(["text.en", "trees", "--tree-parser", "balanced", "--engine", "slurm", "--workers", "0"]) == 0
    script = capsys.readouterr().out
    assert "--array=0-0 " in script and '"$SLURM_ARRAY_TASK_ID/1"' in script
