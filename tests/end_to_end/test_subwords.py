"""Raw text in, readable text out: the tokeniser and the subwords of a folder travel with it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, readable, run
from tests.end_to_end.fixtures import TASK, Training, train
from tests.end_to_end.roads import take_all
from tests.end_to_end.tiny_corpus import leaves, make_pairs
from tree_fairseq import hub
from tree_fairseq.commands import induce
from tree_fairseq.commands.check import check_folder
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import forest_leaves

DECODING = ("--cpu", "--beam", 3, "--max-len-b", 15)
SIZES = {"train": 80, "valid": 8, "test": 12}
FORMS = {
    "bpe": ("--learn-subwords", 25, "--tokenizer", "moses", "--apply-tokenizer"),
    "sentencepiece": ("--learn-subwords", 60, "--bpe", "sentencepiece"),
}
MARKS = {"bpe": "@@", "sentencepiece": "\u2581"}


def as_typed(tokens: str) -> str:
    """Tokens as a person writes them: subwords joined, the full stop at the last word."""
    return re.sub(r" \.$", ".", tokens.replace("@@ ", ""))


def write_raw(folder: Path) -> Path:
    """Writes ``SPLIT.en`` and ``SPLIT.de`` of raw text into a folder, and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate(SIZES.items()):
        pairs = make_pairs(size, seed)
        for lang, lines in (("en", [leaves(pair.tree) for pair in pairs]), ("de", [pair.target for pair in pairs])):
            text = "".join(f"{as_typed(line)}\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text, encoding="utf-8")
    return folder


def raw_lines(folder: Path, split: str = "test", lang: str = "en") -> list[str]:
    return (folder / f"{split}.{lang}").read_text(encoding="utf-8").splitlines()


def preprocess(text: Path, destination: Path, *arguments: object) -> str:
    prefixes = [word for split in SIZES for word in (f"--{split}pref", text / split)]
    return run("preprocess", "-s", "en", "-t", "de", *prefixes, "--destdir", destination, *arguments)


def generated(training: Training, *arguments: object) -> str:
    return run("generate", training.data, *TASK, "--path", training.best, *DECODING, *arguments)


def interactive(training: Training, lines: list[str], *arguments: object) -> str:
    text = "".join(f"{line}\n" for line in lines)
    batches = ("--buffer-size", 16, "--batch-size", 16)
    return run(
        "interactive", training.data, *TASK, "--path", training.best, *DECODING, *batches, *arguments, stdin=text
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_raw(tmp_path_factory.mktemp("raw"))


@pytest.fixture(scope="module", params=FORMS)
def raw_trained(request, text, tmp_path_factory) -> Training:
    """A model whose folder learned its subwords from raw text; the raw text is gone, and the folder has moved."""
    folder = tmp_path_factory.mktemp(request.param)
    preprocess(text, folder / "first", *TASK, "--tree-parser", "right-branching", *FORMS[request.param])
    (folder / "first").rename(folder / "data-bin")
    assert check_folder(folder / "data-bin") == []
    return train(folder / "data-bin", folder / request.param, "--max-update", 12, "--max-epoch", 12)


def test_all_roads_agree_on_raw_text(raw_trained, text, tmp_path):
    lines = raw_lines(text)
    roads = take_all(raw_trained.data, raw_trained.best, TASK, lines, tmp_path, beam=3, max_len_b=15)
    mark = MARKS[raw_trained.folder.name]
    assert any(mark in best["output"] for best in roads.best if "output" in best)
    assert mark not in "".join(readable(roads.typed))
    # Both sides of a score are text as a person reads it.
    references = lines_of("T", roads.generated)
    assert [references[number] for number in sorted(references)] == raw_lines(text, lang="de")


def test_words_in_pieces_are_subtrees(raw_trained):
    model = hub.from_pretrained(raw_trained.folder, data_name_or_path=raw_trained.data)
    [forest] = model.parse(["the lighthouse sleeps."])
    pieces = [node.label for tree in forest for node in tree.preorder() if node.label.endswith("_sub")]
    assert pieces
    joined = "".join(forest[0].leaves()).replace("@@", "").replace("\u2581", "")
    assert joined == "thelighthousesleeps."


def test_flags_of_fairseq_take_the_place_of_the_folders_model(raw_trained, text, tmp_path):
    kind = raw_trained.folder.name
    [model] = raw_trained.data.glob("subwords.*")
    copy = shutil.copy(model, tmp_path)
    given = {
        "bpe": ("--bpe", "subword_nmt", "--bpe-codes", copy, "--tokenizer", "moses"),
        "sentencepiece": ("--bpe", "sentencepiece", "--sentencepiece-model", copy),
    }[kind]
    lines = raw_lines(text)[:4]
    output = interactive(raw_trained, lines, "-s", "en", "-t", "de", *given)
    assert output.count(f"--bpe {given[1]} replaces what {raw_trained.data}/tree.json says of its text") == 1
    assert output.count("--tokenizer moses replaces") == (kind == "bpe")
    own = interactive(raw_trained, lines)
    assert "replaces" not in own
    assert hypotheses(output) == hypotheses(own) and readable(output) == readable(own)


def test_removed_marks_stay_removed(raw_trained, text):
    lines, kind = raw_lines(text)[:4], raw_trained.folder.name
    flag = ("--remove-bpe",) if kind == "bpe" else ("--remove-bpe", "sentencepiece")
    output = interactive(raw_trained, lines, *flag)
    assert MARKS[kind] not in "".join(text for text, _ in hypotheses(output).values())
    assert readable(output) == readable(interactive(raw_trained, lines))


@pytest.fixture(scope="module")
def plain_trained(text, tmp_path_factory) -> Training:
    """A Treeformer under fairseq's own task, on a folder without trees."""
    folder = tmp_path_factory.mktemp("plain")
    preprocess(text, folder / "data-bin", *FORMS["bpe"])
    assert check_folder(folder / "data-bin") == [] and not list((folder / "data-bin").glob("*.tree.*"))
    plain = ("--task", "translation", "--max-update", 12, "--max-epoch", 12)
    return train(folder / "data-bin", folder / "bpe", *plain, arch="treeformer_tiny")


def test_tasks_of_fairseq_read_raw_text_too(plain_trained, text, tmp_path):
    plain, options = ("--task", "translation"), {"beam": 3, "max_len_b": 15}
    roads = take_all(plain_trained.data, plain_trained.best, plain, raw_lines(text), tmp_path, **options)
    assert MARKS["bpe"] not in "".join(readable(roads.typed))
    assert not any("source_brackets" in sentence for sentence in roads.sentences)


def test_induced_trees_of_raw_text_have_whole_words(plain_trained, text, tmp_path):
    words = [line.replace(".", " .") for line in raw_lines(text)]
    flags = [plain_trained.data, "--path", plain_trained.best, "--cpu"]
    for name, more in (("typed", ("--input", text / "test.en")), ("folder", ("--gen-subset", "test"))):
        output = tmp_path / name
        assert induce.main([str(flag) for flag in (*flags, "-s", "en", "-t", "de", *more, "--output", output)]) == 0
        forests = [read_forest(line) for line in output.read_text(encoding="utf-8").splitlines()]
        assert [" ".join(forest_leaves(forest)) for forest in forests] == words
    assert (tmp_path / "typed").read_bytes() == (tmp_path / "folder").read_bytes()
