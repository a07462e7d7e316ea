"""Pretrains a small BERT on texts: an encoder to fine-tune where no published one is at hand.

    python -m preprocess.small_encoder --texts reviews.txt captions.txt --output small-bert

``--encoder-path small-bert`` of the recipe ``glue`` then fine-tunes it. The word pieces are learned from the texts, and
the encoder learns to predict masked pieces (Devlin et al. 2019, without the prediction of next sentences). Of the
texts, ``.trees`` are bracketed trees, ``.tsv`` have the text in their first column, and all others have a sentence or a
document on each line. It needs ``pip install 'tree-fairseq[pretrained]'``.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from preprocess.command import run_command
from preprocess.corpora import CorpusError
from preprocess.word_vectors import read_texts
from tree_fairseq.nn.pretrained import library

logger = logging.getLogger(__name__)

HELD_OUT = 200
"""One of so many sequences is held out, to report how well masked pieces are predicted."""


@dataclass(frozen=True)
class SmallEncoder:
    """Sizes and training of an encoder.

    Args:
        vocabulary: number of word pieces
        layers, width, heads: of the encoder; its feed-forward layers are four times as wide
        length: pieces of the longest text that it reads
        updates: number of updates
        batch_pieces: pieces in a batch, padding included
        rate: learning rate after a tenth of the updates; it falls to 0 linearly
        seed: of the parameters, the order of the texts and the masks
    """

    vocabulary: int = 8000
    layers: int = 2
    width: int = 128
    heads: int = 4
    length: int = 128
    updates: int = 4000
    batch_pieces: int = 2048
    rate: float = 3e-3
    seed: int = 1

    def learn_pieces(self, texts: Sequence[str]):
        """Learns a lower-casing tokenizer of word pieces from texts; returns the library's object."""
        transformers, tokenizers = library(), importlib.import_module("tokenizers")
        words = tokenizers.BertWordPieceTokenizer(lowercase=True)
        words.train_from_iterator(texts, vocab_size=self.vocabulary, show_progress=False)
        pieces = words._tokenizer
        ends = ((end, pieces.token_to_id(end)) for end in ("[SEP]", "[CLS]"))
        pieces.post_processor = tokenizers.processors.BertProcessing(*ends)
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=pieces,
            model_max_length=self.length,
            **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")},
        )

    def sequences(self, texts: Sequence[str], tokenizer) -> list[list[int]]:
        """Cuts texts into sequences of pieces that the encoder can read, with their start and separator."""
        room = self.length - 2
        pieces = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [
            [tokenizer.cls_token_id, *text[first : first + room], tokenizer.sep_token_id]
            for text in pieces
            for first in range(0, len(text), room)
        ]

    def pretrain(self, sequences: Sequence[Sequence[int]], tokenizer):
        """Trains an encoder to predict masked pieces; returns the library's ``BertForMaskedLM``.

        Raises:
            CorpusError: there are too few sequences to hold one out
        """
        if len(sequences) < HELD_OUT:
            raise CorpusError(f"{len(sequences)} sequences of text are too few: give at least {HELD_OUT}")
        transformers = library()
        torch.manual_seed(self.seed)
        configuration = self._configuration(tokenizer)
        model = transformers.BertForMaskedLM(configuration)
        # With the layer over the first state, which nothing trains, but which loaders ask for.
        model.bert = transformers.BertModel(configuration)
        model.tie_weights()
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.rate, betas=(0.9, 0.98), weight_decay=0.01)
        warmup = math.ceil(self.updates / 10)
        schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup, self.updates)
        mask = transformers.DataCollatorForLanguageModeling(tokenizer)
        trained = [sequence for number, sequence in enumerate(sequences) if number % HELD_OUT]
        for update, batch in zip(range(1, self.updates + 1), self._batches(trained)):
            loss = masked_loss(model, mask([{"input_ids": sequence} for sequence in batch])).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if update % 100 == 0:
                logger.info("%d of %d updates, loss %.3f bits", update, self.updates, loss.item() / math.log(2))
        bits = self._bits(model.eval(), sequences[::HELD_OUT], mask)
        logger.info("held-out text: %.3f bits a masked piece", bits)
        return model

    def _configuration(self, tokenizer):
        return library().BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.width,
            max_position_embeddings=self.length,
            # So few parameters underfit; fine-tuning sets dropout of its own.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )

    def _batches(self, sequences: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
        """Draws batches of sequences of similar length, epoch after epoch."""
        random = np.random.default_rng(self.seed)
        while True:
            # A random fraction of a piece puts equally long sequences in another order each time.
            order = np.argsort([len(sequence) + random.random() for sequence in sequences])
            batches: list[list[Sequence[int]]] = []
            batch: list[Sequence[int]] = []
            for index in order:
                if batch and (len(batch) + 1) * len(sequences[index]) > self.batch_pieces:
                    batches.append(batch)
                    batch = []
                batch.append(sequences[index])
            batches.append(batch)
            for number in random.permutation(len(batches)):
                yield batches[number]

    @torch.no_grad()
    def _bits(self, model, sequences: Sequence[Sequence[int]], mask) -> float:
        """Computes the loss of held-out sequences, in bits a masked piece."""
        torch.manual_seed(self.seed)
        total, count = 0.0, 0
        for sequence in sequences:
            losses = masked_loss(model, mask([{"input_ids": sequence}]))
            total += losses.sum().item()
            count += len(losses)
        return total / max(count, 1) / math.log(2)


def masked_loss(model, inputs) -> Tensor:
    """Computes the loss of each masked piece in a batch, in nats, as a float32 vector.

    The library's own loss projects every piece onto the vocabulary; this one projects the masked pieces only.
    """
    labels = inputs.pop("labels")
    states = model.bert(**inputs).last_hidden_state
    masked = labels >= 0
    return cross_entropy(model.cls(states[masked]), labels[masked], reduction="none")


def make_encoder(texts: Sequence[Path], output: Path, encoder: SmallEncoder) -> None:
    """Pretrains an encoder on the texts of files and saves it with its tokenizer.

    Raises:
        CorpusError: a file is missing, or there is too little text
        InputError: a line is not a tree, or the package ``transformers`` is missing
    """
    library().logging.disable_progress_bar()
    lines = [text for path in texts for text in read_texts(path)]
    tokenizer = encoder.learn_pieces(lines)
    sequences = encoder.sequences(lines, tokenizer)
    logger.info("%d texts, %d pieces, %d kinds", len(lines), sum(map(len, sequences)), len(tokenizer))
    model = encoder.pretrain(sequences, tokenizer)
    # The file of weights is written last: without it the folder is refused.
    tokenizer.save_pretrained(output)
    model.bert.save_pretrained(output)
    logger.info("%s: %d parameters", output, model.bert.num_parameters())


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="small_encoder", description="Pretrains a small BERT on texts.")
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="a sentence or a document on each line")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    default = SmallEncoder()
    numbers = {
        "vocabulary": "number of word pieces",
        "layers": "of the encoder",
        "width": "of its states",
        "heads": "of its attention",
        "length": "pieces of the longest text that it reads",
        "updates": "of the training",
        "batch-pieces": "pieces in a batch",
        "seed": "of the training",
    }
    for name, text in numbers.items():
        value = getattr(default, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=default.rate, help="learning rate (default: %(default)s)")
    options = parser.parse_args(argv)
    if min(getattr(options, name.replace("-", "_")) for name in numbers) < 1 or options.rate <= 0:
        parser.error("numbers start at 1, and --rate is above 0")
    if options.length < 3:
        parser.error("--length must be at least 3: a start, a piece and a separator")
    if options.width % options.heads:
        parser.error("--width must be a multiple of --heads")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = vars(_options(argv))
    texts, output = options.pop("texts"), options.pop("output")
    return run_command("small_encoder", lambda: make_encoder(texts, output, SmallEncoder(**options)))


if __name__ == "__main__":
    raise SystemExit(main())
