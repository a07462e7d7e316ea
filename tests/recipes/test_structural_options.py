"""What the recipes of programs and logical forms accept, refuse and would run."""

from __future__ import annotations

import re

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import tree_fairseq  # noqa: F401  registers tasks and architectures
from tests.recipes.commands import ROOT, STRUCTURAL, compared, library, printed_commands, recipe, settings_of

SEMANTIC_PARSING = ("geo", "atis", "jobs", "ifttt")
TREE_TO_TREE = ("active_logical", "coffeescript_javascript", "for2lam")
SETTINGS = {
    "for2lam": ("SMALL", "SYN-S", "SYN-L"),
    "coffeescript_javascript": ("SMALL",)
    + tuple(f"{way}-{names}-{size}" for way in ("CJ", "JC") for names in "AB" for size in ("short", "long")),
    "active_logical": ("both", "logical-active", "active-logical"),
}
PARSERS = {"fairseq-train": options.get_training_parser, "fairseq-generate": options.get_generation_parser}


def parsed(command):
    """The arguments of a command as fairseq itself reads them; exits on an unknown flag."""
    words = command[1:]
    where = words.index("--user-dir")
    assert words[where + 1] == str(ROOT / "tree_fairseq")
    del words[where : where + 2]  # imported already
    if command[0] == "fairseq-preprocess":
        return options.get_preprocessing_parser().parse_args(words)
    parser = PARSERS.get(command[0], options.get_interactive_generation_parser)(default_task="translation")
    return options.parse_args_and_arch(parser, input_args=words)


def value(command, flag):
    return command[command.index(flag) + 1]


def named(commands, name):
    return [command for command in commands if name in command[0] or name in command[1:4]]


def commands_of(name, base, *arguments):
    """Generated programs are asked for where the recipe has some."""
    return printed_commands(
        name, *(base if name in SEMANTIC_PARSING or name == "active_logical" else base[2:]), *arguments
    )


@pytest.mark.parametrize("name", STRUCTURAL)
def test_full_size_commands_are_fairseq_s_and_the_paper_s(base, name):
    commands = commands_of(name, base)
    (train,) = named(commands, "fairseq-train")
    arguments = parsed(train)
    convert_namespace_to_omegaconf(arguments)
    assert arguments.task == "structural_translation"
    assert (
        arguments.batch_size == (64 if name in ("geo", "atis", "jobs") else 128)
        and arguments.clip_norm == 10
        and arguments.optimizer == "adam"
    )
    assert (arguments.encoder_layers, arguments.decoder_layers, arguments.encoder_embed_dim) == (4, 4, 256)
    assert arguments.encoder_ffn_embed_dim == (1024 if name in SEMANTIC_PARSING else 512)
    assert arguments.tree_position_dim == 2048 and arguments.tree_levels == 32
    assert arguments.keep_last_epochs * arguments.save_interval <= arguments.max_epoch
    for command in named(commands, "fairseq-generate"):
        assert command[1] == train[1] and parsed(command).beam == 5
    (score,) = named(commands, "score")
    assert value(score, "--data") == train[1] and "--symbols" not in score


@pytest.mark.parametrize("name", ["geo", "atis", "jobs"])
@pytest.mark.parametrize("arch", ["tree_positional_transformer_semantic_parsing", "transformer_semantic_parsing"])
def test_more_pairs_have_a_folder_of_their_own_and_are_the_same_for_all_models(base, name, arch):
    flags = ("--recombine", "300", "--permute", "20", "--score-on", "valid", "--keep-valid", "no", "--arch", arch)
    commands = commands_of(name, base, *flags)
    (prepare,), (train,) = (named(commands, each) for each in ("preprocess.semantic_parsing", "fairseq-train"))
    kinds = "entities,concat2" if name == "atis" else "entities,phrases,concat2"
    assert [value(prepare, flag) for flag in ("--recombine", "--permute", "--recombine-by")] == ["300", "20", kinds]
    assert "/recombine-300/permute-20" in value(prepare, "--output") and "/recombine-300/permute-20" in train[1]
    assert int(value(train, "--max-update")) >= 2000 and "--max-epoch" not in train
    (generate,) = named(commands, "fairseq-generate")
    assert value(generate, "--gen-subset") == "valid"
    (test,) = [command for command in commands if "--testpref" in command]
    assert value(test, "--testpref").endswith("/text/test")


