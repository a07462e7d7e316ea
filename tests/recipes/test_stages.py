"""Stamps: what is done is skipped, what was killed or has changed is done again."""

from __future__ import annotations

from tests.recipes.commands import bash

PREAMBLE = """
LIBRARY=examples/lib WORK=$PLACE DRY_RUN='' RECIPE=test
. examples/lib/stages.sh
work() { echo "$1" >> "$PLACE/log"; [ "$1" != broken ]; }
"""


def run(tmp_path, script):
    done = bash(PREAMBLE + script, PLACE=str(tmp_path))
    log = tmp_path / "log"
    return done, log.read_text().split() if log.exists() else []


def test_a_finished_stage_is_skipped(tmp_path):
    _, log = run(tmp_path, "stage one key1 work a; stage one key1 work b; stage one key2 work c; stage one key1 work d")
    assert log == ["a", "c", "d"]


def test_a_failed_stage_stops_everything_and_is_done_again(tmp_path):
    done, log = run(tmp_path, "stage one key work broken; work after")
    assert done.returncode != 0 and log == ["broken"]
    done, log = run(tmp_path, "stage one key work a")
    assert done.returncode == 0 and log == ["broken", "a"]


def test_a_killed_stage_is_done_again(tmp_path):
    done, _ = run(tmp_path, "stage one key work a; die_now() { kill -9 $BASHPID; }; stage two key die_now")
    assert done.returncode != 0
    done, log = run(tmp_path, "stage one key work b; stage two key work c")
    assert log == ["a", "c"]


def test_a_change_of_key_that_fails_forgets_the_old_stamp(tmp_path):
    run(tmp_path, "stage one old work a; stage one new work broken")
    _, log = run(tmp_path, "stage one old work b")
    assert log == ["a", "broken", "b"]


def test_keys_follow_contents(tmp_path):
    (tmp_path / "file").write_text("1")
    (tmp_path / "folder").mkdir()
    script = 'key "$PLACE/file" "$PLACE/folder" =text; key "$PLACE/file" "$PLACE/folder" =text'
    one, same = run(tmp_path, script)[0].stdout.split()
    assert one == same and len(one) == 64
    (tmp_path / "file").write_text("2")
    (other,) = run(tmp_path, 'key "$PLACE/file" "$PLACE/folder" =text')[0].stdout.split()
    (tmp_path / "folder" / "new").write_text("")
    (third,) = run(tmp_path, 'key "$PLACE/file" "$PLACE/folder" =text')[0].stdout.split()
    (fourth,) = run(tmp_path, 'key "$PLACE/file" "$PLACE/folder" =tex t')[0].stdout.split()
    assert len({one, other, third, fourth}) == 4
