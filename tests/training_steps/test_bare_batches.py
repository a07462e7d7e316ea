"""Batches that lack something, such as nodes, use the same parameters as others.

Processes that train together by ``--ddp-backend c10d``, fairseq's default, wait for the gradient of every parameter. If
a batch of one of them left a parameter out, all of them would stop.
"""

from __future__ import annotations

import pytest

from tests.training_steps.cases import CASES, Folders, Step
from tests.training_steps.test_ranks import IS_LONG, of_interest

TRIED = CASES if IS_LONG else of_interest(CASES)
BARE = {
    "translation": [("", "")] * 5 + [("(VBZ sings)", "singt")] * 5,
    "programs": [("rivers", "rivers")] * 5,
    "trees": [("(1 good)",)] * 5,
    "documents": [("it\tpos",)] * 5,
    "sentence": [("it\t1",)] * 5,
    "rated": [("it\tit\t4.500",)] * 5,
}
"""Blank lines, single words and trees of one node: a whole batch of each kind of example."""


class BareFolders(Folders):
    """Folders whose training data begin with examples that have hardly anything."""

    sizes = (14, 4, 4)

    def first_examples(self, kind: str) -> list[tuple[str, ...]]:
        return BARE[kind]


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> BareFolders:
    return BareFolders(tmp_path_factory.mktemp("bare"))


@pytest.mark.parametrize("case", TRIED, ids=[case.name for case in TRIED])
def test_every_batch_uses_every_parameter(case, bare):
    step = Step(case, bare)
    for batch in step.batches():
        step.batch = batch
        loss = step()
        assert loss.isfinite()
        gradients = step.gradients()
        assert all(gradient.isfinite().all() for gradient in gradients.values())
        assert not [name for name, _ in step.model.named_parameters() if name not in gradients]