def test_cogs_has_a_setting_of_trees(base):
    for arch, task in (
        ("tree_positional_transformer_semantic_parsing", "structural_translation"),
        ("transformer_semantic_parsing", "translation"),
        ("treeformer_cogs", "translation"),
    ):
        commands = printed_commands("cogs", *base, "--setting", "trees", "--arch", arch)
        assert {parsed(command).beam for command in named(commands, "fairseq-generate")} == {1}
        (average,) = named(commands, "average")
        assert value(average, "--inputs").endswith("/checkpoint_last.pt") and "--last-epochs" not in average
        (train,), (score,) = named(commands, "fairseq-train"), named(commands, "score")
        arguments = parsed(train)
        assert (arguments.arch, arguments.task, arguments.max_update) == (arch, task, 30_000)
        assert (arguments.encoder_layers, arguments.decoder_embed_dim) == (2, 256)
        assert arguments.criterion == "cross_entropy" and not hasattr(arguments, "label_smoothing")
        (preprocess,) = named(commands, "fairseq-preprocess")
        assert value(preprocess, "--target-notation") == "variable-free"
        assert [path.rpartition("/")[2] for path in value(preprocess, "--testpref").split(",")] == [
            "test",
            "test1",
            "test2",
        ]
        assert value(score, "--primary") == "accuracy_generalization" and "test2=generalization" in score
        assert "--all-arities" in preprocess and "--joined-dictionary" in preprocess
        assert arguments.share_all_embeddings and getattr(arguments, "factored_symbols", None) in (None, "tree" in arch)


def test_cogs_is_read_as_parses_where_asked(base):
    flags = ("--setting", "trees", "--parser", "right-branching")
    commands = printed_commands("cogs", *base, *flags)
    (preprocess,), (train,) = named(commands, "fairseq-preprocess"), named(commands, "fairseq-train")
    arguments = parsed(preprocess)
    assert (arguments.source_modality, arguments.tree_parser) == ("constituency", "right-branching")
    assert (arguments.target_modality, arguments.target_notation) == ("tree", "variable-free")
    assert arguments.all_arities and train[1].endswith("/data-bin-right-branching")
    refused = recipe("cogs", *base, *flags, "--arch", "transformer_semantic_parsing", "--dry-run")
    assert refused.returncode == 1 and "--parser is for tree_positional_transformer* architectures" in refused.stderr


def test_cogs_exchanges_phrases_for_every_model(base):
    flags = ("--setting", "trees", "--substitute", "300")
    folders = set()
    for more_options in ((), ("--text", "raw", "--arch", "transformer_semantic_parsing")):
        commands = printed_commands("cogs", *base, *flags, "--parser-dir", base[1], *more_options)
        (parse,), (more,) = named(commands, "parse"), named(commands, "preprocess.subtree_substitution")
        assert value(parse, "--parser-dir") == base[1] and value(more, "--parses") == parse[3]
        assert (value(more, "--count"), value(more, "--longest"), value(more, "--notation")) == (
            "300",
            "60",
            "variable-free",
        )
        folders.add(value(more, "--text"))
    (folder,) = folders
    assert folder.endswith("/trees/substitute-300-60/text")
    longer = printed_commands("cogs", *base, *flags, "--substitute-longest", "20")
    assert value(named(longer, "preprocess.subtree_substitution")[0], "--longest") == "20"

    def key(*more):
        settings = settings_of("cogs", *base, "--setting", "trees", *more)
        return library("runner").key_of(settings, settings.raw("prepare_key"))

    # Another parser finds other phrases, so the pairs are made again; without further pairs it changes nothing here.
    assert key("--substitute", "300", "--parser-dir", base[1]) != key("--substitute", "300")
    assert key("--parser", "stanza", "--parser-dir", base[1]) == key("--parser", "stanza")
    for wrong, message in (
        (("--substitute-longest", "20"), "--substitute-longest is for --substitute"),
        (("--substitute", "many"), "--substitute needs a number of pairs"),
    ):
        refused = recipe("cogs", *base, "--setting", "trees", *wrong, "--dry-run")
        assert refused.returncode == 1 and message in refused.stderr


