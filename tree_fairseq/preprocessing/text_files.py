"""Text on its way into a folder: tokenised, split into subwords by a model that is given or learned from train.

All of it happens in the staging folder, line by line, so that the parser and fairseq read text that is split already.
"""

from __future__ import annotations

import functools
import io
import itertools
import logging
import os
import shutil
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fairseq.data import encoders

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.text_record import (
    BPE,
    SENTENCEPIECE,
    SUFFIXES,
    SideText,
    TextRecord,
    TextSplitRecord,
    complete,
)
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import SubwordModel, load_subword_model, marks_of
from tree_fairseq.preprocessing.text_options import SideRequest, text_requests
from tree_fairseq.support.files import atomic_file, file_sha256
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.text import Chunk, TextInput, chunk_lines, inspect_text, read_lines, tokens

logger = logging.getLogger(__name__)

_FOLDER = "text"  # in the staging folder
# Plain text has a word that ends in @@ in fewer lines, and text in pieces has one in more.
_SPLIT_SHARE = 0.01


@dataclass(frozen=True)
class TextPlan:
    """How the text of each language is prepared.

    Attributes:
        requests: by language
        within_trees: languages whose words are split when their trees are read
        is_separate: whether each language gets a learned model of its own
        separator: a word that stays as it is, between the sentences of a line
        aligned: the flag that gives alignments of tokens, if there are any
    """

    requests: Mapping[str, SideRequest]
    within_trees: frozenset[str] = frozenset()
    is_separate: bool = False
    separator: Optional[str] = None
    aligned: Optional[str] = None

    @classmethod
    def of(
        cls,
        args: Namespace,
        languages: Mapping[str, str],
        options: Mapping[str, ParserOptions],
        separator: Optional[str] = None,
    ) -> TextPlan:
        """Makes the plan of arguments, for languages by side; ``options`` are those of the parsers of languages."""
        requests = {request.lang: request for request in text_requests(args, languages).values()}
        for path in sorted({request.file for request in requests.values() if request.file is not None}):
            load_subword_model(path)
        within = {lang: found.subword_model for lang, found in options.items() if found.subword_model is not None}
        for lang, model in within.items():
            kind = SENTENCEPIECE if model.endswith(".model") else BPE
            requests.setdefault(lang, SideRequest(lang, kind, model))
        aligned = "--alignfile" if getattr(args, "alignfile", None) else None
        if getattr(args, "align_suffix", None):
            aligned = "--align-suffix"
        is_separate = bool(getattr(args, "separate_subwords", False))
        return cls(requests, frozenset(within), is_separate, separator, aligned)

    def command(self) -> dict[str, Any]:
        """Returns all that decides how text is prepared, for JSON."""
        found = {}
        for lang, request in self.requests.items():
            model = None if request.file is None else file_sha256(request.file)
            found[lang] = [request.kind, model, request.learn, request.tokenizer, request.is_raw]
        return found

    def _name(self, request: SideRequest) -> str:
        """Returns the file name of a request's model in the destination."""
        same = [other for other in self.requests.values() if self._model_key(other) == self._model_key(request)]
        return (
            f"subwords.{SUFFIXES[request.kind]}"
            if len(same) > 1
            else f"subwords.{request.lang}.{SUFFIXES[request.kind]}"
        )

    def _model_key(self, request: SideRequest) -> Any:
        if request.must_learn:
            return (request.kind, request.lang if self.is_separate else None)
        return None if request.file is None else os.path.realpath(request.file)

    def begin(self, manifest: Manifest, splits: Sequence[str]) -> None:
        """Makes the record in the manifest, for splits that will be written.

        Raises DataFolderError if splits that stay were prepared differently.
        """
        if not self.requests:
            return
        old, record = manifest.section(TextRecord), TextRecord()
        for lang, request in self.requests.items():
            has_model = request.kind is not None
            record.sides[lang] = SideText(
                kind=request.kind,
                model=self._name(request) if has_model else None,
                sha256=file_sha256(request.file) if request.file is not None else None,
                learned=request.learn,
                tokenizer=None if request.tokenizer is None else dict(request.tokenizer),
            )
        if old is not None:
            record.sides = {**old.sides, **record.sides}
        manifest.keep_splits(old, record, splits, record.contents)
        pair = f"{manifest.source_lang}-{manifest.target_lang}"
        record.splits.update({split: TextSplitRecord(f"{split}.{pair}") for split in splits})
        manifest.set_section(record)

    def stage(
        self, inputs: dict[tuple[str, str], TextInput], staging: Staging, pool: ProcessPool
    ) -> dict[tuple[str, str], TextInput]:
        """Returns the text files, by split and language, in tokens and pieces.

        Raises InputError if a model cannot be learned, or text is split by another kind of model.
        """
        staged = dict(inputs)
        requests = [request for lang, request in self.requests.items() if lang not in self.within_trees]
        for request in requests:
            for key in self._files(staged, request.lang) if request.is_raw else ():
                staged[key] = self._rewritten(staged[key], key, "tokens", staging, pool, request, None)
        for request in requests:
            marked = {key: _require_kind(staged[key], request) for key in self._files(staged, request.lang)}
            train = ("train", request.lang)
            if request.must_learn and marked.get(train, 0) > _SPLIT_SHARE * staged[train].lines:
                raise InputError(
                    f"{marked[train]} of {staged[train].lines} lines are in subwords already, of which none can be "
                    "learned",
                    staged[train].path,
                    hint="Give the model that split them, with --bpe-codes or --sentencepiece-model.",
                )
        for request in requests:
            model = self._model(request, staged, staging)
            for key in self._files(staged, request.lang) if model is not None else ():
                staged[key] = self._rewritten(staged[key], key, "pieces", staging, pool, request, str(model))
        return staged

    @staticmethod
    def _files(inputs: Mapping[tuple[str, str], TextInput], lang: str) -> list[tuple[str, str]]:
        return [key for key in inputs if key[1] == lang]

    def _model(self, request: SideRequest, inputs: Mapping, staging: Staging) -> Optional[Path]:
        """Returns the file of a request's model, and learns the model first if the request asks for that."""
        if not request.must_learn:
            return None if request.file is None else Path(request.file)
        path = staging.folder(_FOLDER) / self._name(request)
        if not path.exists():
            key = self._model_key(request)
            languages = [lang for lang, other in self.requests.items() if self._model_key(other) == key]
            missing = [lang for lang in languages if ("train", lang) not in inputs]
            if missing:
                raise InputError("--learn-subwords learns from --trainpref", hint="Give it, or a model.")
            texts = [inputs["train", lang].path for lang in languages]
            logger.info("[text] learning %d subwords from %s", request.learn, ", ".join(map(str, texts)))
            learn_model(texts, request.kind, request.learn, path, self.separator)
        return path

    def _rewritten(
        self,
        text: TextInput,
        key: tuple[str, str],
        form: str,
        staging: Staging,
        pool: ProcessPool,
        request: SideRequest,
        model: Optional[str],
    ) -> TextInput:
        path = staging.folder(f"{_FOLDER}/{form}") / ".".join(key)
        tokenizer = None if model is not None else tuple(request.tokenizer.items())
        prepare = functools.partial(_prepared, text.path, tokenizer, model, self.separator)
        words = pieces = 0
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            for written, before, after in pool.map(prepare, text.chunks, f"prepared {text.path}"):
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

    def enter(self, manifest: Manifest, staging: Staging, output: Path) -> None:
        """Copies the models into ``output`` and enters them into the manifest."""
        models = {}
        for request in self.requests.values():
            if request.kind is not None:
                name = self._name(request)
                models[name] = staging.folder(_FOLDER) / name if request.must_learn else Path(request.file)
        for name, path in models.items():
            shutil.copyfile(path, output / name)
        manifest.enter_files(output / name for name in models)
        if models:
            complete(manifest.section(TextRecord), output)


