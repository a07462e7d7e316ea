"""A ``--user-dir`` that is tree_fairseq with a pace and a record.

``SOAK_BEGIN`` is a time in seconds since 1970 and ``SOAK_INTERVAL`` the seconds of an update: update n does not begin
before ``SOAK_BEGIN + n * SOAK_INTERVAL``. A training that lost time therefore catches up, and the trainings of a soak
use little of the processor. ``SOAK_RECORD`` is the file for losses in full precision: fairseq's log rounds them.
"""

from __future__ import annotations

import math
import os
import time
from functools import wraps

from fairseq.trainer import Trainer

import tree_fairseq

tree_fairseq.register()


def _record(*fields: object) -> None:
    # One write a line: a kill leaves whole lines.
    with open(os.environ["SOAK_RECORD"], "a", encoding="utf-8", buffering=1) as file:
        file.write("\t".join(map(str, fields)) + "\n")


def _paced(train_step):
    begin, interval = float(os.environ["SOAK_BEGIN"]), float(os.environ["SOAK_INTERVAL"])

    @wraps(train_step)
    def paced(self, *args, **kwargs):
        time.sleep(max(0.0, begin + self.get_num_updates() * interval - time.time()))
        return train_step(self, *args, **kwargs)

    return paced


def _recorded(reduce_and_log):
    @wraps(reduce_and_log)
    def recorded(self, logging_outputs, sample_size, grad_norm=None):
        if logging_outputs:
            loss = math.fsum(float(output["loss"]) for output in logging_outputs) / float(sample_size)
            _record("valid" if grad_norm is None else "train", self.get_num_updates(), repr(loss))
        return reduce_and_log(self, logging_outputs, sample_size, grad_norm)

    return recorded


_record("start", os.getpid(), repr(time.time()))
Trainer.train_step = _paced(Trainer.train_step)
Trainer._reduce_and_log_stats = _recorded(Trainer._reduce_and_log_stats)
