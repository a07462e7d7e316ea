"""Generation of trees in fairseq's commands: options, the generator of each kind of model, printed lines, traces."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from fairseq import utils

from tree_fairseq.compat import print_after
from tree_fairseq.errors import StructuralSearchError, SymbolTreeError, given_flags, refuse_flags
from tree_fairseq.nn.generating import ValidationAccuracyConfig, ValidationAccuracyTask, print_brackets
from tree_fairseq.nn.tasks import TranslationWithTreesConfig, TranslationWithTreesTask
from tree_fairseq.tree_insertion import INVALID, PARTIAL, UNFINISHED
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.tree_insertion.model import (
    LEFT_TO_RIGHT,
    SEQUENCE_INSERTION,
    TREE_INSERTION,
    TreeGeneratingTransformer,
)
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator, write_trace
from tree_fairseq.tree_insertion.sequence_search import LeftToRightGenerator, SequenceInsertionGenerator
from tree_fairseq.tree_insertion.target import ROOT_LABEL
from tree_fairseq.trees.tree import Tree
from tree_fairseq.trees.unordered import exact_matches

_COMMAND = "fairseq_cli.generate"
_DEFAULTS = InsertionLimits()

# Options of fairseq-generate that all generators of trees refuse, and those that some refuse, by the kind of decoding.
_REFUSED = ("print_alignment", "replace_unk", "constraints", "lm_path", "score_reference")
_REFUSED_BY = {
    TREE_INSERTION: ("sampling",),
    SEQUENCE_INSERTION: ("sampling", "retain_iter_history"),
    LEFT_TO_RIGHT: ("retain_iter_history",),
}


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeGenerationConfig(ValidationAccuracyConfig, TranslationWithTreesConfig):
    """Options of generating trees, and of validating by generating."""

    eval_unordered: Optional[str] = field(
        default=None,
        metadata={"help": "with --eval-accuracy, labels whose children may be in any order, separated by blanks"},
    )
    max_insertion_steps: int = field(
        default=_DEFAULTS.steps,
        metadata={"help": "a tree that is not finished after this number of steps is generated as it is"},
    )
    max_nodes: Optional[int] = field(
        default=None,
        metadata={
            "help": "a tree that would get more nodes is generated as it was before (default: twice the nodes of the "
            f"largest training tree, or {_DEFAULTS.nodes} if that is not known)"
        },
    )
    insertion_trace: Optional[str] = field(
        default=None,
        metadata={
            "help": "write the steps of each tree into this folder, as NUMBER.txt and NUMBER.svg by sentence number"
        },
    )


class TreeGenerationTask(ValidationAccuracyTask, TranslationWithTreesTask):
    """The part of the task that generates trees; ``insertion`` is the record of the targets."""

    cfg: TreeGenerationConfig
    insertion: InsertionRecord
    _prints_unfinished = False

    def __init__(self, cfg: TreeGenerationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        # The words about the best hypotheses of sentences, by their ids, until they are printed.
        self._unfinished: dict[int, str] = {}
        # Numbers the traces of sentences that have no ids.
        self._trace_numbers = itertools.count()

    def get_interactive_tokens_and_lengths(self, lines: list[str], encode_fn: Callable[[str], str]):
        """Encodes new text; ``fairseq-interactive`` prints trees in brackets, too, as ``B-`` lines."""
        print_brackets(self.target_dictionary)
        return super().get_interactive_tokens_and_lengths(lines, encode_fn)

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Builds the generator of models of trees; fairseq's for others.

        ``fairseq-generate`` then prints the number of steps as ``I-`` lines, as with ``--print-step``, and ``U-`` lines
        (:mod:`tree_fairseq.tree_insertion`). Raises StructuralSearchError if options or models do not go together.
        """
        kinds = {decoding_of(model) for model in models}
        if seq_gen_cls is not None or kinds == {None}:
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        if len(kinds) > 1:
            raise StructuralSearchError(
                "models that insert nodes cannot be in an ensemble with others, nor with those that write sequences"
            )
        [decoding] = kinds
        inserts_nodes = decoding == TREE_INSERTION
        refused = given_flags(args, *_REFUSED, *_REFUSED_BY[decoding])
        refused["--insertion-trace"] = not inserts_nodes and self.cfg.insertion_trace is not None
        refuse_flags(refused, "insertions" if inserts_nodes else "sequences of trees", StructuralSearchError)
        # fairseq-generate looks at its arguments again after this.
        args.print_step = True
        self._prints_unfinished = print_after([_COMMAND], self._unfinished_line)
        if decoding == LEFT_TO_RIGHT:
            return super().build_generator(models, args, LeftToRightGenerator, extra_gen_cls_kwargs, **kwargs)
        limits, normalize_scores = self._limits(models), not getattr(args, "unnormalized", False)
        if decoding == SEQUENCE_INSERTION:
            return SequenceInsertionGenerator(models, limits, normalize_scores)
        keep_steps = self.cfg.insertion_trace is not None or getattr(args, "retain_iter_history", False)
        return InsertionGenerator(models, self.target_dictionary, limits, normalize_scores, keep_steps)

    def _limits(self, models) -> InsertionLimits:
        nodes = self.cfg.max_nodes
        if nodes is None:
            train = self.insertion.splits.get("train")
            nodes = _DEFAULTS.nodes if train is None else 2 * train.largest
        # A decoder with positions reads M nodes, the root included, as at most 3 M - 2 labels and brackets.
        lengths = [model.decoder.max_positions() for model in models if model.decoder.embed_positions is not None]
        most = min([nodes, *((length + 2) // 3 - 1 for length in lengths)])
        return InsertionLimits(self.cfg.max_insertion_steps, most)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates; with ``--insertion-trace`` it also writes the steps of each tree."""
        found = super().inference_step(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)
        if self._prints_unfinished and "id" in sample:
            self._remember_unfinished(sample["id"].tolist(), found)
        if self.cfg.insertion_trace is not None and isinstance(generator, InsertionGenerator):
            self._write_traces(sample, found)
        return found

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """Counts the right trees of a batch; labels in ``--eval-unordered`` may have children in any order."""
        outputs = [self.tree_of(ranked[0]) if ranked else None for ranked in hypotheses]
        references = [self.target_dictionary.tree(target) for target in sample["target"].tolist()]
        return sum(exact_matches(outputs, references, (self.cfg.eval_unordered or "").split()))

    def tree_of(self, hypothesis: dict) -> Optional[Tree]:
        """Returns the tree of a hypothesis, None if it is not one tree."""
        try:
            tree = self.target_dictionary.tree(hypothesis["tokens"].tolist())
        except SymbolTreeError:
            return None
        # The sequence keeps the root that decoding begins with if that has no child or several.
        return None if tree.label == ROOT_LABEL else tree

    def _remember_unfinished(self, ids: list[int], found: list[list[dict]]) -> None:
        for number, ranked in zip(ids, found):
            if ranked:
                is_partial, is_invalid = not ranked[0].get("is_complete", True), self.tree_of(ranked[0]) is None
                if is_partial or is_invalid:
                    self._unfinished[number] = " ".join([PARTIAL] * is_partial + [INVALID] * is_invalid)

    def _unfinished_line(self, line: str) -> Optional[str]:
        """Returns the ``U-`` line that belongs after an ``H-`` line, if any."""
        number = line.partition("\t")[0].removeprefix("H-")
        if not line.startswith("H-") or not number.isdecimal() or int(number) not in self._unfinished:
            return None
        return f"{UNFINISHED}{number}\t{self._unfinished.pop(int(number))}"

    def _write_traces(self, sample: dict, found: list[list[dict]]) -> None:
        ids = sample["id"].tolist() if "id" in sample else self._trace_numbers
        folder = Path(self.cfg.insertion_trace)
        for tokens, (hypothesis,), number in zip(sample["net_input"]["src_tokens"], found, ids):
            source = self.source_dictionary.string(utils.strip_pad(tokens, self.source_dictionary.pad()))
            write_trace(hypothesis["trace"], source, self.target_dictionary, folder, number)


def decoding_of(model) -> Optional[str]:
    """Returns the kind of decoding of a model of trees, None for other models."""
    return model.decoding if isinstance(model, TreeGeneratingTransformer) else None
