"""Stamps: what is done is skipped, what was killed or has changed is done again."""

from __future__ import annotations

import shlex
import sys

from tests.recipes.commands import bash, library

PREAMBLE = """
import os, signal, sys
from pathlib import Path

sys.path.insert(0, "examples/lib")
from stages import Stages

place = Path(os.environ["PLACE"])
stages = Stages("test", place, dry_run=False)


def work(word):
    with open(place / "log", "a") as log:
        log.write(word + "\\n")
    if word == "broken":
        raise SystemExit(1)


def stage(name, key, word):
    stages.stage(name, lambda: key, lambda: os.kill(os.getpid(), signal.SIGKILL) if word == "die" else work(word))


"""


def run(tmp_path, script):
    done = bash(f"{shlex.quote(sys.executable)} -c {shlex.quote(PREAMBLE + script)}", PLACE=str(tmp_path))
    log = tmp_path / "log"
    return done, log.read_text().split() if log.exists() else []


def test_a_finished_stage_is_skipped(tmp_path):
    script = "for key, word in zip(('key1', 'key1', 'key2', 'key1'), 'abcd'): stage('one', key, word)"
    _, log = run(tmp_path, script)
    assert log == ["a", "c", "d"]


def test_a_failed_stage_stops_everything_and_is_done_again(tmp_path):
    done, log = run(tmp_path, "stage('one', 'key', 'broken'); work('after')")
    assert done.returncode != 0 and log == ["broken"]
    done, log = run(tmp_path, "stage('one', 'key', 'a')")
    assert done.returncode == 0 and log == ["broken", "a"]


def test_a_failed_command_stops_everything(tmp_path):
    done, log = run(tmp_path, "stages.stage('one', lambda: 'key', lambda: stages.run(['false'])); work('after')")
    assert done.returncode != 0 and "false failed with exit status 1" in done.stderr and not log
    assert not (tmp_path / "stamps" / "one").exists()


def test_a_killed_stage_is_done_again(tmp_path):
    done, _ = run(tmp_path, "stage('one', 'key', 'a'); stage('two', 'key', 'die')")
    assert done.returncode != 0
    done, log = run(tmp_path, "stage('one', 'key', 'b'); stage('two', 'key', 'c')")
    assert log == ["a", "c"]


def test_a_change_of_key_that_fails_forgets_the_old_stamp(tmp_path):
    run(tmp_path, "stage('one', 'old', 'a'); stage('one', 'new', 'broken')")
    _, log = run(tmp_path, "stage('one', 'old', 'b')")
    assert log == ["a", "broken", "b"]


def test_keys_follow_contents(tmp_path):
    def key(text="=text"):
        return library("stages").fingerprint([str(tmp_path / "file"), str(tmp_path / "folder"), *text.split()])

    (tmp_path / "file").write_text("1")
    (tmp_path / "folder").mkdir()
    one = key()
    assert one == key() and len(one) == 64
    (tmp_path / "file").write_text("2")
    other = key()
    (tmp_path / "folder" / "new").write_text("")
    assert len({one, other, key(), key("=tex t")}) == 4
