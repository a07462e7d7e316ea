"""The extension of ``fairseq-generate`` and ``fairseq-interactive``: raw text, sorted output, files of hypotheses.

Both commands print while they generate, and offer no hook there. ``fairseq-generate`` prints to a file that its
``main`` gives to its ``_main``; ``fairseq-interactive`` prints to standard output. Each gets a stream of ours in its
place (:class:`~tree_fairseq.new_text.output_lines.OutputLines`). Files get their names when the command has succeeded.
"""

from __future__ import annotations

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from fairseq import options, tasks
from fairseq.tasks import FairseqTask
from omegaconf import open_dict

from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.errors import InputError
from tree_fairseq.new_text.line_guard import EMPTY, STOP, Encode, LineGuard, Listener, NothingReadableError, empty_lines
from tree_fairseq.new_text.output_lines import OutputLines, best_texts, json_lines
from tree_fairseq.new_text.raw_input import check_raw_file, read_raw_file
from tree_fairseq.repairs.compat import command_modules, replaced, wrap
from tree_fairseq.support.files import atomic_file
from tree_fairseq.support.options import refuse_flags
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tasks.generating import in_brackets
from tree_fairseq.tasks.pair_dataset import InputLines
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Forest, Tree

_FILES = ("output", "nbest_json", "raw")
_NAMES = ("sorted_output", "on_input_error", *_FILES)


@dataclass(frozen=True)
class OutputOptions:
    """The files and the order that the flags of output ask for."""

    sorted_output: bool = False
    output: Path | None = None
    nbest_json: Path | None = None
    raw: Path | None = None
    # On its own it does not change what is printed of a folder.
    on_input_error: str = field(default=EMPTY, compare=False)

    @classmethod
    def of(cls, cfg: Any) -> OutputOptions:
        """Returns the options of a configuration of fairseq, or of a namespace of arguments."""
        holder = cfg if isinstance(cfg, Namespace) else cfg.generation
        values = {name: getattr(holder, name, None) for name in _NAMES}
        files = {name: None if values[name] is None else Path(values[name]) for name in _FILES}
        return cls(bool(values["sorted_output"]), **files, on_input_error=values["on_input_error"] or EMPTY)

    @property
    def files(self) -> list[Path]:
        """The files to write."""
        return [path for path in (self.output, self.nbest_json) if path is not None]

    def guard(self, path: object, listener: Listener | None = None) -> LineGuard:
        """The guard of the lines of a text."""
        return LineGuard(str(path), self.on_input_error == STOP, listener)

    def check(self, cfg: Any) -> None:
        """Raises InputError, before a model is loaded, for what cannot work."""
        refuse_flags(
            {"--output": self.output is not None and is_shard(cfg)},
            "one shard of several",
            advice="it has a line for each line of the input; give every shard a --nbest-json FILE of its own",
        )
        for path in self.files:
            if not path.parent.is_dir():
                raise InputError(f"the folder {path.parent} does not exist", path)
        if self.output is not None and self.output == self.nbest_json:
            raise InputError("--output and --nbest-json name the same file", self.output)


def is_shard(cfg: Any) -> bool:
    """Whether a command generates from a part of the input only."""
    return cfg.dataset.num_shards > 1 or cfg.distributed_training.distributed_world_size > 1


def install() -> None:
    """Wraps fairseq's functions; a second call does nothing."""
    wrap(options, "add_generation_args", _with_output_flags)
    for command, function, wrapper in (
        ("fairseq_cli.generate", "_main", _generate),
        ("fairseq_cli.interactive", "main", _interact),
    ):
        for module in command_modules(command):
            wrap(module, "convert_namespace_to_omegaconf", _keeping_options)
            wrap(module, function, wrapper)


def _with_output_flags(stock: Callable) -> Callable:
    def add_generation_args(parser: ArgumentParser):
        group = stock(parser)
        add = parser.add_argument_group(
            "Output", "the order of printed lines, and files for other programs"
        ).add_argument
        add("--sorted-output", action="store_true", help="print sentences in the order of the input")
        output = "write the best hypotheses there: one line for each line of the input, empty where there is none"
        add("--output", type=Path, metavar="FILE", help=output)
        raw = "generate from the lines of a text file, which is prepared like typed text, in place of --gen-subset"
        add("--raw", type=Path, metavar="FILE", help=raw)
        faulty = (
            "a line of --raw or --input that cannot be read, or is too long for the model: 'empty' (the default) warns "
            "and gives it an empty hypothesis, 'stop' ends the command"
        )
        add("--on-input-error", choices=[EMPTY, STOP], help=faulty)
        nbest = "write a line of JSON for each sentence there: source, and --nbest hypotheses with scores and brackets"
        add("--nbest-json", type=Path, metavar="FILE", help=nbest)
        return group

    return add_generation_args