def test_sequence_positions_are_for_tree_positions(base):
    def train(name, *flags):
        (command,) = named(printed_commands(name, *base, *flags), "fairseq-train")
        return command

    with_them, plain = train("geo", "--sequence-positions", "yes"), train("geo")
    assert parsed(with_them).sequence_positions and "-sequence-positions-yes-seed1/" in value(with_them, "--save-dir")
    assert not parsed(plain).sequence_positions and "-sequence-" not in value(plain, "--save-dir")
    refused = recipe("geo", *base, "--sequence-positions", "yes", "--arch", "transformer_semantic_parsing", "--dry-run")
    assert refused.returncode == 1 and "--sequence-positions is for tree_positional_transformer*" in refused.stderr


def test_cogs_has_positions_of_the_sequence_and_narrow_ones_in_the_tree(base):
    def train(*flags):
        (command,) = named(printed_commands("cogs", *base, "--setting", "trees", *flags), "fairseq-train")
        return command

    assert parsed(train()).sequence_positions and parsed(train()).tree_position_dim == 256
    assert parsed(train("--parser", "stanza")).tree_position_dim == 384
    without = train("--sequence-positions", "no")
    assert not parsed(without).sequence_positions and "-sequence-positions-no-seed1/" in value(without, "--save-dir")
    assert train("--text", "raw", "--arch", "transformer_semantic_parsing")


@pytest.mark.parametrize(
    ("name", "flags", "sets"),
    [
        ("for2lam", ("--longer", "50"), ["test=", "test1=longer"]),
        ("for2lam", ("--setting", "SMALL", "--up-to", "28"), ["test=", "test1=larger"]),
        ("coffeescript_javascript", ("--setting", "JC-B-short", "--longer", "50"), ["test=", "test1=longer"]),
        ("active_logical", ("--deeper", "50"), ["test=", "test1=new_words", "test2=deeper"]),
        ("active_logical", ("--up-to", "21"), ["test=", "test1=new_words", "test2=larger"]),
    ],
)
def test_sets_beyond_training_are_scored_by_size_for_both_models(base, name, flags, sets):
    for arch in ("tree_positional_transformer_program_translation", "transformer_program_translation"):
        commands = commands_of(name, base, *flags, "--arch", arch)
        (score,) = named(commands, "score")
        where = score.index("--sets") + 1
        assert score[where : where + len(sets)] == sets and "--size-bounds" in score and "--depth-bounds" in score
        generated = [value(command, "--gen-subset") for command in named(commands, "fairseq-generate")]
        assert generated == [each.partition("=")[0] for each in sets]
        (train,) = named(commands, "fairseq-train")
        assert "/".join(flags[-2:]).lstrip("-").replace("/", "-") in train[1]
    longer = named(commands, "preprocess.programs")[1:]
    assert len(longer) == ("--longer" in flags)
    if longer:
        assert value(longer[0], "--setting") == {"for2lam": "SYN-L"}.get(name, "B-long")
        assert value(longer[0], "--test-as") == "test1"


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("geo", ("--arch", "lstm", "--query-position", "no"), "--query-position is for tree_positional_transformer"),
        ("geo", ("--up-to", "20"), "--up-to is for recipes whose sources and targets are trees"),
        ("for2lam", ("--setting", "SYN-L", "--longer", "5"), "--longer is for the settings of short programs"),
        ("for2lam", ("--longer", "5", "--up-to", "20"), "give --longer or --up-to, not both"),
        ("active_logical", ("--deeper", "5", "--up-to", "20"), "give --deeper or --up-to, not both"),
        ("geo", ("--recombine", "5", "--recombine-by", "all"), "--recombine-by needs some of entities"),
    ],
)
def test_options_of_further_data_that_do_not_go_together(base, name, flags, message):
    data = base if name in (*SEMANTIC_PARSING, "active_logical") else base[2:]
    done = recipe(name, *data, *flags, "--dry-run")
    assert done.returncode == 1 and message in done.stderr


