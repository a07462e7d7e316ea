"""The shell library of all recipes: options, steps that are done once, names of folders. No model is trained here."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.recipes.commands import LIBRARY, environment

HEAD = f"""#!/usr/bin/env bash
# A recipe for tests
#
#   --beam N   beams
: "${{ARCH:=transformer}}" "${{SEED:=1}}" "${{BEAM:=5}}" "${{MORE_FLAGS:=}}" "${{DATA:=}}"
. "{LIBRARY}/recipe.sh"; recipe "$@"
"""
STEPS = """
step "$OUT/text" bash -c 'echo "text $3" >> "$2"; mkdir "$1"; echo "$3" > "$1/train"' - "$OUT/text" "$LOG" "$BEAM"
step "$OUT/copy" bash -c 'echo copy >> "$2"; cat "$3" > "$1"' - "$OUT/copy" "$LOG" "$OUT/text/train"
"""
# A stand-in for fairseq-train: each call trains one epoch more, and the first one dies while FAIL is there.
TRAINER = """#!/usr/bin/env bash
while [[ $1 != --save-dir ]]; do shift; done
mkdir -p "$2"
echo epoch >> "$2/checkpoint_last.pt"
[[ ! -e $FAIL ]] || exit 3
"""
TRAIN = """
step "$OUT/runs/$ARCH$FLAGS_NAME/checkpoint_last.pt" fairseq-train "$OUT/text" --lr "$BEAM" --max-epoch 5 \\
    --save-dir "$OUT/runs/$ARCH$FLAGS_NAME" "${TRAIN_FLAGS[@]}"
