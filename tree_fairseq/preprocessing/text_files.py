"""Text on its way into a folder: tokenised, and split into subwords by a model that is given or learned from train.

All of it happens in the staging folder, line by line, so the parser and fairseq read text that is split already.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fairseq.data import encoders

from tree_fairseq.data_bin import text_record
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Work
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import kind_of_model, learn_subwords, load_subword_model, marks_of_text
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.options import Flags, flag_of
from tree_fairseq.trees.text import Chunk, TextInput, chunk_lines, inspect_text, read_lines, tokens

logger = logging.getLogger(__name__)

_BOTH_SIDES = "; two files, separated by a comma, for source and target, and an empty name for a side that is not split"
_KEPT = "The file is copied into the destination, so that new text is split in the same way"
TEXT_FLAGS: Flags = {
    "--bpe-codes": {
        "metavar": "FILE",
        "help": "codes of subword-nmt. A file with its marks (@@) is split already and stays as it is; other files "
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
        "subword_nmt, which is the default, or a vocabulary of N pieces with --bpe sentencepiece. Text beside programs "
        "and the names in them are cut by the same N merges",
    },
    "--apply-tokenizer": {
        "action": "store_true",
        "help": "the text is raw: tokenise it with --tokenizer first. Otherwise --tokenizer names the tokeniser that "
        "the text came from. New text is tokenised with it, and output is detokenised",
    },
    "--moses-no-dash-splits": {"action": "store_true", "help": "with --tokenizer moses: keep words with dashes whole"},
}

_KINDS = {"subword_nmt": text_record.BPE, "sentencepiece": text_record.SENTENCEPIECE}  # by the value of --bpe
_FILES = ("bpe_codes", "sentencepiece_model")  # arguments
_FOLDER = "text"  # in the staging folder


@dataclass(frozen=True)
class SideRequest:
    """How a command wants the text of a language to be prepared."""

    lang: str
    kind: Optional[str] = None  # ``bpe``, ``sentencepiece``, or None for whole words
    file: Optional[str] = None  # the subword model, if it is given
    # the number of ``--learn-subwords`` for a model to be learned, or with which the given one was learned
    learn: Optional[int] = None
    tokenizer: Optional[Mapping[str, Any]] = None  # the options of fairseq's tokeniser
    is_raw: bool = False  # whether the tokeniser is still to be applied

    @property
    def must_learn(self) -> bool:
        """Whether the model is still to be learned."""
        return self.learn is not None and self.file is None


def asks_for_text(args: Namespace) -> bool:
    """Returns whether arguments say how text is prepared, or the folder that they extend does."""
    return _gives_flags(args) or args.apply_tokenizer or args.bpe in _KINDS or _inherited(args) is not None


def text_requests(args: Namespace, languages: Mapping[str, str]) -> dict[str, SideRequest]:
    """Returns the request for each side (``source``, ``target``) whose language is given, unless nothing is asked for.

    Without flags, text that extends a folder, or uses its dictionaries, is prepared like that folder's.
    Raises InputError if flags do not go together, and MissingLibraryError without the library of a tokeniser.
    """
    inherited = _inherited(args)
    if args.bpe in _KINDS and args.learn_subwords is None and not any(getattr(args, name) for name in _FILES):
        flag = "--bpe-codes" if args.bpe == "subword_nmt" else "--sentencepiece-model"
        hint = f"Give {flag} FILE, or --learn-subwords N."
        raise InputError(f"--bpe {args.bpe} does not say which model splits the text", hint=hint)
    if args.bpe not in (None, *_KINDS):
        hint = f"Text is split by --bpe {' or '.join(_KINDS)}."
        raise InputError(f"--bpe {args.bpe} would be ignored", hint=hint)
    if args.apply_tokenizer and not args.tokenizer and inherited is None:
        raise InputError("--apply-tokenizer does not say which tokeniser", hint="Give --tokenizer, such as moses.")
    if inherited is None or _gives_flags(args):
        requests = {side: _as_asked(args, side, lang) for side, lang in languages.items()}
    else:
        requests = {}
        for side, lang in languages.items():
            text = inherited[0].sides.get(lang, text_record.SideText())
            file = None if text.model is None else str(inherited[1] / text.model)
            is_raw = args.apply_tokenizer and text.tokenizer is not None
            requests[side] = SideRequest(lang, text.kind, file, text.learned, text.tokenizer, is_raw)
    for each in requests.values():
        if each.is_raw:
            text_record.require_encoder_library("tokenizer", each.tokenizer["tokenizer"])
    return {side: each for side, each in requests.items() if each.kind is not None or each.tokenizer is not None}


def model_within_trees(request: SideRequest) -> Optional[str]:
    """Returns the subword model for a side whose words are split only when it has trees.

    Raises InputError if the model would have to be learned, or the text tokenised.
    """
    if request.must_learn or request.is_raw:
        flag = "--learn-subwords" if request.must_learn else "--apply-tokenizer"
        raise InputError(
            f"{flag} reads lines of words, and the words of {request.lang} are known only in its trees",
            hint="Learn a model from the words with subword-nmt or SentencePiece, and give it with --bpe-codes or "
            "--sentencepiece-model.",
        )
    return request.file


def _gives_flags(args: Namespace) -> bool:
    return any(getattr(args, name) is not None for name in (*_FILES, "learn_subwords", "tokenizer"))


def _as_asked(args: Namespace, side: str, lang: str) -> SideRequest:
    """The request of flags. Those that take files may have one for each side, separated by a comma."""
    files = {name: (getattr(args, name) or "").split(",")[-1 if side == "target" else 0] for name in _FILES}
    kinds = {flag_of(name): kind_of_model(path) for name, path in files.items() if path}
    if args.bpe in _KINDS:
        kinds["--bpe"] = _KINDS[args.bpe]
    if len(set(kinds.values())) > 1:
        raise InputError(f"{' and '.join(kinds)} name different kinds of models for {lang}; give one of them")
    file = next(filter(None, files.values()), None)
    learn = args.learn_subwords if file is None else None
    kind = next(iter(kinds.values()), None if learn is None else text_record.BPE)
    tokenizer = _tokenizer_options(args, lang)
    return SideRequest(lang, kind, file, learn, tokenizer, args.apply_tokenizer and tokenizer is not None)


def _tokenizer_options(args: Namespace, lang: str) -> Optional[dict[str, Any]]:
    if args.tokenizer != "moses":
        return None if args.tokenizer is None else {"tokenizer": args.tokenizer}
    # In a folder for classification, the name of the side is not that of a language.
    language = (args.tree_lang or "en") if lang == "text" else lang
    # Names of programs have characters, not Moses' entities, and a model could not copy them otherwise.
    no_escape = args.apply_tokenizer and "tree" in (args.source_modality, args.target_modality)
    switches = {"moses_no_dash_splits": args.moses_no_dash_splits, "moses_no_escape": no_escape}
    return {"tokenizer": "moses", "source_lang": language, "target_lang": language, **switches}


def _inherited(args: Namespace) -> Optional[tuple[text_record.TextRecord, Path]]:
    """The record, and its folder, of the folder whose dictionaries are given."""
    given = [os.path.dirname(path) for path in (args.srcdict, args.tgtdict) if path]
    for folder in map(Path, [args.destdir, *given] if given else []):
        if (record := text_record.load_text_record(folder)) is not None:
            return record, folder
    return None


@dataclass(frozen=True)
class TextPlan:
    """How the text of each language is prepared."""

    requests: Mapping[str, SideRequest]  # by language
    within_trees: frozenset[str] = frozenset()  # languages whose words are split when their trees are read
    separator: Optional[str] = None  # a word between the sentences of a line, which is neither tokenised nor split
    aligned: Optional[str] = None  # the flag that gives alignments of tokens, if there are any

    @classmethod
    def of(cls, args: Namespace, languages: Mapping[str, str], options: Mapping[str, ParserOptions]) -> TextPlan:
        """Makes the plan of arguments, for languages by side; ``options`` are those of the languages' parsers."""
        requests = {request.lang: request for request in text_requests(args, languages).values()}
        for path in sorted({request.file for request in requests.values() if request.file is not None}):
            load_subword_model(path)
        within = {lang: found.subword_model for lang, found in options.items() if found.subword_model is not None}
        for lang, model in within.items():
            requests.setdefault(lang, SideRequest(lang, kind_of_model(model), model))
        aligned = "--align-suffix" if args.align_suffix else "--alignfile" if args.alignfile else None
        return cls(requests, frozenset(within), aligned=aligned)

    def command(self) -> dict[str, Any]:
        """Returns all that decides how text is prepared, for JSON."""
        found = {}
        for lang, request in self.requests.items():
            model = None if request.file is None else file_sha256(request.file)
            found[lang] = [request.kind, model, request.learn, request.tokenizer, request.is_raw]
        return found

    def _name(self, request: SideRequest) -> str:
        same = [other for other in self.requests.values() if self._model_key(other) == self._model_key(request)]
        suffix = text_record.SUFFIXES[request.kind]
        return f"subwords.{suffix}" if len(same) > 1 else f"subwords.{request.lang}.{suffix}"

    def learned_model(self, request: SideRequest, work: Work) -> Path:
        """The file of a model that is learned; what is there already is not learned again."""
        return work.staging.folder(_FOLDER) / self._name(request)

    def _model_key(self, request: SideRequest) -> Any:
        if request.must_learn:
            return request.kind
        return None if request.file is None else os.path.realpath(request.file)

    def begin(self, manifest: Manifest, splits: Sequence[str]) -> None:
        """Enters the record of the text, for splits that will be written.

        Raises DataFolderError if splits that stay were prepared differently.
        """
        if not self.requests:
            return
        old, record = manifest.section(text_record.TextRecord), text_record.TextRecord()
        for lang, request in self.requests.items():
            record.sides[lang] = text_record.SideText(
                kind=request.kind,
                model=None if request.kind is None else self._name(request),
                sha256=None if request.file is None else file_sha256(request.file),
                learned=request.learn,
                tokenizer=None if request.tokenizer is None else dict(request.tokenizer),
            )
        if old is not None:
            record.sides = {**old.sides, **record.sides}
        manifest.keep_splits(old, record, splits, record.contents)
        pair = f"{manifest.source_lang}-{manifest.target_lang}"
        record.splits.update({split: text_record.TextSplitRecord(f"{split}.{pair}") for split in splits})
        manifest.sections[record.key] = record

    def prepare(self, inputs: dict[tuple[str, str], TextInput], work: Work) -> dict[tuple[str, str], TextInput]:
        """Returns the text files, by split and language, in tokens and pieces.

        Raises InputError if a model cannot be learned, or text is split by another kind of model.
        """
        found = dict(inputs)
        requests = [request for lang, request in self.requests.items() if lang not in self.within_trees]
        keys = {request.lang: [key for key in inputs if key[1] == request.lang] for request in requests}
        for request in requests:
            for key in keys[request.lang] if request.is_raw else ():
                found[key] = self._rewrite(found[key], key, work, request, None)
        split = {key for request in requests for key in keys[request.lang] if _is_split(found[key], key, request)}
        for request in requests:
            model = self._model(request, found, work)
            for key in keys[request.lang] if model is not None else ():
                if key not in split:
                    found[key] = self._rewrite(found[key], key, work, request, str(model))
        return found

    def _model(self, request: SideRequest, inputs: Mapping, work: Work) -> Optional[Path]:
        """The file of a request's model, which is learned first if the request asks for that."""
        if not request.must_learn:
            return None if request.file is None else Path(request.file)
        path = self.learned_model(request, work)
        if not path.exists():
            key = self._model_key(request)
            languages = [lang for lang, other in self.requests.items() if self._model_key(other) == key]
            if any(("train", lang) not in inputs for lang in languages):
                raise InputError("--learn-subwords learns from --trainpref", hint="Give it, or a model.")
            texts = [inputs["train", lang].path for lang in languages]
            logger.info("[text] learning %d subwords from %s", request.learn, ", ".join(map(str, texts)))
            learn_subwords(texts, request.kind, request.learn, path, self.separator)
        return path

    def _rewrite(
        self, text: TextInput, key: tuple[str, str], work: Work, request: SideRequest, model: Optional[str]
    ) -> TextInput:
        form = "tokens" if model is None else "pieces"
        path = work.staging.folder(f"{_FOLDER}/{form}") / ".".join(key)
        tokenizer = None if model is not None else tuple(request.tokenizer.items())
        rewrite = functools.partial(_rewritten, text.path, tokenizer, model, self.separator)
        words = pieces = 0
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            for written, before, after in work.pool.map(rewrite, text.chunks, f"prepared {text.path}"):
                file.write(written)
                words, pieces = words + before, pieces + after
        if self.aligned and words != pieces:
            raise InputError(
                f"{self.aligned} counts the tokens of the text as it is, and its words are split here",
                text.path,
                hint="Give text that is split already, or leave the alignments out.",
            )
        logger.info("[text] %s: %d words are %d %s", text.path, words, pieces, form)
        return inspect_text(path)

    def enter(self, work: Work) -> None:
        """Copies the models into the folder and enters them into the manifest."""
        split = {self._name(request): request for request in self.requests.values() if request.kind is not None}
        for name, request in split.items():
            model = self.learned_model(request, work) if request.must_learn else request.file
            shutil.copyfile(model, work.output / name)
        work.manifest.enter_files(work.output / name for name in split)
        if split:
            text_record.complete(work.manifest.section(text_record.TextRecord), work.output)


