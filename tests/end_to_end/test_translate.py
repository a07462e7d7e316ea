"""``tree-fairseq translate``: text and splits of folders, as text, as lines of fairseq's commands, and as JSON."""

from __future__ import annotations

import json
import re

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, readable, run, run_in_process, script
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.roads import assert_equal, take_all
from tests.end_to_end.tiny_corpus import leaves, make_pairs
from tree_fairseq.commands.export import main as export
from tree_fairseq.errors import InputError
from tree_fairseq.scoring.__main__ import main as score

TREES = [pair.tree for pair in make_pairs(16, 2)]
DECODING = ("--beam", 3, "--max-len-b", 15, "--cpu")


def translate(training, *arguments, path=None, stdin=None) -> str:
    return run("translate", training.data, "--path", path or training.best, *DECODING, *arguments, stdin=stdin)


def generate(training, *arguments, path=None) -> str:
    flags = (*DECODING, "--required-batch-size-multiple", 1, *arguments)
    return run("generate", training.data, *TASK, "--path", path or training.best, *flags)


def lines_about_sentences(output: str, kinds: str) -> list[str]:
    """The lines of some letters, sorted by the numbers of sentences."""
    found = [line for line in output.splitlines() if re.match(rf"[{kinds}]-\d", line)]
    return sorted(found, key=lambda line: int(re.match(r"..(\d+)", line)[1]))


