"""Faults of a Ray cluster: machines that are lost, slow, or have a full disk, while a corpus is parsed.

    python -m tests.soak.ray_cluster

Four machines are network namespaces with an address and a small disk of their own, beside the one of the command. One
is killed by -9 in the middle, one is slow, and the disk of one gets full. They share no folder with the command. The
trees have to be those of one process, without a second run. It needs root, ``ip`` of Linux, and Ray.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.parsing import fake_parsers
from tests.parsing.conftest import content, toy_lines, write_text
from tree_fairseq.parsing import corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.ray_engine import RayPool

SECONDS = {"good": 0.02, "killed": 0.02, "slow": 0.5, "full": 0.02}  # the machines, and how long each takes for a batch
NET, PORT, DISK = "10.77.0", 6399, "96m"
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
OPTIONS = ParserOptions(name="toy-batch", batch_size=4, ssplit="punct")


def sh(command: str) -> str:
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def network() -> Iterator[None]:
    """A bridge, and a namespace for each machine."""
    sh(f"ip link add tree0 type bridge; ip addr add {NET}.1/24 dev tree0; ip link set tree0 up")
    try:
        for number, name in enumerate(SECONDS, 2):
            sh(
                f"ip netns add {name}; ip link add tree{number} type veth peer name eth0 netns {name};"
                f"ip link set tree{number} master tree0 up; ip -n {name} link set lo up;"
                f"ip -n {name} addr add {NET}.{number}/24 dev eth0; ip -n {name} link set eth0 up"
            )
        yield
    finally:
        for name in SECONDS:
            subprocess.run(f"ip netns pids {name} | xargs -r kill -9; ip netns del {name}", shell=True)
        sh("ip link del tree0")


def start(folder: Path) -> None:
    """Starts Ray here, without a core, and a core of it on each machine."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # nobody else is in this network
    here = [*RAY, "start", "--head", "--num-cpus", "0", "--node-ip-address", f"{NET}.1", "--port", str(PORT)]
    subprocess.run([*here, "--include-dashboard", "false"], check=True, **QUIET)
    for number, (name, seconds) in enumerate(SECONDS.items(), 2):
        own = {fake_parsers.SLEEP_VARIABLE: str(seconds), fake_parsers.LOG_VARIABLE: str(folder / f"{name}.log")}
        ray = [*RAY, "start", "--address", f"{NET}.1:{PORT}", "--num-cpus", "1", "--block"]
        ray += ["--node-ip-address", f"{NET}.{number}", "--object-store-memory", str(100 << 20)]
        mount = f'mount -t tmpfs -o size={DISK} none /tmp/ray && exec "$@"'
        command = ["ip", "netns", "exec", name, "unshare", "--mount", "sh", "-c", mount, "sh", *ray]
        subprocess.Popen(command, env={**os.environ, **own}, **QUIET)


def disturb(shards: Path, count: int, folder: Path) -> None:
    """When a third of the shards is done, kills a machine and fills the disk of another."""
    while len(list(shards.glob("*.json"))) < count // 3:
        time.sleep(0.1)
    sh("ip netns pids killed | xargs kill -9")
    pid = sh("ip netns pids full").split()[0]
    subprocess.run(["dd", "if=/dev/zero", f"of=/proc/{pid}/root/tmp/ray/filler", "bs=1M"], capture_output=True)
    assert os.statvfs(f"/proc/{pid}/root/tmp/ray").f_bavail == 0
    (folder / "disturbed").write_text(json.dumps(parsed(folder)))


def parsed(folder: Path) -> dict[str, int]:
    return {name: len(fake_parsers.noted(folder / f"{name}.log")) for name in SECONDS}


def main() -> None:
    corpus._SMALLEST = corpus._LARGEST = 1000
    with tempfile.TemporaryDirectory() as name, network():
        folder = Path(name)
        text = write_text(folder / "text", toy_lines(6000))
        expected = content(corpus.parse_corpus(text, folder / "here", OPTIONS).shards)
        start(folder)
        try:
            with RayPool(1, f"{NET}.1:{PORT}") as pool:
                while pool.free("CPU") < len(SECONDS):
                    time.sleep(0.5)
                shards = len(corpus.shards_of(text, folder))
                thread = threading.Thread(target=disturb, args=(folder / "ray", shards, folder), daemon=True)
                thread.start()
                begun = time.monotonic()
                found = content(corpus.parse_corpus(text, folder / "ray", OPTIONS, pool=pool).shards)
                seconds = time.monotonic() - begun
        finally:
            subprocess.run([*RAY, "stop", "--force"], **QUIET)
        before, after = json.loads((folder / "disturbed").read_text()), parsed(folder)
    print(f"{shards} shards in {seconds:.0f} s; sentences parsed when a machine was killed and a disk filled: {before}")
    print(f"in the end: {after}")
    assert found == expected, "other trees than those of one process"
    assert 0 < before["killed"] == after["killed"]
    assert all(after[name] > before[name] for name in ("good", "slow", "full")), "a machine did nothing more"
    print("the same bytes, without a second run")


if __name__ == "__main__":
    main()
