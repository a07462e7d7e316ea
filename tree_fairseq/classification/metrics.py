"""Metrics of predicted classes and numbers, in percent. Confusion counts can be summed over batches and processes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch import Tensor

from tree_fairseq.support.python_versions import zip_equal


def confusion_counts(target: Tensor, predicted: Tensor, num_classes: int) -> Tensor:
    """Counts pairs of right and predicted classes, each ``[B]`` int64: ``[C, C]`` int64, a row for each right class."""
    return torch.bincount(target * num_classes + predicted, minlength=num_classes**2).view(num_classes, num_classes)


def class_figures(counts: np.ndarray) -> dict[str, float]:
    """Computes the metrics of a confusion matrix ``[C, C]`` by name.

    ``accuracy``; ``macro_f1``, the mean of F1 over the classes that occur, right or predicted; ``matthews``, Matthews'
    correlation, which is 0 if all right or all predicted classes are the same; and ``f1``, that of the second of two
    classes.
    """
    target, predicted = np.nonzero(counts)
    weights = counts[target, predicted]
    varies = min(len(set(target)), len(set(predicted))) > 1
    figures = {
        "accuracy": accuracy_score(target, predicted, sample_weight=weights),
        "macro_f1": f1_score(target, predicted, sample_weight=weights, average="macro", zero_division=0),
        "matthews": matthews_corrcoef(target, predicted, sample_weight=weights) if varies else 0,
    }
    if len(counts) == 2:
        figures["f1"] = f1_score(target == 1, predicted == 1, sample_weight=weights, zero_division=0)
    return {name: 100 * float(value) for name, value in figures.items()}


def class_figures_of_counts(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Computes accuracy, macro F1 and Matthews' correlation of many samples at once, as :func:`class_figures` of one.

    ``counts``, ``[..., 3, C]``, has for each class how often it is right and predicted, right, and predicted. Each
    result is ``[...]``.
    """
    both, right, predicted = np.moveaxis(np.asarray(counts, np.float64), -2, 0)
    occurs, size = right + predicted > 0, right.sum(axis=-1)
    f1 = np.divide(2 * both, right + predicted, out=np.zeros_like(both), where=occurs)
    # Covariances of classes as indicators (Gorodkin 2004), times the square of the number of examples.
    covariance = both.sum(axis=-1) * size - (right * predicted).sum(axis=-1)
    variances = (size**2 - (right**2).sum(axis=-1)) * (size**2 - (predicted**2).sum(axis=-1))
    return {
        "accuracy": 100 * both.sum(axis=-1) / size,
        "macro_f1": 100 * f1.sum(axis=-1) / occurs.sum(axis=-1),
        "matthews": 100 * covariance / np.sqrt(np.where(variances > 0, variances, np.inf)),
    }


def confusion_line(counts: np.ndarray, names: Sequence[str]) -> str:
    """Writes a confusion matrix in one line: each right class, and how often each class was predicted for it."""
    return "; ".join(
        f"{name}: {' '.join(f'{count:.0f}' for count in row)}" for name, row in zip_equal(names, counts.tolist())
    )


def pearson(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Computes Pearson's correlation; 0 if either side has fewer than two different numbers."""
    return _correlation(stats.pearsonr, predicted, right)


def spearman(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Computes Spearman's correlation, that of the ranks; 0 as for :func:`pearson`."""
    return _correlation(stats.spearmanr, predicted, right)


def _correlation(measure, predicted: Sequence[float], right: Sequence[float]) -> float:
    if min(len(set(map(float, predicted))), len(set(map(float, right)))) < 2:
        return 0.0
    with warnings.catch_warnings():
        # scipy warns of predictions that hardly differ, and still returns their correlation.
        warnings.simplefilter("ignore")
        return 100 * float(measure(predicted, right).statistic)
