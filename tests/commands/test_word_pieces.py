"""Raw text as word pieces of a pretrained encoder: files, the dictionary, and all of fairseq's commands after it."""

from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary

from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.tiny_programs import write_corpus
from tests.nn.pretrained import library
from tree_fairseq import hub
from tree_fairseq.commands import word_pieces as command
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig

WORDS = "show how many all rivers lakes cities in utah texas river ##s lake unused . big ##ger".split()
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder with weights of chance, and a tokenizer that knows all words of the corpus but ``small``."""
    transformers = library()
    path = tmp_path_factory.mktemp("bert")
    vocabulary = [*SPECIAL, *WORDS]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=24, **sizes)
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_pieces_stand_beside_the_text_and_the_dictionary_has_all(folder, tmp_path):
    (tmp_path / "train.nl").write_text("Show bigger rivers.\nhow many lakes\n")
    (tmp_path / "test.nl").write_text("show small lakes\n")
    assert command.main(["--pieces-of", str(folder), str(tmp_path / "train.nl"), str(tmp_path / "test.nl")]) == 0
    assert (tmp_path / "train.wp").read_text() == "show big ##ger rivers .\nhow many lakes\n"
    assert (tmp_path / "test.wp").read_text() == "show [UNK] lakes\n"
    dictionary = Dictionary.load(str(tmp_path / "dict.wp.txt"))
    assert dictionary.symbols[dictionary.nspecial :] == WORDS
    # The encoder takes fairseq's unknown word for its own.
    assert dictionary.index("[UNK]") == dictionary.unk()


def test_trees_are_not_tidied_up(folder):
    """They are no pieces; the tokenizer itself would take blanks before punctuation away."""
    pieces = PretrainedPieces(PretrainedPiecesConfig(pieces_of=str(folder)))
    assert pieces.decode("( string !type ) ( date . )") == "( string !type ) ( date . )"
    assert pieces.encode("Show rivers.") == "show rivers ."


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("train.nl", b"show\n\n", "train.nl:2: a line without a word"), ("train.nl", b"\xff\n", "not valid UTF-8"),
        ("train.nl", None, "there is no such file"), ("train.wp", b"show\n", "would be overwritten"),
    ],
)  # fmt: skip
def test_text_that_is_refused(folder, tmp_path, caplog, name, lines, message):
    if lines is not None:
        (tmp_path / name).write_bytes(lines)
    assert command.main(["--pieces-of", str(folder), str(tmp_path / name)]) == 1
    assert message in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == [name] * (lines is not None)


def test_a_folder_without_a_tokenizer(tmp_path, caplog):
    (tmp_path / "train.nl").write_text("show\n")
    (tmp_path / "empty").mkdir()
    assert command.main(["--pieces-of", str(tmp_path / "empty"), str(tmp_path / "train.nl")]) == 1
    assert "empty" in caplog.text
    assert not (tmp_path / "train.wp").exists()


@pytest.mark.parametrize(
    ("task", "read", "model"),
    [
        (
            "tree_insertion",
            ("--trajectories", 1),
            ("tree_insertion_transformer_tiny", "--criterion", "slot_kl_divergence", "--insertion-encoder"),
        ),
        (
            "structural_translation",
            ("--target-modality", "tree"),
            ("tree_positional_transformer_tiny", "--query-position", "--source-encoder"),
        ),
    ],
)
def test_from_raw_text_through_all_commands(folder, tmp_path, task, read, model):
    text, data, save = write_corpus(tmp_path / "text"), tmp_path / "bin", tmp_path / "run"
    files = [str(text / f"{split}.nl") for split in ("train", "valid", "test")]
    assert command.main(["--pieces-of", str(folder), *files]) == 0
    prefixes = [part for split in ("train", "valid", "test") for part in (f"--{split}pref", text / split)]
    task = ("--task", task)
    run(
        "preprocess", *task, "-s", "wp", "-t", "lf", *prefixes, "--destdir", data, "--target-notation", "bracket",
        *read, "--srcdict", text / "dict.wp.txt",
    )  # fmt: skip
    run(
        "train", data, *task, "--cpu", "--save-dir", save, "--arch", *model, "pretrained", "--encoder-path", folder,
        "--optimizer", "adam", "--lr", "3e-3", "--batch-size", 16, "--max-epoch", 2,
        "--num-workers", 0, "--no-epoch-checkpoints",
    )  # fmt: skip
    generated = hypotheses(run("generate", data, *task, "--path", save / "checkpoint_best.pt", "--cpu"))
    lines = (text / "test.nl").read_text(encoding="utf-8").splitlines()
    # Raw text: what was cut beforehand there is cut by the commands here.
    raw = [line.upper() for line in lines]
    output = run(
        "interactive", data, *task, "--path", save / "checkpoint_best.pt", "--cpu", "--buffer-size", 4,
        "--max-tokens", 200, "--bpe", "pretrained_pieces", "--pieces-of", folder,
        stdin="".join(f"{line}\n" for line in raw),
    )  # fmt: skip
    interactive = hypotheses(output)
    trained = hub.from_pretrained(save, data_name_or_path=data, bpe="pretrained_pieces", pieces_of=str(folder))
    assert [text for _, (text, _) in sorted(generated.items())] == trained.translate(raw)
    for number in range(len(lines)):
        assert interactive[number] == (generated[number][0], pytest.approx(generated[number][1], abs=1e-4))
    # Scores tell sources apart even where a model has hardly learned.
    assert len({score for _, score in generated.values()}) == len(set(lines)) > 4