@pytest.mark.parametrize("name", SEMANTIC_PARSING)
def test_rare_words_are_unknown(base, name):
    (command,) = named(commands_of(name, base), "fairseq-preprocess")
    assert value(command, "--thresholdsrc") == ("5" if name == "ifttt" else "2")
    assert "--source-modality" not in command and value(command, "--target-modality") == "tree"
    assert value(command, "--target-notation") == ("prolog" if name == "jobs" else "bracket")


@pytest.mark.parametrize("name", ["for2lam", "coffeescript_javascript"])
def test_a_first_look_gives_both_models_the_same_sizes_and_updates(base, name):
    found = []
    for arch in ("tree_positional_transformer_program_translation", "transformer_program_translation"):
        commands = commands_of(name, base, "--setting", "SMALL", "--arch", arch)
        (prepare,), (train,) = named(commands, "preprocess.programs"), named(commands, "fairseq-train")
        options = parsed(train)
        sizes = (options.encoder_layers, options.decoder_layers, options.encoder_embed_dim, options.decoder_embed_dim)
        updates = (options.batch_size, options.max_epoch, options.warmup_updates, options.lr, options.dropout)
        found.append((sizes, updates, value(prepare, "--train"), value(prepare, "--test")))
        assert getattr(options, "query_position", False) == arch.startswith("tree")
    assert found == 2 * [((2, 2, 128, 128), (64, 10, 200, [1e-3], 0.1), "5000", "500")]


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name, settings in SETTINGS.items() for setting in settings]
)
def test_settings_have_folders_of_their_own(base, name, setting):
    commands = commands_of(name, base, "--setting", setting)
    (train,) = named(commands, "fairseq-train")
    assert f"/{setting}/" in train[1] and f"/{setting}/runs/" in value(train, "--save-dir")
    prepare = named(commands, "preprocess.programs") + named(commands, "preprocess.semantic_parsing")
    assert len(prepare) == 1
    if name == "coffeescript_javascript":
        assert value(prepare[0], "--setting") == (setting[3:] if setting != "SMALL" else "A-short")
        assert (value(train, "-s"), value(train, "-t")) == (("js", "cs") if setting.startswith("JC") else ("cs", "js"))
        assert value(train, "--batch-size") == ("128" if setting.endswith("short") else "64")
    elif setting == "SMALL":
        assert value(prepare[0], "--setting") == "SYN-S"
    else:
        assert setting in prepare[0]


def test_published_programs_are_read_where_they_are(base, tmp_path):
    (command,) = named(
        printed_commands("coffeescript_javascript", *base, "--setting", "JC-B-long"), "preprocess.tree2tree"
    )
    assert (value(command, "--source"), value(command, "--target")) == (
        "cs",
        "js",
    )  # of the file; the recipe goes the other way
    (tmp_path / "data" / "test_For.json").touch()
    (command,) = named(printed_commands("for2lam", *base), "preprocess.programs")
    assert value(command, "--setting") == "rebuild" and value(command, "--data") == str(tmp_path / "data")
    (tmp_path / "data" / "preprocessed_progs_train.json").touch()
    assert named(printed_commands("for2lam", *base, "--setting", "SYN-L"), "preprocess.tree2tree")


def test_stock_models_share_the_folder_of_trees(base):
    for arch in ("transformer_semantic_parsing", "lstm"):
        commands = commands_of("geo", base, "--arch", arch)
        (preprocess,) = named(commands, "fairseq-preprocess")
        assert value(preprocess, "--task") == "structural_translation"
        (train,) = named(commands, "fairseq-train")
        assert train[1] == value(preprocess, "--destdir")
        assert parsed(train).task == "translation" and parsed(train).arch == arch
        assert value(named(commands, "fairseq-generate")[0], "--task") == "translation"
        assert "--symbols" in named(commands, "score")[0]


