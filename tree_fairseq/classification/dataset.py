"""Examples to classify, as fairseq's datasets: plain texts, and documents with the trees of their sentences.

A batch of B documents has R sentences in the order of the documents; each has up to N leaves and M nodes. The root of a
sentence is its node 0, or its leaf 0 if the sentence is a single leaf, which has no node.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Callable, ClassVar

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tree_fairseq.classification.folder import IGNORE, class_targets, read_target
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import CorruptFileError, LongSentenceError
from tree_fairseq.nn.tree_batch import NodeArrays, TreeReader, collate_trees
from tree_fairseq.tasks.pair_dataset import BufferedBatch, CarriedInput, KeepsRemainder
from tree_fairseq.trees.spans import unary_chains

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SentenceTree:
    """A sentence of a document, without its words; its targets are None if only examples have classes."""

    position: int  # of its first leaf in the document
    length: int  # N
    nodes: NodeArrays  # with spans relative to the sentence
    node_target: np.ndarray | None = None  # ``[M]`` int64, classes; `IGNORE` where there is none
    leaf_target: np.ndarray | None = None  # ``[N]`` int64, likewise

    def joined(self, other: SentenceTree) -> SentenceTree:
        """The forest of this sentence and the one that follows it; targets are left out."""
        ours, theirs = self.nodes, other.nodes
        shifted = theirs.label, theirs.start + self.length, theirs.end + self.length, theirs.depth
        pairs = zip((ours.label, ours.start, ours.end, ours.depth), shifted)
        return SentenceTree(self.position, self.length + other.length, NodeArrays(*map(np.concatenate, pairs)))


@dataclass(frozen=True)
class SentenceTreeReader:
    """Cuts a stored forest into sentences and reduces their trees to the nodes that ``read_tree`` keeps."""

    read_tree: TreeReader
    nodes_have_classes: bool = False  # otherwise only examples have them

    def __call__(self, tree: StoredTree, classes: np.ndarray | None = None) -> list[SentenceTree]:
        """Returns the sentences of a document, given the classes of its nodes in preorder (:func:`class_targets`)."""
        node_target = leaf_target = None
        if self.nodes_have_classes and classes is not None:
            node_target, leaf_target = self._targets(tree, classes)
        nodes = self.read_tree(tree)
        roots = np.flatnonzero(tree.depth == 0)
        starts, ends = tree.start[roots].tolist(), tree.end[roots].tolist()
        cuts = np.searchsorted(nodes.start, [*starts, tree.num_leaves]).tolist()
        sentences = []
        for start, end, first, last in zip(starts, ends, cuts, cuts[1:]):
            own = slice(first, last)
            arrays = NodeArrays(nodes.label[own], nodes.start[own] - start, nodes.end[own] - start, nodes.depth[own])
            targets = (None, None) if node_target is None else (node_target[own], leaf_target[start:end])
            sentences.append(SentenceTree(start, end - start, arrays, *targets))
        return sentences

    def _targets(self, tree: StoredTree, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes of the nodes that are kept and of the leaves; a unary chain has that of its top."""
        if len(classes) != len(tree.label):
            problem = f"{len(classes)} classes for a tree of {len(tree.label)} nodes"
            raise CorruptFileError(f"{problem}. Preprocess again")
        _, top = unary_chains(np.stack([tree.start, tree.end], axis=1))
        over_one = np.flatnonzero(tree.end - tree.start == 1)
        leaves, first = np.unique(tree.start[over_one], return_index=True)
        leaf_target = np.full(tree.num_leaves, IGNORE, np.int64)
        leaf_target[leaves] = classes[over_one[first]]
        return classes if self.read_tree.keep_unary else classes[top], leaf_target


def kept_leaves(tree: StoredTree, limit: int) -> tuple[int, int]:
    """Cuts a document after the last sentence that ends within ``limit`` leaves.

    Returns the number of leaves that remain, 0 if the first sentence is longer, and that of sentences left out.
    """
    ends = tree.end[tree.depth == 0]
    kept = int(np.searchsorted(ends, limit, side="right"))
    return int(ends[kept - 1]) if kept else 0, len(ends) - kept


