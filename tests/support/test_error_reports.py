"""Commands end with a message: the errors of users, also of other processes, without a traceback."""

from __future__ import annotations

import logging
import sys

import pytest
from fairseq import checkpoint_utils, utils
from fairseq.distributed import fully_sharded_data_parallel
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
    assert logs.message_of(missing) == str(missing) and "no/such/file" in str(missing)
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
