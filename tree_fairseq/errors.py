"""The exceptions of this package, one class for each kind of fault.

Every message is written for the person who gave the input. It names the place (file, line and column, counted from one)
and says how to mend it. All other modules may import this one; it imports none of them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence

SHOWN = 10  # the most faulty lines that a message names


class TreeFairseqError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(TreeFairseqError, ValueError):
    """The input does not have the expected form or contents.

    ``str()`` returns ``path:line:column: message. hint`` without the parts that are not known. The message has no full
    stop, the hint is a full sentence, and lines and columns count from 1.
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
        self.message, self.hint = message, hint
        self.path, self.line, self.column = None if path is None else os.fspath(path), line, column

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
        """Returns the same error with a place; an argument that is None leaves the known value."""
        path = self.path if path is None else path
        line = self.line if line is None else line
        return type(self)(self.message, path, line, self.column, self.hint)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the known names that resemble a name, as a question; an empty text if there are none."""
    near = difflib.get_close_matches(name, list(known), 3)
    return f"Did you mean {' or '.join(near)}?" if near else ""


def missing(path: str | os.PathLike, kind: str = "file") -> InputError:
    """Returns the error about a file or a folder that does not exist; it names those beside it with a similar name.

    A folder where a file should be has its own error.
    """
    if os.path.isdir(path):
        return InputError(f"this is a folder, not a {kind}", path)
    absolute = os.path.abspath(path)
    while not os.path.isdir(folder := os.path.dirname(absolute)):
        absolute = folder
    named = os.listdir(folder) if os.access(folder, os.R_OK) else []
    return InputError(f"there is no such {kind}", path, hint=did_you_mean(os.path.basename(absolute), named))


def first_of(faults: Sequence[object], count: int) -> str:
    """Returns the first faults, one a line, and how many more of all ``count`` lines have one."""
    more = [f"... and {count - SHOWN} more lines"] if count > SHOWN else []
    return "\n".join([*map(str, faults[:SHOWN]), *more])


class FaultyLinesError(InputError):
    """Several lines cannot be read. The message names the first ten and says how many there are."""

    errors: tuple[InputError, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[InputError], count: int) -> InputError:
        """Returns the error of the only faulty line, or of ``count`` lines, of which ``errors`` are the first."""
        if count == 1:
            return errors[0]
        error = cls(f"{count} lines cannot be read:\n{first_of(errors, count)}")
        error.errors = tuple(errors)
        return error

    def __reduce__(self):
        return *super().__reduce__(), {"errors": self.errors}

    def at(self, path: str | os.PathLike | None = None, line: int | None = None) -> InputError:
        """Returns itself: every line has its own place."""
        return self


class TreeFormatError(InputError):
    """A bracketed tree, or the arrays that represent one, is malformed."""


class UnclosedTreeError(TreeFormatError):
    """The line ends before every ``(`` was closed."""


class ExtraCloseError(TreeFormatError):
    """A ``)`` has no matching ``(``."""


class EmptyTreeError(TreeFormatError):
    """A constituent without a word: ``()`` or ``(NN )``."""


class UnlabelledTreeError(TreeFormatError):
    """A constituent without a label: ``((NN dog))``."""


class MixedChildrenError(TreeFormatError):
    """A word beside a constituent, or several words under one preterminal."""


class UnsupportedCharacterError(TreeFormatError):
    """A character that words and labels must not contain, such as a no-break space."""


class DepthLimitError(TreeFormatError):
    """A tree deeper than the limit that the caller set."""


class DiscontinuousTreeError(TreeFormatError):
    """A tree whose leaves carry their position (``2=word``), as discontinuous treebanks write them."""


class OutsideTreeError(TreeFormatError):
    """Text outside of all trees."""


class SymbolTreeError(InputError):
    """A symbol tree, or the sequence of symbols that represents one, is malformed."""


class NotationError(SymbolTreeError):
    """A line does not follow the expected notation."""


class MultipleRootsError(SymbolTreeError):
    """A line holds several trees where one is expected."""


class EmptySymbolTreeError(SymbolTreeError):
    """A line holds no tree."""


class ReservedMarkError(SymbolTreeError):
    """A label is a word that has a meaning in insertion decoding."""


class ArityMismatchError(SymbolTreeError):
    """Arities do not form a tree, or a symbol has more children than the dictionary or the model knows."""


class PieceAlignmentError(InputError):
    """The subword pieces do not match the words of a tree."""


class TextFormatError(InputError):
    """A text file does not have one sentence on each line."""


class LineBreakError(TextFormatError):
    """A character inside a line that some programs read as the end of the line."""


class LineCountError(TextFormatError):
    """Files that should be parallel have different numbers of lines."""


class LabelColumnError(TextFormatError):
    """A line does not consist of a text, a tab and a class."""


class EmptyDocumentError(TextFormatError):
    """An example to be classified contains no words."""


class LongSentenceError(TextFormatError):
    """A sentence of a document is longer than the longest input of the model, so the document cannot be shortened."""


class ClassError(InputError):
    """A class is malformed or cannot be used here."""


class UnknownClassError(ClassError):
    """A class does not belong to the classes that are learned."""


class UnlabelledExampleError(ClassError):
    """The class of an example is marked as unknown."""


class ParserError(TreeFairseqError):
    """A constituency parser cannot fulfil a request."""


class ParserUnavailableError(ParserError):
    """A parser or its model is neither installed nor available for download."""


class LanguageWithoutParserError(ParserError):
    """The parser has no constituency model for this language."""


class LeafMismatchError(ParserError):
    """The leaves of a parse are not the words that were parsed."""


class TooManyParseFailuresError(ParserError):
    """More sentences could not be parsed than the user allowed."""


class DataFolderError(TreeFairseqError):
    """A preprocessed folder is incomplete, damaged or inconsistent."""


class MissingTreesError(DataFolderError):
    """A folder contains token files without the files of their trees."""


class CorruptFileError(DataFolderError):
    """The contents of a file have changed since it was written."""


class DictionaryMismatchError(DataFolderError):
    """A dictionary differs from the one that the files were written with."""


class UntrustedFolderError(DataFolderError):
    """A folder names what only a user may name: code, a model or a server; the message has the flag."""


class DestinationExistsError(DataFolderError, FileExistsError):
    """The destination already contains a finished result."""


class DiskFullError(DataFolderError, OSError):
    """The disk has no room left for a file."""

    path: os.PathLike | None = None  # the file; if it is known, the message says nothing of what the command needs


class CheckpointError(TreeFairseqError):
    """Checkpoints are missing, unreadable or do not belong together."""


class StructuralSearchError(TreeFairseqError, ValueError):
    """The structural search cannot run with the given options or inputs."""


class ScoringError(TreeFairseqError, ValueError):
    """Hypotheses and references do not match, or an output file is incomplete."""


class MissingLibraryError(TreeFairseqError, ImportError):
    """An optional library is not installed; the message names the extra that installs it."""


class VersionError(TreeFairseqError, ImportError):
    """An installed library is too old."""


class WorkerDiedError(TreeFairseqError):
    """A worker process was killed."""


class NonFiniteError(TreeFairseqError, FloatingPointError):
    """A loss, or gradients, are NaN or infinite, and training stops."""
