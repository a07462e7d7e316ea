"""Fault 13 with ranks on two hosts, which are network namespaces, and a slow folder that they share.

``TREE_FAIRSEQ_LONG_TESTS=1`` stops a rank for a minute in place of a second, and waits for what the others say when one
is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, write_lines
from tests.fork_server import programs
from tests.parsing.conftest import toy_lines
from tests.parsing.fake_parsers import LOG_VARIABLE, SLEEP_VARIABLE, noted

ROOT = Path(__file__).resolve().parents[2]
IS_LONG = bool(os.environ.get("TREE_FAIRSEQ_LONG_TESTS"))
PAUSE = 60 if IS_LONG else 1
BATCH = 16
# Every file of the shared folder takes its time to be opened, to get its name, and to reach the disk.
SLOW = """
import builtins, os, random, time
def slow(function):
    def slowed(*arguments, **options):
        if any(os.environ["SLOW_FOLDER"] in str(part) for part in arguments[:2]) or function is fsync:
            time.sleep(random.uniform(0, 0.03))
        return function(*arguments, **options)
    return slowed
fsync = os.fsync
builtins.open, os.open, os.rename, os.replace, os.fsync = map(slow, (open, os.open, os.rename, os.replace, fsync))
"""
PLUGIN = """
import tree_fairseq
import tests.parsing.fake_parsers
tree_fairseq.register()
"""
PARSE = """
import sys
import tests.parsing.fake_parsers
from tree_fairseq.commands.parse import main
sys.exit(main())
"""


def ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture(scope="module")
def hosts():
    """Names and addresses of two network namespaces with a cable between them."""
    if shutil.which("ip") is None:
        pytest.skip("there is no program ip, which makes network namespaces")
    names = [f"trees{os.getpid()}{letter}" for letter in "ab"]
    addresses = ["10.231.7.1", "10.231.7.2"]
    made = all(ip("netns", "add", name) for name in names)
    made = made and ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "cable", "netns", names[1])
    for name, address in zip(names, addresses) if made else ():
        made = made and ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
        made = made and ip("-n", name, "link", "set", "cable", "up") and ip("-n", name, "link", "set", "lo", "up")
    try:
        if not made:
            pytest.skip("network namespaces are not permitted here")
        yield dict(zip(names, addresses))
    finally:
        for name in names:
            ip("netns", "delete", name)


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder that all ranks share, with a text; and the environment in which they find it slow."""
    folder, modules = tmp_path / "shared", tmp_path / "modules"
    for path in (folder, modules / "plugin"):
        path.mkdir(parents=True)
    (modules / "sitecustomize.py").write_text(SLOW)
    (modules / "plugin/__init__.py").write_text(PLUGIN)
    (modules / "parse.py").write_text(PARSE)
    for lang, seed in (("en", 3), ("de", 4)):
        write_lines(folder / f"train.{lang}", toy_lines(2000, seed=seed))
    monkeypatch.setenv(SLEEP_VARIABLE, "0.05")
    monkeypatch.setenv(LOG_VARIABLE, str(tmp_path / "log"))
    monkeypatch.setenv("SLOW_FOLDER", str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{modules}:{ROOT}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return folder


def program(command: str, shared: Path, output: str) -> list[str]:
    """The arguments of a command whose output is named, without those of torchrun."""
    modules = shared.parent / "modules"
    parser = ["--tree-parser", "toy-batch", "--tree-batch-size", str(BATCH), "--tree-lang", "en"]
    if command == "parse":
        files = [str(shared / "train.en"), str(shared / output), "--workers", "0", "--no-progress-bar"]
        return [str(modules / "parse.py"), *files, *parser]
    where = ["--user-dir", str(modules / "plugin"), "-s", "en", "-t", "de", *prefixes(shared, "train")]
    return ["-m", "fairseq_cli.preprocess", *where, "--destdir", str(shared / output), *parser]


def start(hosts: dict[str, str], ranks: int, program: list[str], log: Path, late: float = 0) -> list[subprocess.Popen]:
    """Starts torchrun with some ranks on each host; the second host may be late."""
    first, processes = next(iter(hosts.values())), []
    for number, (name, address) in enumerate(hosts.items()):
        time.sleep(late * number)
        launcher = ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
        launcher += ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first}:29411"]
        # The first host keeps torchrun's store; torchrun would look for its address at its name, which both share.
        is_first = f"is_host={int(number == 0)}"
        launcher += ["--rdzv-conf", is_first, "--rdzv-id", "trees", "--local-addr", address, *program]
        with open(f"{log}.{number}", "wb") as stream:
            processes.append(subprocess.Popen(launcher, stdout=stream, stderr=stream, start_new_session=True))
    return processes


