"""The staging folder: who may use it, what it keeps, and how a stopped command is continued."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os

import pytest

from tests.data_bin.corpora import in_child
from tree_fairseq.data_bin.staging import Staging, clear_published, staging_path
from tree_fairseq.errors import DestinationExistsError


def sealed(destination, command, **files: str) -> Staging:
    with Staging(destination, command) as staging:
        output = staging.new_output()
        for name, content in files.items():
            (output / name).write_text(content)
        staging.seal(output, last=["z", "b"])
    return staging


def test_publishing_moves_the_files_and_removes_the_rest(tmp_path):
    destination = tmp_path / "deep" / "data-bin"
    with Staging(destination, {"a": 1}) as staging:
        assert staging.path == tmp_path / "deep" / "data-bin.building"
        (staging.folder("kept/deeper") / "x").write_text("x")
        output = staging.new_output()
        (output / "a").write_text("A")
        staging.seal(output)
        staging.publish()
    assert [path.name for path in destination.iterdir()] == ["a"]
    assert [path.name for path in destination.parent.iterdir()] == ["data-bin"]


def test_files_are_published_in_the_requested_order(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    staging = sealed(tmp_path / "bin", {}, a="A", b="B", c="C", z="Z")
    moved = []
    replace = os.replace
    monkeypatch.setattr(
        os, "replace", lambda source, target: (moved.append(os.path.basename(target)), replace(source, target))
    )
    with Staging(tmp_path / "bin", {}) as staging:
        staging.publish()
    assert moved == ["a", "c", "z", "b"]


def test_the_same_command_finds_its_unfinished_work(tmp_path):
    for attempt in range(2):
        with Staging(tmp_path / "bin", {"inputs": ["x"], "n": 1}) as staging:
            kept = staging.folder("encoded") / "chunk"
            assert kept.exists() == (attempt == 1)
            kept.write_text("done")
            assert not any(entry.name.startswith("output-") for entry in staging.path.iterdir())
            staging.new_output()


def test_another_command_starts_anew_but_keeps_parses(tmp_path, caplog):
    with Staging(tmp_path / "bin", {"n": 1}) as staging:
        staging.folder("encoded")
        staging.folder("parsed/train.en")
        (staging.path / "file").write_text("")
    with Staging(tmp_path / "bin", {"n": 2}) as staging:
        assert sorted(entry.name for entry in staging.path.iterdir()) == ["command.json", "lock", "parsed"]
    assert "another command" in caplog.text


@pytest.mark.parametrize("left", [".command.json.0123abcd.tmp", "READY.json"])
def test_what_a_stopped_command_leaves_does_not_block_others(tmp_path, left):
    """One was killed while it wrote its record, one while it removed what another had built."""
    if left == "READY.json":
        (sealed(tmp_path / "bin", {"n": 1}).path / "command.json").unlink()
    else:
        (tmp_path / "bin.building").mkdir()
        (tmp_path / "bin.building" / left).write_text('{"n"')
    with Staging(tmp_path / "bin", {"n": 2}) as staging:
        assert sorted(entry.name for entry in staging.path.iterdir()) == ["command.json", "lock"]


def test_a_folder_of_somebody_else_is_not_touched(tmp_path):
    (tmp_path / "bin.building").mkdir()
    (tmp_path / "bin.building" / "thesis.tex").write_text("")
    with pytest.raises(DestinationExistsError, match="bin.building"), Staging(tmp_path / "bin", {}):
        pass
    assert (tmp_path / "bin.building" / "thesis.tex").exists()


def test_two_processes_cannot_build_the_same_folder(tmp_path):
    def second():
        with Staging(tmp_path / "bin", {}):
            pass

    with Staging(tmp_path / "bin", {}):
        assert "another process" in in_child(second)
    assert in_child(second) == 0


def test_a_lock_that_is_removed_keeps_nobody_in(tmp_path):
    """Of builders under stress, no two are at work at the same time."""

    class Watched(Staging):
        def leave(self) -> None:
            (tmp_path / "busy").unlink()
            super().leave()

    def build(number: int) -> None:
        for _ in range(12):
            with contextlib.suppress(DestinationExistsError), Watched(tmp_path / "bin", {"n": number}) as staging:
                (tmp_path / "busy").touch(exist_ok=False)  # FileExistsError if another one is at work
                output = staging.new_output()
                for name in ("a", "b", "tree.json"):
                    (output / name).write_text(f"{number}")
                staging.seal(output, last=["tree.json"])
                staging.publish()

    context = multiprocessing.get_context("fork")
    builders = [context.Process(target=build, args=(number,)) for number in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert [builder.exitcode for builder in builders] == [0] * 4
    assert len({path.read_text() for path in (tmp_path / "bin").iterdir()}) == 1
    assert not (tmp_path / "bin.building").exists()


def test_a_new_folder_appears_at_once_and_whole(tmp_path, monkeypatch):
    staging = sealed(tmp_path / "bin", {}, a="A", b="B")
    monkeypatch.setattr(os, "replace", None)
    [lost] = staging.path.glob("output-*/b")
    lost.rename(tmp_path / "b")
    with pytest.raises(DestinationExistsError, match="has lost b"), Staging(tmp_path / "bin", {}) as again:
        again.publish()
    assert not (tmp_path / "bin").exists()
    (tmp_path / "b").rename(lost)
    with Staging(tmp_path / "bin", {}) as again:
        again.publish()
    assert (tmp_path / "bin").stat().st_mode & 0o777 == 0o777 & ~_umask()
    assert {path.name for path in (tmp_path / "bin").iterdir()} == {"a", "b"}


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def test_what_another_process_has_published_meanwhile_is_not_built_again(tmp_path):
    mine = Staging(tmp_path / "bin", {"n": 1})
    other = sealed(tmp_path / "bin", {"n": 2}, **{"tree.json": "{}"})
    with other:
        other.publish()
    with pytest.raises(DestinationExistsError, match="another process has just built"), mine:
        pass


def test_an_interrupted_publication_is_completed(tmp_path):
    staging = sealed(tmp_path / "bin", {"n": 1}, a="A", b="B")
    ready = json.loads((staging.path / "READY.json").read_text())
    (tmp_path / "bin").mkdir()
    os.replace(staging.path / ready["output"] / "a", tmp_path / "bin" / "a")
    # Another command does not complete it.
    with pytest.raises(DestinationExistsError, match="give that command again"), Staging(tmp_path / "bin", {"n": 2}):
        pass
    with pytest.raises(DestinationExistsError, match='It was {"n": 1}'):
        Staging(tmp_path / "bin", {"n": 2}).refuse_unpublished()
    Staging(tmp_path / "bin", {"n": 1}).refuse_unpublished()
    with Staging(tmp_path / "bin", {"n": 1}) as again:
        assert again.is_ready
        again.publish()
    assert {path.name: path.read_text() for path in (tmp_path / "bin").iterdir()} == {"a": "A", "b": "B"}
    assert not staging.path.exists()


def test_only_published_staging_folders_are_removed(tmp_path):
    clear_published(tmp_path / "bin")
    staging = sealed(tmp_path / "bin", {"n": 1}, a="A")
    clear_published(tmp_path / "bin")
    assert staging.is_ready
    ready = json.loads((staging.path / "READY.json").read_text())
    (tmp_path / "bin").mkdir()
    os.replace(staging.path / ready["output"] / "a", tmp_path / "bin" / "a")
    clear_published(tmp_path / "bin")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
    (tmp_path / "bin.building").mkdir()
    clear_published(tmp_path / "bin")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
    (tmp_path / "bin.building").mkdir()
    (tmp_path / "bin.building" / "command.json").write_text("{}")
    clear_published(tmp_path / "bin")
    assert (tmp_path / "bin.building").exists()


def test_a_linked_destination_is_built_beside_its_target(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert staging_path(tmp_path / "link") == tmp_path / "real.building"
    assert staging_path(f"{tmp_path}/link/") == tmp_path / "real.building"


def test_the_root_of_a_file_system_is_built_inside(tmp_path):
    assert staging_path("/proc") == staging_path("/proc/") and str(staging_path("/proc")) == "/proc/.building"
