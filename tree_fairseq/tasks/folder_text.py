"""New text is tokenised and split as the text of the folder was, and output is joined again, without flags.

``fairseq-interactive``, ``fairseq-generate``, the hub and ``induce`` ask their task for a tokeniser and for a model of
subwords. Any task over a folder whose ``tree.json`` has a :class:`TextRecord` answers with those of the folder, also a
task of fairseq's own. fairseq's flags ``--tokenizer`` and ``--bpe`` replace them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from fairseq import utils
from fairseq.tasks import FairseqTask

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.text_record import SideText, load_text_record, require_encoder_library
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.line_parser import unescape_entities
from tree_fairseq.parsing.pieces import SubwordModel, join_line, load_subword_model
from tree_fairseq.support.options import flag_of

logger = logging.getLogger(__name__)


class FolderTokenizer:
    """Tokenises a source and detokenises an output as the folder says, with the methods of fairseq's tokenisers."""

    def __init__(self, source: SideText, target: SideText):
        self._source, self._target = source.build_tokenizer(), target.build_tokenizer()

    def encode(self, line: str) -> str:
        """Returns the tokens of raw text, in which Moses' entities stand for their characters."""
        return line if self._source is None else self._source.encode(unescape_entities(line))

    def decode(self, line: str) -> str:
        """Returns tokens as text."""
        return line if self._target is None else self._target.decode(line)


class FolderSubwords:
    """Splits the words of a source into pieces and joins those of an output, with the methods of fairseq's models."""

    def __init__(self, model: Optional[SubwordModel], target: SideText):
        self._model, self._joined = model, target.kind or "none"

    def encode(self, line: str) -> str:
        """Returns the pieces of a line of words."""
        return line if self._model is None else self._model.split_line(line)

    def decode(self, line: str) -> str:
        """Returns the words of a line of pieces."""
        return join_line(line, self._joined)


@dataclass(frozen=True)
class FolderText:
    """The text of a folder, as :class:`TextRecord` describes it, for a direction of translation."""

    folder: Path
    source: SideText
    target: SideText

    def tokenizer(self) -> Optional[FolderTokenizer]:
        """Returns the tokeniser of the folder, or None."""
        has_tokenizer = self.source.tokenizer is not None or self.target.tokenizer is not None
        return FolderTokenizer(self.source, self.target) if has_tokenizer else None

    def subwords(self) -> Optional[FolderSubwords]:
        """Returns the model of subwords of the folder, or None."""
        if self.source.kind is None and self.target.kind is None:
            return None
        model = None if self.source.model is None else load_subword_model(str(self.folder / self.source.model))
        return FolderSubwords(model, self.target)


def folder_text(task: FairseqTask) -> Optional[FolderText]:
    """Returns the text of a task's first folder, or None if the folder does not describe it.

    Raises DataFolderError if a subword model is missing or was replaced.
    """
    options = getattr(task, "cfg", None) or getattr(task, "args", None)
    data = getattr(options, "data", None)
    if not isinstance(data, str) or not data:
        return None
    folder = Path(utils.split_paths(data)[0])
    record = load_text_record(folder)
    if record is None:
        return None
    manifest = Manifest.load(folder)
    source = getattr(options, "source_lang", None) or manifest.source_lang
    target = getattr(options, "target_lang", None) or manifest.target_lang
    return FolderText(folder, record.sides.get(source, SideText()), record.sides.get(target, SideText()))


def with_folder_tokenizer(build_tokenizer: Callable) -> Callable:
    """Wraps ``FairseqTask.build_tokenizer``: without ``--tokenizer`` it builds that of the folder."""
    return _with_folder(build_tokenizer, "tokenizer", FolderText.tokenizer)


def with_folder_subwords(build_bpe: Callable) -> Callable:
    """Wraps ``FairseqTask.build_bpe``: without ``--bpe`` it builds the model of subwords of the folder."""
    return _with_folder(build_bpe, "bpe", FolderText.subwords)


# Options that name the file of a model of subwords, by the value of --bpe.
_FILES = {"subword_nmt": "bpe_codes", "sentencepiece": "sentencepiece_model"}


def _with_folder(stock: Callable, option: str, own: Callable[[FolderText], Any]) -> Callable:
    def build(self: FairseqTask, args: Any) -> Any:
        name = getattr(args, "_name", None) or getattr(args, option, None)
        require_encoder_library(option, name)
        text = folder_text(self)
        found = None if text is None else own(text)
        file = _FILES.get(name)
        if file is not None and not (file in args and getattr(args, file)):
            if found is None:
                raise InputError(
                    f"--{option} {name} does not say which model splits the text; give {flag_of(file)} FILE"
                )
            return found
        try:
            given = stock(self, args)
        except (OSError, RuntimeError, ValueError) as error:  # of the library that reads the model
            raise InputError(f"the model of --{option} {name} cannot be read: {error}") from error
        if given is not None and found is not None:
            logger.info("--%s %s replaces what %s/tree.json says of its text", option, name, text.folder)
        return found if given is None else given

    return build
