"""Batches in one buffer: what comes back is what was put in, in one tensor."""

from __future__ import annotations

import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_flatten
from torch.utils.data import DataLoader

from tests.training_steps.cases import CASES, Folders, Step
from tree_fairseq.tasks.pair_dataset import BufferedBatch

ODD = torch.tensor([True, False, True])
TWICE = torch.arange(6.0).view(2, 3)
BATCHES = {
    "nested": {
        "id": torch.arange(3),
        "ntokens": 7,
        "target": None,
        "net_input": {"odd": ODD, "lists": [torch.zeros(0, 4, dtype=torch.int32), (torch.tensor(5), "word")]},
        "no strides": [torch.from_numpy(np.zeros(9, np.int32)[:0]), torch.zeros(1).expand(3), torch.arange(9)[::8][:1]],
        "halves": torch.tensor([0.5, -2.0, float("inf")]).bfloat16(),
        "host": np.arange(4),
    },
    "turned": {"matrix": torch.arange(6, dtype=torch.int16).view(2, 3).t(), "other": {"same": TWICE, "again": TWICE}},
    "other objects": {"order": OrderedDict(a=torch.ones(2)), "text": "a"},
    "no tensors": {"nsentences": 2, "net_input": {}},
    "empty": {},
}


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for own, other in zip(found, expected):
            assert_same(own, other)
    else:
        assert found == expected


def buffers(batch) -> set[int]:
    """Where the tensors of a batch with numbers are."""
    found = (value for value in tree_flatten(dict(batch))[0] if isinstance(value, torch.Tensor) and value.numel())
    return {tensor.untyped_storage().data_ptr() for tensor in found}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_a_batch_comes_back_as_it_was(batch):
    found = pickle.loads(pickle.dumps(BufferedBatch(batch)))
    assert_same(dict(found), batch)
    assert len(buffers(found)) <= 1 or "order" in batch


def test_a_tensor_that_is_there_twice_is_copied_once():
    _, (buffer, _) = BufferedBatch(BATCHES["turned"]).__reduce__()
    assert buffer.numel() == 6 * 2 + 6 * 4


def test_pinned_memory_is_one_buffer(monkeypatch):
    asked, empty = [], torch.empty

    def pageable(*shape, pin_memory=False, **options):
        asked.append(pin_memory)
        return empty(*shape, **options)

    monkeypatch.setattr(torch, "empty", pageable)
    batch = BATCHES["nested"]
    found = BufferedBatch(batch).pin_memory()
    assert_same(dict(found), batch)
    assert asked.count(True) == 1 and len(buffers(found)) == 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Folders:
    return Folders(tmp_path_factory.mktemp("steps"))


_KINDS = {
    case.folder: case for case in CASES if case.folder in ("translation", "tree-to-tree", "insertion", "documents")
}


@pytest.mark.parametrize("case", _KINDS.values(), ids=_KINDS)
def test_batches_of_loading_processes_are_in_one_buffer(case, folders):
    step = Step(case, folders)
    dataset = step.task.dataset("train")
    samples = [dataset[index] for index in range(4)]
    expected = dataset.collater(samples)
    [found] = DataLoader(samples, batch_size=4, collate_fn=dataset.collater, num_workers=1, timeout=60)
    assert_same(found, expected)
    assert len(buffers(found)) == 1 < len(buffers(expected))