def collate_sentences(
    documents: Sequence[tuple[Tensor, Sequence[SentenceTree]]], pad: int, label_pad: int
) -> dict[str, Any]:
    """Stacks the sentences of B documents, given the leaves of each and its sentences.

    Returns:
        ``tokens`` ``[R, N]``, padded on the right; ``label``, ``start``, ``end`` and ``depth`` ``[R, M]`` and
        ``branches`` (:func:`tree_fairseq.nn.tree_batch.collate_trees`); ``document`` ``[R]``, the document of
        each sentence, ascending from 0; all int64. ``num_documents`` is B. If a document has several sentences,
        ``packed`` holds them in fewer rows (:func:`_packed`)
    """
    sentences = [(number, sentence) for number, (_, own) in enumerate(documents) for sentence in own]
    batch = {**_collate_rows(documents, sentences, pad, label_pad), "num_documents": len(documents)}
    if len(sentences) == len(documents):
        return batch
    return {**batch, "packed": _packed(documents, sentences, pad, label_pad)}


def _collate_rows(
    documents: Sequence[tuple[Tensor, Any]], rows: Sequence[tuple[int, SentenceTree]], pad: int, label_pad: int
) -> dict[str, Any]:
    texts = [documents[number][0][own.position : own.position + own.length] for number, own in rows]
    return {
        "tokens": pad_sequence(texts, batch_first=True, padding_value=pad),
        **collate_trees([own.nodes for _, own in rows], label_pad),
        "document": torch.tensor([number for number, _ in rows], dtype=torch.int64),
    }


def _packed(
    documents: Sequence[tuple[Tensor, Any]], sentences: Sequence[tuple[int, SentenceTree]], pad: int, label_pad: int
) -> dict[str, Any]:
    """Joins consecutive sentences of one document as the trees of a forest, as long as they are no wider than others.

    If each sentence were padded by itself, most of a batch would be padding.

    Returns:
        the entries of rows; ``leaves`` ``[R, N]`` and ``nodes`` ``[R, M]`` int64, the places of those of each sentence
        in the flattened rows, one past the last at padding; ``most_leaves``, the greatest number in a document
    """
    sizes = [(own.length, len(own.nodes)) for _, own in sentences]
    num_leaves, num_nodes = map(max, zip(*sizes))
    rows: list[tuple[int, SentenceTree]] = []
    first: list[tuple[int, int, int]] = []  # row, leaf and node with which each sentence begins
    for (number, own), (leaves, nodes) in zip(sentences, sizes):
        row = rows[-1][1] if rows and rows[-1][0] == number else None
        if row is None or row.length + leaves > num_leaves or len(row.nodes) + nodes > num_nodes:
            first.append((len(rows), 0, 0))
            rows.append((number, own))
        else:
            first.append((len(rows) - 1, row.length, len(row.nodes)))
            rows[-1] = number, row.joined(own)
    batch = _collate_rows(documents, rows, pad, label_pad)
    row_numbers, *begins = torch.tensor(first).unbind(1)

    def places(begin: Tensor, size: Tensor, width: int) -> Tensor:
        column = torch.arange(int(size.max()))
        here = (row_numbers * width + begin)[:, None] + column
        return here.masked_fill(column >= size[:, None], len(rows) * width)

    widths = batch["tokens"].size(1), batch["label"].size(1)
    leaves, nodes = map(places, begins, torch.tensor(sizes).unbind(1), widths)
    most = max(sum(own.length for own in trees) for _, trees in documents)
    return {**batch, "leaves": leaves, "nodes": nodes, "most_leaves": most}


def collate_targets(sentences: Sequence[SentenceTree]) -> dict[str, Tensor | int]:
    """Stacks the classes of nodes and leaves: ``node_target`` ``[R, M]`` and ``leaf_target`` ``[R, N]``, int64.

    ``num_targets`` is the number of classes among them.
    """
    targets = {
        name: pad_sequence([torch.from_numpy(getattr(own, name)) for own in sentences], True, IGNORE)
        for name in ("node_target", "leaf_target")
    }
    return {**targets, "num_targets": sum(int((target != IGNORE).sum()) for target in targets.values())}


