"""A checkpoint is used with data like its own; several folders of a training are alike."""

import hashlib
from collections.abc import Iterator
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DictionaryMismatchError


def require_same_facts(theirs: dict[str, Any], ours: dict[str, Any], data: str) -> None:
    """Makes sure that a checkpoint's data and ours agree in all :meth:`TreeTask.checkpoint_facts` that it has."""
    differing = []
    for name in filter(theirs.__contains__, ours):
        facts = [each[name] if isinstance(ours[name], dict) else {name: each[name]} for each in (theirs, ours)]
        for what, their_value, our_value in differences(*facts):
            are_lists = isinstance(their_value, list) and isinstance(our_value, list)
            counted = are_lists and len(their_value) != len(our_value)
            differing.append(f"{what} ({len(their_value)}, not {len(our_value)})" if counted else what)
    if differing:
        raise DictionaryMismatchError(
            f"a checkpoint was trained with other {', '.join(differing)} than those of {data}; use the folder that it "
            "was trained on, in the same direction (-s, -t), or one that was preprocessed with its options and "
            "dictionaries (--srcdict, --tgtdict)"
        )


_FACT_NAMES = {
    "insertion_labels": "labels of the targets",
    "keep_unary": "nodes (--keep-unary)",
    "source_dictionary": "words of the source",
    "target_dictionary": "words of the target",
}


def differences(theirs: dict, ours: dict, side: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yields the name and both values of each fact that differs. Only facts about a side may be missing on one hand."""
    for name in {**ours, **theirs}:
        their_value, our_value = theirs.get(name), ours.get(name)
        if isinstance(their_value, dict) or isinstance(our_value, dict):
            yield from differences(their_value or {}, our_value or {}, f" of the {name}")
        elif their_value != our_value and (side or (name in theirs and name in ours)):
            yield _FACT_NAMES.get(name, name) + side, their_value, our_value


def digest_of(dictionary: Dictionary) -> str:
    """Returns a digest of the symbols of a dictionary in their order, which decides what ids mean."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest()


def require_same_folders(data: str) -> None:
    """Makes sure that several folders, joined by ``:``, have the dictionaries, labels and parsers of the first.

    Raises DictionaryMismatchError before anything is read; it compares what ``tree.json`` has of each.
    """
    first, *others = utils.split_paths(data)
    manifest = Manifest.load(first)
    for folder in others:
        if found := manifest.differences(Manifest.load(folder)):
            languages = [lang for lang in (manifest.source_lang, manifest.target_lang) if lang]
            flags = " ".join(map("{} {}/dict.{}.txt".format, ("--srcdict", "--tgtdict"), [first] * 2, languages))
            raise DictionaryMismatchError(
                f"{folder} differs from {first} in {', '.join(found)}, so its ids would mean other words, or its trees "
                f"other things: preprocess it again with {flags}, and with the options of {first}"
            )
