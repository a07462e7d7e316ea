"""Stanford CoreNLP's constituency parser, on a server that runs already.

    java -mx4g -cp "stanford-corenlp-4.5.10/*" edu.stanford.nlp.pipeline.StanfordCoreNLPServer -port 9000
    tree-fairseq parse train.en train.trees --tree-parser corenlp --corenlp-url http://localhost:9000

Several sentences go in one request, split at blanks and ends of lines, as they came. Only the standard library is used.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from tree_fairseq.errors import InputError, ParserUnavailableError
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.parsing.parsers import ParserOptions, flat_tree, register_parser
from tree_fairseq.trees.bracket import read_forest, unescape
from tree_fairseq.trees.tree import Tree

DEFAULT_URL = "http://localhost:9000"
# Raised when what this file makes of the server's answers changes, so that no older cached parse is used.
_ADAPTER_VERSION = 1
_LANGUAGES = ("ar", "de", "en", "es", "fr", "hu", "it", "zh")
SECONDS = 60.0  # the time that the server has for one request
_GRACE = 5.0  # seconds that the server's own report of its time-out has to arrive
_BUSY = (429, 502, 503, 504)  # the answers of a server that loads its models, or whose queue is full
_WAITS = (0.0, 0.5, 1.0, 2.0)  # seconds before each try
_VERSION = re.compile(r"[Vv]ersion\s*:?\s*(\d+(?:\.\d+)+)")
_PROBE = "The old man the boat ."
_PRETOKENIZED = {"tokenize.whitespace": "true", "ssplit.eolonly": "true"}


class CoreNlpServer:
    """A running CoreNLP server; errors say which server, and how to start one."""

    def __init__(self, url: str, timeout: float):
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ParserUnavailableError(f"--corenlp-url {url} is not an address such as {DEFAULT_URL}")
        self._url, self._timeout = url.rstrip("/"), timeout

    def version(self) -> str:
        """Returns the version that the server's page tells, or ``unknown``."""
        found = _VERSION.search(self._send("/", None))
        return found[1] if found else "unknown"

    def annotate(self, text: str, properties: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """Returns the sentences of CoreNLP's JSON for a text.

        Raises ParserUnavailableError if nobody answers at the address, or not CoreNLP; RuntimeError if the server could
        not parse this text.
        """
        given = json.dumps({**properties, "timeout": str(int(1000 * self._timeout))}, sort_keys=True)
        answer = self._send("/?" + urllib.parse.urlencode({"properties": given}), text.encode("utf-8"))
        try:
            return sentences_of(answer, self._url)
        except InputError as error:
            raise ParserUnavailableError(f"{self._url} is not a CoreNLP server: {answer[:100]!r}") from error

    def _send(self, path: str, body: bytes | None) -> str:
        request = urllib.request.Request(self._url + path, data=body)
        request.add_header("Content-Type", "text/plain; charset=utf-8")
        for wait in _WAITS:
            time.sleep(wait)
            try:
                # The server ends a parse itself when its time is over, and says so.
                with urllib.request.urlopen(request, timeout=self._timeout + _GRACE) as answer:
                    return answer.read().decode("utf-8", "replace")
            except urllib.error.HTTPError as error:
                reason = f"{error.code} {error.read(300).decode('utf-8', 'replace').strip() or error.reason}"
                if error.code not in _BUSY:
                    # The fault of the text: too long, or the parser gave up.
                    raise RuntimeError(f"the CoreNLP server at {self._url} answered {reason}") from None
            except (OSError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                if isinstance(error, TimeoutError) or "timed out" in reason:
                    message = f"the CoreNLP server at {self._url} gave no answer in {self._timeout:g} s"
                    raise RuntimeError(message) from None
        raise ParserUnavailableError(
            f"no CoreNLP server answers at {self._url} ({reason}). Start one with "
            'java -mx4g -cp "stanford-corenlp/*" edu.stanford.nlp.pipeline.StanfordCoreNLPServer -port 9000, or say '
            "with --corenlp-url where it is"
        )


@register_parser("corenlp")
class CoreNlpParser:
    """The constituency parser of a CoreNLP server, for the languages of its models.

    Its identity has the server's version, the properties of the request and a digest of the parse of a fixed sentence,
    so that parses of a server with other models are never mixed. Raises ParserUnavailableError if CoreNLP has no parser
    for the language, or the address is not that of a server.
    """

    def __init__(self, options: ParserOptions):
        lang = options.lang.strip().lower().split("-")[0]
        if lang not in _LANGUAGES:
            message = f"CoreNLP has no constituency parser for {options.lang!r}; it has one for {', '.join(_LANGUAGES)}"
            raise ParserUnavailableError(message)
        self._server = CoreNlpServer(options.corenlp_url, SECONDS)
        self._options = options
        self._properties = {"pipelineLanguage": lang, "outputFormat": "json", "annotators": "tokenize,ssplit,pos,parse"}

    def identity(self) -> dict[str, Any]:
        return self._identity

    @functools.cached_property
    def _identity(self) -> dict[str, Any]:
        try:
            found = self._server.annotate(_PROBE, {**self._properties, **_PRETOKENIZED})
        except RuntimeError as error:
            raise ParserUnavailableError(f"{error}; it cannot even parse {_PROBE!r}") from error
        probe = hashlib.sha256(json.dumps([sentence.get("parse") for sentence in found]).encode()).hexdigest()[:16]
        facts = {"version": self._server.version(), "adapter": _ADAPTER_VERSION, "properties": self._properties}
        return {"name": "corenlp", **facts, "probe": probe}

    def inventory(self) -> list[str]:
        """Returns ``[]``: a server does not tell its labels."""
        return []

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """A sentence for which the server gives other words has None. A batch that is too long for it fails."""
        text = "\n".join(map(" ".join, sentences))
        return list(map(_tree_over, sentences, self._server.annotate(text, {**self._properties, **_PRETOKENIZED})))

    def parse_text(self, lines: list[str]) -> list[ParsedText | None]:
        """The leaves are CoreNLP's tokens; white space inside a token becomes ``_``."""
        one_sentence = self._options.ssplit == "none"
        properties = {**self._properties, **({"ssplit.isOneSentence": "true"} if one_sentence else {})}
        return [_parsed_text(line, self._server.annotate(line, properties)) for line in lines]


def _tree_over(words: list[str], sentence: Mapping[str, Any]) -> Tree | None:
    tree, tokens = tree_of_sentence(sentence), sentence.get("tokens", ())
    if tree is None or len(tokens) != len(words) or len(tree.leaves()) != len(words):
        return None
    pairs = zip(words, tokens)  # however the server writes the words that were sent
    are_same = all(word in (token.get("originalText"), token["word"], unescape(token["word"])) for word, token in pairs)
    return tree.map_leaves(words) if are_same else None


def _parsed_text(line: str, sentences: list[Mapping[str, Any]]) -> ParsedText | None:
    trees, offsets = [], []
    for sentence in sentences:
        tree = tree_of_sentence(sentence)
        spans = [(token["characterOffsetBegin"], token["characterOffsetEnd"]) for token in sentence["tokens"]]
        if tree is None or len(tree.leaves()) != len(spans):
            return None
        trees.append(tree.map_leaves(["_".join(line[start:end].split()) for start, end in spans]))
        offsets += spans
    return ParsedText(tuple(trees), offsets)


# CoreNLP's "parse" of a sentence that it could not parse or did not want to.
_NO_PARSE = "SENTENCE_SKIPPED_OR_UNPARSABLE"


def tree_of_sentence(sentence: Mapping[str, Any]) -> Tree | None:
    """Returns the tree of a sentence of CoreNLP's JSON, or None where CoreNLP gave none.

    Raises InputError if there is no constituency parse, because CoreNLP ran without the annotator ``parse``.
    """
    if "parse" not in sentence:
        hint = "Run CoreNLP with the annotator parse."
        raise InputError(f"the sentence {sentence.get('index', 0) + 1} has no constituency parse", hint=hint)
    if sentence["parse"] == _NO_PARSE:
        return None
    forest = read_forest(" ".join(sentence["parse"].split()))
    return forest[0] if len(forest) == 1 else None


def sentences_of(text: str, source: str | os.PathLike) -> list[Mapping[str, Any]]:
    """Returns the sentences of CoreNLP's JSON; raises InputError, which names the ``source``, for anything else."""
    try:
        sentences = json.loads(text)["sentences"]
        if not all(isinstance(sentence, dict) for sentence in sentences):
            raise TypeError("a sentence is not an object")
    except (ValueError, KeyError, TypeError) as error:
        hint = "CoreNLP writes it with -outputFormat json."
        raise InputError(f"not CoreNLP's JSON ({type(error).__name__}: {error})", source, hint=hint) from None
    return sentences


def read_corenlp(text: str, path: str | os.PathLike | None = None) -> Iterator[Tree]:
    """Yields the trees of CoreNLP's JSON; a sentence that CoreNLP did not parse has a flat tree."""
    for sentence in sentences_of(text, path or "the text"):
        try:
            tree = tree_of_sentence(sentence)
        except InputError as error:
            raise error.at(path) from None
        if tree is None:
            tree = flat_tree([unescape(token["word"]) for token in sentence["tokens"]])
        yield tree
