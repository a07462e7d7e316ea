"""What the recipes of classification accept, refuse and would run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.utils import parse_embedding

from tests.recipes.commands import (
    CLASSIFICATION,
    EXAMPLES,
    compared,
    library,
    printed_commands,
    readme,
    recipe,
    settings_of,
)
from tests.recipes.test_structural_options import named, parsed, value

TREES = ("sst2", "sst5")
DOCUMENTS = ("imdb", "movie_reviews")
EPOCHS = {"sst5": 20, "sst2": 20, "sva": 18, "movie_reviews": 6}
ARCHITECTURES = (
    "tree_transformer_classifier_tiny",
    "tree_lstm_classifier_tiny",
    "transformer_classifier_tiny",
    "lstm_classifier_tiny",
)
ATTRACTORS = ("--grammar", "--repeat-attractors", "--valid-attractors")
PLAIN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_full_size_commands_are_fairseq_s_and_the_paper_s(base, name):
    commands = printed_commands(name, *base)
    (train,) = named(commands, "fairseq-train")
    arguments = parsed(train)
    convert_namespace_to_omegaconf(arguments)
    assert arguments.task == arguments.criterion == "tree_classification"
    # those whose tables have other flags than the paper train for so many epochs
    assert (arguments.max_update, arguments.max_epoch) == ((0, EPOCHS[name]) if name in EPOCHS else (15000, 0))
    assert (arguments.encoder_layers, arguments.encoder_embed_dim, arguments.encoder_attention_heads) == (2, 64, 4)
    assert (
        arguments.max_tokens == (4096 if name in DOCUMENTS else 2000) >= arguments.max_source_positions
        or name not in DOCUMENTS
    )
    assert arguments.best_checkpoint_metric == "accuracy" and arguments.maximize_best_checkpoint_metric
    (generate,) = named(commands, "fairseq-generate")
    assert generate[1] == train[1] and value(generate, "--path").endswith("/checkpoint_best.pt")
    assert parsed(generate).max_source_positions == arguments.max_source_positions
    (score,) = named(commands, "score")
    assert value(score, "--references").endswith("/text") and value(score, "--checkpoint") == value(generate, "--path")
    assert not named(commands, "average")


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_preprocessing(base, name):
    (command,) = named(printed_commands(name, *base), "fairseq-preprocess")
    parsed(command)
    assert value(command, "--input-format") == ("trees" if name in TREES else "tsv")
    assert ("--tree-parser" in command) is (name not in TREES)
    assert ("--tree-ssplit" in command) is (name in DOCUMENTS)
    assert int(value(command, "--thresholdsrc")) >= 2


def test_sentences_without_trees_are_parsed(base, tmp_path):
    (tmp_path / "data" / "train.tsv").touch()
    (command,) = named(printed_commands("sst2", *base, "--parser-dir", tmp_path), "fairseq-preprocess")
    assert value(command, "--input-format") == "tsv" and value(command, "--tree-parser") == "stanza"
    assert value(command, "--parser-dir") == str(tmp_path)


def test_symbols_of_nodes_have_a_folder_of_their_own(base):
    commands = printed_commands("sst5", *base, "--node-symbols", "parser")
    (command,) = named(commands, "fairseq-preprocess")
    assert value(command, "--node-symbols") == "parser" and value(command, "--tree-parser") == "stanza"
    assert value(command, "--destdir").endswith("/data-bin-symbols-parser")
    assert "tiny-symbols-parser-seed1" in value(named(commands, "fairseq-train")[0], "--save-dir")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("size", [("--toy",), ("--data", EXAMPLES)])
def test_all_architectures_share_a_folder(tmp_path, size, arch):
    (train,) = named(printed_commands("sst5", *size, "--out", tmp_path, "--arch", arch), "fairseq-train")
    assert parsed(train).arch == arch
    assert train[1].endswith("data-bin") and f"/runs/{arch}-seed1/" in value(train, "--save-dir")


def test_folds_have_folders_of_their_own(base):
    commands = printed_commands("movie_reviews", *base, "--fold", "7")
    (prepare,) = named(commands, "preprocess.classification")
    assert value(prepare, "--fold") == "7" and value(prepare, "--output").endswith("/fold-7/text")
    assert "/fold-7/runs/" in value(named(commands, "fairseq-train")[0], "--save-dir")
    assert value(named(commands, "fairseq-preprocess")[0], "--parse-cache").endswith("/out/parse-cache")


def test_agreement_is_looked_for_where_it_is_asked_to(base, tmp_path):
    (tmp_path / "gum").mkdir()
    (tmp_path / "more.txt").touch()
    flags = ("--training-text", f"{tmp_path}/gum,{tmp_path}/more.txt", "--parser-dir", tmp_path)
    commands = printed_commands("sva", *base, *flags)
    (prepare,) = named(commands, "preprocess.agreement")
    where = prepare.index("--training")
    assert prepare[where + 1 : where + 3] == [f"{tmp_path}/gum", f"{tmp_path}/more.txt"] and value(
        prepare, "--parser-dir"
    ) == str(tmp_path)
    score = named(commands, "score")[0]
    assert score[score.index("--group-metrics") + 1] == "attractors_0"
    assert "--training" not in named(printed_commands("sva", *base), "preprocess.agreement")[0]


def test_agreement_is_generated_and_validated_as_it_is_asked_for(base):
    flags = ("--grammar", "1200", "--repeat-attractors", "3", "--valid-attractors", "200")
    prepare = named(printed_commands("sva", *base, *flags), "preprocess.agreement")[0]
    assert prepare[prepare.index("--grammar") :] == list(flags)
    plain = named(printed_commands("sva", *base), "preprocess.agreement")[0]
    assert not set(flags) & set(plain)


def test_agreement_is_tested_on_generated_sentences_too(base, tmp_path):
    (tmp_path / "more.txt").touch()
    commands = printed_commands("sva", *base, "--training-text", tmp_path / "more.txt", "--generated-test", "500")
    assert value(named(commands, "preprocess.agreement")[0], "--generated-test") == "500"
    tests = value(named(commands, "fairseq-preprocess")[0], "--testpref").split(",")
    assert [Path(path).name for path in tests] == ["test", "test1"]
    assert [value(command, "--gen-subset") for command in named(commands, "fairseq-generate")] == ["test", "test1"]
    score = named(commands, "score")[0]
    assert score[score.index("--sets") + 1 :][:2] == ["test=", "test1=generated"]


def agreement(base, *options):
    """The flags of preparing for attractors, the subwords, and the folder that is trained on."""
    commands = printed_commands("sva", *base, *options)
    (prepare,), (preprocess,) = named(commands, "preprocess.agreement"), named(commands, "fairseq-preprocess")
    flags = [value(prepare, name) if name in prepare else None for name in ATTRACTORS]
    merges = value(preprocess, "--learn-subwords") if "--learn-subwords" in preprocess else None
    return flags, merges, Path(named(commands, "fairseq-train")[0][1]).name


def test_training_text_has_the_settings_of_the_agreement_tables(base, tmp_path):
    (tmp_path / "more.txt").touch()
    text = ("--training-text", tmp_path / "more.txt")
    table = json.loads((EXAMPLES / "results" / "sva_attractors.json").read_text())["options"].split(" --workers")[0]
    assert printed_commands("sva", *base, *text) == printed_commands("sva", *base, *text, *table.split())
    assert agreement(base, *text) == (["12000", "3", "200"], "1000", "data-bin-subwords-1000")
    assert agreement(base, *text, "--grammar", "500")[0] == ["500", "3", "200"]
    # words, of which there are vectors
    assert agreement(base, *text, "--vectors", "64") == (["12000", "3", "200"], None, "data-bin-vectors-64")


def test_settings_of_the_agreement_tables_are_switched_off(base, tmp_path):
    (tmp_path / "more.txt").touch()
    text = ("--training-text", tmp_path / "more.txt")
    off = ("--grammar", "0", "--repeat-attractors", "1", "--valid-attractors", "0", "--subwords", "0")
    assert agreement(base, *text, *off) == (["0", "1", "0"], None, "data-bin")
    assert agreement(base, "--vectors", "8", "--subwords", "0") == ([None] * 3, None, "data-bin-vectors-8")
    nothing = ([None] * 3, None, "data-bin")
    assert agreement(base) == agreement(base, "--toy", *text) == nothing


def test_models_of_the_same_subwords_are_compared(base, tmp_path):
    names = (
        "lstm_x-subwords-1000-seed1",
        "lstm_x-seed1",
        "lstm_x-random-subwords-1000-seed1",
        "lstm_x-subwords-9-seed1",
    )
    for name in names:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "outcomes.json").touch()
    text = ("--training-text", tmp_path)
    assert compared(settings_of("sva", *base, *text).at(run_seed="1"), tmp_path / "runs" / "x") == [names[0]]
    assert compared(settings_of("sva", *base).at(run_seed="1"), tmp_path / "runs" / "x") == [names[1]]


def test_subwords_have_a_folder_of_their_own(base):
    commands = printed_commands("sva", *base, "--subwords", "1000")
    (command,) = named(commands, "fairseq-preprocess")
    assert value(command, "--learn-subwords") == "1000"
    assert value(command, "--destdir").endswith("/data-bin-subwords-1000")
    assert "-subwords-1000-seed1/" in value(named(commands, "fairseq-train")[0], "--save-dir")
    assert "--learn-subwords" not in named(printed_commands("sva", *base), "fairseq-preprocess")[0]


def test_word_vectors_have_a_folder_of_their_own(base, tmp_path):
    (tmp_path / "more.txt").touch()
    commands = printed_commands("sst5", *base, "--vectors", "32", "--vector-texts", tmp_path / "more.txt")
    (vectors,), (train,) = named(commands, "preprocess.word_vectors"), named(commands, "fairseq-train")
    where = vectors.index("--texts")
    assert vectors[where + 1].endswith("/text/train.trees") and vectors[where + 2] == str(tmp_path / "more.txt")
    assert value(vectors, "--dictionary").endswith("/data-bin-vectors-32/dict.text.txt")
    assert value(vectors, "--output") == value(train, "--encoder-embed-path") and "-vectors-32-seed1/" in value(
        train, "--save-dir"
    )
    assert "--encoder-embed-path" not in named(printed_commands("sst5", *base), "fairseq-train")[0]


def test_averages_have_runs_of_their_own(base):
    commands = printed_commands("sst5", *base, "--average", "5")
    (train,), (average,) = named(commands, "fairseq-train"), named(commands, "average")
    assert (
        value(train, "--keep-last-epochs") == value(average, "--last-epochs") == "5"
        and "--no-epoch-checkpoints" not in train
    )
    assert "-average5-seed1/" in value(train, "--save-dir")
    assert value(named(commands, "fairseq-generate")[0], "--path") == value(average, "--output")


def test_every_seed_has_a_run_and_the_means_come_last(base):
    commands = printed_commands("sst2", *base, "--seeds", "1,2,3", "--", "--dropout", "0.3")
    trained = named(commands, "fairseq-train")
    runs = [value(command, "--save-dir").removesuffix("/checkpoints") for command in trained]
    assert [value(command, "--seed") for command in trained] == ["1", "2", "3"] and len(set(runs)) == 3
    assert parsed(trained[1]).dropout == 0.3 and "-seed2+" in runs[1]
    assert "mean_of_seeds.py" in commands[-1][1] and commands[-1][-3:] == runs
    assert {value(command, "--main-run") for command in named(commands, "score")} == {runs[0]}


TABLE_3 = {"-no-hierarchical-embeddings", "-no-subtree-mask", "-no-hierarchical-embeddings-no-subtree-mask"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("sst5", {"-label-nodes-root"}),
        ("sva", {"-right-branching", "-random"}),
        (
            "movie_reviews",
            {"-leaf-attention-sentence", "-document-root-first", "-document-root-super", "-right-branching", "-random"},
        ),
    ],
)
def test_ablations_differ_in_what_they_are_named_for(base, name, more):
    commands = printed_commands(name, *base, "--stage", "ablate")
    runs = {
        value(command, "--save-dir").split("/")[-2].removeprefix("tree_transformer_classifier_tiny"): command
        for command in named(commands, "fairseq-train")
    }
    assert set(runs) == {f"{variant}-seed1" for variant in ({""} | TABLE_3 | more)}
    for variant, command in runs.items():
        arguments = parsed(command)
        assert arguments.no_hierarchical_embeddings is ("hierarchical" in variant)
        assert arguments.no_subtree_mask is ("subtree" in variant)
        assert (str(arguments.label_nodes) == "root") is ("label-nodes" in variant)
        assert (str(arguments.leaf_attention) == "sentence") is ("leaf-attention" in variant)
        default = "mean" if name == "movie_reviews" else "first"
        assert str(arguments.document_root) == (
            variant.removeprefix("-document-root-").removesuffix("-seed1") if "document-root" in variant else default
        )
        assert command[1].endswith("data-bin") is not any(control in variant for control in ("branching", "random"))
    full, *ablations = named(commands, "score")
    assert "--against" not in full and all(value(command, "--against") == value(full, "--run") for command in ablations)


@pytest.mark.parametrize(
    ("arch", "texts", "tokens", "epochs", "rate"),
    [
        ("tree_transformer_classifier_tiny", None, 4096, 6, 1e-3),
        ("tree_lstm_classifier_tiny", None, 4096, 6, 1e-3),
        ("transformer_classifier_tiny", None, 4096, 6, 1e-3),
        ("lstm_classifier_tiny", 32, 60000, 12, 2e-3),
    ],
)
def test_movie_reviews_have_the_settings_of_their_table(base, arch, texts, tokens, epochs, rate):
    [command] = named(printed_commands("movie_reviews", *base, "--arch", arch), "fairseq-train")
    arguments = parsed(command)
    assert (arguments.batch_size, arguments.max_tokens) == (texts, tokens)
    assert (arguments.max_epoch, arguments.lr) == (epochs, [rate])
    assert ("--document-root" in command) is arch.startswith("tree_")
    assert not arch.startswith("tree_") or str(arguments.document_root) == "mean"


def test_stages_end_where_they_are_asked_to(base):
    ends = {
        "prepare": "preprocess.classification",
        "preprocess": "fairseq-preprocess",
        "train": "fairseq-train",
        "generate": "fairseq-generate",
        "score": "score",
    }
    for stage, last in ends.items():
        assert last in printed_commands("sst5", *base, "--stage", stage)[-1]


def test_averaged_runs_are_compared_with_averaged_ones(tmp_path):
    for name in ("lstm_x-seed1", "lstm_x-average5-seed1", "tree_x-average5-seed1", "tree_x-random-average5-seed1"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "outcomes.json").touch()
    averaged = settings_of("sst5", "--toy", "--out", tmp_path, "--average", "5").at(run_seed="1")
    single = settings_of("sst5", "--toy", "--out", tmp_path).at(run_seed="1")
    runner = library("runner").Runner(averaged.at(arch="tree_x"), dry_run=True)
    ablation = runner.settings.at(run_seed="1", comparing="ablate", run=str(tmp_path / "runs" / "tree_x-random"))
    found = [
        *compared(averaged, tmp_path / "runs" / "tree_x-average5-seed1"),
        *compared(single, tmp_path / "runs" / "tree_x-seed1"),
        *(Path(run).name for run in runner.others(ablation, tmp_path / "runs" / "tree_x-random")),
    ]
    assert found == ["lstm_x-average5-seed1", "lstm_x-seed1", "tree_x-average5-seed1"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sst5", (), "--out is needed"),
        ("sst5", ("--out", "x"), "--data is needed"),
        ("sst5", ("--out", "x", "--toy", "--fold", "1"), "unknown option --fold"),
        ("sst5", ("--out", "x", "--toy", "--parser", "charniak"), "--parser charniak: give stanza"),
        ("sst5", ("--out", "x", "--toy", "--node-symbols", "gold"), "--node-symbols gold: give constant parser"),
        ("sst5", ("--out", "x", "--toy", "--seed", "1", "--seeds", "1,2"), "give --seed or --seeds, not both"),
        ("sst5", ("--out", "x", "--toy", "--average", "some"), "--average needs a number"),
        ("sst5", ("--out", "x", "--toy", "--arch", "transformer"), "no settings for --arch transformer"),
        (
            "sst5",
            ("--out", "OUT", "--toy", "--dry-run", "--arch", "lstm_classifier", "--stage", "ablate"),
            "--stage ablate needs a tree_transformer",
        ),
        ("movie_reviews", ("--out", "x", "--toy", "--fold", "11"), "--fold 11: give a number from 1 to 10"),
        ("sva", ("--out", "x", "--toy", "--training-text", "nowhere"), "--training-text: there is no nowhere"),
        ("sst5", ("--out", "x", "--toy", "--vectors", "0"), "--vectors needs a number"),
        ("sst5", ("--out", "x", "--toy", "--vector-texts", "x"), "--vector-texts is for --vectors N"),
        ("sva", ("--out", "x", "--toy", "--vectors", "8", "--subwords", "9"), "leave out --subwords"),
        ("sva", ("--out", "x", "--toy", "--repeat-attractors", "0"), "--repeat-attractors needs a number"),
        ("glue", ("--out", "x", "--toy", "--glue-task", "cola", "--vectors", "8"), "leave out --vectors"),
    ],
)
def test_mistakes_are_named(tmp_path, name, arguments, message):
    done = recipe(name, *(word.replace("OUT", str(tmp_path)) for word in arguments))
    assert done.returncode == 1
    assert message in done.stderr


# --- READMEs --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_plain_commands_are_fairseq_s(name):
    text = "".join(PLAIN.findall(readme(name))).replace("\\\n", " ").replace("$OUT", "OUT")
    commands = [shlex.split(line) for line in text.splitlines() if line.strip()]
    assert "fairseq-preprocess" in {command[0] for command in commands}
    for command in commands:
        if command[0].startswith("fairseq-"):
            command[command.index("--user-dir") + 1] = str(EXAMPLES.parent / "tree_fairseq")
            assert parsed(command).task == "tree_classification"


# --- from end to end --------------------------------------------------------------------------------


def result_of(out):
    return json.loads((out / "result.json").read_text())


def test_trees_from_end_to_end(tmp_path):
    done = recipe("sst5", "--toy", "--out", tmp_path, "--workers", "1", "--average", "2")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = result_of(tmp_path)
    assert result["score"] == result["accuracy"] and result["metric"] == "accuracy"
    assert sum(map(sum, result["confusion"]["test"]["counts"])) == result["sentences"]["test"] == 15
    assert result["description"] | {"recipe": "sst5", "seed": "1", "data": "data-bin"} == result["description"]
    again = recipe("sst5", "--toy", "--out", tmp_path, "--workers", "1", "--average", "2", "--stage", "generate")
    assert again.stderr.count("done before") == 4  # prepare, preprocess, train, generate


def test_word_vectors_from_end_to_end(tmp_path):
    options = ("--toy", "--out", tmp_path, "--workers", "1", "--vectors", "8", "--stage", "train")
    options += ("--", "--encoder-embed-dim", "8")
    done = recipe("sst5", *options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    folder = tmp_path / "data-bin-vectors-8"
    dictionary = Dictionary.load(str(folder / "dict.text.txt"))
    (checkpoint,) = tmp_path.glob("runs/*-vectors-8-seed1+*/checkpoints/checkpoint_best.pt")
    table = load_checkpoint_to_cpu(str(checkpoint))["model"]["encoder.embed_tokens.weight"]
    vectors = parse_embedding(str(folder / "vectors.txt"))
    assert set(vectors) == {word for word in dictionary.symbols[dictionary.nspecial :] if "madeupword" not in word}
    # a few updates have moved them a little
    assert all((table[dictionary.index(word)] - vector).abs().max() < 0.05 for word, vector in vectors.items())
    assert recipe("sst5", *options).stderr.count("done before") == 3
    (tmp_path / "more.txt").write_text("another text\n", encoding="utf-8")
    more = ("--vector-texts", tmp_path / "more.txt")
    again = recipe("sst5", *options[: options.index("--stage")], *more, "--stage", "preprocess")
    assert re.findall(r"(\w+): done before", again.stderr) == ["prepare"]


def test_agreement_from_end_to_end(tmp_path):
    done = recipe("sva", "--toy", "--out", tmp_path, "--workers", "1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = result_of(tmp_path)
    groups = result["groups"]["test"]
    assert sum(row["sentences"] for row in groups.values()) == 15
    assert all(result[f"accuracy_{name}"] == row["accuracy"] for name, row in groups.items())


def test_documents_from_end_to_end(tmp_path):
    done = recipe(
        "movie_reviews", "--toy", "--out", tmp_path, "--workers", "1", "--arch", "transformer_classifier_tiny"
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = result_of(tmp_path)
    assert result["description"]["variant"] == "fold-1" and result["confusion"]["test"]["classes"] == [
        "negative",
        "positive",
    ]
