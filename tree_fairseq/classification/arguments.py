"""The arguments of ``fairseq-preprocess --task tree_classification``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from tree_fairseq.classification.class_trees import NODE_SYMBOL
from tree_fairseq.classification.folder import (
    CLASS,
    INPUT_FORMATS,
    SENTENCE_FORMATS,
    SENTENCE_TASK,
    SYMBOL_SOURCES,
    TASK,
    TEXT,
)
from tree_fairseq.classification.targets import UNLABELLED, check_class
from tree_fairseq.data_bin.symbol_sides import modality
from tree_fairseq.errors import ClassError, InputError

_OWN = ("input_format", "node_symbols", "classes", "regression")


def add_classification_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about classification."""
    group = parser.add_argument_group(
        "classification",
        f"examples and their classes, with --task {TASK} or, without trees, {SENTENCE_TASK}: --trainpref and its like name PREFIX.tsv or PREFIX.trees",
    )
    group.add_argument(
        "--input-format",
        choices=(*INPUT_FORMATS, *SENTENCE_FORMATS),
        help="tsv: a text, a tab and its class a line, the text is parsed; trees: a bracketed tree a line, all of whose labels are classes, or "
        f"{UNLABELLED} for none (default: tsv). With --task {SENTENCE_TASK} sentence: a text, a tab and its class a line; pair: a text, a tab, a "
        "text, a tab and the class of both (default: sentence)",
    )
    group.add_argument(
        "--regression",
        action="store_const",
        const=True,
        help=f"with --task {SENTENCE_TASK}: a number stands in the place of the class",
    )
    group.add_argument(
        "--node-symbols",
        choices=SYMBOL_SOURCES,
        help=f"what a model reads at the nodes, which is never their class. constant: {NODE_SYMBOL} everywhere; parser: labels that "
        "--tree-parser gives to the same words (default: parser for tsv, constant for trees)",
    )
    group.add_argument(
        "--classes",
        metavar="NAMES",
        help="the classes, separated by commas; any other is an error (default: all that occur in train)",
    )


def is_classification(args: Namespace) -> bool:
    """Whether examples are to be classified; a caller from Python may have made its arguments without our parser.

    Raises:
        InputError: they are not, and there is an argument that says how.
    """
    if getattr(args, "task", None) in (TASK, SENTENCE_TASK):
        return True
    if given := [name for name in _OWN if getattr(args, name, None) is not None]:
        raise InputError(f"--{given[0].replace('_', '-')} goes with --task {TASK} only")
    return False


def settled_arguments(args: Namespace) -> Namespace:
    """The arguments with every choice made.

    Raises:
        InputError: they do not go together.
    """
    settled = Namespace(
        **{**vars(args), "source_lang": args.source_lang or TEXT, "target_lang": args.target_lang or CLASS}
    )
    settled.regression = bool(args.regression)
    if args.task == SENTENCE_TASK:
        settled.input_format, settled.node_symbols = args.input_format or "sentence", args.node_symbols or "none"
        _check_sentences(settled)
        return settled
    settled.input_format = args.input_format or "tsv"
    settled.node_symbols = args.node_symbols or ("parser" if settled.input_format == "tsv" else "constant")
    # The names of the files do not tell it, and the word "text" would.
    settled.tree_lang = args.tree_lang or "en"
    _check(settled)
    return settled


def given_classes(args: Namespace) -> list[str] | None:
    """What ``--classes`` says.

    Raises:
        ClassError: a name cannot be that of a class.
    """
    if args.classes is None:
        return None
    names = [name.strip() for name in args.classes.split(",")]
    for name in names:
        if not name or name == UNLABELLED or len(name.split()) > 1:
            raise ClassError(f"--classes {args.classes}: {name!r} cannot be the name of a class")
        check_class(name)
    if len(set(names)) < len(names):
        raise ClassError(f"--classes {args.classes} names a class twice")
    return names


def _check_sentences(args: Namespace) -> None:
    if args.input_format not in SENTENCE_FORMATS:
        raise InputError(
            f"--input-format {args.input_format} has trees",
            hint=f"With --task {SENTENCE_TASK} give {' or '.join(SENTENCE_FORMATS)}.",
        )
    refused = {
        "--tree-parser": args.tree_parser is not None,
        "--node-symbols": args.node_symbols != "none",
        "--only-source": args.only_source,
        "--classes with --regression": args.classes is not None and args.regression,
    }
    if given := [name for name, is_given in refused.items() if is_given]:
        hint = f"Trees are read with --task {TASK}." if given[0] in ("--tree-parser", "--node-symbols") else ""
        raise InputError(f"{given[0]} does not go with --task {SENTENCE_TASK}", hint=hint)
    _check_stock(args)


def _check(args: Namespace) -> None:
    if args.input_format in SENTENCE_FORMATS or args.regression:
        raise InputError(f"--input-format {args.input_format}, or --regression, is for --task {SENTENCE_TASK}")
    _check_stock(args)
    has_parser = args.tree_parser is not None and (args.input_format == "tsv" or args.tree_parser != "brackets")
    if args.input_format == "tsv" and args.node_symbols == "constant":
        raise InputError(
            "--node-symbols constant is for --input-format trees: the labels of a parse tell nothing of the class"
        )
    if args.node_symbols == "parser" and not has_parser:
        what = (
            "--input-format tsv needs the trees of a parser"
            if args.input_format == "tsv"
            else "--node-symbols parser needs a parser"
        )
        raise InputError(what, hint="Give --tree-parser: stanza, or right-branching where trees are not wanted.")


def _check_stock(args: Namespace) -> None:
    """What no folder of classes can have."""
    if (args.source_lang, args.target_lang) != (TEXT, CLASS):
        raise InputError(
            f"a folder for classification has the sides {TEXT} and {CLASS}, not {args.source_lang} and {args.target_lang}",
            hint="Leave out -s and -t.",
        )
    if "target" in args.tree_sides:
        raise InputError("--tree-sides target: classes have no trees")
    for side in ("source", "target"):
        if (kind := modality(args, side)) != "sequence":
            raise InputError(f"--{side}-modality {kind} does not go with --task {args.task}")
    refused = {
        "--joined-dictionary": args.joined_dictionary,
        "--align-suffix": args.align_suffix,
        "--alignfile": args.alignfile,
        "--thresholdtgt": args.thresholdtgt > 0,
        "--nwordstgt": args.nwordstgt > 0,
        "--classes with --tgtdict": args.classes is not None and args.tgtdict,
    }
    if given := [name for name, is_given in refused.items() if is_given]:
        raise InputError(f"{given[0]} does not go with --task {args.task}")
