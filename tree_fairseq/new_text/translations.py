"""Sentences with their hypotheses: as text, as a line of JSON, and as the lines that fairseq's commands print."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from fairseq import utils
from fairseq_cli.generate import get_symbols_to_strip_from_output

from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.tasks.tree_task import TreeTask, empty_hypothesis
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Forest

_DIGITS = 4  # of the scores of tokens


@dataclass
class Hypothesis:
    """An output of a model. Scores are in base 2."""

    text: str  # with subwords joined and tokens as text
    output: str  # as the model writes it
    # score, positional_scores: of the whole, and of each token with that of the end
    score: float
    positional_scores: list[float]
    steps: Optional[str] = None  # of decoding, where a search counts them, and marks of a tree that is not complete
    # pairs ``source-target`` of places, or the weights of all source tokens for each token
    alignment: Optional[str] = None
    brackets: Optional[str] = None  # the output in brackets, if it is a tree

    def values(self) -> dict[str, Any]:
        """Returns what is known of the hypothesis, for JSON."""
        found: dict[str, Any] = {"text": self.text}
        if self.output != self.text:
            found["output"] = self.output
        found |= {"score": _finite(self.score), "positional_scores": list(map(_finite, self.positional_scores))}
        if self.steps is not None:
            steps, *marks = self.steps.split(" ")
            found |= {"steps": int(steps), "unfinished": marks} if marks else {"steps": int(steps)}
        more = {"alignment": self.alignment, "brackets": self.brackets}
        return found | {name: value for name, value in more.items() if value is not None}

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yields the letter and the value of each line that fairseq's commands print, and ``B`` for brackets."""
        yield "H", f"{self.score}\t{self.output}"
        yield "D", f"{self.score}\t{self.text}"
        yield "P", " ".join(f"{score:.{_DIGITS}f}" for score in self.positional_scores)
        for letter, value in (("A", self.alignment), ("I", self.steps), ("B", self.brackets)):
            if value is not None:
                yield letter, value


def _finite(score: float) -> Optional[float]:
    return score if math.isfinite(score) else None


@dataclass
class Sentence:
    """A sentence and its hypotheses, the best first."""

    number: int
    source: Optional[str] = None  # None for a sentence that was skipped
    target: Optional[str] = None
    source_brackets: Optional[str] = None
    hypotheses: list[Hypothesis] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # those of :meth:`TreeTask.facts_of`

    @property
    def best(self) -> str:
        """The text of the best hypothesis; empty without one."""
        return self.hypotheses[0].text if self.hypotheses else ""

    def json(self) -> str:
        """Returns the sentence as a line of JSON."""
        found: dict[str, Any] = {"id": self.number, "source": self.source}
        more = {"target": self.target, "source_brackets": self.source_brackets}
        found |= {name: value for name, value in more.items() if value is not None}
        found |= {**self.facts, "hypotheses": [hypothesis.values() for hypothesis in self.hypotheses]}
        return json.dumps(found, ensure_ascii=False)

    def lines(self) -> Iterator[str]:
        """Yields the lines of fairseq's commands, such as ``S-3<TAB>a man sleeps``; none if it was skipped."""
        if self.source is None:
            return
        values = [("S", self.source)] + [("T", self.target)] * (self.target is not None)
        for hypothesis in self.hypotheses:
            values += hypothesis.lines()
        if probabilities := self.facts.get("probabilities"):
            values.append(("C", "\t".join(f"{name} {value:.4f}" for name, value in probabilities.items())))
        yield from (f"{letter}-{self.number}\t{value}" for letter, value in values)


