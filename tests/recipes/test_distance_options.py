"""The choice of a bias by distance in every kind of recipe."""

from __future__ import annotations

import pytest

from tests.recipes.commands import recipe
from tests.recipes.test_options import data_folder, parsed, training

OFFERED = [
    ("cogs", ("--arch", "transformer_distance_bias"), "linear"),
    ("cogs", (), "linear"),
    ("geo", (), "both"),
    ("geo", ("--arch", "transformer_distance_bias_semantic_parsing"), "linear"),
    ("overnight", ("--domain", "calendar"), "linear"),
    ("sst5", (), "both"),
    ("sst5", ("--arch", "transformer_classifier_tiny"), "tree"),
    ("glue", ("--glue-task", "cola"), "linear"),
]


@pytest.mark.parametrize(("name", "options", "kind"), OFFERED)
def test_a_run_with_the_bias_is_another_run(tmp_path, name, options, kind):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", *options)
    (plain,), (biased,) = (training(name, *base, *more) for more in ((), ("--distance-bias", kind)))
    assert parsed(biased).distance_bias == kind
    runs = [command[command.index("--save-dir") + 1] for command in (plain, biased)]
    assert runs[0] != runs[1] and f"-{kind}-distances-" in runs[1] and "distances" not in runs[0]
    rest = [word for word in biased if word not in ("--distance-bias", kind)]
    assert [word for word in rest if "/runs/" not in word] == [word for word in plain if "/runs/" not in word]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cogs", ("--arch", "transformer"), "--distance-bias is for treeformer* and transformer_distance_bias*"),
        ("cogs", ("--distance-bias", "tree"), "--distance-bias tree: give linear"),
        (
            "geo",
            ("--arch", "lstm"),
            "--distance-bias is for tree_positional_transformer*, transformer_distance_bias* and treeformer*",
        ),
        ("sst5", ("--arch", "lstm_classifier_tiny"), "--distance-bias is for tree_transformer_classifier*"),
        ("overnight", ("--domain", "calendar", "--distance-bias", "both"), "--distance-bias both: give linear"),
    ],
)
def test_models_without_it_are_named(tmp_path, name, options, message):
    base = ("--data", data_folder(tmp_path), "--out", tmp_path / "out", "--dry-run", "--distance-bias", "linear")
    done = recipe(name, *base, *options)
    assert done.returncode == 1 and message in done.stderr
