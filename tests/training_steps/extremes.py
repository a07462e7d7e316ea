"""Folders with one example that is very long, or whose tree is very deep, among six of the usual ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.end_to_end import insertion, sentences, structural, tiny_classes, tiny_corpus, tiny_programs
from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import preprocess as preprocess_trees
from tests.training_steps.cases import Case, Folders, Step
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree

SHORT = (6, 4, 4)


def sentence(size: int, shape: str) -> str:
    """A tree over ``size`` words in brackets, as deep as can be, or flat; or nothing."""
    if shape == "empty":
        return ""
    words = [Tree("NN", [Tree(word)]) for word in random.Random(0).choices(("man", "dog", "the"), k=size)]
    tree = words[-1]
    for word in reversed(words[:-1]):
        tree = Tree("S", [word, tree])
    return write_forest((tree if shape == "deep" else Tree("S", words),))


def program(size: int, shape: str) -> str:
    """A program of ``size`` nodes."""
    names = random.Random(0).choices(("all", "in", "and"), k=size - 1)
    if shape == "deep":
        return f"{' '.join(f'( {name}' for name in names)} rivers {') ' * len(names)}".rstrip()
    return f"( and {' '.join(names)} )"


def _add(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class ExtremeFolders(Folders):
    """Preprocessed folders, each with one training example of a size and a shape: ``deep``, ``wide`` or ``empty``.

    A wide sentence has a target of the same length; a deep one, and a request for a deep program, are short on the
    other side. An empty example has a source without words, and a usual target.
    """

    def __init__(self, base: Path, size: int, shape: str):
        super().__init__(base)
        self.size, self.shape = size, shape

    def __call__(self, name: str) -> Path:
        """The folder of a name of FOLDERS."""
        if name not in self._made:
            place = self.base / name.replace(", ", "-").replace(" ", "-")
            place.mkdir(parents=True)
            kind = name if name in ("translation", "documents", "sentences", "rated pairs") else ""
            if name.startswith("insertion"):
                self._made[name] = self._insertion(place, parsed="parsed" in name)
            elif name in structural.MODALITIES:
                self._made[name] = self._structural(place, name)
            else:
                self._made[name] = getattr(self, f"_{(kind or 'classes').replace(' ', '_')}")(place)
        return self._made[name]

    def _words(self) -> str:
        return " ".join(random.Random(1).choices(("film", "plot", "good", "is"), k=self.size))

    def _translation(self, place: Path) -> Path:
        text = tiny_corpus.write_corpus(place / "text", sizes=SHORT)
        _add(text / "train.en", sentence(self.size, self.shape))
        _add(text / "train.de", " ".join(["mann"] * (self.size if self.shape == "wide" else 3)))
        preprocess_trees(text, place / "bin")
        return place / "bin"

    def _programs(self, place: Path) -> Path:
        text = tiny_programs.write_corpus(place / "text", SHORT)
        _add(text / "train.nl", {"wide": self._words(), "deep": "show rivers", "empty": ""}[self.shape])
        _add(text / "train.lf", program(5 if self.shape == "empty" else self.size, self.shape))
        return text

    def _structural(self, place: Path, name: str) -> Path:
        modality = structural.MODALITIES[name]
        texts = structural.texts_for(self._programs(place), place / "sides", modality)
        # A program of one label with many children needs symbols of that arity, so wide ones are binarised.
        own = ("--binarization", "lcrs") if self.shape == "wide" else ()
        return structural.preprocess(texts, place / "bin", modality, *own)

    def _insertion(self, place: Path, parsed: bool) -> Path:
        own = ("--tree-parser", "right-branching") if parsed else ()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tree_fairseq.tree_insertion.preprocessing.MOST_NODES", self.size)
            return insertion.preprocess(self._programs(place), place / "bin", *own)

    def _classes(self, place: Path) -> Path:
        text = tiny_classes.write_examples(place / "text", "trees", SHORT)
        line = sentence(self.size, "deep")
        for label, number in (("NN", "-"), ("S", "1")):
            line = line.replace(f"({label} ", f"({number} ")
        assert read_forest(line)
        _add(text / "train.trees", line)
        return tiny_classes.preprocess(text, "trees", place / "bin")

    def _documents(self, place: Path) -> Path:
        text = tiny_classes.write_examples(place / "text", "documents", SHORT)
        words = self._words()
        _add(text / "train.tsv", f"{words if self.shape == 'deep' else words.replace('film', '.')}\tpos")
        return tiny_classes.preprocess(text, "documents", place / "bin")

    def _lines(self, place: Path, kind: str) -> Path:
        chooser, prefixes = random.Random(kind), []
        for split, count in zip(("train", "valid", "test"), SHORT):
            (place / f"{split}.tsv").write_text("".join(f"{sentences.row(chooser, kind)}\n" for _ in range(count)))
            prefixes += [f"--{split}pref", place / split]
        texts = [self._words()] * (1 if kind == "sentence" else 2)
        _add(place / "train.tsv", "\t".join([*texts, "1" if kind == "sentence" else "4.500"]))
        run("preprocess", *sentences.TASK, *sentences.FORMATS[kind], *prefixes, "--destdir", place / "bin")
        return place / "bin"

    def _sentences(self, place: Path) -> Path:
        return self._lines(place, "sentence")

    def _rated_pairs(self, place: Path) -> Path:
        return self._lines(place, "rated")


def extreme_step(case: Case, folders: ExtremeFolders, companions: int = 1) -> Step:
    """A training step on the extreme example and some usual ones."""
    most = str(3 * folders.size + 10)
    flags = (*case.flags, "--max-source-positions", most, *_target_flag(case, most))
    step = Step(Case(case.name, case.folder, case.arch, flags), folders)
    dataset = step.task.dataset("train")
    step.batch = dataset.collater([dataset[number] for number in (SHORT[0], *range(companions))])
    return step


def _target_flag(case: Case, most: str) -> tuple[str, ...]:
    is_classifier = "classif" in case.arch
    return () if is_classifier else ("--max-target-positions", most)
