"""Small parallel corpora with trees, and the command that preprocesses them."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Callable

import numpy as np
from fairseq import options
from fairseq_cli import preprocess

import tree_fairseq  # noqa: F401  (importing it is what changes the command)
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.tree_store import TreeBlock
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Forest, Tree, forest_leaves

WORDS = "the old man boat sleeps über 日本 ( ) -LRB- t(est) a\\ <unk> &apos;s un@@".split()
PHRASES = ["S", "NP", "VP", "PP", "SBAR", "A+B"]
TAGS = ["NN", "DT", "VBZ", "-LRB-", "."]


def random_forest(chooser: random.Random, max_words: int = 9) -> Forest:
    """Makes the trees of a line, sometimes two or zero, with unary chains."""
    sentences = chooser.choice([1, 1, 1, 1, 2, 0])
    return tuple(_random_tree(chooser, chooser.randint(1, max_words)) for _ in range(sentences))


def _random_tree(chooser: random.Random, words: int) -> Tree:
    if words == 1:
        tree = Tree(chooser.choice(TAGS), [Tree(chooser.choice(WORDS))])
    else:
        cuts = sorted(chooser.sample(range(1, words), min(chooser.choice([1, 1, 2]), words - 1)))
        parts = [end - start for start, end in zip([0, *cuts], [*cuts, words])]
        tree = Tree(chooser.choice(PHRASES), [_random_tree(chooser, part) for part in parts])
    while chooser.random() < 0.25:
        tree = Tree(chooser.choice(PHRASES), [tree])
    return tree


def write_corpus(folder: Path, seed: int = 0, **splits: int) -> Path:
    """Writes ``trees/SPLIT.en`` (bracketed), ``leaves/SPLIT.en`` (their words), and the same for ``de``; parallel."""
    chooser = random.Random(seed)
    for split, lines in splits.items():
        for lang in ("en", "de"):
            forests = [random_forest(chooser) for _ in range(lines)]
            write_lines(folder / "trees" / f"{split}.{lang}", [write_forest(forest) for forest in forests])
            write_lines(folder / "leaves" / f"{split}.{lang}", [" ".join(forest_leaves(forest)) for forest in forests])
    # With trees on the source side only, the target is its plain text.
    (folder / "mixed").mkdir(exist_ok=True)
    for split in splits:
        (folder / "mixed" / f"{split}.en").write_bytes((folder / "trees" / f"{split}.en").read_bytes())
        (folder / "mixed" / f"{split}.de").write_bytes((folder / "leaves" / f"{split}.de").read_bytes())
    return folder


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))
    return path


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").split("\n")[:-1]


def run_preprocess(*arguments: object) -> None:
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args(["-s", "en", "-t", "de", *map(os.fspath, map(str, arguments))]))


def prefixes(folder: Path, *splits: str) -> list[str]:
    """``--trainpref``, ``--validpref`` and ``--testpref`` for splits in a folder, those of a kind comma-separated."""
    arguments = []
    for kind in ("train", "valid", "test"):
        if names := [str(folder / split) for split in splits if split.startswith(kind)]:
            arguments += [f"--{kind}pref", ",".join(names)]
    return arguments


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """The bytes of all files of a folder but the log, which contains times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "preprocess.log" and "parse-cache" not in path.parts
    }


def in_child(action: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> int | str:
    """Runs an action in a forked process.

    Returns 0 when it ended well, ``"killed"`` when it was killed, else the message of its exception.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        message = ""
        try:
            prepare()
            action()
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, message.encode("utf-8"))
            os._exit(1 if message else 0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        message = pipe.read().decode("utf-8")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return "killed"
    return message or os.waitstatus_to_exitcode(status)


def forests_with_words(folder: Path, lang: str, split: str, text: Path) -> list[Forest]:
    """The exported trees of a split, with the words of its text in place of ``<unk>``."""
    found = []
    for forest, line in zip(export_forests(folder, lang, split), read_lines(text)):
        words = iter(line.split())
        found.append(tuple(tree.map_leaves([next(words) for _ in tree.leaves()]) for tree in forest))
    return found


def block_of(forests: list[Forest], names: list[str]) -> TreeBlock:
    """The arrays of forests, one node at a time; labels are numbered by their place in ``names``."""
    rows, leaf_counts, node_counts = [], [], []
    for forest in forests:
        spans = encode(forest)
        leaf_counts.append(len(spans.leaves))
        node_counts.append(len(spans.labels))
        for label, (start, end, depth) in zip(spans.labels, spans.spans.tolist()):
            if label not in names:
                names.append(label)
            rows.append((names.index(label), start, end, depth))
    return TreeBlock(
        np.array(leaf_counts, np.int32), np.array(node_counts, np.int32), np.array(rows, np.int32).reshape(-1, 4)
    )