def learn_model(texts: Sequence[Path], kind: str, size: int, output: Path, separator: Optional[str] = None) -> None:
    """Learns codes of subword-nmt with ``size`` merges, or a SentencePiece model (unigram) with a vocabulary of it.

    The lines of all texts count alike, without the separator. The same texts always give the same model. Raises
    InputError if the texts are too small.
    """

    def lines() -> Iterator[str]:
        for line in itertools.chain.from_iterable(map(read_lines, texts)):
            words = [word for word in tokens(line) if word != separator]
            if words:
                yield " ".join(words)

    try:
        if kind == BPE:
            from subword_nmt.learn_bpe import learn_bpe

            codes = io.StringIO()
            learn_bpe(lines(), codes, size)
            learned = codes.getvalue().encode("utf-8")
        else:
            from sentencepiece import SentencePieceTrainer

            model = io.BytesIO()
            # A vocabulary larger than the text has pieces gives all pieces. The number of threads decides sums of
            # floating-point numbers, so it is the same everywhere.
            SentencePieceTrainer.train(
                sentence_iterator=lines(),
                model_writer=model,
                vocab_size=size,
                hard_vocab_limit=False,
                max_sentence_length=1 << 20,
                num_threads=16,
                minloglevel=1,
            )
            learned = model.getvalue()
    except ImportError as error:
        raise InputError(f"--learn-subwords needs {error.name}", hint="pip install 'tree-fairseq[subwords]'") from error
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{size} subwords cannot be learned from this text: {error}", texts[0]) from error
    with atomic_file(output, "wb") as file:
        file.write(learned)


def _require_kind(text: TextInput, request: SideRequest) -> int:
    """Returns the number of lines that are in pieces; raises InputError if they are pieces of another kind of model."""
    if request.kind is None:
        return 0
    marks = {BPE: 0, SENTENCEPIECE: 0, "none": 0}
    for line in read_lines(text.path):
        marks[marks_of(tokens(line))] += 1
    [other] = {BPE, SENTENCEPIECE} - {request.kind}
    if marks[other] > _SPLIT_SHARE * text.lines:
        names = {BPE: "subword-nmt (@@)", SENTENCEPIECE: "SentencePiece (\u2581)"}
        raise InputError(
            f"{marks[other]} of {text.lines} lines have the marks of {names[other]}, and the model is one of "
            f"{names[request.kind]}",
            text.path,
        )
    return marks[request.kind]


def _prepared(
    path: Path, tokenizer: Any, model: Optional[str], separator: Optional[str], chunk: Chunk
) -> tuple[str, int, int]:
    """Returns the lines of a chunk, tokenised or split, and the numbers of words before and after."""
    apply = _split(model) if model is not None else _tokenize(tokenizer)
    lines, before, after = [], 0, 0
    for _, line in chunk_lines(path, chunk):
        parts = [line] if separator is None else line.split(f" {separator} ")
        written = f" {separator} ".join(map(apply, parts))
        lines.append(f"{written}\n")
        before, after = before + len(tokens(line)), after + len(tokens(written))
    return "".join(lines), before, after


@functools.lru_cache(maxsize=2)
def _tokenize(tokenizer: tuple[tuple[str, Any], ...]) -> Any:
    return encoders.build_tokenizer(Namespace(**dict(tokenizer))).encode


@functools.lru_cache(maxsize=4)
def _split(path: str) -> Any:
    model = load_subword_model(path)
    assert isinstance(model, SubwordModel)
    return model.split_line
