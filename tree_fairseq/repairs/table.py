"""The table of repairs: one row for each function of fairseq, torch or Python that the package replaces.

``tree-fairseq repairs`` prints the table, and ``docs/repairs.md`` has it. A row names the function that takes the place
of another one; the function itself stands in the folder that it is about. The table has at most 20 rows. What is not
about trees, versions or lost data stays as fairseq has it.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable

from tree_fairseq.support import logs

# Set on what is wrapped, so that nothing is wrapped twice, also when this package is imported under two names.
_MARK = "wrapped_by_tree_fairseq"
_FAIRSEQ = "fairseq 0.12.2 and 0.12.3"
_OFFICIAL = "fairseq 0.12.2"


@dataclass(frozen=True)
class Repair:
    """A function that the package replaces."""

    target: str  # the function, with its module and class
    wrong: str  # the fault of the function
    remove_when: str  # the event after which the row can go
    test: str  # the test that fails without this row
    # ``module:function`` of this package. It gets the stock function, and returns the function that takes its place, or
    # the stock function itself where the installed version has no fault.
    wrapper: str
    versions: str = _FAIRSEQ  # the versions that have the fault

    @property
    def name(self) -> str:
        """The last part of the target."""
        return self.target.rpartition(".")[2]

    def owners(self) -> list[Any]:
        """The modules or the class that have the function."""
        path = self.target.rpartition(".")[0]
        return command_modules(path) if path.startswith("fairseq_cli.") else [pkgutil.resolve_name(path)]

    def apply(self) -> None:
        """Replaces the function; a second call does nothing."""
        wrapper = pkgutil.resolve_name(f"tree_fairseq.{self.wrapper}")
        for owner in self.owners():
            wrap(owner, self.name, wrapper)


REPAIRS = (
    # Loading
    Repair(
        target="fairseq.checkpoint_utils.load_checkpoint_to_cpu",
        wrong="torch 2.6 and later refuse what fairseq stores beside the weights, and earlier versions run code that a "
        "checkpoint holds. A training whose last save was cut off does not go on. Released models are unknown.",
        remove_when="fairseq loads with weights_only=True and falls back to the newest whole checkpoint",
        test="tests/repairs/test_checkpoint_loading.py::test_checkpoints_load_with_fairseqs_own_classes",
        wrapper="repairs.checkpoint_loading:load_with_care",
    ),
    Repair(
        target="fairseq.trainer.Trainer.load_checkpoint",
        wrong="The task does not see the state that it stored, so training goes on with another folder's dictionaries "
        "or symbols: each id then means another word. Two trainings with one --save-dir mix their checkpoints.",
        remove_when="fairseq gives the state of the task back in training, too",
        test="tests/repairs/test_checkpoint_loading.py::test_training_compares_its_data_with_the_checkpoint",
        wrapper="repairs.checkpoint_loading:compare_data",
    ),
    Repair(
        target="fairseq.distributed.utils._broadcast_object_slow",
        wrong="torch.load refuses the options in a checkpoint that the first process sends to the others, so several "
        "processes cannot resume a training.",
        versions=f"{_FAIRSEQ} with torch 2.6 and later",
        remove_when="fairseq sends objects by torch.distributed.broadcast_object_list",
        test="tests/repairs/test_checkpoint_loading.py::test_a_second_process_receives_a_checkpoint",
        wrapper="repairs.checkpoint_loading:receive_any_object",
    ),
    # Versions
    Repair(
        target="fairseq.modules.transformer_layer.TransformerEncoderLayerBase.__init__",
        wrong="Each encoder layer has second copies of its weights as parameters, for a fast path in evaluation. They "
        "are saved and optimised, and the fast path ignores attention that a plugin puts in its place.",
        versions=_OFFICIAL,
        remove_when="Python 3.10 is no longer supported, for which fairseq-fixed is not made",
        test="tests/repairs/test_fairseq_versions.py::test_a_stock_model_has_the_tensors_of_0_12_3",
        wrapper="repairs.fairseq_versions:without_copies",
    ),
    Repair(
        target="fairseq.modules.transformer_layer.TransformerEncoderLayerBase._load_from_state_dict",
        wrong="Loading writes the copies into the weights of a checkpoint, which then do not fit the layer.",
        versions=_OFFICIAL,
        remove_when="Python 3.10 is no longer supported",
        test="tests/repairs/test_fairseq_versions.py::test_checkpoints_with_the_tensors_of_0_12_2_load",
        wrapper="repairs.fairseq_versions:load_without_copies",
    ),
    Repair(
        target="fairseq.modules.SinusoidalPositionalEmbedding.__init__",
        wrong="A number without a value, which only knows a type and a device, is saved in every checkpoint, and "
        "fairseq 0.12.3 does not have it.",
        versions=_OFFICIAL,
        remove_when="Python 3.10 is no longer supported",
        test="tests/repairs/test_fairseq_versions.py::test_sinusoidal_positions_ignore_what_old_versions_saved",
        wrapper="repairs.fairseq_versions:without_marker",
    ),
    # Lost or damaged data
    Repair(
        target="fairseq.data.indexed_dataset.make_dataset",
        wrong="Damaged token files are read as other words, or end a command with an error that names no file.",
        remove_when="fairseq compares the sizes of token files with their index",
        test="tests/faults/test_36_bit_rot.py::test_fairseqs_own_errors_name_file_and_way_out",
        wrapper="data_bin.token_files:make_with_care",
    ),
    Repair(
        target="fairseq.file_io.PathManager.copy",
        wrong="checkpoint_best.pt and checkpoint_last.pt are copied under these names: a kill leaves half of a file.",
        remove_when="fairseq copies under another name and renames",
        test="tests/repairs/test_writing.py::test_a_copy_gets_its_name_when_it_is_complete",
        wrapper="repairs.writing:copy_under_another_name",
    ),
    Repair(
        target="fairseq.file_io.PathManager.rename",
        wrong="A checkpoint gets its name before its contents are on the disk: after a power cut it may be zeros.",
        remove_when="fairseq calls os.fsync before it renames",
        test="tests/repairs/test_writing.py::test_contents_are_on_the_disk_before_the_name",
        wrapper="repairs.writing:rename_durably",
    ),
    Repair(
        target="fairseq.logging.progress_bar.progress_bar",
        wrong="--log-file is opened again for every epoch and validation. Each line is written as often as the file is "
        "open, and a long training ends when the process may not open more files.",
        remove_when="fairseq opens the file once",
        test="tests/repairs/test_writing.py::test_a_log_file_has_each_line_once_after_several_epochs",
        wrapper="repairs.writing:open_log_files_once",
    ),
    Repair(
        target="fairseq.binarizer.FileBinarizer.multiprocess_dataset",
        wrong="fairseq-preprocess waits for ever for a worker that was killed. Its last part is binarized when all "
        "workers have finished, so two workers take as long as one.",
        remove_when="fairseq binarizes with concurrent.futures",
        test="tests/repairs/test_writing.py::test_a_killed_worker_ends_binarizing",
        wrapper="data_bin.token_files:binarize_in_parts",
    ),
    Repair(
        target="fairseq.trainer.Trainer.train_step",
        wrong="A training that stops at NaN or infinity does not say which sentences it was at.",
        remove_when="fairseq names the sentences of the batch",
        test="tests/faults/test_22_not_finite.py::test_a_loss_that_is_nan_names_its_sentences",
        wrapper="repairs.nonfinite_batches:save_batch",
    ),
    Repair(
        target="sys.excepthook",
        wrong="fairseq's commands end with a traceback where a user's file or option is wrong.",
        versions="all versions of Python",
        remove_when="fairseq's commands catch errors and print their message",
        test="tests/support/test_error_reports.py::test_commands_of_fairseq_end_with_the_message_alone",
        wrapper="support.logs:short_report",
    ),
    Repair(
        target="argparse.ArgumentParser.error",
        wrong="fairseq-train answers a misspelt --arch with its usage and the names of all architectures.",
        versions="all versions of Python",
        remove_when="fairseq's commands name the nearest choices",
        test="tests/support/test_error_reports.py::test_the_nearest_of_many_choices_are_named",
        wrapper="support.logs:name_nearest",
    ),
    # Trees
    Repair(
        target="fairseq.options.add_preprocess_args",
        wrong="fairseq-preprocess has no arguments of tasks or plugins.",
        remove_when="fairseq lets a task add arguments to fairseq-preprocess",
        test="tests/repairs/test_table.py::test_preprocessing_has_arguments_about_trees",
        wrapper="preprocessing.run:add_tree_groups",
    ),
    Repair(
        target="fairseq_cli.preprocess.main",
        wrong="fairseq-preprocess reads lines of words; it neither parses them nor reads trees.",
        remove_when="fairseq lets a task preprocess",
        test="tests/faults/test_33_forgotten_flags.py::"
        "test_a_task_without_its_trees_is_refused_before_anything_is_written",
        wrapper="preprocessing.run:preprocess_trees",
    ),
    # New text
    Repair(
        target="fairseq.tasks.fairseq_task.FairseqTask.build_tokenizer",
        wrong="What is typed is not tokenised as the text of the folder was, unless the user repeats the flags.",
        remove_when="fairseq stores the tokeniser with the dictionaries",
        test="tests/end_to_end/test_subwords.py::test_tasks_of_fairseq_read_raw_text_too",
        wrapper="tasks.folder_text:with_folder_tokenizer",
    ),
    Repair(
        target="fairseq.tasks.fairseq_task.FairseqTask.build_bpe",
        wrong="What is typed is not split into the subwords of the folder, unless the user repeats the flags.",
        remove_when="fairseq stores the model of subwords with the dictionaries",
        test="tests/end_to_end/test_subwords.py::test_tasks_of_fairseq_read_raw_text_too",
        wrapper="tasks.folder_text:with_folder_subwords",
    ),
    Repair(
        target="fairseq_cli.interactive.buffered_read",
        wrong="A byte that is not UTF-8 ends fairseq-interactive, and a carriage return inside a line ends the line.",
        remove_when="fairseq reads lines of bytes",
        test="tests/faults/test_35_faulty_lines.py::test_a_faulty_line_among_good_ones",
        wrapper="new_text.faulty_lines:with_any_bytes",
    ),
    Repair(
        target="fairseq_cli.interactive.make_batches",
        wrong="A line that cannot be parsed, or is too long, ends fairseq-interactive, and the other lines are lost.",
        remove_when="fairseq translates the other lines",
        test="tests/faults/test_35_faulty_lines.py::test_faulty_lines_in_every_place",
        wrapper="new_text.faulty_lines:with_faulty_lines",
    ),
)
"""All repairs, in the order in which they are applied."""


def apply() -> None:
    """Makes all repairs, and keeps out of the logs what a user can do nothing about; a second call does nothing."""
    logs.keep_clean()
    for repair in REPAIRS:
        repair.apply()


def wrap(owner: Any, name: str, wrapper: Callable[[Callable], Callable]) -> None:
    """Replaces a function of a module or class, which becomes ``__wrapped__`` of the new one, unless that is done."""
    function = getattr(owner, name)
    if hasattr(function, _MARK):
        return
    replacement = wrapper(function)
    if replacement is function:
        return
    functools.update_wrapper(replacement, function)
    setattr(replacement, _MARK, True)
    is_static = isinstance(vars(owner).get(name), (staticmethod, classmethod))
    setattr(owner, name, staticmethod(replacement) if is_static else replacement)


def command_modules(name: str) -> list[ModuleType]:
    """The module of one of fairseq's commands, and ``__main__`` if it is the same file, run with ``python -m``.

    The import leaves logging as it was, which some of these modules configure when they are imported.
    """
    if name not in sys.modules:
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        importlib.import_module(name)
        root.handlers[:] = handlers
        root.setLevel(level)
    module, started = sys.modules[name], sys.modules.get("__main__")
    path = getattr(started, "__file__", None)
    is_started = path is not None and os.path.realpath(path) == os.path.realpath(module.__file__)
    return [module, started] if is_started and hasattr(started, "main") else [module]


def as_text() -> Iterator[str]:
    """The lines of the table, for a terminal."""
    for repair in REPAIRS:
        yield repair.target
        for name in ("wrong", "versions", "remove_when", "test"):
            yield f"  {name.replace('_', ' '):<13}{getattr(repair, name)}"
        yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``tree-fairseq repairs``; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tree-fairseq repairs", description="Lists what the package repairs.")
    parser.parse_args(arguments)
    print("\n".join(as_text()))
    return 0
