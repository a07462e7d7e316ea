"""The recipes of Treeformer: options, READMEs, one of them at a tiny size, and the tables of sweeps."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.nn.tiny import build, tiny_task
from tests.recipes.commands import EXAMPLES, bash, compared, library, printed_commands, readme, recipe, settings_of
from tests.recipes.test_structural_options import named, parsed, value
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.__main__ import SCORERS

PLAIN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
BASELINES = {
    "cogs": "transformer",
    "cognition": "transformer_iwslt_de_en",
    "gigaword": "transformer_iwslt_de_en",
    "iwslt14_en_fr": "transformer_iwslt_de_en",
    "iwslt14_de_en": "transformer_iwslt_de_en",
    "multi30k_en_de": "transformer",
}
DUAL = ("iwslt14_de_en", "multi30k_en_de")


def commands_of(name, base, *arguments):
    setting = ("--setting", "treeformer") if name in DUAL else ()
    return printed_commands(name, *base, *setting, *arguments)


def run_of(train):
    return value(train, "--save-dir").split("/")[-2]


def training(name, base, *arguments):
    (train,) = named(commands_of(name, base, *arguments), "fairseq-train")
    return train, parsed(train)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_commands_are_fairseq_s_and_both_models_read_one_plain_folder(base, name):
    commands = commands_of(name, base)
    (preprocess,) = named(commands, "fairseq-preprocess")
    assert "--user-dir" not in preprocess
    train, arguments = training(name, base)
    convert_namespace_to_omegaconf(arguments)
    assert (
        arguments.task == "translation"
        and arguments.arch.startswith("treeformer")
        and arguments.treeformer_height == 10
    )
    assert train[1] == value(preprocess, "--destdir")
    stock, stock_arguments = training(name, base, "--arch", BASELINES[name])
    assert stock[1] == train[1] and run_of(stock) != run_of(train)
    for size in (
        "encoder_layers",
        "encoder_embed_dim",
        "encoder_ffn_embed_dim",
        "encoder_attention_heads",
        "decoder_layers",
        "max_update",
    ):
        assert getattr(arguments, size) == getattr(stock_arguments, size), size
    for command in named(commands, "fairseq-generate"):
        assert command[1] == train[1] and value(command, "--path").startswith(value(train, "--save-dir"))
        assert parsed(command).beam in (1, 5, 10)
    (score,) = named(commands, "score")
    assert score[2] in SCORERS


def test_settings_are_the_paper_s(base):
    _, ours = training("iwslt14_en_fr", base)
    _, stock = training("iwslt14_en_fr", base, "--arch", "transformer_iwslt_de_en")
    assert (ours.lr, ours.dropout, stock.lr, stock.dropout) == ([7e-4], 0.4, [5e-4], 0.3)
    assert (ours.max_tokens, ours.warmup_updates, ours.weight_decay) == (4096, 4000, 1e-4)
    for name, penalty in (("iwslt14_de_en", 0.6), ("iwslt14_en_fr", 0.2)):
        (command,) = named(commands_of(name, base), "fairseq-generate")
        assert (parsed(command).beam, parsed(command).lenpen) == (10, penalty) and value(command, "--path").endswith(
            "/checkpoint_best.pt"
        )
    _, ours = training("gigaword", base)
    assert (ours.max_tokens, ours.warmup_updates, ours.weight_decay, ours.dropout, ours.lr) == (
        8192,
        8000,
        1e-3,
        0.1,
        [7e-4],
    )
    (command,) = named(commands_of("gigaword", base), "fairseq-generate")
    assert (parsed(command).beam, parsed(command).lenpen, parsed(command).max_len_b) == (5, 0.7, 32)
    _, ours = training("cognition", base)
    assert (ours.max_tokens * ours.update_freq[0], ours.max_update, ours.best_checkpoint_metric) == (
        8192,
        100000,
        "bleu",
    )
    assert ours.eval_bleu and ours.maximize_best_checkpoint_metric


def test_cogs_has_two_schedules_of_which_one_is_the_paper_s(base):
    train, arguments = training("cogs", base, "--schedule", "paper")
    assert (arguments.batch_size, arguments.max_update, arguments.lr, arguments.lr_scheduler) == (
        128,
        50000,
        [1e-4],
        "fixed",
    )
    assert eval(arguments.adam_betas) == (0.9, 0.999) and arguments.criterion == "cross_entropy"
    short, arguments = training("cogs", base)
    assert arguments.max_update == float(arguments.total_num_update) and run_of(short) == "treeformer_cogs-short-seed1"
    assert run_of(train) == "treeformer_cogs-paper-seed1" and short[1] == train[1]
    (greedy, *_) = named(commands_of("cogs", base), "fairseq-generate")
    assert parsed(greedy).beam == 1 and value(greedy, "--path").endswith("/checkpoint_last.pt")


def test_cogs_has_a_long_schedule_and_scores_original_forms(base):
    train, arguments = training("cogs", base, "--schedule", "long", "--arch", "transformer")
    assert arguments.max_update == 30_000 and arguments.encoder_embed_dim == 256
    assert arguments.criterion == "cross_entropy" and run_of(train) == "transformer-long-seed1"
    commands = commands_of("cogs", base, "--score-forms", "original")
    (prepare,), (score,) = named(commands, "preprocess.semantic_parsing"), named(commands, "score")
    folder = prepare[prepare.index("--original-forms") + 1]
    assert score[score.index("--references") + 1] == folder and score[score.index("--notation") + 1] == "lines"
    restored = named(commands, "preprocess.cogs_forms")
    assert [each[each.index("--set") + 1] for each in restored] == ["test", "test2"]
    for generated, each in zip(named(commands, "fairseq-generate"), restored):
        assert generated[generated.index("--results-path") + 1] == each[each.index("--run") + 1]
        assert each[each.index("--output") + 1] == score[score.index("--run") + 1]


def test_cogs_targets_and_samples(base):
    def of(*arguments):
        commands = commands_of("cogs", base, *arguments)
        (prepare,), (score,) = named(commands, "preprocess.semantic_parsing"), named(commands, "score")
        return prepare, [value(command, "--gen-subset") for command in named(commands, "fairseq-generate")], score

    prepare, subsets, score = of()
    assert value(prepare, "--targets") == "variable-free" and value(prepare, "--generalization-sample") == "2100"
    assert (
        subsets == ["test", "test2"]
        and "test2=generalization" in score
        and value(score, "--notation") == "variable-free"
    )
    prepare, subsets, score = of("--generalization-sample", "all", "--targets", "original")
    assert value(prepare, "--targets") == "original" and "/original/" in value(prepare, "--output")
    assert subsets == ["test", "test1"] and "test1=generalization" in score and value(score, "--notation") == "lines"


def test_chinese_alone_is_split_into_subwords(base):
    split = [command for command in commands_of("cognition", base) if command[:2] == ["subword-nmt", "apply-bpe"]]
    assert len(split) == 4 and all(command[-1].endswith(".zh") for command in split)


def test_deeper_encoders_and_other_heights_have_runs_of_their_own(base):
    train, arguments = training("iwslt14_en_fr", base, "--arch", "transformer_iwslt_de_en", "--encoder-layers", "7")
    assert run_of(train) == "transformer_iwslt_de_en-7-layers-seed1" and (
        arguments.encoder_layers,
        arguments.decoder_layers,
    ) == (7, 6)
    train, arguments = training("iwslt14_en_fr", base, "--height", "5", "--seed", "2")
    assert run_of(train) == "treeformer_iwslt_de_en-height-5-seed2" and arguments.treeformer_height == 5
    train, arguments = training("multi30k_en_de", base, "--arch", "treeformer_tiny")
    assert arguments.arch == "treeformer_tiny" and (arguments.encoder_embed_dim, arguments.encoder_layers) == (256, 6)


def test_trees_stay_the_setting_where_nothing_else_is_asked_for(base):
    for name in DUAL:
        (train,) = named(printed_commands(name, *base), "fairseq-train")
        assert parsed(train).task == "tree_translation" and "/treeformer/" not in train[1]
        (plain,) = named(printed_commands(name, *base, "--arch", "treeformer"), "fairseq-train")
        assert parsed(plain).task == "translation" and "/treeformer/" in plain[1]


def test_every_seed_has_a_run_and_the_means_come_last(base):
    commands = commands_of("cognition", base, "--seeds", "1,7,77")
    trained = named(commands, "fairseq-train")
    assert [value(command, "--seed") for command in trained] == ["1", "7", "77"]
    assert "mean_of_seeds.py" in commands[-1][1] and len(commands[-1][4:]) == 3


def test_sweeps_go_through_depths_and_heights_once(base):
    commands = commands_of("iwslt14_en_fr", base, "--stage", "sweep")
    runs = [run_of(command).removesuffix("-seed1") for command in named(commands, "fairseq-train")]
    assert len(runs) == len(set(runs)) == 12
    assert {
        f"{arch}_iwslt_de_en{layers}"
        for arch in ("transformer", "treeformer")
        for layers in ("-2-layers", "-4-layers", "", "-8-layers")
    } < set(runs)
    assert {f"treeformer_iwslt_de_en-height-{height}" for height in (2, 5, 15, 20)} < set(runs)
    sweep = commands[-1]
    assert sweep[1].endswith("sweep.py") and value(sweep, "--metric") == "tokenized_bleu"
    assert {value(command, "--main-run").split("/")[-1] for command in named(commands, "score")} == {
        "treeformer_iwslt_de_en-seed1"
    }
    assert commands_of("cogs", base, "--stage", "sweep")[-1][1].endswith("sweep.py")


def test_other_runs_of_a_seed_are_compared(tmp_path):
    for name in (
        "transformer-seed1",
        "transformer-7-layers-seed1",
        "treeformer-seed1",
        "treeformer-seed2",
        "transformer-seed1+12",
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "score.json").touch()
    settings = settings_of("gigaword", "--toy", "--out", tmp_path)
    found = [compared(settings.at(run_seed=seed), tmp_path / "runs" / f"treeformer-seed{seed}") for seed in ("1", "2")]
    assert [" ".join(names) for names in found] == ["transformer-7-layers-seed1 transformer-seed1", ""]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("cogs", (), "--out is needed"),
        ("cogs", ("--out", "x", "--toy", "--stage", "ablate"), "unknown stage ablate"),
        (
            "cogs",
            ("--out", "x", "--toy", "--targets", "original", "--score-forms", "original"),
            "--score-forms original is for variable-free targets: others are scored so",
        ),
        ("cogs", ("--out", "x", "--toy", "--targets", "trees"), "--targets trees: give variable-free original"),
        (
            "cogs",
            ("--out", "x", "--toy", "--generalization-sample", "some"),
            "--generalization-sample needs a number, or all",
        ),
        ("cogs", ("--out", "x", "--toy", "--schedule", "night"), "--schedule night: give short long paper"),
        ("gigaword", ("--out", "x", "--toy", "--parser", "stanza"), "unknown option --parser"),
        ("gigaword", ("--out", "x", "--toy", "--arch", "lstm"), "no settings for --arch lstm"),
        ("gigaword", ("--out", "x", "--toy", "--encoder-layers", "deep"), "--encoder-layers needs a number"),
        ("gigaword", ("--out", "x", "--toy", "--height", "0"), "--height needs a number"),
        (
            "multi30k_en_de",
            ("--out", "x", "--toy", "--setting", "treeformer", "--stage", "ablate"),
            "unknown stage ablate",
        ),
    ],
)
def test_mistakes_are_named(name, arguments, message):
    done = recipe(name, *arguments)
    assert done.returncode == 1
    assert message in done.stderr


def test_the_library_of_rouge_is_asked_for_before_training(tmp_path):
    hidden, out = tmp_path / "hidden", tmp_path / "out"
    hidden.mkdir()
    (hidden / "rouge_score.py").write_text("raise ModuleNotFoundError(name=__name__)\n")
    done = bash(f"examples/gigaword/run.sh --toy --out {out}", PYTHONPATH=str(hidden))
    assert done.returncode == 1 and "ROUGE needs rouge-score: pip install 'tree-fairseq[scores]'" in done.stderr
    assert not (out / "words").exists()


# --- READMEs ----------------------------------------------------------------------------------------------------------


def test_plain_commands_are_fairseq_s():
    text = "".join(PLAIN.findall(readme("cogs"))).replace("\\\n", " ")
    commands = [shlex.split(line) for line in text.splitlines() if line.strip()]
    assert {"fairseq-preprocess", "fairseq-train", "fairseq-generate"} <= {command[0] for command in commands}
    for command in commands:
        if "--user-dir" in command:
            command[command.index("--user-dir") + 1] = str(EXAMPLES.parent / "tree_fairseq")
            parsed(command)


# --- sweeps, and all of it at a tiny size -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sweeping():
    """The script that makes tables and plots of sweeps, as a module."""
    return library("sweep")


def scored(folder, layers, height, score, seed=1, **more):
    folder.mkdir(parents=True)
    sizes = {"encoder_layers": layers, "height": height}
    description = {"seed": str(seed), **{name: str(size) for name, size in sizes.items() if size is not None}}
    content = {
        "metrics": {"bleu": score},
        "description": description,
        "checkpoint": {"parameters": 10**6 * (layers or 0) + (height or 0)},
        **more,
    }
    (folder / "score.json").write_text(json.dumps(content))
    return folder


def test_tables_and_plots_of_a_sweep(tmp_path, sweeping):
    sweep = sweeping
    runs = [
        scored(tmp_path / "a", 2, None, 30.0),
        scored(tmp_path / "b", 2, 10, 30.5),
        scored(tmp_path / "c", 6, None, 34.0),
        scored(tmp_path / "d", 6, 10, 35.0),
        scored(tmp_path / "e", 6, 10, 36.0, seed=2),
        scored(tmp_path / "f", 6, 2, 34.2),
    ]
    rows = sweep.read_rows([*runs, runs[0]], "bleu")
    assert [(row.layers, row.height, row.score, len(row.runs)) for row in rows] == [
        (2, None, 30, 1),
        (2, 10, 30.5, 1),
        (6, None, 34, 1),
        (6, 2, 34.2, 1),
        (6, 10, 35.5, 2),
    ]
    depth = sweep.depth_table(rows, 10, "bleu").splitlines()
    assert depth[2:] == [
        "| 2 | 30.00 (2.00M) | 30.50 (2.00M) | +0.50 |",
        "| 6 | 34.00 (6.00M) | 35.50 (6.00M) | +1.50 |",
    ]
    assert sweep.height_table(rows, 6, "bleu").splitlines()[2:] == [
        "| none (Transformer) | 34.00 |",
        "| 2 | 34.20 |",
        "| 10 | 35.50 |",
    ]
    times = {"Transformer": {10: 1.0, 20: 2.0}, "Treeformer": {10: 1.5, 20: 4.0}}
    assert sweep.length_table(times).splitlines()[2:] == ["| 10 | 1.00 | 1.50 | 1.50 |", "| 20 | 2.00 | 4.00 | 2.00 |"]
    figure = sweep.plots(rows, 6, 10, "bleu", times)
    assert [len(axes.get_lines()) for axes in figure.axes] == [2, 2, 2, 2]
    with pytest.raises(ScoringError, match="has no chrf"):
        sweep.read_rows(runs, "chrf")


def test_a_sweep_over_heights_alone(tmp_path, sweeping):
    runs = [
        scored(tmp_path / name, None, height, score)
        for name, height, score in (("a", None, 30.0), ("b", 2, 31.0), ("c", 10, 33.0))
    ]
    arguments = ["--metric", "bleu", "--height", "10", "--checkpoint", "x.pt", "--output", str(tmp_path)]
    assert sweeping.main(["--runs", *map(str, runs), *arguments]) == 0
    text = (tmp_path / "sweep.md").read_text()
    assert text.splitlines()[0] == "## Height of the chart" and text.count("##") == 1 and "| 10 | 33.00 |" in text
    texts = ["".join(found.itertext()) for found in xml.etree.ElementTree.parse(tmp_path / "sweep.svg").iter()]
    assert {"Height", "h, the height of the chart", "bleu", "Transformer", "Treeformer"} <= set(texts)
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_sweeps_need_the_model_with_and_without_a_chart(tmp_path, sweeping, capsys):
    run = scored(tmp_path / "a", 6, 10, 35.0)
    arguments = [
        "--metric",
        "bleu",
        "--layers",
        "6",
        "--height",
        "10",
        "--lengths",
        "4",
        "--checkpoint",
        "x.pt",
        "--output",
        str(tmp_path),
    ]
    assert sweeping.main(["--runs", str(run), *arguments]) == 1
    assert "no run has 6 layers and no chart" in capsys.readouterr().err


def test_encoders_are_timed_at_every_length(sweeping):
    encoder = build(tiny_task(), arch="treeformer_tiny").encoder
    times = sweeping.milliseconds(encoder, [2, 5])
    assert list(times) == [2, 5] and all(value > 0 for value in times.values())


def test_cogs_from_end_to_end(tmp_path, sweeping):
    done = recipe("cogs", "--toy", "--out", tmp_path, "--workers", "1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["metric"] == "accuracy_generalization" and result["score"] == result["accuracy_generalization"]
    assert set(result["groups"]["test2"]) == {"cp_recursion"} and result["sentences"] == {"test": 15, "test2": 5}
    assert result["description"] | {"encoder_layers": "1", "height": "10", "seed": "1"} == result["description"]
    run = tmp_path / "variable-free" / "runs" / "treeformer_cogs-short-seed1"
    assert hasattr(sweeping.load_encoder(run / "checkpoints" / "checkpoint_last.pt"), "chart")
    again = recipe("cogs", "--toy", "--out", tmp_path, "--workers", "1", "--stage", "generate")
    assert again.stderr.count("done before") == 4  # prepare, preprocess, train, generate
