"""Symbol trees through fairseq's own commands: train, generate, interactive, hub, and stock models on the same
folder.
"""

from __future__ import annotations

import re

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from tests.end_to_end.commands import hypotheses, lines_of, logged, run
from tests.end_to_end.roads import take_all
from tests.end_to_end.structural import MODALITIES, TASK, System, preprocess, system_of, texts_for, train
from tests.end_to_end.tiny_programs import write_corpus
from tree_fairseq import hub
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DataFolderError, DictionaryMismatchError, MissingTreesError, StructuralSearchError
from tree_fairseq.tasks.unread_trees import TreeEnsemble
from tree_fairseq.trees.notations import notation_named

SIZES = (
    *("--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 64, "--encoder-layers", 1, "--encoder-attention-heads", 2),
    *("--decoder-embed-dim", 32, "--decoder-ffn-embed-dim", 64, "--decoder-layers", 1, "--decoder-attention-heads", 2),
)
BRACKET = notation_named("bracket")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("programs"))


@pytest.fixture(params=list(MODALITIES))
def system(request, shared):
    return system_of(shared, request.param)


def generate(system, *arguments):
    return run("generate", system.data, *TASK, "--path", system.best, "--cpu", *arguments)


def test_it_learns_and_tells_its_accuracy(system):
    first, *_, last = logged("loss", system.log)
    assert last < first
    assert len(re.findall(r"accuracy \d", system.log)) >= 3


@pytest.mark.parametrize("limit", [("--max-len-b", 4), ("--sampling", "--nbest", 3)])
@pytest.mark.parametrize("system", ["sequence-to-tree"], indirect=True)
def test_every_output_is_a_tree(system, limit):
    found = hypotheses(generate(system, "--beam", 3, "--nbest", 2, "--max-len-a", 0, *limit))
    assert len(found) == 16
    for text, _ in found.values():
        assert BRACKET.write(BRACKET.read(text)) == text


def test_all_roads_agree(system, caplog, tmp_path):
    lines = (system.text / "test.source").read_text(encoding="utf-8").splitlines()
    roads = take_all(system.data, system.best, TASK, lines, tmp_path, beam=2)
    brackets = lines_of("B", roads.translated)
    assert brackets == {number: best["brackets"] for number, best in enumerate(roads.best) if "brackets" in best}
    model = hub.from_pretrained(system.folder, data_name_or_path=system.data)
    if system.modality.target == "tree":
        trees = model.translate_to_trees(lines, beam=2)
        assert [BRACKET.read(brackets[number]) for number in range(len(lines))] == trees
        assert model.translate_to_trees(lines[0], beam=2) == trees[0]
    else:
        assert not brackets
        with pytest.raises(DataFolderError, match="sequences"):
            model.translate_to_trees(lines)
    assert (model.parse(lines)[0] == ()) == (system.modality.source == "sequence")
    for sentence, line in zip(roads.sentences, lines):
        assert ("source_brackets" in sentence) == (system.modality.source != "sequence")
        if system.modality.source == "tree":
            assert BRACKET.read(sentence["source_brackets"]) == BRACKET.read(line)


@pytest.mark.parametrize("system", ["tree-to-tree"], indirect=True)
def test_stock_models_train_on_the_same_folder(system, tmp_path):
    """Under this task their outputs are trees, too; under the stock task they are whatever they are.

    Those of the stock task have learned that a source ends with EOS, and read it under this task, too.
    """
    log = train(system.data, tmp_path / "here", *SIZES, arch="transformer")
    assert logged("loss", log)
    stock = ("--task", "translation")
    assert logged("loss", train(system.data, tmp_path / "stock", *SIZES, arch="transformer", task=stock))
    for folder in ("here", "stock"):
        path = ("--path", tmp_path / folder / "checkpoint_best.pt", "--cpu", "--beam", 2, "--max-len-b", 20)
        found = hypotheses(run("generate", system.data, *TASK, *path))
        assert len(found) == 16 and all(BRACKET.read(text) for text, _ in found.values())
    for left_pads in (True, False):
        structural, *of_stock = [
            encoded(system.data, task, tmp_path / folder / "checkpoint_best.pt", left_pads)
            for task, folder in [(TASK[1], "here"), (TASK[1], "stock"), ("translation", "stock")]
        ]
        torch.testing.assert_close(*of_stock)
        assert len(structural) == len(of_stock[0]) - 1


