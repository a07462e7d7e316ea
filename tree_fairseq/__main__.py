"""The commands of the package: ``tree-fairseq NAME ...``, or ``python -m tree_fairseq NAME ...`` in a checkout."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from tree_fairseq.support.options import run_command

COMMANDS = {
    "path": ("__main__:print_path", "the path to give to fairseq's --user-dir"),
    "parse": ("commands.parse:main", "trees of a text, a file or a corpus, by any parser"),
    "annotate": ("commands.annotate:main", "adds trees to a folder that stock fairseq has preprocessed"),
    "check": ("commands.check:main", "names every damaged, missing or foreign file of a folder"),
    "export": ("commands.export:main", "the trees of a folder as text"),
    "options": ("commands.model_options:main", "the flags that a model adds to those of fairseq's transformer"),
    "pieces": ("commands.word_pieces:main", "text as the word pieces of a pretrained encoder, and their dictionary"),
    "average": ("commands.average:main", "the mean of checkpoints"),
    "release": ("commands.release:main", "packs a trained model into a folder for others"),
    "translate": ("commands.translate:main", "translates or classifies text with a trained model"),
    "induce": ("commands.induce:main", "trees that a Treeformer induces, and their F1"),
    "repairs": ("repairs.table:main", "the functions of fairseq and torch that the package replaces, and why"),
    "explore": ("commands.explore:main", "a page that shows what models do with sentences"),
    "score": ("scoring.__main__:main", "BLEU, chrF, TER, ROUGE, trees, brackets and classes, with paired tests"),
}
_FAIRSEQ = "pip install cython setuptools wheel numpy, then pip install --no-build-isolation fairseq-fixed"


def print_path(arguments: list[str] | None = None) -> int:
    """Prints the package's folder, absolute and with symbolic links resolved, on one line."""
    ArgumentParser(prog="tree-fairseq path", description=print_path.__doc__).parse_args(arguments)
    print(Path(__file__).resolve().parent)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the first argument names; returns its exit status, 2 for an unknown name.

    The path alone is printed without arguments, so that ``--user-dir $(python -m tree_fairseq)`` works everywhere.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return run_command("tree-fairseq", COMMANDS, given or ["path"])
    except (ModuleNotFoundError, ValueError) as error:
        if (reason := unusable_environment(error)) is None:
            raise
        sys.stderr.write(f"{reason}\n")
        return 1


def unusable_environment(error: Exception) -> str | None:
    """Says what to install if an error shows that torch or fairseq is missing, or is not made for this Python."""
    if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "fairseq"):
        return (
            f"tree-fairseq needs {error.name}, which is not installed: pip install torch torchaudio (for CPUs, add "
            f"--index-url https://download.pytorch.org/whl/cpu), then {_FAIRSEQ}."
        )
    if "mutable default" in str(error):
        wrong = "The fairseq that is installed is not made for Python 3.11 and later"
        return f"{wrong}: pip uninstall -y fairseq, then {_FAIRSEQ}."
    return None


if __name__ == "__main__":
    sys.exit(main())
