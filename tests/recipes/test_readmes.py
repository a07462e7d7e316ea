"""Every command block of the recipes' READMEs, as written, with --toy added."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.recipes.commands import (
    CLASSIFICATION,
    INSERTION,
    RECIPES,
    STRUCTURAL,
    TREEFORMER,
    bash,
    readme,
    readme_blocks,
)

# The section before the citation, and the paper that a README cites.
KINDS = {
    **dict.fromkeys(RECIPES, ("Evaluate", "arxiv.org/abs/2002.08046")),
    **dict.fromkeys(CLASSIFICATION, ("Ablations", "arxiv.org/abs/2002.08046")),
    **dict.fromkeys(STRUCTURAL, ("Ablations", "papers.nips.cc/paper/2019/hash/6e0917469214d8fbd8c517dcdc6b8dcf")),
    **dict.fromkeys(TREEFORMER, ("Sweep", "arxiv.org/abs/2207.06960")),
    **dict.fromkeys(INSERTION, ("Ablations", "")),
}


def toy(block: str, *flags: str) -> str:
    """The block with every recipe at toy size."""
    return block.replace("run.sh ", f"run.sh {' '.join(('--toy', *flags))} ")


@pytest.mark.parametrize("name", RECIPES)
def test_every_block_is_a_command_that_exists(tmp_path, name):
    blocks = readme_blocks(name)
    assert len(blocks) >= 4
    variables = {"DATA": str(tmp_path / "data"), "OUT": str(tmp_path / "out"), "TREES": str(tmp_path)}
    for block in blocks:
        done = bash(toy(block, "--dry-run"), **variables)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert "preprocess.prepare" in done.stdout or "preprocess.own_text" in done.stdout


@pytest.mark.parametrize("name", [name for name in KINDS if name not in RECIPES])
def test_every_block_runs_dry(tmp_path, name):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "some").touch()
    blocks = readme_blocks(name)
    assert len(blocks) >= 4
    script = "\n".join(blocks).replace("run.sh ", "run.sh --dry-run ")
    done = bash(script, DATA=str(tmp_path / "data"), OUT=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(" done: ") >= len(blocks)


@pytest.mark.parametrize("name", KINDS)
def test_sections_stand_in_the_usual_order(name):
    last, paper = KINDS[name]
    headings = [line[3:] for line in readme(name).splitlines() if line.startswith("## ")]
    wanted = [*dict.fromkeys(("Data", "Preprocess", "Train", "Evaluate", last)), "Citation"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert paper in readme(name)


@pytest.fixture(scope="module")
def multi30k(tmp_path_factory):
    """The README of multi30k_en_de executed from data to scores, baseline and Tree-Transformer."""
    place = tmp_path_factory.mktemp("multi30k")
    variables = {"DATA": str(place / "data"), "OUT": str(place / "out")}
    blocks = readme_blocks("multi30k_en_de")[:4]
    assert "--arch transformer\n" in blocks[-1]
    outputs = []
    for block in blocks:
        done = bash(toy(block, "--workers", "1"), **variables)
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        outputs.append(done.stderr)
    return place / "out", outputs


def test_result_of_the_readme(multi30k):
    out, _ = multi30k
    result = json.loads((out / "result.json").read_text())
    assert result["metric"] == "sacrebleu_2016" and result["score"] == result["sacrebleu_2016"]
    metrics = ("sacrebleu", "tokenized_bleu", "chrf", "ter")
    names = {f"{metric}_{year}" for metric in metrics for year in (2016, 2017)}
    assert names == set(result["signatures"]) and all(0 <= result[name] for name in names)
    assert all(result[name] <= 100 for name in names if not name.startswith("ter"))
    assert result["references"] == {"test": "untokenised", "test1": "detokenised"}
    assert {(row["metric"], row["baseline"]) for row in result["differences"]} == {
        (name, "transformer") for name in names
    }
    assert sorted(run["run"] for run in result["runs"]) == ["transformer", "tree_transformer"]
    assert result["description"]["parser"] == "right-branching"
    assert result["checkpoint"]["updates"] == 4 and result["checkpoint"]["parameters"] > 1000
    assert len(result["attention"]["test"]["layers"]) == 1 and 0 < result["attention"]["test"]["node_share"] < 0.5


def test_stages_before_are_not_repeated(multi30k):
    _, outputs = multi30k
    assert "prepare: finished" in outputs[0]
    assert "prepare: done before" in outputs[1] and "preprocess: finished" in outputs[1]
    assert "train-tree_transformer: done before" in outputs[3] and "train-transformer: finished" in outputs[3]


def test_training_goes_on_where_it_was_killed(multi30k):
    out, _ = multi30k
    run = out / "runs" / "tree_transformer"
    (out / "stamps" / "train-tree_transformer").unlink()
    for name in ("checkpoint2.pt", "average.pt"):
        (run / "checkpoints" / name).unlink()
    (run / "checkpoints" / "checkpoint_last.pt").write_bytes((run / "checkpoints" / "checkpoint1.pt").read_bytes())
    done = bash(
        'examples/multi30k_en_de/run.sh --toy --out "$OUT" --data "$DATA" --workers 1 --stage train',
        OUT=str(out),
        DATA=str(out.parent / "data"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    log = done.stdout + done.stderr
    assert "(epoch 2 @ 2 updates)" in log  # fairseq's line on resuming
    assert (run / "checkpoints" / "average.pt").is_file() and (run / "checkpoints" / "checkpoint2.pt").is_file()


def test_a_run_that_was_removed_begins_anew(multi30k):
    out, _ = multi30k
    run = out / "runs" / "transformer"
    scores = json.loads((run / "score.json").read_text())["metrics"]
    shutil.rmtree(run)
    done = bash(
        'examples/multi30k_en_de/run.sh --toy --out "$OUT" --data "$DATA" --workers 1 --arch transformer',
        OUT=str(out),
        DATA=str(out.parent / "data"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "train-transformer: finished" in done.stderr and "generate-transformer: finished" in done.stderr
    assert json.loads((run / "score.json").read_text())["metrics"] == scores


def test_a_run_is_not_continued_on_other_data(multi30k):
    out, _ = multi30k
    key = out / "runs" / "tree_transformer" / "data-key"
    before = key.read_text()
    key.write_text("other\n")
    try:
        done = bash(
            'examples/multi30k_en_de/run.sh --toy --out "$OUT" --data "$DATA" --stage train',
            OUT=str(out),
            DATA=str(out.parent / "data"),
        )
    finally:
        key.write_text(before)
    assert done.returncode == 1 and "was trained on other data" in done.stderr
