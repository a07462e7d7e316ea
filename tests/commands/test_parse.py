"""The command that parses: a corpus, at once and in shards; and texts to look at."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parsing.conftest import small_blocks, toy_lines, write_text  # noqa: F401 (a fixture)
from tree_fairseq.commands.parse import main


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.en", toy_lines(95))


def test_the_command_line(text, tmp_path, small_blocks, capfd):
    output = tmp_path / "out.trees"
    assert main([str(text), str(output), "--tree-parser", "balanced"]) == 0
    assert len(output.read_text().splitlines()) == 95
    assert len(list((tmp_path / "out.trees.shards").glob("*.trees"))) > 5
    assert main([str(tmp_path / "missing"), str(output)]) == 1
    assert main([str(text), str(output), "--tree-parser", "berkeley"]) == 1
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0 and "--shard I/N" in capfd.readouterr().out


def test_shards_are_parsed_one_by_one_and_joined(text, tmp_path, small_blocks, caplog):
    output, flags = tmp_path / "out.trees", ["--tree-parser", "faulty"]
    write_text(text, [*toy_lines(94), "a NONE"])
    assert main([str(text), str(output), *flags, "--shard", "2/3"]) == 0
    assert main(["--join", str(output)]) == 1 and "lacks shards: 0/3, 1/3" in caplog.text
    for shard in ("1/3", "0/3", "2/3"):
        assert main([str(text), str(output), *flags, "--shard", shard]) == 0
    assert not output.exists() and main(["--join", str(output), "--max-parse-failures", "0"]) == 1
    assert "1 of 90 sentences could not be parsed" in caplog.text and "Lines: 95" in caplog.text
    left_by_a_killed_process = tmp_path / "out.trees.shards" / ".2-of-3.trees.0123.tmp"
    left_by_a_killed_process.touch()
    limit = ["--max-parse-failures", "1"]
    assert main(["--join", str(output), *limit]) == 0 and not left_by_a_killed_process.exists()
    assert main([str(text), str(tmp_path / "at-once"), *flags, *limit]) == 0
    assert output.read_bytes() == (tmp_path / "at-once").read_bytes()


def run(capsys, *arguments, status=0):
    assert main(list(arguments)) == status
    return capsys.readouterr().out


def feed(monkeypatch, content: bytes):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


RIGHT = ("--tree-parser", "right-branching")


def test_a_text_a_file_and_a_pipe_give_the_same_trees(tmp_path, capsys, monkeypatch):
    expected = "(X (X a) (X (X b) (X c)))\n\n(X d)\n"
    assert run(capsys, *RIGHT, "--text", "a b c", "--text", "", "--text", "d") == expected
    path = write_text(tmp_path / "text", ["a b c", "", "d"])
    assert run(capsys, str(path), *RIGHT) == expected
    for name in ((), ("-",)):
        feed(monkeypatch, path.read_bytes())
        assert run(capsys, *name, *RIGHT) == expected
    assert sorted(tmp_path.iterdir()) == [path]


def test_formats_and_their_options(capsys):
    text = ("--text", "a b c", "--tree-parser", "balanced")
    assert run(capsys, *text, "--format", "pretty") == "X\n├── X\n│   ├── X a\n│   └── X b\n└── X c\n"
    assert json.loads(run(capsys, *text, "--format", "json"))["leaves"] == ["a", "b", "c"]
    assert "<title>a b c</title>" in run(capsys, *text, "--format", "svg")
    brackets = ("--tree-parser", "brackets", "--text", "(A (B a) (B b) (B c))")
    assert run(capsys, *brackets, "--binarize") == "(A (B a) (@A (B b) (B c)))\n"
    assert run(capsys, *text, "--spans") == "(X[0:3] (X[0:2] (X[0:1] a) (X[1:2] b)) (X[2:3] c))\n"


def test_subwords_are_leaves_under_their_word(capsys):
    assert run(capsys, *RIGHT, "--text", "un@@ able man") == "(X (X (X_sub un@@) (X_sub able)) (X man))\n"
    assert run(capsys, *RIGHT, "--text", "un@@ able", "--tree-subwords", "none") == "(X (X un@@) (X able))\n"


def test_files_of_other_programs_are_read(tmp_path, capsys):
    path = tmp_path / "trees.mrg"
    path.write_text("( (S\n   (NN a)))\n\n(NP (NN b)\n (NN c))\n")
    assert run(capsys, str(path), "--read", "penn") == "(ROOT (S (NN a)))\n(NP (NN b) (NN c))\n"
    assert run(capsys, str(path), "--read", "penn", "--format", "pretty").startswith("ROOT S NN a\n\nNP\n")
    path.write_text('{"sentences": [{"parse": "(ROOT\\n (NN a))", "tokens": []}]}')
    assert run(capsys, str(path), "--read", "corenlp") == "(ROOT (NN a))\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--text", "b"], "--text and the file a are two texts"),
        (["a", "out", "--shard", "2/2"], "I/N with I from 0 to N-1, such as 0/8, not '2/2'"),
        (["-", "out"], "a corpus is read from a file"),
        (["a", "./a"], "the trees would replace the text in a"),
        (["a", "out", "--read", "penn"], "--read penn writes to the standard output"),
        (["a", "--read", "pen"], "Did you mean penn?"),
        (["a", "--read", "xyzzy"], "Others are penn and corenlp."),
        (["a", "--join", "out"], "--join out reads its shards: leave out a"),
    ],
)
def test_options_that_do_not_go_together(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_a_terminal_without_a_text_is_not_waited_for(monkeypatch, capsys):
    feed(monkeypatch, b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(SystemExit):
        main([*RIGHT])
    assert "no text: give --text" in capsys.readouterr().err


def test_faults_name_their_line(tmp_path, capsys, caplog, monkeypatch):
    feed(monkeypatch, b"a\n\xff\nb\n\xfe\n")
    assert run(capsys, *RIGHT, status=1) == ""
    assert "2 lines cannot be read:\nstandard input:2:1: byte 0xff is not valid UTF-8" in caplog.text
    run(capsys, *RIGHT, "--text", "(S (NN a))")
    assert "a tree in brackets, all of which becomes words" in caplog.text
    run(capsys, *RIGHT, "--text", "a boat\tsad")
    assert "columns, as in CoNLL" not in caplog.text
    run(capsys, *RIGHT, "--text", "1\tThe\tthe\tDET")
    assert "columns, as in CoNLL or NEGRA's export" in caplog.text
    assert run(capsys, "nowhere.en", "--parser-dir", str(tmp_path), status=1) == ""
    assert "nowhere.en: there is no such file" in caplog.text
    assert run(capsys, "--text", "(S (NN a)", "--tree-parser", "brackets", status=1) == ""
    assert "--text:1:" in caplog.text
    assert run(capsys, *RIGHT, "--text", "a", "--tree-tokenize", "parser", status=1) == ""
    assert "finds no tokens in raw text" in caplog.text


def test_the_command_needs_neither_torch_nor_fairseq_and_ends_with_its_pipe():
    program = (
        "import sys; from tree_fairseq.__main__ import main; status = main(sys.argv[1:]);"
        "print(sorted({'torch', 'fairseq', 'stanza', 'matplotlib'} & sys.modules.keys()), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "parse", *RIGHT, "--text", "a b c", "--format", "svg"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.endswith("</svg>\n") and done.stderr == "[]\n"
    long = [sys.executable, "-m", "tree_fairseq", "parse", *RIGHT, *["--text", "a b c"] * 5000]
    piped = subprocess.run(
        f"{shlex.join(long)} | head -n 1", shell=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert (piped.stdout, piped.stderr) == ("(X (X a) (X (X b) (X c)))\n", "")


def test_a_bad_tree_of_a_treebank_is_named_or_left_out(tmp_path, capsys, caplog):
    path = tmp_path / "wsj.mrg"
    path.write_text("<S>\n( (S (NP-SBJ_1 (NN a)) (-NONE- *)))\n(S (NN b)\n\n(S (NN c))\n(X y z))\n")
    assert run(capsys, str(path), "--read", "penn", status=1) == "(ROOT (S (NP-SBJ_1 (NN a))))\n"
    assert "wsj.mrg:3: 1 bracket" in caplog.text and "wsj.mrg:6: the word 'z'" in caplog.text
    assert "Close every bracket" in caplog.text and "tree-fairseq parse" not in caplog.messages[-1]
    kept = run(capsys, str(path), "--read", "penn", "--on-parse-error", "skip-pair", "--tree-tag-separators", "-")
    assert kept == "(ROOT (S (NP (NN a))))\n(S (NN c))\n"
    assert "left out, as no words: 1 lines of markup, 1 -NONE-" in caplog.text
    assert "(FRAG (XX y) (XX z))" in run(capsys, str(path), "--read", "penn", "--on-parse-error", "flat")
    assert run(capsys, "--text", "(S (NP_SB a))", "--tree-parser", "brackets", "--tree-strip-function-tags")
    assert "may still have function tags: NP_SB. --tree-tag-separators" in caplog.text
