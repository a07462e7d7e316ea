"""The structural search against a search of all trees."""

from __future__ import annotations

import logging
import math
from collections import Counter

import numpy as np
import pytest
import torch
from fairseq import search
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_positional.all_trees import Vocabulary, by_id, continuations, ranked, rules_of
from tests.tree_positional.table_models import TableModel, batch
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tasks import INVALID
from tree_fairseq.tree_positional import checked_search
from tree_fairseq.tree_positional.checked_search import MOST_ENDS, MOST_UNBOUND
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS

SOURCE = [4, 5, 2]


def generator(vocabulary: Vocabulary, models, **options) -> StructuralGenerator:
    models = models if isinstance(models, list) else [models]
    return StructuralGenerator(models, vocabulary.dictionary, symbols=vocabulary.table, **options)


def generate(vocabulary: Vocabulary, models, sources=(SOURCE,), prefix=None, **options) -> list[list[dict]]:
    made = generator(vocabulary, models, **options)
    return made.generate(made.model.models, batch(list(sources)), prefix_tokens=prefix)


def found(hypotheses: list[dict]) -> list[tuple[tuple[int, ...], float]]:
    """Trees without EOS, and scores."""
    return [(tuple(hypothesis["tokens"][:-1].tolist()), float(hypothesis["score"])) for hypothesis in hypotheses]


def assert_same(hypotheses: list[dict], expected: list[tuple[tuple[int, ...], float]]) -> None:
    assert [tree for tree, _ in found(hypotheses)] == [tree for tree, _ in expected]
    for (_, score), (_, wanted) in zip(found(hypotheses), expected):
        assert score == pytest.approx(wanted, rel=1e-4)


forms = st.tuples(st.sampled_from(TRAVERSALS), st.sampled_from(BINARIZATIONS))


@st.composite
def vocabularies(draw, most: int = 4, unknown: bool = False) -> Vocabulary:
    traversal, binarization = draw(forms)
    arities = draw(st.lists(st.integers(0, 2 if binarization == "lcrs" else 3), min_size=1, max_size=most - 1))
    return Vocabulary.of([0, *arities], traversal, binarization, unknown)


# Any number of trees at any size: the beam that fairseq allows must hold them.
@st.composite
def all_trees(draw):
    """A vocabulary, a limit, and its trees, fewer than the dictionary has symbols."""
    vocabulary, limit = draw(vocabularies(3)), draw(st.integers(1, 6))
    while len(vocabulary.trees(limit)) >= len(vocabulary.dictionary):
        limit -= 1
    return vocabulary, limit, vocabulary.trees(limit)


@settings(max_examples=30, deadline=None)
@given(
    drawn=all_trees(),
    seed=st.integers(0, 99),
    length_penalty=st.sampled_from([0.0, 1.0, 2.0]),
    incremental=st.booleans(),
)
def test_a_beam_as_wide_as_there_are_trees_finds_all_in_order(drawn, seed, length_penalty, incremental):
    vocabulary, limit, trees = drawn
    model = TableModel(vocabulary.dictionary, seed, is_incremental=incremental)
    beam = len(vocabulary.dictionary) - 1
    hypotheses = generate(vocabulary, model, beam_size=beam, max_len_b=limit, len_penalty=length_penalty)[0]
    assert_same(hypotheses, ranked(trees, lambda prefix: model.log_probabilities(SOURCE, prefix), length_penalty))
    for hypothesis in hypotheses:
        positional = hypothesis["positional_scores"]
        assert len(positional) == len(hypothesis["tokens"]) - 1
        score = float(positional.sum()) / len(positional) ** length_penalty
        assert score == pytest.approx(float(hypothesis["score"]), rel=1e-4)


def beam_of(vocabulary: Vocabulary, following: dict, scores, beam: int, limit: int) -> list[tuple[int, ...]]:
    """Beam search with lists: the best prefixes of each length, beside trees that are complete already."""
    best = [((), 0.0)]
    for _ in range(limit):
        candidates = []
        for prefix, total in best:
            at_step = scores(list(prefix)) if following[prefix] else None
            candidates += [((*prefix, token), total + float(at_step[token])) for token in following[prefix]] or [
                (prefix, total)
            ]
        best = sorted(candidates, key=lambda pair: -pair[1])[:beam]
    return [prefix for prefix, _ in best]


