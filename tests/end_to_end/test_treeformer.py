"""Treeformer through fairseq's own commands, on a folder that fairseq made without trees and under its own task."""

from __future__ import annotations

import logging
import math
import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.end_to_end.commands import LABEL_SMOOTHING, hypotheses, lines_of, logged, prefixes_of, run, train_by, updates
from tests.end_to_end.fixtures import STOCK_SIZES, Training
from tests.end_to_end.roads import take_all
from tests.end_to_end.tiny_corpus import leaves, make_pairs, write_corpus
from tree_fairseq import hub
from tree_fairseq.commands import induce
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.treeformer.model import TreeformerModel
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.subwords import bpe_word, join_words
from tree_fairseq.trees.tree import forest_leaves

TASK = ("--task", "translation")
GENERATE = ("--cpu", "--beam", 4, "--max-len-b", 20, "--num-workers", 0)
SENTENCES = [leaves(pair.tree) for pair in make_pairs(16, 2)]


def train(data: Path, folder: Path, *arguments: object, arch: str = "treeformer_tiny") -> Training:
    defaults = {"--task": "translation", "--arch": arch, **LABEL_SMOOTHING, "--max-tokens": 320, "--max-epoch": 1}
    return Training(data, folder, train_by(defaults, data, folder, *arguments))


@pytest.fixture(scope="module")
def data_bin(shared) -> Path:
    def make(folder: Path) -> None:
        source = write_corpus(folder / "text", bracketed=False)
        run("preprocess", "-s", "en", "-t", "de", *prefixes_of(source), "--destdir", folder / "data-bin")
        assert not list((folder / "data-bin").glob("*tree*"))

    return shared("plain", make)[0] / "data-bin"


@pytest.fixture(scope="module")
def trained(data_bin, shared) -> Training:
    logging.getLogger("fairseq").setLevel(logging.NOTSET)
    folder, log = shared("treeformer", lambda folder: train(data_bin, folder, "--max-epoch", 3).log)
    return Training(data_bin, folder, log)


@pytest.fixture(scope="module")
def stock_trained(data_bin, shared) -> Training:
    folder, log = shared("plain stock", lambda folder: train(data_bin, folder, *STOCK_SIZES, arch="transformer").log)
    return Training(data_bin, folder, log)


def generate(training: Training, *arguments: object, path: object = None) -> str:
    flags = ("--required-batch-size-multiple", 1, *GENERATE, *arguments)
    return run("generate", training.data, *TASK, "--path", path or training.best, *flags)


def weights(path: Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True)["model"]


# Training


def test_training_learns_and_resumes_where_it_ended(data_bin, trained, tmp_path):
    assert logged("loss", trained.log)[-1] < logged("loss", trained.log)[0] - 0.3
    shutil.copy(trained.folder / "checkpoint2.pt", tmp_path / "checkpoint_last.pt")
    resumed = train(data_bin, tmp_path, "--max-epoch", 3, "--lr", "1e-9", "--reset-lr-scheduler")
    assert "Loaded checkpoint" in resumed.log and "left as initialised" not in resumed.log
    assert updates(resumed.log) == updates(trained.log)
    left = weights(trained.folder / "checkpoint2.pt")
    for name, weight in weights(tmp_path / "checkpoint_last.pt").items():
        torch.testing.assert_close(weight, left[name], atol=1e-5, rtol=0)


