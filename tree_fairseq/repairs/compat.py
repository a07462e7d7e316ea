"""All that depends on versions of other packages, and every change that the plugin makes to them.

Each function is for fairseq 0.12.2 and 0.12.3 and torch from 2.4 on, unless its docstring names other versions.
fairseq_versions.py has what fairseq 0.12.2 alone needs.
tests/repairs/test_compat.py has a test for each that fails when the change is no longer needed.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import functools
import importlib
import logging
import math
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable

import numpy as np
import torch
from fairseq import binarizer, checkpoint_utils, trainer, utils
from fairseq.data import dictionary as fairseq_dictionary
from fairseq.data import iterators
from fairseq.data.data_utils import post_process
from fairseq.logging import progress_bar

from tree_fairseq.support.processes import ProcessPool

logger = logging.getLogger(__name__)

_PARTS_PER_WORKER = 4
# Set on what is wrapped, so that nothing is wrapped twice, also when this package is imported under two names.
_MARK = "wrapped_by_tree_fairseq"


def mend_fairseq() -> None:
    """Makes all lasting changes to fairseq and torch; a second call does nothing."""
    wrap(iterators.EpochBatchIterator, "state_dict", lambda save: lambda self: {**save(self), "batches": len(self)})
    wrap(iterators.EpochBatchIterator, "load_state_dict", _resume_with_other_batches)
    wrap(progress_bar, "progress_bar", _open_log_files_once)
    wrap(trainer, "_catalog_shared_params", _without_missing_parameters)
    wrap(trainer.Trainer, "load_checkpoint", _compare_data)
    for module in command_modules("fairseq_cli.train"):
        wrap(module, "train", _stop_when_done)
    wrap(utils, "post_process_prediction", _with_source_words)
    # Without a value, --replace-unk means a file called "@@ ".
    wrap(utils, "load_align_dict", lambda load: lambda path: load("" if path == "@@ " else path))


def wrap(owner: Any, name: str, wrapper: Callable[[Callable], Callable]) -> None:
    """Replaces a function of a module or class, which becomes ``__wrapped__`` of the new one, unless that is done."""
    function = getattr(owner, name)
    if not hasattr(function, _MARK):
        wrapped = functools.wraps(function)(wrapper(function))
        setattr(wrapped, _MARK, True)
        setattr(owner, name, wrapped)


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replaces an attribute while the ``with`` block runs."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


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


def _resume_with_other_batches(load: Callable) -> Callable:
    """Notices that an epoch has another number of batches than when a checkpoint was saved.

    fairseq skips as many batches as were done, whatever is in them now. Another ``--max-tokens`` or number of
    processes makes other batches: training then goes on after the same share of the epoch, with a warning.
    """

    def load_state_dict(self, state):
        done, before, now = state.get("iterations_in_epoch", 0), state.get("batches"), len(self)
        if done and before and before != now:
            start = min(done * now // before, now - 1)
            logger.warning(
                "the checkpoint was saved after %d of %d batches of epoch %d, which has %d batches now (another "
                "--max-tokens, batch size, number of processes or data set): going on after %d of them; some sentences "
                "will be seen twice in this epoch and others not at all",
                *(done, before, state["epoch"], now, start),
            )
            state = {**state, "iterations_in_epoch": start}
        load(self, state)

    return load_state_dict


def _compare_data(load: Callable) -> Callable:
    """Lets the task compare its data with those of a checkpoint that training starts from or goes on from.

    fairseq gives the state of the task back only when it loads models to generate or to validate.
    """

    def load_checkpoint(self, filename, reset_optimizer=False, *args, **kwargs):
        def load_and_compare(*of_file, **options):
            state = stock(*of_file, **options)
            if (require := getattr(self.task, "require_same_data", None)) is not None:
                require(state.get("task_state") or {}, fine_tuning=reset_optimizer)
            return state

        stock = checkpoint_utils.load_checkpoint_to_cpu
        with replaced(checkpoint_utils, "load_checkpoint_to_cpu", load_and_compare):
            return load(self, filename, reset_optimizer, *args, **kwargs)

    return load_checkpoint


def _stop_when_done(train: Callable) -> Callable:
    """Does no more updates if ``--max-update`` are done already, as after a kill between the last save and the end.

    fairseq looks at their number only after an update: the same command, given again, does one more every time.
    """

    def train_unless_done(cfg, trainer, task, epoch_itr):
        if (done := trainer.get_num_updates()) >= (cfg.optimization.max_update or math.inf):
            logger.info("nothing is left to do: %d updates were done, and --max-update is that or less", done)
            return [None], True
        return train(cfg, trainer, task, epoch_itr)

    return train_unless_done


def _open_log_files_once(build: Callable) -> Callable:
    """Opens a ``--log-file`` once.

    fairseq opens the file again for every epoch and every validation. Each line is then written as often as the file
    is open, and a long training ends when the process may not open more files.
    """

    def build_with_one_log(iterator, log_format=None, log_interval=100, log_file=None, *args, **kwargs):
        files = [handler for handler in progress_bar.logger.handlers if isinstance(handler, logging.FileHandler)]
        if log_file is not None and os.path.abspath(log_file) in [handler.baseFilename for handler in files]:
            log_file = None
        return build(iterator, log_format, log_interval, log_file, *args, **kwargs)

    return build_with_one_log


def _without_missing_parameters(find: Callable) -> Callable:
    """Leaves parameters that a module lacks, such as the bias of a layer without one, out of the shared parameters.

    fairseq takes all of them for one parameter and logs a line for each.
    """

    def find_shared(module, memo=None, prefix=""):
        shared = find(module, memo, prefix)
        return shared and [names for names in shared if not _is_missing(module, names[0])]

    return find_shared


def _is_missing(module: torch.nn.Module, name: str) -> bool:
    owner, _, parameter = name.rpartition(".")
    return module.get_submodule(owner)._parameters[parameter] is None


@contextlib.contextmanager
def binarizing_in(pool: ProcessPool) -> Iterator[None]:
    """Makes fairseq count words and binarize text in our pool while the ``with`` block runs.

    fairseq 0.12.2 starts a ``multiprocessing.Pool`` and waits for all of its results. When a worker is killed, for
    lack of memory as a rule, its result never comes and fairseq waits for ever.

    fairseq binarizes one part of a file itself, when all workers have finished theirs. So it is given more parts than
    workers, and its own is small. The files do not depend on the number of parts.
    """
    owner, name = binarizer.FileBinarizer, "multiprocess_dataset"
    stock = getattr(owner, name)

    def in_small_parts(*args: Any, num_workers: int = 1, **options: Any) -> Any:
        return stock(*args, num_workers=num_workers * _PARTS_PER_WORKER if num_workers > 1 else 1, **options)

    with contextlib.ExitStack() as stack:
        stack.callback(setattr, owner, name, vars(owner)[name])
        setattr(owner, name, staticmethod(in_small_parts))
        for module in (binarizer, fairseq_dictionary):
            stack.callback(setattr, module, "Pool", module.Pool)
            module.Pool = functools.partial(_PoolOfFairseq, pool)
        yield


class _PoolOfFairseq:
    """The methods of ``multiprocessing.Pool`` that fairseq uses, on our pool, which keeps its number of processes."""

    def __init__(self, pool: ProcessPool, processes: int):
        self._pool = pool

    def apply_async(self, function: Callable, args: tuple = (), kwds: Mapping[str, Any] = {}) -> argparse.Namespace:
        call = functools.partial(function, *args, **kwds)
        return argparse.Namespace(get=self._pool.submit(call, "binarized text"))

    def close(self) -> None:
        """Does nothing: the pool is kept."""

    join = close  # fairseq asks for every result after it


def print_after(commands: Collection[str], line_after: Callable[[str], str | None]) -> bool:
    """Makes a command print more lines from now on, if it is what runs; again is harmless.

    fairseq's commands print a hypothesis themselves and offer no hook there, so the name ``print`` in their module
    becomes a function that prints one more line, to where theirs goes, such as the file of ``--results-path``.

    ``commands`` are modules, such as ``fairseq_cli.interactive``. ``line_after`` returns the line after a printed
    one, or None. The result is whether one of the commands runs.
    """

    def print_line(*values, **options) -> None:
        builtins.print(*values, **options)
        line = line_after(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
        if line is not None:
            builtins.print(line, **options)

    found = False
    for module in map(sys.modules.get, (*commands, "__main__")):
        if module is not None and {module.__name__, getattr(module.__spec__, "name", None)} & set(commands):
            module.print = print_line
            found = True
    return found


def replace_unknown_words(
    words: list[str], source: list[str], alignment: Sequence, translations: Mapping[str, str], unknown: str
) -> list[str]:
    """Puts source words, or their translations, in the place of unknown words that are aligned with them.

    Args:
        words: tokens of a hypothesis
        source: tokens of the source
        alignment: pairs (source, target) as ``--print-alignment hard`` has them, or weights of all source tokens for
            each target token as ``soft`` has them
        translations: target words of source words; others are copied
        unknown: the token to replace
    """
    if unknown not in words:
        return words
    if any(isinstance(weights, list) for weights in alignment):
        positions = {target: int(np.argmax(np.array(weights, float))) for target, weights in enumerate(alignment)}
    else:
        positions = {int(target): int(place) for place, target in alignment}
    aligned = {target: source[place] for target, place in positions.items() if place < len(source)}
    known = {target: translations.get(word, word) for target, word in aligned.items()}
    return [known.get(number, word) if word == unknown else word for number, word in enumerate(words)]


def _with_source_words(stock: Callable) -> Callable:
    """Makes ``--replace-unk`` work: unknown words of a translation become the source words that they are aligned with.

    fairseq computes alignments only for ``--print-alignment``, as pairs, and looks them up as if they were positions,
    in text whose subwords are joined already: the flag ends in an IndexError.
    """

    def post_process_prediction(
        hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe=None, extra_symbols_to_ignore=None
    ):
        if align_dict is None:
            return stock(hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe, extra_symbols_to_ignore)
        words = tgt_dict.string(hypo_tokens, extra_symbols_to_ignore=extra_symbols_to_ignore).split()
        words = replace_unknown_words(words, src_str.split(), alignment, align_dict, tgt_dict.unk_string())
        text = post_process(" ".join(words), remove_bpe)
        return tgt_dict.encode_line(text, add_if_not_exist=True), text, alignment

    return post_process_prediction


def stand_in_for_broken_torchaudio() -> None:
    """Puts an empty module in the place of a torchaudio that was made for another torch.

    ``transformers`` 4.40 and later needs it: it imports any torchaudio that is installed, for parts that are not used
    here.
    """
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        stand_in = ModuleType("torchaudio")
        stand_in.__spec__ = ModuleSpec("torchaudio", loader=None)
        sys.modules["torchaudio"] = stand_in
