"""The command: pages and JSON of one or two systems, of splits and of typed lines, and messages about what is wrong."""

from __future__ import annotations

import http.client
import json
import threading

import pytest
import torch

from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.tiny_corpus import make_pairs
from tree_fairseq import hub
from tree_fairseq.commands import explore
from tree_fairseq.explorer import server

QUIET = ("--cpu", "--no-progress-bar")
TREE = make_pairs(1, 2)[0].tree


def explored(tmp_path, *arguments: object) -> dict:
    path = tmp_path / "explored.json"
    assert explore.main([*map(str, arguments), *QUIET, "--json", str(path)]) == 0
    return json.loads(path.read_text(encoding="utf-8"))


def test_two_systems_translate_as_generate_does(trained, stock_trained, tmp_path):
    flags = "--beam", 3, "--max-len-b", 20
    paths = ("--path", trained.best, "--baseline", stock_trained.best)
    document = explored(tmp_path, trained.data, *paths, *flags, "--sentences", 6)
    assert [system["name"] for system in document["systems"]] == ["model", "baseline"]
    assert len(document["sentences"]) == 6
    for number, training in enumerate((trained, stock_trained)):
        expected = hypotheses(run("generate", training.data, *TASK, "--path", training.best, "--cpu", *flags))
        for sentence in document["sentences"]:
            text, score = expected[sentence["id"]]
            output = sentence["systems"][number]
            assert output["hypothesis"] == text.replace("@@ ", "")
            # fairseq prints logarithms of base 2.
            assert output["score"] == pytest.approx(score * torch.tensor(2.0).log().item(), abs=2e-3)
            assert 0 <= output["metric"] <= 100


def test_the_seed_and_half_precision_are_those_of_the_flags(trained, tmp_path):
    given = (trained.data, "--path", trained.best, "--sentences", 2, "--beam", 1, "--max-len-b", 8)
    sampled = ("--sampling", "--seed", 5)
    one, same, single, half = (explored(tmp_path, *given, *more) for more in (sampled, sampled, (), ("--fp16",)))
    assert one["sentences"] == same["sentences"] and single["sentences"] != half["sentences"]


def test_lines_of_a_file(trained, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text(f"{TREE}\n\n(S (NP (NN zebra)) (VP (VBZ sings)))\n", encoding="utf-8")
    document = explored(tmp_path, trained.data, "--path", trained.best, "--input", lines, "--beam", 2)
    errors = [sentence["systems"][0]["error"] for sentence in document["sentences"]]
    assert errors == [None, "the line is blank", None]
    assert document["systems"][0]["metric"] is None


def test_the_page_is_the_default(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [str(trained.data), "--path", str(trained.best), *QUIET, "--sentences", "1", "--beam", "1"]
    assert explore.main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["explore.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{data}",), "--path CHECKPOINT is missing"),
        (("{data}", "--path", "none.pt"), "none.pt"),
        (("{data}", "--path", "{path}", "--baseline", "none.pt"), "there is no such checkpoint"),
        (("{data}", "--path", "{data}"), "this is a folder, not a checkpoint"),
        (("{data}", "--path", "{path}", "--baseline", "a.pt", "b", "c"), "--baseline is one CHECKPOINT"),
        (("{data}", "--path", "{path}", "--json", "no/a.json"), "the folder no does not exist"),
        (("{data}", "--path", "{path}", "--gen-subset", "dev"), "dev"),
        (("{data}", "--path", "{path}", "--input", "no.txt"), "no.txt"),
        (("nowhere", "--path", "{path}"), "nowhere"),
        (("--demo", "--path", "{path}"), "--path does not work with --demo"),
    ],
)
def test_errors_are_one_message(trained, tmp_path, monkeypatch, caplog, arguments, message):
    monkeypatch.chdir(tmp_path)
    given = [text.format(data=trained.data, path=trained.best) for text in arguments]
    given += [] if "--json" in given else ["--json", "explored.json"]
    assert explore.main([*given, *QUIET]) == 1
    error = caplog.records[-1]
    assert error.levelname == "ERROR" and message in error.getMessage() and error.exc_info is None
    assert not list(tmp_path.iterdir())


def test_the_server_explains_typed_sentences(trained, monkeypatch):
    answers = []

    def ask_once(self):
        thread = threading.Thread(target=self.serve_forever)
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        for method, path, body in (("GET", "/", None), ("POST", "/explain", json.dumps({"text": TREE}))):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answers.append(connection.getresponse().read().decode())
        connection.close()
        self.shutdown()
        thread.join()
        self.server_close()

    monkeypatch.setattr(server.ExplorerServer, "run", ask_once)
    flags = "--serve", "--port", "0", "--sentences", "2", "--beam", "2"
    assert explore.main([str(trained.data), "--path", str(trained.best), *QUIET, *flags]) == 0
    page, record = answers
    assert '"live":true' in page.replace(" ", "")
    assert json.loads(record)["id"] == 2 and "accumulation" in json.loads(record)["systems"][0]["views"]


def test_the_hub_explains(trained, tmp_path):
    model = hub.from_pretrained(trained.folder, data_name_or_path=trained.data)
    record = model.explain(TREE, beam=2)
    assert record["systems"][0]["hypothesis"] == model.translate([TREE], beam=2)[0].replace("@@ ", "")
    assert set(record["systems"][0]["views"]) == {"accumulation", "cross_attention"}
    model.explore([TREE], tmp_path / "page.html", beam=2)
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
