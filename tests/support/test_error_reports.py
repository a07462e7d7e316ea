"""Commands end with a message: the errors of users, also of other processes, without a traceback."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from fairseq import checkpoint_utils, utils
from fairseq.data.encoders.moses_tokenizer import MosesTokenizerConfig
from fairseq.distributed import fully_sharded_data_parallel
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf
from torch._utils import ExceptionWrapper
from torch.multiprocessing.spawn import ProcessRaisedException

from tree_fairseq.errors import CheckpointError, InputError, TreeFairseqError
from tree_fairseq.support import logs


def raised(function, *arguments) -> BaseException:
    with pytest.raises(BaseException) as caught:
        function(*arguments)
    return caught.value


def test_our_errors_and_those_about_files_are_their_messages():
    assert logs.message_of(InputError("bad", path="a", line=2, hint="Mend it.")) == "a:2: bad. Mend it."
    missing = raised(open, "no/such/file")
    assert logs.message_of(missing) == "no/such/file: there is no such file or folder"
    assert logs.message_of(KeyboardInterrupt()) == "interrupted"


@pytest.mark.parametrize("error", [KeyError("name"), RuntimeError("size mismatch"), ZeroDivisionError("division")])
def test_faults_of_a_program_keep_their_traceback(error):
    assert logs.message_of(error) is None


def test_an_error_in_a_process_that_loads_data_is_its_message_alone():
    try:
        raise InputError("a tree is not closed", path="train.en", line=3, hint="Close it.\nThen go on.")
    except InputError:
        # What torch sends from a worker of a DataLoader, and raises in the process that trains.
        sent = ExceptionWrapper(sys.exc_info(), where="in DataLoader worker process 0")
    error = raised(sent.reraise)
    assert "Original Traceback" in str(error)
    assert logs.message_of(error) == "train.en:3: a tree is not closed. Close it.\nThen go on."


def test_an_error_in_a_process_that_trains_is_its_message_alone():
    lines = (
        "\n\n-- Process 1 terminated with the following error:", "Traceback (most recent call last):",
        '  File "train.py", line 3, in main', "    raise error", "tree_fairseq.errors.InputError: a:1: bad. Mend it.",
        "", "During handling of the above exception, another exception occurred:", "",
        "Traceback (most recent call last):", '  File "train.py", line 9, in main',
        "tree_fairseq.errors.CheckpointError: c.pt cannot be read", "",
    )  # fmt: skip
    error = ProcessRaisedException("\n".join(lines), 1, 7)
    assert logs.message_of(error) == "c.pt cannot be read"
    assert logs.message_of(ProcessRaisedException("\n".join(lines[:4]), 1, 7)) is None


def test_what_fairseq_raises_itself_is_a_message_with_a_way_to_the_place():
    error = raised(checkpoint_utils.load_model_ensemble_and_task, ["a.pt"], None, None, True, "", 1, {})
    assert logs.message_of(error) == str(error)  # an OSError about a file
    for function, arguments, kind in (
        (utils.get_activation_fn, ("nonsense",), RuntimeError),
        (checkpoint_utils.load_model_ensemble_and_task, (["a.pt"], None, None, True, "", 2, {}), AssertionError),
    ):
        error = raised(function, *arguments)
        assert isinstance(error, kind)
        message = logs.message_of(error)
        assert message.startswith(str(error)) and "TREE_FAIRSEQ_TRACEBACK=1" in message


def test_a_library_that_fairseq_misses_is_a_message(monkeypatch):
    monkeypatch.setitem(sys.modules, "fairscale.nn", None)
    error = raised(fully_sharded_data_parallel.fsdp_enable_wrap(None).__enter__)  # --ddp-backend fully_sharded
    assert logs.message_of(error).startswith("Cannot find FullyShardedDataParallel. Please install fairscale")


def test_an_error_below_fairseq_is_no_message():
    def fail() -> None:
        raise ValueError("a fault of ours")

    assert logs.message_of(raised(fail)) is None


@pytest.mark.parametrize("command", [True, False])
@pytest.mark.parametrize("wanted", ["1", "0", ""])
def test_the_hook_is_for_commands_unless_tracebacks_are_wanted(monkeypatch, capsys, command, wanted):
    shown = []
    hook = logs.short_report(lambda *details: shown.append(details))
    monkeypatch.setenv(logs.TRACEBACK, wanted)
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train" if command else "own_program.py"])
    error = CheckpointError("c.pt cannot be read")
    hook(CheckpointError, error, None)
    is_short = command and wanted != "1"
    assert capsys.readouterr().err == ("c.pt cannot be read\n" if is_short else "")
    assert bool(shown) != is_short
    hook(KeyError, KeyError("x"), None)
    assert shown[-1][0] is KeyError


def test_a_command_of_ours_logs_the_message_and_raises_where_tracebacks_are_wanted(monkeypatch, caplog):
    error = TreeFairseqError("no trees")
    logger = logging.getLogger("tree_fairseq.commands.average")
    assert logs.failed(error, logger) == 1
    assert "no trees" in caplog.text
    monkeypatch.setenv(logs.TRACEBACK, "1")
    with pytest.raises(TreeFairseqError, match="no trees"):
        logs.failed(error, logger)


def test_commands_of_fairseq_end_with_the_message_alone(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train"])
    monkeypatch.delenv(logs.TRACEBACK, raising=False)
    sys.excepthook(CheckpointError, CheckpointError("c.pt cannot be read"), None)
    assert capsys.readouterr().err == "c.pt cannot be read\n"


@pytest.mark.parametrize("known", [True, False])
def test_the_nearest_of_many_choices_are_named(monkeypatch, capsys, known):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train" if known else "own_program.py"])
    parser = argparse.ArgumentParser(prog="fairseq-train")
    parser.add_argument("--arch", choices=["tree_transformer", *(f"arch_{number}" for number in range(30))])
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--arch", "tree_transfromer"])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and ("Did you mean tree_transformer?" in said) == known == ("arch_7" not in said)


def test_errors_of_libraries_are_sentences_about_flags():
    config = OmegaConf.structured(MosesTokenizerConfig)
    missing = raised(lambda: setattr(config, "source_lang", None))
    assert "\n" not in logs.message_of(missing)
    error = ConfigCompositionException("Error merging override tokenizer.source_lang=null")
    assert logs.message_of(error) == "--source-lang is missing: --tokenizer needs it"
    for text in ("Torch not compiled with CUDA enabled", "'NoneType' object has no attribute 'xla_device'"):
        assert "leave out --fp16, --bf16" in logs.message_of(AssertionError(text))
    error = raised(utils.import_user_module, Namespace(user_dir="/no/such/plugin"))
    assert logs.message_of(error).startswith("--user-dir /no/such/plugin does not exist")


def test_a_reader_that_has_left_ends_a_command_of_fairseq_quietly(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-generate"])
    monkeypatch.setattr(logs, "drop_output", lambda: None)
    with pytest.raises(SystemExit) as ended:
        logs.short_report(None)(BrokenPipeError, BrokenPipeError(32, "Broken pipe"), None)
    assert ended.value.code == 0


PARSE = "parse --tree-parser right-branching"


@pytest.mark.parametrize(
    "command, said",
    [
        (f"{PARSE} --text 'a b' 2>&-", "(X (X a) (X b))\n"),
        (f"{PARSE} --text 'a b' >&-", ""),
        (f"{PARSE} <&- 2>&1", "there is no standard input to read. Give a file, or a pipe.\n"),
        ("--help 2>&1 | head -n 1", "usage: tree-fairseq NAME [options], NAME one of\n"),
        ("parse --help 2>&1 | head -n 1 | cut -c 1-25", "usage: tree-fairseq parse\n"),
    ],
)
def test_commands_do_without_streams_and_readers(command, said):
    line = f"{sys.executable} -u -m tree_fairseq {command}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=Path(logs.__file__).parents[2])
    assert done.stdout[-len(said) :] == said and not done.stderr


@pytest.mark.parametrize("program, refused", [("fairseq-train", True), ("fairseq-generate", False)])
def test_training_without_assertions_is_refused(program, refused):
    code = f"import sys; sys.argv = ['/bin/{program}']; import fairseq, tree_fairseq"
    line = [sys.executable, "-O", "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, cwd=Path(logs.__file__).parents[2])
    assert ("train without -O" in done.stderr) == refused == bool(done.returncode)
