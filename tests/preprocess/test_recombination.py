"""Data recombination: new pairs are made of the training set alone, are well-formed, and the same every time."""

from __future__ import annotations

import pytest

from preprocess import semantic_parsing, toy_corpus
from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example
from preprocess.logical_places import SLOT, Places, bound_variable, number_variables, positions
from preprocess.recombination import JOINED, JOINT, names_word, permute, phrase, recombine
from preprocess.semantic_parsing import main
from tests.preprocess.files import DATA, lines
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import exact_matches

READER = notation_named("bracket")
CAPITAL = Example("what is the capit of s0", "( capital:c s0 )")
WHERE = Example("where is c0", "( lambda $0 e ( loc:t c0 $0 ) )")
BORDER = Example("what state border s0", "( lambda $0 e ( and ( state:t $0 ) ( next_to:t $0 s0 ) ) )")
BOTH = Example(
    "what state border state in s0",
    "( lambda $0 e ( and ( state:t $0 ) ( exists $1 ( and ( state:t $1 ) ( loc:t $1 s0 ) ( next_to:t $0 $1 ) ) ) ) )",
)


def made(examples, count, *kinds, seed=1):
    return recombine(examples, count, kinds, "bracket", seed)


def forms(examples):
    return {example.source: example.target for example in examples}


def test_a_phrase_takes_the_place_of_an_entity_of_its_kind():
    found = forms(made([CAPITAL, WHERE], 1, "phrases"))
    assert found == {"where is the capit of s0": "( lambda $0 e ( loc:t ( capital:c s0 ) $0 ) )"}
    with pytest.raises(CorpusError, match="2 training pairs give only 1 new ones by phrases, not 2"):
        made([CAPITAL, WHERE], 2, "phrases")


def test_a_set_takes_the_place_of_an_entity():
    # BOTH shows that a state may stand where next_to:t has its second argument.
    longer = Example("how mani citi that are in the big east are there in s0", "( count $0 ( loc:t $0 s0 ) )")
    found = forms(made([BORDER, BOTH, longer], 6, "phrases"))
    assert found["what state border state border s0"] == (
        "( lambda $0 e ( and ( state:t $0 ) "
        "( exists $1 ( and ( state:t $1 ) ( next_to:t $1 s0 ) ( next_to:t $0 $1 ) ) ) ) )"
    )
    assert all("$1" in target for target in found.values())


def test_entities_change_where_training_has_the_other_kind_at_all_their_places():
    high = Example("how high is m0", "( elevation:i m0 )")
    high_city = Example("how high is c0", "( elevation:i c0 )")
    found = forms(made([WHERE, high, high_city, BORDER], 0, "entities"))
    assert not found
    with pytest.raises(CorpusError, match="give only 0 new ones by entities"):
        made([WHERE, high, high_city, BORDER], 1, "entities")  # each of them has been asked already
    where_mountain = Example("where is the m0", "( lambda $0 e ( loc:t m0 $0 ) )")
    found = forms(made([WHERE, high, high_city, where_mountain], 2, "entities"))
    assert found == {
        "where is m0": "( lambda $0 e ( loc:t m0 $0 ) )",
        "where is the c0": "( lambda $0 e ( loc:t c0 $0 ) )",
    }


def test_a_constant_has_the_word_of_its_name():
    morning = Example("flight in the morn", "( lambda $0 e ( during_day $0 morning:pd ) )")
    evening = Example("what is there in the even", "( lambda $0 e ( during_day $0 evening:pd ) )")
    found = forms(made([morning, evening], 2, "entities"))
    assert found == {
        "flight in the even": "( lambda $0 e ( during_day $0 evening:pd ) )",
        "what is there in the morn": "( lambda $0 e ( during_day $0 morning:pd ) )",
    }
    assert names_word("early", "earli") and names_word("business", "busi") and names_word("delta", "delta")
    assert not names_word("first", "fi") and not names_word("business", "bus") and not names_word("first", "flight")


def test_pairs_one_after_the_other_keep_their_slots_apart():
    one = Example("from ci0 to ci1", "( and ( from ci0 ) ( to ci1 ) )")
    [pair] = made([one], 1, "concat3")
    assert pair.source == f"from ci0 to ci1 {JOINT} from ci2 to ci3 {JOINT} from ci4 to ci5"
    tree = READER.read(pair.target)
    assert tree.label == JOINED and [READER.write(child) for child in tree.children] == [
        f"( and ( from ci{n} ) ( to ci{n + 1} ) )" for n in (0, 2, 4)
    ]


def test_phrases_are_what_questions_are_about():
    assert phrase("what is the capit of s0".split()) == ("the", "capit", "of", "s0")
    assert phrase("give me the largest state".split()) == ("the", "largest", "state")
    for question in ("how mani river", "which state is c0 in", "what state doe r0 run through", "what is"):
        assert phrase(question.split()) == ()


def test_variables_are_numbered_apart():
    tree = READER.read("( and ( exists $1 ( f $1 ) ) ( exists $1 ( g $1 ( argmax $1 ( h $1 ) ( k $1 ) ) ) ) )")
    assert READER.write(number_variables(tree)) == (
        "( and ( exists $0 ( f $0 ) ) ( exists $1 ( g $1 ( argmax $2 ( h $2 ) ( k $2 ) ) ) ) )"
    )


