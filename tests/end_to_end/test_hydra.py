"""The YAML for fairseq-hydra-train."""

from __future__ import annotations

import re
from pathlib import Path

import omegaconf
import pytest
import torch

from tests.end_to_end.commands import PLUGIN, ROOT, hypotheses, run, run_in_process
from tests.end_to_end.fixtures import TASK
from tests.fork_server import programs

FOLDER = ROOT / "examples" / "hydra"


def hydra_train(data: Path, folder: Path, *overrides: str) -> str:
    finished = run_in_process(
        [
            programs() / "python", "-m", "fairseq_cli.hydra_train", "--config-dir", FOLDER,
            "--config-name", "tree_transformer_tiny", f"task.data={data}", f"checkpoint.save_dir={folder}",
            f"common.user_dir={PLUGIN}", "common.cpu=true", "dataset.max_tokens=320", *overrides,
        ],
        cwd=folder.parent,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


@pytest.mark.skipif(
    omegaconf.__version__ < "2.1",
    reason="fairseq-hydra-train 0.12.2 gives architectures None for what a YAML leaves out",
)
def test_training_by_the_yaml_file(data_bin, tmp_path):
    log = hydra_train(
        data_bin, tmp_path / "out", "optimization.max_update=3", "model.accumulation_denominator=nodes-only"
    )
    assert re.search(r"valid on 'valid' subset .* num_updates 3", log)
    state = torch.load(tmp_path / "out" / "checkpoint_best.pt", weights_only=True)
    model = state["cfg"]["model"]
    assert (model["accumulation_denominator"], model["dropout"], model["encoder_layers"]) == ("nodes-only", 0.1, 2)
    assert state["model"]["encoder.embed_tokens.weight"].shape[1] == 64
    output = run("generate", data_bin, *TASK, "--path", tmp_path / "out" / "checkpoint_best.pt", "--cpu", "--beam", 2,
                 "--max-len-b", 8, "--num-workers", 0)  # fmt: skip
    assert len(hypotheses(output)) == 16


def test_the_command_in_the_file_s_head_is_the_tested_one():
    head = (FOLDER / "tree_transformer_tiny.yaml").read_text(encoding="utf-8").split("\n\n")[0]
    for part in (
        "fairseq-hydra-train", "--config-dir examples/hydra", "--config-name tree_transformer_tiny", "task.data=",
        "checkpoint.save_dir=", "common.user_dir=",
    ):  # fmt: skip
        assert part in head
