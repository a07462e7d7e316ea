"""What the recipes accept, refuse and would run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY

from tests.nn.tiny import tiny_task
from tests.recipes.commands import (
    CLASSIFICATION,
    EXAMPLES,
    INSERTION,
    RECIPES,
    ROOT,
    STRUCTURAL,
    TREEFORMER,
    compared,
    library,
    printed_commands,
    recipe,
    run_without_reader,
    settings_of,
)

STOCK = {
    "multi30k_en_de": ("transformer", "transformer_distance_bias", "fconv_iwslt_de_en", "lightconv_iwslt_de_en"),
    "wmt14_en_de": (
        "transformer_wmt_en_de",
        "transformer_wmt_en_de_big",
        "fconv_wmt_en_de",
        "lightconv_wmt_en_de",
        "lightconv_wmt_en_de_big",
        "tree_transformer_wmt_en_de_big",
    ),
    "iwslt14_de_en": ("transformer_iwslt_de_en", "fconv_iwslt_de_en", "lightconv_iwslt_de_en"),
}


def parsed(command):
    """The arguments of a fairseq-train command as fairseq itself reads them; exits on an unknown flag."""
    words = command[1:]
    where = words.index("--user-dir")
    assert words[where + 1] == str(ROOT / "tree_fairseq")
    del words[where : where + 2]  # imported already
    return options.parse_args_and_arch(options.get_training_parser(), input_args=words)


def data_folder(place):
    """A folder that is not empty, which is all that --dry-run asks of data."""
    (place / "data").mkdir()
    (place / "data" / "some").touch()
    return place / "data"


def training(name, *arguments):
    return [command for command in printed_commands(name, *arguments) if command[0] == "fairseq-train"]


def test_every_recipe_is_here():
    found = {path.parent.name for path in EXAMPLES.glob("*/run.sh")}
    assert found == {*RECIPES, *STRUCTURAL, *CLASSIFICATION, *TREEFORMER, *INSERTION, "glue", "quickstart"}


@pytest.mark.parametrize("name", RECIPES)
def test_full_size_commands_are_fairseq_s(tmp_path, name):
    trees = ("--trees", tmp_path) if name == "iwslt13_fr_en" else ()
    data = () if name == "generated_en_de" else ("--data", data_folder(tmp_path))
    base = (*data, "--out", tmp_path / "out", *trees)
    (command,) = training(name, *base)
    arguments = parsed(command)
    convert_namespace_to_omegaconf(arguments)
    assert arguments.task == "tree_translation"
    assert arguments.arch.startswith("tree_transformer")
    assert arguments.criterion == "label_smoothed_cross_entropy" and arguments.label_smoothing == 0.1
    assert arguments.share_all_embeddings
    assert eval(arguments.adam_betas) == (0.9, 0.98)


def test_settings_are_the_paper_s(tmp_path):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out")

    def settings(name, arch):
        (command,) = training(name, *base, "--arch", arch)
        arguments = parsed(command)
        return arguments.max_update, arguments.max_tokens * arguments.update_freq[0], arguments.encoder_embed_dim

    assert settings("iwslt14_en_de", "tree_transformer_iwslt_de_en") == (60000, 4096, 512)
    assert settings("wmt14_en_de", "tree_transformer_wmt_en_de") == (200000, 32768, 512)
    assert settings("wmt14_en_de", "tree_transformer_wmt_en_de_big") == (20000, 524288, 1024)


SAMPLES = [("iwslt14_en_de", "sample"), ("iwslt14_de_en", "sample")]


@pytest.mark.parametrize(("name", "setting"), [("multi30k_en_de", "distances"), *SAMPLES])
def test_small_settings_train_tree_and_stock_models_alike(tmp_path, name, setting):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", "--setting", setting)
    (tree,), (stock,) = (training(name, *base, *more) for more in ((), ("--arch", "transformer")))
    assert (parsed(tree).arch, parsed(stock).arch) == ("tree_transformer", "transformer")
    assert parsed(tree).encoder_layers == 2 and parsed(tree).decoder_embed_dim == 128
    assert tree[1] == stock[1] and f"/out/{setting}" in tree[1]
    run = tree.index("--save-dir")
    ours, theirs = (command[command.index("--encoder-layers") : run] for command in (tree, stock))
    assert ours == theirs
    generating = [command for command in printed_commands(name, *base) if command[0] == "fairseq-generate"]
    assert {command[command.index("--max-len-a") + 1] for command in generating} == {"1.5"}


@pytest.mark.parametrize(
    ("name", "setting", "folder"),
    [("iwslt14_en_de", "sample", "/sample/data-bin"), ("multi30k_en_de", "distances", "/distances-12000/data-bin")],
)
def test_scores_by_depth_are_those_of_a_parse(tmp_path, name, setting, folder):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", "--setting", setting)

    def score(*more):
        (command,) = [each for each in printed_commands(name, *base, *more) if "score" in each]
        return command

    assert score()[score().index("--source-trees") + 1].endswith(folder)
    assert not {"--source-trees", "--depth-bounds"} & set(score("--parser", "right-branching"))


@pytest.mark.parametrize(("flags", "epochs"), [((), "8"), (("--average", 3), "3")])
def test_the_number_of_averaged_epochs_is_an_option(tmp_path, flags, epochs):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", *flags)
    (command,) = training("multi30k_en_de", *base)
    assert command[command.index("--keep-last-epochs") + 1] == epochs
    averages = [each for each in printed_commands("multi30k_en_de", *base) if each[:2] == ["tree-fairseq", "average"]]
    assert [each[each.index("--last-epochs") + 1] for each in averages] == [epochs]


@pytest.mark.parametrize(("name", "arch"), [(name, arch) for name, arches in STOCK.items() for arch in arches])
def test_baselines_build_and_share_the_folder(tmp_path, name, arch):
    (command,) = training(name, "--toy", "--out", tmp_path, "--arch", arch)
    (tree_command,) = training(name, "--toy", "--out", tmp_path)
    assert command[1] == tree_command[1]
    arguments = parsed(command)
    model = ARCH_MODEL_REGISTRY[arch].build_model(arguments, tiny_task(joined=True))
    assert sum(parameter.numel() for parameter in model.parameters()) < 100_000
    if arch.startswith("lightconv"):
        assert "DynamicConv" in repr(model) and "LightweightConv" not in repr(model)


def test_ablations_differ_in_what_they_are_named_for(tmp_path):
    commands = training("multi30k_en_de", "--toy", "--out", tmp_path, "--stage", "ablate")
    runs = {command[command.index("--save-dir") + 1].split("/")[-2]: command for command in commands}
    full = runs.pop("tree_transformer")
    assert set(runs) == {
        "tree_transformer-" + name
        for name in (
            "no-hierarchical-embeddings",
            "no-subtree-mask",
            "no-hierarchical-embeddings-no-subtree-mask",
            "no-node-cross-attention",
            "right-branching",
            "random",
        )
    }
    for name, command in runs.items():
        arguments = parsed(command)
        for flag in ("no_hierarchical_embeddings", "no_subtree_mask", "no_node_cross_attention"):
            assert getattr(arguments, flag, False) is (flag.replace("_", "-") in name)
        controls = name.endswith(("right-branching", "random"))
        assert (command[1] == full[1]) is not controls
    scores = [
        c
        for c in printed_commands("multi30k_en_de", "--toy", "--out", tmp_path, "--stage", "ablate")
        if c[1:3] == ["score", "bleu"]
    ]
    assert all("--against" in command for command in scores[1:])
    tops = {command[command.index("--main-run") + 1].rsplit("/", 1)[1] for command in scores}
    assert tops == {"tree_transformer"}
    assert sum("--attention" in command for command in scores) == 6  # all but the one without attention to nodes


@pytest.mark.parametrize(
    "name, size", [("multi30k_en_de", ""), ("iwslt14_de_en", "_iwslt_de_en"), ("wmt14_en_de", "_wmt_en_de_big")]
)
def test_controls_are_the_same_model_without_what_it_is_about(tmp_path, name, size):
    options = ("--distance-bias", "both", "--arch", f"tree_transformer{size}", "--stage", "controls")
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", *options)
    commands = {command[command.index("--save-dir") + 1].split("/")[-2]: command for command in training(name, *base)}
    found = {run: parsed(command) for run, command in commands.items()}
    tree, baseline = f"tree_transformer{size}", f"transformer_distance_bias{size}"
    controls = [f"{tree}-{parser}-both-distances" for parser in ("right-branching", "balanced", "random")]
    full = f"{tree}-both-distances"
    linear = [f"{baseline}-linear-distances", f"{tree}-linear-distances"]
    assert list(found) == [full, f"transformer{size}", *linear, *controls]
    assert [found[run].arch for run in (f"transformer{size}", *linear)] == [f"transformer{size}", baseline, tree]
    assert all(
        found[run].distance_bias == ("linear" if run in linear else "both") for run in (*linear, *controls, full)
    )
    assert not hasattr(found[f"transformer{size}"], "distance_bias")
    folders = {run: Path(command[1]).name for run, command in commands.items()}
    assert all(folders.pop(run) == f"data-bin-{run[len(tree) + 1 : -len('-both-distances')]}" for run in controls)
    assert set(folders.values()) == {"data-bin"}
    scores = [command for command in printed_commands(name, *base) if command[1:3] == ["score", "bleu"]]
    assert all(Path(each[each.index("--against") + 1]).name == full for each in scores[1:]) and len(scores) == 7


def test_stages_end_where_they_are_asked_to(tmp_path):
    def programs(stage):
        names = []
        for command in printed_commands("multi30k_en_de", "--toy", "--out", tmp_path, "--stage", stage):
            position = {"python": 2, "tree-fairseq": 1}.get(command[0], 0)
            names.append(command[position])
        return names

    assert "subword-nmt" in programs("prepare") and "fairseq-preprocess" not in programs("prepare")
    assert programs("preprocess")[-1] == "fairseq-preprocess"
    assert programs("train")[-1] == "average"
    assert programs("generate")[-1] == "fairseq-generate"
    assert programs("score")[-1] == "score"


@pytest.mark.parametrize(
    ("options", "folder"), [((), "up-to-9"), (("--setting", "distances"), "distances-12000-up-to-9")]
)
def test_training_on_short_sentences(tmp_path, options, folder):
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    (data / "train.en").touch()
    commands = printed_commands("multi30k_en_de", "--data", data, "--out", out, "--up-to", "9", *options)
    (prepare,) = [command for command in commands if "preprocess.prepare" in command]
    assert prepare[prepare.index("--up-to") + 1] == "9"
    (train,) = [command for command in commands if command[0] == "fairseq-train"]
    assert train[1] == f"{out}/{folder}/data-bin"
    assert "up_to=9" in commands[-1]


def test_generation_drops_no_sentence(tmp_path):
    commands = printed_commands("multi30k_en_de", "--toy", "--out", tmp_path)
    generations = [command for command in commands if command[0] == "fairseq-generate"]
    assert [command[command.index("--gen-subset") + 1] for command in generations] == ["test", "test1"]
    for command in generations:
        assert command[command.index("--required-batch-size-multiple") + 1] == "1"


def test_extra_arguments_reach_training_and_name_the_run(tmp_path):
    base = ("multi30k_en_de", "--toy", "--out", tmp_path)

    def run_and_end(*extra):
        (command,) = training(*base, "--", *extra)
        return command[command.index("--save-dir") + 1], command[-len(extra) :]

    plain, _ = run_and_end("--max-epoch", "3")
    assert plain.endswith("/runs/tree_transformer/checkpoints")  # longer training goes on in the same place
    seed, end = run_and_end("--seed", "2")
    assert "/runs/tree_transformer+" in seed and end == ["--seed", "2"]
    assert run_and_end("--seed", "3")[0] != seed
    assert run_and_end("--seed", "2", "--max-update", "5")[0] == seed


def test_parser_options_reach_preprocessing(tmp_path):
    (tmp_path / "models").mkdir()
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", "--stage", "preprocess")

    def flags(name, *arguments):
        command = printed_commands(name, *base, *arguments)[-1]
        assert command[0] == "fairseq-preprocess"
        return " ".join(command)

    stanza = flags("multi30k_en_de", "--parser-dir", tmp_path / "models")
    assert "--tree-parser stanza --tree-lang en" in stanza and f"--parser-dir {tmp_path / 'models'}" in stanza
    assert "--tree-lang de --tree-ssplit punct" in flags("iwslt14_de_en")
    control = flags("iwslt14_de_en", "--parser", "random")
    assert "--tree-parser random" in control and "data-bin-random" in control
    brackets = flags("iwslt13_fr_en", "--trees", tmp_path)
    assert "--tree-parser brackets" in brackets and "--bpe-codes" in brackets and "ssplit" not in brackets


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--out is needed"),
        (("--out", "x"), "--data is needed"),
        (("--out",), "--out needs a value"),
        (("--out", "x", "--toy", "--stage", "cook"), "unknown stage cook"),
        (("--out", "x", "--toy", "--subset", "many"), "--subset needs a number"),
        (("--out", "x", "--toy", "--up-to", "0"), "--up-to needs a number of words"),
        (("--out", "x", "--toy", "--fp16"), "unknown option --fp16"),
        (("--out", "OUT", "--toy", "--dry-run", "--arch", "lstm"), "no settings for --arch lstm"),
        (
            ("--out", "OUT", "--toy", "--dry-run", "--arch", "transformer", "--stage", "ablate"),
            "--stage ablate needs a tree_* architecture",
        ),
        (
            ("--out", "OUT", "--toy", "--dry-run", "--arch", "transformer", "--stage", "controls"),
            "--stage controls needs a tree_* architecture",
        ),
        (
            ("--out", "OUT", "--toy", "--dry-run", "--arch", "transformer", "--distance-bias", "linear"),
            "--distance-bias is for tree_transformer*, transformer_distance_bias* and treeformer* architectures",
        ),
        (
            ("--out", "OUT", "--toy", "--dry-run", "--distance-bias", "near"),
            "--distance-bias near: give linear tree both",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, arguments, message):
    done = recipe("multi30k_en_de", *(str(tmp_path) if word == "OUT" else word for word in arguments))
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize("option", ["--dry-run", "--help"])
def test_a_reader_may_stop_before_everything_is_printed(tmp_path, option):
    """As ``--dry-run | head`` does: the command ends, and Python has nothing to say about it."""
    options = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", option)
    done = run_without_reader("stdout", EXAMPLES / "geo/run.sh", *options)
    assert done.returncode == 0
    assert "Error" not in done.stderr and "Exception" not in done.stderr


def test_a_run_without_a_reader_does_not_say_that_it_is_done(tmp_path):
    options = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", "--stage", "prepare")
    assert run_without_reader("stderr", EXAMPLES / "geo/run.sh", *options).returncode == 128 + signal.SIGPIPE


def test_french_without_trees_says_what_is_needed(tmp_path):
    done = recipe("iwslt13_fr_en", "--data", data_folder(tmp_path), "--out", tmp_path / "out", "--dry-run")
    assert done.returncode == 1
    assert "Give --trees DIR with train.fr, valid.fr and test.fr" in done.stderr


def test_models_with_the_same_extra_flags_are_compared(tmp_path):
    for name in (
        "transformer",
        "transformer+12",
        "fconv_iwslt_de_en",
        "tree_transformer-random",
        "tree_transformer+12",
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "score.json").touch()
    (tmp_path / "runs" / "unscored").mkdir()
    settings = settings_of("multi30k_en_de", "--toy", "--out", tmp_path)
    runs = {"tree_transformer": "", "tree_transformer+12": "+12", "tree_transformer-random": ""}
    found = [compared(settings.at(extra_suffix=extra), tmp_path / "runs" / run) for run, extra in runs.items()]
    assert [" ".join(names) for names in found] == [
        "fconv_iwslt_de_en transformer",
        "transformer+12",
        "fconv_iwslt_de_en transformer",
    ]


def test_out_inside_data_is_refused(tmp_path):
    done = recipe("multi30k_en_de", "--dry-run", "--data", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 1 and "--out lies in --data" in done.stderr


def test_gpus_share_a_batch(monkeypatch):
    found = []
    for gpus in ("0", "0,1,2,3,4,5,6,7", ""):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
        found.append(" ".join(library("stages").batch_flags(32768, 4096)))
    assert found == [
        "--max-tokens 4096 --update-freq 8",
        "--max-tokens 4096 --update-freq 1",
        "--max-tokens 4096 --update-freq 8",
    ]
