"""Training steps of every architecture of the package, each with the data, the task and the criterion that it has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch import Tensor, nn

from tests.end_to_end import insertion, sentences, structural, tiny_classes, tiny_corpus, tiny_programs
from tests.end_to_end.fixtures import STOCK_SIZES
from tests.end_to_end.fixtures import TASK as TRANSLATION
from tests.end_to_end.fixtures import preprocess as preprocess_trees
from tests.nn.pretrained import save_albert

SMOOTHED = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1")
CLASSES = ("--criterion", "tree_classification", "--label-smoothing", "0.1")


FOLDERS = {
    "translation": (TRANSLATION, "translation"),
    **dict.fromkeys(structural.MODALITIES, (structural.TASK, "programs")),
    "insertion": (insertion.TASK, "programs"),
    "insertion, parsed": (insertion.TASK, "programs"),
    "classes of nodes": (tiny_classes.TASK, "trees"),
    "documents": (tiny_classes.TASK, "documents"),
    "sentences": (sentences.TASK, "sentence"),
    "rated pairs": (sentences.TASK, "rated"),
}
"""The task and the kind of text of each folder."""
_SUFFIXES = {"translation": ("en", "de"), "programs": ("nl", "lf"), "trees": ("trees",)}


@dataclass(frozen=True)
class Case:
    name: str  # tells it from others
    folder: str  # one of FOLDERS
    arch: str  # architecture
    flags: tuple[str, ...] = SMOOTHED  # the criterion, and options of model and task


def _cases(folder: str, arch: str, variants: dict[str, tuple[str, ...]], flags: tuple[str, ...] = SMOOTHED):
    return [
        Case(f"{arch} on {folder}" + (f", {name}" if name else ""), folder, arch, (*flags, *own))
        for name, own in variants.items()
    ]


_STOCK = tuple(map(str, STOCK_SIZES))
_DISTANCES = ("--distance-bias", "both")
_ALONE = ("--leaf-attention", "sentence")
_ROOTS = {name: ("--document-root", name) for name in ("first", "mean")}
CASES = [
    *_cases("translation", "transformer", {"": _STOCK, "other task": ("--task", "autocast_translation", *_STOCK)}),
    *_cases("translation", "lstm", {"": ()}),
    *_cases(
        "translation",
        "tree_transformer_tiny",
        {
            "": (),
            "ablations": ("--no-node-cross-attention", "--no-subtree-mask", "--no-phrase-bias"),
            "with leaves": ("--accumulation-denominator", "with-leaf"),
            "distances": _DISTANCES,
            "ancestors": ("--leaves-to-ancestors",),
            "distances, no mask": ("--distance-bias", "both", "--no-subtree-mask"),
        },
    ),
    *_cases("translation", "transformer_distance_bias_tiny", {"": ()}),
    *_cases("translation", "tree_transformer_tiny", {"cross-entropy": ()}, ("--criterion", "cross_entropy")),
    *_cases(
        "translation",
        "treeformer_tiny",
        {"": (), "low": ("--treeformer-height", "2"), "distances": ("--distance-bias", "linear")},
    ),
    *_cases(
        "translation",
        "source_encoder_transformer_tiny",
        {name: ("--source-encoder", name) for name in ("transformer", "tree", "treeformer", "pretrained")},
    ),
    *_cases("tree-to-tree", "transformer", {"": _STOCK}),
    *[
        case
        for folder in structural.MODALITIES
        for case in _cases(folder, "tree_positional_transformer_tiny", {"": ()})
    ],
    *_cases(
        "tree-to-tree",
        "tree_positional_transformer_tiny",
        {
            "parameter-free": ("--parameter-free-tree-positions",),
            "shallow": ("--tree-levels", "2"),
            "distances": ("--distance-bias", "linear"),
        },
    ),
    *_cases(
        "tree-to-tree",
        "source_encoder_transformer_tiny",
        {name: ("--source-encoder", name) for name in ("tree_lstm", "tree_positional")},
    ),
    *[
        case
        for folder in ("sequence-to-tree", "tree-to-tree")
        for case in _cases(folder, "tree_to_tree_lstm_tiny", {"": ()})
    ],
    *_cases(
        "insertion",
        "tree_insertion_transformer_tiny",
        {
            "": (),
            "three partial trees": ("--partial-states", "3"),
            "absolute positions": ("--absolute-positions", "--max-target-positions", "40"),
        },
        ("--criterion", "slot_kl_divergence"),
    ),
    *_cases(
        "insertion, parsed",
        "tree_insertion_transformer_tiny",
        {
            "tree encoder": ("--insertion-encoder", "tree"),
            "distances": ("--insertion-encoder", "tree", "--distance-bias", "both"),
        },
        ("--criterion", "slot_kl_divergence"),
    ),
    *_cases(
        "insertion",
        "sequence_insertion_transformer_tiny",
        {"": (), "uniform": ("--target-distribution", "uniform"), "three partial sequences": ("--partial-states", "3")},
        ("--criterion", "slot_kl_divergence"),
    ),
    *_cases("insertion", "insertion_left_to_right_tiny", {"": ()}),
    *_cases("insertion", "tree_gru_tiny", {"": ()}),
    *[
        case
        for arch in ("tree_transformer_classifier_tiny", "tree_lstm_classifier_tiny")
        for case in (*_cases("classes of nodes", arch, {"": ()}, CLASSES), *_cases("documents", arch, _ROOTS, CLASSES))
    ],
    *[
        case
        for arch in ("transformer_classifier_tiny", "lstm_classifier_tiny")
        for case in _cases("documents", arch, {"": ()}, CLASSES)
    ],
    *_cases("documents", "tree_transformer_classifier_tiny", {"distances": (*_DISTANCES, *_ALONE)}, CLASSES),
    *_cases("documents", "transformer_classifier_tiny", {"distances": ("--distance-bias", "linear")}, CLASSES),
    *_cases("sentences", "treeformer_classifier_tiny", {"distances": ("--distance-bias", "linear")}, CLASSES),
    *[
        case
        for arch in ("treeformer_classifier_tiny", "transformer_classifier_tiny", "lstm_classifier_tiny")
        for case in _cases("sentences", arch, {"": ()}, CLASSES)
    ],
    *_cases("rated pairs", "treeformer_classifier_tiny", {"": ()}, ("--criterion", "tree_regression")),
]

FIRST = list({case.arch: case for case in reversed(CASES)}.values())[::-1]  # the first case of each architecture


class Folders:
    sizes = (24, 4, 4)

    def __init__(self, base: Path):
        self.base = base
        self._made: dict[str, Path] = {}

    def first_examples(self, kind: str) -> list[tuple[str, ...]]:
        """Examples of a kind of text, by file, with which the training data begin."""
        return []

    def flags(self, name: str) -> tuple[object, ...]:
        return ()

    def __call__(self, name: str) -> Path:
        """The folder of a name of FOLDERS."""
        if name not in self._made:
            place = self.base / name.replace(", ", "-").replace(" ", "-")
            place.mkdir(parents=True)
            kind = FOLDERS[name][1]
            self._preprocess(name, kind, self._write(kind, place / "text"), place / "bin")
            self._made[name] = place / "bin"
        return self._made[name]

    def _write(self, kind: str, text: Path) -> Path:
        if kind == "translation":
            tiny_corpus.write_corpus(text, sizes=self.sizes)
        elif kind == "programs":
            tiny_programs.write_corpus(text, self.sizes)
        elif kind in sentences.FORMATS:
            sentences.write_rows(text, kind, self.sizes)
        else:
            tiny_classes.write_examples(text, kind, self.sizes)
        for suffix, lines in zip(_SUFFIXES.get(kind, ("tsv",)), zip(*self.first_examples(kind))):
            path = text / f"train.{suffix}"
            path.write_text("".join(f"{line}\n" for line in lines) + path.read_text("utf-8"), "utf-8")
        return text

    def _preprocess(self, name: str, kind: str, text: Path, data: Path) -> None:
        if kind == "translation":
            preprocess_trees(text, data)
        elif name in structural.MODALITIES:
            modality = structural.MODALITIES[name]
            texts = structural.texts_for(text, text.parent / "sides", modality)
            structural.preprocess(texts, data, modality, *self.flags(name))
        elif kind == "programs":
            parser = ("--tree-parser", "right-branching") if "parsed" in name else ()
            insertion.preprocess(text, data, *parser)
        elif kind in sentences.FORMATS:
            sentences.preprocess(text, kind, data)
        else:
            tiny_classes.preprocess(text, kind, data)

    def pretrained(self) -> Path:
        if "albert" not in self._made:
            words = [line.split()[0] for line in (self("translation") / "dict.en.txt").open(encoding="utf-8")]
            self._made["albert"] = save_albert(self.base / "albert", words)
        return self._made["albert"]


def without_dropout(model: nn.Module) -> nn.Module:
    """Sets all probabilities of dropout to zero, and leaves the model in training mode."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            is_own = name == "p" and "dropout" in type(module).__name__.lower()
            if isinstance(value, float) and (is_own or "dropout" in name):
                setattr(module, name, 0.0)
    return model.train()


