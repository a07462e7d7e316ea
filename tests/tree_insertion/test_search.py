"""Trees grown by insertions, a batch at a time, against one sentence at a time with everything done anew."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch import nn

from tests.tree_insertion.insertion_pairs import LABELS as LABEL_COUNT
from tests.tree_insertion.insertion_pairs import Examples, build_insertion
from tests.tree_insertion.slot_batches import DICTIONARY, label_dictionary
from tests.tree_positional.slot_tables import SlotTable, decode_alone
from tests.tree_positional.table_models import batch
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_insertion.slots import KINDS, slot_mask

SOURCES = [[4, 5], [7], [5, 6, 7], [9, 8, 4, 4, 5], [6], [4, 9], [5, 5], [8, 7, 6]]


def alone(sample, row):
    """One sentence of a batch, without padding."""
    net_input = sample["net_input"]
    length = int(net_input["src_lengths"][row])
    return {
        "src_tokens": net_input["src_tokens"][row : row + 1, -length:],
        "src_lengths": net_input["src_lengths"][row : row + 1],
    }


LABELS = label_dictionary(*(f"t{k}" for k in range(LABEL_COUNT)))
ENSEMBLES = {
    "one": [SlotTable(1)],
    "large trees": [SlotTable(2, keep=0.3)],
    "several": [SlotTable(3), SlotTable(4), SlotTable(5)],
    "deleting": [SlotTable(6, deletes=0.2)],
    "several deleting": [SlotTable(7, deletes=0.2), SlotTable(8, deletes=0.4)],
    "one of them deleting": [SlotTable(7, deletes=0.5), SlotTable(8)],
}


@pytest.mark.parametrize("name", ENSEMBLES)
@pytest.mark.parametrize(
    "limits",
    [InsertionLimits(), InsertionLimits(steps=3), InsertionLimits(nodes=9)],
    ids=["no limit", "steps", "nodes"],
)
def test_a_batch_is_its_sentences_one_by_one(name, limits):
    models, sample = ENSEMBLES[name], batch(SOURCES)
    found = InsertionGenerator(models, DICTIONARY, limits, keep_steps=True).generate(models, sample)
    assert len(found) == len(SOURCES)
    differing = set()
    for row, (hypothesis,) in enumerate(found):
        expected = decode_alone(models, alone(sample, row), limits.steps, limits.nodes)
        assert (hypothesis["labels"].tolist(), hypothesis["parents"].tolist()) == (expected.labels, expected.parents)
        assert hypothesis["steps"] == expected.steps == len(hypothesis["trace"])
        assert hypothesis["score"] == pytest.approx(expected.score, abs=1e-5)
        tokens = hypothesis["tokens"]
        assert tokens.tolist() == DICTIONARY.sequence(expected.labels, expected.parents).tolist()
        is_label = (tokens != DICTIONARY.open) & (tokens != DICTIONARY.close)
        positional = hypothesis["positional_scores"]
        assert positional[is_label].tolist() == pytest.approx(
            expected.scores[len(expected.scores) - int(is_label.sum()) :], abs=1e-5
        )
        assert not positional[~is_label].any() and len(positional) == len(tokens)
        history = [entry["tokens"].tolist() for entry in hypothesis["history"]]
        assert history == [DICTIONARY.sequence(*tree).tolist() for tree in expected.trees]
        differing.add(expected.steps)
    assert len(differing) > 1 or limits.steps == 3, (
        "all sentences finish together: nothing is tested of rows that leave"
    )


@pytest.mark.parametrize("name", ENSEMBLES)
def test_every_step_of_every_sentence_is_a_tree(name):
    models = ENSEMBLES[name]
    for (hypothesis,) in InsertionGenerator(models, DICTIONARY, keep_steps=True).generate(models, batch(SOURCES)):
        for step in hypothesis["trace"]:
            assert step.labels[0] == DICTIONARY.root and step.parents[0] == -1 and not step.is_deleted[0]
            path = []
            for node, parent in enumerate(step.parents):
                while path and path[-1] != parent:
                    path.pop()
                assert path or node == 0, "not in preorder"
                path.append(node)
            assert set(step.labels[1:]) <= set(DICTIONARY.label_ids.tolist())
            slot_mask(np.array(step.parents))
        assert not any(step.is_new[0] for step in hypothesis["trace"])


def test_steps_say_what_is_new_and_what_goes():
    models = ENSEMBLES["deleting"]
    went = 0
    for (hypothesis,) in InsertionGenerator(models, DICTIONARY, keep_steps=True).generate(models, batch(SOURCES)):
        size = 1
        for step in hypothesis["trace"]:
            assert len(step.labels) == size + sum(step.is_new)
            assert not any(new and deleted for new, deleted in zip(step.is_new, step.is_deleted))
            size = len(step.labels) - sum(step.is_deleted)
            went += sum(step.is_deleted)
        assert size == len(hypothesis["labels"])
    assert went


def test_order_and_company_do_not_matter():
    models = ENSEMBLES["one"]
    generator = InsertionGenerator(models, DICTIONARY)
    order = [3, 0, 7, 2, 1, 6, 5, 4]
    plain, shuffled = (
        generator.generate(models, batch(sources)) for sources in (SOURCES, [SOURCES[place] for place in order])
    )
    for place, (hypothesis,) in zip(order, shuffled):
        assert hypothesis["tokens"].tolist() == plain[place][0]["tokens"].tolist()
        assert hypothesis["score"] == pytest.approx(plain[place][0]["score"], abs=1e-6)


def test_sums_instead_of_means():
    models, sample = ENSEMBLES["one"], batch(SOURCES)
    mean, total = (
        InsertionGenerator(models, DICTIONARY, normalize_scores=flag).generate(models, sample)[0][0]
        for flag in (True, False)
    )
    answers = total["score"] / mean["score"]
    assert answers == pytest.approx(round(answers), abs=1e-3) and answers > mean["steps"]


def test_limits_are_counted_and_told(caplog):
    models = [SlotTable(2, keep=0.0)]
    generator = InsertionGenerator(models, DICTIONARY, InsertionLimits(steps=4, nodes=20))
    with caplog.at_level(logging.WARNING, "tree_fairseq.tree_insertion.parallel_search"):
        found = [hypothesis for (hypothesis,) in generator.generate(models, batch(SOURCES))]
    assert generator.counts["trees"] == len(SOURCES) and generator.counts["nodes"] > 0
    complete = sum(hypothesis["is_complete"] for hypothesis in found)
    assert complete + sum(generator.counts[name] for name in ("nodes", "steps", "roots")) == len(SOURCES)
    assert all(len(hypothesis["labels"]) <= 21 and hypothesis["steps"] <= 4 for hypothesis in found)
    assert "--max-nodes 20" in caplog.text and f"of {len(SOURCES)} trees" in caplog.text
    generator.generate(models, batch(SOURCES))
    assert generator.counts["trees"] == 2 * len(SOURCES)


class NeverInserts(SlotTable):
    """Leaves all slots as they are."""

    def decode(self, memory, partial_tree):
        output = super().decode(memory, partial_tree)
        output["logits"][:, DICTIONARY.keep] = 100.0
        return output


def test_a_model_that_never_inserts_gives_the_root(caplog):
    models = [NeverInserts()]
    with caplog.at_level(logging.WARNING):
        ((hypothesis,),) = InsertionGenerator(models, DICTIONARY).generate(models, batch([[4, 5]]))
    assert hypothesis["tokens"].tolist() == [DICTIONARY.root] and hypothesis["steps"] == 1
    assert not hypothesis["is_complete"] and "not one tree under their root" in caplog.text


def test_what_cannot_be_asked_for():
    generator = InsertionGenerator(ENSEMBLES["one"], DICTIONARY)
    with pytest.raises(StructuralSearchError, match="--prefix-size"):
        generator.generate([], batch(SOURCES), prefix_tokens=torch.zeros(1, 1))
    with pytest.raises(StructuralSearchError, match="--constraints"):
        generator.generate([], batch(SOURCES), constraints=torch.zeros(1, 1))
    for limits in ({"steps": 0}, {"nodes": 0}):
        with pytest.raises(StructuralSearchError, match="at least 1"):
            InsertionLimits(**limits)


class Reluctant(nn.Module):
    """An untrained model, the less inclined to insert the more nodes there are.

    Args:
        model: of insertions
    """

    def __init__(self, model):
        super().__init__()
        self.model, self.encode = model, model.encode
        with torch.no_grad():
            model.decoder.output_projection.weight.mul_(6)

    def decode(self, memory, partial_tree):
        output = self.model.decode(memory, partial_tree)
        labels = partial_tree["labels"]
        count = (labels != LABELS.pad()).sum(1)[output["slot"] // (KINDS * labels.size(1))]
        return {
            **output,
            "logits": output["logits"].index_add(
                1, torch.tensor([LABELS.keep]), 0.8 * (count - 2).unsqueeze(1).double()
            ),
        }

    def forward(self, src_tokens, src_lengths, partial_tree, **source_trees):
        return self.decode(self.encode(src_tokens, src_lengths, **source_trees), partial_tree)


REAL = {
    "relations": ((),),
    "deleting": (("--no-child-relations",),),
    "brackets": (("--absolute-positions",),),
    "parsed source": (("--insertion-encoder", "tree"),),
    "ensemble": ((), ("--absolute-positions",)),
}


@pytest.mark.parametrize("name", REAL)
def test_the_transformer_in_a_batch_and_alone(name):
    """Its memory is projected once, and rows leave it; alone everything is computed anew in every step."""
    models = [
        Reluctant(build_insertion(*flags, deletion=name == "deleting", seed=seed).double())
        for seed, flags in enumerate(REAL[name])
    ]
    examples = Examples(*[1] * 6, seed=3)
    trees = name == "parsed source"
    net_input = examples.net_input(trees=trees)
    found = InsertionGenerator(models, LABELS, InsertionLimits(steps=8, nodes=20)).generate(
        models, {"net_input": net_input}
    )
    for row, (hypothesis,) in enumerate(found):
        own = examples.net_input([row], trees=trees)
        own.pop("partial_tree")
        with torch.no_grad():
            expected = decode_alone(models, own, 8, 20, LABELS)
        assert (hypothesis["labels"].tolist(), hypothesis["parents"].tolist()) == (expected.labels, expected.parents)
        assert hypothesis["steps"] == expected.steps and hypothesis["score"] == pytest.approx(expected.score, abs=1e-5)
    assert len({len(hypothesis["labels"]) for (hypothesis,) in found}) > 1
