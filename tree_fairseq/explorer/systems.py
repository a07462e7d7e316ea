"""A system of the explorer: a model or an ensemble with its search, and what it does with a sentence."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any, Optional

import torch
from fairseq.hub_utils import GeneratorHubInterface
from omegaconf import open_dict

# Importing the views of a method registers them.
import tree_fairseq.classification.views
import tree_fairseq.tree_insertion.views
import tree_fairseq.tree_positional.views
import tree_fairseq.tree_transformer.views
import tree_fairseq.treeformer.views  # noqa: F401
from tree_fairseq.drawing.views import Explained, views_of
from tree_fairseq.explorer.cross_attention import cross_attention_view, recorded_attention
from tree_fairseq.explorer.document import OutputRecord, SystemRecord
from tree_fairseq.explorer.sentence_scores import metric_of, target_dictionary, written_tree
from tree_fairseq.explorer.sentences import Sentence, SentenceReader, readable
from tree_fairseq.parsing.pieces import words_by_marks

_DIGITS = 4  # scores are rounded


class System:
    """Explains sentences with the models of a hub interface.

    Views of attention are of the first model of an ensemble; outputs, searches and split points are of all. Options
    such as ``beam`` replace those of the interface's configuration.
    """

    def __init__(self, interface: GeneratorHubInterface, name: str = "model", **options: Any):
        self.interface, self.task = interface, interface.task
        self.models = list(interface.models)
        self.reader = SentenceReader(interface)
        generation = copy.deepcopy(interface.cfg.generation)
        with open_dict(generation):
            generation.update(options)
        self.generator = self.task.build_generator(self.models, generation)
        self.methods = views_of(self.task, self.models, self.generator)
        self.dictionary = target_dictionary(self.task)
        self.metric = metric_of(self.task, self.dictionary)
        self.writes_text = self.metric.is_of_text
        cfg = interface.cfg
        self.record = SystemRecord(
            name,
            architecture=getattr(cfg.model, "arch", None) or getattr(cfg.model, "_name", None) or "",
            task=getattr(cfg.task, "_name", None) or "",
            method=self.methods[0].method if self.methods else "sequence",
            parameters=sum(parameter.numel() for model in self.models for parameter in model.parameters()),
            metric=self.metric.name,
        )

    def reference(self, sentence: Sentence) -> Optional[str]:
        """Returns the reference of a sentence as a person reads it; None without one."""
        return None if sentence.target is None else self._written(sentence.target)

    def reference_tree(self, sentence: Sentence) -> Optional[dict[str, Any]]:
        """Returns the reference of a sentence if it is a tree."""
        return None if sentence.target is None else written_tree(self.dictionary, sentence.target)

    @torch.no_grad()
    def explain(self, sentence: Sentence) -> OutputRecord:
        """Returns the output for a sentence that this system's reader has read, with all views of its methods."""
        if sentence.sample is None:
            return OutputRecord(error=sentence.error)
        for method in self.methods:
            method.begin()
        [hypotheses] = self.task.inference_step(self.generator, self.models, sentence.sample)
        if not hypotheses:
            return OutputRecord(error="the search found no hypothesis")
        ids = [index for index in hypotheses[0]["tokens"].tolist() if index != self.task.target_dictionary.eos()]
        written, score = self._written(ids), float(hypotheses[0]["score"])
        output = OutputRecord(written, round(score, _DIGITS) if math.isfinite(score) else None)
        if sentence.target is not None:
            output.metric = self.metric.compare(written, ids, self._written(sentence.target), sentence.target)
        output.views = {name: view for name, view in self._views(sentence, hypotheses, ids).items() if view is not None}
        return output

    def _views(self, sentence: Sentence, hypotheses: list[dict], ids: list[int]) -> dict[str, Any]:
        """Lets the first model read the sentence and its own output, and returns what its methods show of that."""
        source = self.task.source_dictionary
        reads_end = int(sentence.sample["net_input"]["src_tokens"][0, -1]) == source.eos()
        items = [*sentence.tokens, *([source.eos_word] if reads_end else [])]
        pieces = words_by_marks(sentence.tokens).pieces
        explained = Explained(sentence.sample, sentence.tokens, items, pieces, sentence.forest, hypotheses, ids)
        with contextlib.ExitStack() as stack:
            for method in self.methods:
                stack.enter_context(method.recording())
            explained.cross = stack.enter_context(recorded_attention(self.models[0]))
            found = (method.read_output(explained) for method in self.methods)
            rows = next((tokens for tokens in found if tokens is not None), None)
            explained.rows = self._read_output(explained) if rows is None else rows
        views = {"cross_attention": cross_attention_view(explained, self.methods)}
        views["output_tree"] = written_tree(self.dictionary, ids)
        for method in self.methods:
            views |= method.views(explained)
        return views

    def _read_output(self, explained: Explained) -> list[str]:
        """Reads the output as all models of fairseq do, and returns its tokens; nothing is read without a decoder."""
        model, dictionary = self.models[0], self.task.target_dictionary
        if not getattr(getattr(model, "decoder", None), "layers", ()) or hasattr(model, "sequences"):
            return []  # no decoder that reads the ids of the task's dictionary
        device = explained.inputs["src_tokens"].device
        previous = torch.tensor([[dictionary.eos(), *explained.ids]], device=device)
        model(**explained.inputs, prev_output_tokens=previous)
        return [*(dictionary[index] for index in explained.ids), dictionary.eos_word]

    def _written(self, ids: list[int]) -> str:
        """Writes the ids of a target as a person reads them: a tree in its notation, a class, or text."""
        written = self.dictionary.string(torch.tensor(ids, dtype=torch.long))
        return readable(self.interface, written) if self.writes_text else written
