"""A trained model in Python: translates or classifies sentences, and shows how they were parsed.

>>> from tree_fairseq import hub
>>> model = hub.from_pretrained("checkpoints", data_name_or_path="data-bin")
>>> model.translate(["the old man the boat ."])
>>> model.parse(["the old man the boat ."])

A model of a classification task has ``model.classify(["a moving film ."])``.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from fairseq import hub_utils
from torch import Tensor

import tree_fairseq
from tree_fairseq.classification.classifier import class_probabilities
from tree_fairseq.classification.folder import NumberDictionary
from tree_fairseq.classification.task import INPUT, ClassificationTask
from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.errors import DataFolderError, missing
from tree_fairseq.explorer import DEMO
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.page import write_page
from tree_fairseq.explorer.systems import System
from tree_fairseq.new_text.faulty_lines import read_with_care
from tree_fairseq.tasks.pair_dataset import InputLines
from tree_fairseq.tasks.translation import TranslationWithTreesTask
from tree_fairseq.tasks.tree_task import TreeTask
from tree_fairseq.tasks.unknown_tokens import count_typed
from tree_fairseq.trees.tree import Forest, Tree

# The package registers by itself only where fairseq was imported before it.
tree_fairseq.register()

_CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.safetensors", "model.pt")


class Classification(NamedTuple):
    """The predicted class of an example."""

    label: str  # the most probable class, or the number as it was written
    probabilities: dict[str, float]  # of all classes, the most probable first; empty if the model predicts a number
    value: float | None = None  # the predicted number; None for classes


def _of_one_or_many(method: Callable) -> Callable:
    """Lets a method take a string, which is one sentence and has one result, or lines with their ends, as of a file."""

    @functools.wraps(method)
    def of_one_or_many(self, sentences, *args, **kwargs):
        is_one = isinstance(sentences, str)
        lines = [sentence.rstrip("\r\n") for sentence in ([sentences] if is_one else sentences)]
        found = method(self, lines, *args, **kwargs)
        return found[0] if is_one else found

    return of_one_or_many


class TreeHubInterface(hub_utils.GeneratorHubInterface):
    """fairseq's hub interface for tasks that may parse their input.

    ``translate(sentences, beam=5)`` is fairseq's. Text becomes tokens as in ``fairseq-interactive``.
    """

    def __init__(self, cfg, task, models):
        # The task knows the tokeniser and the subwords of its folder, and names libraries that are missing.
        tokenizer, bpe = task.build_tokenizer(cfg.tokenizer), task.build_bpe(cfg.bpe)
        super().__init__(cfg, task, models)
        self.tokenizer, self.bpe = tokenizer, bpe

    @_of_one_or_many
    def sample(self, sentences: list[str], beam: int = 1, verbose: bool = False, **kwargs) -> list[str]:
        """Parses all sentences at once, translates and detokenises them; options such as ``lenpen`` go to generation.

        Sentences are raw text, or text tokenised like the training data if the model has no tokeniser; bracketed trees
        if the training data was bracketed. A blank sentence has an empty translation.
        """
        found = self._ranked(sentences, beam=beam, verbose=verbose, **kwargs)
        return [self.decode(ranked[0]["tokens"]) if ranked else "" for ranked in found]

    @_of_one_or_many
    def translate_to_trees(self, sentences: list[str], beam: int = 5, **kwargs) -> list[Optional[Tree]]:
        """Translates sentences to trees, where ``translate`` returns them as written in their notation.

        A blank sentence has None. Raises DataFolderError if the targets of the model are sequences.
        """
        if not isinstance(self.tgt_dict, TreeDictionary):
            raise DataFolderError("the targets of this model are sequences; use translate")
        found = self._ranked(sentences, beam=beam, **kwargs)
        return [self.tgt_dict.tree(ranked[0]["tokens"]) if ranked else None for ranked in found]

    @_of_one_or_many
    def classify(self, examples: list[str]) -> list[Classification]:
        """Predicts the class, or a number, for each sentence or document; a blank one has the class "".

        An example is raw text, or text tokenised like the training data if the model has no tokeniser; a pair of
        sentences is separated by a tab. If the training data was bracketed, it is a tree (its labels are ignored) or
        raw text. Raises DataFolderError if the model does not classify.
        """
        if not isinstance(self.task, ClassificationTask):
            raise DataFolderError("this model does not classify; use translate")
        classified = []
        for ranked in self._ranked(examples):
            best = self.string(ranked[0]["tokens"]) if ranked else ""
            if isinstance(self.tgt_dict, NumberDictionary):
                classified.append(Classification(best, {}, float(best) if best else None))
            else:
                classified.append(Classification(best, class_probabilities(ranked, self.tgt_dict)))
        return classified

    def _ranked(self, lines: list[str], **kwargs) -> list[list[dict]]:
        """Returns the hypotheses of each line, the best first; none for a blank line, which needs no search.

        Raises InputError for a line that cannot be read, or is longer than the model reads; with
        ``skip_invalid_size_inputs`` it has no hypothesis.
        """

        def read(readable: list[str]) -> list[Tensor]:
            tokens = self._read(readable)
            self._build_batches(tokens, skip_invalid_size_inputs=False)  # refuses lines that are too long
            return tokens

        stops = not kwargs.pop("skip_invalid_size_inputs", False)
        tokens, places = read_with_care(read, InputLines(lines), INPUT, stops=stops)
        found: list[list[dict]] = [[] for _ in lines]
        for place, ranked in zip(places, self.generate(tokens, **kwargs) if places else ()):
            found[place] = ranked
        return found

    def batches(self, lines: list[str]) -> list[dict]:
        """Reads lines, and makes batches of lines of similar lengths, whose ids are the places of the lines.

        Raises InputError if a line cannot be read, and fairseq's errors if one is too long.
        """
        return list(self._build_batches(self._read(lines), skip_invalid_size_inputs=False))

    def _read(self, lines: list[str]) -> list[Tensor]:
        """Returns the tokens of new lines, and counts those that the model does not know."""
        tokens, _ = self.task.get_interactive_tokens_and_lengths(lines, self.segment)
        if not isinstance(self.task, TreeTask):
            count_typed(self.task, [self.segment(line).split() for line in lines])
        return tokens

    @_of_one_or_many
    def parse(self, sentences: list[str]) -> list[Forest]:
        """Parses sentences as the model reads them, with subwords at the leaves. Sequences and blank lines have none.

        Raises DataFolderError if the model was trained under a task of fairseq's own, which has no trees.
        """
        if not isinstance(self.task, (ClassificationTask, TranslationWithTreesTask)):
            advice = "to see the trees of a Treeformer: tree-fairseq induce"
            raise DataFolderError(f"this model was trained without trees; {advice}")
        lines = InputLines(sentences)
        read, places = read_with_care(
            lambda readable: self.task.source_forests(readable, self.segment), lines, INPUT, stops=True
        )
        forests = dict(zip(places, read or ()))
        return [forests.get(place, ()) for place in range(len(lines))]

    def draw(self, sentence: str) -> str:
        """Draws the tree of one sentence as SVG."""
        return tree_to_svg(self.parse([sentence])[0], title=sentence)

    def explain(self, sentence: str, **options) -> dict:
        """Shows what the model does with a sentence: a record of the explorer, as JSON values.

        Options such as ``beam`` go to generation. :mod:`tree_fairseq.explorer.document` describes records;
        ``record["systems"][0]["views"]`` has attention, charts, the steps of searches, or classes.
        """
        return Comparison([System(self, **options)]).explain_line(sentence).to_dict()

    def explore(self, sentences: list[str], path: str | os.PathLike, title: str = "tree-fairseq", **options) -> None:
        """Writes one HTML page that shows what the model does with sentences, and that needs no network.

        Options such as ``beam`` go to generation.
        """
        sentences = [sentences] if isinstance(sentences, str) else list(sentences)
        comparison = Comparison([System(self, **options)], title)
        write_page(comparison.document_of_lines(sentences).to_dict(), path)

    def segment(self, sentence: str) -> str:
        """Tokenises a sentence and splits it into subwords."""
        return self.apply_bpe(self.tokenize(sentence))


def demo(**kwargs) -> TreeHubInterface:
    """Loads a small Treeformer that comes with the package, and translates a grammar's English to German.

    >>> hub.demo().translate(["has the father lived in the museum?"])

    It needs no parser and no further library. Options are those of :func:`from_pretrained`.
    """
    return from_pretrained(DEMO / "treeformer", **kwargs)


def from_pretrained(
    model_dir: str | os.PathLike,
    checkpoint_file: str | None = None,
    data_name_or_path: str | os.PathLike | None = None,
    **kwargs,
) -> TreeHubInterface:
    """Loads a checkpoint with its dictionaries and parser; raises DataFolderError if a folder or file is missing.

    Args:
        model_dir: folder of the checkpoint
        checkpoint_file: its name, or several joined by ``:`` for an ensemble; by default the first that exists of
            ``checkpoint_best.pt``, ``checkpoint_last.pt``, ``model.safetensors`` and ``model.pt``
        data_name_or_path: folder with the dictionaries and, for models of trees, label dictionary and ``tree.json``; by
            default ``model_dir``. Paths in the checkpoint are never used.
        **kwargs: options of task, tokeniser or subword model that replace those of the checkpoint, such as
            ``parser_dir="…"``, ``bpe="subword_nmt"`` and ``bpe_codes="…"``
    """
    folder = Path(model_dir)
    data = folder if data_name_or_path is None else Path(data_name_or_path)
    if checkpoint_file is None:
        checkpoint_file = next((name for name in _CHECKPOINTS if (folder / name).exists()), _CHECKPOINTS[0])
    for name in checkpoint_file.split(os.pathsep):
        if not (folder / name).is_file():
            raise DataFolderError(str(missing(folder / name, "checkpoint")))
    # Treeformer and stock models read folders without trees. A task that needs tree.json checks that itself.
    if not data.is_dir():
        raise DataFolderError(str(missing(data, "folder")))
    if not any(data.glob("dict.*.txt")):
        raise DataFolderError(
            f"{data} has no dictionaries; give the folder that fairseq-preprocess wrote: "
            "from_pretrained(…, data_name_or_path='data-bin')"
        )
    loaded = hub_utils.from_pretrained(str(folder.resolve()), checkpoint_file, str(data.resolve()), **kwargs)
    return TreeHubInterface(loaded["args"], loaded["task"], loaded["models"]).eval()