def test_small_trees_do_not_end_the_search_for_a_better_one():
    # a^0, b^1: after each b comes, almost surely, another, five times in all; every tree that ends before is a bad one.
    vocabulary = Vocabulary.of([0, 1], "dfs", "none")
    leaf, inner = (vocabulary.dictionary.index(symbol) for symbol in ("a^0", "b^1"))
    model = TableModel(vocabulary.dictionary)

    def scores(source, prefix):
        logits = np.full(len(vocabulary.dictionary), -50.0)
        logits[[inner, leaf] if len(prefix) < 5 else [leaf, inner]] = 0.0, -5.0
        return logits

    model.decoder.scores = scores
    best = generate(vocabulary, model, beam_size=3, max_len_b=20)[0][0]
    assert best["tokens"].tolist() == [inner] * 5 + [leaf, vocabulary.dictionary.eos()]
    assert len(best["positional_scores"]) == 6


@settings(max_examples=40, deadline=None)
@given(
    vocabulary=vocabularies(),
    limit=st.integers(1, 7),
    seed=st.integers(0, 99),
    beam=st.integers(1, 6),
    length_penalty=st.sampled_from([0.0, 1.0]),
    sharpness=st.sampled_from([0.5, 3.0]),
    members=st.integers(1, 2),
)
def test_the_beam_equals_a_beam_of_lists(vocabulary, limit, seed, beam, length_penalty, sharpness, members):
    models = [TableModel(vocabulary.dictionary, seed + number, sharpness) for number in range(members)]
    trees, beam = vocabulary.trees(limit), min(beam, len(vocabulary.dictionary) - 1)

    def scores(prefix):
        each = torch.stack([model.log_probabilities(SOURCE, prefix) for model in models])
        return each.logsumexp(dim=0) - math.log(members)

    expected = beam_of(vocabulary, continuations(trees), scores, beam, limit)
    hypotheses = generate(vocabulary, models, beam_size=beam, max_len_b=limit, len_penalty=length_penalty)[0]
    assert_same(hypotheses, ranked(expected, scores, length_penalty))


def searches(vocabulary: Vocabulary):
    dictionary = vocabulary.dictionary
    return {
        "beam": search.BeamSearch(dictionary),
        "groups": search.DiverseBeamSearch(dictionary, 2, 0.5),
        "siblings": search.DiverseSiblingsSearch(dictionary, 0.5),
        "sampling": search.Sampling(dictionary),
        "top k": search.Sampling(dictionary, sampling_topk=2),
        "top p": search.Sampling(dictionary, sampling_topp=0.8),
    }


@settings(max_examples=25, deadline=None)
@given(
    vocabulary=vocabularies(unknown=True),
    seed=st.integers(0, 99),
    strategy=st.sampled_from(["beam", "groups", "siblings"]),
    sources=st.lists(st.lists(st.integers(4, 6), min_size=1, max_size=5), min_size=2, max_size=4),
)
def test_results_do_not_depend_on_the_rest_of_the_batch(vocabulary, seed, strategy, sources):
    model = TableModel(vocabulary.dictionary, seed)
    options = {"beam_size": 2 if strategy == "siblings" else 4, "max_len_a": 1.5, "max_len_b": 1}
    made = generator(vocabulary, model, search_strategy=searches(vocabulary)[strategy], **options)
    together = made.generate([model], batch(sources))
    for source, hypotheses in zip(sources, together):
        alone = made.generate([model], batch([source]))[0]
        assert found(hypotheses) == found(alone)


