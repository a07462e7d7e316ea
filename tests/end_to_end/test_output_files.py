"""Sorted output, files of hypotheses and of n-best lists, for fairseq-generate and fairseq-interactive."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, run
from tests.end_to_end.fixtures import TASK
from tree_fairseq.commands.export import main as export
from tree_fairseq.errors import InputError
from tree_fairseq.new_text.output_hook import OutputOptions
from tree_fairseq.scoring.__main__ import main as score

# Stock tasks drop what remains after batches of the required multiple.
BATCHES = ("--max-tokens", 60, "--beam", 3, "--cpu", "--required-batch-size-multiple", 1)


def generate(data, path, *arguments, task=TASK):
    return run("generate", data, *task, "--path", path, *BATCHES, *arguments)


def lines_about_sentences(output):
    return [line for line in output.splitlines() if re.match(r"[A-Z]-\d", line)]


def json_file(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("task", [TASK, ("--task", "translation")], ids=["trees", "stock"])
def test_sorted_output_is_the_same_lines_in_the_order_of_the_input(stock_trained, tmp_path, task):
    data, path = stock_trained.data, stock_trained.best
    plain = generate(data, path, "--results-path", tmp_path / "plain", task=task)
    generate(data, path, "--results-path", tmp_path / "sorted", "--sorted-output", task=task)
    files = [tmp_path / name / "generate-test.txt" for name in ("plain", "sorted")]
    for kind in "STHDP":
        by_sort = subprocess.run(f"grep ^{kind}- {files[0]} | sort -V", shell=True, capture_output=True, check=True)
        in_order = subprocess.run(f"grep ^{kind}- {files[1]}", shell=True, capture_output=True, check=True)
        assert by_sort.stdout == in_order.stdout and by_sort.stdout.count(b"\n") == 16
    before, after = (file.read_text().splitlines() for file in files)
    assert sorted(before) == sorted(after) and before != after and before[-1] == after[-1]
    assert not any(f"'{name}':" in plain for name in ("sorted_output", "output", "nbest_json"))


def test_without_flags_the_output_is_fairseqs(trained, monkeypatch):
    from fairseq_cli import generate as command

    ours = generate(trained.data, trained.best)
    monkeypatch.setattr(command, "_main", command._main.__wrapped__)
    assert lines_about_sentences(ours) == lines_about_sentences(generate(trained.data, trained.best))


def test_files_of_hypotheses_agree_with_what_is_printed(trained, tmp_path):
    flags = ("--nbest", 2, "--remove-bpe", "--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    output = generate(trained.data, trained.best, *flags)
    texts = lines_of("D", "\n".join(reversed(output.splitlines())))  # the best is the first, hence the last here
    best = (tmp_path / "best").read_text(encoding="utf-8").splitlines()
    assert best == [texts[number].partition("\t")[2] for number in range(16)]
    sentences = json_file(tmp_path / "nbest")
    assert [sentence["id"] for sentence in sentences] == list(range(16))
    sources, targets = lines_of("S", output), lines_of("T", output)
    scores = re.findall(r"^H-(\d+)\t(\S+)", output, re.MULTILINE)
    positions = re.findall(r"^P-(\d+)\t(.*)$", output, re.MULTILINE)
    for sentence, text in zip(sentences, best):
        number, found = str(sentence["id"]), sentence["hypotheses"]
        assert (sentence["source"], sentence["target"]) == (sources[int(number)], targets[int(number)])
        assert found[0]["text"] == text and len(found) == 2
        assert [each["score"] for each in found] == [float(score) for key, score in scores if key == number]
        assert [each["positional_scores"] for each in found] == [
            list(map(float, values.split())) for key, values in positions if key == number
        ]
    # The trees are those of the folder, whole.
    assert export([str(trained.data), "--split", "test", "--output", str(tmp_path / "trees")]) == 0
    assert [sentence["source_brackets"] for sentence in sentences] == (tmp_path / "trees").read_text().splitlines()
    # Nothing else changes, and --quiet keeps the files.
    assert lines_about_sentences(output) == lines_about_sentences(
        generate(trained.data, trained.best, "--nbest", 2, "--remove-bpe")
    )
    kept = (tmp_path / "nbest").read_bytes()
    assert not lines_about_sentences(generate(trained.data, trained.best, "--quiet", *flags))
    assert (tmp_path / "nbest").read_bytes() == kept


def test_a_line_that_is_skipped_has_an_empty_line(trained, tmp_path):
    flags = ("--max-source-positions", 7, "--skip-invalid-size-inputs-valid-test")
    overrides = ("--model-overrides", "{'max_source_positions': 7}")
    output = generate(
        trained.data,
        trained.best,
        *flags,
        *overrides,
        "--output",
        tmp_path / "best",
        "--nbest-json",
        tmp_path / "nbest",
    )
    found = hypotheses(output)
    assert 0 < len(found) < 16
    best = (tmp_path / "best").read_text(encoding="utf-8").split("\n")
    assert best == [found[number][0] if number in found else "" for number in range(16)] + [""]
    sentences = json_file(tmp_path / "nbest")
    assert [bool(sentence["hypotheses"]) for sentence in sentences] == [number in found for number in range(16)]


def test_the_interactive_command_writes_the_same(trained, corpus, tmp_path):
    text = (corpus / "test.en").read_text(encoding="utf-8")
    flags = ("--buffer-size", 5, "--max-tokens", 400, "--beam", 3, "--cpu")
    flags += ("--nbest", 2, "--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest", "--sorted-output")
    output = run("interactive", trained.data, *TASK, "--path", trained.best, *flags, stdin=text)
    best = (tmp_path / "best").read_text(encoding="utf-8").splitlines()
    generate(
        trained.data,
        trained.best,
        "--nbest",
        2,
        "--output",
        tmp_path / "other",
        "--nbest-json",
        tmp_path / "other.json",
    )
    assert best == (tmp_path / "other").read_text(encoding="utf-8").splitlines()
    for ours, theirs in zip(json_file(tmp_path / "nbest"), json_file(tmp_path / "other.json")):
        assert [each["text"] for each in ours["hypotheses"]] == [each["text"] for each in theirs["hypotheses"]]
        assert ours["source"] == theirs["source"]
    brackets = [sentence["source_brackets"] for sentence in json_file(tmp_path / "nbest")]
    assert brackets == text.splitlines()
    assert "W-0\t" in output and "B-" not in output


def test_options_that_cannot_work_are_refused_before_a_model_is_loaded(trained, tmp_path):
    for flags, message in (
        (("--output", tmp_path / "missing" / "file"), "missing does not exist"),
        (("--output", tmp_path / "file", "--nbest-json", tmp_path / "file"), "name the same file"),
        (("--output", tmp_path / "file", "--num-shards", 2), "one shard of several"),
    ):
        with pytest.raises(InputError, match=message):
            generate(trained.data, "no-checkpoint.pt", *flags)
    assert not list(tmp_path.iterdir())


def test_processes_that_share_the_input_write_their_own_sentences(trained, tmp_path):
    shares = []
    for rank in range(2):
        flags = ("--distributed-world-size", 2, "--distributed-rank", rank, "--nbest-json", tmp_path / "nbest")
        output = generate(trained.data, trained.best, *flags, "--sorted-output")
        shares.append([sentence["id"] for sentence in json_file(tmp_path / "nbest")])
        assert shares[-1] == list(lines_of("H", output))
    assert all(shares) and sorted(shares[0] + shares[1]) == list(range(16))


def test_an_ensemble_and_detokenised_text(trained, tmp_path):
    path = f"{trained.best}:{trained.best}"
    flags = ("--tokenizer", "moses", "--target-lang", "de", "--source-lang", "en")
    output = generate(trained.data, path, *flags, "--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    texts = lines_of("D", output)
    written = (tmp_path / "best").read_text(encoding="utf-8").splitlines()
    assert written == [texts[number].partition("\t")[2] for number in range(16)]
    for number, sentence in enumerate(json_file(tmp_path / "nbest")):
        [best] = sentence["hypotheses"]
        assert best.get("output", best["text"]) == hypotheses(output)[number][0] and best["text"] == written[number]
    assert any("output" in sentence["hypotheses"][0] for sentence in json_file(tmp_path / "nbest"))


def test_both_kinds_of_files_have_the_same_scores(trained, corpus, tmp_path):
    flags = ("--results-path", tmp_path, "--remove-bpe", "--output", tmp_path / "best")
    generate(trained.data, trained.best, *flags)
    plain = (corpus / "test.de").read_text(encoding="utf-8").replace("@@ ", "")
    (tmp_path / "references").write_text(plain, encoding="utf-8")
    for name in ("best", "generate-test.txt"):
        files = (
            "--hypotheses",
            tmp_path / name,
            "--references",
            tmp_path / "references",
            "--trees",
            corpus / "test.en",
        )
        files += ("--json", tmp_path / f"{name}.json", "--baseline", tmp_path / "best", "--samples", 20)
        assert score([str(text) for text in files]) == 0
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("best", "generate-test.txt"))
    for key in ("metrics", "signatures", "differences", "by_length", "by_depth"):
        assert first[key] == second[key]
    assert first["metrics"]["chrf"] > 0 and all(row["p_value"] == 1 for row in first["differences"])


def test_a_run_that_fails_leaves_no_file_and_the_old_one(trained, tmp_path, monkeypatch):
    (tmp_path / "best").write_text("old\n")
    monkeypatch.setattr("fairseq.tasks.fairseq_task.FairseqTask.inference_step", None)
    with pytest.raises(TypeError):
        generate(trained.data, trained.best, "--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old\n"]


def test_options_without_flags_are_none():
    from argparse import Namespace

    assert OutputOptions.of(Namespace()) == OutputOptions()
