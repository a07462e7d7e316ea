"""Overnight: examples as SEMPRE writes them, the simplified forms and back, and the bounds on steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.overnight.bounds import bounds
from examples.overnight.bounds import main as print_bounds
from preprocess.corpora import CorpusError
from preprocess.overnight import LONG, NOTATION, UNORDERED, domains, main, merge, read_examples, restore, simplify
from tests.preprocess.files import DATA, lines
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree

OVERNIGHT = DATA / "overnight"
needs_data = pytest.mark.skipif(not OVERNIGHT.is_dir(), reason="the data set is not here")

BASE = "( call SW:singleton en.meeting )"
EARLY = "( string start ) ( string < ) ( number 10 )"
IMPORTANT = "( string important )"
NESTED = f"( call SW:filter ( call SW:filter {BASE} {IMPORTANT} ) {EARLY} )"
TURNED = f"( call SW:filter ( call SW:filter {BASE} {EARLY} ) {IMPORTANT} )"

BOUNDS = {
    "basketball": (6.04, 6.31, 7.06),
    "blocks": (6.33, 6.56, 6.86),
    "calendar": (6.18, 6.36, 6.77),
    "housing": (6.24, 6.45, 6.71),
    "publications": (6.31, 6.71, 6.78),
    "restaurants": (6.20, 6.30, 6.66),
}
"""Greedy from the form's own root, greedy, and halving the bracketed sequence; the paper has 6.2, -, 6.3 and 6.1."""


def read(text: str) -> Tree:
    return NOTATION.read(text.replace("SW:", LONG))


def example(utterance: str, form: str) -> str:
    form = form.replace("SW:", LONG)
    return f'(example\n  (utterance "{utterance}")\n  (original "x")\n  (targetFormula\n    {form}\n\n  )\n)\n'


def domain(folder: Path, name: str = "toy", train: int = 10, form: str = NESTED) -> Path:
    folder.mkdir(exist_ok=True)
    for split, size in (("train", train), ("test", 2)):
        text = "".join(example(f"{split}  {number}", form) for number in range(size))
        (folder / f"{name}.paraphrases.{split}.examples").write_text(text, encoding="utf-8")
    return folder


def test_filters_become_one_and_nest_again():
    merged = merge(read(NESTED))
    expected = (
        "( filter ( call-SW:singleton en.meeting ) ( condition ( string important ) ) "
        "( condition ( string start ) ( string < ) ( number 10 ) ) )"
    )
    assert NOTATION.write(merged) == expected
    assert restore(merged) == read(NESTED)


def test_simplified_forms_are_sorted_and_say_nothing_twice():
    twice = f"( call SW:filter {NESTED} {IMPORTANT} )"
    assert simplify(read(twice)) == simplify(read(TURNED)) == simplify(read(NESTED))
    assert simplify(restore(simplify(read(twice)))) == simplify(read(NESTED))
    ends = [f"( call SW:concat {parts} )" for parts in ("a b", "b a")]
    assert simplify(read(ends[0])) == simplify(read(ends[1])) != simplify(read("( call SW:reverse b a )"))


def test_the_order_of_conditions_does_not_count():
    first, second = (merge(read(form)) for form in (NESTED, TURNED))
    assert first != second and exact_matches([first], [second], UNORDERED) == [True]


@pytest.mark.parametrize(
    "text, message",
    [
        ("( call ( f a ) b )", "without the name of a function"),
        (f"( call SW:filter {BASE} a b )", "a filter with 3 arguments"),
        ("( filter b ( condition c ) )", "only simplified forms have"),
        ("( call-f a )", "only simplified forms have"),
    ],
)
def test_forms_that_could_not_be_restored(text, message):
    with pytest.raises(SymbolTreeError, match=message):
        merge(read(text))


@pytest.mark.parametrize("text", ["( filter a b )", "( filter ( condition a b ) )", "( filter a ( condition b c ) )"])
def test_what_makes_no_filter_stays(text):
    assert restore(read(text)) == read(text)


