"""A tiny made-up corpus in the layout of each data set, for trying a recipe without its data (``run.sh --toy``).

    python -m preprocess.toy_corpus wmt14 --output DIR

The sentences combine a few phrases that were written by hand in English, German and French. The files have the names,
the markup and the archives of the official downloads, so the real converters read them.
"""

from __future__ import annotations

import argparse
import io
import random
import tarfile
from functools import partial
from pathlib import Path

from preprocess import toy_classification, toy_logical_forms, toy_programs
from preprocess.corpora import write_lines
from preprocess.moses import TokenizerOptions, tokenize_lines
from preprocess.translation import IWSLT14_TEST

_LANGUAGES = ("en", "de", "fr")
_SUBJECTS = (
    ("the old man", "der alte Mann", "le vieil homme"),
    ("a small dog", "ein kleiner Hund", "un petit chien"),
    ("the child", "das Kind", "l'enfant"),
    ("my sister", "meine Schwester", "ma sœur"),
    ("nobody here", "niemand hier", "personne ici"),
    ("the woman's friend", "der Freund der Frau", "l'ami de la femme"),
)
_VERBS = (
    ("saw", "sah", "voyait"),
    ("wanted", "wollte", "voulait"),
    ("painted", "malte", "peignait"),
    ("forgot", "vergaß", "oubliait"),
)
_OBJECTS = (
    ("the boat", "das Boot", "le bateau"),
    ("a red house", "ein rotes Haus", "une maison rouge"),
    ("two well-known books", "zwei bekannte Bücher", "deux livres bien connus"),
    ("some bread & butter", "etwas Brot & Butter", "du pain & du beurre"),
)
_ENDINGS = (
    (".", ".", "."),
    (" at night.", " in der Nacht.", " pendant la nuit."),
    (" (as always)!", " (wie immer)!", " (comme toujours) !"),
    (", didn't they?", ", nicht wahr?", ", n'est-ce pas ?"),
)


def sentences(size: int, seed: int) -> list[tuple[str, ...]]:
    """Draws ``size`` sentences as (English, German, French)."""
    generator = random.Random(seed)
    drawn = []
    for _ in range(size):
        parts = [generator.choice(group) for group in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS)]
        rows = [f"{subject} {verb} {rest}{end}" for subject, verb, rest, end in zip(*parts)]
        drawn.append(tuple(row[0].upper() + row[1:] for row in rows))
    return drawn


def _column(rows: list[tuple[str, ...]], language: str) -> list[str]:
    return [row[_LANGUAGES.index(language)] for row in rows]


