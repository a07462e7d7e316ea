"""A trained model from Python: translate or classify sentences, see how they were parsed.

>>> from tree_fairseq import hub
>>> model = hub.from_pretrained("checkpoints", data_name_or_path="data-bin")
>>> model.translate(["the old man the boat ."])
>>> model.parse(["the old man the boat ."])
>>> hub.from_pretrained("checkpoints", data_name_or_path="data-bin").classify(["a moving film ."])
"""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import NamedTuple

from fairseq import hub_utils
from torch import Tensor

import tree_fairseq
from tree_fairseq.classification.base_task import ClassificationTask
from tree_fairseq.classification.targets import NumberDictionary
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.drawing.forest import tree_to_svg
from tree_fairseq.errors import DataFolderError
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Forest, Tree

logger = logging.getLogger(__name__)

_TREE_DICTIONARIES = (SymbolDictionary, InsertionDictionary)
_PATHS = (
    "user_dir",
    "parser_dir",
    "replace_unk",
    "bpe_codes",
    "sentencepiece_model",
    "bpe_merges",
    "bpe_vocab",
    "pieces_of",
)
_CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")


class Classification(NamedTuple):
    """The class of an example.

    Attributes:
        label: the most probable class
        probabilities: of all classes, the most probable first; none where a number is told
        value: that number, whose label is how it is written
    """

    label: str
    probabilities: dict[str, float]
    value: float | None = None


class TreeHubInterface(hub_utils.GeneratorHubInterface):
    """fairseq's hub interface over a task that may parse its input.

    ``translate(sentences, beam=5)`` is fairseq's; text takes the road of ``fairseq-interactive``.
    """

    def sample(self, sentences: list[str], beam: int = 1, verbose: bool = False, **kwargs) -> list[str]:
        """Parses, translates and detokenises sentences, all in one batch of the parser.

        Args:
            sentences: raw text, or tokenised as the training data was where no tokeniser is given;
                bracketed trees where the training data was bracketed
            beam: beam size
            verbose: log hypotheses
            **kwargs: generation options, such as ``lenpen``

        Returns:
            one translation a sentence
        """
        if isinstance(sentences, str):
            return self.sample([sentences], beam=beam, verbose=verbose, **kwargs)[0]
        return [self.decode(tokens) for tokens in self._best(sentences, beam, verbose=verbose, **kwargs)]

    def generate(self, tokenized_sentences, beam: int = 5, verbose: bool = False, **kwargs) -> list[list[dict]]:
        """fairseq's method; where it logs hypotheses that are trees, their brackets follow, the best ones'."""
        ranked = super().generate(tokenized_sentences, beam=beam, verbose=verbose, **kwargs)
        if verbose and isinstance(self.tgt_dict, _TREE_DICTIONARIES):
            for hypotheses in ranked:
                logger.info("B\t%s", notation_named("bracket").write(self.tgt_dict.tree(hypotheses[0]["tokens"])))
        return ranked

    def translate_to_trees(self, sentences: list[str], beam: int = 5, **kwargs) -> list[Tree]:
        """As ``translate``, where the targets are trees: the trees themselves, not what their notation writes.

        Raises:
            DataFolderError: the target is no trees
        """
        if not isinstance(self.tgt_dict, _TREE_DICTIONARIES):
            raise DataFolderError("the targets of this model are sequences; use translate")
        return [self.tgt_dict.tree(tokens) for tokens in self._best(sentences, beam, **kwargs)]

    def classify(self, examples: list[str]) -> list[Classification] | Classification:
        """Tells the class of sentences or documents.

        Args:
            examples: raw text, or tokenised as the training data was where no tokeniser is given; a pair of sentences has a tab
                between them; where the training data was bracketed, trees (whose labels are not looked at) or raw text

        Returns:
            a class and the probabilities of all, or a number, for each; for one string, its own

        Raises:
            DataFolderError: the model tells no classes
        """
        if not isinstance(self.task, ClassificationTask):
            raise DataFolderError("this model tells no classes; use translate")
        if isinstance(examples, str):
            return self.classify([examples])[0]
        if not examples:
            return []
        documents = self.task.read_lines(examples, self._segment)
        classified = []
        for ranked in self.generate(documents):
            scores = ((self.string(hypothesis["tokens"]), hypothesis["score"]) for hypothesis in ranked)
            if isinstance(self.tgt_dict, NumberDictionary):
                [(number, _)] = scores
                classified.append(Classification(number, {}, float(number)))
                continue
            probabilities = {name: math.exp(score) for name, score in scores}
            classified.append(Classification(next(iter(probabilities)), probabilities))
        return classified

    def _best(self, sentences: list[str], beam: int, **kwargs) -> list[Tensor]:
        """Tokens of the best hypothesis of each sentence."""
        tokens, _ = self.task.get_interactive_tokens_and_lengths(sentences, self._segment)
        return [ranked[0]["tokens"] for ranked in self.generate(tokens, beam, **kwargs)]

    def parse(self, sentences: list[str]) -> list[Forest]:
        """The trees that the model reads for sentences, subwords at the leaves; none where it reads sequences.

        Raises:
            DataFolderError: the task is fairseq's own, which knows no trees
        """
        if not hasattr(self.task, "source_forests"):
            raise DataFolderError(
                "this model was trained without trees; those that a Treeformer makes: python -m tree_fairseq.commands.induce"
            )
        return self.task.source_forests(sentences, self._segment)

    def draw(self, sentence: str) -> str:
        """The tree of one sentence as SVG."""
        return tree_to_svg(self.parse([sentence])[0], title=sentence)

    def _segment(self, sentence: str) -> str:
        return self.apply_bpe(self.tokenize(sentence))