def test_a_limit_below_the_smallest_tree_is_raised_with_one_warning(caplog):
    vocabulary = Vocabulary.of([0, 1], "bfs", "none")
    made = generator(vocabulary, TableModel(vocabulary.dictionary), max_len_b=-3, beam_size=3)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [tree for tree, _ in found(made.generate(made.model.models, batch([SOURCE]))[0])] == [(4,)]
    assert caplog.text.count("--max-len-b") == 1


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_search_ends_when_no_tree_is_left(beam):
    vocabulary = Vocabulary.of([0], "dfs", "none")
    model, steps = TableModel(vocabulary.dictionary), []
    look_up = model.decoder.look_up
    model.decoder.look_up = lambda *arguments: steps.append(1) or look_up(*arguments)
    assert len(generate(vocabulary, model, beam_size=beam, max_len_b=50)[0]) == 1
    assert len(steps) == 2  # the symbol and EOS


def test_the_decoder_s_own_limit_holds():
    vocabulary = Vocabulary.of([0, 1, 2], "dfs", "lcrs")
    model = TableModel(vocabulary.dictionary, bias=torch.tensor([0.0, 0, 0, 0, 0, 0, 9, 0]).numpy(), positions=10)
    hypotheses = generate(vocabulary, model, max_len_b=200, beam_size=2)[0]
    assert max(len(hypothesis["tokens"]) for hypothesis in hypotheses) <= 10
    with pytest.raises(StructuralSearchError, match="at most 0"):
        generate(vocabulary, TableModel(vocabulary.dictionary, positions=1))


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(), vocabulary=vocabularies(), limit=st.integers(1, 6), seed=st.integers(0, 99), beam=st.integers(1, 5)
)
def test_trees_begin_with_their_prefixes(data, vocabulary, limit, seed, beam):
    trees = vocabulary.trees(limit)
    model, beam = TableModel(vocabulary.dictionary, seed), min(beam, len(vocabulary.dictionary) - 1)
    drawn = [data.draw(st.sampled_from(trees)) for _ in range(2)]
    prefixes = [tree[: data.draw(st.integers(0, len(tree)))] for tree in drawn]
    # A whole tree may be followed by EOS.
    shown = [[*prefix, *([2] if prefix == tree else [])] for prefix, tree in zip(prefixes, drawn)]
    width = max(map(len, shown))
    prefix = torch.tensor([tokens + [1] * (width - len(tokens)) for tokens in shown], dtype=torch.int64)

    def scores(so_far):
        return model.log_probabilities(SOURCE, so_far)

    results = generate(vocabulary, model, [SOURCE, SOURCE], prefix=prefix, beam_size=beam, max_len_b=limit)
    for begins, hypotheses in zip(prefixes, results):
        allowed = [tree for tree in trees if tree[: len(begins)] == begins]
        assert_same(hypotheses, ranked(beam_of(vocabulary, continuations(allowed), scores, beam, limit), scores))


@pytest.mark.parametrize(
    ("prefix", "named"),
    [
        ([5, 4], "token 1"),  # an arity of 1 says that the root has a sibling
        ([6, 7], "token 2"),  # <null> is no child
        ([6, 4, 4], "token 3"),  # the root has a sibling
        ([6, 6, 6], "token 3"),  # 4 symbols more
        ([6, 2], "token 2"),  # ends too early
        ([4, 4], "token 2"),  # goes on when complete
        ([6, 1, 4], "token 3"),  # has a gap
        ([3], "token 1"),  # <unk> is no symbol
    ],
)
def test_a_prefix_that_no_tree_begins_with_is_refused(prefix, named):
    vocabulary = Vocabulary.of([0, 1, 2], "dfs", "lcrs")
    with pytest.raises(StructuralSearchError, match=f"sentence 1 .*{named}, .*--max-len-b"):
        generate(vocabulary, TableModel(vocabulary.dictionary), prefix=torch.tensor([prefix]), max_len_b=6)


def test_illegal_symbols_are_not_generated_however_likely():
    """What is left has next to no probability, down to none at all."""
    vocabulary = Vocabulary.of([0, 1, 2], "dfs", "lcrs")
    bias = torch.tensor([0.0, 0, 3000, 0, 0, 3000, 0, -math.inf]).numpy()
    for dtype in (torch.float64, torch.float32, torch.half):
        model = TableModel(vocabulary.dictionary, bias=bias, dtype=dtype)
        for strategy in searches(vocabulary).values():
            hypotheses = generate(vocabulary, model, beam_size=2, max_len_b=9, search_strategy=strategy)[0]
            assert hypotheses and all(vocabulary.is_tree(hypothesis["tokens"]) for hypothesis in hypotheses)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), vocabulary=vocabularies(), seed=st.integers(0, 99), beam=st.integers(1, 5))
