"""What models share that grow trees, or write them as sequences, from any of the encoders that this can be done from."""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from tree_fairseq.models.extended_transformer import ExtendedTransformer
from tree_fairseq.models.insertion_encoder_options import fill_in_encoder
from tree_fairseq.models.tree_insertion_transformer_encoder import build_encoder


class GrowingTransformer(ExtendedTransformer):
    """A transformer whose encoder is fairseq's, the Tree-Transformer's, or a pretrained one.

    Attributes:
        reads_trees: whether it reads trees of the source
    """

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.reads_trees = cfg.insertion_encoder == "tree"

    @classmethod
    def build_with_encoder(cls, cfg, args, task):
        """Builds the model, and leaves in ``args``, which checkpoints keep, what its encoder is built from without its folder.

        Raises:
            MissingTreesError: the encoder reads trees of a source that has none
            InputError: options that do not go with each other, or an encoder that cannot be loaded
        """
        fill_in_encoder(cfg, args, task)
        model = super().build_model(cfg, task)
        args.pretrained_description = cfg.pretrained_description
        return model

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        """The encoder of the source."""
        return build_encoder(cfg, src_dict, embed_tokens)

    def read(self, src_tokens: Tensor, src_lengths: Tensor, source_tree: Optional[dict[str, Tensor]] = None) -> dict[str, list]:
        """Reads sources.

        Args:
            src_tokens: ``[B, S]``
            src_lengths: ``[B]``
            source_tree: collated trees of the source, for an encoder that reads them, see :mod:`tree_fairseq.data.batch`

        Returns:
            fairseq's dict of lists
        """
        trees = {"source_tree": source_tree} if self.reads_trees else {}
        return self.encoder(src_tokens, src_lengths=src_lengths, **trees)
