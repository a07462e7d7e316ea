"""fairseq-interactive drops all but tokens and lengths; the trees have to arrive all the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.end_to_end.commands import ROOT, hypotheses, lines_of, readable, run
from tests.end_to_end.fixtures import TASK, Training, preprocess, train
from tests.end_to_end.roads import assert_equal, take_all
from tests.end_to_end.tiny_corpus import leaves, make_pairs, write_corpus
from tree_fairseq import hub
from tree_fairseq.trees.bracket import write_forest

DECODING = ("--cpu", "--beam", 3, "--max-len-b", 15)
BUNDLED = ROOT / "examples" / "quickstart" / "stanza-en"


def generated(training: Training, *arguments: object) -> dict[int, tuple[str, float]]:
    return hypotheses(
        run("generate", training.data, *TASK, "--path", training.best, *DECODING, "--num-workers", 0, *arguments)
    )


def interactive(training: Training, lines: list[str], *arguments: object) -> str:
    text = "".join(f"{line}\n" for line in lines)
    return run("interactive", training.data, *TASK, "--path", training.best, *DECODING, *arguments, stdin=text)


TREES = [pair.tree for pair in make_pairs(16, 2)]


@pytest.mark.parametrize("buffer", [(), ("--buffer-size", 7, "--max-tokens", 40)], ids=["one", "many"])
def test_bracketed_lines_translate_as_in_the_test_set(trained, buffer):
    output = interactive(trained, TREES, *buffer)
    assert_equal(hypotheses(output), generated(trained))
    assert lines_of("S", output) == {number: leaves(tree) for number, tree in enumerate(TREES)}


def test_the_structure_matters(trained):
    """The comparison above would pass if the model ignored trees."""
    flat = [f"(S {' '.join(f'(NN {word})' for word in leaves(tree).split())})" for tree in TREES]
    found = hypotheses(interactive(trained, flat, "--buffer-size", 16, "--batch-size", 16))
    expected = generated(trained)
    assert sum(abs(found[number][1] - expected[number][1]) > 1e-3 for number in expected) > 8


def test_the_hub_parses_and_draws_what_it_reads(trained):
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    assert [write_forest(forest) for forest in model.parse(TREES)] == TREES
    assert model.translate(TREES[0], beam=3, max_len_b=15) == generated(trained)[0][0]
    assert "<svg" in model.draw(TREES[0])


def test_an_ensemble_with_a_stock_member(trained, stock_trained):
    both = f"{trained.best}:{stock_trained.best}"
    output = run(
        "interactive", trained.data, *TASK, "--path", both, *DECODING, "--buffer-size", 16, "--batch-size", 16,
        stdin="\n".join(TREES),
    )  # fmt: skip
    assert_equal(hypotheses(output), generated(trained, "--path", both))


# Text that has to be parsed


def raw_text(tree: str) -> str:
    return leaves(tree).replace("@@ ", "").removesuffix(" .") + "."


@pytest.fixture(scope="module")
def codes(tmp_path_factory) -> Path:
    from subword_nmt.learn_bpe import learn_bpe

    folder = tmp_path_factory.mktemp("codes")
    words = [leaves(pair.tree).replace("@@ ", "") for pair in make_pairs(60, 0)]
    with open(folder / "codes", "w", encoding="utf-8") as file:
        learn_bpe(words, file, 20)
    return folder / "codes"


def split_corpus(folder: Path, codes: Path) -> Path:
    from subword_nmt.apply_bpe import BPE

    write_corpus(folder, bracketed=False, sizes=(32, 8, 16))
    with open(codes, encoding="utf-8") as file:
        bpe = BPE(file)
    for path in folder.glob("*.en"):
        joined = path.read_text(encoding="utf-8").replace("@@ ", "")
        path.write_text("".join(f"{bpe.process_line(line)}\n" for line in joined.splitlines()), encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=["right-branching", "random", "stanza"])
def parsed(request, codes, tmp_path_factory) -> Training:
    """A model on text that a parser was run on, after one update."""
    folder = tmp_path_factory.mktemp(request.param)
    options = ("--parser-dir", BUNDLED, "--tree-lang", "en") if request.param == "stanza" else ()
    preprocess(split_corpus(folder / "text", codes), folder / "data-bin", *options, parser=request.param)
    if options:  # a model outside the folder would need the flag again
        shutil.copytree(BUNDLED, folder / "data-bin" / "parser")
    return train(folder / "data-bin", folder / "checkpoints", "--max-update", 1)


def test_typed_text_is_tokenised_split_and_parsed_as_the_data_were(parsed, codes, tmp_path):
    segmentation = ("-s", "en", "-t", "de", "--tokenizer", "moses", "--bpe", "subword_nmt", "--bpe-codes", codes)
    lines = [raw_text(tree) for tree in TREES]
    roads = take_all(parsed.data, parsed.best, TASK, lines, tmp_path, *segmentation, beam=3, max_len_b=15)
    model = hub.from_pretrained(
        parsed.folder, data_name_or_path=parsed.data, tokenizer="moses", bpe="subword_nmt", bpe_codes=str(codes)
    )
    assert model.translate(lines, beam=3, max_len_b=15) == readable(roads.translated)
    hypotheses_of_tensors = model.generate([model.encode(line) for line in lines], beam=3, max_len_b=15)
    assert [model.decode(best[0]["tokens"]) for best in hypotheses_of_tensors] == readable(roads.translated)
    words = [
        " ".join(tree.leaves()[0] for tree in forest[0].preorder() if tree.is_preterminal)
        for forest in model.parse(lines)
    ]
    assert [text.replace("@@ ", "") for text in words] == [leaves(tree).replace("@@ ", "") for tree in TREES]
