"""A small encoder that is pretrained on texts, and read as a published one is."""

from __future__ import annotations

import math

import pytest
import torch

from preprocess.small_encoder import SmallEncoder, main, masked_loss
from tests.nn.pretrained import library
from tests.nn.tiny import dictionary
from tree_fairseq.nn.pretrained import PretrainedEncoder, load_tokenizer

FIRST = ("a film", "the plot", "her play", "this story")
SECOND = ("is good", "was bad", "grows long", "stays short")
TEXTS = [f"{left} {right} ." for left in FIRST for right in SECOND] * 16
SMALL = SmallEncoder(vocabulary=120, layers=1, width=16, heads=2, length=8, updates=150, batch_pieces=256, rate=1e-2)


@pytest.fixture(scope="module")
def tokenizer():
    library()
    return SMALL.learn_pieces(TEXTS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder that the command writes."""
    library()
    folder = tmp_path_factory.mktemp("small")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    flags = ["--vocabulary", "120", "--layers", "1", "--width", "16", "--heads", "2", "--length", "8", "--updates", "9"]
    assert main(["--texts", str(folder / "texts.txt"), "--output", str(folder / "out"), *flags]) == 0
    return folder / "out"


def test_sequences_are_whole_texts_or_parts_of_long_ones(tokenizer):
    long = " ".join(["film"] * 15)
    sequences = SMALL.sequences(["a film .", long, ""], tokenizer)
    assert [len(sequence) for sequence in sequences] == [5, 8, 8, 5]
    assert {(sequence[0], sequence[-1]) for sequence in sequences} == {(tokenizer.cls_token_id, tokenizer.sep_token_id)}
    inner = [piece for sequence in sequences[1:] for piece in sequence[1:-1]]
    assert tokenizer.decode(inner) == long


def test_batches_keep_every_sequence_and_their_size():
    sequences = [[0] * (2 + number % 7) + [number] for number in range(60)]
    drawn, batches = [], SMALL._batches(sequences)
    while len(drawn) < len(sequences):
        batch = next(batches)
        assert len(batch) * max(map(len, batch)) <= SMALL.batch_pieces
        drawn += batch
    assert sorted(sequence[-1] for sequence in drawn) == list(range(60))


def test_masked_pieces_are_predicted_better_than_by_frequency(tokenizer):
    sequences = SMALL.sequences(TEXTS, tokenizer)
    pieces = torch.tensor([piece for sequence in sequences for piece in sequence[1:-1]])
    share = torch.bincount(pieces).double() / len(pieces)
    entropy = -(share[share > 0] * share[share > 0].log2()).sum().item()
    model = SMALL.pretrain(sequences, tokenizer)
    mask = library().DataCollatorForLanguageModeling(tokenizer)
    torch.manual_seed(2)
    with torch.no_grad():
        loss = model(**mask([{"input_ids": sequence} for sequence in sequences])).loss.item() / math.log(2)
    assert loss < entropy - 0.3


def test_the_loss_is_the_librarys(tokenizer):
    model = library().BertForMaskedLM(SMALL._configuration(tokenizer)).eval()
    mask = library().DataCollatorForLanguageModeling(tokenizer)
    inputs = mask([{"input_ids": sequence} for sequence in SMALL.sequences(TEXTS[:9], tokenizer)])
    assert 0 < (inputs["labels"] >= 0).sum()
    expected = model(**inputs).loss
    torch.testing.assert_close(masked_loss(model, inputs).mean(), expected)


def test_training_repeats_itself(tokenizer):
    short = SmallEncoder(**{**vars(SMALL), "updates": 5})
    first, second = (
        short.pretrain(short.sequences(TEXTS, tokenizer), tokenizer).state_dict().values() for _ in range(2)
    )
    assert all(torch.equal(one, other) for one, other in zip(first, second))


def test_the_saved_encoder_has_its_own_states(saved):
    """The states that fine-tuning starts from are those of the saved model."""
    tokenizer = load_tokenizer(saved)
    model = library().AutoModel.from_pretrained(saved).eval()
    symbols = dictionary(*tokenizer.tokenize("a film is good ."))
    text = "A good film ."
    own = PretrainedEncoder.from_folder(symbols, saved).eval()
    tokens = symbols.encode_line(" ".join(tokenizer.tokenize(text)), add_if_not_exist=False)[None].long()
    with torch.no_grad():
        expected = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).last_hidden_state
        states = own(tokens)["encoder_out"][0].transpose(0, 1)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [("a\nb\n", (), "2 sequences of text are too few"), ("", ("--updates", "0"), "start at 1"),
     ("", ("--length", "2"), "at least 3"),
     ("", ("--width", "10", "--heads", "4"), "multiple of --heads"), (None, (), "missing.txt")],
)  # fmt: skip
def test_wrong_input_is_named(tmp_path, capsys, text, flags, message):
    library()
    path = tmp_path / ("missing.txt" if text is None else "texts.txt")
    if text is not None:
        path.write_text(text)
    try:
        status = main(["--texts", str(path), "--output", str(tmp_path / "out"), *flags])
    except SystemExit as ended:
        status = ended.code
    assert status != 0 and message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
