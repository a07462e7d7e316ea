"""Subword pieces are joined to words, or to raw text, before parsing, and replace them in the tree afterwards."""

from __future__ import annotations

import io
import itertools
import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tree_fairseq.errors import InputError, ParserUnavailableError
from tree_fairseq.parsing.batches import Failure, covers, decode_text
from tree_fairseq.parsing.parsers import ParserOptions, flat_tree, registered_parser
from tree_fairseq.support.files import atomic_file, file_sha256, require_plain_file
from tree_fairseq.trees.bracket import escape, write_forest
from tree_fairseq.trees.name_pieces import NamePieces
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX, align_pieces, join_bpe, join_sentencepiece, split_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Forest, forest_leaves

logger = logging.getLogger(__name__)

BPE_JOINER = "@@"
SENTENCEPIECE_MARK = "\u2581"
# Fewer lines of plain text have a word that ends in @@, and more lines of text in pieces have one.
_SPLIT_SHARE = 0.01
_ODD_SHARE = 0.1  # of the lines of a split text, at most, look like text that is not split
_LINES_READ = 20_000
# The commonest words of languages. They are a quarter of a text and more, and a few hundredths in other languages.
_COMMON = {
    "de": "der die und das in den von zu mit sich auf für ist im dem nicht ein eine als auch es an wir ich",
    "en": "the of and to in a is that for it was on with as his be at by not are this from you have",
    "es": "el la los las de y en que un una por con se del para es su al lo como no más",
    "fr": "le la les de des et en un une du que est pour qui dans par sur pas au il ce je",
    "it": "il la di e che un una in per è del della i le con non si da al nel sono ma",
    "nl": "de het een van en in is dat op te zijn met voor niet die aan er om ook als ik je maar door",
    "pt": "o a os as de e que do da em um uma para com não se no na por mais dos ao",
}
_FEWEST_WORDS = 100


@dataclass(frozen=True)
class SplitWords:
    """The words of a line and the pieces of each word; all pieces in order are the tokens of the line."""

    words: list[str]
    pieces: list[list[str]]


class SubwordModel(ABC):
    """Splits words, or text, into pieces."""

    @abstractmethod
    def split(self, words: list[str]) -> list[list[str]]:
        """Returns the pieces of each word, at least one for each."""

    def split_text(self, text: str) -> tuple[list[str], list[tuple[int, int]]] | None:
        """Returns the pieces of raw text and each one's half-open span of characters, if the model can split text."""
        return None

    def split_line(self, line: str) -> str:
        """Returns the pieces of a line of words, joined by blanks."""
        return " ".join(itertools.chain.from_iterable(self.split(line.split())))


class BpeModel(SubwordModel):
    """The codes of subword-nmt in the file ``path``."""

    def __init__(self, path: str):
        from subword_nmt.apply_bpe import BPE

        with open(path, encoding="utf-8", newline="\n") as codes:
            self._bpe = BPE(codes, separator=BPE_JOINER)

    def split(self, words: list[str]) -> list[list[str]]:
        return [_marked(self._bpe.segment_tokens([word])) for word in words]


