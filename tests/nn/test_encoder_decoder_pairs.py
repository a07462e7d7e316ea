"""Every registered encoder trains ten updates and generates with every decoder that its modality allows."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from tests.end_to_end.commands import run
from tests.end_to_end.tiny_programs import write_corpus
from tests.nn.pretrained import save_albert
from tests.nn.tiny import arguments
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn import encoders
from tree_fairseq.nn.extended_transformer import SourceEncoderTransformer
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence

PARSED = ("--tree-parser", "right-branching", "--tree-sides", "source")
UPDATES = 10


class Decoder(NamedTuple):
    """Architecture, option that chooses the encoder, task, flags of preprocessing, and whether it fills slots."""

    arch: str
    option: str
    task: str
    preprocessing: tuple[str, ...]
    fills_slots: bool = False


DECODERS = {
    "stock": Decoder("source_encoder_transformer_tiny", "--source-encoder", "tree_translation", ()),
    "structural": Decoder(
        "tree_positional_transformer_tiny",
        "--source-encoder",
        "structural_translation",
        ("--task", "structural_translation", "--target-modality", "tree"),
    ),
    "tree insertion": Decoder(
        "tree_insertion_transformer_tiny", "--insertion-encoder", "tree_insertion", ("--task", "tree_insertion"), True
    ),
    "left to right": Decoder(
        "insertion_left_to_right_tiny", "--insertion-encoder", "tree_insertion", ("--task", "tree_insertion")
    ),
    "sequence insertion": Decoder(
        "sequence_insertion_transformer_tiny",
        "--insertion-encoder",
        "tree_insertion",
        ("--task", "tree_insertion"),
        True,
    ),
    "tree gru": Decoder("tree_gru_tiny", "--insertion-encoder", "tree_insertion", ("--task", "tree_insertion")),
}
ENCODERS = ("transformer", "tree", "treeformer", "pretrained")
OF_SYMBOLS = ("tree_positional", "tree_lstm")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("programs"), (24, 4, 4))


@pytest.fixture(scope="module")
def folder_of(corpus, tmp_path_factory):
    made: dict[tuple, Path] = {}

    def folder(source: str, target: str, *options: str) -> Path:
        key = (source, target, *options)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("data") / "bin"
            files = [part for split in ("train", "valid") for part in (f"--{split}pref", corpus / split)]
            run("preprocess", "-s", source, "-t", target, *files, "--destdir", made[key], *options)
        return made[key]

    return folder


@pytest.fixture(scope="module")
def albert(corpus, tmp_path_factory):
    words = sorted(set((corpus / "train.nl").read_text(encoding="utf-8").split()))
    return save_albert(tmp_path_factory.mktemp("albert"), words)


def task_over(data: Path, name: str, source: str, target: str):
    options = {"source_lang": source, "target_lang": target, "train_subset": "train", "dataset_impl": None, "seed": 1}
    config = TASK_DATACLASS_REGISTRY[name](data=str(data), required_seq_len_multiple=1)
    for option, value in options.items():
        setattr(config, option, value)
    return TASK_REGISTRY[name].setup_task(config)


def losses_of_updates(task, model, criterion, batch: dict) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    optimizer.backward = lambda loss: loss.backward()
    losses = []
    for update in range(UPDATES):
        optimizer.zero_grad()
        loss, _, _ = task.train_step(batch, model, criterion, optimizer, update)
        losses.append(loss.item())
        optimizer.step()
    return losses


def trains_and_generates(task, decoder: Decoder, *flags: str) -> None:
    torch.manual_seed(1)
    model = task.build_model(arguments(decoder.arch, "--dropout", "0", *flags))
    criterion = SlotKlDivergence(task) if decoder.fills_slots else LabelSmoothedCrossEntropyCriterion(task, True, 0.1)
    task.load_dataset("train")
    [batch, *_] = task.get_batch_iterator(task.dataset("train"), max_sentences=8).next_epoch_itr(shuffle=False)
    losses = losses_of_updates(task, model, criterion, batch)
    assert all(map(math.isfinite, losses)) and losses[-1] < 0.9 * losses[0], losses
    model.eval()
    generator = task.build_generator([model], Namespace(beam=2, max_len_b=20))
    for ranked in task.inference_step(generator, [model], batch):
        assert ranked and all(math.isfinite(float(hypothesis["score"])) for hypothesis in ranked)
        task.target_dictionary.string(ranked[0]["tokens"])


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "decoder, more",
    [
        *((decoder, ()) for decoder in DECODERS),
        *((decoder, ("--copy-source",)) for decoder in ("stock", "structural", "tree insertion", "left to right")),
    ],
)
def test_encoders_of_constituency_trees_with_all_decoders(folder_of, albert, encoder, decoder, more):
    decoder = DECODERS[decoder]
    flags = [decoder.option, encoder, *(("--encoder-path", str(albert)) if encoder == "pretrained" else ())]
    task = task_over(folder_of("nl", "lf", *PARSED, *decoder.preprocessing), decoder.task, "nl", "lf")
    trains_and_generates(task, decoder, *flags, *more)


@pytest.mark.parametrize("decoder", ["sequence insertion", "tree gru"])
def test_decoders_without_a_pointer_refuse_to_copy(folder_of, decoder):
    decoder = DECODERS[decoder]
    task = task_over(folder_of("nl", "lf", *decoder.preprocessing), decoder.task, "nl", "lf")
    with pytest.raises(InputError, match=f"--copy-source does not work with --arch {decoder.arch}"):
        task.build_model(arguments(decoder.arch, "--copy-source"))


@pytest.mark.parametrize("encoder", ["treeformer", "tree_positional"])
def test_self_attention_that_would_read_the_memory_is_refused(folder_of, encoder):
    decoder = DECODERS["structural"]
    task = task_over(folder_of("nl", "lf", *decoder.preprocessing), decoder.task, "nl", "lf")
    given = (decoder.arch, "--cross-self-attention", decoder.option)
    with pytest.raises(InputError, match="--cross-self-attention does not work with"):
        task.build_model(arguments(*given, encoder))
    assert task.build_model(arguments(*given, "transformer")).decoder.cross_self_attention


@pytest.mark.parametrize("encoder", ["transformer", "treeformer", "tree_positional", "tree_lstm"])
@pytest.mark.parametrize("decoder", ["stock", "structural"])
@pytest.mark.parametrize("more", [(), ("--copy-source",)])
def test_encoders_of_symbol_trees_with_all_decoders(folder_of, encoder, decoder, more):
    """To a sequence, or, from parses that become symbol trees, to symbol trees."""
    structural = ("--task", "structural_translation")
    if decoder == "stock":
        langs, options = ("lf", "nl"), (*structural, "--source-modality", "tree")
    else:
        options = (*structural, *PARSED, "--source-modality", "constituency", "--target-modality", "tree")
        langs = ("nl", "lf")
    task = task_over(folder_of(*langs, *options), "structural_translation", *langs)
    trains_and_generates(task, DECODERS[decoder], DECODERS[decoder].option, encoder, *more)


def test_the_table_of_encoders_is_complete():
    assert set(encoders.ENCODERS) == {*ENCODERS, *OF_SYMBOLS}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("source_encoder", "backward", "^--source-encoder cannot be backward.*treeformer.*--user-dir"),
        ("vertical_embedding", "leafs", "^--vertical-embedding cannot be leafs. Give one of leaf-distance, root-depth"),
    ],
)
def test_values_that_no_parser_of_flags_has_seen_are_checked(name, value, message):
    """Those of hydra, and of a checkpoint whose encoder is registered elsewhere."""
    args = arguments("source_encoder_transformer_tiny")
    setattr(args, name, value)
    with pytest.raises(InputError, match=message):
        SourceEncoderTransformer.build_model(args, None)


@pytest.mark.parametrize("encoder", OF_SYMBOLS)
def test_encoders_of_symbol_trees_do_not_ignore_parses(folder_of, encoder):
    decoder = DECODERS["stock"]
    task = task_over(folder_of("nl", "lf", *PARSED, *decoder.preprocessing), decoder.task, "nl", "lf")
    with pytest.raises(InputError, match="would ignore the parses of the source. Give 'tree'"):
        task.build_model(arguments(decoder.arch, decoder.option, encoder))


@pytest.mark.parametrize("decoder", list(DECODERS))
def test_an_encoder_of_constituents_needs_trees(folder_of, decoder):
    decoder = DECODERS[decoder]
    if decoder.task == "tree_translation":
        options = ("--task", "structural_translation", "--source-modality", "tree")
        task = task_over(folder_of("lf", "nl", *options), "structural_translation", "lf", "nl")
    else:
        task = task_over(folder_of("nl", "lf", *decoder.preprocessing), decoder.task, "nl", "lf")
    with pytest.raises(MissingTreesError, match="the encoder 'tree' reads trees.*--tree-parser"):
        task.build_model(arguments(decoder.arch, decoder.option, "tree"))


def test_insertion_refuses_sources_of_symbol_trees(folder_of):
    with pytest.raises(InputError, match="--source-modality"):
        folder_of("nl", "lf", "--task", "tree_insertion", *PARSED, "--source-modality", "constituency")


@pytest.mark.parametrize(
    "encoder, flags",
    [
        ("transformer", ("--treeformer-height", "3")),
        ("transformer", ("--no-subtree-mask",)),
        ("tree", ("--treeformer-height", "4")),
        ("treeformer", ("--no-node-cross-attention",)),
    ],
)
@pytest.mark.parametrize("decoder", ["stock", "tree insertion"])
def test_flags_of_other_encoders_are_refused(folder_of, decoder, encoder, flags):
    decoder = DECODERS[decoder]
    task = task_over(folder_of("nl", "lf", *PARSED, *decoder.preprocessing), decoder.task, "nl", "lf")
    given = arguments(decoder.arch, decoder.option, encoder, *flags)
    with pytest.raises(InputError, match=f"{flags[0]} does not work with {decoder.option} {encoder}"):
        task.build_model(given)
    assert task.build_model(given, from_checkpoint=True)  # which may have the defaults of an earlier version
