"""A system of the explorer: a model or an ensemble with its search, and what it does with a sentence."""

from __future__ import annotations

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.tasks.translation import TranslationTask
from omegaconf import open_dict
from torch import nn

from tree_fairseq.classification.targets import NumberDictionary
from tree_fairseq.classification.task import ClassificationTask
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, Manifest
from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.explorer.attention_records import AttentionRecord, recorded_attention
from tree_fairseq.explorer.attention_views import TreeNodes, accumulation_view, cross_attention_view
from tree_fairseq.explorer.chart_view import chart_view
from tree_fairseq.explorer.class_view import classification_view
from tree_fairseq.explorer.document import OutputRecord, SystemRecord
from tree_fairseq.explorer.search_views import beam_view, insertion_view
from tree_fairseq.explorer.sentence_scores import SentenceMetric, metric_of
from tree_fairseq.explorer.sentences import Sentence, SentenceReader, readable
from tree_fairseq.tasks.sides import symbol_dictionary
from tree_fairseq.tree_insertion.observed_insertions import ObservedInsertions
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.tree_positional.search_steps import SearchSteps
from tree_fairseq.tree_transformer.model import TreeTransformerEncoder
from tree_fairseq.treeformer.model import TreeformerEncoder

_TREES = ("source_spans", "source_symbol_tree", "sentence_trees")
_DIGITS = 4  # of scores


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
        self.observer: Any = None
        if isinstance(self.generator, StructuralGenerator):
            self.observer = self.generator.model.observer = SearchSteps(self.task.target_dictionary)
        elif isinstance(self.generator, InsertionGenerator):
            self.observer = self.generator.observer = ObservedInsertions(self.task.target_dictionary)
            self.generator.keep_steps = True
        self.dictionary = _target_dictionary(self.task)
        self.metric = metric_of(self.task, self.dictionary)
        cfg = interface.cfg
        self.record = SystemRecord(
            name,
            architecture=getattr(cfg.model, "arch", None) or getattr(cfg.model, "_name", None) or "",
            task=getattr(cfg.task, "_name", None) or "",
            method=self._method(),
            parameters=sum(parameter.numel() for model in self.models for parameter in model.parameters()),
            metric=self.metric.name,
        )

    def _method(self) -> str:
        encoder = getattr(self.models[0], "encoder", None)
        if isinstance(self.task, ClassificationTask):
            return "classification"
        if isinstance(self.generator, InsertionGenerator):
            return "tree_insertion"
        if isinstance(self.generator, StructuralGenerator):
            return "tree_positional"
        if isinstance(encoder, TreeformerEncoder):
            return "treeformer"
        return "tree_transformer" if isinstance(encoder, TreeTransformerEncoder) else "sequence"

    def use_metric(self, metric: SentenceMetric) -> None:
        """Scores sentences by another metric than that of the task."""
        self.metric, self.record = metric, dataclasses.replace(self.record, metric=metric.name)

    def reference(self, sentence: Sentence) -> Optional[str]:
        """The reference of a sentence as a person reads it; None without one."""
        return None if sentence.target is None else self._written(sentence.target)

    @torch.no_grad()
    def explain(self, sentence: Sentence) -> OutputRecord:
        """The output for a sentence that this system's reader has read, with all views of the method."""
        if sentence.sample is None:
            return OutputRecord(error=sentence.error)
        if self.observer is not None:
            self.observer.forget()
        [hypotheses] = self.task.inference_step(self.generator, self.models, sentence.sample)
        if not hypotheses:
            return OutputRecord(error="the search found no hypothesis")
        best = hypotheses[0]
        ids = [index for index in best["tokens"].tolist() if index != self.task.target_dictionary.eos()]
        written, score = self._written(ids), float(best["score"])
        output = OutputRecord(written, round(score, _DIGITS) if math.isfinite(score) else None)
        if sentence.target is not None:
            output.metric = self.metric.compare(written, ids, self._written(sentence.target), sentence.target)
        views = self._views(sentence, hypotheses, ids)
        output.views = {name: view for name, view in views.items() if view is not None}
        return output

    def _views(self, sentence: Sentence, hypotheses: list[dict], ids: list[int]) -> dict[str, Any]:
        best, sample = hypotheses[0], sentence.sample
        attention, rows = self._attention(sample, best, ids)
        items = [*sentence.tokens]
        if int(sample["net_input"]["src_tokens"][0, -1]) == self.task.source_dictionary.eos():
            items.append(self.task.source_dictionary.eos_word)
        nodes, offsets = self._nodes(sample)
        views: dict[str, Any] = {}
        encoders = [model.encoder for model in self.models if hasattr(model, "encoder")]
        # Where leaves attend beyond their sentence, several sentences share a row.
        if nodes is not None and not (len(offsets) > 1 and getattr(encoders[0], "join_leaves", False)):
            views["accumulation"] = accumulation_view(attention.nodes, nodes, len(sentence.tokens), offsets)
        views["cross_attention"] = cross_attention_view(attention.cross, rows, items, nodes)
        if encoders and all(isinstance(encoder, TreeformerEncoder) for encoder in encoders):
            source = sample["net_input"]["src_tokens"]
            views["chart"] = chart_view(encoders, source, items, rows, attention.cross)
        if isinstance(self.observer, SearchSteps):
            result = self.task.target_dictionary.tree(ids)
            views["beam"] = beam_view(self.observer, self.generator.beam_size, result)
        if isinstance(self.observer, ObservedInsertions):
            self.observer.finish(best["labels"].tolist(), best["parents"].tolist(), best.get("trace"))
            views["insertion"] = insertion_view(self.observer)
        if isinstance(self.task, ClassificationTask):
            arguments = self.task, self.models[0], sample, hypotheses, sentence.forest
            views["classification"] = classification_view(*arguments)
        return views

    def _attention(self, sample: dict, best: dict, ids: list[int]) -> tuple[AttentionRecord, list[str]]:
        """The attention of the first model while it reads the sentence and its own output, and the output's tokens."""
        model, dictionary = self.models[0], self.task.target_dictionary
        given = sample["net_input"]
        inputs = {name: given[name] for name in ("src_tokens", "src_lengths", *_TREES) if name in given}
        device = inputs["src_tokens"].device
        rows: list[str] = []
        with recorded_attention(model) as record:
            if isinstance(self.generator, InsertionGenerator):
                partial = {name: best[name].unsqueeze(0).to(device) for name in ("labels", "parents")}
                rows = [dictionary.words.label(dictionary[index]) for index in best["labels"].tolist()]
                model.decode(model.encode(**inputs), read_partial_trees(partial, dictionary.pad()))
            elif isinstance(self.task, ClassificationTask):
                model(**inputs)
            elif _is_teachable(model):
                eos = dictionary.eos()
                previous = torch.tensor([[eos, *ids]], device=device)
                rows = [*(dictionary[index] for index in ids), dictionary.eos_word]
                if isinstance(self.generator, StructuralGenerator):
                    # Trees end by themselves: their models do not predict EOS.
                    previous, rows = previous[:, :-1], rows[:-1]
                model(**inputs, prev_output_tokens=previous)
        return record, rows

    def _nodes(self, sample: dict) -> tuple[Optional[TreeNodes], list[int]]:
        """The nodes of constituency trees that the model reads, and where each tree of the batch begins."""
        inputs = sample["net_input"]
        if "source_spans" in inputs:
            return TreeNodes(inputs["source_spans"], self.task.source_side.labels), [0]
        if "sentence_trees" in inputs:
            trees = inputs["sentence_trees"]
            lengths = trees["tokens"].ne(self.task.source_dictionary.pad()).sum(1)
            offsets = (lengths.cumsum(0) - lengths).tolist()
            return TreeNodes(trees, self.task.label_dictionary, offsets), offsets
        return None, []

    def _written(self, ids: list[int]) -> str:
        """Ids of a target as a person reads them: a tree in its notation, a class, or text."""
        dictionary = self.dictionary
        written = dictionary.string(torch.tensor(ids, dtype=torch.long))
        if isinstance(dictionary, (TreeDictionary, NumberDictionary)) or isinstance(self.task, ClassificationTask):
            return written
        return readable(self.interface, written)


def _target_dictionary(task) -> Dictionary:
    """The dictionary of targets. It writes trees, too, where a stock task reads the symbols of a tree folder."""
    dictionary = task.target_dictionary
    if isinstance(task, TranslationTask) and not isinstance(dictionary, TreeDictionary):
        folder = Path(utils.split_paths(task.cfg.data)[0])
        manifest = Manifest.load(folder) if (folder / MANIFEST_NAME).exists() else None
        if manifest is not None and task.cfg.target_lang in manifest.symbols:
            return symbol_dictionary(manifest.symbols[task.cfg.target_lang], dictionary)
    return dictionary


def _is_teachable(model: nn.Module) -> bool:
    """Whether the model is a transformer whose decoder reads the ids of the task's dictionary."""
    return bool(getattr(getattr(model, "decoder", None), "layers", ())) and not hasattr(model, "sequences")
