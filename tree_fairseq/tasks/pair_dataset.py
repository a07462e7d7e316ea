"""Pairs of texts with trees as fairseq datasets, and new lines with trees for fairseq's interactive command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq import utils
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.nn.modalities import SOURCE_LENGTHS
from tree_fairseq.nn.tree_batch import TreeReader, collate_trees
from tree_fairseq.nn.tree_lstm import level_sizes, level_widths
from tree_fairseq.trees.symbols import parents_and_branches


class _Place(NamedTuple):
    number: int


class _Layout(NamedTuple):
    """A batch with places for tensors, and the type and shape of each tensor in the order of the buffer."""

    batch: dict
    kinds: list[tuple[torch.dtype, torch.Size]]


class BufferedBatch(dict):
    """A batch, as a dict; the tensors in it, and in its dicts, lists and tuples, are pickled and pinned as one.

    torch makes a shared file for each tensor that a loading process hands over, and the training process opens each. A
    batch with trees has about twenty tensors, and this takes several times as long as it takes to copy them.
    Other objects are pickled as they are, and not pinned. A tensor that is there twice is copied once.
    """

    def __reduce__(self) -> tuple:
        return _put_together, _in_one_buffer(self)

    def pin_memory(self) -> BufferedBatch:
        """Returns the batch in pinned memory. torch's loader calls this."""
        return _put_together(*_in_one_buffer(self, pin_memory=True))


def _in_one_buffer(batch: Mapping, **memory: bool) -> tuple[Tensor, _Layout]:
    found: dict[int, Tensor] = {}
    _with(dict(batch), lambda value: found.setdefault(id(value), value) if isinstance(value, Tensor) else value)
    # Tensors of wider numbers come first, so each begins at a multiple of the width of its numbers.
    ordered = sorted(found.values(), key=lambda tensor: -tensor.element_size())
    places = {id(tensor): _Place(number) for number, tensor in enumerate(ordered)}
    placed = _with(dict(batch), lambda value: places[id(value)] if isinstance(value, Tensor) else value)
    layout = _Layout(placed, [(tensor.dtype, tensor.shape) for tensor in ordered])
    buffer = torch.empty(sum(_sizes(layout)), dtype=torch.uint8, **memory)
    for view, tensor in zip(_views(buffer, layout), ordered):
        view.copy_(tensor)
    return buffer, layout


def _put_together(buffer: Tensor, layout: _Layout) -> BufferedBatch:
    views = _views(buffer, layout)
    return BufferedBatch(_with(layout.batch, lambda value: views[value.number] if type(value) is _Place else value))


def _sizes(layout: _Layout) -> list[int]:
    return [shape.numel() * dtype.itemsize for dtype, shape in layout.kinds]


def _views(buffer: Tensor, layout: _Layout) -> list[Tensor]:
    parts = buffer.split(_sizes(layout)) if layout.kinds else ()
    return [part.view(dtype).view(shape) for part, (dtype, shape) in zip(parts, layout.kinds)]


def _with(value: Any, change: Callable[[Any], Any]) -> Any:
    """Copies dicts, lists and tuples with all that is in them changed."""
    if type(value) is dict:
        return {name: _with(part, change) for name, part in value.items()}
    return type(value)(_with(part, change) for part in value) if type(value) in (list, tuple) else change(value)


class KeepsRemainder(FairseqDataset):
    """A data set that can keep its last examples; comes before other data sets among the bases of a class."""

    keep_remainder = False
    """Whether to keep the rest after batches of a required multiple; fairseq drops these longest examples."""

    def batch_by_size(self, indices: np.ndarray, *limits: Any, **more_limits: Any) -> list[np.ndarray]:
        """Cuts sorted examples into batches by the tokens that this data set counts."""
        if not len(indices):
            return []
        # Not a wrapped data set's: it would count by itself.
        batches = FairseqDataset.batch_by_size(self, indices, *limits, **more_limits)
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if self.keep_remainder and len(rest) else batches


class PairDataset(KeepsRemainder, BaseWrapperDataset):
    """A :class:`LanguagePairDataset` whose batches get something added."""

    def __init__(self, dataset: LanguagePairDataset, keep_remainder: bool = False):
        super().__init__(dataset)
        self.keep_remainder = keep_remainder

    @property
    def src(self):
        """Tokens of the sources; fairseq-generate asks for the original text."""
        return self.dataset.src

    @property
    def tgt(self):
        """Tokens of the targets, or None."""
        return self.dataset.tgt

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Tokens of the longer side of each pair."""
        return self.dataset.num_tokens_vec(indices)

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates pairs as the wrapped data set does, adds :data:`SOURCE_LENGTHS`, and then :meth:`complete` it."""
        batch = BufferedBatch(self.dataset.collater(samples, pad_to_length=pad_to_length))
        if batch:
            batch["net_input"][SOURCE_LENGTHS] = batch["net_input"]["src_lengths"].numpy()
            by_id = {sample["id"]: sample for sample in samples}
            self.complete(batch, [by_id[index] for index in batch["id"].tolist()])
        return batch

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds something to a batch; ``samples`` are its examples in the order of the batch."""
        raise NotImplementedError


class SpanPairDataset(PairDataset):
    """Adds ``net_input["source_spans"]``, the trees of the sources, to the batches of a :class:`LanguagePairDataset`.

    ``trees`` are full trees, of which ``read_tree`` keeps the nodes that models read.
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        trees: Sequence[StoredTree],
        read_tree: TreeReader,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.trees = trees
        self.read_tree = read_tree

    def __getitem__(self, index: int) -> dict:
        return {**self.dataset[index], "source_spans": self.read_tree(self.trees[index])}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        spans = [each["source_spans"] for each in samples]
        batch["net_input"]["source_spans"] = collate_trees(spans, self.read_tree.labels.pad())


