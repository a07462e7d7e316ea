"""What models share that grow trees, or write them as sequences, from any of the encoders that this can be done from."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import ExtendedTransformer
from tree_fairseq.nn.pretrained_encoder import PretrainedEncoder
from tree_fairseq.tree_transformer.encoder import TreeTransformerEncoder
from tree_fairseq.tree_transformer.model import TreeModelConfig

# FROM models/tree_insertion_transformer_encoder: The encoders that trees can be grown from.

ENCODERS = ("transformer", "tree", "pretrained")


def build_encoder(cfg, dictionary, embed_tokens) -> FairseqEncoder:
    """The encoder that ``cfg.insertion_encoder`` names: fairseq's transformer, the Tree-Transformer's, or a pretrained one.

    A pretrained one decides on the width of the memory, and leaves its description for checkpoints, both in ``cfg``.

    Args:
        cfg (TreeInsertionTransformerConfig): sizes and options
        dictionary: of the source
        embed_tokens: its table; unread where the encoder is pretrained

    Raises:
        InputError: no pretrained encoder can be loaded
    """
    if cfg.insertion_encoder == "transformer":
        return TransformerEncoderBase(cfg, dictionary, embed_tokens)
    if cfg.insertion_encoder == "tree":
        return TreeTransformerEncoder(cfg, dictionary, embed_tokens)
    encoder = _pretrained(dictionary, cfg.pretrained_folder, cfg.pretrained_description)
    cfg.encoder.embed_dim, cfg.pretrained_description = encoder.width, encoder.describe()
    return encoder


def _pretrained(dictionary, folder: Optional[str], description: Optional[str]) -> PretrainedEncoder:
    if description is None:
        return PretrainedEncoder.from_folder(dictionary, folder)
    return PretrainedEncoder.from_description(dictionary, description)


# FROM models/insertion_encoder_options: What sources can be read with by all models of the task that grows trees, and how it is asked for.


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class InsertionEncoderConfig(TreeModelConfig):
    """Flags of encoders; those of accumulation are for ``--insertion-encoder tree``."""

    insertion_encoder: ChoiceEnum(list(ENCODERS)) = field(
        default="transformer",
        metadata={
            "help": "what reads the source: a transformer, the Tree-Transformer's encoder over its parse, or a pretrained encoder"
        },
    )
    encoder_path: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder of the pretrained encoder, as HuggingFace's save_pretrained() writes it (safetensors only)"
        },
    )


@dataclass
class FilledInEncoderConfig:
    """What is filled in: :func:`fill_in_encoder` does the first two, the encoder its own description."""

    num_labels: int = 0
    pretrained_folder: Optional[str] = None
    pretrained_description: Optional[str] = None


def fill_in_encoder(cfg: FilledInEncoderConfig, args, task) -> None:
    """Fills in what the encoder has to know from flags and task.

    Args:
        cfg: is changed
        args: flags of :class:`InsertionEncoderConfig`; fairseq takes what begins with ``encoder_`` for options of its own encoder
        task: that grows trees

    Raises:
        MissingTreesError: the encoder reads trees of a source that has none
        InputError: flags that do not go together
    """
    if args.encoder_path is not None and args.insertion_encoder != "pretrained":
        raise InputError(
            "--encoder-path is the folder of a pretrained encoder", hint="Add --insertion-encoder pretrained."
        )
    cfg.pretrained_folder = args.encoder_path
    if args.insertion_encoder == "tree":
        if not hasattr(task, "label_dictionary"):
            raise MissingTreesError("--insertion-encoder tree reads trees of the source; preprocess with --tree-parser")
        cfg.num_labels = len(task.label_dictionary)


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

    def read(
        self, src_tokens: Tensor, src_lengths: Tensor, source_spans: Optional[dict[str, Tensor]] = None
    ) -> dict[str, list]:
        """Reads sources.

        Args:
            src_tokens: ``[B, S]``
            src_lengths: ``[B]``
            source_spans: collated trees of the source, for an encoder that reads them, see :mod:`tree_fairseq.nn.tree_batch`

        Returns:
            fairseq's dict of lists
        """
        trees = {"source_spans": source_spans} if self.reads_trees else {}
        return self.encoder(src_tokens, src_lengths=src_lengths, **trees)
