"""The French recipe: ready-made trees in the place of the source, split into subwords on the way."""

from __future__ import annotations

import pytest

from tests.recipes.commands import bash, recipe
from tree_fairseq.trees.bracket import read_forest


def leaves(lines):
    return [" ".join(word for tree in read_forest(line) for word in tree.leaves()) for line in lines]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    place = tmp_path_factory.mktemp("french")
    done = recipe("iwslt13_fr_en", "--toy", "--out", place, "--workers", "1", "--stage", "preprocess")
    assert done.returncode == 0, done.stderr[-3000:]
    return place


def test_leaves_are_the_pieces_of_the_text(out):
    apply = 'subword-nmt apply-bpe -c "$OUT/bpe/codes" < "$OUT/words/test.fr" > "$OUT/bpe/test.fr"'
    done = bash(
        f'{apply} && tree-fairseq export "$OUT/data-bin" --split test --words-from "$OUT/bpe/test.fr"', OUT=str(out)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pieces = (out / "bpe" / "test.fr").read_text().splitlines()
    assert any("@@" in line for line in pieces)
    assert leaves(done.stdout.splitlines()) == pieces


def test_trees_given_by_hand_are_read(out, tmp_path):
    for split in ("train", "valid", "test"):
        lines = (out / "words" / f"{split}.fr").read_text().splitlines()
        trees = [
            "(S " + " ".join(f"(N {word.replace('(', '-LRB-').replace(')', '-RRB-')})" for word in line.split()) + ")"
            for line in lines
        ]
        (tmp_path / f"{split}.fr").write_text("\n".join(trees) + "\n")
    done = recipe(
        "iwslt13_fr_en", "--toy", "--out", out, "--workers", "1", "--stage", "preprocess", "--trees", tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "prepare: done before" in done.stderr and "preprocess: finished" in done.stderr
    labels = (out / "data-bin" / "dict.label.fr.txt").read_text().split()
    assert {"S", "N", "N_sub"} <= set(labels)


def test_a_missing_file_is_named(out, tmp_path):
    done = recipe(
        "iwslt13_fr_en", "--toy", "--out", out, "--workers", "1", "--stage", "preprocess", "--trees", tmp_path
    )
    assert done.returncode == 1
    assert f"{tmp_path}/train.fr is missing" in done.stderr
