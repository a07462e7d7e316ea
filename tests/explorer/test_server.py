"""The explorer's server: what it answers, what it refuses, one sentence at a time, and how it ends."""

from __future__ import annotations

import functools
import http.client
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tree_fairseq.errors import InputError
from tree_fairseq.explorer.document import OutputRecord, SentenceRecord
from tree_fairseq.explorer.server import LONGEST_REQUEST, MOST_WAITING, ExplorerServer

JSON = {"Content-Type": "application/json"}


class Parrot:
    """In the place of a comparison: repeats sentences, and cannot read some."""

    def __init__(self):
        self.at_once = self.most_at_once = 0
        self.lines: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def explain_line(self, line: str, number: int) -> SentenceRecord:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.lines.append(line)
        time.sleep(0.01)
        assert self.may_go_on.wait(20)
        self.at_once -= 1
        if line == "broken":
            raise RuntimeError("out of ideas")
        error = None if line.strip() else "the line is blank"
        output = OutputRecord(line.upper(), error=error)
        return SentenceRecord(number, line, line.split(), None, len(line.split()), 0, None, [output])


@pytest.fixture
def server():
    served = ExplorerServer([functools.cache(Parrot)], "<title>A page é</title>", 0, first=5)
    thread = threading.Thread(target=served.run)
    thread.start()
    yield served
    served.shutdown()
    thread.join()


def ask(server, method="POST", path="/explain", body: object = None, **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    text = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
    connection.request(method, path, text, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, content


def eventually(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def problem(answer) -> tuple[int, str]:
    status, headers, content = answer
    assert headers["Content-Type"] == "application/json" and headers["Connection"] == "close"
    [(name, message)] = json.loads(content).items()
    assert name == "error"
    return status, message


def test_it_serves_the_page_and_explains_sentences(server):
    status, headers, content = ask(server, "GET", "/")
    assert (status, content) == (200, "<title>A page é</title>")
    assert headers["Content-Type"] == "text/html; charset=utf-8" and headers["Cache-Control"] == "no-store"
    status, headers, content = ask(server, body={"text": "grün é"}, Content_Type="application/json; charset=utf-8")
    record = json.loads(content)
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert (record["id"], record["source"], record["systems"][0]["hypothesis"]) == (5, "grün é", "GRÜN É")
    assert ask(server, "HEAD", "/")[2] == ""


def test_one_connection_may_ask_again(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    for number in (5, 6):
        connection.request("POST", "/explain", json.dumps({"text": "again"}), JSON)
        assert json.loads(connection.getresponse().read())["id"] == number
    connection.close()


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1" and server.url == f"http://127.0.0.1:{server.server_port}/"


def _rows(name: str, values: Sequence[str], status: int, message: str) -> list[tuple]:
    return [({name: [value]}, status, message) for value in values]


HOSTS = ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}")
ORIGINS = ("http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        # A page of another site may have its name point here.
        *_rows("Host", HOSTS, 403, "this server is at {url}"),
        *_rows("Origin", ORIGINS, 403, "pages of other sites cannot use this server"),
        # A form of another site can send these types without being asked for its origin.
        *_rows("Content-Type", ("text/plain", "application/x-www-form-urlencoded", ""), 415, "application/json"),
        *_rows("Content-Length", ("-1", "many"), 411, "a request needs a Content-Length"),
        *_rows("Content-Length", ("9" * 5000,), 413, "a request has at most"),
        # Programs differ on which of two counts.
        ({"Content-Length": ["13", "13"]}, 400, "a request has one Content-Length"),
        ({"Host": ["127.0.0.1:{port}", "evil.example"]}, 400, "a request has one Host"),
        ({"Origin": ["http://127.0.0.1:{port}", "http://evil.example"]}, 400, "a request has one Origin"),
    ],
)
def test_requests_with_other_headers_are_refused(server, headers, status, message):
    usual = {"Host": ["127.0.0.1:{port}"], "Content-Type": ["application/json"], "Content-Length": ["13"]}
    for method, path in (("POST", "/explain"), ("GET", "/")) if status == 403 else (("POST", "/explain"),):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.putrequest(method, path, skip_host=True)
        for name, values in {**usual, **headers}.items():
            for value in values:
                connection.putheader(name, value.format(port=server.server_port))
        connection.endheaders(b'{"text": "x"}')
        answer = connection.getresponse()
        found = problem((answer.status, answer.headers, answer.read().decode()))
        assert found[0] == status and message.format(url=server.url) in found[1]
        connection.close()


def test_localhost_is_this_machine(server):
    host = f"localhost:{server.server_port}"
    answer = ask(server, body={"text": "x"}, Host=host, Origin=f"http://{host}", Content_Type="application/json")
    assert answer[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"\xff", 400, '{"text"'),
        ("[" * 15_000, 400, '{"text"'),
        ('["x"]', 400, '{"text"'),
        ('{"text": 1}', 400, '{"text"'),
        ('{"text": "one\\ntwo"}', 400, "one sentence"),
        ('{"text": "x", "tab": 1}', 400, "only 1 tabs"),
        ('{"text": "  "}', 422, "the line is blank"),
        ('{"text": "broken"}', 500, "RuntimeError: out of ideas"),
        ('{"text": "' + "x" * LONGEST_REQUEST + '"}', 413, f"{LONGEST_REQUEST} bytes"),
    ],
)
def test_requests_that_cannot_be_answered_say_why(server, body, status, message):
    found = problem(ask(server, body=body, Content_Type="application/json"))
    assert found[0] == status and message in found[1]
    assert ask(server, body={"text": "still here"}, Content_Type="application/json")[0] == 200


