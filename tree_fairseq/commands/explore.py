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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# The demo shows records and works without torch and fairseq, so what needs them is imported where it is used.
import tree_fairseq
from tree_fairseq.errors import InputError
from tree_fairseq.explorer import DEMO
from tree_fairseq.explorer.page import page_html, write_page
from tree_fairseq.support.files import require_folders, write_json
from tree_fairseq.support.options import command, refuse_unread

logger = logging.getLogger(__name__)

_OUTPUT = Path("explore.html")
_SENTENCES, _SENTENCES_SERVED = 200, 20
_PORT = 8017


def explore(args: argparse.Namespace, overrides: dict[str, Any]) -> None:
    """Loads the systems, explains the sentences, and writes or serves the page."""
    from tree_fairseq.commands.checkpoints import load_models
    from tree_fairseq.explorer.comparison import Comparison
    from tree_fairseq.explorer.systems import System
    from tree_fairseq.trees.text import read_lines

    systems = [System(load_models(args.path, args.data, args, overrides), "model")]
    if args.baseline is not None:
        checkpoint, data = [*args.baseline, args.data][:2]
        systems.append(System(load_models(checkpoint, data, args, overrides), "baseline"))
    comparison = Comparison(systems, progress=not args.no_progress_bar)
    most = _SENTENCES_SERVED if args.serve else _SENTENCES
    count = most if args.sentences is None else args.sentences
    if args.input != "-":
        document = comparison.document_of_lines(list(read_lines(args.input))[:count])
    elif count:
        document = comparison.document_of_split(args.gen_subset, count)
    else:
        document = comparison.document_of_lines([])
    _show(args, document.to_dict(live=args.serve), [lambda: comparison])


def _show(args: argparse.Namespace, document: dict[str, Any], tabs: Sequence[Callable]) -> None:
    if args.json is not None:
        write_json(args.json, document)
    if output := args.output or (None if args.serve or args.json else _OUTPUT):
        write_page(document, output)
        size = output.stat().st_size / 1e6
        logger.info("%s: %d sentences, %.1f MB; open it in a browser", output, len(document["sentences"]), size)
    if args.serve:
        from tree_fairseq.explorer.server import ExplorerServer

        server = ExplorerServer(tabs, page_html(document), args.port, len(document["sentences"]))
        logger.info("open %s in a browser; Ctrl-C ends the server", server.url)
        server.run()


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


def demo_document(folder: Path, live: bool = False, most: int | None = None) -> dict[str, Any]:
    """Reads what the bundled models do with the first sentences of each tab: records, so that no model is loaded."""
    first, *more = json.loads(gzip.decompress((folder / "records.json.gz").read_bytes()))
    for tab in (first, *more):
        tab.update(live=live, package=f"tree-fairseq {tree_fairseq.__version__}", sentences=tab["sentences"][:most])
    return {**first, "more": more}


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    if "--demo" in arguments:
        own = argparse.ArgumentParser(allow_abbrev=False)
        _add_flags(own)
        others = own.parse_known_args(arguments)[1]
        args = own.parse_args([word for word in arguments if word not in others])
        if others or args.baseline:
            hint = f"For other flags: tree-fairseq explore {DEMO} --path {DEMO}/model.safetensors --input FILE"
            raise InputError(
                f"{(others or ['--baseline'])[0]} does not work with --demo, which shows records", hint=hint
            )
        if args.port != _PORT and not args.serve:
            raise InputError("--port goes with --serve")
        require_folders(args.output, args.json)
        tabs: Sequence[Callable] = ()
        if args.serve:
            from tree_fairseq.commands.demo_models import TABS as tabs
        return _show(args, demo_document(DEMO, args.serve, args.sentences), tabs)
    tree_fairseq.register()
    from tree_fairseq.commands.checkpoints import parse_flags, refuse_flags_of_generate

    args, overrides = parse_flags(_add_flags, arguments)
    refuse_flags_of_generate(args, "tree-fairseq explore")
    _check(args)
    explore(args, overrides)


def _check(args: argparse.Namespace) -> None:
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
    require_folders(args.output, args.json)
