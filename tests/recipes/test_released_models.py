"""``make model``: a recipe, its release in half precision, and a model card."""

from __future__ import annotations

import configparser

from tests.recipes.commands import EXAMPLES, bash
from tree_fairseq import hub


def test_a_model_is_trained_packed_and_described(tmp_path):
    done = bash('python examples/released/make_model.py geo --out "$OUT" --toy --workers 1', OUT=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    folder = tmp_path / "geo"
    card = (folder / "README.md").read_text(encoding="utf-8")
    for text in ("GEO", "licence", "MIT", "accuracy_unordered", "Stored in half precision", "make model NAME=geo"):
        assert text in card
    assert "{" not in card and "None" not in card
    assert (folder / "model.safetensors").stat().st_size < 10_000_000 > (folder / "model.pt").stat().st_size
    assert len(hub.from_pretrained(folder).translate(["which rivers run through s0"])) == 1


def test_every_model_of_the_list_has_a_recipe():
    models = configparser.ConfigParser(interpolation=None)
    models.read(EXAMPLES / "released" / "models.ini", encoding="utf-8")
    assert models.sections()
    for model in models.values():
        if model.name != "DEFAULT":
            assert (EXAMPLES / model["recipe"] / "recipe.ini").exists()