class SentencePieceModel(SubwordModel):
    """The SentencePiece model in the file ``path``."""

    def __init__(self, path: str):
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor(model_file=path)

    def split(self, words: list[str]) -> list[list[str]]:
        # A word from which the model's normalisation leaves nothing would be missing in the tree.
        return [self._processor.encode(word, out_type=str) or [SENTENCEPIECE_MARK] for word in words]

    def split_line(self, line: str) -> str:
        return " ".join(self._processor.encode(line, out_type=str))

    def split_text(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        # The span of a piece may begin with the space that its "▁" marks.
        mapping = self._processor.encode(text, out_type="offset_mapping")
        return mapping["pieces"], mapping["offsets"]


class NameModel(SubwordModel):
    """How names of programs are spelled, in the file ``path``: text is cut into the same pieces, with BPE's marks."""

    def __init__(self, path: str):
        self._names = NamePieces.load(path)

    def split(self, words: list[str]) -> list[list[str]]:
        cut = map(self._names.cut_text, words)
        return [_marked([*(piece + BPE_JOINER for piece in pieces[:-1]), *pieces[-1:]]) for pieces in cut]


def _marked(pieces: list[str]) -> list[str]:
    """Cuts the last piece of a word if it ends with subword-nmt's mark: ``@@`` becomes ``@@@ @``."""
    if not pieces[-1].endswith(BPE_JOINER):
        return pieces
    return [*pieces[:-1], pieces[-1][:-1] + BPE_JOINER, pieces[-1][-1]]


def kind_of_model(path: str) -> str:
    """Returns ``sentencepiece`` for the name ``*.model`` of a subword model, otherwise ``bpe``."""
    return "sentencepiece" if path.endswith(".model") else "bpe"


def load_subword_model(path: str | None) -> SubwordModel | None:
    """Loads the model in a file: SentencePiece's, as its name says, subword-nmt's codes, or a spelling of names."""
    if path is None:
        return None
    require_plain_file(path)
    kind, library = (
        (SentencePieceModel, "sentencepiece") if kind_of_model(path) == "sentencepiece" else (BpeModel, "subword-nmt")
    )
    try:
        with open(path, "rb") as file:
            return NameModel(path) if file.read(1) == b"{" else kind(path)
    except ImportError as error:
        raise ParserUnavailableError(f"{path} needs {library}: pip install 'tree-fairseq[subwords]'") from error
    # SentencePiece reports a bad file as RuntimeError or OSError, subword-nmt leaves through sys.exit.
    except (OSError, RuntimeError, ValueError, SystemExit) as error:
        message = f"the subword model {path} cannot be read as a {library} model: {error}"
        raise ParserUnavailableError(message) from error


def learn_subwords(texts: Sequence[Path], kind: str, size: int, output: Path, separator: str | None = None) -> None:
    """Learns codes of subword-nmt with ``size`` merges, or a SentencePiece model (unigram) with a vocabulary of it.

    The lines of all texts count alike, without the separator. The same texts always give the same model. Raises
    InputError if the texts are too small.
    """

    def lines() -> Iterator[str]:
        for line in itertools.chain.from_iterable(map(read_lines, texts)):
            words = [word for word in line.split() if word != separator]
            if words:
                yield " ".join(words)

    try:
        if kind == "bpe":
            from subword_nmt.learn_bpe import learn_bpe

            codes = io.StringIO()
            learn_bpe(lines(), codes, size)
            learned = codes.getvalue().encode("utf-8")
        else:
            from sentencepiece import SentencePieceTrainer

            model = io.BytesIO()
            # If the vocabulary is larger than the text has pieces, it has all pieces. The number of threads decides
            # sums of floating-point numbers, so it is the same everywhere.
            SentencePieceTrainer.train(
                sentence_iterator=lines(),
                model_writer=model,
                vocab_size=size,
                hard_vocab_limit=False,
                max_sentence_length=1 << 20,
                num_threads=16,
                minloglevel=1,
            )
            learned = model.getvalue()
    except ImportError as error:
        raise InputError(f"--learn-subwords needs {error.name}", hint="pip install 'tree-fairseq[subwords]'") from error
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{size} subwords cannot be learned from this text: {error}", texts[0]) from error
    with atomic_file(output, "wb") as file:
        file.write(learned)


def subword_model_hash(path: str | None) -> str | None:
    """Returns the sha256 of the model file; raises ParserUnavailableError if it cannot be read."""
    try:
        return None if path is None else file_sha256(path)
    except OSError as error:
        raise ParserUnavailableError(f"the subword model {path} cannot be read: {error.strerror}") from error


def marks_of(tokens: Sequence[str]) -> str:
    """Returns whose marks the tokens of a line have: ``bpe``, ``sentencepiece`` or ``none``."""
    if tokens and tokens[0].startswith(SENTENCEPIECE_MARK):
        return "sentencepiece"
    return "bpe" if any(token.endswith(BPE_JOINER) for token in tokens) else "none"


class TextMarks(NamedTuple):
    """How a text is split (``bpe``, ``sentencepiece``, ``none``), how many lines have marks, and the first of them."""

    kind: str
    lines: int
    first: int


def marks_of_text(lines: Iterable[str], name: str | Path) -> TextMarks:
    """Returns how a text as a whole is split; a few lines with marks among others have them by chance, and are named.

    SentencePiece begins every line with its mark. subword-nmt leaves its mark neither alone nor at the end of a line.
    """
    counts, first = Counter[str](), 0
    for number, line in enumerate(lines, start=1):
        if words := line.split():
            counts["lines"] += 1
            counts[kind := marks_of(words)] += 1
            counts["odd"] += kind == "bpe" and (BPE_JOINER in words or words[-1].endswith(BPE_JOINER))
            first = first or number * (kind != "none")
    marked = counts["bpe"] + counts["sentencepiece"]
    if counts["sentencepiece"] > (1 - _ODD_SHARE) * counts["lines"]:
        return TextMarks("sentencepiece", marked, first)
    if counts["bpe"] > _SPLIT_SHARE * counts["lines"] and counts["odd"] <= _ODD_SHARE * counts["bpe"]:
        return TextMarks("bpe", marked, first)
    if marked:
        text = "%s: %d lines have marks of subwords (@@ or \u2581), line %d first, by chance: the text is not split"
        logger.warning(text, name, marked, first)
    return TextMarks("none", marked, first)


def with_kind_of(options: ParserOptions, lines: Iterable[str], name: str | Path) -> ParserOptions:
    """Returns options in which ``--tree-subwords auto`` is replaced by how the text of these lines is split.

    Logs a warning if the text is not of the language of the parser, begins with a tree in brackets, or has columns.
    """
    if options.name == "brackets":
        return options
    lines = list(itertools.islice(lines, _LINES_READ))
    _warn_of_other_language(lines, options, name)
    if options.subwords != "auto":
        return options
    if lines and re.match(r"\(\S+ \(.*\)\)$", lines[0]):
        logger.warning("%s: a tree in brackets, all of which becomes words; --tree-parser brackets reads trees", name)
    elif 2 * sum(line.count("\t") > 1 for line in lines) > len(lines):
        logger.warning("%s: columns, as in CoNLL or NEGRA's export, become words; write one sentence a line", name)
    return options.replace(subwords=marks_of_text(lines, name).kind)


def _warn_of_other_language(lines: Sequence[str], options: ParserOptions, name: str | Path) -> None:
    """Logs a warning if the lines have far more common words of another language than of that of their parser."""
    words = Counter(word.strip("\u2581@") for line in lines for word in line.lower().split())
    total = sum(words.values())
    if total < _FEWEST_WORDS or options.lang not in _COMMON or not registered_parser(options.name).expensive:
        return
    shares = {lang: sum(words[word] for word in common.split()) / total for lang, common in _COMMON.items()}
    likely = max(shares, key=shares.__getitem__)
    if shares[likely] > max(0.1, 2 * shares[options.lang]):
        logger.warning(
            "%s looks like %s, and its parser is for %s: %.0f %% of the words are common in the former, %.0f %% in the "
            "latter. Give --tree-lang %s with a model of that language, or check which file is of which language",
            *(name, likely, options.lang, 100 * shares[likely], 100 * shares[options.lang], likely),
        )


def subword_kind(tokens: list[str], options: ParserOptions) -> str:
    """Returns how a line is split; for ``auto``, as its own marks say."""
    return marks_of(tokens) if options.subwords == "auto" else options.subwords


def join_line(line: str, kind: str) -> str:
    """Returns the text of a line of pieces of that kind; a line without their marks is returned as it is."""
    if kind == "bpe":
        return f"{line} ".replace(f"{BPE_JOINER} ", "").rstrip()
    if kind == "sentencepiece" and SENTENCEPIECE_MARK in line:
        return line.replace(" ", "").replace(SENTENCEPIECE_MARK, " ").strip()
    return line


def join_pieces(tokens: list[str], options: ParserOptions, model: SubwordModel | None = None) -> SplitWords:
    """Returns the words of a tokenised line, and their pieces, which the model makes if the line is not split yet."""
    kind = subword_kind(tokens, options)
    if kind == "bpe":
        return SplitWords(*join_bpe(tokens, BPE_JOINER))
    if kind == "sentencepiece":
        return SplitWords(*join_sentencepiece(tokens))
    return SplitWords(tokens, model.split(tokens) if model else [[token] for token in tokens])


def words_by_marks(tokens: Sequence[str]) -> SplitWords:
    """Joins tokens to words by their marks of subwords."""
    return join_pieces(list(tokens), ParserOptions(name="right-branching"))


def splice_pieces(written: str, words: Sequence[str], pieces: Sequence[Sequence[str]]) -> str | None:
    """Replaces the words of a written tree by their pieces.

    It gives the same as ``write_forest(split_words(read_forest(written), pieces))``, and takes a tenth of the time: a
    corpus is restored from cached brackets many times. The result is None if the words of the tree are not ``words``.
    """
    atoms = written.split(" ")
    position = 0
    for index, atom in enumerate(atoms):
        if atom.startswith("("):
            continue
        word = atom.rstrip(")")
        if position == len(words) or word != escape(words[position]):
            return None
        parts = pieces[position]
        position += 1
        closing = atom[len(word) :]
        if len(parts) == 1:
            atoms[index] = escape(parts[0]) + closing
        else:
            tag = atoms[index - 1][1:] + SUBWORD_SUFFIX
            atoms[index] = " ".join(f"({tag} {escape(part)})" for part in parts) + closing
    return " ".join(atoms) if position == len(words) else None


@dataclass(frozen=True)
class RawLine:
    """A line of raw text, as the parser reads it; and, if the line came split into pieces, these and their half-open
    spans of characters in ``text``."""

    text: str
    pieces: list[str] | None
    offsets: list[tuple[int, int]]


def join_text(line: str, options: ParserOptions) -> RawLine:
    """Returns the raw text of a line, joined if the line is split into pieces."""
    tokens = line.split()
    kind = subword_kind(tokens, options)
    if kind == "none":
        return RawLine(line, None, [])
    text, offsets = "", list[tuple[int, int]]()
    glued = True  # There is nothing before the first piece.
    for token in tokens:
        if kind == "bpe":
            body, glue_next = (token[: -len(BPE_JOINER)], True) if token.endswith(BPE_JOINER) else (token, False)
        else:
            body, glue_next = token.lstrip(SENTENCEPIECE_MARK), True
            glued = not text or body == token
        start = len(text) + (not glued)
        text += ("" if glued else " ") + body.replace(SENTENCEPIECE_MARK, " ")
        offsets.append((start, len(text)))
        glued = glue_next
    return RawLine(text, tokens, offsets)


def finish_raw_line(
    raw: RawLine, answer: str | Failure, model: SubwordModel | None, change: Callable[[Forest], Forest]
) -> tuple[str, int] | None:
    """Returns the forest of a line in brackets, and the number of its sentences; None if the answer belongs to another
    text. If the parser failed, the words between white space get a flat tree. The forest of words is changed first."""
    if not raw.text.strip():
        return "", 0
    if isinstance(answer, Failure):
        spans = [match.span() for match in re.finditer(r"\S+", raw.text)]
        forest: Forest = (flat_tree([raw.text[start:end] for start, end in spans]),)
    else:
        parsed = decode_text(answer)
        if parsed is None or not covers(raw.text, parsed):
            return None
        forest, spans = parsed.forest, parsed.offsets
    forest, sentences = change(forest), len(forest)
    if raw.pieces is not None:
        forest = align_pieces(forest, spans, raw.offsets, raw.pieces)
    elif model is not None:
        if split := model.split_text(raw.text):
            pieces, offsets = split
            forest = align_pieces(forest, spans, offsets, pieces)
        else:
            forest = split_words(forest, model.split(forest_leaves(forest)))
    return write_forest(forest), sentences
