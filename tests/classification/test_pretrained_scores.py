"""A classifier over a pretrained encoder has the scores of the library's own modules, on one padded batch.

The head of ``BertForSequenceClassification`` reads [CLS] through one more layer, which our classifier does not have. So
the library's side is its ``BertModel`` with a linear layer over the state of [CLS].
"""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor, nn

from tests.classification.documents import Task
from tests.nn.pretrained import library
from tests.nn.tiny import build
from tree_fairseq.classification import treeformer_classifier  # noqa: F401  (registers the architectures)
from tree_fairseq.classification.dataset import TextDataset
from tree_fairseq.classification.examples import joined_sentences
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig
from tree_fairseq.tasks.pair_dataset import NewLines

LENGTH = 80
NUM_CLASSES = 3
WORDS = ("A", "film", "the", "plot", "grows", "long", "stays", "short", "unwatchable", ".")
UNKNOWN = "Ω"
KINDS = {"sentence": 1, "pair": 2}


def texts_of(kind: str) -> list[list[str]]:
    """Draws a sentence or two for each of 24 lines, from one word to eight; one line has an unknown character."""
    chooser = random.Random(kind)
    drawn = [[" ".join(chooser.choices(WORDS, k=chooser.randint(1, 8))) for _ in range(KINDS[kind])] for _ in range(24)]
    drawn[3][-1] += f" {UNKNOWN}"
    return drawn


def learn_pieces(texts: list[str]):
    """Learns a lower-casing tokenizer of word pieces; returns the library's object."""
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.BertWordPieceTokenizer(lowercase=True)
    words.train_from_iterator(texts, vocab_size=90, show_progress=False)
    pieces = words._tokenizer
    ends = ((end, pieces.token_to_id(end)) for end in ("[SEP]", "[CLS]"))
    pieces.post_processor = tokenizers.processors.BertProcessing(*ends)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return library().PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=LENGTH, **special)


class LibraryClassifier(nn.Module):
    """The library's BERT, and a linear layer over the state of [CLS]."""

    def __init__(self, bert: nn.Module):
        super().__init__()
        self.bert = bert
        self.linear = nn.Linear(bert.config.hidden_size, NUM_CLASSES)

    def forward(self, **inputs: Tensor) -> Tensor:
        return self.linear(self.bert(**inputs).last_hidden_state[:, 0])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of an encoder; its tokenizer and a classifier over it, as they were before they were saved."""
    transformers, folder = library(), tmp_path_factory.mktemp("bert")
    # Rare words stay in pieces.
    tokenizer = learn_pieces([" ".join(WORDS), *[" ".join(WORDS[:6])] * 4])
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    configuration = transformers.BertConfig(vocab_size=len(tokenizer), **sizes, max_position_embeddings=LENGTH)
    classifier = LibraryClassifier(transformers.BertModel(configuration)).eval()
    # As they are initialised, biases are 0 and the state of [CLS] hardly depends on the words.
    for weight in classifier.parameters():
        weight.data += 0.5 * torch.randn_like(weight)
    classifier.bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, tokenizer, classifier


@torch.no_grad()
def library_logits(tokenizer, classifier: LibraryClassifier, texts: list[list[str]]) -> Tensor:
    """Scores all texts in one padded batch; the second sentence of a pair has segment 1."""
    inputs = tokenizer(*map(list, zip(*texts)), padding=True, return_tensors="pt", return_token_type_ids=True)
    assert inputs["token_type_ids"].any() == (len(texts[0]) == 2)
    return classifier(**inputs)


def own_classifier(folder, classifier: LibraryClassifier, source):
    """Loads our classifier without a chart from the folder, and copies the linear layer."""
    task = Task(source_dictionary=source, num_classes=NUM_CLASSES)
    model = build(task, "--no-chart", "--encoder-name", str(folder), arch="treeformer_classifier_tiny")
    model.readout.linear.load_state_dict(classifier.linear.state_dict())
    return model


def own_batch(pieces: PretrainedPieces, source, texts: list[list[str]]) -> dict:
    """Collates raw texts as new lines are."""
    joined = [joined_sentences([pieces.encode(text) for text in line], len(line) == 2) for line in texts]
    lines = NewLines([source.encode_line(line, add_if_not_exist=False).long() for line in joined])
    dataset = TextDataset(lines, lines.lengths, source, is_typed=True)
    return dataset.collater([dataset[index] for index in range(len(texts))])


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_the_library(saved, kind):
    folder, tokenizer, classifier = saved
    pieces, texts = PretrainedPieces(PretrainedPiecesConfig(pieces_of=str(folder))), texts_of(kind)
    source = pieces.dictionary()
    model, sample = own_classifier(folder, classifier, source), own_batch(pieces, source, texts)
    assert sample["net_input"]["src_lengths"].unique().numel() > 5, "most rows are padded"
    with torch.no_grad():
        logits = model(**sample["net_input"])["logits"][sample["id"].argsort()]
    torch.testing.assert_close(logits, library_logits(tokenizer, classifier, texts), rtol=0, atol=1e-4)
