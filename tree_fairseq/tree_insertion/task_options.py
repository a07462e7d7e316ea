"""The options of the task of insertion-based tree decoding, and the checks of their values."""

import math
from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.support.options import option
from tree_fairseq.tasks.translation import TranslationWithTreesConfig
from tree_fairseq.tasks.tree_task import ValidationAccuracyConfig
from tree_fairseq.tree_insertion.dataset import PartialTreeSampler, TargetDistribution
from tree_fairseq.tree_insertion.folder import ORACLES, InsertionRecord
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits

DEFAULT_LIMITS = InsertionLimits()


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionConfig(ValidationAccuracyConfig, TranslationWithTreesConfig):
    """The options of generation, of validating by generating, and of supervision.

    ``skip_invalid_size_inputs_valid_test`` is fairseq's flag, here also about trees to train on.
    """

    seed: int = II("common.seed")
    skip_invalid_size_inputs_valid_test: bool = II("dataset.skip_invalid_size_inputs_valid_test")
    eval_unordered: Optional[str] = option(
        None, "with --eval-accuracy, labels whose children may be in any order, separated by blanks"
    )
    max_insertion_steps: int = option(
        DEFAULT_LIMITS.steps, "a tree that is not finished after this number of steps is generated as it is"
    )
    max_nodes: Optional[int] = option(
        None,
        "a tree that would get more nodes is generated as it was before (default: twice the nodes of the largest "
        f"training tree, or {DEFAULT_LIMITS.nodes} if that is not known)",
    )
    insertion_trace: Optional[str] = option(
        None, "write the steps of each tree into this folder, as NUMBER.txt and NUMBER.svg by sentence number"
    )
    insertion_samples: int = option(
        1,
        "generate this number of trajectories of each tree side by side, the best one and others that are drawn, and "
        "rank the trees (see --nbest); --seed changes the draws",
    )
    insertion_temperature: Optional[float] = option(
        None, "with --insertion-samples, temperature of the labels that are drawn for slots (default: 1)"
    )
    insertion_extra_steps: Optional[int] = option(
        None,
        "with --insertion-samples, drawn trajectories that need more than this number of steps more than the best one "
        "are left out; 0 takes no step more than without --insertion-samples (default: no limit)",
    )
    rerank_path: Optional[str] = option(
        None,
        "with --insertion-samples, checkpoint of a left-to-right model of the same data, which scores the trees in one "
        "pass (default: the probability of a trajectory is the score)",
    )
    insertion_oracle: ChoiceEnum(list(ORACLES)) = option(
        "centrality", "oracle of the trajectories to learn from: central nodes first (the paper's), or the fewest steps"
    )
    target_distribution: ChoiceEnum(["rank", "optimal"]) = option(
        "rank",
        "target distribution of a slot: a softmax over the negative ranks of the nodes allowed there, or "
        "the same probability for each of the best nodes (only with --insertion-oracle exact)",
    )
    target_temperature: float = option(
        0.1, "temperature of --target-distribution rank, and of --sequence-supervision binary"
    )
    sequence_supervision: ChoiceEnum(["binary", "uniform"]) = option(
        "binary",
        "target distribution of a slot between tokens, for models that insert into sequences: a softmax over the "
        "negative distances of the missing tokens from their centre, or the same probability for each different token",
    )
    trajectories: Optional[int] = option(
        None, "draw from this number of trajectories of every tree (default: all that are stored)"
    )
    partial_states: int = option(
        1,
        "partial trees or sequences of each target in a training update, spread evenly over a trajectory; the source "
        "is encoded once for all. A number above the steps of a trajectory takes all of it",
    )


def sampler_of(cfg: TreeInsertionConfig, record: InsertionRecord) -> PartialTreeSampler:
    """Returns the sampler of the options of supervision; raises an error about one that does not fit the folder."""
    if cfg.insertion_oracle not in record.oracles:
        raise MissingTreesError(
            f"{cfg.data} has no trajectories of --insertion-oracle {cfg.insertion_oracle}, it has those of "
            + ", ".join(record.oracles)
        )
    if cfg.target_distribution == "optimal" and cfg.insertion_oracle != "exact":
        raise InputError(
            "--target-distribution optimal needs --insertion-oracle exact, which knows all optimal insertions"
        )
    count = record.trajectories if cfg.trajectories is None else cfg.trajectories
    if not 1 <= count <= record.trajectories:
        raise InputError(
            f"--trajectories is from 1 to {record.trajectories}, as many as {cfg.data} has of a tree, not {count}"
        )
    if not cfg.target_temperature > 0:
        raise InputError(f"--target-temperature is above 0, not {cfg.target_temperature}")
    distribution = TargetDistribution(cfg.target_distribution, cfg.target_temperature)
    return PartialTreeSampler(record.first_of(cfg.insertion_oracle), count, distribution, cfg.seed)


def check_samples(cfg: TreeInsertionConfig) -> None:
    """Raises InputError about an option of generating several trees that is wrong."""
    given = {
        "--insertion-temperature": cfg.insertion_temperature,
        "--insertion-extra-steps": cfg.insertion_extra_steps,
        "--rerank-path": cfg.rerank_path,
    }
    for flag, value in given.items():
        if value is not None and cfg.insertion_samples == 1:
            raise InputError(f"{flag} needs several trees to choose from; give --insertion-samples N, N above 1")
    if cfg.insertion_temperature is not None and not 0 < cfg.insertion_temperature < math.inf:
        raise InputError(f"--insertion-temperature is above 0, not {cfg.insertion_temperature}")
