"""Downloads the archives of a data set, verifies them, and extracts them safely.

    python -m preprocess.fetch wmt14_en_de --output DIR     # download what is missing, verify, list
    python -m preprocess.fetch --list

Published checksums are verified: TensorFlow Datasets publishes those of the training archives of statmt.org, sacreBLEU
those of the test sets and of the 2017 TED sets, and PaddlePaddle that of IMDB. For the other archives the digest is
printed, so that users can note it.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.support.files import atomic_file


class FetchError(RuntimeError):
    """A download failed, a digest differs, or an archive would write outside its folder."""


@dataclass(frozen=True)
class Archive:
    """One published file. ``digest`` is ``"sha256:..."`` or ``"md5:..."``, or None if it is not published."""

    url: str
    digest: str | None = None
    name: str = ""

    @property
    def file_name(self) -> str:
        """Name of the file on disk."""
        return self.name or self.url.rsplit("/", 1)[-1]


_STATMT = "https://www.statmt.org"
# Dong and Lapata (2016): train.txt, test.txt and, for ATIS, dev.txt; question<TAB>logical form
_LOGICAL_FORMS = "http://dong.li/lang2logic"
# Wang et al. (2015), in the repository of the authors of insertion-based tree decoding
_OVERNIGHT = (
    "https://raw.githubusercontent.com/lukovnikov/parseq/098dbb6e5039592db2710bef0b3cad1cade87559/data/overnightData"
)
_SENTIMENT_TREEBANK = (Archive("https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"),)
_COGS_SPLITS = ("train", "dev", "test", "gen")
_COGS = "https://raw.githubusercontent.com/najoungkim/COGS/main/data"
# The variable-free forms of Qiu et al. (2022), in the order of the lines of COGS
_COGS_VARIABLE_FREE = "https://raw.githubusercontent.com/frankaging/ReCOGS/main/variable_free"
_CODEXGLUE = "https://raw.githubusercontent.com/microsoft/CodeXGLUE/main/Code-Code/code-to-code-trans/data"
_DJANGO = "https://raw.githubusercontent.com/odashi/ase15-django-dataset/master/django"
_CARD2CODE = "https://raw.githubusercontent.com/google-deepmind/card2code/master/third_party/hearthstone"
_TED_2017 = "https://raw.githubusercontent.com/hlt-mt/WIT3/master/archive/2017-01-trnted/texts"

SOURCES: dict[str, tuple[Archive, ...]] = {
    "geo": (Archive(f"{_LOGICAL_FORMS}/seq2seq_geoqueries.zip"),),
    "atis": (Archive(f"{_LOGICAL_FORMS}/seq2seq_atis.zip"),),
    "jobs": (Archive(f"{_LOGICAL_FORMS}/seq2seq_jobqueries.zip"),),
    "cogs": tuple(Archive(f"{_COGS}/{split}.tsv") for split in _COGS_SPLITS),
    "cogs_variable_free": tuple(Archive(f"{_COGS_VARIABLE_FREE}/{split}.tsv") for split in _COGS_SPLITS),
    "overnight": tuple(
        Archive(f"{_OVERNIGHT}/{domain}.paraphrases.{split}.examples")
        for domain in "basketball blocks calendar housing publications recipes restaurants socialnetwork".split()
        for split in ("train", "test")
    ),
    "java_csharp": tuple(
        Archive(f"{_CODEXGLUE}/{split}.java-cs.txt.{lang}")
        for split in ("train", "valid", "test")
        for lang in ("java", "cs")
    ),
    "django": (Archive(f"{_DJANGO}/all.anno"), Archive(f"{_DJANGO}/all.code")),
    "hearthstone": tuple(
        Archive(f"{_CARD2CODE}/{split}_hs.{side}") for split in ("train", "dev", "test") for side in ("in", "out")
    ),
    "imdb": (
        Archive(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz", "md5:7c2ac02c03563afcf9b574c7e56c153a"
        ),
    ),
    "movie_reviews": (Archive("https://www.cs.cornell.edu/people/pabo/movie-review-data/review_polarity.tar.gz"),),
    "sst2": _SENTIMENT_TREEBANK,
    "sst5": _SENTIMENT_TREEBANK,
    "sva": (Archive("http://tallinzen.net/media/rnn_agreement/agr_50_mostcommon_10K.tsv.gz"),),
    "iwslt14_de_en": (Archive("http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"),),
    "iwslt14_en_fr": (Archive("https://wit3.fbk.eu/archive/2014-01/texts/en/fr/en-fr.tgz"),),
    "iwslt13_en_fr": (
        Archive("https://wit3.fbk.eu/archive/2013-01/texts/en/fr/en-fr.tgz"),
        # TED sets of 2010-2015 with both sides; this is a different archive of the same name, so it is renamed
        Archive(f"{_TED_2017}/en/fr/en-fr.tgz", "md5:3cf07ebe305312b12f7f1a4d5f8f8377", "ted-2017.en-fr.tgz"),
    ),
    "wmt14_en_de": (
        Archive(
            f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz",
            "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        ),
        Archive(
            f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz",
            "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        ),
        Archive(
            f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz",
            "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        ),
        Archive(f"{_STATMT}/wmt13/test.tgz", "md5:48eca5d02f637af44e85186847141f67"),
        Archive(f"{_STATMT}/wmt14/test-full.tgz", "md5:a8cd784e006feb32ac6f3d9ec7eb389a"),
    ),
}


def verify(path: Path, digest: str | None) -> str:
    """Compares a file with ``"algorithm:hex"`` and returns its digest in that form (sha256 if ``digest`` is None).

    Raises FetchError, naming both digests, if they differ.
    """
    algorithm, _, expected = (digest or "sha256:").partition(":")
    total = hashlib.new(algorithm)
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            total.update(block)
    found = total.hexdigest()
    if expected and found != expected:
        raise FetchError(
            f"{path}: {algorithm} is {found}, published is {expected}. Delete the file and fetch it again; "
            "if the digest stays the same, the source has changed."
        )
    return f"{algorithm}:{found}"


def download(archive: Archive, folder: Path) -> Path:
    """Downloads one file into ``folder`` unless it exists, verifies it, and returns its path.

    The file gets its name only when it is complete and its digest is right.
    """
    folder.mkdir(parents=True, exist_ok=True)
    destination = folder / archive.file_name
    if destination.exists():
        verify(destination, archive.digest)
        return destination
    try:
        with urllib.request.urlopen(archive.url, timeout=60) as response, atomic_file(destination, "wb") as stream:
            expected = response.headers.get("Content-Length")
            while block := response.read(1 << 20):
                stream.write(block)
            stream.flush()
            if expected is not None and stream.tell() != int(expected):
                raise FetchError(f"{archive.url}: {stream.tell()} of {expected} bytes arrived; run again")
            verify(Path(stream.name), archive.digest)
    except (urllib.error.URLError, OSError) as error:
        raise FetchError(
            f"cannot fetch {archive.url} ({error}). Download it by other means and put it at {destination}."
        ) from error
    return destination


def extract(archive: Path, folder: Path) -> None:
    """Extracts a tar archive into ``folder``. Refuses links, devices and members that would be written outside of it.

    Raises FetchError. If any member is refused, nothing is extracted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            plain = {member.name: member.isfile() or member.isdir() for member in members}
            _refuse_outside(archive, folder, plain)
            tar.extractall(folder, members=members, filter="data")
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FetchError(f"{archive}: not a readable tar archive ({error})") from error