def _keeping_options(stock: Callable) -> Callable:
    """Keeps our arguments in fairseq's configuration, which only takes over arguments that it knows."""

    def convert_namespace_to_omegaconf(args: Namespace):
        cfg = stock(args)
        given = {name: getattr(args, name, None) for name in _NAMES}
        with open_dict(cfg.generation):
            cfg.generation.update({name: str(value) for name, value in given.items() if value})
        return cfg

    return convert_namespace_to_omegaconf


def _generate(stock: Callable) -> Callable:
    def _main(cfg, output_file: IO[str]):
        wanted = OutputOptions.of(cfg)
        if wanted == OutputOptions():
            return stock(cfg, output_file)
        wanted.check(cfg)
        if wanted.raw is not None:
            check_raw_file(wanted.raw, cfg)
        lines = OutputLines(output_file, wanted.sorted_output, cfg.common_eval.quiet, bool(wanted.files))
        cfg.common_eval.quiet = False  # our stream swallows what --quiet would not print
        trees = _LineTrees()
        guard = wanted.guard(wanted.raw, trees.add if wanted.nbest_json else None)

        def prepare(task: FairseqTask) -> None:
            if wanted.raw is not None:
                trees.task = task
                read_raw_file(task, wanted.raw, cfg, guard, lines)

        def tree(number: int) -> str | None:
            return _stored_tree(found[-1], dataset, number) if wanted.raw is None else trees[number]

        result = None
        with _tasks(prepare) as found:
            try:
                result = stock(cfg, lines)
            except NothingReadableError:
                lines.writelines(map(empty_lines, guard.faulty))
        lines.finish()
        if wanted.files:
            dataset = found[-1].dataset(cfg.dataset.gen_subset) if wanted.raw is None else None
            count = guard.lines_read if dataset is None else len(dataset)
            _write(wanted, lines, found[-1], sorted(lines.sentences) if is_shard(cfg) else range(count), tree)
        return result

    return _main


def _interact(stock: Callable) -> Callable:
    module = sys.modules[stock.__module__]

    def main(cfg, *args, **kwargs):
        wanted = OutputOptions.of(cfg)
        refuse_flags({"--raw": wanted.raw is not None}, "fairseq-interactive", advice="use --input")
        wanted.check(cfg)
        text, trees, path = _NewText(), _LineTrees(), cfg.interactive.input
        guard = wanted.guard("input" if path == "-" else path, trees.add if wanted.nbest_json else None)

        def prepare(task: FairseqTask) -> None:
            trees.task = task
            guard.watch(task)
            if wanted.nbest_json:
                text.watch(task)

        with _tasks(prepare) as found, guard.reading(module):
            if not wanted.files:  # sentences are printed in the order of the input
                return stock(cfg, *args, **kwargs)
            lines = OutputLines(sys.stdout)
            with text.watching(module), contextlib.redirect_stdout(lines):
                stock(cfg, *args, **kwargs)
        lines.finish()
        text.add_steps(lines.sentences)
        _write(wanted, lines, found[-1], range(guard.lines_read), trees.__getitem__)

    return main


class _LineTrees:
    """The trees of new lines that a task reads, in brackets, by the number of the line."""

    task: FairseqTask

    def __init__(self):
        self._trees: dict[int, str | None] = {}

    def __getitem__(self, number: int) -> str | None:
        return self._trees.get(number)

    def add(self, lines: InputLines, places: Sequence[int], encode_fn: Encode) -> None:
        """Reads the trees of lines; a listener of a :class:`LineGuard`."""
        if hasattr(self.task, "source_forests"):
            forests = self.task.source_forests(list(lines), encode_fn)
            first = lines.first_line - 1
            self._trees.update({first + place: _in_brackets(forest) for place, forest in zip_equal(places, forests)})


