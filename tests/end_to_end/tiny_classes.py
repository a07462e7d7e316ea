"""Examples to be classified that a tiny model learns in seconds, and the commands and the task on them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.end_to_end.commands import prefixes_of, run, train_by
from tree_fairseq.classification.task import TreeClassificationConfig, TreeClassificationTask

TASK = ("--task", "tree_classification")
GOOD, BAD, PLAIN = ("good", "great", "moving"), ("bad", "dull", "weak"), ("a", "film", "it", "is", "the", "plot")


def task_of(data: object, **options) -> TreeClassificationTask:
    defaults = {"train_subset": "train", "dataset_impl": None}
    return TreeClassificationTask.setup_task(TreeClassificationConfig(data=str(data), **{**defaults, **options}))


def load(data: object, split: str, epoch: int = 1, combine: bool = False, **options):
    task = task_of(data, **options)
    task.load_dataset(split, epoch=epoch, combine=combine)
    return task, task.dataset(split)


def make_tree(chooser: random.Random, words: int) -> str:
    """A binary tree of two classes: a constituent with a bad word is 0, another one 1; a word alone that says nothing
    has none.
    """

    def draw(count: int) -> tuple[str, bool]:
        if count == 1:
            word = chooser.choice(chooser.choice((GOOD, BAD, PLAIN, PLAIN)))
            label = "-" if word in PLAIN and words > 1 else str(int(word not in BAD))
            return f"({label} {word})", word in BAD
        left = chooser.randint(1, count - 1)
        (first, bad), (second, worse) = draw(left), draw(count - left)
        return f"({int(not (bad or worse))} {first} {second})", bad or worse

    return draw(words)[0]


def make_document(chooser: random.Random, sentences: int) -> str:
    """A text of some sentences, and its class by what stands in the first."""
    name = chooser.choice(("pos", "neg"))
    told = [chooser.choice(GOOD if name == "pos" else BAD)]
    drawn = [chooser.choices(PLAIN, k=chooser.randint(0, 4)) for _ in range(sentences)]
    texts = [" ".join([*words, *told * (number == 0), "."]) for number, words in enumerate(drawn)]
    return f"{' '.join(texts)}\t{name}"


def write_examples(folder: Path, kind: str, sizes: tuple[int, int, int] = (60, 14, 13)) -> Path:
    """Writes ``{train,valid,test}`` of a kind into a folder, and returns it.

    ``documents`` are several sentences a line, in ``tsv`` files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chooser = random.Random(kind)
    for split, size in zip(("train", "valid", "test"), sizes):
        if kind == "trees":
            lines = [make_tree(chooser, chooser.randint(1, 7)) for _ in range(size)]
        else:
            lines = [make_document(chooser, chooser.randint(2, 5) if kind == "documents" else 1) for _ in range(size)]
        suffix = "trees" if kind == "trees" else "tsv"
        (folder / f"{split}.{suffix}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def preprocess(text: Path, kind: str, destination: Path, *arguments: object) -> Path:
    """Runs ``fairseq-preprocess`` on examples of a kind; new text is parsed by a parser that always branches to the
    right.
    """
    own = {"trees": ("--input-format", "trees"), "documents": ("--tree-ssplit", "punct"), "tsv": ()}[kind]
    flags = ("--destdir", destination, "--tree-parser", "right-branching", *own, *arguments)
    run("preprocess", *TASK, *prefixes_of(text), *flags)
    return destination


def train(data: object, folder: Path, *arguments: object, arch: str = "tree_transformer_classifier_tiny") -> str:
    """Runs ``fairseq-train`` for two updates, or as the arguments say; returns its log."""
    defaults = {
        "--task": TASK[1], "--arch": arch, "--criterion": "tree_classification", "--best-checkpoint-metric": "accuracy",
        "--batch-size": 8, "--warmup-updates": 4,
    }  # fmt: skip
    if not {"--max-epoch", "--max-update"} & set(arguments):
        defaults["--max-update"] = 2
    return train_by(defaults, data, folder, "--maximize-best-checkpoint-metric", *arguments)