def unzip(archive: Path, folder: Path) -> None:
    """Extracts a zip archive into ``folder``, as :func:`extract` does with a tar archive."""
    try:
        with zipfile.ZipFile(archive) as content:
            _refuse_outside(archive, folder, dict.fromkeys(content.namelist(), True))
            content.extractall(folder)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise FetchError(f"{archive}: not a readable zip archive ({error})") from error


def _refuse_outside(archive: Path, folder: Path, plain: dict[str, bool]) -> None:
    """Checks the names of members, and whether each is a file or a folder."""
    root = folder.resolve()
    for name, is_plain in plain.items():
        if not is_plain or not (root / name).resolve().is_relative_to(root):
            raise FetchError(f"{archive}: refused, member {name!r} is not a plain file inside the folder")


def unpack(data: Path, work: Path) -> list[Path]:
    """Returns the folders to search: ``data``, and an extracted folder under ``work`` for each archive in ``data``.

    An archive is extracted once, into ``NAME.part``, which is renamed when it is complete.
    """
    folders = [data]
    for archive in sorted([*data.glob("*.tgz"), *data.glob("*.tar.gz"), *data.glob("*.tar")]):
        folder = work / archive.name.split(".t")[0]
        if not folder.exists():
            partial = folder.with_name(folder.name + ".part")
            extract(archive, partial)
            partial.rename(folder)
        folders.append(folder)
    return folders


def fetch(name: str, folder: Path) -> list[Path]:
    """Downloads and verifies every archive of the data set ``name``; returns their paths.

    The converters extract tar archives themselves. The files of a zip archive are extracted beside it.
    """
    paths = [download(archive, folder) for archive in SOURCES[name]]
    for path in paths:
        if path.suffix == ".zip":
            unzip(path, folder)
    return paths


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.fetch", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=sorted(SOURCES), help="data set")
    parser.add_argument("--output", type=Path, default=Path("."), help="folder for the archives")
    parser.add_argument(
        "--list", action="store_true", help="print the address and the published checksum of every archive"
    )
    args = parser.parse_args(arguments)
    if args.list or args.name is None:
        for name, archives in SOURCES.items():
            for archive in archives:
                sys.stdout.write(f"{name}\t{archive.url}\t{archive.digest or 'no checksum published'}\n")
        return 0
    try:
        for path in fetch(args.name, args.output):
            sys.stdout.write(f"{path}\t{verify(path, None)}\n")
    except FetchError as error:
        sys.stderr.write(f"fetch: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