def json_file(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_all_roads_agree(trained, tmp_path):
    roads = take_all(trained.data, trained.best, TASK, TREES, tmp_path, beam=3, max_len_b=15)
    assert lines_of("S", roads.translated) == {number: leaves(tree) for number, tree in enumerate(TREES)}
    assert [sentence["source_brackets"] for sentence in roads.sentences] == TREES


def test_sorted_lines_are_those_of_generate_in_order(trained):
    flags = ("--nbest", 2, "--remove-bpe", "--print-alignment")
    ours = translate(trained, "--gen-subset", "test", "--batch-size", 1, "--sorted", *flags)
    theirs = generate(trained, "--batch-size", 1, *flags)
    kinds = "STHDPA"
    assert lines_about_sentences(ours, kinds) == lines_about_sentences(theirs, kinds)
    assert list(lines_of("S", ours)) == list(range(16)) != list(lines_of("S", theirs))


def test_files_have_what_generate_prints(trained, tmp_path):
    flags = ("--nbest", 2, "--remove-bpe", "--gen-subset", "test")
    files = ("--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    assert not hypotheses(translate(trained, *flags, *files))
    output = generate(trained, *flags)
    texts = lines_of("D", "\n".join(reversed(output.splitlines())))  # the best is the first, hence the last here
    best = (tmp_path / "best").read_text(encoding="utf-8").splitlines()
    assert best == [texts[number].partition("\t")[2] for number in range(16)]
    sources, targets = lines_of("S", output), lines_of("T", output)
    scores = re.findall(r"^H-(\d+)\t(\S+)", output, re.MULTILINE)
    sentences = json_file(tmp_path / "nbest")
    for number, (sentence, text) in enumerate(zip(sentences, best)):
        found = sentence["hypotheses"]
        assert sentence["id"] == number and found[0]["text"] == text and len(found) == 2
        assert (sentence["source"], sentence["target"]) == (sources[number], targets[number])
        expected = [float(score) for key, score in scores if int(key) == number]
        assert [each["score"] for each in found] == pytest.approx(expected, abs=1e-4)
        for each in found:
            assert sum(each["positional_scores"]) / len(each["positional_scores"]) == pytest.approx(
                each["score"], abs=1e-3
            )
    # The trees are those of the folder, whole.
    assert export([str(trained.data), "--split", "test", "--output", str(tmp_path / "trees")]) == 0
    assert [sentence["source_brackets"] for sentence in sentences] == (tmp_path / "trees").read_text().splitlines()


def test_every_line_of_a_pipe_has_its_line(trained):
    """Also a blank one, whose end is translated, and one that cannot be read."""
    lines = [TREES[0], "", "(S (NN torn", TREES[1]]
    command = [script("tree-fairseq"), "translate", trained.data, "--path", trained.best, *DECODING]
    done = run_in_process(
        ["sh", "-c", '"$@" 2>&1 >answers', "sh", *command], input="\n".join(lines), cwd=trained.folder
    )
    answers = (trained.folder / "answers").read_text(encoding="utf-8").split("\n")
    whole = readable(translate(trained, "--gen-subset", "test", "--sorted"))
    assert len(answers) == 5 and (answers[0], *answers[2:]) == (whole[0], "", whole[1], "")
    assert "input:3:1: 2 brackets are never closed" in done.stdout
    assert "The hypothesis of this line is empty." in done.stdout


def test_a_sentence_that_is_too_long_has_an_empty_line(trained, tmp_path):
    files = ("--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    translate(trained, "--gen-subset", "test", "--max-source-positions", 7, *files,
              "--model-overrides", "{'max_source_positions': 7}")  # fmt: skip
    kept = [len(leaves(tree).split()) < 7 for tree in TREES]
    best = (tmp_path / "best").read_text(encoding="utf-8").split("\n")
    assert list(map(bool, best)) == [*kept, False] and 0 < sum(kept) < 16
    for sentence, is_kept in zip(json_file(tmp_path / "nbest"), kept):
        assert bool(sentence["hypotheses"]) is is_kept is (sentence["source"] is not None)


def test_samples_depend_on_the_seed(trained):
    flags = ("--gen-subset", "test", "--sorted", "--sampling", "--nbest", 3)
    one, same, other = (hypotheses(translate(trained, *flags, "--seed", seed)) for seed in (5, 5, 6))
    assert one == same != other


def test_an_ensemble_and_detokenised_text(trained, stock_trained, tmp_path):
    path = f"{trained.best}:{stock_trained.best}"
    flags = ("--tokenizer", "moses", "--target-lang", "de", "--source-lang", "en")
    (tmp_path / "typed").write_text("\n".join(TREES), encoding="utf-8")
    ours = translate(trained, "--input", tmp_path / "typed", "--sorted", *flags, path=path)
    theirs = generate(trained, *flags, path=path)
    assert_equal(hypotheses(ours), hypotheses(theirs))
    assert readable(ours) == readable(theirs) != [text for text, _ in hypotheses(ours).values()]


def test_both_kinds_of_output_have_the_same_scores(trained, corpus, tmp_path):
    for name, flags in (("best", ()), ("lines", ("--sorted",))):
        translate(trained, "--gen-subset", "test", "--remove-bpe", "--output", tmp_path / name, *flags)
    plain = (corpus / "test.de").read_text(encoding="utf-8").replace("@@ ", "")
    (tmp_path / "references").write_text(plain, encoding="utf-8")
    found = {}
    for name in ("best", "lines"):
        flags = [tmp_path / name, "--references", tmp_path / "references"]
        flags += ["--trees", corpus / "test.en", "--output", tmp_path / f"{name}.json"]
        assert score(list(map(str, flags))) == 0
        found[name] = json.loads((tmp_path / f"{name}.json").read_text())
    for key in ("metrics", "by_length", "by_depth"):
        assert found["best"][key] == found["lines"][key]
    assert found["best"]["metrics"]["chrf"] > 0


def test_what_cannot_work_is_refused_before_a_model_is_loaded(trained, tmp_path):
    for flags, message in (
        (("--output", tmp_path / "missing" / "file"), "missing does not exist"),
        (("--output", tmp_path / "file", "--nbest-json", tmp_path / "file"), "name the same file"),
        (("--input", tmp_path / "nowhere"), "there is no such file"),
        (("--input", __file__, "--output", __file__), "the output would replace the text"),
        (
            ("--task", "translation", "--path", trained.best),
            "checkpoint_best.pt was trained with --task tree_translation",
        ),
        (("--constraints",), "--constraints does not work with tree-fairseq translate; use fairseq-generate"),
    ):
        with pytest.raises(InputError, match=message):
            translate(trained, *flags, path="no-checkpoint.pt")
    assert not list(tmp_path.iterdir())


def test_a_run_that_fails_leaves_no_file_and_the_old_one(trained, tmp_path, monkeypatch):
    (tmp_path / "best").write_text("old\n")
    monkeypatch.setattr("fairseq.tasks.fairseq_task.FairseqTask.inference_step", None)
    files = ("--output", tmp_path / "best", "--nbest-json", tmp_path / "nbest")
    with pytest.raises(TypeError):
        translate(trained, "--gen-subset", "test", *files)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old\n"]
