"""Rules that predict the number of a verb from the tree of the words before it."""

from __future__ import annotations

import pytest

from preprocess.agreement_rules import first_noun, main, nearest_noun, subject_head
from preprocess.agreement_subjects import PLURAL, SINGULAR
from tree_fairseq.trees.bracket import read_forest

KEYS = "(NP (NP (DT the) (NNS keys)) (PP (TO to) (NP (DT the) (NN cabinet))))"
LIKES = "(NP (NP (DT the) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ likes) (NP (NNS dogs))))))"


@pytest.mark.parametrize(
    ("tree", "nearest", "first", "head"),
    [
        (KEYS, SINGULAR, PLURAL, PLURAL),
        (f"(ROOT {KEYS})", SINGULAR, PLURAL, PLURAL),
        (LIKES, PLURAL, SINGULAR, SINGULAR),
        # a complete clause before the one that waits for its verb
        (f"(S (NP (PRP they)) (VP (VBD said) (SBAR (IN that) (S {LIKES}))))", PLURAL, SINGULAR, SINGULAR),
        (f"(S (NP (NNS cats)) (VP (VBP say) (SBAR (S {LIKES}))))", PLURAL, PLURAL, SINGULAR),
        (f"(FRAG (PP (IN in) (NP (NN time))) (, ,) {KEYS} (ADVP (RB often)))", SINGULAR, SINGULAR, PLURAL),
        ("(NP (NNP Emma))", None, None, SINGULAR),
        ("(NNS dogs)", PLURAL, PLURAL, PLURAL),
        ("(NP (PRP they))", None, None, None),
    ],
)
def test_rules(tree, nearest, first, head):
    (tree,) = read_forest(tree)
    assert (nearest_noun(tree), first_noun(tree), subject_head(tree)) == (nearest, first, head)


def write(folder, trees, rows, groups):
    for name, lines in (("test.trees", trees), ("test.tsv", rows), ("test.groups", groups)):
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return main(["--text", str(folder), "--trees", str(folder / "test.trees")])


def test_accuracies_by_group(tmp_path, capsys):
    rows = ["the keys to the cabinet\tplural", "the man who likes dogs\tplural"]
    assert write(tmp_path, [KEYS, LIKES], rows, ["attractors_1", "attractors_2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "nearest noun: all 50.0, attractors_1 0.0, attractors_2 100.0",
        "first noun: all 50.0, attractors_1 100.0, attractors_2 0.0",
        "head of the subject: all 50.0, attractors_1 100.0, attractors_2 0.0",
    ]


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([], "has 0 lines"),
        (["(NP (NNS dogs))"], "test.trees:1: the tree has other words"),
        (["(NP"], "test.trees:1: there is no tree"),
        ([""], "test.trees:1: there is no tree"),
    ],
)
def test_what_does_not_belong_together_is_named(tmp_path, capsys, trees, message):
    assert write(tmp_path, trees, ["the keys\tplural"], ["attractors_0"]) == 1
    assert message in capsys.readouterr().err