def test_fine_tuning_a_stock_transformer(data_bin, stock_trained, tmp_path):
    flags = ("--finetune-from-model", stock_trained.best, "--max-update", 1, "--lr", "1e-9")
    tuned = train(data_bin, tmp_path, *flags)
    lines = re.findall(r"weights that the checkpoint does not have, left as initialised: (.*)", tuned.log)
    named = {name for line in lines for name in line.split(", ")}
    model, stock = weights(tuned.folder / "checkpoint_last.pt"), weights(stock_trained.best)
    biases = {f"decoder.layers.{layer}.encoder_attn.phrase_bias.weight" for layer in range(2)}
    assert named == set(model) - set(stock) == {"encoder.chart.deviation", "encoder.chart.query", *biases}
    for name, weight in stock.items():
        torch.testing.assert_close(model[name], weight, atol=1e-6, rtol=0)
    # As the chart is initialised: phrases are the mean of their parts.
    deviation = model["encoder.chart.deviation"] / 64
    assert deviation.square().mean().sqrt() == pytest.approx(0.1 / 8, rel=0.1)
    biases = model["decoder.layers.0.encoder_attn.phrase_bias.weight"].tolist()
    assert biases == pytest.approx([-3 - math.log(9)] * 4)  # phrases of up to 10 tokens
    assert logged("loss", tuned.log)[-1] == pytest.approx(min(logged("loss", stock_trained.log)), rel=0.02)


def test_bfloat16_on_the_cpu(data_bin, stock_trained, tmp_path):
    """``--task autocast_translation`` trains on folders of fairseq's own, and translates under fairseq's own task."""
    dtypes = set()
    hook = torch.nn.modules.module.register_module_forward_hook(
        lambda module, _, output: dtypes.add(output.dtype) if isinstance(module, torch.nn.Linear) else None
    )
    flags = (*STOCK_SIZES, "--task", "autocast_translation", "--cpu-autocast")
    try:
        half = train(data_bin, tmp_path, *flags, arch="transformer")
    finally:
        hook.remove()
    assert torch.bfloat16 in dtypes
    assert logged("loss", half.log) == pytest.approx(logged("loss", stock_trained.log), rel=0.03)
    assert len(hypotheses(generate(half))) == 16


def test_a_chart_without_phrases_is_refused_before_training(data_bin, tmp_path):
    with pytest.raises(InputError, match="at least 2"):
        train(data_bin, tmp_path, "--treeformer-height", 1)
    assert not list(tmp_path.glob("checkpoint*"))


# Generation


@pytest.mark.parametrize("flags", [("--sampling", "--sampling-topk", 5, "--nbest", 4), ("--diverse-beam-groups", 2)])
def test_other_ways_to_search(trained, flags):
    found = hypotheses(generate(trained, *flags))
    assert len(found) == 16 and all(math.isfinite(score) for _, score in found.values())


def test_all_roads_agree(trained, tmp_path):
    take_all(trained.data, trained.best, TASK, SENTENCES, tmp_path, beam=4, max_len_b=20)
    # The end of an empty line is a token, and its chart has one cell.
    flags = (*TASK, "--path", trained.best, "--cpu", "--buffer-size", 2, "--batch-size", 2)
    assert len(hypotheses(run("interactive", trained.data, *flags, stdin=f"\n{SENTENCES[0]}\n"))) == 2
    here = TreeformerModel.from_pretrained(str(trained.folder), "checkpoint_best.pt", str(trained.data))
    ours = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    assert here.translate(SENTENCES[:4], beam=4) == ours.translate(SENTENCES[:4], beam=4)
    with pytest.raises(DataFolderError, match="trained without trees.*tree-fairseq induce"):
        ours.parse(SENTENCES)


def test_alignments_are_where_the_tokens_get_most_attention(trained):
    hard, soft = (generate(trained, "--print-alignment", kind) for kind in ("hard", "soft"))
    sources, targets, aligned, weighed = (
        lines_of("S", hard),
        lines_of("H", hard),
        lines_of("A", hard),
        lines_of("A", soft),
    )
    assert sorted(aligned) == sorted(weighed) == list(range(16))
    for number, line in aligned.items():
        size = len(sources[number].split())
        rows = [[float(weight) for weight in row.split(",")] for row in weighed[number].split()]
        # fairseq's soft form has the end of both sentences, its hard one neither.
        assert len(rows) == len(targets[number].rpartition("\t")[2].split()) + 1 and {len(row) for row in rows} == {
            size + 1
        }
        assert all(sum(row) == pytest.approx(1, abs=1e-3 * size) for row in rows), (
            "phrases share their attention out among their tokens"
        )
        assert line.split()
        for pair in line.split():
            source, target = map(int, pair.split("-"))
            assert rows[target][source] == pytest.approx(max(rows[target][:size]), abs=2e-3)


