"""Verbs and their subjects, the words before verbs, and the published test sets."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preprocess.agreement import main
from preprocess.agreement_linzen import form_number, load_table
from preprocess.agreement_subjects import agreements, verb_number
from tests.preprocess.files import DATA, lines, rows, write
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest


def prepare(data, output, *flags):
    return main(["--data", str(data), "--output", str(output), *map(str, flags)])


def found(line, **options):
    return [
        (" ".join(each.prefix), each.words[each.subject], each.number, each.attractors)
        for each in agreements(read_forest(line), **options)
    ]


KEYS = "(NP (NP (DT the) (NNS keys)) (PP (TO to) (NP (DT the) (NN cabinet))))"


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (f"(S {KEYS} (VP (VBP are) (ADJP (JJ old))))", [("the keys to the cabinet", "keys", "plural", 1)]),
        (
            f"(S (PP (IN In) (NP (NN time))) (, ,) {KEYS} (VP (ADVP (RB often)) (VBP are)))",
            [("In time , the keys to the cabinet often", "keys", "plural", 1)],
        ),
        # the last noun of a compound is the head; a name is no attractor
        (
            "(S (NP (DT the) (NNS roads) (NN map) (PP (IN of) (NP (NNPS Alps)))) (VP (VBZ is)))",
            [("the roads map of Alps", "map", "singular", 0)],
        ),
        (
            "(S (NP (NP (DT the) (NNS dogs) (POS 's)) (NN owner)) (VP (VBZ sleeps)))",
            [("the dogs 's owner", "owner", "singular", 0)],
        ),
        ("(S (NP (NML (NN sea) (NNS birds))) (VP (VBD were)))", [("sea birds", "birds", "plural", 0)]),
        # a subject is in the verb's own clause: that of the relative clause has none, that of the complement has its
        # own
        (
            "(S (NP (NP (DT the) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ owns) (NP (NNS dogs)))))) (VP (VBZ says)"
            " (SBAR (S (NP (NNS cats)) (VP (VBP bite))))))",
            [("the man who owns dogs", "man", "singular", 1), ("the man who owns dogs says cats", "cats", "plural", 0)],
        ),
        # what follows another finite verb tells nothing new
        (
            "(S (NP (DT the) (NN man)) (VP (VP (VBZ sleeps)) (CC and) (VP (VBZ eats))))",
            [("the man", "man", "singular", 0)],
        ),
        ("(S (NP (DT the) (NN man)) (VP (VP (MD can) (VP (VB sleep))) (CC and) (VP (VBZ eats))))", []),
        # numbers that differ, verbs before their subjects, forms without a number, subjects that are no common nouns
        ("(S (NP (NP (DT a) (NN number)) (PP (IN of) (NP (NNS books)))) (VP (VBP are)))", []),
        ("(S (NP (NP (DT the) (NN cat)) (CC and) (NP (DT the) (NN dog))) (VP (VBP sleep)))", []),
        ("(SQ (VBZ Is) (NP (DT the) (NN man)) (ADJP (JJ old)))", []),
        ("(SINV (ADVP (RB Here)) (VP (VBP come)) (NP (DT the) (NNS men)))", []),
        ("(S (NP (DT the) (NN man)) (VP (VBD slept)))", []),
        ("(S (NP (PRP she)) (VP (VBZ sleeps)))", []),
        ("(S (NP (NNP Emma)) (VP (VBZ sleeps)))", []),
        ("(VBZ sleeps)", []),
        ("(VP (VBZ sleeps))", []),
    ],
)
def test_verbs_whose_subjects_precede_them(tree, expected):
    assert found(tree) == expected
    assert found(f"(ROOT {tree})") == expected


def test_every_tree_of_a_line():
    tree = "(S (NP (NN man)) (VP (VBZ sleeps)))"
    each = found(f"{tree} {tree.replace('man', 'dog')}")
    assert each == [("man", "man", "singular", 0), ("dog", "dog", "singular", 0)]


def test_deep_trees():
    deep = "(NP " * 1500 + "(NN man)" + ")" * 1500
    assert found(f"(S {deep} (VP (VBZ sleeps)))") == [("man", "man", "singular", 0)]


@pytest.mark.parametrize(
    ("tag", "word", "number"),
    [("VBZ", "Is", "singular"), ("VBP", "are", "plural"), ("VBD", "Was", "singular"), ("VBD", "were", "plural"),
     ("VBD", "went", None), ("VBP", "am", None), ("MD", "can", None), ("NN", "is", None)],
)  # fmt: skip
def test_numbers_of_forms(tag, word, number):
    assert verb_number(tag, word) == number


NOUN = st.sampled_from([("NN", "dog"), ("NNS", "dogs")])


@given(NOUN, st.lists(NOUN, max_size=5), st.integers(0, 3))
def test_attractors_are_the_nouns_of_the_other_number_in_between(head, others, depth):
    """Chains of prepositional phrases, left- or right-branching, over nouns that are known by their tags."""
    tag, word = head
    phrase = f"(NP (DT the) ({tag} {word}))"
    for number, (other, noun) in enumerate(others):
        if number < depth:
            phrase = f"(NP {phrase} (PP (IN by) (NP ({other} {noun}))))"
        else:
            phrase = f"{phrase[:-1]} (PP (IN by) (NP ({other} {noun}))))"
    verb = "(VBZ is)" if tag == "NN" else "(VBP are)"
    [(prefix, subject, number, attractors)] = found(f"(S {phrase} (VP {verb} (NP (NN end))))")
    assert subject == word and number == ("singular" if tag == "NN" else "plural")
    assert prefix == " ".join(["the", word, *(f"by {noun}" for _, noun in others)])
    assert attractors == sum(other != tag for other, _ in others)


@pytest.mark.parametrize(
    ("right", "wrong", "number"),
    [("is", "are", "singular"), ("Are", "Is", "plural"), ("has", "have", "singular"), ("have", "has", "plural"),
     ("makes", "make", "singular"),
     ("go", "goes", "plural"), ("carries", "carry", "singular"), ("edit", "edit", None), ("sat", "sit", None)],
)  # fmt: skip
def test_numbers_of_pairs(right, wrong, number):
    assert form_number(right, wrong) == number


# --- from files to files ---------------------------------------------------------------------------------------------


def test_nothing_but_the_words_before_the_verb_is_written(toy_agreement, tmp_path):
    assert prepare(toy_agreement, tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.groups", "test.tsv", "train.tsv", "valid.tsv"]
    assert [len(rows(tmp_path, split)) for split in ("train", "valid", "test")] == [60, 12, 12]
    verbs = {"is", "are", "has", "have", "stands", "stand", "here", "."}
    for split in ("train", "valid", "test"):
        for prefix, number in rows(tmp_path, split):
            assert not verbs & set(prefix.split())
            assert number == ("plural" if prefix.split()[1].endswith("s") else "singular")
    for (prefix, _number), group in zip_equal(rows(tmp_path, "test"), lines(tmp_path / "test.groups")):
        nouns = [word.endswith("s") for word in prefix.split() if word.rstrip("s") in ("key", "door", "author", "lamp")]
        assert group == f"attractors_{sum(noun != nouns[0] for noun in nouns)}"


def test_text_is_parsed_to_find_verbs(toy_agreement, tmp_path):
    """A control has no verb phrases to find; that the parses are read is seen with trees that a parser of brackets
    passes on.
    """
    write(tmp_path / "text" / "train.txt", *lines(toy_agreement / "train.mrg"))
    sources = {"parsed": (tmp_path / "text", "--tree-parser", "brackets"), "trees": (toy_agreement / "train.mrg",)}
    for name, source in sources.items():
        assert prepare(toy_agreement, tmp_path / name, "--training", *source, "--valid", 12) == 0
    for split in ("train", "valid", "test"):
        assert rows(tmp_path / "parsed", split) == rows(tmp_path / "trees", split)
    assert len(rows(tmp_path / "trees", "train")) == 48


def test_sources_are_pooled_and_sampled(toy_agreement, tmp_path):
    write(tmp_path / "more" / "train.trees", "(S (NP (DT The) (NNS Birds)) (VP (VBP sing)))")
    assert prepare(toy_agreement, tmp_path / "out", "--training", toy_agreement, tmp_path / "more") == 0
    assert len(rows(tmp_path / "out", "train")) == 61 and ("the birds", "plural") in rows(tmp_path / "out", "train")
    assert len(rows(tmp_path / "out", "valid")) == 12
    assert prepare(toy_agreement, tmp_path / "out", "--limit", 5) == 0
    assert [len(rows(tmp_path / "out", split)) for split in ("train", "valid", "test")] == [5, 5, 5]


def test_pairs_that_tell_no_number_are_left_out_and_said(tmp_path, caplog):
    caplog.set_level("INFO")
    write(tmp_path / "data" / "subj_agr_filtered.text", "the men edit it . <eos>", "The men Are here . <eos>")
    write(tmp_path / "data" / "subj_agr_filtered.gold", "2\tedit\tedit\t0", "2\tare\tis\t0")
    write(tmp_path / "data" / "train.mrg", "(S (NP (NN man)) (VP (VBZ is)))")
    write(tmp_path / "data" / "dev.mrg", "(S (NP (NN man)) (VP (VBZ is)))")
    assert prepare(tmp_path / "data", tmp_path / "out") == 0
    assert rows(tmp_path / "out", "test") == [("the men", "plural")]
    assert "1 of 2 sentences are left out because their two forms do not show the number: lines 1" in caplog.text


HEADER = "sentence\torig_sentence\tverb_pos\tverb_index\tn_diff_intervening"


def table_row(number, tag="VBZ", verb="3", attractors="1"):
    return f"x\tThe man{number} sleeps .\t{tag}\t{verb}\t{attractors}"


@pytest.mark.parametrize("zipped", [False, True])
def test_the_whole_set_is_split(tmp_path, zipped):
    text = "\n".join([HEADER, *(table_row(number, "VBP" if number % 3 else "VBZ") for number in range(200))]) + "\n"
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / f"agr_50_mostcommon_10K.tsv{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert prepare(tmp_path / "data", tmp_path / "out", "--test-size", 50) == 0
    splits = {split: rows(tmp_path / "out", split) for split in ("train", "valid", "test")}
    assert [len(part) for part in splits.values()] == [18, 2, 50]
    assert len({prefix for part in splits.values() for prefix, _ in part}) == 70
    for prefix, number in splits["train"]:
        assert number == ("plural" if int(prefix.removeprefix("the man")) % 3 else "singular")
    assert set((tmp_path / "out" / "test.groups").read_text().split()) == {"attractors_1"}
    assert len(load_table(path, None, 1)["test"]) == 180


@pytest.mark.parametrize(
    "flags", [("--grammar", 9), ("--generated-test", 9), ("--valid-attractors", 9), ("--repeat-attractors", 2)]
)
def test_the_whole_set_takes_no_options_of_training_text(tmp_path, capsys, flags):
    write(tmp_path / "data" / "agr_50_mostcommon_10K.tsv", HEADER, table_row(1))
    assert prepare(tmp_path / "data", tmp_path / "out", *flags) == 1
    assert "are for --training" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds neither subj_agr_filtered.text"),
        ({"subj_agr_filtered.text": ["a b"]}, "subj_agr_filtered.gold is missing"),
        ({"subj_agr_filtered.text": ["a is"], "subj_agr_filtered.gold": []}, "has 0 lines"),
        (
            {"subj_agr_filtered.text": ["a is"], "subj_agr_filtered.gold": ["1\tis\tare"]},
            "gold:1: not index<TAB>right verb",
        ),
        (
            {"subj_agr_filtered.text": ["a is"], "subj_agr_filtered.gold": ["1\tare\tis\t0"]},
            "gold:1: word 1 of the sentence is not 'are'",
        ),
        ({"subj_agr_filtered.text": ["is a"], "subj_agr_filtered.gold": ["0\tis\tare\t0"]}, "gold:1: word 0"),
        ({"subj_agr_filtered.text": ["a is"], "subj_agr_filtered.gold": ["1\tis\tare\t0"]}, "holds neither train.mrg"),
        ({"train.mrg": ["(S (NP"]}, "train.mrg:1:"),
        ({"train.mrg": ["(S (NP (NN man)))"], "dev.mrg": ["(S (NP (NN man)))"]}, "train is empty"),
        ({"agr_50_mostcommon_10K.tsv": ["a\tb"]}, "has no column orig_sentence"),
        (
            {"agr_50_mostcommon_10K.tsv": [HEADER, table_row(1), table_row(2, verb="9")]},
            "tsv:3: the row does not have a verb",
        ),
        ({"agr_50_mostcommon_10K.tsv": [HEADER, table_row(1, tag="NN")]}, "tsv:2:"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, capsys, files, message):
    (tmp_path / "data").mkdir()
    if "train.mrg" in files:
        files = {"subj_agr_filtered.text": ["a is"], "subj_agr_filtered.gold": ["1\tis\tare\t0"], **files}
    for name, texts in files.items():
        write(tmp_path / "data" / name, *texts)
    assert prepare(tmp_path / "data", tmp_path / "out") == 1
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_published_test_set(toy_agreement, tmp_path):
    if not (DATA / "sva").is_dir():
        pytest.skip("the test set is not here")
    assert prepare(DATA / "sva", tmp_path, "--training", toy_agreement) == 0
    written = rows(tmp_path, "test")
    first = "as a consequence of being mostly privately owned , the town"
    assert len(written) == 7485 and written[0] == (first, "singular")
    groups = (tmp_path / "test.groups").read_text().split()
    assert {name: groups.count(name) for name in set(groups)} == {
        "attractors_0": 1970, "attractors_1": 1957, "attractors_2": 1943, "attractors_3": 1285, "attractors_4": 330,
    }  # fmt: skip
