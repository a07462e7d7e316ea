"""What stands for a document where nothing is above its sentences."""

from __future__ import annotations

import torch
from torch import Tensor


def first_of_documents(roots: Tensor, document: Tensor) -> Tensor:
    """The root of the first sentence of each document (Nguyen et al. 2020).

    Args:
        roots: ``[R, D]``, states of the sentences' roots
        document: ``[R]`` int64, the document of each sentence, ascending from 0, none left out

    Returns:
        ``[B, D]``
    """
    return roots[document.diff(prepend=document.new_tensor([-1])) > 0]


def mean_of_documents(roots: Tensor, document: Tensor) -> Tensor:
    """The mean over the roots of all sentences of each document, added up in single precision at least.

    Args:
        roots, document: as above

    Returns:
        ``[B, D]`` in the dtype of ``roots``
    """
    counts = document.bincount()
    exact = roots.to(torch.promote_types(roots.dtype, torch.float32))
    sums = exact.new_zeros(len(counts), roots.size(1)).index_add(0, document, exact)
    return (sums / counts.unsqueeze(1)).to(roots.dtype)


READINGS = {"first": first_of_documents, "mean": mean_of_documents}