def test_other_paths_and_methods_are_refused_as_json(server):
    assert problem(ask(server, "GET", "/etc/passwd"))[0] == 404
    assert problem(ask(server, "POST", "/", {"text": "x"}, Content_Type="application/json"))[0] == 404
    assert problem(ask(server, "PUT", "/explain", {"text": "x"}))[0] == 501


def test_one_sentence_is_explained_at_a_time(server):
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda text: ask(server, body={"text": text}, Content_Type="application/json"), "abcdef")
        )
    assert [json.loads(content)["source"] for _, _, content in answers] == list("abcdef")
    assert server.tabs[0]().most_at_once == 1
    assert sorted(json.loads(content)["id"] for _, _, content in answers) == [5, 6, 7, 8, 9, 10]


def test_a_full_queue_is_refused_and_readers_who_left_get_nothing(server):
    """The first sentence takes long; of those that wait, the readers of three leave."""
    tab, waiting = server.tabs[0](), []
    tab.may_go_on.clear()
    for number in range(MOST_WAITING):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.request("POST", "/explain", json.dumps({"text": f"{number}"}), JSON)
        waiting.append(connection)
        eventually(lambda: tab.at_once == 1)  # the first one is the first to be explained
    eventually(lambda: server._places._value == 0 and tab.at_once == 1)
    status, message = problem(ask(server, body={"text": "one more"}, Content_Type="application/json"))
    assert status == 503 and f"{MOST_WAITING} sentences are waiting" in message
    assert ask(server, "GET", "/")[0] == 200
    for connection in waiting[1:4]:
        connection.close()
    tab.may_go_on.set()
    answered = {json.loads(waiting[place].getresponse().read())["source"] for place in (0, *range(4, MOST_WAITING))}
    assert answered == set(tab.lines) and len(answered) == MOST_WAITING - 3
    assert ask(server, body={"text": "again"}, Content_Type="application/json")[0] == 200


def test_a_port_that_is_taken_is_named(server):
    with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{server.server_port}.*--port"):
        ExplorerServer([], "", server.server_port)
    with pytest.raises(InputError, match="--port"):
        ExplorerServer([], "", 99_999)


@pytest.fixture
def heeding_interrupts():
    """Python ignores interrupts where its parent did, as a shell's background jobs do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_it_without_a_trace(caplog, heeding_interrupts):
    served = ExplorerServer([], "", 0)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with caplog.at_level(logging.INFO):
        served.run()
    assert "the server has ended" in caplog.text
    # The port is free again.
    ExplorerServer([], "", served.server_port).server_close()
