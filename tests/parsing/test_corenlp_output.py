"""Trees that CoreNLP and treebanks write."""

from __future__ import annotations

import json

import pytest

from tree_fairseq.errors import InputError, TreeFormatError
from tree_fairseq.parsing.corenlp_parser import READERS, penn_unescape, read_corenlp, read_penn
from tree_fairseq.trees.bracket import write_forest

# As CoreNLP 4 prints it with -outputFormat penn.
PENN = """(ROOT
  (S
    (NP (PRP He))
    (VP (VBD paid)
      (NP (CD 1\\/2) (-LRB- -LRB-) (NN euro) (-RRB- -RRB-)))
    (. .)))

(ROOT (FRAG (NN End)
))
"""
WRITTEN = [
    "(ROOT (S (NP (PRP He)) (VP (VBD paid) (NP (CD 1/2) (-LRB- -LRB-) (NN euro) (-RRB- -RRB-))) (. .)))",
    "(ROOT (FRAG (NN End)))",
]


def brackets(trees) -> list[str]:
    return [write_forest((tree,)) for tree in trees]


def test_trees_over_several_lines():
    trees = list(read_penn(PENN))
    assert brackets(trees) == WRITTEN
    assert trees[0].leaves() == ["He", "paid", "1/2", "(", "euro", ")", "."]
    assert list(read_penn("")) == [] and list(READERS["penn"].read(" \n", "")) == []


def test_brackets_without_a_label_get_one():
    assert brackets(read_penn("( (S (NN a)))\n((S\n  (NN b)))")) == ["(ROOT (S (NN a)))", "(ROOT (S (NN b)))"]
    assert brackets(read_penn("(S (NN a)) (S (NN b))")) == ["(S (NN a))", "(S (NN b))"]


@pytest.mark.parametrize(("text", "line"), [("(S (NN a))\n\n(S\n (NN b)", 3), ("\n(S (NN a)))\n", 2), ("word\n", 1)])
def test_faults_name_the_line_where_the_tree_begins(text, line):
    with pytest.raises(TreeFormatError) as caught:
        list(read_penn(text, "trees.mrg"))
    assert str(caught.value).startswith(f"trees.mrg:{line}: ")


def test_words_of_treebanks():
    words = ["-LRB-", "-RSB-", "-LCB-", r"1\/2", r"\*", "plain", "-LRB"]
    assert list(map(penn_unescape, words)) == ["(", "]", "{", "1/2", "*", "plain", "-LRB"]


def sentence(parse, *words):
    return {"index": 0, "parse": parse, "tokens": [{"word": word} for word in words]}


def test_json():
    text = json.dumps({"sentences": [sentence("(ROOT\n  (NP (NN man)))", "man")]})
    assert brackets(read_corenlp(text)) == ["(ROOT (NP (NN man)))"]
    skipped = json.dumps({"sentences": [sentence("SENTENCE_SKIPPED_OR_UNPARSABLE", "a", "-LRB-")]})
    assert brackets(read_corenlp(skipped)) == ["(FRAG (XX a) (XX -LRB-))"]


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"sentences": [1]}', '{"sentences": 3}'])
def test_other_files_are_refused(text):
    with pytest.raises(InputError, match="parsed.json: not CoreNLP's JSON .*-outputFormat json"):
        list(read_corenlp(text, "parsed.json"))


def test_json_without_parses_says_what_to_do():
    with pytest.raises(InputError, match=r"parsed.json: the sentence 1 has no constituency parse.*annotator parse"):
        list(read_corenlp('{"sentences": [{"index": 0, "tokens": []}]}', "parsed.json"))