"""


class Recipe:
    def __init__(self, folder: Path):
        self.folder, self.out, self.log = folder, folder / "out", folder / "log"
        self.script = folder / "mine" / "run.sh"
        self.script.parent.mkdir()
        trainer = folder / "bin" / "fairseq-train"
        trainer.parent.mkdir()
        trainer.write_text(TRAINER)
        trainer.chmod(0o755)
        self.variables = {
            **environment(is_served=False),
            "LOG": str(self.log),
            "FAIL": str(folder / "fail"),
            "PATH": f"{trainer.parent}{os.pathsep}{environment(is_served=False)['PATH']}",
        }

    def command(self, body: str, *arguments: str) -> list[str]:
        self.script.write_text(HEAD + body)
        self.script.chmod(0o755)
        return [str(self.script), *arguments]

    def run(self, body: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = self.command(body, *(arguments or ("--out", str(self.out))))
        return subprocess.run(
            command, cwd=self.folder, env={**self.variables, **variables}, capture_output=True, text=True
        )

    def did(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def mine(tmp_path):
    return Recipe(tmp_path)


NAMES = '"$ARCH" "$SEED" "$BEAM" "$OUT" "$DATA" "$TOY" "$FLAGS_NAME" "$(named ARCH SEED BEAM)"'
SHOW = f'printf "%s\\n" {NAMES} "${{TRAIN_FLAGS[@]}}"'


def test_options_and_the_environment_set_variables(mine):
    shown = mine.run(SHOW, "--out", "o", "--beam", "1", "--", "--lr", "2", SEED="7").stdout.splitlines()
    assert shown[:6] == ["transformer", "7", "1", str(mine.folder / "o"), "", ""]
    assert shown[6].startswith("+") and shown[7:] == ["-seed-7-beam-1", "--lr", "2"]


def test_a_toy_run_has_a_folder_of_its_own(mine):
    shown = mine.run(SHOW, "--out", "o", "--toy").stdout.splitlines()
    assert shown[3] == str(mine.folder / "o" / "toy") and shown[5] == "1"


def test_flags_that_only_say_how_long_to_train_make_no_other_run(mine):
    def name(*flags):
        return mine.run(SHOW, "--out", "o", "--", *flags).stdout.splitlines()[6]

    assert name("--max-epoch", "3", "--log-interval", "1") == name() == ""
    assert len({name("--lr", "1"), name("--lr", "2"), name("--lr", "1", "--max-epoch", "3")}) == 2


def test_published_models_are_runs_of_their_own_and_baselines_stay_as_they_are(mine):
    def shown(arch, **variables):
        return mine.run(SHOW + '; echo "${OURS:+ours}"', "--out", "o", "--arch", arch, **variables).stdout.splitlines()

    ours, published, baseline = (
        shown(arch, PUBLISHED=value) for arch, value in (("treeformer", ""), ("treeformer", "1"), ("transformer", "1"))
    )
    assert (ours[6], ours[8:]) == ("", ["ours"]) and published[8:] == ["--as-published", ""] and published[6]
    assert (baseline[6], baseline[8:]) == ("", [""])
    assert "give 1" in mine.run(SHOW, "--out", "o", "--published", "no").stderr


def test_a_value_that_is_no_file_name_becomes_a_number(mine):
    named = mine.run("named MORE_FLAGS", "--out", "o", "--more-flags", "--path a/b c").stdout
    assert named.startswith("-more-flags-") and named.removeprefix("-more-flags-").isdigit()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "o", "--bean", "3"), "unknown option --bean; there are --toy --dry-run --help --arch --beam"),
        (("--out", "o", "beam"), "unknown option beam"),
        (("--out", "o", "--beam"), "--beam needs a value"),
        (("--out", ""), "--out is needed"),
        ((), "--out is needed"),
        (("--data", ".", "--out", "o"), "--out lies in --data"),
    ],
)
def test_wrong_options_are_refused(mine, arguments, message):
    done = mine.run(STEPS, *(arguments or ("--beam", "1")))
    assert done.returncode == 1 and message in done.stderr and not mine.did()


def test_data_are_needed_unless_a_recipe_declares_them(mine):
    body = mine.command("")[0]
    text = Path(body).read_text().replace(' "${DATA:=}"', "")
    Path(body).write_text(text)
    done = subprocess.run([body, "--out", "o"], env=mine.variables, capture_output=True, text=True)
    assert done.returncode == 1 and "--data is needed" in done.stderr


def test_help_is_the_comment_at_the_head(mine):
    assert mine.run("", "--help").stdout == (
        "A recipe for tests\n\n  --beam N   beams\n  --published 1      the model as its paper has it\n"
    )


def test_a_finished_step_is_skipped_and_a_changed_one_runs_again_with_those_after_it(mine):
    for beam in ("5", "5", "6"):
        done = mine.run(STEPS, "--out", str(mine.out), "--beam", beam)
        assert done.returncode == 0, done.stderr
    assert mine.did() == ["text 5", "copy", "text 6", "copy"] and (mine.out / "copy").read_text() == "6\n"


def test_what_was_removed_is_made_again(mine):
    mine.run(STEPS)
    (mine.out / "copy").unlink()
    mine.run(STEPS)
    assert mine.did() == ["text 5", "copy", "copy"]


def test_other_data_run_all_steps_again(mine):
    data = mine.folder / "data"
    data.mkdir()
    for text in ("a", "a", "b"):
        (data / "train.txt").write_text(text)
        mine.run(STEPS, "--out", str(mine.out), "--data", str(data))
    assert mine.did() == ["text 5", "copy"] * 2


def test_another_place_is_no_other_command(mine):
    mine.run(STEPS)
    mine.out.rename(mine.folder / "moved")
    mine.run(STEPS, "--out", str(mine.folder / "moved"))
    assert mine.did() == ["text 5", "copy"]


def test_a_failed_command_stops_the_recipe_and_half_an_output_is_not_taken_for_a_whole_one(mine):
    half = 'step "$OUT/text" bash -c \'mkdir -p "$1"; echo half > "$1/train"; [[ ! -e $FAIL ]]\' - "$OUT/text"\n'
    Path(mine.variables["FAIL"]).touch()
    done = mine.run(half + 'echo after >> "$LOG"')
    assert done.returncode == 1 and "bash failed with exit status 1" in done.stderr and not mine.did()
    Path(mine.variables["FAIL"]).unlink()
    (mine.out / "text" / "stray").touch()
    done = mine.run(half + 'echo after >> "$LOG"')
    assert done.returncode == 0 and mine.did() == ["after"] and not (mine.out / "text" / "stray").exists()


def test_a_killed_step_is_done_again(mine):
    slow = (
        STEPS
        + 'step "$OUT/slow" bash -c \'touch "$1"; [[ -e $FAIL ]] || { touch "$FAIL"; sleep 60; }\' - "$OUT/slow"\n'
    )
    process = subprocess.Popen(mine.command(slow, "--out", str(mine.out)), env=mine.variables, start_new_session=True)
    deadline = time.monotonic() + 30
    while not Path(mine.variables["FAIL"]).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = mine.run(slow)
    assert done.returncode == 0 and "text: done before" in done.stderr and "slow: done before" not in done.stderr


def test_nothing_is_removed_that_no_step_has_made(mine):
    (mine.out / "text").mkdir(parents=True)
    (mine.out / "text" / "of_mine").touch()
    done = mine.run(STEPS)
    assert done.returncode == 1 and "no step of this recipe has made it" in done.stderr
    assert (mine.out / "text" / "of_mine").exists() and not mine.did()


def test_a_command_must_make_its_target(mine):
    assert "true has not made" in mine.run('step "$OUT/text" true').stderr


def test_two_recipes_in_one_folder_share_what_they_prepare(mine):
    slow = STEPS.replace("mkdir", "sleep 0.3; mkdir")
    command = mine.command(slow, "--out", str(mine.out))
    both = [subprocess.Popen(command, env=mine.variables) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0] and mine.did() == ["text 5", "copy"]


def epochs(mine, run="transformer"):
    return len((mine.out / "runs" / run / "checkpoint_last.pt").read_text().splitlines())


def test_training_goes_on_where_it_was_interrupted(mine):
    Path(mine.variables["FAIL"]).touch()
    assert mine.run(STEPS + TRAIN).returncode == 1
    Path(mine.variables["FAIL"]).unlink()
    for _ in range(2):
        assert mine.run(STEPS + TRAIN).returncode == 0
    assert epochs(mine) == 2  # the checkpoint was kept, and a finished training does nothing


def test_longer_training_goes_on_in_the_same_folder(mine):
    mine.run(STEPS + TRAIN)
    done = mine.run(STEPS + TRAIN, "--out", str(mine.out), "--", "--max-epoch", "9")
    assert done.returncode == 0 and epochs(mine) == 2


@pytest.mark.parametrize("change", ["settings", "data"])
def test_training_does_not_go_on_from_a_checkpoint_of_other_settings_or_data(mine, change):
    mine.run(STEPS + TRAIN)
    body = TRAIN.replace("--lr", "--warmup-updates") if change == "settings" else TRAIN
    steps = STEPS if change == "settings" else STEPS.replace('echo "$3"', 'echo "other $3"')
    done = mine.run(steps + body)
    assert done.returncode == 1 and "is of other settings or other data" in done.stderr and epochs(mine) == 1


def test_a_dry_run_prints_commands_and_touches_nothing(mine):
    done = mine.run(STEPS + TRAIN, "--out", str(mine.out), "--data", str(mine.folder / "d"), "--dry-run", BEAM="it's 1")
    assert done.returncode == 0 and not mine.out.exists() and not (mine.folder / "d").exists()
    assert "fairseq-train" in done.stdout and "--lr 'it'\\''s 1'" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 320 and " \\\n    --" in done.stdout


def test_an_empty_folder_of_data_is_filled_and_another_one_is_left_alone(mine):
    body = "fill_data geo\n"
    done = mine.run(body, "--out", "o", "--data", str(mine.folder / "new"))
    assert done.returncode == 1 and "is empty; README.md says where its files come from" in done.stderr
    printed = mine.run("fill_data geo geo\n", "--out", "o", "--data", str(mine.folder / "new"), "--dry-run").stdout
    assert printed.startswith("python -m preprocess.fetch geo ") and not (mine.folder / "new").exists()
    assert mine.run(body, "--toy", "--out", "o", "--data", str(mine.folder / "new")).returncode == 0
    names = {path.name for path in (mine.folder / "new").iterdir()}
    assert "train.txt" in names and ".unfinished" not in names
    (mine.folder / "new" / "train.txt").write_text("mine\n")
    assert mine.run(body, "--toy", "--out", "o", "--data", str(mine.folder / "new")).returncode == 0
    assert (mine.folder / "new" / "train.txt").read_text() == "mine\n"


@pytest.mark.parametrize(("visible", "gpus"), [("", "1"), ("0", "1"), ("0,3", "2")])
def test_the_batch_is_divided_by_the_gpus(mine, visible, gpus):
    assert mine.run('echo "$GPUS"', CUDA_VISIBLE_DEVICES=visible).stdout.strip() == gpus


def test_the_library_is_short():
    lines = {
        name: len((LIBRARY / name).read_text(encoding="utf-8").splitlines()) for name in ("recipe.sh", "results.py")
    }
    assert lines["recipe.sh"] <= 150 and lines["results.py"] <= 400
