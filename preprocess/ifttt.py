"""IFTTT: titles of recipes and their programs (Quirk, Mooney and Galley 2015).

The "If-This-Then-That Programs and Descriptions Corpus" (an archive at ``SOURCE_PAGE``) contains lists of addresses,
the annotation of the test set and a crawler, which downloads the recipes:

=========================  ===========================================================================================
``recipe_summaries.tsv``   a line of names, then file, address, id, title, description, author, featured, uses,
                           favourites, code
``{train,dev,test}.urls``  addresses of the recipes of each split
``turk_public.tsv``        optional: a line of names, then a line for the answer of each of five annotators: address,
                           description, trigger channel, trigger, action channel, action, ...
=========================  ===========================================================================================

Recipes that the site no longer has are left out and counted. The groups of a test recipe are the subsets on which
results are reported: ``english`` (3741 recipes; "non-English" is not the most frequent answer), ``intelligible``
(2262; no annotator answered "non-English" or "unintelligible") and ``gold`` (758; at least three answers agree with the
program).

Programs are ``(ROOT (IF) (TRIGGER (Twitter) (FUNC (New_tweet) (PARAMS))) (THEN) (ACTION ...))``. Every node has its own
brackets, leaves too. A name ends at a blank or a closing bracket. A name in quotation marks may contain any character;
a backslash escapes the character after it.
"""

from __future__ import annotations

import html
import logging
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from preprocess.corpora import CorpusError, clean_line, find_file, raw_lines
from preprocess.logical_forms import Example, Splits
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

_TOKEN = re.compile(r'\s*(?:(?P<close>\))|\(\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^\s)"][^\s)]*)))')


def read_program(text: str) -> Tree:
    """Returns the tree of a program. Raises CorpusError, naming the column, if the text is malformed."""
    position = 0
    text = text.rstrip()
    # The name and the children of each open bracket. The first entry collects the finished program.
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    while position < len(text):
        found = _TOKEN.match(text, position)
        complete = len(stack) == 1 and stack[0][1]
        if found is None or complete or len(stack) == 1 and found["close"]:
            rest = text[position:].lstrip()
            raise CorpusError(f"malformed program: {rest[:30]!r} in column {len(text) - len(rest) + 1}")
        position = found.end()
        if found["close"]:
            label, children = stack.pop()
            stack[-1][1].append(Tree(label, children))
        else:
            stack.append((_label(found), []))
    if len(stack) > 1:
        raise CorpusError(f"malformed program: {len(stack) - 1} brackets are never closed")
    if not stack[0][1]:
        raise CorpusError("the program is empty")
    return stack[0][1][0]


def _label(found: re.Match) -> str:
    if found["name"] is not None:
        return found["name"]
    return clean_line(re.sub(r"\\(.)", r"\1", found["quoted"]))


class Program(NamedTuple):
    """The scored parts of a program, those of trigger and action; None for a missing one."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Returns the channels and functions of trigger and action."""
    parts = [_child(tree, label) for label in ("TRIGGER", "ACTION")]
    channels = [next((node.label for node in part.children if node.label != "FUNC"), None) for part in parts if part]
    calls = [_child(part, "FUNC") for part in parts]
    functions = [call.children[0].label for call in calls if call and call.children]
    return Program(*(None if None in names or len(names) < 2 else tuple(names) for names in (channels, functions)))


def _child(tree: Tree | None, label: str) -> Tree | None:
    """The first child with this label."""
    return next((node for node in tree.children if node.label == label), None) if tree else None


logger = logging.getLogger(__name__)

SOURCE_PAGE = "https://www.microsoft.com/en-us/research/publication/language-code-learning-semantic-parsers-recipes/"
ANNOTATION = "turk_public.tsv"
URL_LISTS = {"train": "train.urls", "valid": "dev.urls", "test": "test.urls"}
COLUMNS = 10
TEXTS = {"title": (3,), "description": (4,), "both": (3, 4)}
NOTATION = "bracket"

