"""The recipe of trees that grow by insertions: options, its README, and all of it at a tiny size."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.recipes.commands import EXAMPLES, INSERTION, printed_commands, readme, recipe
from tests.recipes.test_structural_options import named, parsed, value

DOMAINS = ("calendar", "blocks", "housing", "restaurants", "publications", "recipes", "socialnetwork", "basketball")
PLAIN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
CRITERIA = {
    "tree_insertion_transformer": "slot_kl_divergence",
    "sequence_insertion_transformer": "slot_kl_divergence",
    "insertion_left_to_right": "label_smoothed_cross_entropy",
    "tree_gru": "label_smoothed_cross_entropy",
}


def commands_of(base, *arguments):
    return printed_commands("overnight", *base, "--domain", "publications", *arguments)


def run_of(train):
    return value(train, "--save-dir").split("/")[-2]


@pytest.mark.parametrize("arch", CRITERIA)
def test_every_decoder_trains_on_the_same_folder(base, arch):
    commands = commands_of(base, "--arch", arch)
    (preprocess,), (train,) = named(commands, "fairseq-preprocess"), named(commands, "fairseq-train")
    assert value(preprocess, "--insertion-oracle") == "both" and value(preprocess, "--trajectories") == "5"
    arguments = parsed(train)
    convert_namespace_to_omegaconf(arguments)
    assert arguments.task == "tree_insertion" and arguments.criterion == CRITERIA[arch] and arguments.arch == arch
    assert (arguments.encoder_layers, arguments.encoder_embed_dim, arguments.decoder_embed_dim) == (3, 128, 128)
    assert arguments.eval_accuracy and arguments.eval_unordered == "filter call-SW:concat"
    assert arguments.best_checkpoint_metric == "accuracy" and arguments.maximize_best_checkpoint_metric
    assert (
        arguments.warmup_updates < arguments.max_update and arguments.max_update % arguments.save_interval_updates == 0
    )
    (generate,), (score,) = named(commands, "fairseq-generate"), named(commands, "score")
    assert train[1] == generate[1] == value(preprocess, "--destdir") == value(score, "--data")
    assert parsed(generate).beam == 1 and value(generate, "--path").endswith("/checkpoint_best.pt")
    assert score[score.index("--unordered") + 1 : score.index("--primary")] == ["filter", "call-SW:concat"]


@pytest.mark.parametrize("arch", CRITERIA)
def test_the_paper_s_size_comes_with_the_architecture(base, arch):
    arguments = parsed(named(commands_of(base, "--arch", f"{arch}_overnight"), "fairseq-train")[0])
    assert (arguments.encoder_layers, arguments.encoder_embed_dim, arguments.encoder_attention_heads) == (6, 768, 12)
    assert arguments.decoder_layers == (2 if arch == "tree_gru" else 6) and arguments.decoder_embed_dim == 768


@pytest.mark.parametrize(
    ("arguments", "name", "learned"),
    [
        (
            (),
            "tree_insertion_transformer-seed1",
            {"insertion_oracle": "centrality", "target_distribution": "rank", "target_temperature": 0.1},
        ),
        (
            ("--oracle", "exact"),
            "tree_insertion_transformer.exact-seed1",
            {"insertion_oracle": "exact", "target_distribution": "optimal"},
        ),
        (
            ("--arch", "sequence_insertion_transformer"),
            "sequence_insertion_transformer-seed1",
            {"sequence_supervision": "binary"},
        ),
        (
            ("--arch", "sequence_insertion_transformer", "--supervision", "uniform"),
            "sequence_insertion_transformer.uniform-seed1",
            {"sequence_supervision": "uniform"},
        ),
    ],
)
def test_what_is_learned_reaches_flags_and_names(base, arguments, name, learned):
    commands = commands_of(base, *arguments)
    (train,), (score,) = named(commands, "fairseq-train"), named(commands, "score")
    assert run_of(train) == name and {key: getattr(parsed(train), key) for key in learned} == learned
    assert any(f"learned={part}" in score for part in learned.values())


def test_domains_and_forms_have_folders_of_their_own(base):
    folders = set()
    for domain in DOMAINS:
        for simplify in ("merged", "none"):
            commands = printed_commands("overnight", *base, "--domain", domain, "--simplify", simplify)
            (prepare,), (train,) = named(commands, "preprocess.overnight"), named(commands, "fairseq-train")
            assert value(prepare, "--domain") == domain and value(prepare, "--simplify") == simplify
            assert ("--eval-unordered" in train) is (simplify == "merged") and f"/{domain}/" in train[1]
            folders.add(train[1])
    assert len(folders) == 2 * len(DOMAINS)
    assert "--primary" in (score := named(commands, "score")[0])
    assert score[score.index("--unordered") + 1] == "--primary"


def test_seeds_and_subsets(base):
    commands = commands_of(base, "--seeds", "1,2,3", "--subset", "100", "--", "--dropout", "0.3")
    trained = named(commands, "fairseq-train")
    assert [value(command, "--seed") for command in trained] == ["1", "2", "3"] and len(set(map(run_of, trained))) == 3
    assert all("/subset-100/" in command[1] and parsed(command).dropout == 0.3 for command in trained)
    assert (
        "mean_of_seeds.py" in commands[-1][1] and value(named(commands, "preprocess.overnight")[0], "--subset") == "100"
    )


def test_ablations_differ_in_what_they_are_named_for(base):
    commands = commands_of(base, "--stage", "ablate")
    runs = {
        run_of(command).removeprefix("tree_insertion_transformer"): parsed(command)
        for command in named(commands, "fairseq-train")
    }
    assert set(runs) == {
        "-seed1",
        "-temperature-1-seed1",
        "-temperature-10-seed1",
        "-one-trajectory-seed1",
        "-absolute-positions-seed1",
        "-no-child-relations-seed1",
        "-deletion-seed1",
    }
    for name, arguments in runs.items():
        assert arguments.target_temperature == {"-temperature-1-seed1": 1, "-temperature-10-seed1": 10}.get(name, 0.1)
        assert arguments.trajectories == (1 if "one" in name else None)
        assert arguments.absolute_positions is ("absolute" in name) and arguments.no_child_relations is (
            "child" in name
        )
        assert arguments.deletion is ("deletion" in name)
    full, *ablations = named(commands, "score")
    assert "--against" not in full and all(value(command, "--against") == value(full, "--run") for command in ablations)
    exact = named(commands_of(base, "--stage", "ablate", "--oracle", "exact"), "fairseq-train")
    assert len(exact) == 5 and all(parsed(command).insertion_oracle == "exact" for command in exact)


def test_several_trees_are_ranked_by_the_left_to_right_model_of_the_same_seed(base):
    arguments = ("--samples", "16", "--seeds", "2,3", "--", "--partial-states", "4")
    commands = commands_of(base, *arguments)
    trained = named(commands, "fairseq-train")
    names = [run_of(command) for command in trained]
    plain = [run_of(command) for command in named(commands_of(base, *arguments[2:]), "fairseq-train")]
    assert names[::2] == plain
    assert names[1::2] == ["insertion_left_to_right-seed2", "insertion_left_to_right-seed3"]
    assert [parsed(command).partial_states for command in trained] == [4, 1] * 2
    generated, scored = named(commands, "fairseq-generate"), named(commands, "score")
    for generate, score, own, ranking in zip(generated, scored, trained[::2], trained[1::2]):
        options = parsed(generate)
        assert (options.insertion_samples, options.insertion_temperature, options.rerank_weight) == (16, 1.5, None)
        checkpoint = f"{value(own, '--save-dir')}/checkpoint_best.pt"
        assert options.path == value(score, "--checkpoint") == checkpoint
        assert options.rerank_path == f"{value(ranking, '--save-dir')}/checkpoint_best.pt"
        assert options.results_path == value(score, "--run") and "samples=16" in score
        assert options.results_path.rsplit("/", 1)[1] not in names
        assert options.insertion_extra_steps is None
    assert len({parsed(command).results_path for command in generated}) == 2
    short = commands_of(base, *arguments[:2], "--extra-steps", "0", *arguments[2:])
    assert [run_of(command) for command in named(short, "fairseq-train")] == names
    for generate, other, score in zip(named(short, "fairseq-generate"), generated, named(short, "score")):
        assert parsed(generate).insertion_extra_steps == 0 and "extra_steps=0" in score
        assert parsed(generate).results_path == parsed(other).results_path.replace("-samples16", "-samples16-extra0")


def test_an_average_of_checkpoints_takes_the_place_of_the_best_one(base):
    commands = commands_of(base, "--average", "3", "--samples", "4")
    for train, average in zip(named(commands, "fairseq-train"), named(commands, "average")):
        assert parsed(train).keep_interval_updates == 3 and run_of(train).endswith("-average3-seed1")
        assert value(average, "--inputs") == value(train, "--save-dir") and value(average, "--last-updates") == "3"
        assert value(average, "--output") == f"{value(train, '--save-dir')}/average.pt"
    assert len(named(commands, "average")) == 2
    (generate,) = named(commands, "fairseq-generate")
    own, ranking = (value(average, "--output") for average in named(commands, "average"))
    assert (parsed(generate).path, parsed(generate).rerank_path) == (own, ranking)
    plain = commands_of(base)
    assert not named(plain, "average") and parsed(named(plain, "fairseq-train")[0]).keep_interval_updates == 1


def test_stages_end_where_they_are_asked_to(base):
    ends = {
        "prepare": "preprocess.overnight",
        "preprocess": "fairseq-preprocess",
        "train": "fairseq-train",
        "generate": "fairseq-generate",
        "score": "score",
    }
    for stage, last in ends.items():
        assert last in commands_of(base, "--stage", stage)[-1]
    (command,) = printed_commands("overnight", *base, "--stage", "bounds")
    assert command[2:4] == ["preprocess.overnight", "bounds"] and "--domain" not in command
    assert value(commands_of(base, "--stage", "bounds")[0], "--domain") == "publications"


def test_other_decoders_of_a_seed_are_compared(base, tmp_path):
    runs = tmp_path / "out" / "publications" / "runs"
    for name in (
        "tree_gru-seed1",
        "tree_gru-seed2",
        "tree_insertion_transformer.exact-seed1",
        "tree_insertion_transformer-deletion-seed1",
    ):
        (runs / name).mkdir(parents=True)
        (runs / name / "outcomes.json").touch()
    (score,) = named(commands_of(base), "score")
    against = score[score.index("--against") + 1 : score.index("--describe")]
    assert [path.rsplit("/", 1)[1] for path in against] == ["tree_gru-seed1", "tree_insertion_transformer.exact-seed1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "x", "--domain", "calendar"), "--out is needed"),
        (("--out", "x", "--domain", "calendar"), "--data is needed"),
        (("--out", "x", "--toy"), "--domain is needed: calendar blocks"),
        (("--out", "x", "--toy", "--domain", "birds"), "--domain birds: give calendar blocks"),
        (
            ("--out", "x", "--toy", "--domain", "calendar", "--oracle", "greedy"),
            "--oracle greedy: give centrality exact",
        ),
        (("--out", "x", "--toy", "--domain", "calendar", "--simplify", "all"), "--simplify all: give merged none"),
        (
            ("--out", "x", "--toy", "--domain", "calendar", "--supervision", "all"),
            "--supervision all: give binary uniform",
        ),
        (("--out", "x", "--toy", "--domain", "calendar", "--arch", "lstm"), "no settings for --arch lstm"),
        (("--out", "x", "--toy", "--domain", "calendar", "--stage", "bound"), "unknown stage bound"),
        (("--out", "x", "--toy", "--domain", "calendar", "--samples", "1"), "--samples needs a number"),
        (("--out", "x", "--toy", "--domain", "calendar", "--extra-steps", "0"), "--extra-steps is for --samples"),
        (
            ("--out", "x", "--toy", "--domain", "calendar", "--samples", "4", "--arch", "tree_gru"),
            "--samples needs a tree_insertion",
        ),
        (
            ("--out", "x", "--toy", "--domain", "calendar", "--samples", "4", "--stage", "ablate"),
            "--samples does not work with --stage ablate",
        ),
        (
            ("--out", "OUT", "--toy", "--dry-run", "--domain", "calendar", "--arch", "tree_gru", "--stage", "ablate"),
            "needs a tree_insertion",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, arguments, message):
    done = recipe("overnight", *(word.replace("OUT", str(tmp_path)) for word in arguments))
    assert done.returncode == 1 and message in done.stderr


def test_a_domain_that_is_not_there_is_named(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "calendar.paraphrases.test.examples").touch()
    done = recipe("overnight", "--data", tmp_path / "data", "--out", tmp_path / "out", "--domain", "recipes")
    assert (
        done.returncode == 1 and "recipes.paraphrases.train.examples is missing; the folder has calendar" in done.stderr
    )


# The README


def plain_commands(name):
    """The commands of fairseq and of this project that a README shows, as lists of words."""
    text = "".join(PLAIN.findall(readme(name))).replace("\\\n", " ").replace("$OUT", "OUT")
    return [shlex.split(line) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", INSERTION)
def test_plain_commands_are_those_of_the_recipe(base, name):
    shown = {command[0]: command for command in plain_commands(name)}
    assert set(shown) == {
        "fairseq-preprocess",
        "fairseq-train",
        "fairseq-generate",
        "tree-fairseq",
        "fairseq-interactive",
    }
    for command in shown.values():
        if command[0] != "tree-fairseq":
            command[command.index("--user-dir") + 1] = str(EXAMPLES.parent / "tree_fairseq")
            parsed(command)
    (train,) = named(commands_of(base, "--oracle", "exact"), "fairseq-train")
    ours, theirs = vars(parsed(train)), vars(parsed(shown["fairseq-train"]))
    own = {
        "data",
        "user_dir",
        "save_dir",
        "no_progress_bar",
        "log_file",
        "log_interval",
        "required_batch_size_multiple",
        "validate_interval",
    }
    own |= {"save_interval", "no_epoch_checkpoints"}
    assert {key: ours[key] for key in ours if key not in own} == {key: theirs[key] for key in theirs if key not in own}


# From end to end


def test_a_domain_from_end_to_end(tmp_path):
    done = recipe("overnight", "--toy", "--domain", "recipes", "--out", tmp_path, "--workers", "1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert (
        result["score"] == result["accuracy_unordered"] and 1 <= result["steps"] <= 50 and 0 <= result["validity"] <= 1
    )
    assert set(result["partial"]) == {"test"} and result["sentences"] == {"test": 15}
    described = {"recipe": "overnight", "domain": "recipes", "learned": "centrality", "simplify": "merged", "seed": "1"}
    assert result["description"] | described == result["description"]
    again = recipe(
        "overnight", "--toy", "--domain", "recipes", "--out", tmp_path, "--workers", "1", "--stage", "generate"
    )
    assert again.stderr.count("done before") == 4  # prepare, preprocess, train, generate
    ranked = recipe("overnight", "--toy", "--domain", "recipes", "--out", tmp_path, "--workers", "1", "--samples", "3")
    assert ranked.returncode == 0, ranked.stdout[-2000:] + ranked.stderr[-3000:]
    assert "train-tree_insertion_transformer-seed1: done before" in ranked.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["description"]["run"] == "tree_insertion_transformer-samples3-seed1"
    assert result["description"]["samples"] == "3" and result["sentences"] == {"test": 15}


def test_original_forms_from_left_to_right(tmp_path):
    arguments = (
        "--toy",
        "--domain",
        "blocks",
        "--simplify",
        "none",
        "--arch",
        "insertion_left_to_right",
        "--workers",
        "1",
    )
    done = recipe("overnight", *arguments, "--out", tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["accuracy"] == result["accuracy_unordered"] == result["score"]
    assert (tmp_path / "blocks" / "original" / "text" / "test.lf").read_text().startswith("( call edu.stanford.")
