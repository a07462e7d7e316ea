"""Trees that CoreNLP writes."""

from __future__ import annotations

import json

import pytest

from tree_fairseq.errors import InputError
from tree_fairseq.parsing.corenlp_parser import read_corenlp
from tree_fairseq.trees.bracket import write_forest


def brackets(trees) -> list[str]:
    return [write_forest((tree,)) for tree in trees]


def sentence(parse, *words):
    return {"index": 0, "parse": parse, "tokens": [{"word": word} for word in words]}


def test_json():
    text = json.dumps({"sentences": [sentence("(ROOT\n  (NP (CD 1\\/2) (-LRB- -LSB-)))", "1/2", "[")]})
    assert brackets(read_corenlp(text)) == ["(ROOT (NP (CD 1/2) (-LRB- [)))"]
    skipped = json.dumps({"sentences": [sentence("SENTENCE_SKIPPED_OR_UNPARSABLE", "a", "-LRB-")]})
    assert brackets(read_corenlp(skipped)) == ["(FRAG (XX a) (XX -LRB-))"]


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"sentences": [1]}', '{"sentences": 3}'])
def test_other_files_are_refused(text):
    with pytest.raises(InputError, match="parsed.json: not CoreNLP's JSON .*-outputFormat json"):
        list(read_corenlp(text, "parsed.json"))


def test_json_without_parses_says_what_to_do():
    with pytest.raises(InputError, match=r"parsed.json: the sentence 1 has no constituency parse.*annotator parse"):
        list(read_corenlp('{"sentences": [{"index": 0, "tokens": []}]}', "parsed.json"))
