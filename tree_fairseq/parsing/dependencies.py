"""Dependencies, for parsers that have them beside constituents, and the CoNLL-U format.

A parser has dependencies if it has a method ``parse_dependencies(sentences)``, which returns one `DependencyWord` for
each word of each sentence, or None where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tree_fairseq.errors import ParserError, ParserUnavailableError


@dataclass(frozen=True)
class DependencyWord:
    """A word, the number of its head in the sentence (from 1; 0 for the root), and the relation to it.

    The other fields are the columns of CoNLL-U of these names, ``_`` where they are not known.
    """

    form: str
    head: int
    relation: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    features: str = "_"

    def line(self, number: int) -> str:
        """Returns the line of CoNLL-U; ``number`` is the word's own, from 1."""
        columns = (self.form, self.lemma, self.upos, self.xpos, self.features, self.head, self.relation)
        return "\t".join([str(number), *(str(column) or "_" for column in columns), "_", "_"])


def parse_dependencies(parser: Any, name: str, sentences: list[list[str]]) -> list[Sequence[DependencyWord]]:
    """Returns the dependencies of each sentence, which is a list of words.

    Raises:
        ParserUnavailableError: the parser ``name`` has none, or its model for them is missing
        ParserError: a sentence could not be parsed
    """
    if not hasattr(parser, "parse_dependencies"):
        raise ParserUnavailableError(
            f"--format conllu needs dependencies, which --tree-parser {name} does not give. These parsers do: stanza "
            "(with a depparse model), corenlp, spacy (with a pipeline that has a parser)"
        )
    found = parser.parse_dependencies(sentences)
    for words, row in zip(sentences, found):
        if row is None or [word.form for word in row] != words:
            raise ParserError(f"--tree-parser {name} found no dependencies of this sentence: {' '.join(words)[:200]}")
    return found


def write_conllu(name: str, sentences: Sequence[Sequence[DependencyWord]]) -> Iterator[str]:
    """Yields the sentences of a line in CoNLL-U; ``name`` and the number of the sentence are its ``sent_id``."""
    for number, words in enumerate(sentences, start=1):
        yield f"# sent_id = {name}.{number}\n# text = {' '.join(word.form for word in words)}\n"
        yield "".join(f"{word.line(place)}\n" for place, word in enumerate(words, start=1)) + "\n"
