"""Serves the explorer's page on this machine alone, and explains typed sentences.

It answers ``GET /`` with the page and ``POST /explain`` with the record of one sentence, for the tab that the request
names. It listens on 127.0.0.1, and refuses requests that name another host or come from the page of another site:
neither another machine nor another page in the browser can use it.

Work is limited before it begins: the bytes of a request and the sentences that wait. A sentence whose reader has left
is not explained.
"""

from __future__ import annotations

import itertools
import json
import logging
import select
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from tree_fairseq.errors import InputError, TreeFairseqError
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.document import SentenceRecord

logger = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
LONGEST_REQUEST = 20_000  # the most bytes that a request may have
MOST_WAITING = 8  # the most sentences that are explained or wait for it

_READ_ONCE = ("Host", "Origin", "Content-Length", "Content-Type")  # with two of them, programs differ on which counts


class ExplorerServer(ThreadingHTTPServer):
    """Serves a page, and explains one sentence at a time, in the order of the requests.

    Each tab of the page has a function that returns its comparison. ``first`` is the id of the first sentence that is
    typed. Raises InputError if the port is taken; port 0 is any free one.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that are not accepted yet; those beyond it are reset
    # A second server on the same port would take half of the requests.
    allow_reuse_address = False

    def __init__(self, tabs: Sequence[Callable[[], Comparison]], page: str, port: int, first: int = 0):
        self.tabs, self.page = tabs, page.encode()
        self._numbers, self._places = itertools.count(first), threading.BoundedSemaphore(MOST_WAITING)
        # One thread: torch keeps memory for each thread that computes.
        self._explainer = ThreadPoolExecutor(1)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            problem = f"cannot listen on {ADDRESS}:{port}: {getattr(error, 'strerror', None) or error}"
            raise InputError(problem, hint="Give another --port.") from None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def explain(self, text: str, tab: int = 0, has_left: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """Explains a sentence, unless its reader ``has_left`` when its turn comes.

        Raises InputError if no system has an output for it, and ConnectionError if nobody waits for it.
        """

        def explained() -> SentenceRecord:
            if has_left():
                raise ConnectionAbortedError("nobody waits for this sentence")
            return self.tabs[tab]().explain_line(text, next(self._numbers))

        if not self._places.acquire(blocking=False):
            problem = f"{MOST_WAITING} sentences are waiting already; ask again when they are explained"
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
        try:
            record = self._explainer.submit(explained).result()
        finally:
            self._places.release()
        if all(output.error for output in record.systems):
            raise InputError(record.systems[0].error or "")
        return record.to_dict()

    def run(self) -> None:
        """Serves until the process is interrupted (Ctrl-C)."""
        try:
            self.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            logger.info("the server has ended")
        finally:
            self.server_close()
            self._explainer.shutdown(wait=False, cancel_futures=True)


class _Refused(Exception):
    """A request that is answered by an error."""

    def __init__(self, status: HTTPStatus, message: str):
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "tree-fairseq", ""
    timeout = 10  # seconds that a connection may be silent

    def do_GET(self) -> None:
        self._answer(self._page)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._answer(self._explanation)

    def _answer(self, make) -> None:
        try:
            self._check_host()
            content_type, body = make()
            self._send(HTTPStatus.OK, content_type, body)
        except _Refused as error:
            self._send_problem(error.status, str(error))
        except TreeFairseqError as error:
            self._send_problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except OSError:
            # The browser has gone away.
            self.close_connection = True
        except Exception as error:
            logger.exception("a sentence could not be explained")
            message = f"the sentence could not be explained: {type(error).__name__}: {error}"
            self._send_problem(HTTPStatus.INTERNAL_SERVER_ERROR, message)

    def _page(self) -> tuple[str, bytes]:
        if self.path.partition("?")[0] != "/":
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no {self.path} here; the page is at /")
        return "text/html; charset=utf-8", self.server.page

    def _explanation(self) -> tuple[str, bytes]:
        if self.path != "/explain":
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is no {self.path} here; sentences go to /explain")
        if self.headers.get_content_type() != "application/json":
            problem = "the content type of a request is application/json"
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, problem)
        record = self.server.explain(*self._request(), self._has_left)
        return "application/json", json.dumps(record, ensure_ascii=False, allow_nan=False).encode()

    def _request(self) -> tuple[str, int]:
        """The text of the request's JSON object, and the number of its tab."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length")
        if len(length) > 9 or int(length) > LONGEST_REQUEST:
            problem = f"a request has at most {LONGEST_REQUEST} bytes"
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            request = None
        text = request.get("text") if isinstance(request, dict) else None
        if not isinstance(text, str) or len(text.splitlines()) > 1:
            raise _Refused(HTTPStatus.BAD_REQUEST, 'a request is {"text": "one sentence, on one line"}')
        tab = request.get("tab", 0)
        if type(tab) is not int or tab not in range(len(self.server.tabs)):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"this page has only {len(self.server.tabs)} tabs")
        return text, tab

    def _has_left(self) -> bool:
        try:
            readable = select.select([self.connection], [], [], 0)[0]
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _check_host(self) -> None:
        """Refuses requests for other hosts, from pages of other sites, and those that name a host or a site twice."""
        if doubled := [name for name in _READ_ONCE if len(self.headers.get_all(name, ())) > 1]:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"a request has one {doubled[0]}")
        hosts = {f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")}
        if self.headers.get("Host") not in hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, f"this server is at {self.server.url}")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            raise _Refused(HTTPStatus.FORBIDDEN, "pages of other sites cannot use this server")

    def _send_problem(self, status: HTTPStatus, message: str) -> None:
        # The rest of the request has not been read.
        self.close_connection = True
        self._send(status, "application/json", json.dumps({"error": message}, ensure_ascii=False).encode())

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers requests that HTTP itself refuses, such as unknown methods, as JSON too."""
        status = HTTPStatus(code)
        self._send_problem(status, message or status.phrase)

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)
