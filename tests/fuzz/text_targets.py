"""Targets that read text: brackets, notations, subwords, arguments of commands."""

from __future__ import annotations

import contextlib
import io
import os

from tests.fuzz.law import Choices, scratch, target
from tree_fairseq.__main__ import COMMANDS, main
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.line_parser import read_bracketed
from tree_fairseq.parsing.pieces import splice_pieces
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.notations import NOTATIONS
from tree_fairseq.trees.spans import decode, encode
from tree_fairseq.trees.subwords import align_pieces, join_bpe, join_sentencepiece, join_words, split_words
from tree_fairseq.trees.text import decode_line
from tree_fairseq.trees.tree import Tree, forest_leaves

_BRACKETS = [
    b"(S (NP (DT the) (NN man)) (VP (VBZ sleeps)) (. .))",
    b"(S (NN -LRB-) (NN \\-LRB-) (-LRB- \\\\-RRB-)) (X (Y a@@) (Z \xe2\x96\x81b))",
    b"((S (NN 0=a)))",
    b"",
]


@target(lambda: _BRACKETS)
def brackets(data: bytes) -> None:
    """A line of bracketed trees."""
    try:
        line = decode_line(data, "input", 1)
    except InputError:
        line = data.decode("utf-8", "surrogateescape")
    with contextlib.suppress(InputError):
        forest, _ = read_bracketed(line, "flat")
        assert read_forest(write_forest(forest)) == forest
    forest = read_forest(line)
    assert read_forest(write_forest(forest)) == forest
    spans = encode(forest)
    assert decode(spans) == forest and spans.leaves == forest_leaves(forest)


_WRITTEN = {
    "bracket": b"( answer ( count ( state ( next_to:t $0 ) ) ) )",
    "funql": b"answer(count(intersection(state(all),loc_2(cityid('new york',_)))))",
    "json": b'{"a": [1, -2.5e3, null, true, {"b c": "d\\u00e9"}], "": {}}',
    "prolog": b"answer(A,(state(A),loc(B,A),const(B,cityid('a \\'b',_))))",
    "top": b"[IN:GET_EVENT the [SL:NAME game ] [SL:NONE ] ]",
    "variable-free": b"( _argmax $0 ( lambda $1 e ( and ( p:t $1 ) ) ) )",
}


def _notation(name: str):
    notation = NOTATIONS[name]

    def read(data: bytes) -> None:
        tree = notation.read(data.decode("utf-8", "replace"))
        written = notation.write(tree)
        assert notation.read(written) == tree and "\n" not in written
        for other in NOTATIONS.values():
            assert other.read(other.write(tree)) == tree

    read.__name__ = f"notation_{name.replace('-', '_')}"
    return read


for _name, _seed in _WRITTEN.items():
    target(lambda _seed=_seed: [_seed, b"a", b"()"])(_notation(_name))

_PARTS = [*"a b@@ @@ ▁ ▁c <0x41> <0xFF> ( ) -LRB- é ́ _sub".split(), *("\\", "x" * 40)]


@target(lambda: [b"", bytes(range(64)), b"\x03\x01\x02" * 20])
def subword_alignment(data: bytes) -> None:
    """Words, their trees and their pieces, in all the ways in which they are brought together."""
    choices = Choices(data)
    tokens = [choices.of(_PARTS) for _ in range(1 + choices.number(12))]
    for join in (join_bpe, join_sentencepiece):
        with contextlib.suppress(InputError):
            words, pieces = join(tokens)
            assert len(words) == len(pieces) and [piece for own in pieces for piece in own] == tokens
            forest = (Tree("S", [Tree("NN", [Tree(word)]) for word in words]),) if words else ()
            split = split_words(forest, pieces)
            assert forest_leaves(split) == tokens
            assert splice_pieces(write_forest(forest), words, pieces) == write_forest(split)
            join_words(split)
    offsets, spans = _offsets(choices, len(tokens)), _offsets(choices, 1 + choices.number(6))
    forest = (Tree("S", [Tree("NN", [Tree(f"w{number}")]) for number in range(len(spans))]),)
    assert forest_leaves(align_pieces(forest, spans, offsets, tokens)) == tokens


def _offsets(choices: Choices, count: int) -> list[tuple[int, int]]:
    """Half-open spans from left to right; some overlap, and some are empty."""
    starts = sorted(choices.number(20) for _ in range(count))
    return [(start, start + choices.number(5)) for start in starts]


_COMMANDS = [name for name in COMMANDS if name not in ("explore", "induce", "parse")]
_ARGUMENTS = [
    *"""FOLDER FOLDER/missing FOLDER/text FOLDER/bytes - -- en test -1 0 1e9 nan a=b --split --output
    --side --help --format --num-epoch-checkpoints --checkpoint-upper-bound --metric
    --label --references --task --tree-parser --destdir --workers --seed --on-parse-error --= --q
    @FOLDER/text""".split(),
    *("", "\udcff", "\x00", "x" * 5000),
]


@target(lambda: [b"", bytes(range(40)), b"\x02\x00", b"\x01\x03\x02\x01"])
def arguments(data: bytes) -> None:
    """The command line of ``tree-fairseq``; an exit status, or a message."""
    choices = Choices(data)
    with scratch() as folder, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        (folder / "text").write_text("(S (NN a))\n\nb c\n", encoding="utf-8")
        (folder / "bytes").write_bytes(bytes(range(256)))
        given = [choices.of(_COMMANDS)]
        while choices and len(given) < 12:
            given.append(choices.of(_ARGUMENTS).replace("FOLDER", str(folder)))
        before = os.getcwd()
        os.chdir(folder)
        try:
            status = main(given)
        finally:
            os.chdir(before)
        assert status in (None, 0, 1, 2)
