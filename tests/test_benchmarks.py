"""All benchmarks run and end in a line of JSON; the implementations that they compare compute the same."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
import torch

from tests.benchmarks import gathered_chart, records
from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.accumulation import descendants_first
from tests.benchmarks.classification_models import Task, build
from tests.benchmarks.direct_positions import DirectPositions
from tests.benchmarks.direct_tensor import DirectAccumulation
from tests.benchmarks.documents import Steps
from tests.benchmarks.figures import Figure, byte_ratio, markdown, time_ratio
from tests.benchmarks.measuring import Timing, peak_bytes
from tests.benchmarks.naive_insertion import grow
from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.reporting import Report
from tests.benchmarks.tree_positions import random_places
from tests.tree_insertion.insertion_pairs import Examples, build_insertion
from tests.tree_insertion.test_search import LABELS, Reluctant
from tree_fairseq.classification.dataset import SentenceTree, collate_sentences
from tree_fairseq.nn.tree_batch import NodeArrays, TreeBatch, collate_trees
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, branch_paths
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import TreeStructure
from tree_fairseq.treeformer.chart import Chart, ChartConfig

FIGURES = {
    "accumulation": ["speedup", "memory_saving"],
    "tree_transformer_step": ["ratio"],
    "tree_transformer_generate": ["ratio"],
    "structural_beam": ["ratio", "long_sources", "grammar", "validity"],
    "tree_positions": ["speedup", "memory_saving"],
    "classification_step": ["ratio", "speedup_tree_lstm"],
    "documents": ["memory_growth", "memory_saving", "speedup"],
    "treeformer": ["ratio", "speedup_naive", "speedup_vectorised", "memory_ratio"],
    "insertion": ["steps", "speedup_ltr", "speedup_ltr_batch_1", "speedup_naive", "oracle_ms", "step_ratio"],
    "treeformer_generate": ["ratio"],
    "preprocess": ["binarize_ratio", "parse_ratio", "cache_speedup"],
    "corpus_scale": [
        *(
            f"{role}_growth_{way}"
            for way in ("brackets", "parser", "warm_parse_cache")
            for role in ("parent", "worker")
        ),
        "start_extra_seconds",
        "loader_memory_ratio",
    ],
    "scale": ["operations_ratio"],
    "source_code": ["python", "sql", "java", "csharp", "javascript", "sqlglot"],
    "loading": ["share_of_step"],
    "growth": [
        "tree_transformer_growth", "tree_transformer_time", "tree_transformer_memory", "treeformer_growth",
        "tree_positions_growth", "tree_lstm_growth",
    ],
    "memory": ["tree_transformer", "classifier", "tree_positional", "treeformer", "insertion"],
    "import_time": ["seconds"],
}  # fmt: skip


@pytest.fixture
def same_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "corpus_scale"])  # a minute even if quick
def test_each_benchmark_ends_in_a_line_of_json_with_its_figures(name, capsys, same_threads, tmp_path):
    if name == "preprocess":
        pytest.importorskip("stanza", reason="Stanza is not installed")
    assert main([name, "--quick", "--threads", "1", "--output", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    last = json.loads(lines[-1])
    assert list(last) == ["benchmark", *FIGURES[name]]
    assert last.pop("benchmark") == name
    assert all(math.isfinite(value) and value > 0 for value in last.values())
    assert sum(line.startswith("{") for line in lines) == 1
    assert any(line.startswith("--") for line in lines), "no table is printed"
    (record,) = records.load(tmp_path / "benchmarks.json").values()
    assert [figure["figure"] for figure in record["figures"]] == FIGURES[name]
    assert record["quick"] and all(figure["what"] for figure in record["figures"])


def test_names_are_listed_if_none_is_given(capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)


def test_the_paper_tensor_equals_the_closed_form():
    torch.manual_seed(0)
    generator = random.Random(0)
    trees = [descendants_first(random_tree(generator, 12, nodes, 20)) for nodes in (8, 5, 11)]
    batch = TreeBatch.from_net_input(collate_trees(trees, 1), torch.full((3, 12), 4), 1)
    module = HierarchicalAccumulation(16, 2, AccumulationConfig()).double()
    leaves = torch.randn(12, 3, 16, dtype=torch.double, requires_grad=True)
    values = torch.randn(3, 2, 23, 8, dtype=torch.double, requires_grad=True)
    structure = TreeStructure.build(batch, count_leaf=True, mask_subtrees=True, dtype=torch.double)
    closed = module(leaves, values, structure)
    direct = DirectAccumulation(module, batch, torch.double)(leaves, values)
    real = torch.cat([batch.is_leaf, batch.is_node], dim=1)[:, None, :, None]
    torch.testing.assert_close(direct * real, closed * real, rtol=1e-10, atol=1e-12)
    inputs = [leaves, values, *module.parameters()]
    probe = torch.randn_like(closed) * real
    for mine, theirs in zip(torch.autograd.grad(direct, inputs, probe), torch.autograd.grad(closed, inputs, probe)):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_direct_positions_equal_sums_of_rows_of_the_table():
    torch.manual_seed(0)
    places = [random_places(random.Random(seed), 12) for seed in range(3)]
    parents, branches = (torch.tensor(rows) for rows in zip(*places))
    module = TreePositions(2, 24, TreePositionsConfig(tree_levels=8, tree_position_dim=64))
    paths = branch_paths(parents, branches, 8)
    torch.testing.assert_close(DirectPositions(module, paths)(), module.encode(paths))


def test_a_document_as_one_forest_gets_the_same_logits_as_its_rows():
    steps = Steps(Task(words=30))
    logits = {}
    for name, work in steps.works(3).items():
        (batch,), model = work.args, work.func.model.double().eval()
        logits[name] = model(**batch["net_input"])["logits"]
    torch.testing.assert_close(logits["dense"], logits["document"])
    assert not torch.allclose(logits["sentence"], logits["document"])


@pytest.mark.parametrize("project_once", [False, True])
def test_the_gathered_chart_equals_the_chart(project_once):
    torch.manual_seed(0)
    chart = Chart(16, ChartConfig(treeformer_height=4))
    states = torch.randn(6, 2, 16)
    cells = chart.cells(torch.zeros(2, 6, dtype=torch.bool))
    gathered = gathered_chart.encode(states, chart.composition(), chart.query[0], 4, project_once)  # B x C / B x D
    torch.testing.assert_close(gathered.transpose(0, 1), chart(states, cells))


NO_NODES = NodeArrays(*(np.empty(0, np.int32) for _ in range(4)))


@pytest.mark.parametrize("document_root", ["first", "mean"])
def test_the_recursive_tree_lstm_equals_the_one_batched_by_height(document_root):
    torch.manual_seed(0)
    generator, lengths = random.Random(0), (7, 1, 4, 2)
    rows = [SentenceTree(0, n, random_tree(generator, n, n // 2, 20) if n > 1 else NO_NODES) for n in lengths]
    documents = [(torch.randint(4, 30, (n,)), [row]) for n, row in zip(lengths, rows)]
    trees = collate_sentences(documents, 1, 1)
    trees.update(document=torch.tensor([0, 0, 0, 1]), num_documents=2)
    task = Task(words=30)
    task.cfg.document_root = document_root
    models = {name: build(name, task).double().eval() for name in ("tree_lstm", "recursive")}
    outputs = {name: model.encoder(trees) for name, model in models.items()}
    for mine, theirs in zip(outputs["recursive"], outputs["tree_lstm"]):
        torch.testing.assert_close(mine, theirs)
    gradients = []
    for name, model in models.items():
        sum(probe_of(states) for states in outputs[name]).backward()
        gradients.append([parameter.grad for parameter in model.encoder.parameters()])
    for mine, theirs in zip(*gradients):
        torch.testing.assert_close(mine, theirs)


def probe_of(states: torch.Tensor) -> torch.Tensor:
    return (states * torch.linspace(-1, 1, states.numel(), dtype=states.dtype).view_as(states)).sum()


@pytest.mark.parametrize(
    "limits",
    [InsertionLimits(), InsertionLimits(steps=3), InsertionLimits(nodes=9)],
    ids=["no limit", "steps", "nodes"],
)
@pytest.mark.parametrize("seed", range(3))
def test_decoding_one_sentence_at_a_time_gives_the_same_trees(limits, seed):
    model = Reluctant(build_insertion(seed=seed).double())
    net_input = Examples(*[1] * 12, seed=seed).net_input()
    found = [
        hypothesis
        for (hypothesis,) in InsertionGenerator([model], LABELS, limits).generate([model], {"net_input": net_input})
    ]
    expected = grow(model, net_input, LABELS, limits.steps, limits.nodes)
    assert [(each["labels"].tolist(), each["parents"].tolist(), each["steps"]) for each in found] == expected
    assert max(tree.steps for tree in expected) > 1
    if limits == InsertionLimits():  # within limits all sentences may finish together
        assert len({tree.steps for tree in expected}) > 1


def test_peak_memory_counts_tensors_that_exist_at_the_same_time():
    def one_after_the_other():
        for _ in range(3):
            torch.zeros(1_000_000)

    def together():
        kept = [torch.zeros(1_000_000) for _ in range(3)]
        return kept.clear()

    assert 4e6 <= peak_bytes(one_after_the_other) < 5e6
    assert 12e6 <= peak_bytes(together) < 13e6


def test_a_ratio_of_times_has_the_spread_of_its_pairs():
    ours, peer = Timing((1.0, 2.0, 4.0), (1.0, 1.0, 1.0)), Timing((2.0, 2.0, 2.0), (3.0, 3.0, 3.0))
    slower, faster = time_ratio("x", ours, peer, 1.5, at_most=True), time_ratio("x", ours, peer, 1.5)
    assert (slower.value, slower.spread, slower.met) == (1, (0.5, 2), True)
    assert (faster.value, faster.spread, faster.met) == (1, (0.5, 2), False)
    assert time_ratio("x", ours, peer, 1, processor=True).value == 3
    assert (slower.ours, slower.peer) == ("2000 ms", "2000 ms")
    assert byte_ratio("x", 2e6, 8e6, 3).value == 4 and byte_ratio("x", 2e6, 8e6, 3, at_most=True).value == 0.25


def test_records_keep_figures_and_become_a_table(tmp_path):
    path = tmp_path / "out" / "benchmarks.json"
    figures = [Figure("speed", 2.0, 3, what="times as fast", ours="1 ms", peer="2 ms", spread=(1.5, 2.5))]
    for value in (1, 2):
        records.add(path, Report("first", f"sizes {value}", figures), quick=False)
        records.add(path, Report("second", "sizes", [Figure("count", value, None)]), quick=False)
    found = records.load(path)
    assert list(found) == ["first", "second"] and found["first"]["setting"] == "sizes 2"
    assert Figure.of_record(found["first"]["figures"][0]) == figures[0]
    table = records.table(found)
    assert table[1:] == [
        ("first: times as fast", "1 ms", "2 ms", "2 (1.5 to 2.5)", "at least 3", "missed"),
        ("second: count", "", "", "2", "", ""),
    ]
    assert "| **missed** |" in markdown(table) and markdown(table).count("\n") == 4


def test_quick_figures_do_not_reach_the_page(tmp_path):
    path = tmp_path / "benchmarks.json"
    records.add(path, Report("accumulation", "sizes", [Figure("speedup", 1.0, 6)]), quick=True)
    with pytest.raises(ValueError, match="quick runs are not for the page: accumulation"):
        records.publish(path, BENCHMARKS)


def test_the_page_has_the_table_of_its_records():
    known = records.load(records.PAGE_RECORDS)
    assert set(known) <= set(BENCHMARKS) and not any(record["quick"] for record in known.values())
    page = records.PAGE.read_text(encoding="utf-8")
    assert records.with_table(page, known) == page, "run: python -m tests.benchmarks --page"
