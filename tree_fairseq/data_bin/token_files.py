"""fairseq's token files, ``mmap`` and ``raw``: their names, the lengths of their lines, and their words."""

from __future__ import annotations

import functools
import itertools
import logging
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable

import numpy as np
from fairseq.binarizer import BinarizeSummary, FileBinarizer
from fairseq.data import ConcatDataset, Dictionary, indexed_dataset
from fairseq.file_chunker_utils import find_offsets

from tree_fairseq import errors
from tree_fairseq.data_bin.index_files import data_and_index, read_consecutive, require_data_size
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.support.files import require_plain_file
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.text import read_lines, tokens

logger = logging.getLogger(__name__)

_WAY_OUT = "Copy the file again from where the folder was made, or preprocess again"
# What fairseq raises for a damaged file, if it does not read noise.
_OF_FAIRSEQ = (AssertionError, AttributeError, EOFError, KeyError, MemoryError, OverflowError, ValueError, struct.error)
SUPPORTED = ("mmap", "raw")
_PARTS_PER_WORKER = 4
_UNKNOWN_SHARE = 0.05  # of the words of a split, above which raw text is a likely cause
_END, _GLUED_END = re.compile(r"[.!?]\W*$"), re.compile(r"\w[.!?]\W*$")


def token_prefix(split: str, source_lang: str, target_lang: str | None, lang: str) -> str:
    """Returns the name of a token file without extension, as ``fairseq-preprocess`` forms it: ``train.en-de.en``."""
    return f"{split}.{source_lang}-{target_lang}.{lang}"


def token_file_names(prefix: str | os.PathLike) -> list[str]:
    """Returns the names of the files of a token data set; ``raw`` is one text file."""
    name = Path(prefix).name
    return [name] if found_impl(prefix) == "raw" else [f"{name}.bin", f"{name}.idx"]


def found_impl(prefix: str | os.PathLike) -> str:
    """Returns the implementation of a token data set, one of :data:`SUPPORTED`, or raises CorruptFileError."""
    prefix = os.fspath(prefix)
    for suffix in ("", ".idx", ".bin"):
        require_plain_file(f"{prefix}{suffix}")
    try:
        impl = indexed_dataset.infer_dataset_impl(prefix)
    except OSError as error:
        raise errors.CorruptFileError(f"{prefix}.idx cannot be read: {error}") from None
    if impl not in SUPPORTED:
        raise errors.CorruptFileError(
            f"there is no token data set {prefix} in one of the formats {' and '.join(SUPPORTED)}"
        )
    return impl


def token_lengths(prefix: str | os.PathLike) -> np.ndarray:
    """Returns the number of tokens of every line, without EOS, ``[lines]`` int64; damaged files are errors."""
    return _sizes(os.fspath(prefix)).astype(np.int64) - 1


def _sizes(prefix: str) -> np.ndarray:
    """Returns the number of tokens of every line, with EOS, ``[lines]`` int; damaged files are errors."""
    if found_impl(prefix) == "raw":
        return np.array([len(tokens(line)) + 1 for line in read_lines(prefix)], np.int64)
    return _require_mmap_files(prefix)


def token_words(prefix: str | os.PathLike, dictionary: Dictionary) -> Iterator[list[str]]:
    """Yields the words of every line; a word that the dictionary lacks is ``<unk>``, except in ``raw`` files.

    Raises CorruptFileError if the files are missing or damaged, or have ids that the dictionary lacks.
    """
    if found_impl(prefix) == "raw":
        yield from map(tokens, read_lines(prefix))
        return
    symbols = np.array(dictionary.symbols, object)
    for number, ids in enumerate(token_ids(prefix, dictionary), start=1):
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(symbols):
            raise errors.CorruptFileError(
                f"{prefix}, line {number}: a token id is outside the dictionary of {len(symbols)} symbols"
            )
        yield symbols[ids].tolist()