def rank_process(folder: Path, rank: int) -> int:
    """The process id of a rank whose environment names the slow folder."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        for path in Path("/proc").iterdir():
            try:
                words = (path / "environ").read_bytes().split(b"\0") if path.name.isdigit() else []
            except OSError:
                continue
            parent_is_agent = f"RANK={rank}".encode() in words and b"TORCHELASTIC_RUN_ID=trees" in words
            if parent_is_agent and f"SLOW_FOLDER={folder}".encode() in words:
                return int(path.name)
        time.sleep(0.05)
    raise TimeoutError(f"no rank {rank}")


def await_parses(launchers: list[subprocess.Popen], log: Path, count: int) -> None:
    deadline = time.monotonic() + 200
    while len(noted(log)) < count:
        assert time.monotonic() < deadline and all(launcher.poll() is None for launcher in launchers)
        time.sleep(0.05)


def content(path: Path) -> object:
    return folder_bytes(path) if path.is_dir() else path.read_bytes()


# fairseq-preprocess parses in a process of its own, which has the next batch while the last one goes to the cache.
@pytest.mark.parametrize(
    ("command", "ranks", "batches_in_hand"), [("parse", 2, 1), ("preprocess", 2 if IS_LONG else 1, 2)]
)
def test_a_rank_is_stopped_and_one_is_killed(hosts, shared, tmp_path, command, ranks, batches_in_hand):
    log = tmp_path / "log"
    quick = {**os.environ, SLEEP_VARIABLE: "0", "PYTHONPATH": str(ROOT)}
    alone = [programs() / "python", *program(command, shared, "alone")]
    subprocess.run(alone, env=quick, check=True, timeout=300, capture_output=True)
    distinct = len(noted(log))
    log.unlink()

    # The last rank is killed. torchrun ends those of its host; those of the other host wait for its shards, and say
    # so, until somebody ends them.
    launchers = start(hosts, ranks, program(command, shared, "ranks"), tmp_path / "killed")
    await_parses(launchers, log, distinct // 10)
    os.kill(rank_process(shared, 2 * ranks - 1), signal.SIGKILL)
    assert launchers[1].wait(200) != 0
    while IS_LONG and "what is parsed is kept" not in Path(f"{tmp_path / 'killed'}.0").read_text():
        assert launchers[0].poll() is None
        time.sleep(1)
    launchers[0].terminate()
    assert launchers[0].wait(200) != 0
    assert not (shared / "ranks").exists()
    done = len(noted(log))
    assert distinct // 10 <= done < distinct

    # The same command goes on; one host is late, and a rank of the other is stopped for a while.
    launchers = start(hosts, ranks, program(command, shared, "ranks"), tmp_path / "again", late=1)
    await_parses(launchers, log, done + 1)
    stopped = rank_process(shared, ranks - 1)
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(PAUSE)
    assert launchers[0].poll() is None
    os.kill(stopped, signal.SIGCONT)
    for number, launcher in enumerate(launchers):
        assert launcher.wait(300) == 0, Path(f"{tmp_path / 'again'}.{number}").read_text()
    assert content(shared / "ranks") == content(shared / "alone")
    # Nothing is parsed twice but what the ranks had in hand when one was killed.
    again = len(noted(log)) - distinct
    assert 0 <= again <= 2 * ranks * batches_in_hand * BATCH and set(Counter(noted(log)).values()) <= {1, 2}
    assert not (shared / "ranks.building").exists()
