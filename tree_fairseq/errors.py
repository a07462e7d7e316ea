"""What can go wrong, one exception class per kind of fault.

Every message is meant to be read by the person who gave the input: it names the place (file, line and column, counted
from one) and says how to mend it.  This module stands below all others and imports none of them.
"""

from __future__ import annotations

import os


class TreeFairseqError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(TreeFairseqError, ValueError):
    """Some input is not what it should be.

    Args:
        message: what is wrong, without a full stop.
        path: the file, if the input came from one.
        line: number of the line in that file, from 1.
        column: number of the character in that line, from 1.
        hint: how to mend it, a full sentence.

    ``str()`` gives ``path:line:column: message. hint``, less what is not known.
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
    ):
        super().__init__(message)
        self.message = message
        self.path = None if path is None else os.fspath(path)
        self.line = line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        if self.path is not None:
            place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        else:
            named = (("line", self.line), ("column", self.column))
            place = ", ".join(f"{name} {number}" for name, number in named if number is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self):
        # The default would rebuild from the message alone: an error raised in a worker process would lose its place.
        return type(self), (self.message, self.path, self.line, self.column, self.hint)

    def at(self, path: str | os.PathLike | None = None, line: int | None = None) -> InputError:
        """The same error with the place filled in; what is already known is kept where the argument is None."""
        path = self.path if path is None else path
        line = self.line if line is None else line
        return type(self)(self.message, path, line, self.column, self.hint)


class TreeFormatError(InputError):
    """A bracketed tree, or the arrays that stand for one, is malformed."""


class UnclosedTreeError(TreeFormatError):
    """The line ends before every ``(`` was closed."""


class ExtraCloseError(TreeFormatError):
    """A ``)`` closes nothing."""


class EmptyTreeError(TreeFormatError):
    """A constituent without a word: ``()`` or ``(NN )``."""


class UnlabelledTreeError(TreeFormatError):
    """A constituent without a label: ``((NN dog))``."""


class MixedChildrenError(TreeFormatError):
    """A word beside a constituent, or several words under one preterminal."""


class UnsupportedCharacterError(TreeFormatError):
    """A character that no word or label may hold, such as a no-break space."""


class DepthLimitError(TreeFormatError):
    """A tree deeper than the limit that the caller set."""


class DiscontinuousTreeError(TreeFormatError):
    """A tree whose leaves carry their position (``2=word``), as discontinuous treebanks write them."""


class OutsideTreeError(TreeFormatError):
    """Text that belongs to no tree."""


class SymbolTreeError(InputError):
    """A symbol tree, or the sequence of symbols that stands for one, is malformed."""


class NotationError(SymbolTreeError):
    """A line is not written in the notation that it should be in."""


class MultipleRootsError(SymbolTreeError):
    """A line holds several trees where one is expected."""


class EmptySymbolTreeError(SymbolTreeError):
    """A line holds no tree."""


class ReservedMarkError(SymbolTreeError):
    """A symbol contains the character that separates it from its arity."""


class ArityMismatchError(SymbolTreeError):
    """A symbol has more children than the dictionary or the model knows, or the arities of a sequence make no tree."""


class PieceAlignmentError(InputError):
    """Subword pieces that do not fit the words of a tree."""


class TextFormatError(InputError):
    """A text file cannot be read as one sentence a line."""


class LineBreakError(TextFormatError):
    """A character inside a line that some programs take for the end of the line."""


class LineCountError(TextFormatError):
    """Files that should be parallel have different numbers of lines."""


class LabelColumnError(TextFormatError):
    """A line is not a text, a tab and a class."""


class EmptyDocumentError(TextFormatError):
    """An example to be classified has no word."""


class LongSentenceError(TextFormatError):
    """A sentence is longer than a model may read, so that a document cannot be cut before it."""


class ClassError(InputError):
    """A class that is none, or that cannot be used here."""


class UnknownClassError(ClassError):
    """A class that is not among those to be learned."""


class UnlabelledExampleError(ClassError):
    """An example whose class is said to be unknown."""


class ParserError(TreeFairseqError):
    """A constituency parser cannot do what was asked of it."""


class ParserUnavailableError(ParserError):
    """A parser or its model is not installed and cannot be fetched."""


class LanguageWithoutParserError(ParserError):
    """The parser has no constituency model for this language."""


class LeafMismatchError(ParserError):
    """The leaves of a parse are not the words that were parsed."""


class TooManyParseFailuresError(ParserError):
    """More sentences could not be parsed than the user allowed."""


class DataFolderError(TreeFairseqError):
    """A preprocessed folder is incomplete, damaged or at odds with itself."""


class MissingTreesError(DataFolderError):
    """A folder has token files but no trees beside them."""


class CorruptFileError(DataFolderError):
    """A file is not what was once written."""


class DictionaryMismatchError(DataFolderError):
    """A dictionary is not the one that the files were made with."""


class DestinationExistsError(DataFolderError, FileExistsError):
    """The destination already holds a finished result."""


class DiskFullError(DataFolderError, OSError):
    """No room is left for a file that has to be written.

    Attributes:
        path: the file, where one file is known; the bytes that the whole work needs are then unknown.
    """

    path: os.PathLike | None = None


class CheckpointError(TreeFairseqError):
    """Checkpoints that are missing, unreadable or do not belong together."""


class StructuralSearchError(TreeFairseqError, ValueError):
    """The structural search cannot do what was asked of it."""


class ScoringError(TreeFairseqError, ValueError):
    """Hypotheses and references that do not fit each other, or an output file that is incomplete."""


class WorkerDiedError(TreeFairseqError):
    """A process that worked for this one was killed."""