class Translator:
    """Makes sentences of batches, with the models and the options of fairseq's hub interface."""

    def __init__(self, interface: Any):
        self.interface, self.task = interface, interface.task
        self.generation, self.post_process = interface.cfg.generation, interface.cfg.common_eval.post_process
        self.generator = self.task.build_generator(interface.models, self.generation)
        self._left_out = get_symbols_to_strip_from_output(self.generator)

    def sentences(self, batch: dict) -> Iterator[Sentence]:
        """Translates a batch; yields its sentences, whose numbers are the ids of the batch."""
        batch = utils.apply_to_sample(lambda tensor: tensor.to(self.interface.device), batch)
        found = self.task.inference_step(self.generator, self.interface.models, batch)
        for row, (number, ranked) in enumerate(zip(batch["id"].tolist(), found)):
            tokens = utils.strip_pad(batch["net_input"]["src_tokens"][row], self.task.target_dictionary.pad())
            source = self.task.source_dictionary.string(tokens, self.post_process)
            hypotheses = [self.hypothesis(each, source) for each in ranked[: self.generation.nbest]]
            target = None if batch.get("target") is None else self._target(batch["target"][row])
            facts = self.task.facts_of(ranked) if isinstance(self.task, TreeTask) else {}
            yield Sentence(number, source, target, hypotheses=hypotheses, facts=facts)

    def hypothesis(self, found: dict, source: str) -> Hypothesis:
        """Describes a hypothesis of a generator."""
        _, output, alignment = utils.post_process_prediction(
            hypo_tokens=found["tokens"].int().cpu(),
            src_str=source,
            alignment=found["alignment"],
            align_dict=None,
            tgt_dict=self.task.target_dictionary,
            remove_bpe=self.post_process,
            extra_symbols_to_ignore=self._left_out,
        )
        return Hypothesis(
            self._text(output),
            output,
            float(found["score"] / math.log(2)),
            [round(score / math.log(2), _DIGITS) for score in found["positional_scores"].tolist()],
            None if found.get("steps") is None else str(found["steps"]),
            self._alignment(alignment),
            in_brackets(output, self.task.target_dictionary),
        )

    def faulty(self, number: int) -> Sentence:
        """Returns the sentence of a line that cannot be read."""
        return Sentence(number, source="", hypotheses=[self.hypothesis(empty_hypothesis(), "")])

    def _target(self, tokens: Any) -> str:
        dictionary = self.task.target_dictionary
        tokens = utils.strip_pad(tokens, dictionary.pad()).int().cpu()
        return self._text(
            dictionary.string(tokens, self.post_process, escape_unk=True, extra_symbols_to_ignore=self._left_out)
        )

    def _text(self, output: str) -> str:
        return self.interface.detokenize(self.interface.remove_bpe(output))

    def _alignment(self, alignment: Any) -> Optional[str]:
        kind = self.generation.print_alignment
        if kind is None:
            return None
        return " ".join(",".join(weights) if kind == "soft" else "{}-{}".format(*weights) for weights in alignment)


def in_brackets(text: str, dictionary: Any) -> Optional[str]:
    """Returns a tree, written in the notation of its dictionary, in brackets; None for text that is not a tree."""
    if not isinstance(dictionary, TreeDictionary):
        return None
    try:
        return notation_named("bracket").write(dictionary.notation.read(text))
    except SymbolTreeError:
        return None


# Trees of sources


def typed_forests(task: Any, lines: Sequence[str], encode_fn: Callable[[str], str]) -> list[Forest]:
    """Returns the trees of each line as the task reads it; () for tasks that read no trees."""
    return task.source_forests(lines, encode_fn) if hasattr(task, "source_forests") else [() for _ in lines]


def stored_forest(task: Any, split: str, number: int) -> Forest:
    """Returns the trees of a source of a split that the task has loaded, as far as the model reads it; () without."""
    dataset, dictionary = task.dataset(split), task.source_dictionary
    words = dataset[number]["source"].tolist()
    if isinstance(dictionary, TreeDictionary):
        return (dictionary.tree(words),)
    while dataset is not None and not hasattr(dataset, "trees"):
        dataset = getattr(dataset, "dataset", None)
    if dataset is None:
        return ()
    stored = dataset.trees[number]
    labels = getattr(task, "label_dictionary", None) or task.source_side.labels
    leaves = [dictionary[index] for index in words[: stored.num_leaves]]
    return stored.cut(len(leaves)).forest(labels, leaves)


def in_one_line(task: Any, forest: Forest) -> Optional[str]:
    """Writes the trees of a source in brackets; None without any."""
    if isinstance(task.source_dictionary, TreeDictionary):
        return " ".join(map(notation_named("bracket").write, forest))
    return write_forest(forest) if forest else None
