"""fairseq's commands with trees, from training to translation, as a user types them."""

from __future__ import annotations

import re

import pytest
import torch

from tests.end_to_end.commands import (
    PLUGIN,
    hypotheses,
    lines_of,
    logged,
    prefixes_of,
    run,
    run_in_process,
    script,
    updates,
)
from tests.end_to_end.fixtures import STOCK_SIZES, TASK, preprocess, train

GENERATE = ("--cpu", "--beam", 4, "--max-len-b", 20, "--num-workers", 0)


def generate(training, *arguments, data=None, path=None) -> str:
    return run("generate", data or training.data, *TASK, "--path", path or training.best, *GENERATE, *arguments)


# Training


def test_training_learns(trained):
    losses = logged("loss", trained.log)
    assert len(losses) >= 4 and losses[-1] < losses[0] - 0.5
    assert "label dictionary:" in trained.log
    assert {"checkpoint1.pt", "checkpoint_1_3.pt", "checkpoint_best.pt", "checkpoint_last.pt"} <= {
        path.name for path in trained.folder.iterdir()
    }


def test_logs_have_nothing_that_a_user_must_learn_to_ignore(corpus, tmp_path):
    folder, text = tmp_path / "data-bin", corpus / "train"
    making = ("-s", "en", "-t", "de", *prefixes_of(corpus), "--destdir", folder, "--tree-parser", "brackets")
    flags = ("--arch", "tree_transformer_tiny", "--optimizer", "adam", "--lr", "0.001", "--max-tokens", 320)
    checkpoints = tmp_path / "checkpoints"
    best = ("--path", checkpoints / "checkpoint_best.pt", "--batch-size", 4)
    average = (checkpoints / "checkpoint1.pt", checkpoints / "checkpoint_last.pt", "--output")
    plugin = ("--user-dir", PLUGIN)
    logs = {}
    for name, *arguments in (
        ("fairseq-preprocess", *TASK, *plugin, *making),
        ("fairseq-train", folder, *TASK, *plugin, *flags, "--max-epoch", 1, "--save-dir", checkpoints),
        ("fairseq-validate", folder, *TASK, *plugin, *best),
        ("fairseq-generate", folder, *TASK, *plugin, *best),
        ("fairseq-interactive", folder, *TASK, *plugin, *best[:2]),
        ("tree-fairseq", "average", *average, tmp_path / "average.pt"),
    ):
        done = run_in_process([script(name), *arguments], input="(S (DT the) (NN dog))\n")
        assert done.returncode == 0, done.stdout
        logs[name] = done.stdout
        # A path that has vanished; lines for developers; warnings of which nobody can get rid.
        assert ".building" not in done.stdout, done.stdout
        found = re.search("Warning|DEBUG|can_reuse_epoch_itr|rebuild_batches|total_num_itrs", done.stdout)
        assert found is None, done.stdout
    assert "[en] train.en: " in logs["fairseq-preprocess"] and f"trainpref='{text}'" in logs["fairseq-preprocess"]
    assert "averaged checkpoint1.pt, checkpoint_last.pt into " in logs["tree-fairseq"]


def test_batches_are_the_stock_task_s(data_bin, stock_trained):
    stock = run(
        "train", data_bin, "--task", "translation", "--arch", "transformer", *STOCK_SIZES, "--cpu", "--no-save",
        "--optimizer", "adam", "--max-tokens", 320, "--max-epoch", 1, "--num-workers", 0, "--seed", 7,
    )  # fmt: skip
    assert updates(stock) == updates(stock_trained.log)


def test_autocast_on_the_cpu(data_bin, tmp_path):
    """Layers give bfloat16 where --cpu-autocast asks for it, in training and validation, and about the same loss."""
    dtypes = {"float": set(), "autocast": set()}
    losses = {}
    for name, flags in (("float", ()), ("autocast", ("--cpu-autocast",))):

        def note(module, inputs, output):
            if isinstance(module, torch.nn.Linear):
                dtypes[name].add((module.training, output.dtype))

        hook = torch.nn.modules.module.register_module_forward_hook(note)
        try:
            losses[name] = logged("loss", train(data_bin, tmp_path, "--max-epoch", 1, "--no-save", *flags).log)
        finally:
            hook.remove()
    assert dtypes["float"] == {(True, torch.float32), (False, torch.float32)}
    assert {(True, torch.bfloat16), (False, torch.bfloat16)} <= dtypes["autocast"]
    assert losses["autocast"] == pytest.approx(losses["float"], rel=0.03)


