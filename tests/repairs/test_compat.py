"""Changes to other packages. Tests of checkpoints that are damaged or could run code are in ``faults``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import logging
import multiprocessing
import os
import pickle
import re
import signal
import sys
import warnings
from types import SimpleNamespace

import hydra
import numpy as np
import pytest
import torch
from fairseq import binarizer, checkpoint_utils, options, trainer, utils
from fairseq.data import Dictionary, dictionary, iterators
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import progress_bar
from fairseq_cli import train as fairseq_train
from torch.utils.data import TensorDataset

import tree_fairseq  # noqa: F401
from tests.end_to_end.fixtures import train
from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.repairs import checkpoint_loading, compat
from tree_fairseq.support import logs
from tree_fairseq.support.processes import ProcessPool


@pytest.fixture
def progress_logger():
    """fairseq's logger of progress, whose handlers are restored afterwards."""
    logger = progress_bar.logger
    handlers, level = [*logger.handlers], logger.level
    logger.setLevel(logging.INFO)
    yield logger
    for handler in {*logger.handlers} - {*handlers}:
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(level)


def test_a_log_file_has_each_line_once_after_several_epochs(tmp_path, progress_logger, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for epoch in range(1, 6):
        bar = progress_bar.progress_bar(
            [], log_format="simple", log_file=("train.log", "./train.log")[epoch % 2], epoch=epoch
        )
        bar.print({"loss": epoch}, tag="train")
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert lines == [f"epoch {epoch:03d} | loss {epoch}" for epoch in range(1, 6)]
    assert sum(isinstance(handler, logging.FileHandler) for handler in progress_logger.handlers) == 1


def test_a_second_log_file_does_not_close_the_first(tmp_path, progress_logger):
    paths = [tmp_path / "first.log", tmp_path / "second.log"]
    for path in paths:
        bar = progress_bar.progress_bar([], "simple", 100, str(path))
    bar.print({"loss": 1})
    assert all(len(path.read_text().splitlines()) == 1 for path in paths)


def test_no_log_file_is_opened_without_the_flag(progress_logger):
    before = len(progress_logger.handlers)
    progress_bar.progress_bar([], log_format="simple")
    assert len(progress_logger.handlers) == before


def add(first: int, second: int = 0) -> int:
    return first + second


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_fairseqs_pool_still_waits_forever_for_a_killed_process():
    """``compat.binarizing_in`` can go when this fails."""
    assert binarizer.Pool == dictionary.Pool == multiprocessing.Pool
    with binarizer.Pool(processes=2) as pool:
        result = pool.apply_async(die)
        pool.close()
        with pytest.raises(multiprocessing.TimeoutError):
            result.get(timeout=2)


def test_fairseqs_pool_is_replaced_and_restored():
    stock = binarizer.Pool, dictionary.Pool
    with ProcessPool(2) as ours:
        with pytest.raises(KeyError), compat.binarizing_in(ours):
            for module in (binarizer, dictionary):
                pool = module.Pool(processes=2)
                results = [pool.apply_async(add, args=(number,), kwds={"second": 1}) for number in range(5)]
                wrong = pool.apply_async(add, args=("a",))
                pool.close()
                pool.join()
                assert [result.get() for result in results] == [1, 2, 3, 4, 5]
                with pytest.raises(TypeError):
                    wrong.get()
            killed = pool.apply_async(die)
            with pytest.raises(WorkerDiedError, match="that binarized text .* was killed"):
                killed.get()
            raise KeyError
    assert (binarizer.Pool, dictionary.Pool) == stock


# The problems that the changes solve still exist without them. A change whose test fails here can go.


def test_fairseq_still_opens_a_log_file_for_every_epoch(tmp_path, progress_logger):
    log = tmp_path / "train.log"
    for epoch in (1, 2):
        bar = progress_bar.progress_bar.__wrapped__([], "simple", 100, str(log), epoch=epoch)
        bar.print({"loss": epoch}, tag="train")
    assert len(log.read_text().splitlines()) > 2


def test_torch_still_refuses_classes_in_fairseqs_checkpoints(tmp_path):
    allowed = torch.serialization.get_safe_globals()
    path = tmp_path / "checkpoint.pt"
    torch.save({"args": argparse.Namespace(arch="transformer"), "best": np.float64(1)}, path)
    try:
        torch.serialization.clear_safe_globals()
        with pytest.raises(pickle.UnpicklingError, match="Namespace"):
            torch.load(path, weights_only=True)
    finally:
        torch.serialization.add_safe_globals(allowed)
    assert torch.load(path, weights_only=True)["args"].arch == "transformer"


@pytest.mark.parametrize("core", ["core", "_core"])
def test_numbers_that_an_earlier_or_later_numpy_saved(tmp_path, core):
    """numpy 2 has its functions in ``numpy._core``, numpy 1 in ``numpy.core``; checkpoints name them so."""
    path = tmp_path / "checkpoint.pt"
    numbers = {"best": np.float64(1.5), "counts": np.arange(3)}

    def renamed(pickled: bytes) -> bytes:
        return re.sub(rb"numpy\._?core\.multiarray", f"numpy.{core}.multiarray".encode(), pickled)

    # The older format is pickles without checksums, in which a name can be replaced.
    torch.save(numbers, path, _use_new_zipfile_serialization=False)
    path.write_bytes(renamed(path.read_bytes()))
    assert f"numpy.{core}.multiarray".encode() in path.read_bytes()
    loaded = torch.load(path, weights_only=True)
    assert loaded["best"] == 1.5 and loaded["counts"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("version", ["2.5.1+cu124", "2.6.0"])
@pytest.mark.parametrize("before", [None, "0"])
def test_torch_before_2_6_is_told_to_load_weights_only(monkeypatch, version, before):
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(version))
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    if before:
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", before)
    with checkpoint_loading._weights_only():
        assert os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD") == ("1" if version < "2.6" else before)
    assert os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD") == before


def test_fairseq_still_fails_on_a_truncated_checkpoint(tmp_path):
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": {}, "args": None}, tmp_path / "checkpoint1.pt")
    path.write_bytes((tmp_path / "checkpoint1.pt").read_bytes()[:100])
    with checkpoint_loading._weights_only(), pytest.raises((RuntimeError, OSError, EOFError, pickle.UnpicklingError)):
        checkpoint_utils.load_checkpoint_to_cpu.__wrapped__(str(path))


def test_fairseq_still_does_one_more_update_than_asked_for(trained, tmp_path):
    """``compat._stop_when_done`` can go when the second run does none without it."""
    flags = ("--max-update", 2, "--disable-validation")
    train(trained.data, tmp_path, *flags)
    log = train(trained.data, tmp_path, *flags).log
    assert "nothing is left to do: 2 updates were done" in log and "num_updates" not in log
    with compat.replaced(fairseq_train, "train", fairseq_train.train.__wrapped__):
        assert "num_updates 3" in train(trained.data, tmp_path, *flags).log


def test_fairseq_still_does_not_tell_the_task_what_training_goes_on_from():
    """``compat._compare_data`` can go when fairseq gives the state of the task back in training, too."""
    assert "task_state" not in inspect.getsource(inspect.unwrap(trainer.Trainer.load_checkpoint))


def test_fairseq_still_resumes_after_the_same_number_of_batches():
    def iterator(size: int) -> iterators.EpochBatchIterator:
        batches = [list(range(first, min(first + size, 12))) for first in range(0, 12, size)]
        return iterators.EpochBatchIterator(TensorDataset(torch.arange(12)), list, batches)

    before, after = iterator(2), iterator(4)
    running = before.next_epoch_itr(shuffle=False)
    for _ in range(2):
        next(running)
    state = iterators.EpochBatchIterator.state_dict.__wrapped__(before)
    assert "batches" not in state
    iterators.EpochBatchIterator.load_state_dict.__wrapped__(after, state)
    # Two of six small batches have four examples; two of three large ones have eight.
    assert after.iterations_in_epoch == 2
    resumed = iterator(4)
    resumed.load_state_dict(before.state_dict())
    assert resumed.iterations_in_epoch == 1


def test_fairseq_still_uses_alignments_as_positions_of_words():
    target = Dictionary()
    tokens = target.encode_line("<unk>", add_if_not_exist=False).long()
    pairs = [(0, 0), (1, 1)]
    with pytest.raises((IndexError, TypeError)):
        utils.post_process_prediction.__wrapped__(tokens, "Xanadu", pairs, {}, target, None)
    assert utils.post_process_prediction(tokens, "Xanadu", pairs, {}, target, None)[1] == "Xanadu"


def test_fairseq_still_opens_the_default_of_replace_unk_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        utils.load_align_dict.__wrapped__("@@ ")
    assert utils.load_align_dict("@@ ") == {}


@pytest.mark.parametrize("command", ["generate", "interactive"])
def test_fairseqs_commands_still_print_hypotheses_themselves(command):
    printed = inspect.getsource(importlib.import_module(f"fairseq_cli.{command}"))
    assert re.search(r"print\(\s*f?\"H-", printed)


def test_fairseqs_preprocessing_still_has_no_arguments_of_plugins():
    parser = argparse.ArgumentParser()
    options.add_preprocess_args.__wrapped__(parser)
    assert "--trainpref" in parser.format_help() and "--tree-parser" not in parser.format_help()


def test_fairseq_still_imports_a_plugin_by_the_name_of_its_folder():
    """``plugin.be_one_package`` can go when this fails."""
    source = inspect.getsource(utils.import_user_module)
    assert "module_parent, module_name = os.path.split(module_path)" in source
    assert "importlib.import_module(module_name)" in source


def test_transformers_still_assumes_that_torchaudio_works(monkeypatch):
    """``compat.stand_in_for_broken_torchaudio`` can go when this fails."""
    pytest.importorskip("transformers")
    found = inspect.getsource(importlib.import_module("transformers.utils.import_utils"))
    assert re.search(r"_is_package_available\(\"torchaudio\"", found)


def test_a_broken_torchaudio_is_replaced(monkeypatch):
    def broken(name):
        raise OSError("made for another torch")

    monkeypatch.setitem(sys.modules, "torchaudio", None)
    monkeypatch.setattr(compat.importlib, "import_module", broken)
    compat.stand_in_for_broken_torchaudio()
    assert sys.modules["torchaudio"].__spec__.name == "torchaudio"


def test_wrapping_twice_changes_nothing():
    module = SimpleNamespace(function=lambda: 1)
    for _ in range(2):
        compat.wrap(module, "function", lambda stock: lambda: stock() + 1)
    assert module.function() == 2 and module.function.__wrapped__() == 1


def _what_fairseq_calls() -> None:
    parser = options.get_generation_parser()
    convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, ["data", "--path", "checkpoint.pt"]))
    torch.cuda.amp.autocast(enabled=False)
    torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))
    states, mask = torch.zeros(3, 1, 2), torch.zeros(3, 3)
    torch.nn.MultiheadAttention(2, 1)(states, states, states, torch.zeros(1, 3, dtype=torch.bool), attn_mask=mask)
    next(iter(torch.utils.data.DataLoader([1], pin_memory=True)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch pins memory if there is a GPU")
@pytest.mark.skipif(hydra.__version__ < "1.3", reason="older versions of hydra and torch have deprecated less")
def test_fairseq_still_calls_hydra_and_torch_in_deprecated_ways():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _what_fairseq_calls()
    messages = [str(warning.message) for warning in caught]
    unneeded = [start for start in logs.DEPRECATIONS if not any(re.match(start, message) for message in messages)]
    assert not unneeded
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logs.keep_clean()
        _what_fairseq_calls()
    assert not caught, [str(warning.message) for warning in caught]


def test_fairseq_still_takes_missing_parameters_for_a_shared_one():
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False) for _ in range(3)])
    layers[2].weight = layers[0].weight
    stock = trainer._catalog_shared_params.__wrapped__
    assert [["0.weight", "2.weight"]] != stock(layers)
    assert trainer._catalog_shared_params(layers) == [["0.weight", "2.weight"]]
