"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020) for classification, read at the root."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import base_architecture

from tree_fairseq.classification.classifier import ClassReadout, TreeClassifier, TreeReadoutConfig
from tree_fairseq.classification.document_encoder import DocumentEncoder
from tree_fairseq.nn.extended_transformer import add_encoder_args, set_defaults, set_sizes
from tree_fairseq.nn.word_embeddings import build_word_embeddings
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassifierConfig(AccumulationConfig, TreeReadoutConfig):
    """Flags that the model has beside those of a transformer's encoder."""

    leaf_attention: ChoiceEnum(["document", "sentence"]) = field(
        default="document",
        metadata={
            "help": "what leaves attend to: 'document' the leaves of all of the document's sentences, 'sentence' those of "
            "their own; memory then grows linearly with the number of sentences"
        },
    )


@dataclass
class TreeTransformerClassifierConfig(TreeClassifierConfig, TransformerConfig):
    """All options of the model; ``num_labels`` is filled in from the task."""

    num_labels: int = 0


@register_model("tree_transformer_classifier")
class TreeTransformerClassifier(TreeClassifier):
    """The Tree-Transformer's encoder and a read-out of its roots, nodes and leaves.

    Args:
        encoder (DocumentEncoder): of the documents
        readout: of its states
    """

    @classmethod
    def add_args(cls, parser):
        """Adds fairseq's flags of encoders and ours; architectures set the defaults."""
        add_encoder_args(parser)
        gen_parser_from_dataclass(parser, TreeClassifierConfig(), delete_default=True, with_prefix="")

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task with ``label_dictionary`` and ``num_classes``.

        Raises:
            InputError: the task has no classes
        """
        cls.check_task("tree_transformer_classifier", task)
        tree_transformer_classifier(args)
        cfg = TreeTransformerClassifierConfig.from_namespace(args)
        cfg.num_labels = len(task.label_dictionary)
        embeddings = build_word_embeddings(cfg, task.source_dictionary)
        encoder = DocumentEncoder(cfg, task.source_dictionary, embeddings)
        return cls(encoder, ClassReadout(cfg.encoder.embed_dim, task.num_classes, cfg.classifier_dropout))


@register_model_architecture("tree_transformer_classifier", "tree_transformer_classifier")
def tree_transformer_classifier(args):
    """Sizes of fairseq's ``transformer``: 6 layers, width 512, feed-forward 2048, 8 heads."""
    base_architecture(args)
    set_defaults(args, TreeClassifierConfig)


@register_model_architecture("tree_transformer_classifier", "tree_transformer_classifier_tiny")
def tree_transformer_classifier_tiny(args):
    """The paper's tiny size: 2 layers, width 64, feed-forward 128, 4 heads."""
    set_sizes(args, 2, 64, 128, 4)
    tree_transformer_classifier(args)