def test_equalities_have_no_kind():
    places = Places([READER.read("( and ( = ( fare $0 ) ti0 ) ( at $0 ti0 ) )")])
    assert places.fits(("at", 1), {"ti"}) and not places.fits(("=", 1), {"ti"})
    assert not places.fits(None, {"ti"}) and not places.fits(("at", 1), set())


def test_permutations_are_the_same_to_the_scorer():
    examples = [BORDER, WHERE, BOTH]
    found = permute(examples, 4, "bracket", 1)
    sources = {BORDER.source: BORDER.target, BOTH.source: BOTH.target}
    assert len({*found}) == 4 and all(pair.target != sources[pair.source] for pair in found)
    read = [[READER.read(text) for text in (pair.target, sources[pair.source])] for pair in found]
    outputs, references = zip(*read)
    assert not any(exact_matches(outputs, references))
    assert all(exact_matches(outputs, references, ("and", "or")))
    with pytest.raises(CorpusError, match="give only 1 other orders below and, or, not 2"):
        permute([BORDER], 2, "bracket", 1)
    with pytest.raises(CorpusError, match="give only 0 other orders"):
        permute([WHERE], 1, "bracket", 1)


def free_variables(tree):
    """Variables that no node above them binds."""
    bound = {path: bound_variable(node) for path, node in positions(tree)}
    return [
        node.label
        for path, node in positions(tree)
        if node.label.startswith("$") and node.label not in {bound[path[:length]] for length in range(len(path))}
    ]


@pytest.mark.parametrize("name", ["geo", "atis"])
def test_recombined_pairs_of_the_published_sets(name):
    if not (DATA / name).is_dir():
        pytest.skip(f"the data set is not in ../shared/data/{name}")
    corpus = semantic_parsing.CORPORA[name]
    splits = semantic_parsing.load_utterances(DATA / name, corpus.notation, corpus.valid)
    train = splits["train"]
    kinds = ("entities", "phrases", "concat2") if name == "geo" else ("entities", "concat2")
    found = made(train, 600, *kinds)
    assert found == made(train, 600, *kinds) != made(train, 600, *kinds, seed=2)
    assert len({pair.source for pair in found}) == 600
    assert not {pair.source for pair in found} & {pair.source for pair in train}
    known = {node.label for pair in train for node in READER.read(pair.target).preorder()} | {JOINED}
    seen = {(node.label, len(node.children)) for pair in train for node in READER.read(pair.target).preorder()}
    words = {word for pair in train for word in pair.source.split()} | {JOINT}
    for pair in found:
        tree = READER.read(pair.target)
        assert READER.write(tree) == pair.target
        slots = {node.label for node in tree.preorder() if SLOT.fullmatch(node.label)}
        assert slots <= {*pair.source.split()}
        assert {word for word in pair.source.split() if not SLOT.fullmatch(word)} <= words
        labels = {node.label for node in tree.preorder()}
        assert all(label in known or SLOT.fullmatch(label) or label.startswith("$") for label in labels)
        # A symbol has as many arguments as somewhere in training; conjunctions have any number.
        arities = {(node.label, len(node.children)) for node in tree.preorder()} - seen
        assert all(label in ("and", JOINED) or label[0] == "$" or SLOT.fullmatch(label) for label, _ in arities)
        assert not free_variables(tree)
    # The order of reading decides nothing: other splits are not looked at.
    assert found == made(list(train), 600, *kinds)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    for name in ("geo", "jobs"):
        toy_corpus.main([name, "--output", str(folder / name), "--train", "120", "--test", "15"])
    return folder


def test_the_command_adds_pairs_to_train_alone(toy, tmp_path, caplog):
    caplog.set_level("INFO")
    prepare = ["geo", "--data", str(toy / "geo"), "--valid", "15", "--output"]
    assert main([*prepare, str(tmp_path / "plain")]) == 0
    more = ["--recombine", "40", "--recombine-by", "entities,phrases", "--permute", "7"]
    for name in ("one", "two"):
        assert main([*prepare, str(tmp_path / name), *more]) == 0
    for side in ("nl", "lf"):
        plain = lines(tmp_path / "plain" / f"train.{side}")
        one = lines(tmp_path / "one" / f"train.{side}")
        assert one[: len(plain)] == plain and len(one) == len(plain) + 47
        assert one == lines(tmp_path / "two" / f"train.{side}")
        for split in ("valid", "test"):
            assert lines(tmp_path / "plain" / f"{split}.{side}") == lines(tmp_path / "one" / f"{split}.{side}")
    assert "40 pairs by recombination: entities" in caplog.text
    assert "valid: " in caplog.text and "of 40 new utterances occur there" in caplog.text
    assert "7 pairs with another order below and, or" in caplog.text


def test_prolog_is_recombined_too(toy, tmp_path):
    flags = ["jobs", "--data", str(toy / "jobs"), "--valid", "15", "--output", str(tmp_path), "--recombine", "20"]
    assert main([*flags, "--recombine-by", "concat2"]) == 0
    reader = notation_named("prolog")
    assert [reader.read(line).label for line in lines(tmp_path / "train.lf")[-20:]] == [JOINED] * 20