def test_tree_to_tree_lstm_reads_trees(base):
    commands = commands_of("for2lam", base, "--arch", "tree_to_tree_lstm_program_translation")
    (train,) = named(commands, "fairseq-train")
    assert parsed(train).task == "structural_translation" and parsed(train).hidden_size == 256
    assert "--symbols" not in named(commands, "score")[0]


def test_raw_text_has_a_folder_of_its_own(base):
    commands = commands_of("geo", base, "--arch", "transformer_semantic_parsing", "--text", "raw")
    (preprocess,) = named(commands, "fairseq-preprocess")
    assert "--target-modality" not in preprocess and value(preprocess, "--task") == "translation"
    assert value(preprocess, "--destdir").endswith("/data-bin-raw")
    (score,) = named(commands, "score")
    assert value(score, "--notation") == "bracket" and "--data" not in score
    commands = commands_of("for2lam", base, "--arch", "transformer_program_translation", "--text", "raw")
    (preprocess,), (score,) = named(commands, "fairseq-preprocess"), named(commands, "score")
    assert value(preprocess, "--trainpref").endswith("/text/train.raw")
    assert value(score, "--references").endswith("/text/test.raw.lam") and value(score, "--notation") == "lines"


def test_traversal_and_binarization_reach_preprocessing_and_names(base):
    (preprocess,) = named(
        commands_of("atis", base, "--traversal", "bfs", "--binarization", "lcrs"), "fairseq-preprocess"
    )
    assert value(preprocess, "--traversal") == "bfs" and value(preprocess, "--binarization") == "lcrs"
    assert value(preprocess, "--destdir").endswith("/data-bin-bfs-lcrs")


def test_lines_held_out_are_trained_on_where_asked(base):
    def flags(*arguments):
        return named(commands_of("geo", base, *arguments), "preprocess.semantic_parsing")[0]

    assert "--keep-valid" in flags() and value(flags(), "--valid") == "100"
    assert "--keep-valid" not in flags("--keep-valid", "no") and "/keep-valid-no/" in value(
        flags("--keep-valid", "no"), "--output"
    )
    assert "--keep-valid" not in named(commands_of("atis", base), "preprocess.semantic_parsing")[0]


def test_every_seed_has_a_run_and_the_means_come_last(base):
    commands = commands_of("geo", base, "--seeds", "1,2,3", "--", "--dropout", "0.3")
    trained = named(commands, "fairseq-train")
    assert [value(command, "--seed") for command in trained] == ["1", "2", "3"]
    runs = [value(command, "--save-dir").removesuffix("/checkpoints") for command in trained]
    assert len(set(runs)) == 3 and "-seed2+" in runs[1] and parsed(trained[1]).dropout == 0.3
    assert "mean_of_seeds.py" in commands[-1][1] and commands[-1][-3:] == runs
    assert {value(command, "--main-run") for command in named(commands, "score")} == {runs[0]}
    assert len(named(commands, "fairseq-preprocess")) == 1
    assert "mean_of_seeds.py" in commands_of("geo", base, "--seeds", "1,2", "--stage", "ablate")[-1][1]


@pytest.mark.parametrize("arch", ["tree_positional_transformer_semantic_parsing", "transformer_semantic_parsing"])
def test_an_ensemble_reads_the_models_of_its_seeds(base, arch):
    arguments = ("--arch", arch, "--", "--dropout", "0.2")
    alone = printed_commands("geo", *base, "--seeds", "3,1", *arguments)
    commands = printed_commands("geo", *base, "--ensemble", "3,1", *arguments)
    for program in ("fairseq-preprocess", "fairseq-train", "average"):
        assert named(commands, program) == named(alone, program)
    (generate,), (score,) = named(commands, "fairseq-generate"), named(commands, "score")
    paths = [value(average, "--output") for average in named(alone, "average")]
    assert parsed(generate).path == ":".join(paths) and value(score, "--checkpoint") == paths[0]
    assert value(score, "--run") == value(generate, "--results-path")
    assert value(score, "--run") not in [value(command, "--run") for command in named(alone, "score")]
    assert "ensemble=3,1" in score and not any(word.startswith("seed=") for word in score)


