"""Rules that need no training, for comparison with models of agreement: what the tags and trees of a parser are worth.

    tree-fairseq export OUT/data-bin --split test --words-from words.txt --output test.trees
    python -m preprocess.agreement_rules --text OUT/text --trees test.trees

``words.txt`` has the first column of ``OUT/text/test.tsv``. Each rule chooses a noun of the beginning, whose tag has
the number: the nearest noun to the verb, the first noun, or the head of the subject. The subject is the topmost noun
phrase on the right edge of the tree, within the last clause that has no verb phrase yet. Where a rule finds no noun,
it is wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from preprocess.agreement_subjects import COMMON_NOUNS, NOUNS, head_of
from preprocess.command import run_command
from preprocess.corpora import CorpusError
from preprocess.logical_forms import raw_lines
from tree_fairseq.errors import InputError
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import Tree

_CLAUSES = {"S", "SBAR", "SINV", "SQ", "SBARQ"}
_AFTER_SUBJECTS = {"ADVP", "RB", "MD", "PRN", "INTJ", "CC", ",", ".", ":", "''", "-RRB-"}


def tags_of(tree: Tree) -> list[str]:
    """Returns the tags of the leaves."""
    tags, stack = [], [tree]
    while stack:
        node = stack.pop()
        if node.is_preterminal:
            tags.append(node.label)
        else:
            stack.extend(reversed(node.children))
    return tags


def nearest_noun(tree: Tree) -> str | None:
    """Returns the number of the last common noun."""
    return next((COMMON_NOUNS[tag] for tag in reversed(tags_of(tree)) if tag in COMMON_NOUNS), None)


def first_noun(tree: Tree) -> str | None:
    """Returns the number of the first common noun."""
    return next((COMMON_NOUNS[tag] for tag in tags_of(tree) if tag in COMMON_NOUNS), None)


def subject_head(tree: Tree) -> str | None:
    """Returns the number of the head of the subject that waits for its verb."""
    node: Tree = tree
    phrase: Tree | None = None
    while not node.is_leaf and not node.is_preterminal:
        if node.label == "S" and not any(child.label == "VP" for child in node.children):
            phrase = None
        if node.label == "NP" and phrase is None:
            phrase = node
        last = len(node.children) - 1
        while last > 0 and node.children[last].label in _AFTER_SUBJECTS:
            last -= 1
        node = node.children[last]
    if phrase is None:
        return NOUNS.get(node.label)
    head = head_of(phrase)
    return None if head is None else NOUNS[tags_of(phrase)[head]]


RULES: dict[str, Callable[[Tree], str | None]] = {
    "nearest noun": nearest_noun,
    "first noun": first_noun,
    "head of the subject": subject_head,
}


def accuracies(text: Path, trees: Path) -> dict[str, dict[str, float]]:
    """Returns the accuracy of each rule in percent, for ``all`` examples and for each group.

    Raises:
        CorpusError: files are missing, or their lines do not belong together
    """
    rows, groups = list(raw_lines(text / "test.tsv")), list(raw_lines(text / "test.groups"))
    lines = list(raw_lines(trees))
    if not len(rows) == len(groups) == len(lines):
        raise CorpusError(f"{trees} has {len(lines)} lines, {text}/test.tsv {len(rows)}, test.groups {len(groups)}")
    right: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for number, (row, group, line) in enumerate(zip(rows, groups, lines), 1):
        try:
            tree = read_forest(line)[-1]
        except (InputError, IndexError) as error:
            raise CorpusError(f"{trees}:{number}: there is no tree ({error})") from error
        words, _, verb = row.partition("\t")
        if len(tree.leaves()) != len(words.split()):
            raise CorpusError(f"{trees}:{number}: the tree has other words than {text}/test.tsv")
        sizes.update(("all", group))
        for name, rule in RULES.items():
            if rule(tree) == verb:
                right[name].update(("all", group))
    return {name: {group: 100 * right[name][group] / size for group, size in sorted(sizes.items())} for name in RULES}


def report(text: Path, trees: Path) -> None:
    """Prints a line for each rule."""
    for name, scores in accuracies(text, trees).items():
        print(f"{name}: " + ", ".join(f"{group} {score:.1f}" for group, score in scores.items()))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.agreement_rules", description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="folder with test.tsv and test.groups")
    parser.add_argument("--trees", type=Path, required=True, help="bracketed parses of the test set, with its words")
    args = parser.parse_args(arguments)
    return run_command("agreement_rules", lambda: report(args.text, args.trees))


if __name__ == "__main__":
    raise SystemExit(main())
