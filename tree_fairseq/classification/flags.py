"""The flags of ``fairseq-preprocess --task tree_classification`` and ``--task tree_sentence_classification``."""

from __future__ import annotations

from argparse import Namespace

from tree_fairseq.classification.examples import NODE_SYMBOL
from tree_fairseq.classification.folder import (
    CLASS,
    INPUT_FORMATS,
    SENTENCE_FORMATS,
    SENTENCE_TASK,
    SYMBOL_SOURCES,
    TASK,
    TEXT,
)
from tree_fairseq.classification.targets import UNLABELLED, check_class, class_order
from tree_fairseq.errors import ClassError, InputError
from tree_fairseq.preprocessing.hook import Flags
from tree_fairseq.support.options import given_flags, refuse_flags

FLAGS: Flags = {
    "--input-format": {
        "choices": (*INPUT_FORMATS, *SENTENCE_FORMATS),
        "help": "tsv: each line is a text, a tab and its class, and the text is parsed; trees: each line is a "
        f"bracketed tree whose labels are classes, or {UNLABELLED} for no class (default: tsv). With --task "
        f"{SENTENCE_TASK} sentence: each line is a text, a tab and its class; pair: each line is a text, a tab, a "
        "text, a tab and the class of both (default: sentence)",
    },
    "--regression": {
        "action": "store_const",
        "const": True,
        "help": f"with --task {SENTENCE_TASK}: each line has a number instead of the class",
    },
    "--node-symbols": {
        "choices": SYMBOL_SOURCES,
        "help": f"what a model reads at the nodes, never their class. constant: {NODE_SYMBOL} everywhere; parser: the "
        "labels that --tree-parser gives to the same words (default: parser for tsv, constant for trees)",
    },
    "--classes": {
        "metavar": "NAMES",
        "help": "the classes, separated by commas; any other is an error (default: all that occur in train)",
    },
}
# Other arguments of fairseq-preprocess that a folder of classes cannot have.
_REFUSED = "source_modality target_modality joined_dictionary align_suffix alignfile thresholdtgt nwordstgt".split()


def settled_arguments(args: Namespace) -> Namespace:
    """Returns the arguments with every default filled in, or raises InputError if they do not go together."""
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
        found = f"{settled.source_lang} and {settled.target_lang}"
        problem = f"a folder for classification has the sides {TEXT} and {CLASS}, not {found}"
        raise InputError(problem, hint="Leave out -s and -t.")
    if "target" in args.tree_sides:
        raise InputError("--tree-sides target: classes have no trees")
    refused = given_flags(args, *_REFUSED)
    refused["--classes with --tgtdict"] = args.classes is not None and args.tgtdict
    refuse_flags(refused, f"--task {args.task}")
    return settled


def given_classes(args: Namespace) -> list[str] | None:
    """Returns the names in ``--classes`` in order, or raises ClassError if a class cannot have one of them."""
    if args.classes is None:
        return None
    names = [name.strip() for name in args.classes.split(",")]
    for name in names:
        if not name or name == UNLABELLED or len(name.split()) > 1:
            raise ClassError(f"--classes {args.classes}: {name!r} cannot be the name of a class")
        check_class(name)
    if len(set(names)) < len(names):
        raise ClassError(f"--classes {args.classes} names a class twice")
    return sorted(names, key=class_order)


def _check_sentence_flags(args: Namespace) -> None:
    if args.input_format not in SENTENCE_FORMATS:
        hint = f"With --task {SENTENCE_TASK} give {' or '.join(SENTENCE_FORMATS)}."
        raise InputError(f"--input-format {args.input_format} has trees", hint=hint)
    for_trees = {**given_flags(args, "tree_parser"), "--node-symbols": args.node_symbols != "none"}
    refuse_flags(for_trees, f"--task {args.task}", advice=f"trees are read with --task {TASK}")
    refused = given_flags(args, "only_source")
    refused["--classes with --regression"] = args.classes is not None and args.regression
    refuse_flags(refused, f"--task {args.task}")


def _check_tree_flags(args: Namespace) -> None:
    if args.input_format in SENTENCE_FORMATS or args.regression:
        raise InputError(f"--input-format {args.input_format}, or --regression, is for --task {SENTENCE_TASK}")
    is_text = args.input_format == "tsv"
    if is_text and args.node_symbols == "constant":
        raise InputError(
            "--node-symbols constant is for --input-format trees: the labels of a parse do not reveal the class"
        )
    if args.tree_noise and not is_text:
        raise InputError("--tree-noise moves nodes, and those of --input-format trees have classes; leave it out")
    has_parser = args.tree_parser is not None and (is_text or args.tree_parser != "brackets")
    if args.node_symbols == "parser" and not has_parser:
        need = "--input-format tsv needs the trees of a parser" if is_text else "--node-symbols parser needs a parser"
        raise InputError(need, hint="Give --tree-parser: stanza, or right-branching if you do not need trees.")
