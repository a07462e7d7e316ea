"""The flags of ``fairseq-preprocess`` about tokens and subwords, and the request that they make for each side."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from tree_fairseq.data_bin.text_record import BPE, SENTENCEPIECE, TextRecord, load_text_record
from tree_fairseq.errors import InputError
from tree_fairseq.support.options import flag_of

_KINDS = {"subword_nmt": BPE, "sentencepiece": SENTENCEPIECE}
_FILES = {"bpe_codes": BPE, "sentencepiece_model": SENTENCEPIECE}
_BOTH_SIDES = "; two files, separated by a comma, for source and target, and an empty name for a side that is not split"
_KEPT = "The file is copied into the destination, so that new text is split in the same way"

TEXT_FLAGS: Mapping[str, dict[str, Any]] = {
    "--bpe-codes": {
        "metavar": "FILE",
        "help": "codes of subword-nmt. Lines with its marks (@@) are split already and stay as they are; other lines "
        f"are split. {_KEPT}{_BOTH_SIDES}",
    },
    "--sentencepiece-model": {
        "metavar": "FILE",
        "help": f"a model of SentencePiece, used in the same way; its mark is \u2581{_BOTH_SIDES}",
    },
    "--learn-subwords": {
        "type": int,
        "metavar": "N",
        "help": "learn a subword model from the training text, and use it like a given one: N merges with --bpe "
        "subword_nmt, which is the default, or a vocabulary of N pieces with --bpe sentencepiece",
    },
    "--separate-subwords": {"action": "store_true", "help": "learn a model for each side, and not one for both"},
    "--apply-tokenizer": {
        "action": "store_true",
        "help": "the text is raw: tokenise it with --tokenizer first. Otherwise --tokenizer names the tokeniser that "
        "the text came from. New text is tokenised with it, and output is detokenised",
    },
    "--moses-no-dash-splits": {"action": "store_true", "help": "with --tokenizer moses: keep words with dashes whole"},
    "--moses-no-escape": {"action": "store_true", "help": "with --tokenizer moses: no entities such as &apos;"},
}


@dataclass(frozen=True)
class SideRequest:
    """The way in which a command wants the text of a language to be prepared.

    Attributes:
        kind: ``bpe``, ``sentencepiece``, or None for whole words
        file: the subword model, if it is given
        learn: the number of ``--learn-subwords`` for a model to be learned, or with which the given one was learned
        tokenizer: the options of fairseq's tokeniser
        is_raw: whether the tokeniser has still to be applied
    """

    lang: str
    kind: Optional[str] = None
    file: Optional[str] = None
    learn: Optional[int] = None
    tokenizer: Optional[Mapping[str, Any]] = None
    is_raw: bool = False

    @property
    def must_learn(self) -> bool:
        """Whether the model is still to be learned."""
        return self.learn is not None and self.file is None


def asks_for_text(args: Namespace) -> bool:
    """Returns whether arguments say how text is prepared, or the folder that they extend does."""
    given = _gives_flags(args) or getattr(args, "apply_tokenizer", False)
    return given or getattr(args, "bpe", None) in _KINDS or _inherited(args) is not None


def text_requests(args: Namespace, languages: Mapping[str, str]) -> dict[str, SideRequest]:
    """Returns the request for each side (``source``, ``target``) whose language is given, unless nothing is asked for.

    Without flags, text that extends a folder, or uses its dictionaries, is prepared as that folder's.

    Raises:
        InputError: flags do not go together, or a file is missing.
    """
    _check_flags(args)
    inherited = None if _gives_flags(args) else _inherited(args)
    found = {}
    for side, lang in languages.items():
        if inherited is not None:
            request = _as_before(*inherited, lang, bool(getattr(args, "apply_tokenizer", False)))
        else:
            request = _as_asked(args, side, lang)
        if request.kind is not None or request.tokenizer is not None:
            found[side] = request
    return found


def model_within_trees(request: Optional[SideRequest]) -> Optional[str]:
    """Returns the subword model for a side whose words are split only when it has trees.

    Raises InputError if the model would have to be learned, or the text tokenised.
    """
    if request is None:
        return None
    if request.must_learn or request.is_raw:
        flag = "--learn-subwords" if request.must_learn else "--apply-tokenizer"
        raise InputError(
            f"{flag} reads lines of words, and the words of {request.lang} are known only in its trees",
            hint="Learn a model from the words with subword-nmt or SentencePiece, and give it with --bpe-codes or "
            "--sentencepiece-model.",
        )
    return request.file


def _gives_flags(args: Namespace) -> bool:
    return any(getattr(args, name, None) is not None for name in (*_FILES, "learn_subwords", "tokenizer"))


def _check_flags(args: Namespace) -> None:
    files = [name for name in _FILES if getattr(args, name, None)]
    learn, bpe = getattr(args, "learn_subwords", None), getattr(args, "bpe", None)
    if learn is not None and learn < 1:
        raise InputError(f"--learn-subwords is at least 1, not {learn}")
    if learn is not None and bpe is not None and bpe not in _KINDS:
        raise InputError(f"--learn-subwords learns with --bpe {' or '.join(_KINDS)}, not {bpe}")
    if bpe in _KINDS and learn is None and not files:
        flag = "--bpe-codes" if bpe == "subword_nmt" else "--sentencepiece-model"
        raise InputError(
            f"--bpe {bpe} does not say which model splits the text", hint=f"Give {flag} FILE, or --learn-subwords N."
        )
    if bpe in _KINDS and any(_FILES[name] != _KINDS[bpe] for name in files):
        raise InputError(f"--bpe {bpe} and {flag_of(files[0])} name different kinds of models; leave --bpe out")
    if getattr(args, "apply_tokenizer", False) and not getattr(args, "tokenizer", None) and not _inherited(args):
        raise InputError("--apply-tokenizer does not say which tokeniser", hint="Give --tokenizer, such as moses.")


def _as_asked(args: Namespace, side: str, lang: str) -> SideRequest:
    given = {name: _of_side(args, name, side) for name in _FILES}
    given = {name: path for name, path in given.items() if path}
    if len(given) > 1:
        raise InputError(f"--bpe-codes and --sentencepiece-model both name a model for {lang}; give one of them")
    tokenizer = _tokenizer(args, lang)
    is_raw = bool(getattr(args, "apply_tokenizer", False)) and tokenizer is not None
    for name, path in given.items():
        if not os.path.isfile(path):
            raise InputError(f"{flag_of(name)}: there is no such file", path)
        if path.endswith(".model") != (_FILES[name] == SENTENCEPIECE):
            raise InputError(
                f"{flag_of(name)}: the names of SentencePiece's models, and only of these, end in .model", path
            )
        return SideRequest(lang, _FILES[name], path, None, tokenizer, is_raw)
    learn = getattr(args, "learn_subwords", None)
    kind = None if learn is None else _KINDS[getattr(args, "bpe", None) or "subword_nmt"]
    return SideRequest(lang, kind, None, learn, tokenizer, is_raw)


def _of_side(args: Namespace, name: str, side: str) -> Optional[str]:
    values = (getattr(args, name, None) or "").split(",")
    if len(values) > 2:
        raise InputError(f"{flag_of(name)} takes one file, or two for source and target, not {len(values)}")
    return values[-1 if side == "target" else 0] or None


def _tokenizer(args: Namespace, lang: str) -> Optional[dict[str, Any]]:
    name = getattr(args, "tokenizer", None)
    if name is None:
        return None
    if name != "moses":
        return {"tokenizer": name}
    # In a folder for classification, the name of the side is not that of a language.
    language = (getattr(args, "tree_lang", None) or "en") if lang == "text" else lang
    switches = {flag: bool(getattr(args, flag, False)) for flag in ("moses_no_dash_splits", "moses_no_escape")}
    return {"tokenizer": name, "source_lang": language, "target_lang": language, **switches}


def _inherited(args: Namespace) -> Optional[tuple[TextRecord, Path]]:
    """Returns the record, and its folder, of the folder whose dictionaries are given."""
    given = [path for path in (getattr(args, "srcdict", None), getattr(args, "tgtdict", None)) if path]
    folders = [args.destdir, *map(os.path.dirname, given)] if given else []
    for folder in map(Path, folders):
        if (record := load_text_record(folder)) is not None:
            return record, folder
    return None


def _as_before(record: TextRecord, folder: Path, lang: str, applies_tokenizer: bool) -> SideRequest:
    side = record.sides.get(lang)
    if side is None:
        return SideRequest(lang)
    file = None if side.model is None else str(folder / side.model)
    is_raw = applies_tokenizer and side.tokenizer is not None
    return SideRequest(lang, side.kind, file, side.learned, side.tokenizer, is_raw)
