"""The symbols of trees: dictionaries with an unknown symbol for every arity."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.errors import DictionaryMismatchError, SymbolTreeError
from tree_fairseq.source_code.productions import is_piece
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import NULL, UNKNOWN_LABEL, SymbolEncoding, unknown_symbol
from tree_fairseq.trees.tree import Tree

_SUBWORD_MARKS = re.compile("^\u2581|@@$")  # those of SentencePiece and of subword-nmt


@dataclass(frozen=True)
class SymbolTable:
    """Arities and branches by symbol id; V is the number of symbols."""

    arity: Tensor  # ``[V]`` int64, number of children; -1 for EOS, padding and ``<unk>``
    first_branch: Tensor  # ``[V]`` int64, branch of the first child
    null: int | None  # id of ``<null>``; None without binarisation
    degree: int  # number of branches n of a node: 2 in binary form, the largest arity otherwise
    encoding: SymbolEncoding  # how trees became sequences

    @classmethod
    def from_symbols(cls, symbols: Sequence[str], encoding: SymbolEncoding) -> SymbolTable:
        """Returns the table of a dictionary's symbols, in the order of their ids."""
        arities = [encoding.parts(symbol)[1] for symbol in symbols]
        is_binary = encoding.binarization == "lcrs"
        null = list(symbols).index(NULL) if is_binary and NULL in symbols else None
        degree = 2 if is_binary else max(1, *arities)
        firsts = [encoding.first_branch(arity) for arity in arities]
        return cls(torch.tensor(arities), torch.tensor(firsts), null, degree, encoding)

    def to(self, device: torch.device) -> SymbolTable:
        """Returns the table on another device."""
        return SymbolTable(self.arity.to(device), self.first_branch.to(device), self.null, self.degree, self.encoding)


class TreeDictionary(Dictionary):
    """A dictionary whose sequences of ids are trees, written in ``notation``; its symbols are those fairseq loaded."""

    def __init__(self, dictionary: Dictionary, notation: Notation):
        self.__dict__.update(copy.deepcopy(dictionary.__dict__))
        self.notation = notation

    def tree(self, ids: Iterable[int]) -> Tree:
        """Returns the tree of a sequence of ids, special symbols aside; raises SymbolTreeError if it is not a tree."""
        raise NotImplementedError

    def string(self, tensor, *unread, extra_symbols_to_ignore=None, **others) -> str:
        """Returns trees in the notation of the corpus, and other sequences, such as a truncated output, as symbols."""
        if torch.is_tensor(tensor) and tensor.dim() == 2:
            return "\n".join(self.string(row, extra_symbols_to_ignore=extra_symbols_to_ignore) for row in tensor)
        ignored = set(extra_symbols_to_ignore or ())
        ids = [index for index in map(int, tensor) if index not in ignored]
        try:
            return self.notation.write(self.tree(ids))
        except SymbolTreeError:
            return " ".join(self[index] for index in self.kept(ids))

    def text(self, index: int) -> str | None:
        """Returns the text of a leaf or of a piece of a leaf, by its id; None for other symbols."""
        raise NotImplementedError

    def kept(self, ids: Iterable[int]) -> list[int]:
        """Returns the ids of a sequence that are part of a tree: not START, EOS and padding."""
        outside = (self.bos_index, self.pad_index, self.eos_index)
        return [index for index in map(int, ids) if index not in outside]


