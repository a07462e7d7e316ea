"""Pairs of which a side, or both, are symbol trees, as a fairseq dataset."""

from __future__ import annotations

from fairseq.data import LanguagePairDataset

from tree_fairseq.data.symbol_table import SymbolTable
from tree_fairseq.data.symbol_tree_batch import collate_symbol_trees
from tree_fairseq.data.wrapped_pairs import WrappedPairs


class SymbolTreePairDataset(WrappedPairs):
    """Adds ``source_tree`` and ``previous_tree`` to the batches of a :class:`LanguagePairDataset`.

    A tree ends when no slot is open, so a source tree has no EOS, and none is to be predicted after a target tree.

    Args:
        dataset: pairs of sequences
        source_symbols: of the source's dictionary; None if the source is a sequence
        target_symbols: the same of the target
        keep_remainder: as :class:`WrappedPairs` has it
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

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates pairs as the wrapped dataset does, and adds the trees.

        Returns:
            fairseq's batch; in ``net_input`` the trees (:mod:`tree_fairseq.data.symbol_tree_batch`), and in ``target``
            padding in the place of a tree's EOS
        """
        batch = self.dataset.collater(samples, pad_to_length=pad_to_length)
        if not batch:
            return batch
        net_input = batch["net_input"]
        if self.source_symbols is not None:
            net_input["source_tree"] = collate_symbol_trees(net_input["src_tokens"], self.source_symbols)
        if self.target_symbols is not None and "prev_output_tokens" in net_input:
            net_input["previous_tree"] = collate_symbol_trees(net_input["prev_output_tokens"], self.target_symbols)
            ends = batch["target"].eq(self.dataset.eos)
            batch["target"] = batch["target"].masked_fill(ends, self.dataset.tgt_dict.pad())
            batch["ntokens"] -= int(ends.sum())
        return batch