class InputLines(list):
    """New lines of text; ``first_line`` is the number of the first one in the input, from 1, for messages."""

    def __init__(self, lines: Iterable[str] = (), first_line: int = 1):
        super().__init__(lines)
        self.first_line = first_line


def first_line_of(lines: Sequence[str]) -> int:
    """Returns the number of the first line; 1 unless the lines are :class:`InputLines`."""
    return getattr(lines, "first_line", 1)


class NewLines(list):
    """Token tensors ``[N]`` int64 of new lines, and their trees. ``trees`` is None without trees beside the tokens.

    fairseq's interactive command passes the list of token tensors from one method of the task to another and only
    reads its items, so the trees travel with the list. ``words`` are the tokens of each line as they were written.
    """

    def __init__(self, tokens: Sequence[Tensor], trees: Sequence | None = None, words: Sequence[Sequence[str]] = ()):
        super().__init__(tokens)
        self.trees = trees
        self.words = words

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each line, ``[lines]`` int64."""
        return np.array([len(tokens) for tokens in self], np.int64)


class CarriedInput(dict):
    """The part of ``net_input`` of new lines that is not tokens or lengths; batches have it as ``constraints``.

    The interactive command rebuilds each batch from tokens, lengths and constraints. Nothing else reaches the task.
    """

    def cuda(self) -> CarriedInput:
        """Moves all tensors to the GPU; the command calls this as it would for a tensor."""
        return CarriedInput(utils.move_to_cuda(dict(self)))


class NewSpanPairDataset(SpanPairDataset):
    """New lines, whose batches carry their trees (:class:`CarriedInput`)."""

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Also puts the trees into ``constraints``."""
        super().complete(batch, samples)
        batch["constraints"] = CarriedInput(source_spans=batch["net_input"]["source_spans"])


def collate_symbol_trees(tokens: Tensor, symbols: SymbolTable) -> dict[str, Tensor | np.ndarray]:
    """Finds the parents and branches of symbols ``[B, N]``, which are padded on either side.

    Returns:
        ``parents``, the column of each symbol's parent, and ``branches``, its place under it, each ``[B, N]`` int64;
        -1 for the root and for symbols without an arity (START, EOS, padding), which belong to no tree;
        ``is_symbol`` ``[B, N]`` bool, true for the others. ``level_sizes`` and ``level_widths`` are arrays of the host
        (:mod:`tree_fairseq.nn.tree_lstm`)
    """
    arity = symbols.arity.numpy()[tokens.cpu().numpy()]  # B x N
    parents, branches = np.full((2, *arity.shape), -1, np.int64)
    for row, arities in enumerate(arity):
        columns = np.flatnonzero(arities >= 0)
        try:
            own, branch = parents_and_branches(arities[columns].tolist(), symbols.encoding)
        except SymbolTreeError as error:
            raise type(error)(f"sentence {row + 1} of a batch: {error.message}") from None
        places = np.array(own, np.int64)
        parents[row, columns] = np.where(places >= 0, columns[places], -1)
        branches[row, columns] = branch
    is_symbol = arity >= 0
    tree = {"parents": parents, "branches": branches, "is_symbol": is_symbol}
    return {
        **{name: torch.from_numpy(values).to(tokens.device) for name, values in tree.items()},
        "level_sizes": level_sizes(parents, branches, is_symbol, symbols.degree),
        "level_widths": level_widths(parents, is_symbol),
    }


class SymbolPairDataset(PairDataset):
    """Adds ``source_symbol_tree`` and ``previous_symbol_tree`` to the batches of a :class:`LanguagePairDataset`.

    A tree ends when no slot is open, so a source tree has no EOS, and none is to be predicted after a target tree. The
    table of symbols of a side is None if that side is a sequence.
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        source_symbols: SymbolTable | None,
        target_symbols: SymbolTable | None,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.source_symbols = source_symbols
        self.target_symbols = target_symbols
        dataset.remove_eos_from_source = source_symbols is not None

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds trees (:func:`collate_symbol_trees`); ``target`` has padding for a tree's EOS."""
        net_input = batch["net_input"]
        if self.source_symbols is not None:
            net_input["source_symbol_tree"] = collate_symbol_trees(net_input["src_tokens"], self.source_symbols)
        if self.target_symbols is not None and "prev_output_tokens" in net_input:
            net_input["previous_symbol_tree"] = collate_symbol_trees(
                net_input["prev_output_tokens"], self.target_symbols
            )
            ends = batch["target"].eq(self.dataset.eos)
            batch["target"] = batch["target"].masked_fill(ends, self.dataset.tgt_dict.pad())
            batch["ntokens"] -= int(ends.sum())
