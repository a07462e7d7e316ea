"""``make model``: a recipe, its release in half precision, and a model card."""

from __future__ import annotations

import configparser

import pytest

from tests.recipes.commands import EXAMPLES, bash
from tree_fairseq import hub


@pytest.mark.parametrize("name", ["geo", "for2lam"])
def test_a_model_is_trained_packed_and_described(tmp_path, name):
    command = f'python examples/released/make_model.py {name} --out "$OUT" --toy --workers 1'
    done = bash(command, OUT=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    folder, model = tmp_path / name, models_of_the_list()[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    for text in (
        model["title"],
        "licence",
        "MIT",
        model["metric"],
        "Stored in half precision",
        f"make model NAME={name}",
    ):
        assert text in card
    assert "{" not in card and "None" not in card
    assert "DIR" not in card  # no data were given
    assert (folder / "model.safetensors").stat().st_size < 10_000_000 > (folder / "model.pt").stat().st_size
    assert len(hub.from_pretrained(folder).translate([model["example"]])) == 1


def models_of_the_list() -> configparser.ConfigParser:
    """The models of examples/released, by name."""
    models = configparser.ConfigParser(interpolation=None)
    models.read(EXAMPLES / "released" / "models.ini", encoding="utf-8")
    return models


def test_every_model_of_the_list_has_a_recipe():
    models = models_of_the_list()
    assert models.sections()
    for model in models.values():
        if model.name != "DEFAULT":
            assert (EXAMPLES / model["recipe"] / "recipe.ini").exists()
