"""The READMEs of programs and logical forms: their blocks are commands; a walk-through; recipes from end to end."""

from __future__ import annotations

import json
import re
import runpy
import shlex

import pytest

from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.tiny_programs import write_corpus
from tests.recipes.commands import EXAMPLES, STRUCTURAL, bash, readme, recipe
from tests.recipes.test_structural_options import parsed
from tree_fairseq.scoring.__main__ import main as score
from tree_fairseq.trees.notations import notation_named

PLAIN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TINY = (
    *(
        "--encoder-embed-dim",
        "32",
        "--encoder-ffn-embed-dim",
        "64",
        "--encoder-layers",
        "1",
        "--encoder-attention-heads",
        "2",
    ),
    *(
        "--decoder-embed-dim",
        "32",
        "--decoder-ffn-embed-dim",
        "64",
        "--decoder-layers",
        "1",
        "--decoder-attention-heads",
        "2",
    ),
    *(
        "--max-epoch",
        "4",
        "--save-interval",
        "1",
        "--validate-interval",
        "1",
        "--keep-last-epochs",
        "2",
        "--num-workers",
        "0",
        "--cpu",
    ),
)


def plain_commands(name, out="OUT"):
    """The commands of fairseq and of this project that a README shows, as lists of words."""
    text = "".join(PLAIN.findall(readme(name))).replace("\\\n", " ").replace("$OUT", str(out))
    return [shlex.split(line) for line in re.split(r"[\n;]", text) if line.strip()]


@pytest.mark.parametrize("name", STRUCTURAL)
def test_plain_commands_are_fairseq_s(name):
    commands = plain_commands(name)
    assert "fairseq-preprocess" in {command[0] for command in commands}
    for command in commands:
        if command[0].startswith("fairseq-"):
            command[command.index("--user-dir") + 1] = str(EXAMPLES.parent / "tree_fairseq")
            parsed(command)


def test_own_trees_with_nothing_but_the_paths_changed(tmp_path, capsys):
    """The walk-through of GEO on other trees, at a tiny size."""
    write_corpus(tmp_path / "text", (48, 8, 8))
    commands = {words[0]: words for words in plain_commands("geo", tmp_path)}

    def arguments(program):
        words = commands[program][1:]
        at = words.index("--user-dir")
        return words[:at] + words[at + 2 :]

    run("preprocess", *arguments("fairseq-preprocess"))
    run("train", *arguments("fairseq-train"), *TINY)
    average, scoring = [words for words in plain_commands("geo", tmp_path) if words[0] == "tree-fairseq"]
    average[average.index("--last-epochs") + 1] = "2"
    done = bash(shlex.join(average))
    assert done.returncode == 0, done.stderr
    run("generate", *arguments("fairseq-generate"), "--cpu", "--max-len-b", "20")
    assert scoring[1] == "score"
    assert score(scoring[2:]) == 0
    result = json.loads((tmp_path / "outputs" / "result.json").read_text())
    assert result["validity"] == 1 and result["metric"] == "accuracy_unordered"
    bracket = notation_named("bracket")
    outputs = hypotheses((tmp_path / "outputs" / "generate-test.txt").read_text())
    assert len(outputs) == 8 and all(bracket.write(bracket.read(text)) == text for text, _ in outputs.values())


def result_of(out):
    return json.loads((out / "result.json").read_text())


def test_geo_from_end_to_end(tmp_path):
    done = recipe("geo", "--toy", "--out", tmp_path, "--workers", "1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = result_of(tmp_path)
    assert result["validity"] == 1 and result["score"] == result["accuracy_unordered"]
    assert result["description"] | {"recipe": "geo", "seed": "1", "data": "data-bin"} == result["description"]
    again = recipe("geo", "--toy", "--out", tmp_path, "--workers", "1", "--stage", "generate")
    assert again.stderr.count("done before") == 4  # prepare, preprocess, train, generate
    both = recipe("geo", "--toy", "--out", tmp_path, "--workers", "1", "--ensemble", "2,1")
    assert both.returncode == 0, both.stdout[-2000:] + both.stderr[-3000:]
    assert both.stderr.count("done before") == 4  # prepare, preprocess for each model, and the training of seed 1
    assert result_of(tmp_path)["description"]["ensemble"] == "2,1" and result_of(tmp_path)["validity"] == 1
    greedy = recipe("geo", "--toy", "--out", tmp_path, "--workers", "1", "--beam", "1")
    assert greedy.returncode == 0, greedy.stdout[-2000:] + greedy.stderr[-3000:]
    assert greedy.stderr.count("done before") == 3  # prepare, preprocess and the training
    assert result_of(tmp_path)["description"]["beam"] == "1" and result_of(tmp_path)["validity"] == 1


def test_for2lam_from_end_to_end(tmp_path):
    done = recipe("for2lam", "--toy", "--out", tmp_path, "--workers", "1", "--setting", "SYN-S")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = result_of(tmp_path)
    assert result["validity"] == 1 and result["score"] == result["accuracy"]
    assert result["description"]["setting"] == "SYN-S" and result["sentences"] == {"test": 15}


def test_means_of_seeds(tmp_path):
    runs = []
    for seed, accuracy in ((1, 60.0), (2, 70.0)):
        folder = tmp_path / "runs" / f"model-seed{seed}"
        folder.mkdir(parents=True)
        content = {
            "primary": "accuracy",
            "description": {"run": folder.name, "seed": str(seed)},
            "differences": [],
            "metrics": {"accuracy": accuracy, "validity": 1.0},
        }
        (folder / "score.json").write_text(json.dumps(content))
        runs.append(folder)
    (tmp_path / "result.json").write_text(
        json.dumps({"metric": "accuracy", "score": 60.0, "accuracy": 60.0, "validity": 1.0, "runs": []})
    )
    script = runpy.run_path(str(EXAMPLES / "lib" / "mean_of_seeds.py"))
    assert script["main"](["--result", str(tmp_path / "result.json"), *map(str, runs)]) == 0
    result = result_of(tmp_path)
    assert result["score"] == result["accuracy"] == 65 and result["spread"] == {"accuracy": 10, "validity": 0}
    assert [row["seed"] for row in result["by_seed"]] == ["1", "2"]
