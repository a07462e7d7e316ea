"""Registers all models, tasks, criteria and scorers with fairseq, and mends fairseq, when it is imported."""

from tree_fairseq import compat
from tree_fairseq.classification import criterion as classification_criterion
from tree_fairseq.classification import (
    document_task,
    folder,
    preprocessing,
    sentence_task,
    sequence_classifiers,
    tree_lstm_classifier,
    tree_transformer_classifier,
    treeformer_classifier,
)
from tree_fairseq.data_bin import side_kinds
from tree_fairseq.nn import extended_transformer, pretrained_library, tasks
from tree_fairseq.preprocessing import hook
from tree_fairseq.scoring import predictions
from tree_fairseq.tree_insertion import criterion, model, sequence_models, task, tree_gru
from tree_fairseq.tree_insertion import folder as insertion_folder
from tree_fairseq.tree_insertion import preprocessing as insertion_preprocessing
from tree_fairseq.tree_positional import lstm_model
from tree_fairseq.tree_positional import model as tree_positional_model
from tree_fairseq.tree_positional import task as tree_positional_task
from tree_fairseq.tree_transformer import model as tree_transformer_model
from tree_fairseq.treeformer import model as treeformer_model

REGISTERING = (
    classification_criterion,
    side_kinds,
    document_task,
    folder,
    preprocessing,
    sentence_task,
    sequence_classifiers,
    tree_lstm_classifier,
    tree_transformer_classifier,
    treeformer_classifier,
    extended_transformer,
    pretrained_library,
    tasks,
    predictions,
    insertion_folder,
    insertion_preprocessing,
    criterion,
    model,
    sequence_models,
    task,
    tree_gru,
    lstm_model,
    tree_positional_model,
    tree_positional_task,
    tree_transformer_model,
    treeformer_model,
)

compat.allow_checkpoint_classes()
compat.load_checkpoints_with_care()
compat.resume_with_other_batches()
compat.open_log_files_once()
compat.mend_replace_unk()
hook.install()
