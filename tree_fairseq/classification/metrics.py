"""What a matrix of confusions tells: counts that can be summed over batches and processes, and the figures that follow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef
from torch import Tensor


def confusion_counts(target: Tensor, predicted: Tensor, num_classes: int) -> Tensor:
    """How often which class was taken for which.

    Args:
        target: ``[B]`` int64, the right classes
        predicted: ``[B]`` int64
        num_classes: C

    Returns:
        ``[C, C]`` int64: a row for each right class, a column for each predicted one
    """
    return torch.bincount(target * num_classes + predicted, minlength=num_classes**2).view(num_classes, num_classes)


def accuracy(counts: np.ndarray) -> float:
    """The share on the diagonal, in percent."""
    return 100 * float(np.trace(counts) / counts.sum())


def macro_f1(counts: np.ndarray) -> float:
    """The mean of F1 over the classes that occur, right or predicted, in percent."""
    target, predicted = np.nonzero(counts)
    return 100 * float(
        f1_score(target, predicted, sample_weight=counts[target, predicted], average="macro", zero_division=0)
    )


def positive_f1(counts: np.ndarray) -> float:
    """F1 of the last class, of two the positive one, in percent."""
    target, predicted = np.nonzero(counts)
    last = len(counts) - 1
    weights = counts[target, predicted]
    return 100 * float(f1_score(target == last, predicted == last, sample_weight=weights, zero_division=0))


def matthews(counts: np.ndarray) -> float:
    """Matthews' correlation of right and predicted classes, in percent; 0 where either are all the same."""
    target, predicted = np.nonzero(counts)
    if min(len(set(target)), len(set(predicted))) < 2:
        return 0.0
    return 100 * float(matthews_corrcoef(target, predicted, sample_weight=counts[target, predicted]))


def class_figures(counts: np.ndarray) -> dict[str, float]:
    """All figures by name: accuracy, macro F1, Matthews' correlation, and where there are two classes F1 of the second."""
    figures = {"accuracy": accuracy(counts), "macro_f1": macro_f1(counts), "matthews": matthews(counts)}
    return {**figures, "f1": positive_f1(counts)} if len(counts) == 2 else figures


def confusion_line(counts: np.ndarray, names: Sequence[str]) -> str:
    """The matrix in one line: each right class, and how often it was taken for each class, in their order."""
    return "; ".join(
        f"{name}: {' '.join(f'{count:.0f}' for count in row)}" for name, row in zip(names, counts.tolist(), strict=True)
    )


# FROM data/correlations: How well predicted numbers go with the right ones, in percent.


def pearson(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's correlation; 0 where all predictions are the same, or there are fewer than two."""
    return _correlation(stats.pearsonr, predicted, right)


def spearman(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's correlation, that of ranks; 0 as for :func:`pearson`."""
    return _correlation(stats.spearmanr, predicted, right)


def _correlation(measure, predicted: Sequence[float], right: Sequence[float]) -> float:
    if min(len(set(map(float, predicted))), len(set(map(float, right)))) < 2:
        return 0.0
    with warnings.catch_warnings():
        # Of predictions that are all but the same it warns, and answers.
        warnings.simplefilter("ignore")
        return 100 * float(measure(predicted, right).statistic)
