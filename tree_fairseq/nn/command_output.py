"""More lines in the output of fairseq's commands, after those that the commands print themselves."""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import post_process
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.trees.notations import notation_named


def print_after(commands: Collection[str], line_after: Callable[[str], str | None]) -> bool:
    """Has a command print more lines from now on, if it is what runs; again is harmless.

    The commands print a hypothesis by themselves and offer no hook there, so the name ``print`` in their module is a function
    that prints one more line. It goes where theirs goes, such as to the file of ``--results-path``.

    Args:
        commands: modules of the commands, such as ``fairseq_cli.interactive``
        line_after: given a line that was printed, the one that belongs after it, or None

    Returns:
        whether one of the commands is there
    """
    found = False
    for module in map(sys.modules.get, (*commands, "__main__")):
        if module is not None and {module.__name__, getattr(module.__spec__, "name", None)} & set(commands):
            module.print = _printing(line_after)
            found = True
    return found


def _printing(line_after: Callable[[str], str | None]) -> Callable[..., None]:
    def print_line(*values, **options) -> None:
        builtins.print(*values, **options)
        line = line_after(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
        if line is not None:
            builtins.print(line, **options)

    return print_line


# FROM generators/bracketed_output: ``B-`` lines of ``fairseq-interactive``: generated trees in brackets, after the ``H-`` lines in the corpus's notation.

_COMMAND = "fairseq_cli.interactive"


def bracketed_line(line: str, dictionary: SymbolDictionary | InsertionDictionary) -> str | None:
    """The ``B-`` line that belongs to an ``H-`` line; None for other lines, and for a hypothesis that is no tree."""
    fields = line.split("\t", 2)
    if not line.startswith("H-") or len(fields) != 3:
        return None
    try:
        tree = dictionary.notation.read(fields[2])
    except SymbolTreeError:
        return None
    return f"B-{fields[0][2:]}\t{notation_named('bracket').write(tree)}"


def print_brackets(dictionary: SymbolDictionary | InsertionDictionary) -> None:
    """Has the interactive command print brackets from now on, if that is what runs; again is harmless.

    Args:
        dictionary: of the target
    """
    print_after([_COMMAND], functools.partial(bracketed_line, dictionary=dictionary))


# FROM generators/unknown_words: ``--replace-unk``: unknown words of a translation become the source words that they are aligned with.
#
# fairseq 0.12 computes alignments only for ``--print-alignment``, as pairs, and looks them up as if they
# were positions, in text whose subwords are joined already: the flag ends in an IndexError. Without a
# value it stands for a file called ``@@``.

_NO_FILE = "@@ "  # what fairseq makes of --replace-unk without a value


def source_positions(alignment: Sequence) -> dict[int, int]:
    """Position of the source token of each aligned target token.

    Args:
        alignment: pairs (source, target) as ``--print-alignment hard`` has them, or weights of all
            source tokens for each target token as ``soft`` has them
    """
    if any(isinstance(weights, list) for weights in alignment):
        numbers = [[float(weight) for weight in weights] for weights in alignment]
        return {target: weights.index(max(weights)) for target, weights in enumerate(numbers)}
    return {int(target): int(source) for source, target in alignment}


def replace_unknown_words(
    words: list[str], source: list[str], alignment: Sequence, translations: Mapping[str, str], unknown: str
) -> list[str]:
    """Puts source words, or their translations, in the place of unknown words.

    Args:
        words: tokens of a hypothesis
        source: tokens of the source
        alignment: see :func:`source_positions`
        translations: target words of source words; others are copied
        unknown: the token to replace; it stays where it is aligned with nothing
    """
    positions = source_positions(alignment) if unknown in words else {}
    replaced = []
    for number, word in enumerate(words):
        position = positions.get(number, len(source)) if word == unknown else len(source)
        replaced.append(translations.get(source[position], source[position]) if position < len(source) else word)
    return replaced


def install() -> None:
    """Mends fairseq's post-processing; again is harmless."""
    stock = utils.post_process_prediction
    if getattr(stock, "replaces_unknown_words", False):
        return

    @functools.wraps(stock)
    def post_process_prediction(
        hypo_tokens: Tensor,
        src_str: str,
        alignment: Sequence,
        align_dict: Mapping[str, str] | None,
        tgt_dict: Dictionary,
        remove_bpe: str | None = None,
        extra_symbols_to_ignore=None,
    ):
        if align_dict is None:
            return stock(hypo_tokens, src_str, alignment, align_dict, tgt_dict, remove_bpe, extra_symbols_to_ignore)
        words = tgt_dict.string(hypo_tokens, extra_symbols_to_ignore=extra_symbols_to_ignore).split()
        words = replace_unknown_words(words, src_str.split(), alignment, align_dict, tgt_dict.unk_string())
        text = post_process(" ".join(words), remove_bpe)
        return tgt_dict.encode_line(text, add_if_not_exist=True), text, alignment

    load = utils.load_align_dict

    @functools.wraps(load)
    def load_align_dict(replace_unk: str | None) -> dict[str, str] | None:
        return load("" if replace_unk == _NO_FILE else replace_unk)

    post_process_prediction.replaces_unknown_words = True
    utils.post_process_prediction = post_process_prediction
    utils.load_align_dict = load_align_dict
