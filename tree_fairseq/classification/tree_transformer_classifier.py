"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020) for classification, also of documents."""

from dataclasses import dataclass
from typing import Any, Union

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
from tree_fairseq.classification.document_structure import DocumentStructure, Placement, unpack
from tree_fairseq.errors import InputError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, bias_tables, give_rows
from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.nn.published import PublishedConfig
from tree_fairseq.nn.tensors import join_heads, split_heads
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import option, refuse_flags
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig
from tree_fairseq.tree_transformer.model import TreeSelfAttention, TreeTransformerEncoder
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


class DocumentAttention(TreeSelfAttention):
    """Subtree-masked attention over sentences as rows; their leaves attend to all leaves of their document.

    It computes the same as :class:`TreeSelfAttention` on a forest of all trees of a document. Nodes attend to nothing
    outside their tree, so they and their accumulation stay within a row. Only the leaves are brought together: no
    tensor has all nodes and all leaves, or all nodes twice, of a document.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Union[DocumentStructure, TreeStructure],
        **unread: Any,
    ) -> tuple[Tensor, None]:
        """Attends within documents; ``query`` is ``[S, R, D]``, leaves then nodes."""
        if isinstance(key_padding_mask, TreeStructure):
            return super().forward(query, key, value, key_padding_mask)
        rows, places = key_padding_mask
        accumulated = join_heads(self.accumulated_values(query, rows))  # (R, H, S, D / H) -> (S, R, D)
        projected = self.q_proj(query), self.k_proj(query), accumulated
        documents = (places.to_documents(tensor) for tensor in projected)  # (B, X, D)
        heads = [tensor.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for tensor in documents]  # (B, H, X, D / H)
        leaves = places.to_rows(self.attend(*heads, places.attention_bias).transpose(1, 2).flatten(2))  # (N, R, D)
        queries, keys, values = (split_heads(tensor, self.num_heads) for tensor in projected)  # (R, H, S, D / H)
        of_nodes = queries.split(rows.sizes, dim=2)[1]  # (R, H, M, D / H)
        nodes = join_heads(self.attend(of_nodes, keys, values, rows.masks[1].bias))  # (M, R, D)
        return self.out_proj(torch.cat([leaves, nodes])), None


class DocumentEncoder(TreeTransformerEncoder):
    """The Tree-Transformer's encoder over documents of many trees.

    A row holds one sentence, or a few of a document if their leaves attend beyond them. Nodes and their accumulation
    never leave their row, so time and memory grow linearly with the number of sentences. With ``leaf_attention`` of
    ``document``, leaves attend to all leaves of their document and count their positions from its start: the result is
    that of one forest of all its trees. With ``sentence``, it is that of every sentence by itself.

    A document is read at the root of its first sentence (the authors' code), or at the mean of the roots of all its
    sentences (``document_root``). The root of a sentence of one leaf is the leaf.
    """

    attention = DocumentAttention

    def __init__(self, cfg, dictionary, embed_tokens):
        super().__init__(cfg, dictionary, embed_tokens)
        self.join_leaves = cfg.leaf_attention == "document"
        self.document_root = cfg.document_root

    def forward(self, sentence_trees: dict[str, Any]) -> DocumentStates:
        """Encodes a batch of documents, packed if that helps; the first node of each sentence is its root."""
        num_documents = sentence_trees["num_documents"]
        # If documents have one sentence each, no leaf attends beyond its sentence.
        packed = self.join_leaves and len(sentence_trees["document"]) > num_documents
        if packed:
            options = {"--distance-bias": bias_tables(self.cfg), "--no-subtree-mask": self.cfg.no_subtree_mask}
            options["--leaves-to-ancestors"] = self.cfg.leaves_to_ancestors
            partner = "documents of several sentences, whose leaves attend to each other"
            refuse_flags(options, partner, advice="add --leaf-attention sentence")
        sentences = sentence_trees["packed"] if packed else sentence_trees
        tokens = sentences["tokens"]
        batch = TreeBatch.from_net_input(sentences, tokens, self.padding_idx)
        structure: Union[DocumentStructure, TreeStructure] = self.build_structure(batch)
        if packed:
            places = Placement.build(batch.is_leaf, sentences["document"], num_documents, sentences["most_leaves"])
            structure = DocumentStructure(structure, places)
        if len(self.layers) and self.layers[0].self_attn.distance_bias is not None:
            give_rows(self.layers, self.cfg, tokens, batch)
        embedded = torch.cat([self._embed_leaves(tokens, structure), self.forward_labels(batch.label)], dim=1)
        x, _ = self.forward_layers(embedded, structure.padding, structure)
        leaves, nodes = x.transpose(0, 1).split([tokens.size(1), batch.label.size(1)], dim=1)
        if packed:
            leaves, nodes = unpack(leaves, sentences["leaves"]), unpack(nodes, sentences["nodes"])
        has_node = (sentence_trees["end"] > sentence_trees["start"]).any(1, keepdim=True)
        own = torch.where(has_node, nodes[:, 0], leaves[:, 0]) if nodes.size(1) else leaves[:, 0]
        roots = pool_roots(own, sentence_trees["document"], num_documents, self.document_root)
        return DocumentStates(leaves, nodes, roots)

    def _embed_leaves(self, tokens: Tensor, structure: Union[DocumentStructure, TreeStructure]) -> Tensor:
        """Embeds leaves ``[R, N]`` with their positions in the sentence or in the document: ``[R, N, D]``."""
        if isinstance(structure, TreeStructure):
            self._check_length(tokens, "sentence")
            return self.forward_embedding(tokens)[0]
        text = structure.leaves.to_documents(tokens.t())  # (B, X); padding is never read
        self._check_length(text, "document")
        return structure.leaves.to_rows(self.forward_embedding(text)[0]).transpose(0, 1)

    def _check_length(self, tokens: Tensor, name: str) -> None:
        """Refuses texts beyond learned positions; sinusoidal ones are made as needed."""
        positions = self.embed_positions
        if isinstance(positions, LearnedPositionalEmbedding) and tokens.size(1) > positions.max_positions:
            problem = f"a {name} has {tokens.size(1)} leaves, but learned positions end at {positions.max_positions}"
            hint = "Give a greater --max-source-positions, or leave out --encoder-learned-pos."
            raise InputError(problem, hint=hint)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassifierConfig(PublishedConfig, AccumulationConfig, TreeReadoutConfig, DistanceBiasConfig):
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
        cfg.num_labels = len(task.label_dictionary)
        return DocumentEncoder(cfg, task.source_dictionary, embeddings), cfg.encoder.embed_dim


register_architectures("tree_transformer_classifier", TreeTransformerClassifier.set_defaults, TRANSFORMER_SIZES)