_URL, _CODE = 1, 9
_WORD = re.compile(r"""[.,!?"':;()]|[^\s.,!?"':;()]+""")


def required(data: Path, *names: str) -> Path:
    """Returns the first of these files in the folder or below it."""
    path = find_file(data, *names)
    if path is None:
        raise CorpusError(
            f"{data / names[0]} is missing: the corpus is at {SOURCE_PAGE}, and its crawler downloads the recipes"
        )
    return path


def words(text: str) -> str:
    """Returns a title as lower-cased tokens."""
    return " ".join(_WORD.findall(html.unescape(text).lower()))


def read_recipes(path: Path, wanted: set[str], text: str) -> dict[str, tuple[str, Tree]]:
    """Returns the words and the program of each wanted recipe, by address."""
    recipes = {}
    for number, line in enumerate(raw_lines(path), 1):
        columns = line.split("\t")
        if number == 1:
            continue
        if len(columns) != COLUMNS:
            raise CorpusError(f"{path}:{number}: {len(columns)} columns where {COLUMNS} are expected")
        url = columns[_URL].strip()
        if url in wanted:
            try:
                tree = read_program(columns[_CODE])
            except CorpusError as error:
                raise CorpusError(f"{path}:{number}: {error}") from error
            recipes[url] = words(" ".join(columns[index] for index in TEXTS[text])), tree
    return recipes


def read_answers(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Returns the answers of the annotators for each recipe: trigger channel, trigger, action channel, action."""
    answers = defaultdict(list)
    for number, line in enumerate(raw_lines(path), 1):
        columns = [clean_line(column).replace(" ", "_") for column in line.split("\t")]
        if number == 1:
            continue
        if len(columns) < 6:
            raise CorpusError(f"{path}:{number}: {len(columns)} columns where six are expected")
        answers[columns[0]].append(tuple(columns[2:6]))
    return answers


def groups_of(answers: list[tuple[str, ...]], tree: Tree) -> tuple[str, ...]:
    """Returns the published subsets of the test set that a recipe belongs to."""
    if not answers:
        return ()
    counts = Counter(answers)
    foreign, unclear = ((mark,) * 4 for mark in ("nonenglish", "unintelligible"))
    channels, functions = program(tree)
    right = None if channels is None or functions is None else (channels[0], functions[0], channels[1], functions[1])
    belongs = {
        "english": counts[foreign] < max(counts.values()),
        "intelligible": not counts[foreign] and not counts[unclear],
        "gold": right is not None and counts[right] >= 3,
    }
    return tuple(name for name, inside in belongs.items() if inside)


def load(data: Path, text: str = "title") -> Splits:
    """Reads the splits of a folder.

    Args:
        text: ``title``, ``description`` or ``both``
    """
    lists = {
        split: list(filter(None, map(str.strip, raw_lines(required(data, name))))) for split, name in URL_LISTS.items()
    }
    wanted = {url for urls in lists.values() for url in urls}
    recipes = read_recipes(required(data, "recipe_summaries.tsv", "recipe_summaries.all.tsv"), wanted, text)
    annotation = find_file(data, ANNOTATION)
    answers = {} if annotation is None else read_answers(annotation)
    return {split: _examples(split, urls, recipes, answers) for split, urls in lists.items()}


def _examples(split: str, urls: list[str], recipes: dict, answers: dict) -> list[Example]:
    bracket = notation_named(NOTATION)
    there = [url for url in urls if url in recipes]
    named = [url for url in there if recipes[url][0]]
    if len(named) < len(urls):
        logger.warning(
            "%s: %d of %d recipes are left out: %d were not downloaded and %d have no words",
            split,
            len(urls) - len(named),
            len(urls),
            len(urls) - len(there),
            len(there) - len(named),
        )
    examples = []
    for url in named:
        source, tree = recipes[url]
        groups = groups_of(answers.get(url, []), tree) if split == "test" else ()
        examples.append(Example(source, bracket.write(tree), groups))
    return examples
