"""The flags of ``fairseq-preprocess --task tree_classification`` and ``--task tree_sentence_classification``."""

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
from tree_fairseq.errors import ClassError, InputError
from tree_fairseq.preprocessing.tree_arguments import refuse_flags

OWN_FLAGS = ("input_format", "node_symbols", "classes", "regression")
"""Arguments that only these tasks have."""
# Flags of fairseq-preprocess that a folder of classes cannot have.
_REFUSED = (
    "--source-modality",
    "--target-modality",
    "--joined-dictionary",
    "--align-suffix",
    "--alignfile",
    "--thresholdtgt",
    "--nwordstgt",
)


def add_classification_arguments(parser: ArgumentParser) -> None:
    """Adds the group of flags of classification."""
    group = parser.add_argument_group(
        "classification",
        f"examples and their classes, with --task {TASK} or, without trees, {SENTENCE_TASK}: --trainpref and the like "
        "name PREFIX.tsv or PREFIX.trees",
    )
    group.add_argument(
        "--input-format",
        choices=(*INPUT_FORMATS, *SENTENCE_FORMATS),
        help="tsv: each line is a text, a tab and its class, and the text is parsed; trees: each line is a bracketed "
        f"tree whose labels are classes, or {UNLABELLED} for no class (default: tsv). With --task {SENTENCE_TASK} "
        "sentence: each line is a text, a tab and its class; pair: each line is a text, a tab, a text, a tab and the "
        "class of both (default: sentence)",
    )
    group.add_argument(
        "--regression",
        action="store_const",
        const=True,
        help=f"with --task {SENTENCE_TASK}: each line has a number instead of the class",
    )
    group.add_argument(
        "--node-symbols",
        choices=SYMBOL_SOURCES,
        help=f"what a model reads at the nodes, never their class. constant: {NODE_SYMBOL} everywhere; parser: the "
        "labels that --tree-parser gives to the same words (default: parser for tsv, constant for trees)",
    )
    group.add_argument(
        "--classes",
        metavar="NAMES",
        help="the classes, separated by commas; any other is an error (default: all that occur in train)",
    )


def settled_arguments(args: Namespace) -> Namespace:
    """Returns the arguments with every default filled in.

    Raises:
        InputError: they do not go together.
    """
    has_trees = args.task == TASK
    input_format = args.input_format or ("tsv" if has_trees else "sentence")
    node_symbols = {"tsv": "parser", "trees": "constant"}.get(input_format, "none")
    changes = {
        "source_lang": args.source_lang or TEXT,
        "target_lang": args.target_lang or CLASS,
        "regression": bool(args.regression),
        "input_format": input_format,
        "node_symbols": args.node_symbols or node_symbols,
        # "text" is the name of a side, not of a language.
        "tree_lang": args.tree_lang or "en" if has_trees else args.tree_lang,
    }
    settled = Namespace(**{**vars(args), **changes})
    if has_trees:
        _check_tree_flags(settled)
    else:
        _check_sentence_flags(settled)
    if (settled.source_lang, settled.target_lang) != (TEXT, CLASS):
        raise InputError(
            f"a folder for classification has the sides {TEXT} and {CLASS}, not {settled.source_lang} and "
            f"{settled.target_lang}",
            hint="Leave out -s and -t.",
        )
    if "target" in args.tree_sides:
        raise InputError("--tree-sides target: classes have no trees")
    refuse_flags(args, _REFUSED)
    if args.classes is not None and args.tgtdict:
        raise InputError(f"--classes with --tgtdict does not go with --task {args.task}")
    return settled


def given_classes(args: Namespace) -> list[str] | None:
    """Returns the names in ``--classes``.

    Raises:
        ClassError: a class cannot have one of these names.
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


def _check_sentence_flags(args: Namespace) -> None:
    if args.input_format not in SENTENCE_FORMATS:
        raise InputError(
            f"--input-format {args.input_format} has trees",
            hint=f"With --task {SENTENCE_TASK} give {' or '.join(SENTENCE_FORMATS)}.",
        )
    hint = f"Trees are read with --task {TASK}."
    refuse_flags(args, ["--tree-parser"], hint)
    if args.node_symbols != "none":
        raise InputError(f"--node-symbols does not go with --task {args.task}", hint=hint)
    refuse_flags(args, ["--only-source"])
    if args.classes is not None and args.regression:
        raise InputError(f"--classes with --regression does not go with --task {args.task}")


def _check_tree_flags(args: Namespace) -> None:
    if args.input_format in SENTENCE_FORMATS or args.regression:
        raise InputError(f"--input-format {args.input_format}, or --regression, is for --task {SENTENCE_TASK}")
    is_text = args.input_format == "tsv"
    if is_text and args.node_symbols == "constant":
        raise InputError(
            "--node-symbols constant is for --input-format trees: the labels of a parse do not reveal the class"
        )
    has_parser = args.tree_parser is not None and (is_text or args.tree_parser != "brackets")
    if args.node_symbols == "parser" and not has_parser:
        need = "--input-format tsv needs the trees of a parser" if is_text else "--node-symbols parser needs a parser"
        raise InputError(need, hint="Give --tree-parser: stanza, or right-branching if you do not need trees.")
