"""Shows what one or two models do with sentences, in one HTML page that needs no network.

    tree-fairseq explore data-bin --path checkpoint.pt --output explore.html
    tree-fairseq explore data-bin --path tree.pt --baseline stock.pt --gen-subset test --sentences 100 --beam 4
    tree-fairseq explore data-bin --path checkpoint.pt --input sentences.txt
    tree-fairseq explore data-bin --path checkpoint.pt --serve

Models are those of any task and architecture; the page has the views that each method has. The flags are those of
``fairseq-generate`` and a few more. The task is the checkpoint's, and flags that are given replace its options.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Callable

import tree_fairseq
from tree_fairseq import hub
from tree_fairseq.commands.checkpoints import load_models, parse_flags
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.document import SentenceRecord
from tree_fairseq.explorer.page import page_html, write_page
from tree_fairseq.explorer.server import ExplorerServer
from tree_fairseq.explorer.systems import System
from tree_fairseq.support.files import write_json
from tree_fairseq.support.options import command, refuse_unread
from tree_fairseq.trees.text import read_lines

logger = logging.getLogger(__name__)

_OUTPUT = Path("explore.html")
_SENTENCES, _SENTENCES_SERVED = 200, 20
_PORT = 8017


def explore(args: argparse.Namespace, overrides: dict[str, Any]) -> None:
    """Loads the systems, explains the sentences, and writes or serves the page."""
    systems = [System(load_models(args.path, args.data, overrides, args.cpu), "model")]
    if args.baseline is not None:
        checkpoint, data = [*args.baseline, args.data][:2]
        baseline = load_models(checkpoint, data, overrides, args.cpu)
        systems.append(System(baseline, "baseline"))
    comparison = Comparison(systems, progress=not args.no_progress_bar)
    count = args.sentences
    if count is None:
        count = _SENTENCES_SERVED if args.serve else _SENTENCES
    if args.input != "-":
        document = comparison.document_of_lines(list(read_lines(args.input))[:count])
    elif count:
        document = comparison.document_of_split(args.gen_subset, count)
    else:
        document = comparison.document()
    _show(args, document.to_dict(live=args.serve), [comparison])


def _show(args: argparse.Namespace, document: dict[str, Any], tabs: Sequence[Any]) -> None:
    """Writes and serves the page of a document, whose tabs explain typed sentences."""
    _write(args, document)
    if args.serve:
        server = ExplorerServer(tabs, page_html(document), args.port, len(document["sentences"]))
        logger.info("open %s in a browser; Ctrl-C ends the server", server.url)
        server.run()


def _write(args: argparse.Namespace, document: dict[str, Any]) -> None:
    if args.json is not None:
        write_json(args.json, document)
    output = args.output
    if output is None and not args.serve and args.json is None:
        output = _OUTPUT
    if output is not None:
        write_page(document, output)
        size = output.stat().st_size / 1e6
        logger.info("%s: %d sentences, %.1f MB; open it in a browser", output, len(document["sentences"]), size)


def _add_flags(parser: argparse.ArgumentParser) -> list[str]:
    parser.prog, parser.description = "tree-fairseq explore", __doc__.splitlines()[0]
    title = "Explorer (--input FILE reads sentences, one a line, instead of --gen-subset)"
    add = parser.add_argument_group(title).add_argument
    sentences = f"the first N sentences (default: {_SENTENCES}, with --serve {_SENTENCES_SERVED})"
    baseline = "a second system to compare with, and its folder if it is another"
    served = "serve the page on this machine alone (127.0.0.1), for typed sentences"
    page = f"the page (default: {_OUTPUT}, unless --json or --serve is given)"
    own = [
        add("--baseline", nargs="+", metavar=("CHECKPOINT", "DIR"), help=baseline),
        add("--sentences", type=int, metavar="N", help=sentences),
        add("--output", type=Path, metavar="FILE", help=page),
        add("--json", type=Path, metavar="FILE", help="write what the page shows as JSON"),
        add("--serve", action="store_true", help=served),
        add("--port", type=int, default=_PORT, help="of --serve; 0 is any free one (default: %(default)s)"),
        add("--demo", action="store_true", help="explore the models that come with the package"),
    ]
    return [action.dest for action in own]


def demo_arguments(folder: Path) -> list[str]:
    """Returns the arguments that ``--demo`` stands for.

    The folder is one that ``tree-fairseq release`` wrote, with ``sentences.txt`` beside the model. Raises
    DataFolderError if there is no model.
    """
    model, sentences = folder / "model.safetensors", folder / "sentences.txt"
    if not model.is_file() or not sentences.is_file():
        raise DataFolderError(
            f"there is no demo model in {folder}. Explore a model of yours (tree-fairseq explore data-bin --path "
            f"checkpoint.pt), or make one: tree-fairseq release data-bin --path checkpoint.pt --output {folder}, and "
            f"sentences for it, one a line, in {sentences}"
        )
    return [str(folder), "--path", str(model), "--input", str(sentences)]


class _Later:
    """A comparison whose models are loaded when the first sentence is typed; the page itself needs none of them."""

    def __init__(self, load: Callable[[], Comparison]):
        self._load = load

    @cached_property
    def _comparison(self) -> Comparison:
        return self._load()

    def explain_line(self, line: str, number: int) -> SentenceRecord:
        """Explains a typed line."""
        return self._comparison.explain_line(line, number)


def demo_translations() -> Comparison:
    """Loads the bundled model that translates; it needs the extras ``stanza`` and ``subwords``."""
    return Comparison([System(hub.demo(), "model")], "English to German")


def demo_document(folder: Path, live: bool = False, most: int | None = None) -> dict[str, Any]:
    """Reads what the bundled models do with their sentences: records that were made beforehand, so none is loaded.

    ``most`` are the sentences of each tab of the page.
    """
    first, *more = json.loads(gzip.decompress((folder / "records.json.gz").read_bytes()))
    for tab in (first, *more):
        tab.update(live=live, package=f"tree-fairseq {tree_fairseq.__version__}", sentences=tab["sentences"][:most])
    return {**first, "more": more}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    tree_fairseq.register()
    arguments = sys.argv[1:] if arguments is None else list(map(str, arguments))
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--path")
    early.add_argument("--demo", action="store_true")
    known = early.parse_known_args(arguments)[0]
    if known.demo:
        if known.path is not None:
            raise InputError("--demo is the model that comes with the package; leave out --path, or --demo")
        own = argparse.ArgumentParser(allow_abbrev=False)
        _add_flags(own)
        args, others = own.parse_known_args(arguments)
        if not others and args.baseline is None:
            _check_files(args)
            tabs = [_Later(demo_translations)]
            return _show(args, demo_document(hub.DEMO, args.serve, args.sentences), tabs)
        arguments += demo_arguments(hub.DEMO)  # other flags, such as --beam or --input, are of its translations
    args, overrides = parse_flags(_add_flags, arguments)
    _check(args)
    explore(args, overrides)


def _check(args: argparse.Namespace) -> None:
    """Refuses flags that do not fit before any work is done."""
    if args.path is None:
        raise InputError("--path CHECKPOINT is missing, the model to explore", hint="--demo explores the package's.")
    unread = {"buffer_size": "sentences are read one by one"}
    if args.input != "-":
        unread["gen_subset"] = "the sentences are those of --input"
    if not args.serve:
        unread["port"] = "it goes with --serve"
    refuse_unread(args.given, unread)
    if len(args.baseline or ()) > 2:
        raise InputError("--baseline is one CHECKPOINT and, if it has another, its folder")
    _check_files(args)


def _check_files(args: argparse.Namespace) -> None:
    for path in (args.output, args.json):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist", path)
