"""Paired tests over the sentences of a test set, which say whether one system is better than another.

* ``bootstrap`` (Koehn 2004): the test set is drawn again from its sentences, with repetition. The p-value is the share
  of samples whose difference of the systems is as far from the mean difference as the real one is from zero.
* ``randomization`` (approximate randomization, Riezler & Maxwell 2005): each sentence's two outputs change places with
  probability 1/2. The p-value is the share of samples whose difference is as large as the real one.

Where sentences come in groups, such as those about one rare word, they are not independent. Then whole groups are
drawn, or change places (the cluster bootstrap of Field & Welsh 2007).

Both are two-sided, and count the real test set as one more sample, so that no p-value is 0. :func:`paired_test`
compares metrics that are functions of sums over sentences, as those of sacreBLEU are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tree_fairseq.errors import ScoringError

BOOTSTRAP, RANDOMIZATION = "bootstrap", "randomization"
SAMPLES = {BOOTSTRAP: 1000, RANDOMIZATION: 10_000}  # sacreBLEU's defaults
_TITLES = {BOOTSTRAP: "paired bootstrap", RANDOMIZATION: "approximate randomization"}
_DRAWN = 2_000_000  # at most this number of sentences is drawn at once, to bound memory

Statistic = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""Computes metrics ``[...]`` by name from sums of counts ``[..., F]``."""


@dataclass(frozen=True)
class Resampling:
    """How systems are compared: ``bootstrap`` or ``randomization``, number of samples, seed, and groups."""

    kind: str = BOOTSTRAP
    samples: int = SAMPLES[BOOTSTRAP]
    seed: int = 12345
    groups: Sequence[str] = ()  # the group of each sentence; where it is empty, each is drawn alone

    @property
    def signature(self) -> str:
        """The name of the test for reports."""
        drawn = f" of {len(set(self.groups))} groups" if self.groups else ""
        return f"{_TITLES[self.kind]}{drawn}, {self.samples} samples, seed {self.seed}, two-sided"


def _batches(test: Resampling, sentences: int) -> Iterator[np.ndarray]:
    """Yields weights ``[samples, sentences]``: how often a sentence is drawn, or whether its outputs change places."""
    generator = np.random.default_rng(test.seed)
    at_once = max(1, _DRAWN // sentences)
    for first in range(0, test.samples, at_once):
        rows = min(at_once, test.samples - first)
        if test.kind == RANDOMIZATION:
            yield generator.integers(0, 2, (rows, sentences)).astype(np.float64)
        else:
            drawn = generator.integers(0, sentences, (rows, sentences)) + sentences * np.arange(rows)[:, None]
            yield np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences).astype(np.float64)


def paired_test(baseline: np.ndarray, system: np.ndarray, statistic: Statistic, test: Resampling) -> dict[str, dict]:
    """Compares two systems by metrics that are functions of sums over sentences.

    Args:
        baseline: counts of each sentence, ``[sentences, F]``
        system: the same of the other system
        statistic: computes the metrics from sums of counts
        test: how to draw samples

    Returns:
        by metric ``difference``, ``p_value`` and ``signature``; of a bootstrap also ``interval``, that of 95 % of the
        differences

    Raises:
        ScoringError: the systems have different numbers of sentences, or there are more or fewer groups of sentences
    """
    if baseline.shape != system.shape:
        raise ScoringError(f"{system.shape[0]} sentences of the system, but {baseline.shape[0]} of the baseline")
    if test.groups:
        baseline, system = (_sums_of_groups(counts, test.groups) for counts in (baseline, system))
    totals = baseline.sum(axis=0), system.sum(axis=0)  # [F] each
    real = _differences(*totals, statistic)
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in real}
    for weights in _batches(test, baseline.shape[0]):
        ours, theirs = weights @ system, weights @ baseline  # [samples, F]
        if test.kind == RANDOMIZATION:
            ours, theirs = totals[1] - ours + theirs, totals[0] - theirs + ours
        for name, values in _differences(theirs, ours, statistic).items():
            drawn[name].append(values)
    rows = {}
    for name, difference in real.items():
        samples, interval = np.concatenate(drawn[name]), {}
        if test.kind == BOOTSTRAP:
            interval = {"interval": np.percentile(samples, [2.5, 97.5]).tolist()}
            samples = samples - samples.mean()
        # The order of additions changes sums of floating-point numbers.
        as_far = np.abs(samples) >= abs(difference) - 1e-9
        p_value = float((as_far.sum() + 1) / (len(samples) + 1))
        rows[name] = {"difference": float(difference), "p_value": p_value, "signature": test.signature, **interval}
    return rows


def _sums_of_groups(counts: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    if len(groups) != counts.shape[0]:
        raise ScoringError(f"{counts.shape[0]} sentences, but groups of {len(groups)}")
    names, places = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.zeros((len(names), counts.shape[1]))
    np.add.at(sums, places, counts)
    return sums


def _differences(baseline: np.ndarray, system: np.ndarray, statistic: Statistic) -> dict[str, np.ndarray]:
    ours, theirs = statistic(system), statistic(baseline)
    return {name: np.asarray(values) - theirs[name] for name, values in ours.items()}