@pytest.mark.parametrize("arch", ["tree_positional_transformer_semantic_parsing", "transformer_semantic_parsing"])
def test_another_beam_reads_the_model_that_is_trained_without_it(base, arch):
    arguments = ("--arch", arch, "--", "--dropout", "0.2")
    usual = printed_commands("geo", *base, "--seeds", "3,1", *arguments)
    greedy = printed_commands("geo", *base, "--seeds", "3,1", "--beam", "1", *arguments)
    for program in ("fairseq-preprocess", "fairseq-train", "average"):
        assert named(greedy, program) == named(usual, program)
    searches = [named(commands, "fairseq-generate") for commands in (usual, greedy)]
    assert [[parsed(command).beam for command in search] for search in searches] == [[5, 5], [1, 1]]
    assert [parsed(command).path for command in searches[0]] == [parsed(command).path for command in searches[1]]
    folders = [value(command, "--results-path") for search in searches for command in search]
    assert len(set(folders)) == 4  # neither search overwrites the outputs of the other
    scores = named(greedy, "score")
    assert [value(score, "--run") for score in scores] == folders[2:]
    assert [value(score, "--checkpoint") for score in scores] == [parsed(command).path for command in searches[0]]
    assert all("beam=1" in score for score in scores)


def test_an_ensemble_searches_with_another_beam(base):
    commands = printed_commands("geo", *base, "--ensemble", "3,1", "--beam", "2")
    usual = printed_commands("geo", *base, "--ensemble", "3,1")
    assert named(commands, "fairseq-train") == named(usual, "fairseq-train")
    (generate,), (before,) = named(commands, "fairseq-generate"), named(usual, "fairseq-generate")
    assert parsed(generate).path == parsed(before).path and parsed(generate).beam == 2
    assert value(generate, "--results-path") != value(before, "--results-path")


def test_the_search_of_cogs_is_greedy_by_default(base):
    for given, beam in (((), 1), (("--beam", "4"), 4)):
        commands = printed_commands("cogs", *base, "--setting", "trees", *given)
        assert {parsed(command).beam for command in named(commands, "fairseq-generate")} == {beam}


@pytest.mark.parametrize(
    ("name", "query", "decay", "binarization"),
    [("geo", ("no", False), "uniform", "lcrs"), ("active_logical", ("yes", True), "paper", "none")],
)
def test_ablations_differ_in_what_they_are_named_for(base, name, query, decay, binarization):
    """Each is the choice that the recipe's own model does not have."""
    commands = commands_of(name, base, "--stage", "ablate")
    runs = {
        re.sub(".*(parsing|translation)", "", value(command, "--save-dir").split("/")[-2]): command
        for command in named(commands, "fairseq-train")
    }
    assert set(runs) == {
        "-seed1",
        f"-query-position-{query[0]}-seed1",
        f"-decay-init-{decay}-seed1",
        "-parameter-free-seed1",
        "-bfs-seed1",
        f"-{binarization}-seed1",
    }
    for run, command in runs.items():
        arguments = parsed(command)
        assert arguments.query_position is (query[1] if "query" in run else not query[1])
        assert (str(arguments.tree_decay_init) == decay) is ("decay" in run)
        assert arguments.parameter_free_tree_positions is ("free" in run)
        folder = {"-bfs-seed1": "data-bin-bfs", f"-{binarization}-seed1": f"data-bin-{binarization}"}
        assert command[1].endswith(folder.get(run, "data-bin"))
    full, *ablations = named(commands, "score")
    assert "--against" not in full and all(value(command, "--against") == value(full, "--run") for command in ablations)


