"""Writes what the demo's page shows: what the bundled models do with sentences, and the words that they know.

    python examples/explorer_demo/records.py --demo demo --text text --scores outputs --output records.json.gz

The questions are the first eight of each test set whose right answer has rows, as they were drawn. With
``--translations`` the model of the package also translates the package's sentences; without it, that tab is the one of
the package's records.
"""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import islice
from pathlib import Path

import tree_fairseq
from tree_fairseq import hub
from tree_fairseq.commands import demo_models
from tree_fairseq.scoring.execution import Database
from tree_fairseq.trees.text import read_lines

QUESTIONS = 8  # of each test set


def questions(demo: Path, text: Path, scores: Path) -> dict:
    """The tab of questions to SQL."""
    comparison = demo_models.questions(demo)
    database, chosen = Database(demo / "archipelago.sqlite"), list[tuple[str, str]]()
    for split in ("test", "test1"):
        pairs = zip(*(read_lines(text / f"{split}.{ending}") for ending in ("questions", "sql")))
        chosen += islice((pair for pair in pairs if database.answer(pair[1]).rows), QUESTIONS)
    document = comparison.document_of_lines([question for question, _ in chosen])
    for sentence, (_, query) in zip(document.sentences, chosen):
        sentence.reference, sentence.reference_tree = query, comparison.tree(query)
    dictionary = comparison.systems[0].task.source_dictionary
    document.words = sorted(word for word in dictionary.symbols[dictionary.nspecial :] if word.isalpha())
    document.about = about(scores)
    return document.to_dict()


def about(scores: Path) -> str:
    """What the models were trained on, and how they answer the questions of both test sets, in one paragraph."""
    shares = []
    for name, title in demo_models.SYSTEMS.items():
        metrics = json.loads((scores / name / "score.json").read_text(encoding="utf-8"))["metrics"]
        parses, right = (
            f"{metrics[metric]:.3g} and {metrics[f'{metric}_longer']:.3g} %" for metric in ("parses", "exact_match")
        )
        shares.append(f"{title} {parses} (exactly right: {right})")
    return (
        "A made-up archipelago. Three small models learned from the same 20,000 questions and queries. Outputs that "
        f"parse, of 300 other questions and of 300 with more conditions than any of training: {'; '.join(shares)}."
    )


def translations() -> dict:
    """The tab of translations."""
    comparison = demo_models.translations()
    document = comparison.document_of_lines(list(read_lines(hub.DEMO / "sentences.txt")))
    return document.to_dict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="the folder of the models that write SQL")
    parser.add_argument("--text", type=Path, required=True, help="the folder of the text")
    parser.add_argument("--scores", type=Path, required=True, help="the folder of the outputs and their scores")
    parser.add_argument("--output", type=Path, required=True, help="the file of records")
    parser.add_argument(
        "--translations", type=Path, metavar="TEXT", help="also translate; the text that the words are of"
    )
    options = parser.parse_args()
    tree_fairseq.register()
    kept = hub.DEMO / "records.json.gz"
    if options.translations:
        other = translations()
        other["words"] = sorted(
            {word for line in read_lines(options.translations) for word in line.split() if word.isalpha()}
        )
    else:
        other = json.loads(gzip.decompress(kept.read_bytes()))[-1]
    tabs = [questions(options.demo, options.text, options.scores), other]
    text = json.dumps(tabs, ensure_ascii=False, separators=(",", ":"))
    options.output.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{options.output}: {len(tabs[0]['sentences'])} questions, {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