def test_validation_and_resumption_with_bleu(data_bin, tmp_path):
    """Counts of --eval-bleu are numpy's, in checkpoints that are read without running code."""
    bleu = (
        "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 12}', "--eval-bleu-remove-bpe",
        "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--no-epoch-checkpoints",
    )  # fmt: skip
    first = train(data_bin, tmp_path, *bleu, "--max-epoch", 1)
    assert re.search(r"valid on 'valid' subset .* bleu [\d.]+", first.log)
    second = train(data_bin, tmp_path, *bleu, "--max-epoch", 2)
    assert "Loaded checkpoint" in second.log and updates(second.log) == 2 * updates(first.log)
    assert len(hypotheses(generate(second))) == 16


def test_fine_tuning_a_stock_transformer(data_bin, stock_trained, tmp_path):
    tuned = train(data_bin, tmp_path, "--finetune-from-model", stock_trained.best, "--max-update", 1, "--lr", "1e-9")
    assert "loading pretrained model from" in tuned.log
    lines = re.findall(r"weights that the checkpoint does not have, left as initialised: (.*)", tuned.log)
    model, stock = (
        torch.load(path, weights_only=True)["model"]
        for path in (tuned.folder / "checkpoint_last.pt", stock_trained.best)
    )
    assert {name for line in lines for name in line.split(", ")} == set(model) - set(stock)
    for name, weight in stock.items():
        torch.testing.assert_close(model[name], weight, atol=1e-6, rtol=0)
    assert logged("loss", tuned.log)[-1] == pytest.approx(min(logged("loss", stock_trained.log)), rel=0.02)


def test_a_joined_dictionary_and_shared_embeddings(corpus, tmp_path):
    preprocess(corpus, tmp_path / "joined", "--joined-dictionary")
    shared = train(tmp_path / "joined", tmp_path / "out", "--share-all-embeddings", "--max-epoch", 1)
    weights = torch.load(shared.best, weights_only=True)["model"]
    names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight")
    assert torch.equal(weights[names[0]], weights[names[1]]) and torch.equal(weights[names[1]], weights[names[2]])
    assert weights["encoder.embed_labels.weight"].shape[0] != weights[names[0]].shape[0]
    assert len(hypotheses(generate(shared))) == 16


def test_a_convolutional_architecture_trains_on_the_same_folder(data_bin, tmp_path):
    sizes = ("--encoder-layers", "[(32, 3)]", "--decoder-layers", "[(32, 3)]")
    training = train(data_bin, tmp_path, *sizes, "--max-update", 2, arch="fconv_iwslt_de_en")
    assert updates(training.log) == 2
    assert len(hypotheses(generate(training))) == 16


# Generation


def test_alignments_point_to_source_tokens(trained):
    output = generate(trained, "--print-alignment")
    sources, alignments = lines_of("S", output), lines_of("A", output)
    assert sorted(alignments) == list(range(16))
    for number, text in alignments.items():
        length = len(sources[number].split()) + 1  # and EOS
        pairs = [tuple(map(int, pair.split("-"))) for pair in text.split()]
        assert len(pairs) == len(hypotheses(output)[number][0].split())
        assert all(0 <= source < length for source, _ in pairs)


# Ensembles


def test_an_ensemble_with_a_stock_member(trained, stock_trained):
    alone = hypotheses(generate(trained))
    doubled = hypotheses(generate(trained, path=f"{trained.best}:{trained.best}"))
    for number, (text, score) in alone.items():
        assert doubled[number][0] == text and doubled[number][1] == pytest.approx(score, abs=1e-4)
    mixed = hypotheses(generate(trained, path=f"{stock_trained.best}:{trained.best}"))
    assert len(mixed) == 16 and [mixed[n][1] for n in mixed] != [alone[n][1] for n in mixed]
