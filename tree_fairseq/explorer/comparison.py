"""Explains the sentences of a split, or typed lines, with one or two systems side by side."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence

from tree_fairseq.drawing.views import tree_record
from tree_fairseq.errors import InputError
from tree_fairseq.explorer.document import Document, SentenceRecord
from tree_fairseq.explorer.sentence_scores import MATCH, TEXT_MATCH
from tree_fairseq.explorer.sentences import Sentence
from tree_fairseq.explorer.systems import System
from tree_fairseq.support.progress import with_progress

logger = logging.getLogger(__name__)


class Comparison:
    """Explains sentences with one or two systems.

    Each system reads a sentence by itself. The parse, the tokens and the reference are those of the first system that
    has them.
    """

    def __init__(self, systems: Sequence[System], title: str = "tree-fairseq explorer", progress: bool = False):
        self.systems, self.title, self.progress = list(systems), title, progress
        metrics = {system.metric.name for system in systems}
        if MATCH in metrics and len(metrics) > 1:  # one system writes trees, the other their symbols as text
            for system in systems:
                if system.metric.name != MATCH:
                    system.metric, system.record = TEXT_MATCH, dataclasses.replace(system.record, metric=MATCH)

    def explain_line(self, line: str, number: int = 0) -> SentenceRecord:
        """Explains a typed line."""
        return self._record([system.reader.read_line(line, number) for system in self.systems])

    def document_of_lines(self, lines: Sequence[str]) -> Document:
        """Explains typed lines."""
        return self._document(map(self.explain_line, lines, range(len(lines))), len(lines))

    def document_of_split(self, split: str, most: int) -> Document:
        """Explains the first sentences of a split; raises InputError if the systems' splits differ in length."""
        sizes = [system.reader.open_split(split) for system in self.systems]
        if len(set(sizes)) > 1:
            raise InputError(
                f"the systems' data have different numbers of sentences in {split!r}: {sizes[0]} and {sizes[1]}",
                hint="Compare systems on the same sentences.",
            )
        read = zip(*(system.reader.read_split(split, most) for system in self.systems))
        return self._document(map(self._record, read), min(most, sizes[0]))

    def _document(self, records: Iterator[SentenceRecord], count: int) -> Document:
        sentences = list(with_progress(records, "explain", count, "sentences", self.progress))
        for number, system in enumerate(self.systems):
            failed = [sentence for sentence in sentences if sentence.systems[number].error]
            if failed:
                message = "%s has no output for %d of %d sentences; the first is %d: %s"
                first = failed[0]
                logger.warning(message, system.record.name, len(failed), count, first.id, first.systems[number].error)
        if sentences and all(output.error for each in sentences for output in each.systems):
            raise InputError(f"there is nothing to show: {sentences[0].systems[0].error}")
        systems = [system.record for system in self.systems]
        if sentences and all(sentence.reference is None for sentence in sentences):
            systems = [dataclasses.replace(system, metric=None) for system in systems]
        return Document(self.title, systems, sentences)

    def _record(self, read: Sequence[Sentence]) -> SentenceRecord:
        best = next((sentence for sentence in read if sentence.forest), read[0])
        references = (system.reference(sentence) for system, sentence in zip(self.systems, read))
        return SentenceRecord(
            id=read[0].number,
            source=read[0].source,
            tokens=list(best.tokens),
            reference=next((reference for reference in references if reference is not None), None),
            length=best.length,
            depth=best.depth,
            parse=tree_record(best.forest) if best.forest else None,
            reference_tree=next(filter(None, map(System.reference_tree, self.systems, read)), None),
            systems=[system.explain(sentence) for system, sentence in zip(self.systems, read)],
        )