def test_a_grammar_leaves_the_trees_of_its_rules(data, vocabulary, seed, beam):
    seen = data.draw(st.lists(st.sampled_from(vocabulary.trees(5)), min_size=1, max_size=3))
    rules = rules_of(vocabulary, seen)
    limit = data.draw(st.integers(min(map(len, seen)), 6))
    trees, beam = vocabulary.trees(limit, rules), min(beam, len(vocabulary.dictionary) - 1)
    model = TableModel(vocabulary.dictionary, seed)

    def scores(prefix):
        return model.log_probabilities(SOURCE, prefix)

    options = {"grammar": by_id(vocabulary, rules), "beam_size": beam, "max_len_b": limit}
    expected = ranked(beam_of(vocabulary, continuations(trees), scores, beam, limit), scores)
    assert_same(generate(vocabulary, model, **options)[0], expected)


@pytest.mark.parametrize("penalty", [1.5, -1.5, math.inf])
def test_unknown_symbols_cost_the_penalty(penalty):
    vocabulary = Vocabulary.of([0, 2], "dfs", "none", unknown=True)
    model = TableModel(vocabulary.dictionary, 5)
    unknown = [vocabulary.dictionary.index(f"<unk:{arity}>") for arity in range(3)]
    trees = vocabulary.trees(3, without=tuple(unknown) if penalty == math.inf else ())

    def scores(prefix):
        found = model.log_probabilities(SOURCE, prefix)
        found[unknown] -= penalty
        return found

    hypotheses = generate(vocabulary, model, beam_size=5, max_len_b=3, unk_penalty=penalty)[0]
    assert_same(hypotheses, ranked(beam_of(vocabulary, continuations(trees), scores, 5, 3), scores))


def test_suppressed_symbols_make_no_trees():
    vocabulary = Vocabulary.of([0, 0, 1, 2], "dfs", "none")
    model = TableModel(vocabulary.dictionary, 3)
    hypotheses = generate(vocabulary, model, beam_size=7, max_len_b=4, tokens_to_suppress=("b^0", "c^1"))[0]
    trees = vocabulary.trees(4, without=(5, 6))
    assert_same(hypotheses, ranked(trees, lambda prefix: model.log_probabilities(SOURCE, prefix)))
    with pytest.raises(StructuralSearchError, match="no finite tree"):
        generator(vocabulary, model, tokens_to_suppress=("a^0", "b^0"))


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"match_source_len": True}, "--match-source-len"),
        ({"no_repeat_ngram_size": 3}, "--no-repeat-ngram-size"),
        ({"print_alignment": "hard"}, "--print-alignment"),
        (
            {"search_strategy": lambda symbols: search.LexicallyConstrainedBeamSearch(symbols, "ordered")},
            "--constraints",
        ),
        ({"search_strategy": lambda symbols: search.PrefixConstrainedBeamSearch(symbols, print)}, "prefix_allowed"),
        ({"min_len": 2}, "--min-len"),
        ({"lm_model": object()}, "--lm-path"),
    ],
)
def test_options_that_do_not_work_with_trees_are_refused(options, flag):
    vocabulary = Vocabulary.of([0], "dfs", "none")
    if "search_strategy" in options:
        options = {**options, "search_strategy": options["search_strategy"](vocabulary.dictionary)}
    with pytest.raises(StructuralSearchError, match=flag):
        generator(vocabulary, TableModel(vocabulary.dictionary), **options)


class Refusals:
    """A check that refuses some trees, and the prefixes of those alone."""

    def __init__(self, vocabulary: Vocabulary, trees, refused):
        self.allowed = set(trees) - set(refused)
        self.concerned = vocabulary.table.arity >= 0

    def is_program(self, ids) -> bool:
        return tuple(ids) in self.allowed

    def is_possible(self, ids) -> bool:
        return any(tree[: len(ids)] == tuple(ids) for tree in self.allowed)

    def impossible(self, before, symbols) -> list[int]:
        return [symbol for symbol in symbols if not self.is_possible([*before, symbol])]


