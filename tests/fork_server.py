"""Runs commands in processes of their own, without the ten seconds that each would need to import torch and fairseq.

A server imports them once and forks for every command. A second one, a fork of the first, has also registered the
plugin: it runs the commands of fairseq and of this repository, which would do so themselves. All other programs have to
import what they need, as in a process of their own. The folder of :func:`programs` holds stand-ins for ``python`` and
the console scripts: each passes its arguments, environment, working folder and standard streams to the server and exits
with the status of the fork. A stand-in is also a real Python: whatever is not ``-m MODULE``, ``-c CODE`` or a script is
executed by the interpreter itself.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import multiprocessing.util
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

CONSOLE_SCRIPTS = (
    "fairseq-preprocess", "fairseq-train", "fairseq-generate", "fairseq-interactive", "fairseq-score",
    "fairseq-validate", "tree-fairseq",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]
# The first test that needs the server starts it, but the server must not inherit that test's own settings: a
# ``sitecustomize.py`` on its ``PYTHONPATH`` would stay in all forks. Commands get the environment of their caller.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

# Runs without site-packages, in about twenty milliseconds.
STAND_IN = """#!{python} -SE
import json, os, socket, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "tree-fairseq":  # installed or not
    name, arguments = "python", ["-m", "tree_fairseq", *arguments]
if name == "python" and (not arguments or arguments[0].startswith("-") and arguments[0] not in ("-m", "-c")):
    os.execv({python!r}, ["python", *arguments])
own = arguments[:1] == ["-m"] and arguments[1].partition(".")[0] in ("tree_fairseq", "preprocess", "examples")
try:
    server = socket.socket(socket.AF_UNIX)
    server.connect({address!r} + (".registered" if own or name.startswith("fairseq-") else ""))
except OSError:
    os.execv(os.path.join({bin!r}, name), [name, *arguments])
task = json.dumps([name, arguments, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(task).to_bytes(8, "big")], [0, 1, 2])
server.sendall(task)
status = server.makefile("rb").read()
sys.exit(int(status or b"1"))
"""


@functools.cache
def programs() -> Path:
    """Starts the server, once per test process; returns the folder to put first on ``PATH``."""
    folder = Path(tempfile.mkdtemp(prefix="programs"))
    address = str(folder / "socket")
    text = STAND_IN.format(python=sys.executable, bin=str(Path(sys.executable).parent), address=address)
    for name in ("python", *CONSOLE_SCRIPTS):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    command = [sys.executable, "-m", "tests.fork_server", address]
    server = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_stop, server, folder)
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError("the fork server did not start")
    return folder


def environment(**variables: str) -> dict[str, str]:
    """The variables of a shell in which programs are those of this interpreter, by way of the server; no GPU."""
    path = os.pathsep.join([str(programs()), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **variables}


def _stop(server: subprocess.Popen, folder: Path) -> None:
    server.kill()
    server.wait()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def serve(address: str) -> None:
    """Accepts commands until standard input closes, that is, until the test process ends."""
    import fairseq  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import stanza  # noqa: F401

    import_optimisers()
    listener = _listen(address)
    registered, tells = os.pipe()
    if os.fork() == 0:
        import tree_fairseq
        from tests.hydra_cache import parse_defaults, remember_overrides

        tree_fairseq.register()
        remember_overrides()
        parse_defaults()
        listener.close()
        listener = _listen(f"{address}.registered")
        os.write(tells, b"1")
    elif os.read(registered, 1):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    os.close(registered)
    os.close(tells)
    # Garbage collections of forks would visit, and so copy, all that is imported here.
    gc.collect()
    gc.freeze()
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        connection, _ = listener.accept()
        # A first fork waits for the second one, so that several commands can run at once.
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()
        _reap()


def import_optimisers() -> None:
    """Makes the first optimiser of this process, which imports a large part of torch, so that forks need not."""
    import torch

    torch.optim.SGD([torch.zeros(1)], lr=1.0)


def _listen(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    return listener


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _answer(connection: socket.socket) -> None:
    message, streams, _, _ = socket.recv_fds(connection, 8, 3)
    remaining, parts = int.from_bytes(message, "big"), []
    while remaining:
        parts.append(connection.recv(remaining))
        remaining -= len(parts[-1])
    child = os.fork()
    if child == 0:
        connection.close()
        _become(*json.loads(b"".join(parts)), streams)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _become(name: str, arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Turns this fork into the command: streams, folder, environment and arguments are the caller's."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)
    code = 0
    try:
        _execute(name, arguments, environment)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        # os._exit skips all exit functions, because most are the server's. This one ends loading processes, which would
        # notice the end of their parent five seconds later, with the caller's streams open until then.
        multiprocessing.util._exit_function()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                pass
        os._exit(code & 0xFF)


def _execute(name: str, arguments: list[str], environment: dict[str, str]) -> None:
    # The server's folder stays importable, because tree_fairseq and preprocess of the checkout are tested.
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = paths
    if "tree_fairseq" in sys.modules:
        from tree_fairseq.support import logs

        sys.argv = [name, *arguments]
        logs.keep_clean()  # as in a process that imports the plugin now
    if name != "python":
        module = f"fairseq_cli.{name.removeprefix('fairseq-')}"
        importlib.import_module(module).cli_main()
    elif arguments[0] == "-m":
        sys.path.insert(0, "")
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
