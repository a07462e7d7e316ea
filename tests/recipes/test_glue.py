"""The recipe ``glue``: what it accepts, refuses and would run, and one run from files to figures."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from preprocess.glue_formats import TASKS
from tests.nn.pretrained import save_albert
from tests.recipes.commands import EXAMPLES, ROOT, bash, commands_in, printed_commands, readme_blocks, recipe
from tests.recipes.test_structural_options import named, parsed, value

SELECT = {"cola": "matthews", "stsb": "pearson"}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--chart", "no"),
        ("--encoder-path", "albert-base-v2"),
        ("--encoder-path", "albert-base-v2", "--chart", "no"),
    ],
)
def test_commands_are_fairseq_s(base, name, flags):
    commands = printed_commands("glue", *base, "--glue-task", name, *flags)
    (prepare,) = named(commands, "preprocess.glue")
    (preprocess,) = named(commands, "fairseq-preprocess")
    (train,) = named(commands, "fairseq-train")
    arguments = parsed(train)
    convert_namespace_to_omegaconf(arguments)
    parsed(preprocess)
    is_pretrained = "--encoder-path" in flags
    assert arguments.task == "tree_sentence_classification" and arguments.arch == "treeformer_classifier_tiny"
    assert arguments.no_chart == ("--chart" in flags) and arguments.treeformer_height == 10
    assert arguments.encoder_name == ("albert-base-v2" if is_pretrained else None)
    assert ("--pieces-of" in prepare) == is_pretrained and (value(preprocess, "--thresholdsrc") == "0") == is_pretrained
    assert ("--srcdict" in preprocess) == is_pretrained
    assert (
        arguments.best_checkpoint_metric == SELECT.get(name, "accuracy") and arguments.maximize_best_checkpoint_metric
    )
    assert arguments.criterion == ("tree_regression" if name == "stsb" else "tree_classification") and (
        "--regression" in preprocess
    ) == (name == "stsb")
    generated, (score,) = named(commands, "fairseq-generate"), named(commands, "score")
    assert len(generated) == (2 if name == "mnli" else 1)
    assert value(score, "--primary") == SELECT.get(name, "accuracy" + "_matched" * (name == "mnli"))
    assert ("no-chart" in value(train, "--save-dir")) == arguments.no_chart


def test_the_paper_s_settings(base):
    (train,) = named(
        printed_commands("glue", *base, "--glue-task", "sst2", "--encoder-path", "albert-base-v2"), "fairseq-train"
    )
    arguments = parsed(train)
    assert (arguments.lr, arguments.batch_size, arguments.warmup_updates) == ([1e-5], 16, 400)
    assert (arguments.dropout, arguments.attention_dropout, arguments.classifier_dropout, arguments.lr_scheduler) == (
        0.15,
        0.15,
        0.1,
        "cosine",
    )


@pytest.mark.parametrize("flags", [(), ("--encoder-path", "albert-base-v2")])
def test_batches_are_as_large_on_several_gpus(base, flags):
    words = ["examples/glue/run.sh", *base, "--dry-run", "--glue-task", "mnli", *flags]
    sizes = []
    for gpus in ("0", "0,1,2,3"):
        printed = bash(shlex.join(words), CUDA_VISIBLE_DEVICES=gpus).stdout
        (train,) = named(commands_in(printed), "fairseq-train")
        sizes.append(int(value(train, "--batch-size")) * int(value(train, "--update-freq")))
    assert sizes == ([128, 32] if flags else [32, 8])


def test_a_sweep_goes_through_heights(base):
    commands = printed_commands("glue", *base, "--glue-task", "stsb", "--seeds", "1,2", "--stage", "sweep")
    trained = [parsed(train) for train in named(commands, "fairseq-train")]
    assert len({train.save_dir for train in trained}) == len(trained) == 12
    assert sorted((train.treeformer_height, train.no_chart, train.seed) for train in trained) == sorted(
        [(10, True, seed) for seed in (1, 2)]
        + [(height, False, seed) for height in (2, 5, 10, 15, 20) for seed in (1, 2)]
    )
    (sweep,) = (command for command in commands if command[1].endswith("sweep.py"))
    runs = sweep[sweep.index("--runs") + 1 : sweep.index("--checkpoint")]
    assert sorted(f"{run}/checkpoints" for run in runs) == sorted(train.save_dir for train in trained)
    refused = recipe("glue", *base, "--glue-task", "stsb", "--chart", "no", "--stage", "sweep", "--dry-run")
    assert refused.returncode and "leave out --chart" in refused.stderr


def test_encoders_of_one_name_have_runs_of_their_own(base, tmp_path):
    folders = []
    for place, width in (("one", 8), ("two", 16)):
        encoder = tmp_path / place / "model"
        encoder.mkdir(parents=True)
        (encoder / "config.json").write_text(json.dumps({"hidden_size": width}))
        (train,) = named(
            printed_commands("glue", *base, "--glue-task", "cola", "--encoder-path", str(encoder)), "fairseq-train"
        )
        assert value(train, "--encoder-name") == str(encoder)
        folders.append(value(train, "--save-dir"))
    assert len(set(folders)) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--glue-task is needed: give cola"),
        (("--glue-task", "qqp"), "--glue-task qqp: give cola"),
        (("--glue-task", "cola", "--chart", "maybe"), "--chart maybe: give yes no"),
        (("--glue-task", "cola", "--parser", "stanza"), "reads no trees"),
        (
            ("--glue-task", "cola", "--encoder-path", "x", "--arch", "lstm_classifier_tiny"),
            "goes with a treeformer_classifier",
        ),
        (
            ("--glue-task", "cola", "--arch", "lstm_classifier_tiny", "--stage", "ablate"),
            "has no chart to leave out or to vary",
        ),
        (
            ("--glue-task", "cola", "--arch", "lstm_classifier_tiny", "--chart", "no"),
            "has no chart to leave out or to vary",
        ),
    ],
)
def test_what_is_refused(base, flags, message):
    done = recipe("glue", *base, "--dry-run", *flags)
    assert done.returncode and message in done.stderr


def test_blocks_of_the_readme(tmp_path):
    variables = {"DATA": str(tmp_path / "data"), "OUT": str(tmp_path / "out")}
    blocks = readme_blocks("glue")
    assert len(blocks) >= 3
    for block in blocks:
        done = bash(block.replace("run.sh ", "run.sh --toy --dry-run "), **variables)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert "preprocess.glue" in done.stdout


def test_plain_commands_of_the_readme_are_fairseq_s():
    text = (EXAMPLES / "glue" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(fairseq-train.*?)^```", text, re.MULTILINE | re.DOTALL)
    arguments = parsed(
        shlex.split(
            block.replace("\\\n", " ").replace("--user-dir tree_fairseq", f"--user-dir {ROOT / 'tree_fairseq'}")
        )
    )
    convert_namespace_to_omegaconf(arguments)


@pytest.mark.parametrize(("name", "metric"), [("cola", "matthews"), ("stsb", "pearson")])
def test_from_files_to_figures(tmp_path, name, metric):
    done = recipe(
        "glue",
        "--toy",
        "--out",
        tmp_path,
        "--glue-task",
        name,
        "--stage",
        "ablate",
        "--workers",
        "1",
        "--",
        "--cpu",
        "--num-workers",
        "0",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["metric"] == metric and result["score"] == result[metric]
    assert sorted("no-chart" in run["run"] for run in result["runs"]) == [False, True]
    assert any(row["baseline"] for run in result["runs"] for row in run["differences"])


def test_a_pretrained_encoder_from_files_to_figures(tmp_path):
    encoder = save_albert(tmp_path / "albert", [f"w{number}" for number in range(60)])
    done = recipe(
        "glue",
        "--toy",
        "--out",
        tmp_path / "out",
        "--glue-task",
        "sick",
        "--encoder-path",
        encoder,
        "--workers",
        "1",
        "--",
        "--cpu",
        "--num-workers",
        "0",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "accuracy" in json.loads((tmp_path / "out" / "result.json").read_text())
