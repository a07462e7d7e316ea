"""Learning curves from fairseq's logs."""

from __future__ import annotations

import json

import pytest

from examples.lib.figure_files import figure_to_svg
from examples.lib.learning_curves import draw_curves, read_curves
from tests.drawing.pictures import texts_of
from tree_fairseq.errors import InputError

TRAIN = (
    "2026-11-22 18:01:51 | INFO | train_inner | epoch 001:     {n} / 150 loss={loss}, nll_loss=nan, wps=5885.4, "
    "bsz=1e+03, num_updates={n}, lr=1e-05, wall=18"
)
VALID = (
    "2026-11-22 18:14:55 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 8.739 | bleu 1.5 | num_updates 54 "
    "| best_bleu 1.5"
)


def write_log(path, lines):
    path.write_text("\n".join(["2026 | INFO | fairseq_cli.train | Namespace(loss=3.0, num_updates=7)", *lines, ""]))
    return path


EPOCH = "2026-11-22 18:14:56 | INFO | train | epoch 002 | loss 5 | num_updates 54"


@pytest.fixture(params=["console", "file"])
def log(tmp_path, request):
    """The console has the time, the level and the logger before each line; --log-file has the lines alone."""
    lines = [TRAIN.format(n=50, loss=9.5), TRAIN.format(n=100, loss=8.25), VALID, EPOCH, TRAIN.format(n=100, loss="8")]
    if request.param == "file":
        lines = [line.split(" | ", 3)[3] for line in lines]
    return write_log(tmp_path / "run.log", lines)


def test_training_and_validation_by_updates(log):
    curves = read_curves(log)
    # The run was continued at update 50, so the later value of update 100 counts. NaN is no point.
    assert curves.training["loss"] == {50: 9.5, 100: 8.0} and "nll_loss" not in curves.training
    assert curves.training["lr"][50] == 1e-5 and curves.training["bsz"][50] == 1000
    assert curves.validation == {"loss": {54: 8.739}, "bleu": {54: 1.5}}
    assert curves.name == "run" and curves.metrics() == ["loss", "bleu"]


@pytest.mark.parametrize("prefix", ["x | INFO | {name} | ", ""])
def test_logs_in_json(tmp_path, prefix):
    train = {"epoch": 1, "update": 0.3, "loss": "9.5", "num_updates": "50", "note": "text"}
    valid = {"epoch": 1, "valid_loss": "8.5", "valid_ppl": "360.1", "valid_num_updates": "50", "valid_best_loss": "8.5"}
    epoch = {"epoch": 1, "train_loss": "7", "train_num_updates": "50"}
    named = (("train_inner", train), ("valid", valid), ("train", epoch))
    lines = [prefix.format(name=name) + json.dumps(values) for name, values in named]
    curves = read_curves(write_log(tmp_path / "log", [*lines, "x | INFO | valid | {broken"]), "mine")
    assert curves.training["loss"] == {50: 9.5} and curves.validation["ppl"] == {50: 360.1}
    assert (curves.name, curves.metrics()) == ("mine", ["loss"])


def test_the_picture_has_both_runs_and_both_splits(log):
    runs = [read_curves(log, "trees"), read_curves(log, "stock")]
    shown = texts_of(figure_to_svg(draw_curves(runs)))
    names = {f"{name}, {split}" for name in ("trees", "stock") for split in ("training", "validation")}
    assert names | {"updates", "loss (base 2)", "bleu"} <= set(shown)
    axes = draw_curves(runs).axes
    drawn = axes[0].get_lines()
    assert [line.get_linestyle() for line in drawn] == ["-", "--", "-", "--"]
    colours = [line.get_color() for line in drawn]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert list(axes[0].get_lines()[1].get_xdata()) == [50, 100]
    with pytest.raises(InputError, match="no log has the metric 'chrf'; there are bleu, bsz, "):
        draw_curves(runs, ["chrf"])


def test_logs_without_metrics_are_refused(tmp_path):
    with pytest.raises(InputError, match="log: no line of the log has metrics.*--log-file"):
        read_curves(write_log(tmp_path / "log", []))
    with pytest.raises(InputError, match="missing: the log cannot be read"):
        read_curves(tmp_path / "missing")
