"""The classifier over a chart: our own encoder, or a small ALBERT of random weights as the pretrained one."""

from __future__ import annotations

import math
import shutil

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from torch.nn import functional

from tests.classification.documents import Task
from tests.nn.pretrained import library, save_albert
from tests.nn.tiny import EOS, PAD, arguments, build, dictionary
from tests.treeformer.test_chart_summary import direct
from tree_fairseq.classification import treeformer_classifier  # noqa: F401  (registers the architectures)
from tree_fairseq.errors import InputError
from tree_fairseq.nn.pretrained import PretrainedEncoder, encoder_folder

ARCH = "treeformer_classifier_tiny"
WORDS = [f"s{k}" for k in range(12)]
SOURCE = dictionary(*WORDS)
FIRST = SOURCE.nspecial
# A sentence longer than the chart is high, a pair, a word alone.
TEXTS = [[4, 5, 6, 7, 8, 9, 4, EOS], [5, 6, EOS, 7, 8, 9, EOS], [10, EOS]]
LOW = ("--treeformer-height", "3")
AS_PUBLISHED = ("--no-chart-scale", "--treeformer-composition-init", "random")


def task(num_classes: int = 3) -> Task:
    return Task(source_dictionary=SOURCE, num_classes=num_classes)


def batch(texts=TEXTS, extra: int = 0) -> dict:
    width = max(map(len, texts)) + extra
    tokens = torch.tensor([text + [PAD] * (width - len(text)) for text in texts])
    return {"src_tokens": tokens, "src_lengths": torch.tensor(list(map(len, texts)))}


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    return save_albert(tmp_path_factory.mktemp("albert"), WORDS)


def classifier(kind: str, request, *flags: str):
    named = ("--encoder-name", str(request.getfixturevalue("albert"))) if kind == "pretrained" else ()
    return build(task(), *LOW, *named, *flags, arch=ARCH)


both = pytest.mark.parametrize("kind", ["scratch", "pretrained"])


@both
@pytest.mark.parametrize("flags", [(), AS_PUBLISHED, ("--no-chart",)])
def test_what_is_read_is_the_first_state_and_the_top_row(kind, flags, request):
    model = classifier(kind, request, *flags).double()
    inputs = batch()
    if model.log_scale is not None:
        torch.nn.init.normal_(model.log_scale)
    assert (model.log_scale is None) == (flags in (AS_PUBLISHED, ("--no-chart",)))
    if flags == AS_PUBLISHED:
        assert model.summary.chart.weight is not None
    with torch.no_grad():
        states = model.encoder(**inputs)["encoder_out"][0]
        expected = states[0]
        if model.summary is not None:
            is_word = inputs["src_tokens"] >= FIRST
            phrases = direct(model.summary, states, functional.pad(~is_word, (1, 0), value=True))
            factors = [1.0] * phrases.size(1) if model.log_scale is None else [math.exp(e) for e in model.log_scale]
            expected = expected + phrases * torch.tensor(factors, dtype=torch.float64)
        output = model(**inputs)
        torch.testing.assert_close(output["logits"], model.readout.linear(expected))
    assert output["logits"].shape == (3, 3) and (model.summary is None) == (flags == ("--no-chart",))


@both
def test_an_example_alone_equals_the_example_in_a_batch(kind, request):
    model = classifier(kind, request).double()
    together = model(**batch(extra=2))["logits"]
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(together[row], model(**batch([text]))["logits"][0])


@both
def test_every_weight_learns(kind, request):
    model = classifier(kind, request).train()
    model(**batch())["logits"].square().sum().backward()
    silent = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not silent


def test_the_baseline_has_no_chart_s_weights():
    with_chart, without = (build(task(), *flags, arch=ARCH) for flags in ((), ("--no-chart",)))
    extra = {
        name: weight.numel() for name, weight in with_chart.state_dict().items() if name not in without.state_dict()
    }
    assert extra == {"summary.chart.deviation": 64 * 128, "summary.chart.query": 64, "log_scale": 64}


def test_a_model_with_a_chart_starts_close_to_one_without():
    without = build(task(), "--no-chart", arch=ARCH, seed=3)
    after = torch.rand(1)
    distances = {}
    for flags in [(), ("--no-chart-scale",)]:
        model = build(task(), *flags, arch=ARCH, seed=3)
        assert torch.equal(torch.rand(1), after)  # so dropout is the same, too
        distances[flags] = (model(**batch())["logits"] - without(**batch())["logits"]).norm()
    start, full = distances.values()
    assert 0 < start < 0.1 * full


def test_a_checkpoint_from_before_the_factors_computes_what_it_did():
    before = build(task(), "--no-chart-scale", arch=ARCH, seed=5)
    after = build(task(), arch=ARCH)
    after.load_state_dict(before.state_dict())
    torch.testing.assert_close(after(**batch())["logits"], before(**batch())["logits"], rtol=0, atol=0)


def test_a_chart_without_phrases_is_refused():
    with pytest.raises(InputError, match="--treeformer-height 1 makes a chart of tokens without phrases"):
        build(task(), "--treeformer-height", "1", arch=ARCH)


def test_the_start_has_a_position_of_its_own():
    model = build(task(), "--encoder-learned-pos", arch=ARCH, seed=1)
    limit = model.max_positions()
    assert model(**batch([[FIRST] * (limit - 1) + [EOS]]))["logits"].isfinite().all()


# Pretrained


def test_dropout_is_that_of_the_flags(albert):
    config = build(
        task(), "--encoder-name", str(albert), "--dropout", "0.15", "--attention-dropout", "0.04", arch=ARCH
    ).encoder.model.config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.15, 0.04)
    config = build(task(), "--encoder-name", str(albert), arch=ARCH).encoder.model.config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0, 0)


def test_a_checkpoint_needs_no_folder(albert, tmp_path):
    copy = tmp_path / "encoder"
    shutil.copytree(albert, copy)
    args = arguments(ARCH, "--encoder-name", str(copy))
    model = ARCH_MODEL_REGISTRY[ARCH].build_model(args, task()).eval()
    shutil.rmtree(copy)
    again = ARCH_MODEL_REGISTRY[ARCH].build_model(args, task()).eval()
    again.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(again(**batch())["logits"], model(**batch())["logits"], rtol=0, atol=0)


def test_names_are_fetched_from_the_hub_without_pickles(albert, monkeypatch):
    library()
    import huggingface_hub

    asked = {}
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda **options: asked.update(options) or str(albert))
    assert PretrainedEncoder.from_folder(SOURCE, encoder_folder("albert-base-v2")).width == 16
    assert asked["repo_id"] == "albert-base-v2" and "*.safetensors" in asked["allow_patterns"]
    assert not any(pattern.endswith((".bin", ".pt", "*")) for pattern in asked["allow_patterns"])


def test_names_that_the_hub_does_not_have(monkeypatch):
    library()
    import huggingface_hub

    def fail(**options):
        raise OSError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(
        InputError,
        match="no-such-encoder is not a folder, and no encoder of that name can be fetched from the hub: no route",
    ):
        encoder_folder("no-such-encoder")
