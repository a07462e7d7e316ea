"""Word vectors from a file."""

from __future__ import annotations

import pytest

from tests.classification.documents import ARCHITECTURES, build_classifier, class_task


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"

    def write(*lines: str) -> str:
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return str(path)

    return write


def vector(number: float, width: int = 8) -> str:
    return " ".join([str(number)] * width)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_vectors_are_read_from_a_file(arch, vectors):
    path = vectors("2 8", f"s1 {vector(0.5)}", f"other {vector(2)}")
    words = class_task().source_dictionary
    table = build_classifier(arch, "--encoder-embed-path", path).encoder.embed_tokens.weight
    assert (table[words.index("s1")] == 0.5).all() and not (table[words.index("s2")] == 0.5).any()
    assert not table[words.pad()].any() and (table[words.unk()] < 2).all()


def test_vectors_of_another_width_are_refused(vectors):
    path = vectors("1 7", f"s1 {vector(0.5, 7)}")
    with pytest.raises(RuntimeError, match="size"):
        build_classifier(ARCHITECTURES[0], "--encoder-embed-path", path)
