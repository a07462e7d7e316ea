"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020): the encoder, and the model for translation."""

from dataclasses import dataclass

import torch
from fairseq.models import register_model
from fairseq.models.transformer import Embedding, TransformerEncoderBase
from fairseq.models.transformer.transformer_legacy import transformer_vaswani_wmt_en_de_big
from torch import Tensor

from tree_fairseq.errors import MissingTreesError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, give_rows, leaf_relations, tree_tables
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.extended_transformer import ExtendedTransformer, register_architectures
from tree_fairseq.nn.modalities import CONSTITUENCY
from tree_fairseq.nn.phrase_bias import PhraseBiasConfig
from tree_fairseq.nn.shared_memory import with_rows_moved
from tree_fairseq.nn.stock_weights import add_initial_weights, built_aside, built_in_place
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.support.options import option
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig
from tree_fairseq.tree_transformer.attention import TREE_MEMORY, TreeSelfAttention
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeModelConfig(AccumulationConfig, PhraseBiasConfig, DistanceBiasConfig):
    """Flags that the Tree-Transformer has beside those of fairseq's transformer."""

    no_node_cross_attention: bool = option(False, "ablation: the decoder attends to leaves alone")


class TreeTransformerEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder over N leaves and M nodes, which share all weights.

    Leaves are embedded as in fairseq. A node is embedded by its label, from a table of labels and without a position:
    its place in the tree enters through accumulation and masking.
    """

    attention = TreeSelfAttention

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.embed_labels = built_aside(lambda: Embedding(cfg.num_labels, embed_tokens.embedding_dim, self.padding_idx))

    def build_encoder_layer(self, cfg):
        """fairseq's layer with tree attention instead of its self-attention, and fairseq's weights."""
        layer = super().build_encoder_layer(cfg)
        options = {
            "dropout": cfg.attention_dropout,
            "self_attention": True,
            "q_noise": cfg.quant_noise.pq,
            "qn_block_size": cfg.quant_noise.pq_block_size,
        }
        layer.self_attn = built_in_place(
            layer.self_attn, lambda: self.attention(cfg.encoder.embed_dim, cfg.encoder.attention_heads, cfg, **options)
        )
        return layer

    def forward_labels(self, label: Tensor) -> Tensor:
        """Embeds node labels ``[B, M]`` as ``[B, M, D]``, scaled and dropped out like leaves."""
        nodes = self.embed_scale * self.embed_labels(label)
        if self.layernorm_embedding is not None:
            nodes = self.layernorm_embedding(nodes)
        return self.dropout_module(nodes)

    def build_structure(self, batch: TreeBatch) -> TreeStructure:
        """Derives the tensors that all layers share from the trees."""
        return TreeStructure.build(
            batch,
            count_leaf=self.cfg.accumulation_denominator == "with-leaf",
            mask_subtrees=not self.cfg.no_subtree_mask,
            dtype=torch.promote_types(self.embed_labels.weight.dtype, torch.float32),
            leaves_to_ancestors=self.cfg.leaves_to_ancestors,
        )

    def forward_layers(
        self, embedded: Tensor, padding: Tensor, structure, return_all_hiddens: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """States ``[S, B, D]`` of leaves and nodes ``[B, S, D]`` after all layers, and the states between, if kept.

        The layers' attention gets ``structure`` instead of a padding mask.
        """
        # Contiguous, because the projections of the first layer would make a copy each and keep it.
        x = embedded.masked_fill(padding.unsqueeze(-1), 0).transpose(0, 1).contiguous()  # S x B x D
        states = [x] if return_all_hiddens else []
        for layer in self.layers:
            x = layer(x, encoder_padding_mask=structure)
            if return_all_hiddens:
                states.append(x)
        return (x if self.layer_norm is None else self.layer_norm(x)), states

    def forward(
        self, src_tokens: Tensor, src_lengths=None, return_all_hiddens=False, token_embeddings=None, source_spans=None
    ) -> dict[str, list]:
        """Encodes sentences ``[B, N]``, padded on either side, with their trees (:mod:`tree_fairseq.nn.tree_batch`).

        In fairseq's dict of lists, ``encoder_out`` is ``[S, B, D]``, leaves first. More entries are the trees,
        ``tree_structure``, and ``order``, the sentence of each decoder row; it is empty if rows are sentences.
        """
        if source_spans is None:
            raise MissingTreesError("this model reads trees, but the batch has none; use --task tree_translation")
        batch = TreeBatch.from_net_input(source_spans, src_tokens, self.padding_idx)
        structure = self.build_structure(batch)
        if len(self.layers) and self.layers[0].self_attn.distance_bias is not None:
            trees = leaf_relations(tree_tables(self.cfg), batch, self.cfg.max_distance, self.padding_idx)
            give_rows(self.layers, self.cfg, src_tokens.size(1), trees, src_tokens.device)
        leaves, embedding = self.forward_embedding(src_tokens, token_embeddings)
        embedded = torch.cat([leaves, self.forward_labels(batch.label)], dim=1)
        x, states = self.forward_layers(embedded, structure.padding, structure, return_all_hiddens)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [structure.padding],
            "encoder_embedding": [embedding],
            "encoder_states": states,
            "src_tokens": [],
            "src_lengths": [batch.is_leaf.sum(1, dtype=torch.int32, keepdim=True)],
            "tree_structure": [structure],
            "order": [],
        }

    reorder_encoder_out = staticmethod(with_rows_moved)


ENCODER = register_encoder(
    EncoderType(
        "tree",
        reads=(CONSTITUENCY,),
        build=TreeTransformerEncoder,
        memory=TREE_MEMORY,
        config=TreeModelConfig,
        fill_in=lambda cfg, side: setattr(cfg, "num_labels", len(side.labels)),
        help="that of the Tree-Transformer over the source's parse",
    )
)


@register_model("tree_transformer")
class TreeTransformerModel(ExtendedTransformer):
    """fairseq's transformer whose encoder and cross-attention read constituency trees."""

    flags = TreeModelConfig
    default_encoder = ENCODER.name
    why_no_cross_self_attention = "mixes target and source in one attention, which has no place for trees"

    def upgrade_state_dict(self, state_dict: dict[str, Tensor]):
        """Adds initial weights of labels and accumulation to the checkpoint of a stock transformer."""
        super().upgrade_state_dict(state_dict)
        own = self.state_dict()
        new = {name: own[name] for name in own if "embed_labels" in name or ".accumulation." in name}
        add_initial_weights(state_dict, new)


# The sizes of the paper: of its models for IWSLT and WMT (fairseq's own size), and its tiny model.
register_architectures(
    "tree_transformer",
    TreeTransformerModel.set_defaults,
    {"": None, "_iwslt_de_en": (6, 512, 1024, 4), "_wmt_en_de": None, "_tiny": (2, 64, 128, 4)},
)
# The paper's big model: 6 + 6 layers, width 1024, feed-forward 4096, 16 heads.
register_architectures("tree_transformer", transformer_vaswani_wmt_en_de_big, {"_wmt_en_de_big": None})