def _archive(path: Path, files: dict[str, list[str]]) -> None:
    """Writes a .tgz archive of text files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, lines in files.items():
            content = "".join(line + "\n" for line in lines).encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def _tagged(lines: list[str]) -> list[str]:
    """Returns the lines of a train.tags file, which begins with the metadata of a talk."""
    head = ["<url>http://example.org/1</url>", "<keywords>talks</keywords>", "<talkid>1</talkid>"]
    return [
        *head,
        f"<title>{lines[0]}</title>",
        f"<description>{lines[1]}</description>",
        *(f" {line} " for line in lines[2:]),
    ]


def _marked_up(lines: list[str]) -> list[str]:
    """Returns the lines of an XML or SGM test set; like in the published ones, only some ampersands are escaped."""
    rows = [f'<seg id="{number}"> {line.replace(" & ", " &amp; ")} </seg>' for number, line in enumerate(lines, 1)]
    return ['<refset trglang="x">', '<doc docid="1" genre="lectures">', *rows, "</doc>", "</refset>"]


def multi30k(output: Path, train: int, test: int) -> None:
    """Writes the files of ``data/task1``: all splits tokenised, and the 2016 test set untokenised, too."""
    for split, size, seed in (
        ("train", train, 1),
        ("val", test, 2),
        ("test_2016_flickr", test, 3),
        ("test_2017_flickr", test, 4),
    ):
        rows = sentences(size, seed)
        for language in _LANGUAGES:
            options = TokenizerOptions(language, lower=True, normalize=True)
            write_lines(output / f"{split}.lc.norm.tok.{language}", tokenize_lines(_column(rows, language), options))
            if split == "test_2016_flickr":
                write_lines(output / f"{split}.{language}", _column(rows, language))


def iwslt14(output: Path, train: int, test: int, release: str = "de-en") -> None:
    """Writes the archive of a 2014 release, German-English or English-French."""
    files, languages = {}, release.split("-")
    for language in languages:
        files[f"{release}/train.tags.{release}.{language}"] = _tagged(_column(sentences(train, 1), language))
    for seed, name in enumerate(IWSLT14_TEST[release], 2):
        for language in languages:
            rows = sentences(max(1, test // 5), seed)
            files[f"{release}/IWSLT14.{name}.{release}.{language}.xml"] = _marked_up(_column(rows, language))
    _archive(output / f"{release}.tgz", files)


def cognition(output: Path, train: int, test: int) -> None:
    """Writes the repository of CoGnition: ``data`` and ``eval/lexicon``; every compound occurs in five sentences."""
    for split, size, seed in (("train", train, 1), ("valid", test, 2), ("test", test, 3)):
        rows = _column(sentences(size, seed), "en")
        for language in ("en", "zh"):
            write_lines(output / "data" / f"{split}.{language}", (row.lower() for row in rows))
    contexts = ("{} saw me .", "he forgot {} .", "i wanted {} .", "one day {} sang .", "she said {} slept .")
    compounds = ["the small dog", "every chair he liked", "saw the red car", "near another bee"][: max(1, test // 5)]
    lines = [context.format(compound) for compound in compounds for context in contexts]
    folder = output / "data" / "cg-test"
    write_lines(folder / "cg-test.en", lines)
    write_lines(folder / "cg-test.zh", (line.replace(" ", "") for line in lines))
    write_lines(folder / "cg-test.compound", (compound for compound in compounds for _ in contexts))
    words = sorted({word for compound in compounds for word in compound.split()} - {"he", "the"})
    write_lines(
        output / "eval" / "lexicon", ["the\t/", "mod0\the liked", *(f"{word}\t{word}/{word}s" for word in words)]
    )


def gigaword(output: Path, train: int, test: int) -> None:
    """Writes articles and titles with the file names of the published sample, which has no test set."""
    for name, size, seed in (("train.{}", train, 1), ("valid.{}.filter", test, 2)):
        rows = [row.lower() for row in _column(sentences(size, seed), "en")]
        write_lines(output / f"{name.format('article')}.txt", rows)
        write_lines(output / f"{name.format('title')}.txt", (" ".join(row.split()[:3]) for row in rows))


def iwslt13(output: Path, train: int, test: int) -> None:
    """Writes the 2013 English-French training archive and the archive of the TED test sets."""
    rows = sentences(train, 1)
    _archive(
        output / "en-fr.tgz",
        {f"en-fr/train.tags.en-fr.{language}": _tagged(_column(rows, language)) for language in ("en", "fr")},
    )
    files = {}
    for seed, name in enumerate(("tst2012", "tst2013"), 2):
        for language in ("en", "fr"):
            rows = sentences(test, seed)
            files[f"en-fr/IWSLT17.TED.{name}.en-fr.{language}.xml"] = _marked_up(_column(rows, language))
    _archive(output / "ted-2017.en-fr.tgz", files)


def wmt14(output: Path, train: int, test: int) -> None:
    """Writes the five archives of the English-German task."""
    parts = (
        ("training-parallel-europarl-v7", "training/europarl-v7.de-en"),
        ("training-parallel-commoncrawl", "commoncrawl.de-en"),
        ("training-parallel-nc-v9", "training/news-commentary-v9.de-en"),
    )
    for seed, (archive, stem) in enumerate(parts, 1):
        rows = sentences(train // 3 + 1, seed)
        _archive(
            output / f"{archive}.tgz", {f"{stem}.{language}": _column(rows, language) for language in ("de", "en")}
        )
    rows = sentences(test, 5)
    _archive(
        output / "test.tgz",
        {f"test/newstest2013-src.{language}.sgm": _marked_up(_column(rows, language)) for language in ("de", "en")},
    )
    rows = sentences(test, 6)
    names = {"en": "newstest2014-deen-src.en.sgm", "de": "newstest2014-deen-ref.de.sgm"}
    _archive(
        output / "test-full.tgz",
        {f"test-full/{name}": _marked_up(_column(rows, language)) for language, name in names.items()},
    )


LAYOUTS = {
    "cognition": cognition,
    "gigaword": gigaword,
    "iwslt13": iwslt13,
    "iwslt14": iwslt14,
    "iwslt14_en_fr": partial(iwslt14, release="en-fr"),
    "multi30k": multi30k,
    "wmt14": wmt14,
    **toy_logical_forms.LAYOUTS,
    **toy_classification.LAYOUTS,
    **toy_programs.LAYOUTS,
}


def main(arguments: list[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.toy_corpus", description=__doc__.splitlines()[0])
    parser.add_argument("layout", choices=sorted(LAYOUTS))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--train", type=int, default=120, help="number of training pairs (default: %(default)s)")
    parser.add_argument(
        "--test", type=int, default=15, help="number of pairs of a validation or test set (default: %(default)s)"
    )
    args = parser.parse_args(arguments)
    LAYOUTS[args.layout](args.output, args.train, args.test)


if __name__ == "__main__":
    main()