def test_stages_end_where_they_are_asked_to(base):
    ends = {
        "prepare": "preprocess.semantic_parsing",
        "preprocess": "fairseq-preprocess",
        "train": "average",
        "generate": "fairseq-generate",
        "score": "score",
    }
    for stage, last in ends.items():
        assert last in commands_of("jobs", base, "--stage", stage)[-1]


def test_other_architectures_of_a_seed_are_compared(tmp_path):
    names = (
        "lstm-seed1",
        "lstm-seed2",
        "transformer_x-seed1",
        "transformer_x-raw-seed1",
        "tree_x-bfs-seed1",
        "transformer_x-seed1+12",
    )
    for name in names:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "outcomes.json").touch()
    settings = settings_of("geo", "--toy", "--out", tmp_path)
    runs = {"tree_x-seed1": ("1", ""), "lstm-seed2": ("2", ""), "tree_x-seed1+12": ("1", "+12")}
    found = [
        compared(settings.at(run_seed=seed, extra_suffix=extra), tmp_path / "runs" / run)
        for run, (seed, extra) in runs.items()
    ]
    assert [" ".join(names) for names in found] == [
        "lstm-seed1 transformer_x-raw-seed1 transformer_x-seed1",
        "",
        "transformer_x-seed1+12",
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("geo", (), "--out is needed"),
        ("geo", ("--out", "x"), "--data is needed"),
        ("geo", ("--out", "x", "--toy", "--parser", "stanza"), "unknown option --parser"),
        ("geo", ("--out", "x", "--toy", "--traversal", "zigzag"), "--traversal zigzag: give dfs bfs"),
        ("geo", ("--out", "x", "--toy", "--binarization", "lcsr"), "--binarization lcsr: give lcrs none"),
        ("geo", ("--out", "x", "--toy", "--setting", "SYN-S"), "--setting SYN-S: give none"),
        ("for2lam", ("--out", "x", "--setting", "SYN-M"), "--setting SYN-M: give SMALL SYN-S SYN-L rebuild"),
        ("for2lam", ("--out", "x", "--setting", "rebuild"), "--setting rebuild needs --data"),
        ("geo", ("--out", "x", "--toy", "--seed", "1", "--seeds", "1,2"), "give --seed or --seeds, not both"),
        ("geo", ("--out", "x", "--toy", "--seeds", "1;2"), "--seed and --seeds need numbers"),
        ("geo", ("--out", "x", "--toy", "--ensemble", "1"), "--ensemble needs two seeds or more"),
        ("geo", ("--out", "x", "--toy", "--beam", "0"), "--beam needs a number of beams"),
        ("geo", ("--out", "x", "--toy", "--ensemble", "1,2", "--seed", "1"), "leave --seed out"),
        ("geo", ("--out", "x", "--toy", "--ensemble", "1,2", "--seeds", "1,2"), "leave --seeds out"),
        ("geo", ("--out", "x", "--toy", "--ensemble", "1,2", "--stage", "ablate"), "does not work with --stage ablate"),
        ("geo", ("--out", "x", "--toy", "--keep-valid", "maybe"), "--keep-valid maybe: give yes no"),
        ("geo", ("--out", "x", "--toy", "--arch", "fconv"), "no settings for --arch fconv"),
        ("geo", ("--out", "x", "--toy", "--text", "raw"), "--text raw is for stock architectures"),
        (
            "geo",
            ("--out", "OUT", "--toy", "--dry-run", "--arch", "lstm", "--stage", "ablate"),
            "needs a tree_positional_* architecture",
        ),
        ("ifttt", ("--data", "OUT/empty", "--out", "OUT", "--dry-run"), "the README says where its files come from"),
    ],
)
def test_mistakes_are_named(tmp_path, name, arguments, message):
    (tmp_path / "out").mkdir()
    (tmp_path / "empty").mkdir()
    done = recipe(
        name,
        *(
            word.replace("OUT/empty", str(tmp_path / "empty")).replace("OUT", str(tmp_path / "out"))
            for word in arguments
        ),
    )
    assert done.returncode == 1
    assert message in done.stderr