def encoded(data, name: str, path, left_pads: bool) -> torch.Tensor:
    """The states ``[N, 3, D]`` of the first sources of the test set, as a search under a task has them."""
    config = TASK_DATACLASS_REGISTRY[name](
        data=str(data), dataset_impl="mmap", required_seq_len_multiple=1, left_pad_source=left_pads
    )
    task = TASK_REGISTRY[name].setup_task(config)
    [model], _ = load_model_ensemble([str(path)], task=task)
    task.load_dataset("test")
    pairs = task.dataset("test")
    batch = pairs.collater([pairs[index] for index in range(3)])
    [encoder_out] = TreeEnsemble([model.eval()]).forward_encoder(batch["net_input"])
    [states], [padding] = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
    return states.masked_fill(padding.t().unsqueeze(2), 0)


def test_another_encoding_is_refused(corpus, tmp_path):
    modality = MODALITIES["sequence-to-tree"]
    text = texts_for(corpus, tmp_path / "text", modality)
    depth_first = preprocess(text, tmp_path / "dfs", modality)
    breadth_first = preprocess(text, tmp_path / "bfs", modality, "--traversal", "bfs")
    train(depth_first, tmp_path / "run", "--max-update", 2)
    with pytest.raises(DictionaryMismatchError, match="traversal of the target"):
        run("generate", breadth_first, *TASK, "--path", tmp_path / "run/checkpoint_best.pt", "--cpu")
    wide = preprocess(text, tmp_path / "wide", modality, "--binarization", "none")
    with pytest.raises(DictionaryMismatchError, match="binarization of the target, arities of the target"):
        run("generate", wide, *TASK, "--path", tmp_path / "run/checkpoint_best.pt", "--cpu")


def test_breadth_first_and_wide_trees_train_and_generate(corpus, tmp_path):
    modality = MODALITIES["tree-to-tree"]
    text = texts_for(corpus, tmp_path / "text", modality)
    data = preprocess(text, tmp_path / "bin", modality, "--traversal", "bfs", "--binarization", "none")
    train(data, tmp_path / "run", "--max-update", 8)
    found = hypotheses(generate(System(modality, text, data, tmp_path / "run", ""), "--beam", 3, "--grammar", "data"))
    assert len(found) == 16 and all(BRACKET.read(text) for text, _ in found.values())
    # More children than any node of the dictionary: the line is named, and the others are translated.
    lines = ["( all rivers )", f"( and{' rivers' * 40} )", "( all rivers )"]
    path = ("--path", tmp_path / "run/checkpoint_best.pt", "--cpu", "--buffer-size", 3, "--batch-size", 3)
    output = run("interactive", data, *TASK, *path, stdin="\n".join(lines) + "\n")
    assert "input:2: 'and' has 40 children here, more than any node of the dictionary" in output
    texts = [text for text, _ in hypotheses(output).values()]
    assert texts[1] == "" and texts[0] == texts[2] and BRACKET.read(texts[0])


@pytest.mark.parametrize("system", ["sequence-to-tree"], indirect=True)
def test_options_that_break_trees_are_refused(system):
    with pytest.raises(StructuralSearchError, match="--print-alignment"):
        generate(system, "--print-alignment", "hard")


def test_a_folder_of_sequences_is_named(corpus, tmp_path):
    prefixes = [part for split in ("train", "valid") for part in (f"--{split}pref", corpus / split)]
    run("preprocess", "-s", "nl", "-t", "lf", *prefixes, "--destdir", tmp_path / "bin")
    with pytest.raises(MissingTreesError, match="--target-modality tree"):
        train(tmp_path / "bin", tmp_path / "run")
    run(
        "preprocess", "-s", "nl", "-t", "lf", *prefixes, "--destdir", tmp_path / "parsed", "--tree-parser",
        "right-branching",
    )  # fmt: skip
    with pytest.raises(MissingTreesError, match="neither nl nor lf"):
        train(tmp_path / "parsed", tmp_path / "run")
    assert not Manifest.load(tmp_path / "parsed").symbols
