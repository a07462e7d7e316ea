"""``tree-fairseq release``: a folder that translates as the checkpoint did, and has nothing else in it."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.tiny_corpus import make_pairs
from tree_fairseq import hub
from tree_fairseq.commands.release import main, release, write_released_model
from tree_fairseq.errors import CheckpointError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only, read_released_model

TREES = [pair.tree for pair in make_pairs(1, 5)]


@pytest.fixture(scope="module")
def released(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "model"
    assert main([str(trained.data), str(trained.best), "--output", str(folder)]) == 0
    return folder


def translations(folder, name, **options) -> list[str]:
    return hub.from_pretrained(folder, name, **options).translate(TREES, beam=3)


def test_a_release_translates_as_the_checkpoint_does(trained, released):
    expected = translations(trained.folder, "checkpoint_best.pt", data_name_or_path=trained.data)
    assert translations(released, None) == expected


def test_a_release_has_what_new_text_needs_and_no_more(released):
    names = {path.name for path in released.iterdir()}
    assert names >= {"README.md", "model.safetensors", "dict.en.txt", "dict.de.txt", "tree.json"}
    assert not any(name.startswith(("train", "valid", "test")) or name.endswith(".log") for name in names)


def test_the_card_says_what_the_checkpoint_tells(trained, released):
    card = (released / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# model\n") and "| `tree_translation`, en to de |" in card and "updates, seed " in card
    assert "`tree_transformer_tiny`, 0." in card and str(trained.folder) not in card and "None" not in card
    [line] = [line for line in card.splitlines() if line.startswith("fairseq-interactive model")]
    assert line.endswith("--task tree_translation --path model/model.safetensors")


def test_no_path_of_the_machine_is_in_a_release(trained, released):
    with safe_open(released / "model.safetensors", framework="pt") as file:
        settings = file.metadata()
    assert str(trained.folder) not in json.dumps(settings)
    assert '"/' not in settings["cfg"]


def test_fairseq_s_own_commands_read_a_release(trained, released):
    """The same hypotheses as from the checkpoint, with the same scores."""

    def generated(path) -> dict:
        output = run("generate", trained.data, "--task", "tree_translation", "--path", path, "--beam", 3)
        return hypotheses(output)

    assert generated(released / "model.safetensors") == generated(trained.best) != {}


def test_half_precision_halves_the_file(trained, tmp_path):
    state = load_weights_only(trained.best)
    for name, dtype in (("full", None), ("half", torch.float16)):
        write_released_model(state, tmp_path / f"{name}.safetensors", dtype)
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "half")]
    assert sizes[1] < 0.7 * sizes[0]
    weights = read_released_model(tmp_path / "half.safetensors")["model"]
    for name, tensor in state["model"].items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)
        assert weights[name].dtype == tensor.dtype


def test_tied_weights_are_stored_once(trained, tmp_path):
    state = load_weights_only(trained.best)
    names = [f"copy{number}" for number in range(4)]
    state["model"].update({name: torch.arange(50_000.0) % 1000 for name in names})
    torch.save(state, tmp_path / "tied.pt")
    release(trained.data, tmp_path / "tied.pt", tmp_path / "model", dtype=torch.float16)
    assert (tmp_path / "model/model.safetensors").stat().st_size < 600_000  # four copies would have 300,000 more
    weights = load_weights_only(tmp_path / "model/model.safetensors")["model"]
    assert all(torch.equal(weights[name].float(), state["model"][name]) for name in names)


def test_a_release_names_the_languages_that_its_training_inferred(trained, tmp_path):
    state = load_weights_only(trained.best)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, tmp_path / "inferred.pt")
    release(trained.data, tmp_path / "inferred.pt", tmp_path / "model")
    task = read_released_model(tmp_path / "model/model.safetensors")["cfg"]["task"]
    assert (task["source_lang"], task["target_lang"]) == ("en", "de")


@pytest.mark.parametrize("damage", ["cut", "foreign", "settings"])
def test_a_damaged_file_is_named(released, tmp_path, damage):
    path = tmp_path / "model.safetensors"
    if damage == "cut":
        path.write_bytes((released / path.name).read_bytes()[:5000])
    elif damage == "foreign":
        save_file({"weight": torch.zeros(2)}, path)
    else:
        save_file(
            {"weight": torch.zeros(2)},
            path,
            {"format": "tree-fairseq 1", "aliases": "{}", "cfg": "[", "task_state": "{}"},
        )
    with pytest.raises(CheckpointError, match="model.safetensors"):
        load_weights_only(path)


def test_a_release_is_not_overwritten(trained, released, caplog):
    before = (released / "model.safetensors").read_bytes()
    assert main([str(trained.data), str(trained.best), "--output", str(released)]) == 1
    assert "exists already" in caplog.text
    assert (released / "model.safetensors").read_bytes() == before
