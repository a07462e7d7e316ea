"""Raw text through Stanza's own tokeniser, which is trained here on a few sentences; and whole files through
processes.
"""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from tests.parsing.conftest import content, parse_file, write_text
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ControlParser, ParserOptions
from tree_fairseq.parsing.stanza_parser import StanzaParser
from tree_fairseq.parsing.stanza_trees import merge_multiword_tokens, to_label, to_tree
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

WORDS = "the man woman sleeps reads a book sees that she old".split()


def _labels(text):
    """Stanza's labels of characters: 1 ends a token, 2 a sentence."""
    following = [*text[1:], " "]
    return "".join(
        "2" if character in ".?" else "1" if character.isalpha() and not after.isalpha() else "0"
        for character, after in zip(text, following)
    )


@pytest.fixture(scope="module")
def raw_text_models(english_models, tmp_path_factory):
    torch = pytest.importorskip("torch")
    from stanza.models.tokenization.data import DataLoader
    from stanza.models.tokenization.trainer import Trainer
    from stanza.models.tokenizer import build_argparse

    chooser = random.Random(0)
    folder = tmp_path_factory.mktemp("models")
    for name in ("constituency.pt", "tagger.pt", "pretrain.pt"):
        (folder / name).symlink_to(english_models / name)
    sentences = [
        " ".join(chooser.choices(WORDS, k=chooser.randint(2, 7))).capitalize() + chooser.choice(".?")
        for _ in range(300)
    ]
    paragraphs = [" ".join(sentences[start : start + 3]) for start in range(0, 300, 3)]
    (folder / "text").write_text("\n\n".join(paragraphs) + "\n")
    (folder / "labels").write_text("\n\n".join(map(_labels, paragraphs)) + "\n")
    arguments = vars(
        build_argparse().parse_args(
            ["--lang", "en", "--shorthand", "en_toy", "--hidden_dim", "24", "--emb_dim", "16", "--lr0", "0.02"]
        )
    )
    arguments |= {
        "feat_funcs": ["space_before", "capitalized", "numeric", "end_of_para", "start_of_para"],
        "feat_dim": 5,
        "use_mwt": False,
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        batches = DataLoader(arguments, input_files={"txt": str(folder / "text"), "label": str(folder / "labels")})
        trainer = Trainer(args={**arguments, "vocab_size": len(batches.vocab)}, vocab=batches.vocab, device="cpu")
        for _ in range(60):
            trainer.update(
                batches.next(unit_dropout=0.1, feat_unit_dropout=0.1)
                or batches.next(unit_dropout=0.1, feat_unit_dropout=0.1)
            )
    torch.set_num_threads(threads)
    trainer.save(str(folder / "tokenizer.pt"))
    return folder


def options(folder, **changes):
    return ParserOptions(parser_dir=str(folder), device="cpu", tokenize="stanza", **changes)


def test_tokens_and_sentences_equal_those_of_stanza(raw_text_models):
    lines = ["The man sleeps. The woman reads a book.", "", "  the   old man  ", "x\u00a0y <A>z ½ (a)  …"]
    one, blank, spaced, odd = LineParser(options(raw_text_models)).parse_lines(lines)
    assert forest_leaves(one.forest) == "The man sleeps . The woman reads a book .".split() and len(one.forest) == 1
    assert blank.forest == () and forest_leaves(spaced.forest) == ["the", "old", "man"]
    assert "".join(forest_leaves(odd.forest)) == "xy<A>z½(a)…"
    assert not any(line.failed for line in (one, blank, spaced, odd))
    split = LineParser(options(raw_text_models, ssplit="punct")).parse_lines(lines[:1])
    assert [tree.leaves()[-1] for tree in split[0].forest] == [".", "."]


def test_pieces_are_assigned_to_stanzas_tokens(raw_text_models):
    (line,) = LineParser(options(raw_text_models)).parse_lines(["▁The ▁wo man ▁sleep s."])
    assert forest_leaves(line.forest) == "▁The ▁wo man ▁sleep s.".split()
    assert "(NN (NN_sub ▁wo) (NN_sub man))" in write_forest(line.forest)


def test_a_file_is_parsed_by_a_process_and_then_read_from_the_cache(
    english_models, small_blocks, tmp_path, monkeypatch
):
    chooser = random.Random(1)
    lines = [" ".join(chooser.choices([*WORDS, "wo@@ man", "&apos;s"], k=chooser.randint(0, 9))) for _ in range(40)]
    text = write_text(tmp_path / "text.en", lines)
    stanza = ParserOptions(parser_dir=str(english_models), device="cpu", batch_size=8)
    first = parse_file(text, tmp_path / "a", stanza, workers=1, cache=tmp_path / "cache")
    forests = content(first.shards).decode().splitlines()
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
    assert not first.failed and first.parsed > 20
    # `parse_lines` in this process gives the same trees.
    assert [write_forest(line.forest) for line in LineParser(stanza).parse_lines(lines)] == forests

    def refuse(*arguments):
        raise AssertionError("a model was loaded although all trees were cached")

    monkeypatch.setattr(StanzaParser, "_load", refuse)
    second = parse_file(text, tmp_path / "b", stanza, cache=tmp_path / "cache")
    assert content(second.shards).decode().splitlines() == forests


def token(start, end, *words):
    return SimpleNamespace(
        start_char=start, end_char=end, words=[SimpleNamespace(start_char=span[0], end_char=span[1]) for span in words]
    )


def tree_over(*words):
    return ControlParser("right-branching", lambda width, _: 1).parse([list(words)])[0]


def test_a_token_of_several_words_is_one_leaf():
    sentences = [
        SimpleNamespace(tokens=[token(0, 3, (0, 3)), token(4, 7, (None, None), (None, None)), token(8, 12, (8, 12))])
    ]
    parsed = merge_multiword_tokens("geh zum Haus", sentences, [tree_over("geh", "zu", "dem", "Haus")])
    assert forest_leaves(parsed.forest) == ["geh", "zum", "Haus"] and parsed.offsets == [(0, 3), (4, 7), (8, 12)]


def test_words_that_are_parts_of_a_token_stay_leaves():
    sentences = [
        SimpleNamespace(tokens=[token(0, 3, (0, 3)), token(4, 9, (4, 6), (6, 9))]),
        SimpleNamespace(tokens=[token(10, 14, (10, 14))]),
    ]
    parsed = merge_multiword_tokens("she don't 1 00", sentences, [tree_over("she", "do", "not"), tree_over("1 00")])
    assert forest_leaves(parsed.forest) == ["she", "do", "n't", "1_00"] and parsed.offsets == [
        (0, 3),
        (4, 6),
        (6, 9),
        (10, 14),
    ]


@pytest.mark.parametrize("spans", [[(4, 6), (5, 9)], [(4, 6), (6, 8)], [(4, 4), (4, 9)], [(6, 9), (4, 6)]])
def test_words_that_do_not_divide_their_token_are_joined(spans):
    parsed = merge_multiword_tokens(
        "she don't",
        [SimpleNamespace(tokens=[token(0, 3, (0, 3)), token(4, 9, *spans)])],
        [tree_over("she", "do", "not")],
    )
    assert forest_leaves(parsed.forest) == ["she", "don't"]


def test_labels_with_brackets_can_be_written():
    assert to_label("$(") == "$-LRB-" and to_label("-LRB-") == "-LRB-" and to_label("NP") == "NP"


def test_the_converted_tree_equals_stanzas_tree():
    tree_reader = pytest.importorskip("stanza.models.constituency.tree_reader")
    text = "(ROOT (S (NP (DT the) (NN -LRB-)) (VP (VBZ sleeps) (ADVP (RB well)))))"
    (parsed,) = tree_reader.read_trees(text)
    assert write_forest((to_tree(parsed),)) == text
