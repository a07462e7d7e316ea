"""Parts of the benchmark of insertion: both ways of decoding give the same trees; forms are made up without data."""

from __future__ import annotations

import pytest

from tests.benchmarks.insertion_corpus import write_domain
from tests.benchmarks.naive_insertion import grow
from tests.tree_insertion.insertion_pairs import Examples, build_insertion
from tests.tree_insertion.test_search import LABELS, Reluctant
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator


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


def test_a_folder_without_the_domain_gets_made_up_forms_of_its_size(tmp_path):
    assert "made-up" in write_domain(tmp_path / "text", tmp_path)
    sizes = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "text").iterdir()}
    wanted = {"train": 512, "valid": 128, "test": 161}
    assert sizes == {f"{split}.{language}": size for split, size in wanted.items() for language in ("nl", "lf")}