class _NewText:
    """The numbers of steps of hypotheses of new text, which ``fairseq-interactive`` does not print."""

    def __init__(self):
        self._steps: dict[int, list[int | None]] = {}
        self._first, self._numbers = 0, []  # of the lines that are being translated, and of those of the batch

    @contextlib.contextmanager
    def watching(self, module: ModuleType) -> Iterator[None]:
        """Numbers the lines that a command reads while the ``with`` block runs."""
        make = module.make_batches

        def make_batches(lines, *settings) -> Iterator:
            for batch in make(lines, *settings):
                self._numbers = [self._first + number for number in batch.ids.tolist()]
                yield batch
            self._first += len(lines)

        with replaced(module, "make_batches", make_batches):
            yield

    def watch(self, task: FairseqTask) -> None:
        """Makes a task remember the steps of its hypotheses."""
        generate = task.inference_step

        def inference_step(*args, **kwargs):
            found = generate(*args, **kwargs)
            for number, ranked in zip(self._numbers, found):
                self._steps[number] = [hypothesis.get("steps") for hypothesis in ranked]
            return found

        task.inference_step = inference_step

    def add_steps(self, sentences: dict[int, dict]) -> None:
        """Adds the numbers of steps to the hypotheses of sentences."""
        for number, counts in self._steps.items():
            for hypothesis, steps in zip(sentences.get(number, {}).get("hypotheses", ()), counts):
                if steps is not None:
                    hypothesis["steps"] = steps


@contextlib.contextmanager
def _tasks(prepare: Callable[[FairseqTask], None] = lambda task: None) -> Iterator[list[FairseqTask]]:
    """Yields a list that gets the tasks that are set up in the ``with`` block, each of them prepared."""
    found: list[FairseqTask] = []
    stock = tasks.setup_task

    def setup_task(*args, **kwargs) -> FairseqTask:
        task = stock(*args, **kwargs)
        prepare(task)
        found.append(task)
        return task

    with replaced(tasks, "setup_task", setup_task):
        yield found


def _write(
    wanted: OutputOptions,
    lines: OutputLines,
    task: FairseqTask,
    numbers: Sequence[int],
    source: Callable[[int], str | None],
) -> None:
    """Writes the files, given the numbers of the sentences in them."""
    dictionary = task.target_dictionary
    if wanted.output is not None:
        with atomic_file(wanted.output) as file:
            file.writelines(f"{text}\n" for text in best_texts(lines.sentences, numbers))
    if wanted.nbest_json is not None:

        def brackets(text: str) -> str | None:
            return in_brackets(text, dictionary) if isinstance(dictionary, TreeDictionary) else None

        with atomic_file(wanted.nbest_json) as file:
            file.writelines(f"{line}\n" for line in json_lines(lines.sentences, numbers, source, brackets))


# Trees of sources


def _in_brackets(forest: Forest) -> str | None:
    """A forest in brackets; None for no tree. A symbol tree may have words beside constituents."""
    if not forest:
        return None
    is_constituency = all(
        child.children or len(node.children) == 1 for node in _nodes(forest) for child in node.children
    )
    if is_constituency and all(tree.children for tree in forest):
        return write_forest(forest)
    return " ".join(map(notation_named("bracket").write, forest))


def _nodes(forest: Forest) -> Iterator[Tree]:
    for tree in forest:
        yield from tree.preorder()


def _stored_tree(task: FairseqTask, dataset: Any, number: int) -> str | None:
    """The tree of a source of a preprocessed folder."""
    words, dictionary = dataset[number]["source"], task.source_dictionary
    if isinstance(dictionary, TreeDictionary):
        return notation_named("bracket").write(dictionary.tree(words.tolist()))
    while dataset is not None and not hasattr(dataset, "trees"):
        dataset = getattr(dataset, "dataset", None)
    if dataset is None:
        return None
    stored = getattr(dataset.trees, "stored", dataset.trees)[number]
    labels = getattr(task, "label_dictionary", None) or task.source_side.labels
    leaves = [dictionary[index] for index in words.tolist()][: stored.num_leaves]
    # A text that is longer than the model's input is read in part.
    return _in_brackets(stored.forest(labels, leaves)) if len(leaves) == stored.num_leaves else None
