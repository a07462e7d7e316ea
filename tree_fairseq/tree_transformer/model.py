"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020) for translation."""

from fairseq.models import register_model
from fairseq.models.transformer.transformer_legacy import transformer_vaswani_wmt_en_de_big
from torch import Tensor

from tree_fairseq.nn.extended_transformer import ExtendedTransformer, add_initial_weights, register_architectures
from tree_fairseq.tree_transformer.encoder import ENCODER, TreeModelConfig


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
