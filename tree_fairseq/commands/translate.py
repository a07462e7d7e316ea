"""Translates text, or a split of a folder, with models of any task: translation, trees, classes.

    tree-fairseq translate data-bin --path checkpoint.pt --input test.en --output test.de
    tree-fairseq translate data-bin --path tree.pt:stock.pt --input test.en --nbest 5 --nbest-json nbest.jsonl
    tree-fairseq translate data-bin --path checkpoint.pt < test.en > test.de
    tree-fairseq translate data-bin --path checkpoint.pt --gen-subset test --sorted --output generated.txt

Line n of the output belongs to line n of the input. The flags are those of ``fairseq-generate`` and a few more; the
task is the checkpoint's, and flags that are given replace its options.
"""

from __future__ import annotations

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from tree_fairseq.commands.checkpoints import load_models, parse_flags, refuse_flags_of_generate
from tree_fairseq.errors import InputError, missing
from tree_fairseq.new_text.faulty_lines import read_buffers, read_with_care
from tree_fairseq.new_text.translations import Sentence, Translator, in_one_line, stored_forest, typed_forests
from tree_fairseq.support.files import atomic_file, require_folders
from tree_fairseq.support.options import command, refuse_unread
from tree_fairseq.support.progress import with_progress
from tree_fairseq.tasks.pair_dataset import InputLines

_LINES_OF_A_FILE = 10_000  # that are read, parsed and sorted by length at once


def _add_flags(parser: ArgumentParser) -> list[str]:
    parser.prog, parser.description = "tree-fairseq translate", __doc__.splitlines()[0]
    title = "Translate (--input FILE, standard input, or --gen-subset SPLIT)"
    add = parser.add_argument_group(title).add_argument
    lines = "write fairseq-generate's lines (S-, H-, D-, P-, ...) in place of the best hypotheses, in the input's order"
    nbest = "also write a line of JSON for each sentence: source, and --nbest hypotheses with scores and brackets"
    faulty = "a line that cannot be read has an empty hypothesis (default), or ends the command"
    own = [
        add("--output", type=Path, metavar="FILE", help="default: standard output"),
        add("--nbest-json", type=Path, metavar="FILE", help=nbest),
        add("--sorted", action="store_true", help=lines),
        add("--on-input-error", choices=["empty", "stop"], default="empty", help=faulty),
    ]
    return [action.dest for action in own]


class _Files:
    """The files that the command writes; each gets its name when the command has succeeded."""

    def __init__(self, args: Namespace, stack: contextlib.ExitStack):
        def opened(path: Path | None) -> IO[str] | None:
            return None if path is None else stack.enter_context(atomic_file(path))

        self._output = opened(args.output) or (None if args.quiet else sys.stdout)
        self._json, self._prints_lines = opened(args.nbest_json), args.sorted

    def write(self, sentences: Iterable[Sentence]) -> None:
        for sentence in sentences:
            if self._json is not None:
                self._json.write(f"{sentence.json()}\n")
            if self._output is not None:
                lines = sentence.lines() if self._prints_lines else [sentence.best]
                self._output.writelines(f"{line}\n" for line in lines)
        if self._output is not None:
            self._output.flush()


def _translate_lines(translator: Translator, lines: InputLines, path: str, args: Namespace) -> list[Sentence]:
    interface, first = translator.interface, lines.first_line - 1
    batches, places = read_with_care(interface.batches, lines, path, stops=args.on_input_error == "stop")
    sentences = {place: translator.faulty(first + place) for place in range(len(lines))}
    for batch in with_progress(batches or [], "translate"):
        for sentence in translator.sentences(batch):
            place = places[sentence.number]
            sentence.number = first + place
            sentences[place] = sentence
    if args.nbest_json is not None and places:
        readable = InputLines([lines[place] for place in places], lines.first_line)
        for place, forest in zip(places, typed_forests(interface.task, readable, interface.segment)):
            sentences[place].source_brackets = in_one_line(interface.task, forest)
    return [sentences[place] for place in range(len(lines))]


def _translate_split(translator: Translator, args: Namespace) -> list[Sentence]:
    """Returns the sentences of a split; those that are too long for the model have no source and no hypothesis."""
    task, split = translator.task, args.gen_subset
    task.load_dataset(split)
    sentences = [Sentence(number) for number in range(len(task.dataset(split)))]
    limits = {"max_positions": translator.interface.max_positions, "ignore_invalid_inputs": True}
    sizes = translator.interface.cfg.dataset
    batches = task.get_batch_iterator(
        task.dataset(split), sizes.max_tokens, sizes.batch_size, num_workers=args.num_workers, **limits
    ).next_epoch_itr(shuffle=False)
    for batch in with_progress(batches, f"translate {split}"):
        for sentence in translator.sentences(batch):
            if args.nbest_json is not None:
                sentence.source_brackets = in_one_line(task, stored_forest(task, split, sentence.number))
            sentences[sentence.number] = sentence
    return sentences


def _check(args: Namespace) -> None:
    if args.path is None:
        raise InputError("--path CHECKPOINT is missing")
    refuse_flags_of_generate(args, "tree-fairseq translate")
    unread = {"skip_invalid_size_inputs_valid_test": "it goes with --gen-subset"}
    if "gen_subset" in args.given:
        unread = dict.fromkeys(("input", "buffer_size", "on_input_error"), "it goes with a text, not with --gen-subset")
    if not args.sorted and args.nbest_json is None:
        unread |= dict.fromkeys(("nbest", "print_alignment"), "it goes with --sorted or --nbest-json")
    refuse_unread(args.given, unread)
    if args.input != "-" and not Path(args.input).is_file():
        raise missing(args.input)
    require_folders(args.output, args.nbest_json)
    if args.output is not None and args.output == args.nbest_json:
        raise InputError("--output and --nbest-json name the same file", args.output)
    outputs = [Path(file).resolve() for file in (args.output, args.nbest_json) if file is not None]
    if args.input != "-" and Path(args.input).resolve() in outputs:
        raise InputError("the output would replace the text: name another file", args.input)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    args, overrides = parse_flags(_add_flags, arguments)
    _check(args)
    translator = Translator(load_models(args.path, args.data, args, overrides))
    with contextlib.ExitStack() as stack:
        files = _Files(args, stack)
        if "gen_subset" in args.given:
            files.write(_translate_split(translator, args))
        else:
            is_piped = args.input == "-"
            for lines in read_buffers(args.input, args.buffer_size or (1 if is_piped else _LINES_OF_A_FILE)):
                files.write(_translate_lines(translator, lines, "input" if is_piped else args.input, args))