def token_ids(prefix: str | os.PathLike, dictionary: Dictionary) -> Iterator[np.ndarray]:
    """Yields the ids of every line, without EOS, ``[N]`` int64; damaged files are errors."""
    prefix = os.fspath(prefix)
    if found_impl(prefix) == "raw":
        for line in read_lines(prefix):
            yield np.array([dictionary.index(word) for word in tokens(line)], np.int64)
        return
    dataset = make_with_care(indexed_dataset.make_dataset)(prefix, "mmap")
    for index in range(len(dataset)):
        ids = dataset[index].numpy()
        if not len(ids) or ids[-1] != dictionary.eos():
            raise errors.CorruptFileError(
                f"{prefix}, line {index + 1}: the tokens do not end with {dictionary.eos_word}"
            )
        yield ids[:-1]


def require_equal_lengths(trees: TreeStore, prefix: str | os.PathLike) -> None:
    """Checks that every line has as many leaves as tokens; LeafMismatchError names the first that has not."""
    sizes = _sizes(os.fspath(prefix))
    if len(sizes) != len(trees):
        raise errors.CorruptFileError(f"{prefix} has {len(sizes)} lines, {trees.prefix} has {len(trees)}")
    found, message = 0, ""
    for lines, leaves in trees.leaf_count_blocks():
        differing = np.flatnonzero(sizes[lines] - 1 != leaves)
        if len(differing) and not found:
            first = int(differing[0])
            line = lines.start + first
            message = f"{prefix}, line {line + 1}: {sizes[line] - 1} tokens, but {leaves[first]} leaves"
        found += len(differing)
    if found:
        raise errors.LeafMismatchError(f"{message} ({found} such lines)")


def _require_mmap_files(prefix: str) -> np.ndarray:
    """Checks that the files are whole and returns the number of tokens of every line, with EOS, ``[lines]`` int32."""
    value_bytes, sizes, _ = read_consecutive(Path(f"{prefix}.idx"))
    require_data_size(Path(f"{prefix}.bin"), value_bytes * int(sizes.sum(dtype=np.int64)))
    return sizes


def make_with_care(stock: Callable) -> Callable:
    """Makes fairseq check token files when it opens them; CorruptFileError names the damaged file and the way out.

    Without this, a damaged file is an AssertionError, or is read as other words.
    """

    def make_dataset(path: str, impl: str, fix_lua_indexing: bool = False, dictionary: Any = None):
        files = data_and_index(path)
        for file in (path, *files):
            require_plain_file(file)
        if impl != "raw" and len(missing := [file for file in files if not file.exists()]) == 1:
            raise errors.CorruptFileError(f"{missing[0]} is missing. {_WAY_OUT}")
        try:
            if impl == "mmap" and not missing:
                _require_mmap_files(path)
                if not files[0].stat().st_size:
                    raise errors.CorruptFileError(f"{files[0]} is empty: there is no line in it. Preprocess again")
            return stock(path, impl, fix_lua_indexing, dictionary)
        except _OF_FAIRSEQ as error:
            if isinstance(error, errors.TreeFairseqError):
                raise
            name = path if impl == "raw" else files[1]
            [problem, *_] = str(error).splitlines() or [type(error).__name__]
            raise errors.CorruptFileError(f"{name} is damaged ({problem.rstrip('. ')}). {_WAY_OUT}") from error

    return make_dataset


def binarize_in_parts(stock: Callable) -> Callable:
    """Binarizes a text in a pool that notices when a worker is killed; raises WorkerDiedError then.

    There are more parts than workers, so that no worker waits long for another one. The files do not depend on the
    number of parts.
    """

    def multiprocess_dataset(
        input_file: str,
        dataset_impl: str,
        binarizer: Any,
        output_prefix: str,
        vocab_size: int | None = None,
        num_workers: int = 1,
    ) -> BinarizeSummary:
        if num_workers == 1:
            return stock(input_file, dataset_impl, binarizer, output_prefix, vocab_size)
        offsets = find_offsets(input_file, num_workers * _PARTS_PER_WORKER)
        prefixes = [f"{output_prefix}.pt{number}" for number in range(len(offsets) - 1)]
        binarize = functools.partial(_binarize_part, binarizer, input_file, dataset_impl, vocab_size)
        summary = BinarizeSummary()
        with ProcessPool(num_workers) as pool:
            parts = zip_equal(offsets[:-1], offsets[1:], prefixes)
            for part in pool.map(binarize, [*parts], f"binarized {input_file}", progress=False):
                summary.merge(part)
        data, index = indexed_dataset.data_file_path, indexed_dataset.index_file_path
        whole = indexed_dataset.make_builder(data(output_prefix), impl=dataset_impl, vocab_size=vocab_size)
        for prefix in prefixes:
            whole.merge_file_(prefix)
            os.remove(data(prefix))
            os.remove(index(prefix))
        whole.finalize(index(output_prefix))
        return summary

    return multiprocess_dataset