@settings(max_examples=30, deadline=None)
@given(drawn=all_trees(), seed=st.integers(0, 99), data=st.data())
def test_refused_trees_make_room_for_the_next_ones(drawn, seed, data):
    vocabulary, limit, trees = drawn
    check = Refusals(vocabulary, trees, data.draw(st.sets(st.sampled_from(trees)) if trees else st.just(set())))
    if data.draw(st.booleans()):
        check.is_possible = lambda ids: True  # only complete trees are refused
    model = TableModel(vocabulary.dictionary, seed)
    ranking = ranked(sorted(check.allowed), lambda prefix: model.log_probabilities(SOURCE, prefix), 1.0)
    beam = len(vocabulary.dictionary) - 1
    hypotheses = generate(vocabulary, model, beam_size=beam, max_len_b=limit, check=check)[0]
    if ranking:
        assert_same(hypotheses, ranking)
        narrow = generate(vocabulary, model, beam_size=1, max_len_b=limit, check=check)[0]
        assert found(narrow)[0][0] in check.allowed
    else:
        assert found(hypotheses)[0][0] in vocabulary.trees(max(limit, 1)), "the output is a tree all the same"


def test_only_candidates_that_the_beam_would_take_are_checked():
    vocabulary, calls = Vocabulary.of([0] * 10 + [2], "dfs", "none"), Counter()
    check = Refusals(vocabulary, [], [])

    def ask(ids):
        calls[len(ids)] += 1
        return True

    check.is_possible = check.is_program = ask
    assert len(generate(vocabulary, TableModel(vocabulary.dictionary), beam_size=4, max_len_b=9, check=check)[0]) == 4
    assert max(calls.values()) == 4


def test_after_a_few_refusals_all_continuations_are_asked_at_once(monkeypatch):
    vocabulary, steps, step = Vocabulary.of([0] * 40 + [2], "dfs", "none"), [], search.BeamSearch.step
    monkeypatch.setattr(search.BeamSearch, "step", lambda *args: steps.append(args[1]) or step(*args))
    model, check = TableModel(vocabulary.dictionary), Refusals(vocabulary, [], [])
    root = int((vocabulary.table.arity == 2).nonzero()[0])
    leaves = (vocabulary.table.arity == 0).nonzero().flatten().tolist()
    scores = model.log_probabilities(SOURCE, (root,))
    worst = min(leaves, key=lambda leaf: float(scores[leaf]))
    check.is_possible, check.is_program = lambda ids: len(ids) != 2 or ids[1] == worst, lambda ids: len(ids) == 3
    [hypotheses] = generate(vocabulary, model, beam_size=1, max_len_b=3, check=check)
    assert found(hypotheses)[0][0][:2] == (root, worst)
    assert steps.count(1) == MOST_UNBOUND + 1


@pytest.mark.parametrize("most", [1000, 3])
def test_a_fault_before_the_last_symbol_is_not_sought_in_the_last_symbol(most, monkeypatch):
    monkeypatch.setattr(checked_search, "MOST_REFUSALS", most)
    vocabulary, calls = Vocabulary.of([0] * 40 + [2], "dfs", "none"), Counter()
    check = Refusals(vocabulary, [], [])
    check.is_possible = lambda ids: True

    def is_program(ids):
        calls[tuple(ids[:-1])] += 1
        return False

    check.is_program = is_program
    assert generate(vocabulary, TableModel(vocabulary.dictionary), beam_size=3, max_len_b=3, check=check)[0]
    assert any(len(prefix) == 2 for prefix in calls) or most == 3
    assert max(calls.values()) <= 3 * MOST_ENDS, "three searches ask about a prefix"
    assert sum(calls.values()) <= 3 * most


