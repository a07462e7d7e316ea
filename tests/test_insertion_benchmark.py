"""Parts of the benchmark of insertion: both ways of decoding give the same trees; made-up forms resemble a domain."""

from __future__ import annotations

import statistics

import pytest

from tests.benchmarks.insertion_corpus import MADE_UP_SIZES, made_up, write_domain
from tests.benchmarks.naive_insertion import grow
from tests.tree_insertion.insertion_pairs import Examples, build_insertion
from tests.tree_insertion.test_search import LABELS, Reluctant
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.trees.notations import notation_named

NOTATION = notation_named("bracket")


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


def test_made_up_forms_have_the_domains_size_and_follow_from_their_questions():
    splits = made_up()
    assert {split: len(examples) for split, examples in splits.items()} == MADE_UP_SIZES
    assert splits == made_up() != made_up(seed=1)
    forms: dict[str, str] = {}
    for examples in splits.values():
        for example in examples:
            assert NOTATION.write(NOTATION.read(example.target)) == example.target
            assert forms.setdefault(example.source, example.target) == example.target
    # 18.0 nodes on average in the domain.
    assert (
        15 < statistics.fmean(len(list(NOTATION.read(example.target).preorder())) for example in splits["train"]) < 21
    )


def test_a_folder_without_the_domain_gets_made_up_forms(tmp_path):
    assert "made-up" in write_domain(tmp_path / "text", tmp_path, limit=3)
    assert {path.name for path in (tmp_path / "text").iterdir()} == {
        f"{split}.{lang}" for split in MADE_UP_SIZES for lang in ("nl", "lf")
    }
    assert len((tmp_path / "text/train.lf").read_text().splitlines()) == 3