def _binarize_part(
    binarizer: Any, input_file: str, dataset_impl: str, vocab_size: int | None, part: tuple[int, int, str]
) -> BinarizeSummary:
    start, end, prefix = part
    return FileBinarizer._binarize_chunk_and_finalize(
        binarizer, input_file, start, end, prefix, dataset_impl, vocab_size=vocab_size
    )


def most_frequent(counts: Counter[str]) -> str:
    """Lists the ten most frequent words, for messages: ``a (5), b (3)``."""
    return ", ".join(f"{word} ({count})" for word, count in counts.most_common(10))


def warn_of_raw_text(path: Path, dictionary: Dictionary) -> None:
    """Logs a warning if many words of a text are unknown, and its lines end in punctuation that is glued to a word."""
    lines = list(read_lines(path))
    words = Counter(word for line in lines for word in tokens(line))
    unknown = [(word, count) for word, count in words.most_common() if word not in dictionary]
    share = sum(count for _, count in unknown) / max(1, sum(words.values()))
    ends, glued = (sum(map(bool, map(form.search, lines))) for form in (_END, _GLUED_END))
    if share > _UNKNOWN_SHARE and 2 * glued > ends:
        logger.warning(
            "%s: %.0f %% of the words are unknown to the dictionary, such as %s. The text is raw: a word and the same "
            "word with punctuation are two. Add --tokenizer moses --apply-tokenizer, and --learn-subwords N",
            *(path.name, 100 * share, ", ".join(word for word, _ in unknown[:5])),
        )


def load_dictionary(folder: str | os.PathLike, lang: str) -> Dictionary:
    """Loads the token dictionary of a language; raises MissingTreesError or another DataFolderError if it cannot."""
    path = Path(folder) / f"dict.{lang}.txt"
    if not path.exists():
        raise errors.MissingTreesError(f"{folder} has no {path.name}: it was not preprocessed for {lang}")
    try:
        return Dictionary.load(os.fspath(path))
    except Exception as error:  # fairseq raises a bare Exception for a wrong encoding
        raise errors.DataFolderError(f"{path} is not a dictionary: {str(error).strip()!r}") from None


def side_prefixes(
    folder: Path, split: str, source_lang: str, target_lang: str, lang: str, suffix: str, combine: bool
) -> dict[str, Path]:
    """Returns the paths, without ``.bin`` and ``.idx``, of the files that lie beside the token files of a split.

    The keys are the parts of the split: ``train``, ``train1``, ... Without ``combine``, only the first part is
    returned. The names of the files may have the languages in the other order.
    """
    prefixes: dict[str, Path] = {}
    pairs = (f"{source_lang}-{target_lang}", f"{target_lang}-{source_lang}")
    for number in itertools.count() if combine else [0]:
        name = f"{split}{number or ''}"
        candidates = [folder / f"{name}.{pair}.{lang}.{suffix}" for pair in pairs]
        found = [prefix for prefix in candidates if data_and_index(prefix)[1].exists()]
        if not found:
            break
        prefixes[name] = found[0]
    return prefixes


def joined(stores: Sequence, upsample_primary: int) -> Sequence:
    """Joins the parts of a split; the first is repeated as ``--upsample-primary`` says."""
    return stores[0] if len(stores) == 1 else ConcatDataset(stores, [upsample_primary, *[1] * (len(stores) - 1)])