class Step:
    """A training step of a case: the task, the model, the criterion and a batch, as ``fairseq-train`` makes them."""

    def __init__(self, case: Case, folders: Folders):
        flags = list(case.flags)
        if "pretrained" in flags:
            flags += ["--encoder-path", str(folders.pretrained())]
        parser = options.get_training_parser()
        own = () if "--task" in flags else FOLDERS[case.folder][0]
        command = [str(folders(case.folder)), *own, "--arch", case.arch, *flags, "--cpu", "--batch-size", "5"]
        self.cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, command))
        utils.set_torch_seed(1)
        self.task = tasks.setup_task(self.cfg.task)
        self.model = self.task.build_model(self.cfg.model).train()
        self.criterion = self.task.build_criterion(self.cfg.criterion)
        self.task.load_dataset("train", combine=False, epoch=1)
        self.batch = self.batches()[1]

    def batches(self) -> list[dict]:
        batches = self.task.get_batch_iterator(
            self.task.dataset("train"), max_sentences=5, max_positions=self.model.max_positions(), seed=1, epoch=1
        )
        return list(batches.next_epoch_itr(shuffle=False))

    def to(self, *target) -> Step:
        """Moves the model and the batch as fairseq's trainer does."""
        self.model.to(*target)
        self.batch = utils.apply_to_sample(lambda tensor: tensor.to(*target), self.batch)
        return self

    def in_precision(self, dtype) -> Step:
        """Casts the model and the batch as fairseq's trainer does."""
        self.model.to(dtype)
        self.batch = utils.apply_to_sample(
            lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor, self.batch
        )
        return self

    def without_dropout(self) -> Step:
        without_dropout(self.model)
        return self

    def __call__(self) -> Tensor:
        """Runs forward pass, loss and backward pass; returns the loss."""
        self.model.zero_grad()
        loss, _, _ = self.task.train_step(self.batch, self.model, self.criterion, self, 0)
        return loss

    @staticmethod
    def backward(loss: Tensor) -> None:
        """Stands for that of fairseq's optimizer."""
        loss.backward()

    def gradients(self) -> dict[str, Tensor]:
        return {name: weight.grad for name, weight in self.model.named_parameters() if weight.grad is not None}
