"""Tree-to-tree LSTM (Chen, Liu & Song 2018) from symbol trees or sequences to symbol trees."""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from torch import nn

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import set_defaults
from tree_fairseq.nn.sides import SYMBOLS, source_side, target_side
from tree_fairseq.tree_positional.lstm_decoder import TreeToTreeLSTMDecoder
from tree_fairseq.tree_positional.lstm_encoder import build_lstm_encoder


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeToTreeLSTMConfig(FairseqDataclass):
    """Options of the tree-to-tree LSTM."""

    encoder_embed_dim: int = field(default=512, metadata={"help": "width of the source's embeddings"})
    decoder_embed_dim: int = field(default=512, metadata={"help": "width of the target's embeddings"})
    hidden_size: int = field(
        default=512,
        metadata={
            "help": "width of the states of encoder and decoder; a sequence encoder has half of it per direction"
        },
    )
    dropout: float = field(
        default=0.1, metadata={"help": "dropout of embeddings, of encoder states and of attention outputs"}
    )
    no_parent_attention_feeding: bool = field(
        default=False, metadata={"help": "ablation: children do not receive the attention output of their parent"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False,
        metadata={"help": "share the target's embeddings with the output layer; both widths must then be equal"},
    )
    init_range: float = field(default=0.1, metadata={"help": "initial weights are uniform between minus this and this"})


@register_model("tree_to_tree_lstm", dataclass=TreeToTreeLSTMConfig)
class TreeToTreeLSTMModel(FairseqEncoderDecoderModel):
    """A Tree-LSTM reads the source from its leaves up; an LSTM for each branch writes the target from its root down."""

    tree_inputs = ("source_symbol_tree", "previous_symbol_tree")

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task whose target is symbol trees.

        Raises:
            MissingTreesError: the task does not load symbol trees
            InputError: the target is a sequence, or options contradict each other
        """
        source, target = source_side(task), target_side(task)
        if SYMBOLS not in (source.modality, target.modality):
            raise MissingTreesError("--arch tree_to_tree_lstm makes symbol trees; use --task structural_translation")
        if target.symbols is None:
            raise InputError(
                "--arch tree_to_tree_lstm generates symbol trees, but this target is a sequence",
                hint="Preprocess with --target-modality tree, or use --arch lstm.",
            )
        cfg = TreeToTreeLSTMConfig.from_namespace(args)
        if cfg.share_decoder_input_output_embed and cfg.decoder_embed_dim != cfg.hidden_size:
            raise InputError(
                f"--share-decoder-input-output-embed needs a --decoder-embed-dim of {cfg.hidden_size}, the "
                f"--hidden-size, not of {cfg.decoder_embed_dim}"
            )
        cfg.source_symbols = source.symbols
        encoder = build_lstm_encoder(cfg, task.source_dictionary, None, cfg.hidden_size)
        model = cls(encoder, TreeToTreeLSTMDecoder(cfg, task.target_dictionary, target.symbols))
        model.reset_parameters(cfg.init_range)
        return model

    def reset_parameters(self, init_range: float) -> None:
        """Draws all weights uniformly between ``-init_range`` and ``init_range``, as Chen et al. do."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init_range, init_range)
        for side in (self.encoder, self.decoder):
            nn.init.zeros_(side.embed_tokens.weight[side.embed_tokens.padding_idx])


def _set_defaults(args, width: int, dropout: float) -> None:
    """Sets widths, dropout and defaults that are not given."""
    for name in ("encoder_embed_dim", "decoder_embed_dim", "hidden_size"):
        setattr(args, name, getattr(args, name, width))
    args.dropout = getattr(args, "dropout", dropout)
    set_defaults(args, TreeToTreeLSTMConfig)


@register_model_architecture("tree_to_tree_lstm", "tree_to_tree_lstm_program_translation")
def tree_to_tree_lstm_program_translation(args):
    """The paper's translator of programs: width 256, dropout 0.5."""
    _set_defaults(args, 256, 0.5)


@register_model_architecture("tree_to_tree_lstm", "tree_to_tree_lstm_tiny")
def tree_to_tree_lstm_tiny(args):
    """For first trials: width 64."""
    _set_defaults(args, 64, 0.1)