@dataclass(eq=False)
class TextDataset(KeepsRemainder):
    """Texts with targets: classes from 0, or numbers."""

    # A test set is classified to its last line. The task refuses texts that are too long for training.
    keep_remainder = True
    tree_inputs: ClassVar[tuple[str, ...]] = ()

    tokens: Sequence[Tensor]  # of each text
    sizes: np.ndarray  # how many of them are read, from the first, ``[texts]`` int64
    dictionary: Dictionary  # of the tokens
    targets: Sequence[Tensor] | None = None  # line of target tokens of each text; None if they are not known
    target_dictionary: Dictionary | None = None
    shuffle: bool = False  # whether texts of the same length come in random order
    is_typed: bool = False  # whether the texts are new lines, whose batches carry their trees (:class:`CarriedInput`)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> dict:
        source = self.tokens[index][: int(self.sizes[index])].long()
        target = None if self.targets is None else read_target(self.targets[index], self.target_dictionary, index)
        return {"id": index, "source": source, "target": target}

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Stacks texts, the longest first, as recurrent encoders need them.

        ``src_tokens`` are ``[B, N]``, padded on the right, and ``target`` ``[B]``: int64 classes from 0, float32
        numbers, or None.
        """
        if not samples:
            return BufferedBatch()
        samples = sorted(samples, key=lambda sample: -len(sample["source"]))
        batch = BufferedBatch(self._collate(samples))
        if self.is_typed and self.tree_inputs:
            batch["constraints"] = CarriedInput({name: batch["net_input"][name] for name in self.tree_inputs})
        return batch

    def _collate(self, samples: list[dict]) -> dict:
        sources, targets = ([sample[name] for sample in samples] for name in ("source", "target"))
        lengths = torch.tensor([len(source) for source in sources])
        tokens = data_utils.collate_tokens(sources, self.dictionary.pad())
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": tokens, "src_lengths": lengths},
            "target": None if targets[0] is None else torch.tensor(targets),
        }

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    size = num_tokens

    def ordered_indices(self) -> np.ndarray:
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]


class DocumentDataset(TextDataset):
    """Documents with the trees of their sentences and, if known, their classes.

    ``trees`` are the full trees of each; the lengths of the texts come from :func:`document_lengths`. Each of
    ``completions`` adds to the ``sentence_trees`` of each batch, given the symbol of padding.
    """

    tree_inputs = ("sentence_trees",)

    def __init__(
        self,
        trees: Sequence[StoredTree],
        read_sentences: SentenceTreeReader,
        *texts,
        completions: Collection[Callable[[dict[str, Any], int], dict[str, Any]]] = (),
        **options,
    ):
        super().__init__(*texts, **options)
        self.trees = trees
        self.read_sentences = read_sentences
        self.completions = completions

    def __getitem__(self, index: int) -> dict:
        item, tree = super().__getitem__(index), self.trees[index]
        if len(item["source"]) < tree.num_leaves:
            tree = tree.cut(len(item["source"]))
        classes = None if self.targets is None else class_targets(self.targets[index], self.target_dictionary)
        return {**item, "sentences": self.read_sentences(tree, classes)}

    def _collate(self, samples: list[dict]) -> dict:
        """Adds ``sentence_trees`` and, if known, the targets of :func:`collate_targets`."""
        batch = super()._collate(samples)
        documents = [(sample["source"], sample["sentences"]) for sample in samples]
        label_pad = self.read_sentences.read_tree.labels.pad()
        collated = collate_sentences(documents, self.dictionary.pad(), label_pad)
        for complete in self.completions:
            collated = complete(collated, self.dictionary.pad())
        batch["net_input"]["sentence_trees"] = collated
        sentences = [sentence for _, own in documents for sentence in own]
        return {**batch, **collate_targets(sentences)} if sentences[0].node_target is not None else batch


def document_lengths(
    trees: Sequence[StoredTree], leaves: np.ndarray, limit: int, name: str, first: int = 1
) -> np.ndarray:
    """Returns how many leaves of each document a model reads, ``[documents]`` int64.

    Documents of more than ``limit`` leaves are cut at a sentence, with a warning that has their ``name``. Raises
    LongSentenceError for one whose first sentence is longer than the limit; ``first`` is the number of the first.
    """
    kept = np.array(leaves, np.int64)
    too_long, left_out = np.flatnonzero(kept > limit).tolist(), 0
    for index in too_long:
        kept[index], sentences = kept_leaves(trees[index], limit)
        left_out += sentences
        if not kept[index]:
            refuse_long_text(f"a sentence of {int(trees[index].end[0])} tokens", limit, name, first + index)
    if too_long:
        message = "[%s] %d documents of more than %d tokens were cut at a sentence: %d sentences left out"
        logger.warning(message, name, len(too_long), limit, left_out)
    return kept


def refuse_long_text(text: str, limit: int, path: str, line: int) -> None:
    """Raises LongSentenceError for a text that is longer than a model reads."""
    hint = "Give a greater --max-source-positions, or preprocess without the line."
    raise LongSentenceError(f"{text}, and --max-source-positions is {limit}", path, line, hint=hint)
