"""Models of all methods with random weights, as the hub loads trained ones, and the weights that their views show."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tree_fairseq import hub


def untrained(data: object, task: str, arch: str, *arguments: object, seed: int = 1) -> hub.TreeHubInterface:
    """A model of an architecture over a folder; ``arguments`` are flags of training and of generation."""
    given = [data, "--task", task, "--arch", arch, "--dropout", 0, *arguments]
    args = options.parse_args_and_arch(options.get_training_parser(task), input_args=list(map(str, given)))
    cfg = convert_namespace_to_omegaconf(args)
    made = tasks.setup_task(cfg.task)
    torch.manual_seed(seed)
    model = made.build_model(cfg.model)
    return hub.TreeHubInterface(cfg, made, [model]).eval()


def matrix_values(record: dict[str, Any]) -> np.ndarray:
    """The weights of a matrix of a view; each differs by at most half a step from the weight before rounding."""
    steps = np.frombuffer(base64.b64decode(record["data"]), np.uint8)
    return steps.reshape(record["shape"]) * (record["max"] / 255)