class SymbolDictionary(TreeDictionary):
    """A dictionary whose symbols carry their arity.

    Its file is an ordinary dictionary of fairseq, so stock architectures read the same folder.
    """

    def __init__(self, dictionary: Dictionary, encoding: SymbolEncoding, notation: Notation):
        super().__init__(dictionary, notation)
        self.encoding = encoding

    def table(self) -> SymbolTable:
        """Returns arities and branches by id."""
        return SymbolTable.from_symbols(self.symbols, self.encoding)

    def index(self, sym: str) -> int:
        """Returns the id of a symbol, or that of the unknown symbol with its arity."""
        if sym in self.indices:
            return self.indices[sym]
        return self.indices.get(unknown_symbol(self.encoding.parts(sym)[1]), self.unk_index)

    def unknown_ids(self) -> list[int]:
        """Returns the ids of ``<unk>`` and of the unknown symbols of all arities."""
        return [self.unk_index, *(self.indices[name] for name in _unknown_symbols(self))]

    def tree(self, ids: Iterable[int]) -> Tree:
        return self.encoding.decode([self[index] for index in self.kept(ids)])

    def text(self, index: int) -> str | None:
        label, arity = self.encoding.parts(self[index])
        # The one branch of a binary tree leads to the next sibling.
        is_leaf = arity == 0 or (self.encoding.binarization == "lcrs" and arity == 1)
        return self.notation.leaf_text(label) if is_leaf and label not in (NULL, UNKNOWN_LABEL) else None

    def pieces(self, index: int) -> int:
        """Returns the number of pieces of a spelled leaf, by its id; 0 for other symbols."""
        label, arity = self.encoding.parts(self[index])
        return arity if arity > 0 and self.notation.leaf_text(label) == "" else 0

    def is_piece(self, index: int) -> bool:
        """Returns whether an id is a piece of a spelled leaf."""
        label, _ = self.encoding.parts(self[index])
        return is_piece(label) and self.notation.leaf_text(label) == label[1:]


def texts_of(dictionary: Dictionary) -> list[str | None]:
    """Returns what each symbol stands for in a text: words without marks of subwords, and texts of leaves of trees.

    Symbols that stand for no text have None.
    """
    if isinstance(dictionary, TreeDictionary):
        texts = [dictionary.text(index) for index in range(len(dictionary))]
    else:
        texts = [_SUBWORD_MARKS.sub("", word) for word in dictionary.symbols]
    return [None if index < dictionary.nspecial else text or None for index, text in enumerate(texts)]


def build_symbol_dictionary(
    counts: Mapping[str, int],
    encoding: SymbolEncoding,
    degree: int,
    *,
    threshold: int,
    nwords: int,
    padding_factor: int,
    all_arities: bool = False,
    spare: Iterable[str] = (),
) -> Dictionary:
    """Returns a dictionary of symbols, and of the words of a joined sequence side, given how often they occur.

    It has all special symbols that trees need, up to the arity ``degree``. With ``all_arities`` it has each of its
    labels with all arities, so that a model can write symbols that training does not show, and also the ``spare``
    symbols.
    """
    dictionary = Dictionary()
    for symbol, count in sorted(counts.items()):
        dictionary.add_symbol(symbol, count)
    dictionary.finalize(threshold=threshold, nwords=nwords, padding_factor=1)
    if all_arities:
        labels = {label for label, arity in map(encoding.parts, dictionary.symbols) if arity >= 0}
        for label in sorted(labels - {NULL, UNKNOWN_LABEL}):
            for arity in range(degree + 1):
                dictionary.add_symbol(encoding.join(label, arity), 0)
    for symbol in sorted(spare):
        dictionary.add_symbol(symbol, 0)
    if encoding.binarization == "lcrs":
        dictionary.add_symbol(NULL, 0)
    for arity in range(degree + 1):
        dictionary.add_symbol(unknown_symbol(arity), 0)
    dictionary.pad_to_multiple_(padding_factor)
    return dictionary


def require_symbols(dictionary: Dictionary, encoding: SymbolEncoding, place: str) -> int:
    """Returns the largest arity of the dictionary in the file ``place``.

    Raises DictionaryMismatchError if its symbols were encoded in another way.
    """
    unknown = _unknown_symbols(dictionary)
    if not unknown:
        raise DictionaryMismatchError(
            f"{place} is not a dictionary of tree symbols, it has no {unknown_symbol(0)}: make one with "
            "fairseq-preprocess --source-modality tree or --target-modality tree"
        )
    is_binary = NULL in dictionary
    if is_binary != (encoding.binarization == "lcrs"):
        made_with = "lcrs" if is_binary else "none"
        raise DictionaryMismatchError(
            f"{place} was made with --binarization {made_with}, this is {encoding.binarization}"
        )
    return len(unknown) - 1


def _unknown_symbols(dictionary: Dictionary) -> list[str]:
    """Returns the unknown symbols of arities 0, 1, ... that a dictionary has."""
    names: list[str] = []
    while unknown_symbol(len(names)) in dictionary:
        names.append(unknown_symbol(len(names)))
    return names