def test_prepared_splits(tmp_path, capsys):
    data = domain(tmp_path / "raw")
    for output in ("one", "two"):
        assert main(["--data", str(data), "--domain", "toy", "--output", str(tmp_path / output)]) == 0
    assert "prepared toy: train 8, valid 2, test 2" in capsys.readouterr().err
    one, two = ({path.name: lines(path) for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two and set(one) == {
        f"{split}.{side}" for split in ("train", "valid", "test") for side in ("nl", "lf")
    }
    assert one["test.nl"] == ["test 0", "test 1"]
    assert sorted(one["train.nl"] + one["valid.nl"]) == [f"train {number}" for number in range(10)]
    assert one["test.lf"] == [NOTATION.write(simplify(read(NESTED)))] * 2


def test_original_forms(tmp_path):
    data = domain(tmp_path / "raw")
    flags = ["--domain", "toy", "--output", str(tmp_path / "out"), "--simplify", "none"]
    assert main(["--data", str(data), *flags]) == 0
    assert lines(tmp_path / "out" / "test.lf") == [NESTED.replace("SW:", LONG)] * 2


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "holds no examples"),
        ("\n(exemple)\n", r":2: an example begins with \(example"),
        (example("a", BASE) + '(example\n(utterance "b")\n(targetFormula (f a)\n', r":9:.*never closed"),
        (example("", BASE), r":1: the utterance is not a text in quotation marks"),
        (
            "(example (utterance word) (targetFormula (f a)))",
            r":1: the utterance is not a text in quotation marks: word",
        ),
        ('(example (utterance "a") (original "b"))', r":1: an example has one \(utterance"),
        ('(example (utterance "a") (targetFormula (f a) (g b)))', r":1: an example has one \(utterance"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    path = tmp_path / "toy.examples"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=f"toy.examples.*{message}"):
        list(read_examples(path))


def test_errors_of_the_command(tmp_path, capsys):
    data = domain(tmp_path / "raw", form="( call SW:filter a b c )")
    text = example("a", BASE) + example("b", "( call ( f a ) )")
    (data / "toy.paraphrases.train.examples").write_text(text, encoding="utf-8")
    common = ["--data", str(data), "--output", str(tmp_path / "out")]
    assert main([*common, "--domain", "toy"]) == 1
    assert "toy.paraphrases.train.examples:9: a call without the name of a function" in capsys.readouterr().err
    assert main([*common, "--domain", "cal"]) == 1
    assert "is missing; the folder has toy" in capsys.readouterr().err
    assert print_bounds(["--data", str(tmp_path)]) == 1
    assert "holds no NAME.paraphrases.test.examples" in capsys.readouterr().err


def test_escaped_quotation_marks(tmp_path):
    path = tmp_path / "toy.examples"
    path.write_text(example(r"the \"best\" one", BASE), encoding="utf-8")
    assert [query.utterance for query in read_examples(path)] == ['the "best" one']


def test_bounds_of_one_form():
    """Two nodes are inserted one after the other, then nothing is; as a sequence the form has four tokens."""
    assert bounds([read("( f a )")] * 3) == (2, 3, 4, 3)


@needs_data
@pytest.mark.parametrize("name", domains(OVERNIGHT))
def test_every_form_of_a_domain_comes_back(name):
    paths = [OVERNIGHT / f"{name}.paraphrases.{split}.examples" for split in ("train", "test")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    found = re.findall(r"\(targetFormula(.*?)\)\s*\)\s*(?=\(example|\Z)", text, re.DOTALL)
    forms = {" ".join(form.split()) for form in found}
    assert len(forms) > 100
    for form in map(NOTATION.read, forms):
        assert restore(merge(form)) == form
        simplified = simplify(form)
        assert simplify(restore(simplified)) == simplified


@needs_data
def test_bounds_of_the_test_sets(capsys):
    assert print_bounds(["--data", str(OVERNIGHT), "--domain", *BOUNDS]) == 0
    rows = (line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert {row[0]: tuple(map(float, row[3:])) for row in rows} == BOUNDS