def _is_split(text: TextInput, key: tuple[str, str], request: SideRequest) -> bool:
    """Whether a text is in pieces already; InputError if they cannot be those of the requested model."""
    if request.kind is None or request.is_raw:
        return False
    marks = marks_of_text(read_lines(text.path), text.path)
    if marks.kind == "none" or request.must_learn and key[0] != "train":
        return False
    if request.must_learn or marks.kind != request.kind:
        names = {text_record.BPE: "subword-nmt (@@)", text_record.SENTENCEPIECE: "SentencePiece (\u2581)"}
        message = f"{marks.lines} of {text.lines} lines have the marks of {names[marks.kind]}, line {marks.first} first"
        hint = "Give the model that split them, with --bpe-codes or --sentencepiece-model, or join the pieces."
        raise InputError(f"{message}: the lines are split into subwords already", text.path, hint=hint)
    return True


def _rewritten(
    path: Path, tokenizer: Any, model: Optional[str], separator: Optional[str], chunk: Chunk
) -> tuple[str, int, int]:
    """The lines of a chunk, tokenised or split, and the numbers of words before and after."""
    apply = _preparation(tokenizer, model)
    lines, before, after = [], 0, 0
    for _, line in chunk_lines(path, chunk):
        parts = [line] if separator is None else line.split(f" {separator} ")
        written = f" {separator} ".join(map(apply, parts))
        lines.append(f"{written}\n")
        before, after = before + len(tokens(line)), after + len(tokens(written))
    return "".join(lines), before, after


@functools.lru_cache(maxsize=4)
def _preparation(tokenizer: Any, model: Optional[str]) -> Any:
    if model is not None:
        return load_subword_model(model).split_line
    return encoders.build_tokenizer(Namespace(**dict(tokenizer))).encode