def test_a_program_is_kept_where_its_other_last_symbols_are_refused(caplog):
    vocabulary = Vocabulary.of([0] * 40 + [2], "dfs", "none")
    model, check = TableModel(vocabulary.dictionary), Refusals(vocabulary, [], [])
    leaves = (vocabulary.table.arity == 0).nonzero().flatten().tolist()

    def is_program(ids):
        scores = model.log_probabilities(SOURCE, tuple(ids[:-1]))
        return len(ids) == 3 and ids[-1] == max(leaves, key=lambda leaf: float(scores[leaf]))

    check.is_possible, check.is_program = lambda ids: True, is_program
    [hypotheses] = generate(vocabulary, model, beam_size=20, max_len_b=3, check=check)
    assert all(is_program(tree) for tree, *_ in found(hypotheses)) and len(found(hypotheses)) == 20
    assert not caplog.records


def test_a_sentence_without_a_program_is_searched_again_and_the_log_says_so(caplog):
    vocabulary = Vocabulary.of([0, 0, 2], "dfs", "none")
    trees = vocabulary.trees(5)
    model = TableModel(vocabulary.dictionary)
    smallest = min(trees, key=len)
    check = Refusals(vocabulary, trees, set(trees) - {smallest})
    check.is_possible = lambda ids: True
    assert [found(one)[0][0] for one in generate(vocabulary, model, [SOURCE, [5, 2]], max_len_b=5, check=check)] == [
        smallest
    ] * 2
    check.allowed.clear()
    [hypotheses] = generate(vocabulary, model, max_len_b=5, check=check)
    assert [each["steps"] for each in hypotheses] == [f"{len(tree)} {INVALID}" for tree, _ in found(hypotheses)]


@pytest.mark.parametrize("strategy", ["sampling", "top k", "top p", "groups", "siblings"])
def test_other_searches_find_only_what_the_check_allows_at_the_model_s_scores(strategy):
    vocabulary, limit = Vocabulary.of([0, 0, 0, 0, 0, 0, 1, 2, 2], "dfs", "none"), 5
    strategies, trees = searches(vocabulary), vocabulary.trees(limit)
    for seed in range(20):
        torch.manual_seed(seed)
        model = TableModel(vocabulary.dictionary, seed, sharpness=3.0)
        check = Refusals(vocabulary, trees, [tree for tree in trees if hash((seed, tree)) % 4])
        if seed % 2:
            check.is_possible = lambda ids: True  # only complete trees are refused
        options = {"max_len_b": limit, "check": check, "search_strategy": strategies[strategy]}
        for hypotheses in generate(vocabulary, model, [SOURCE, [5, 2]], beam_size=4, **options):
            assert hypotheses
            for (tree, score), hypothesis in zip(found(hypotheses), hypotheses):
                assert tree in check.allowed and len(tree) <= limit and "steps" not in hypothesis
                steps = hypothesis["positional_scores"]
                assert score == pytest.approx(float(steps.mean()), rel=1e-4)
        if strategy not in ("groups", "siblings"):  # these add penalties to scores
            source = [5, 2]  # of the last hypotheses
            following = [model.log_probabilities(source, tree[:place]) for place in range(len(tree))]
            wanted = [float(scores[symbol]) for symbol, scores in zip(tree, following)]
            assert steps.tolist() == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("strategy", ["beam", "groups", "siblings"])
def test_a_symbol_that_the_check_refuses_costs_the_others_nothing(strategy):
    vocabulary = Vocabulary.of([0] * 15 + [1, 1, 2, 2, 2, 2], "dfs", "none")
    refused = [index for index, arity in enumerate(vocabulary.table.arity.tolist()) if arity == 0][: MOST_ENDS - 1]
    names, check = [vocabulary.dictionary[index] for index in refused], Refusals(vocabulary, [], [])
    check.is_possible = check.is_program = lambda ids: not set(ids) & set(refused)
    for seed in range(5):
        model = TableModel(vocabulary.dictionary, seed)
        options = {"beam_size": 4, "max_len_b": 9, "search_strategy": searches(vocabulary)[strategy]}
        [checked] = generate(vocabulary, model, check=check, **options)
        [suppressed] = generate(vocabulary, model, tokens_to_suppress=names, **options)
        assert_same(checked, found(suppressed))