def from_pretrained(
    model_dir: str | os.PathLike,
    checkpoint_file: str | None = None,
    data_name_or_path: str | os.PathLike | None = None,
    **kwargs,
) -> TreeHubInterface:
    """Loads a checkpoint with its dictionaries and parser.

    Args:
        model_dir: folder of the checkpoint
        checkpoint_file: its name, or several joined by ``:`` for an ensemble; by default
            ``checkpoint_best.pt``, ``checkpoint_last.pt`` or ``model.pt``, whichever is there first
        data_name_or_path: folder of dictionaries and, where there are trees, label dictionary and ``tree.json``; by
            default ``model_dir``. A path that the checkpoint names is never used.
        **kwargs: options of the task, tokeniser or subword model to override, such as
            ``parser_dir="…"``, ``bpe="subword_nmt"`` and ``bpe_codes="…"``

    Raises:
        DataFolderError: a folder or file is missing; the message says which
    """
    tree_fairseq.register()
    folder = Path(model_dir)
    data = folder if data_name_or_path is None else Path(data_name_or_path)
    if checkpoint_file is None:
        checkpoint_file = next((name for name in _CHECKPOINTS if (folder / name).exists()), _CHECKPOINTS[0])
    for name in checkpoint_file.split(os.pathsep):
        if not (folder / name).is_file():
            raise DataFolderError(f"there is no checkpoint {folder / name}")
    # Treeformer and stock models read folders without trees; a task that needs tree.json asks for it by itself.
    if not any(data.glob("dict.*.txt")):
        raise DataFolderError(
            f"{data} has no dictionaries; name the folder that fairseq-preprocess made: from_pretrained(…, data_name_or_path='data-bin')"
        )
    # What a checkpoint says of places on the machine that it was made on counts for nothing here.
    kwargs = {**dict.fromkeys(_PATHS), **kwargs}
    loaded = hub_utils.from_pretrained(str(folder.resolve()), checkpoint_file, str(data.resolve()), **kwargs)
    return TreeHubInterface(loaded["args"], loaded["task"], loaded["models"]).eval()
