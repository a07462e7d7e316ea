"""``make model``: a recipe, its release in half precision, and a model card."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.recipes.commands import EXAMPLES, declared, environment
from tree_fairseq import hub

MODELS = json.loads((EXAMPLES / "released" / "models.json").read_text(encoding="utf-8"))


def test_a_model_is_trained_packed_and_described(tmp_path):
    name = "geo"
    script = EXAMPLES / "released" / "make_model.py"
    command = [sys.executable, script, name, "--out", tmp_path, "--toy", "--workers", "1"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    folder, model = tmp_path / name, MODELS[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    wanted = (model["title"], "licence", "MIT", model["metric"], "in half precision", f"make model NAME={name}")
    assert all(text in card for text in wanted)
    assert "{" not in card and "None" not in card
    assert "DIR" not in card  # no data were given
    assert (folder / "model.safetensors").stat().st_size < 10_000_000
    assert len(hub.from_pretrained(folder).translate([model["example"]])) == 1


def test_every_model_of_the_list_has_a_recipe():
    assert MODELS and all(declared(f"{model['recipe']}/run.sh") for model in MODELS.values())
