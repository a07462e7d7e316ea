"""Registers all models, tasks, criteria and scorers with fairseq, and repairs fairseq, when it is imported."""

# ruff: noqa: F401  importing these modules registers what they define

import sys
from pathlib import Path

import tree_fairseq.classification.criterion
import tree_fairseq.classification.folder
import tree_fairseq.classification.preprocessing
import tree_fairseq.classification.sentence_task
import tree_fairseq.classification.sequence_classifiers
import tree_fairseq.classification.task
import tree_fairseq.classification.tree_lstm_classifier
import tree_fairseq.classification.tree_transformer_classifier
import tree_fairseq.classification.treeformer_classifier
import tree_fairseq.nn.extended_transformer
import tree_fairseq.nn.pretrained
import tree_fairseq.scoring.predictions
import tree_fairseq.tasks.translation
import tree_fairseq.tree_insertion.criterion
import tree_fairseq.tree_insertion.folder
import tree_fairseq.tree_insertion.model
import tree_fairseq.tree_insertion.preprocessing
import tree_fairseq.tree_insertion.sequences
import tree_fairseq.tree_insertion.task
import tree_fairseq.tree_insertion.tree_gru
import tree_fairseq.tree_positional.lstm_model
import tree_fairseq.tree_positional.model
import tree_fairseq.tree_positional.task
import tree_fairseq.tree_transformer.model
import tree_fairseq.treeformer.model
from tree_fairseq import repairs
from tree_fairseq.repairs.fairseq_versions import require_assertions

repairs.apply()
require_assertions()


def be_one_package(name: str, path: str) -> None:
    """Makes another name of this package mean this package, so that nothing is registered twice.

    fairseq names a plugin by its folder, which may be a link, and imports its tasks and models under that name. Raises
    ImportError if the copy at ``path``, which is being imported as ``name``, is not this one.
    """
    package = __name__.partition(".")[0]
    if name == package:
        return
    given, own = Path(path), Path(sys.modules[package].__file__)
    if not own.samefile(given):
        message = f"--user-dir is {given.parent}, but tree_fairseq was imported from {own.parent}; give that folder"
        raise ImportError(message)
    for module in [*sys.modules]:
        if module == package or module.startswith(f"{package}."):
            sys.modules[name + module.removeprefix(package)] = sys.modules[module]
