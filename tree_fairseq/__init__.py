"""Tree-structured transformers for fairseq: what ``--user-dir tree_fairseq`` imports and registers."""

import sys
from pathlib import Path

if __name__ != "tree_fairseq":
    # --user-dir is a link of another name: the package itself is found beside what the link points to.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tree_fairseq import compat, preprocess_hook
from tree_fairseq.criterions import slot_kl_divergence, tree_regression
from tree_fairseq.criterions import tree_classification as tree_classification_criterion
from tree_fairseq.data import pretrained_pieces
from tree_fairseq.generators import unknown_words
from tree_fairseq.models import (
    insertion_left_to_right,
    sequence_classifiers,
    sequence_insertion_transformer,
    tree_gru,
    tree_insertion_transformer,
    tree_lstm_classifier,
    tree_positional_transformer,
    tree_to_tree_lstm,
    tree_transformer,
    tree_transformer_classifier,
    treeformer,
    treeformer_classifier,
)
from tree_fairseq.scoring import classification_scorer, regression_scorer
from tree_fairseq.tasks import (
    autocast_translation, structural_translation, tree_classification, tree_insertion, tree_sentence_classification,
    tree_translation,
)
from tree_fairseq.version import __version__

compat.allow_checkpoint_classes()
compat.load_checkpoints_with_care()
compat.resume_with_other_batches()
compat.open_log_files_once()
compat.be_one_package(__name__, __file__)
preprocess_hook.install()
unknown_words.install()

__all__ = [
    "__version__",
    "autocast_translation",
    "classification_scorer",
    "insertion_left_to_right",
    "pretrained_pieces",
    "regression_scorer",
    "sequence_classifiers",
    "sequence_insertion_transformer",
    "slot_kl_divergence",
    "structural_translation",
    "tree_classification",
    "tree_classification_criterion",
    "tree_gru",
    "tree_insertion",
    "tree_insertion_transformer",
    "tree_lstm_classifier",
    "tree_positional_transformer",
    "tree_regression",
    "tree_sentence_classification",
    "tree_to_tree_lstm",
    "tree_transformer",
    "tree_transformer_classifier",
    "tree_translation",
    "treeformer",
    "treeformer_classifier",
]
