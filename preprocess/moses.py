"""Moses tokenisation through sacremoses: normalise, tokenise, lower-case."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from preprocess.corpora import clean_line


@dataclass(frozen=True)
class TokenizerOptions:
    """Options of the tokenizer.

    Attributes:
        language: two-letter code, which selects the list of abbreviations of Moses
        lower: lower-case the tokens
        normalize: normalise punctuation and drop control characters first
    """

    language: str
    lower: bool = False
    normalize: bool = False


class Tokenizer:
    """Converts raw lines to Moses tokens with Moses' escapes (``&apos;``)."""

    def __init__(self, options: TokenizerOptions):
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.options = options
        self._tokenizer = MosesTokenizer(lang=options.language)
        self._normalizer = None
        if options.normalize:
            self._normalizer = MosesPunctNormalizer(lang=options.language, post_remove_control_chars=True)

    def __call__(self, line: str) -> str:
        """Returns the tokens of ``line``, joined by single blanks."""
        text = clean_line(line)
        if self._normalizer is not None:
            text = clean_line(self._normalizer.normalize(text))
        text = self._tokenizer.tokenize(text, return_str=True)
        return clean_line(text.lower() if self.options.lower else text)


def tokenize_lines(lines: Iterable[str], options: TokenizerOptions, workers: int = 1) -> Iterator[str]:
    """Yields the tokenised lines in order. More than one worker means that many spawned processes."""
    tokenizer = Tokenizer(options)
    if workers <= 1:
        yield from map(tokenizer, lines)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(tokenizer, lines, chunksize=20_000)