# Induced trees


def run_induce(training: Training, *arguments: object) -> int:
    return induce.main([str(text) for text in (training.data, *TASK, "--path", training.best, "--cpu", *arguments)])


def test_trees_of_a_subset_and_of_the_same_text_are_the_same(trained, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("\n".join(SENTENCES[:3] + [""] + SENTENCES[3:]) + "\n", encoding="utf-8")
    assert run_induce(trained, "--gen-subset", "test", "--output", tmp_path / "subset") == 0
    assert (
        run_induce(trained, "--input", text, "--remove-bpe", "--batch-size", 5, "--output", tmp_path / "text.trees")
        == 0
    )
    subset, lines = ((tmp_path / name).read_text().splitlines() for name in ("subset", "text.trees"))
    assert len(subset) == 16 and lines.pop(3) == ""
    for sentence, with_pieces, line in zip_equal(SENTENCES, subset, lines):
        [forest] = [read_forest(with_pieces)]
        assert forest_leaves(forest) == sentence.split()
        assert forest_leaves(read_forest(line)) == sentence.replace("@@ ", "").split()
        assert write_forest(join_words(forest, bpe_word)) == line
    assert run_induce(trained, "--input", text) == 0
    assert capsys.readouterr().out.splitlines()[:3] == subset[:3]


def test_f1_against_gold_trees_stands_beside_baselines(trained, tmp_path, caplog):
    gold = tmp_path / "gold.trees"
    trees = [write_forest(join_words(read_forest(pair.tree), bpe_word)) for pair in make_pairs(16, 2)]
    gold.write_text("\n".join(trees) + "\n", encoding="utf-8")
    flags = ("--gold", gold, "--output", tmp_path / "trees")
    with caplog.at_level(logging.INFO, logger="tree_fairseq"):
        assert run_induce(trained, *flags, "--gen-subset", "test") == 0
    rows = [line.rsplit(maxsplit=2) for line in caplog.messages[-1].splitlines()[2:]]
    corpus = {name: float(score) for name, _, score in rows}
    assert corpus["gold, binary"] > corpus["random"] and "induced" in corpus
    assert run_induce(trained, *flags) == 0
    assert [forest_leaves(read_forest(line)) for line in (tmp_path / "trees").read_text().splitlines()] == [
        forest_leaves(read_forest(tree)) for tree in trees
    ]


@pytest.mark.parametrize("flag", ["--input", "--gold"])
def test_missing_files_are_named(trained, tmp_path, caplog, flag):
    assert run_induce(trained, flag, tmp_path / "nowhere") == 1
    assert "nowhere" in caplog.text


def test_folders_for_results_are_looked_for_first(trained, tmp_path, caplog):
    assert run_induce(trained, "--gold", tmp_path / "gold", "--output", tmp_path / "nowhere" / "file") == 1
    assert f"the folder {tmp_path / 'nowhere'} does not exist" in caplog.text


def test_what_cannot_be_induced_is_said(trained, stock_trained, tmp_path, caplog):
    assert run_induce(stock_trained) == 1
    assert "cannot induce trees" in caplog.text
    gold = tmp_path / "gold.trees"
    gold.write_text("(S (A a))\n", encoding="utf-8")
    assert run_induce(trained, "--gold", gold, "--gen-subset", "test") == 1
    assert "has 1 lines, but there are 16 sentences" in caplog.text
    gold.write_text("(S (A a))\n" * 16, encoding="utf-8")
    assert run_induce(trained, "--gold", gold, "--gen-subset", "test") == 1
    assert (
        f"gold.trees:1: the tree has 1 words, but the sentence has {len(SENTENCES[0].replace('@@ ', '').split())}"
        in caplog.text
    )
    gold.write_text("(S (A a)\n", encoding="utf-8")
    assert run_induce(trained, "--gold", gold) == 1
    assert "gold.trees:1" in caplog.text
