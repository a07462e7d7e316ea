"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020) for classification, also of documents."""

from dataclasses import dataclass
from typing import Any, Optional, Union

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

from tree_fairseq.classification.classifier import (
    TRANSFORMER_SIZES,
    DocumentStates,
    TreeClassifier,
    TreeReadoutConfig,
    pool_roots,
)
from tree_fairseq.classification.dataset import DocumentSizes
from tree_fairseq.classification.document_distances import joined_rows
from tree_fairseq.classification.document_structure import DocumentStructure, Placement
from tree_fairseq.classification.packing import pack, unpack
from tree_fairseq.errors import InputError
from tree_fairseq.nn.common_ancestors import leaf_relations
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, bias_tables, flags_of_tables, give_rows, tree_tables
from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import option
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig
from tree_fairseq.tree_transformer.attention import TreeSelfAttention
from tree_fairseq.tree_transformer.model import TreeTransformerEncoder
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


class DocumentAttention(TreeSelfAttention):
    """Subtree-masked attention over sentences as rows; their leaves attend to all leaves of their document.

    It computes the same as :class:`TreeSelfAttention` on a forest of all trees of a document. Nodes attend to nothing
    outside their tree, so they and their accumulation stay within a row. Only the leaves are brought together: no
    tensor has all nodes and all leaves, or all nodes twice, of a document. A super-root comes last in the first row of
    its document and attends to all trees.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Union[DocumentStructure, TreeStructure],
        **unread: Any,
    ) -> tuple[Tensor, None]:
        """Attends within documents; ``query`` is ``[S, R, D]``, leaves then nodes, or ``[S + 1, R, D]``."""
        structure = key_padding_mask
        if isinstance(structure, TreeStructure):
            return super().forward(query, key, value, structure)
        projected = self.q_proj(query), self.k_proj(query), self._accumulate(query, structure)
        if structure.join_leaves and not structure.mask_subtrees:
            everything = structure.everything
            output = everything.to_rows(self._across(projected, everything, everything.attention_bias))
        else:
            output = self._masked(projected, structure)
        return self.out_proj(output), None

    def _masked(self, projected: tuple[Tensor, Tensor, Tensor], structure: DocumentStructure) -> Tensor:
        """Attends from leaves, nodes and super-roots, each with its own mask."""
        rows, query = structure.rows, projected[0]
        within = (self._split_heads(tensor[: rows.padding.size(1)]) for tensor in projected)
        output = [self.look(*within, rows.masks[1:] if structure.join_leaves else self.biased(rows.masks))]
        if structure.join_leaves:
            leaves, bias = structure.leaves, structure.leaves.attention_bias
            if self.distance_bias is not None:
                bias = bias + self.distance_bias()
            output.insert(0, leaves.to_rows(self._across(projected, leaves, bias)))
        if structure.super_roots is not None:
            first_row = structure.super_roots.first_row
            own = query[-1].index_select(0, first_row).unsqueeze(1)  # B x 1 x D
            everything = structure.everything
            attended = self._across(projected, everything, everything.attention_bias, own).squeeze(1)
            last = torch.zeros_like(query[-1:], dtype=attended.dtype)
            output.append(last.index_copy(1, first_row, attended.unsqueeze(0)))
        return torch.cat(output)

    def _accumulate(self, states: Tensor, structure: DocumentStructure) -> Tensor:
        """Projects states to values and accumulates those of nodes and super-roots: the shape of ``states``."""
        rows, roots = structure.rows, structure.super_roots
        leaves = states[: rows.num_leaves]
        heads = self._split_heads(self.v_proj(states))  # R x H x S x D/H
        within = heads[:, :, : rows.padding.size(1)]
        values = self.accumulation(leaves, within, rows).permute(2, 0, 1, 3).flatten(2)  # S x R x D
        if roots is None:
            return values
        own = heads[:, :, -1].index_select(0, roots.first_row)
        accumulated = roots.accumulate(self.accumulation, leaves, within, own, rows).flatten(1)  # B x D
        last = torch.zeros_like(values[:1]).index_copy(1, roots.first_row, accumulated.unsqueeze(0))
        return torch.cat([values, last])

    def _across(
        self, projected: tuple[Tensor, Tensor, Tensor], places: Placement, bias: Tensor, query: Optional[Tensor] = None
    ) -> Tensor:
        """Attends within documents, from the same places or from a query ``[B, T, D]``: ``[B, T, D]``."""
        if query is None:
            query = places.to_documents(projected[0])
        keys_and_values = (places.to_documents(tensor) for tensor in projected[1:])
        heads = [tensor.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for tensor in (query, *keys_and_values)]
        return self.attend(*heads, bias).transpose(1, 2).flatten(2)


class DocumentEncoder(TreeTransformerEncoder):
    """The Tree-Transformer's encoder over documents of many trees.

    A row holds one sentence, or a few of a document if their leaves attend beyond them. Nodes and their accumulation
    never leave their row, so time and memory grow linearly with the number of sentences. With ``leaf_attention`` of
    ``document``, leaves attend to all leaves of their document and count their positions from its start: the result is
    that of one forest of all its trees. With ``sentence``, it is that of every sentence by itself.

    A document is read at the root of its first sentence (the paper), at the mean of the roots of all its sentences, or
    at a super-root (``document_root``), which is embedded as the label ``<s>``, accumulates the whole document and
    attends to all of it. The root of a sentence of one leaf is the leaf.
    """

    attention = DocumentAttention

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.join_leaves = cfg.leaf_attention == "document"
        self.document_root, self.super_root = cfg.document_root, cfg.document_root == "super"

    def forward(self, sentence_trees: dict[str, Any]) -> DocumentStates:
        """Encodes a batch of documents, packed if that helps; the first node of each sentence is its root."""
        sizes, sentences = _sizes(sentence_trees, self.padding_idx), sentence_trees
        packed = self.join_leaves and len(sentence_trees["document"]) > sizes.documents
        if packed:
            # Leaves attend beyond their sentence, and nodes to no other tree of their row.
            sentences = sentence_trees.get("packed") or pack(sentence_trees, self.padding_idx, self.padding_idx)
        tokens, document = sentences["tokens"], sentences["document"]
        batch = TreeBatch.from_net_input(sentences, tokens, self.padding_idx)
        structure = self._documents(batch, document, sizes)
        if len(self.layers) and self.layers[0].self_attn.distance_bias is not None:
            self._give_rows(structure, batch)
        embedded = [self._embed_leaves(tokens, structure), self.forward_labels(batch.label)]
        if self.super_root:
            embedded.append(self.forward_labels(torch.full_like(document, self.dictionary.bos()).unsqueeze(1)))
        x, _ = self.forward_layers(torch.cat(embedded, dim=1), structure.padding, structure)
        num_leaves, num_nodes = tokens.size(1), batch.label.size(1)
        leaves, nodes = x[: num_leaves + num_nodes].transpose(0, 1).split([num_leaves, num_nodes], dim=1)
        if packed:
            leaves, nodes = unpack(leaves, sentences["leaves"]), unpack(nodes, sentences["nodes"])
        if self.super_root:
            roots = x[-1].index_select(0, structure.super_roots.first_row)
        else:
            has_node = (sentence_trees["end"] > sentence_trees["start"]).any(1, keepdim=True)
            own = torch.where(has_node, nodes[:, 0], leaves[:, 0]) if nodes.size(1) else leaves[:, 0]
            roots = pool_roots(own, sentence_trees["document"], self.document_root, sizes.documents)
        return DocumentStates(leaves, nodes, roots)

    def _documents(
        self, batch: TreeBatch, document: Tensor, sizes: DocumentSizes
    ) -> Union[DocumentStructure, TreeStructure]:
        """The structure that the layers need: only that of the trees if nothing joins the sentences."""
        rows = self.build_structure(batch)
        if not self.super_root and (len(document) == sizes.documents or not self.join_leaves):
            return rows
        return DocumentStructure.build(
            batch,
            rows,
            document,
            self.super_root,
            self.join_leaves,
            mask_subtrees=not self.cfg.no_subtree_mask,
            count_leaf=self.cfg.accumulation_denominator == "with-leaf",
            sizes=sizes,
            limits=(self.cfg.max_horizontal_positions, self.cfg.max_vertical_positions),
        )

    def _give_rows(self, structure: Union[DocumentStructure, TreeStructure], batch: TreeBatch) -> None:
        """Gives the layers the rows of biases between leaves that attend to each other."""
        limit, num_leaves = self.cfg.max_distance, batch.is_leaf.size(1)
        trees = leaf_relations(tree_tables(self.cfg), batch, limit, self.padding_idx)
        if isinstance(structure, DocumentStructure) and structure.join_leaves:
            trees = joined_rows(trees, structure.leaves, limit, self.padding_idx)
            num_leaves = structure.leaves.padding.size(1)
        give_rows(self.layers, self.cfg, num_leaves, trees, batch.start.device)

    def _embed_leaves(self, tokens: Tensor, structure: Union[DocumentStructure, TreeStructure]) -> Tensor:
        """Embeds leaves ``[R, N]`` with their positions in the sentence or in the document: ``[R, N, D]``."""
        if not self.join_leaves or isinstance(structure, TreeStructure):
            self._check_length(tokens, "sentence")
            return self.forward_embedding(tokens)[0]
        text = structure.leaves.to_documents(tokens.t())  # B x leaves of a document; padding is never read
        self._check_length(text, "document")
        return structure.leaves.to_rows(self.forward_embedding(text)[0]).transpose(0, 1)

    def _check_length(self, tokens: Tensor, name: str) -> None:
        """Refuses texts beyond learned positions; sinusoidal ones are made as needed."""
        positions = self.embed_positions
        if isinstance(positions, LearnedPositionalEmbedding) and tokens.size(1) > positions.max_positions:
            problem = f"a {name} has {tokens.size(1)} leaves, but learned positions end at {positions.max_positions}"
            hint = "Give a greater --max-source-positions, or leave out --encoder-learned-pos."
            raise InputError(problem, hint=hint)


def _sizes(sentence_trees: dict[str, Any], pad: int) -> DocumentSizes:
    """The sizes of collated documents, counted if they are not known."""
    if "sizes" in sentence_trees:
        return DocumentSizes(**sentence_trees["sizes"])
    is_leaf, is_node = sentence_trees["tokens"].ne(pad), sentence_trees["end"] > sentence_trees["start"]
    return DocumentSizes.count(is_leaf, is_node, sentence_trees["document"])


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassifierConfig(AccumulationConfig, TreeReadoutConfig, DistanceBiasConfig):
    """Flags of the model beside those of a transformer's encoder."""

    leaf_attention: ChoiceEnum(["document", "sentence"]) = option(
        "document",
        "what leaves attend to: 'document' the leaves of all sentences of the document, 'sentence' those "
        "of their own; memory then grows linearly with the number of sentences",
    )


@register_model("tree_transformer_classifier")
class TreeTransformerClassifier(TreeClassifier):
    """The Tree-Transformer's encoder and a readout of its roots, nodes and leaves."""

    flags = TreeClassifierConfig

    @classmethod
    def build_encoder(cls, cfg, task, embeddings):
        if bias_tables(cfg) and cfg.no_subtree_mask and cfg.leaf_attention == "document":
            raise InputError(
                f"{flags_of_tables(cfg)} is for leaves, and with --no-subtree-mask those of a document attend with its "
                "nodes",
                hint="Leave one of them out, or add --leaf-attention sentence.",
            )
        if cfg.leaves_to_ancestors and cfg.leaf_attention == "document":
            raise InputError(
                "--leaves-to-ancestors is for leaves that attend within their sentence",
                hint="Add --leaf-attention sentence.",
            )
        cfg.num_labels = len(task.label_dictionary)
        return DocumentEncoder(cfg, task.source_dictionary, embeddings), cfg.encoder.embed_dim


register_architectures("tree_transformer_classifier", TreeTransformerClassifier.set_defaults, TRANSFORMER_SIZES)
