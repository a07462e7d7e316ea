"""A small server that speaks CoreNLP's protocol: requests as its documentation has them, flat trees as answers."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = "<html><body><h1>Stanford CoreNLP</h1><div>version 4.5.10</div></body></html>"


class Server(ThreadingHTTPServer):
    """Notes the requests; ``busy`` is how many of the next requests get 503, and words cause faults (see `answer`)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[dict, str]] = []
        self.busy = 0
        self.label = "S"
        self.page = PAGE

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, self.server.page)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode("utf-8")
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        properties = json.loads(query["properties"][0])
        self.server.requests.append((properties, text))
        if self.server.busy:
            self.server.busy -= 1
            self._send(503, "loading")
        elif "RAISE" in text:
            self._send(500, "CoreNLP request timed out. Your document may be too long.")
        else:
            if "SLOW" in text:
                time.sleep(1)
            self._send(200, json.dumps(answer(text, properties, self.server.label)))

    def _send(self, status: int, text: str) -> None:
        body = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)


def answer(text: str, properties: dict, label: str) -> dict:
    """CoreNLP's JSON for a text. ``UNPARSED`` in a sentence gives no tree, ``OTHER`` other words, ``JOIN`` one sentence
    for all lines."""
    pattern = r"\S+" if properties.get("tokenize.whitespace") == "true" else r"\w+|[^\w\s]"
    if properties.get("ssplit.eolonly") == "true" and "JOIN" not in text:
        spans = [found.span() for found in re.finditer(r"[^\n]+", text)]
    elif properties.get("ssplit.isOneSentence") == "true" or "JOIN" in text:
        spans = [(0, len(text))]
    else:
        spans = [found.span() for found in re.finditer(r"[^.\s][^.]*\.?", text)]
    sentences = []
    for index, (start, end) in enumerate(spans):
        found = [(match.start() + start, match.group()) for match in re.finditer(pattern, text[start:end])]
        words = [word for _, word in found]
        escaped = [word.replace("(", "-LRB-").replace(")", "-RRB-").replace("/", "\\/") for word in words]
        leaves = "\n    ".join(f"(T{len(word)} {leaf})" for word, leaf in zip(words, escaped))
        parse = f"(ROOT\n  ({label}\n    {leaves}))"
        if "UNPARSED" in words:
            parse = "SENTENCE_SKIPPED_OR_UNPARSABLE"
        tokens = [
            {
                "index": number,
                "word": "other" if "OTHER" in words else word,
                "originalText": "other" if "OTHER" in words else word,
                "characterOffsetBegin": offset,
                "characterOffsetEnd": offset + len(word),
            }
            for number, (offset, word) in enumerate(found, start=1)
        ]
        sentences.append({"index": index, "parse": parse, "tokens": tokens})
    return {"sentences": sentences}


@contextlib.contextmanager
def running() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
