"""The command that scores files of hypotheses: every metric, parts of the test set, baselines, faults."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from tree_fairseq.scoring.__main__ import main
from tree_fairseq.scoring.evalb import Parameters, compare
from tree_fairseq.trees.bracket import read_forest

SAMPLE = Path(__file__).parent / "evalb_sample"
SENTENCES = [
    f"the {word} man sees a {other} dog in the garden ." for word in ("old", "big") for other in ("red", "sad")
]
SOURCES = [f"quelle {'x ' * number}" for number in range(4)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """References, sources, a system and a baseline, in the working folder."""
    monkeypatch.chdir(tmp_path)
    write("ref", SENTENCES)
    write("src", SOURCES)
    write("sys", [*SENTENCES[:3], SENTENCES[3].replace("sad", "bad")])
    write("base", [line.replace("man", "dog").replace("the", "a") for line in SENTENCES])
    return tmp_path


def write(name, lines):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def score(*flags, hypotheses="sys", references=("ref",)):
    arguments = [hypotheses, "--references", *references, "--output", "out.json", *map(str, flags)]
    assert main(arguments) == 0
    return json.loads(Path("out.json").read_text(encoding="utf-8"))


def refused(caplog, *flags, **files):
    arguments = [files.get("hypotheses", "sys"), "--references", *files.get("references", ["ref"])]
    assert main([*arguments, "--output", "no.json", *map(str, flags)]) == 1
    assert not Path("no.json").exists()
    return caplog.messages[-1]


def test_text_is_scored_by_sacrebleu_with_its_signatures(folder, capsys):
    result = score("--baseline", "base", "--sources", "src", "--length-bounds", 2, "--samples", 50)
    system, baseline = (Path(name).read_text().splitlines() for name in ("sys", "base"))
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        assert result["metrics"][name] == pytest.approx(metric.corpus_score(system, [SENTENCES]).score)
        assert result["baselines"]["base"][name] == pytest.approx(metric.corpus_score(baseline, [SENTENCES]).score)
        assert result["signatures"][name] == str(metric.get_signature())
        [row] = [row for row in result["differences"] if row["metric"] == name]
        assert row["difference"] == pytest.approx(result["metrics"][name] - result["baselines"]["base"][name])
        assert 0 < row["p_value"] <= 1 and "50 samples" in row["signature"]
        parts = [metric.corpus_score(system[part], [SENTENCES[part]]).score for part in (slice(0, 2), slice(2, 4))]
        assert [part[name] for part in result["by_length"]] == pytest.approx(parts)
    assert [part["sentences"] for part in result["by_length"]] == [2, 2]
    printed = capsys.readouterr().out
    assert f"{result['metrics']['bleu']:.2f}" in printed and "tok:13a" in printed and "0-2" in printed


def test_options_of_text_and_several_references(folder):
    write("upper", [line.upper() for line in SENTENCES])
    assert score("--metrics", "bleu", hypotheses="upper")["metrics"]["bleu"] < 5
    lowered = score("--lowercase", hypotheses="upper")
    assert lowered["metrics"] == pytest.approx({"bleu": 100, "chrf": 100, "ter": 0})
    assert "tok:char" in score("--metrics", "bleu", "--tokenize", "char")["signatures"]["bleu"]
    both = score("--metrics", "bleu", "exact", references=("ref", "sys"))
    assert (
        both["metrics"] == pytest.approx({"bleu": 100, "exact_match": 100}) and "nrefs:2" in both["signatures"]["bleu"]
    )
    write("tokens", ["it 's &quot; fine &quot; ."])
    write("text", ['it\'s "fine".'])
    plain = score("--metrics", "ter", "--detokenize", "en", hypotheses="tokens", references=("text",))
    assert plain["metrics"]["ter"] == 0


def test_output_of_fairseq_generate_is_read_in_the_order_of_the_data(folder, caplog):
    texts = Path("sys").read_text().splitlines()
    lines = [
        line
        for number in (2, 0, 3, 1)
        for line in (
            f"S-{number}\tx",
            f"H-{number}\t-0.5\tpie@@ ces",
            f"D-{number}\t-0.5\t{texts[number]}",
            f"D-{number}\t-0.9\tsecond best",
        )
    ]
    write("generate-test.txt", ["INFO | start", *lines, "Generate test with beam=5"])
    expected = score("--metrics", "bleu", "exact")["metrics"]
    assert score("--metrics", "bleu", "exact", hypotheses="generate-test.txt")["metrics"] == expected
    assert expected["exact_match"] == 75
    # A sentence without a hypothesis counts as empty, one that was not translated does not.
    write("some", [*(line for line in lines if not line.startswith(("H-3", "D-3"))), "Generate test with beam=5"])
    assert score("--metrics", "exact", hypotheses="some")["metrics"]["exact_match"] == 75
    assert "1 of 4 sentences have no output" in caplog.text
    write("cut", [line for line in lines if "-3\t" not in line])
    assert "sentence 3 was not translated" in refused(caplog, hypotheses="cut")


def test_trees_match_in_any_notation_and_order(folder):
    write("gold", ["answer(and(a(x),b(y)))", "answer(c(z))", "answer(f(x,y))"])
    write("found", ["answer(and(b(y),a(x)))", "answer(c(z)", "answer( f( x , y ) )"])
    flags = ("--metrics", "tree", "exact", "--notation", "funql", "--depth-bounds", 2)
    result = score(*flags, hypotheses="found", references=("gold",))
    third = pytest.approx(100 / 3)
    assert result["metrics"] == {
        "tree_match": third,
        "tree_match_unordered": pytest.approx(200 / 3),
        "valid_trees": pytest.approx(200 / 3),
        "exact_match": 0,
    }
    assert [(part["from"], part["to"], part["sentences"]) for part in result["by_depth"]] == [(0, 2, 2), (3, None, 1)]
    # Generation may mark an output that can be read, but is not the tree that the model wrote.
    write("marked", [f"S-{n}\tx\nH-{n}\t-1\tanswer({n})" for n in range(3)] + ["I-1\t3 invalid", "I-2\t3 partial"])
    marked = score(*flags, hypotheses="marked", references=("gold",))
    assert marked["metrics"]["valid_trees"] == pytest.approx(200 / 3)
    free = score(*flags, "--unordered", "f", hypotheses="found", references=("gold",))
    assert free["metrics"]["tree_match_unordered"] == third


def test_brackets_are_compared_as_evalb_does(folder, caplog, capsys):
    result = score(
        "--metrics", "brackets", hypotheses=str(SAMPLE / "sample.tst"), references=[str(SAMPLE / "sample.gld")]
    )
    figures = {name: f"{value:.2f}" for name, value in result["metrics"].items()}
    assert figures == {
        "bracket_f1": "88.65", "bracket_recall": "87.23", "bracket_precision": "90.11",
        "unlabelled_bracket_f1": "90.81", "complete_match": "50.00", "average_crossing": "0.06", "no_crossing": "93.75",
        "two_or_less_crossing": "100.00", "tagging_accuracy": "97.12",
    }  # fmt: skip
    assert result["bracket_sentences"] == {"error": 6, "skipped": 2, "valid": 16}
    assert "6 of 24 hypotheses" in caplog.text and "16 sentences; 6 errors, 2 skipped" in capsys.readouterr().out
    assert [part["sentences"] for part in result["by_length"]] == [23, 1]


def test_a_hypothesis_that_is_no_tree_is_an_error_sentence(folder):
    gold = ["(S (NP (NN a)) (, ,) (VP (VB b)) (. .))"] * 2
    write("gold", gold)
    write("found", ["(S (NP (NN a) (, ,)) (VP (VB b)) (. .))", "(S (NP"])
    files = {"hypotheses": "found", "references": ("gold",)}
    assert score("--metrics", "brackets", **files)["bracket_sentences"] == {"error": 1, "skipped": 0, "valid": 1}
    assert score("--metrics", "brackets", **files)["metrics"]["bracket_f1"] == 100


def test_brackets_of_a_baseline_are_compared(folder):
    trees = (SAMPLE / "sample.gld").read_text().splitlines()[:8]
    write("gold", trees)
    write("good", trees)
    write("bad", [tree.replace("(B ", "(C ") for tree in trees])
    files = {"hypotheses": "good", "references": ("gold",)}
    rules = Parameters()
    assert compare(read_forest(trees[0]), read_forest(Path("bad").read_text().splitlines()[0]), rules).matched == 3
    for test in ("bootstrap", "randomization"):
        result = score("--metrics", "brackets", "--baseline", "bad", "--test", test, "--samples", 300, **files)
        rows = {row["metric"]: row for row in result["differences"]}
        assert rows["bracket_f1"]["difference"] == pytest.approx(25)
        assert rows["bracket_f1"]["p_value"] < 0.05 and rows["unlabelled_bracket_f1"]["p_value"] == 1


def test_classes_and_numbers(folder):
    write("gold.tsv", ["a b\tpos", "c\tneg", "d\tpos", "e\tneutral"])
    write("gold", ["pos", "neg", "pos", "neutral"])
    write("found", ["pos", "pos", "pos", "neg"])
    for references in ("gold", "gold.tsv"):
        result = score("--metrics", "classes", hypotheses="found", references=(references,))
        assert result["metrics"]["class_accuracy"] == 50
        assert result["metrics"]["class_macro_f1"] == pytest.approx(100 * (0.8 + 0 + 0) / 3)
    write("numbers", ["1", "2", "3", "4"])
    write("predicted", ["1.5", "2.5", "3.5", "4.5"])
    files = {"hypotheses": "predicted", "references": ("numbers",)}
    result = score("--metrics", "numbers", "--baseline", "numbers", **files)
    assert result["metrics"] == pytest.approx({"pearson": 100, "spearman": 100, "mean_squared_error": 0.25})
    rows = {row["metric"]: row for row in result["differences"]}
    assert rows["mean_squared_error"]["difference"] == 0.25 and rows["pearson"]["p_value"] == 1
    assert rows["spearman"]["difference"] == 0 and "p_value" not in rows["spearman"]


@pytest.mark.skipif(importlib.util.find_spec("rouge_score") is None, reason="rouge-score is not installed")
def test_rouge(folder):
    result = score("--metrics", "rouge", "--baseline", "base")
    assert 95 < result["metrics"]["rouge1"] < 100 and result["metrics"]["rouge2"] < result["metrics"]["rouge1"]
    assert {row["metric"] for row in result["differences"]} == {"rouge1", "rouge2", "rougeL"}


def test_depth_of_source_trees(folder):
    write("trees", ["(S (NP (NN a)))", "(S (A (B (C (D (E a))))))", "(NN a)", ""])
    result = score("--metrics", "exact", "--trees", "trees", "--depth-bounds", 1, 3)
    assert [(part["from"], part["sentences"]) for part in result["by_depth"]] == [(0, 2), (2, 1), (4, 1)]


def test_references_of_another_split_are_a_warning(folder, caplog):
    """Blanks, case and entities are those of the tokens; a line with an unknown word tells nothing."""
    write(
        "gen",
        [f"{kind}-{n}\t{text}" for n in range(3) for kind, text in (("T", f"It &apos;s word {n} ."), ("H", "-1\ta"))],
    )
    write("same", [f"it's word {n}." for n in range(3)])
    score("--metrics", "exact", hypotheses="gen", references=("same",))
    assert not caplog.messages
    write("other", ["it's word 0.", "another line", "and another"])
    score("--metrics", "exact", hypotheses="gen", references=("other",))
    assert "2 of 3 references are not the T- lines of gen, the first is line 2: 'another line'" in caplog.messages[0]
    assert "Give the references of the split that was generated" in caplog.messages[0]


def test_programs_that_their_library_wrote_anew_are_no_other_references(folder, caplog):
    write("gen", ["T-0\tSELECT COUNT(*) FROM t", "H-0\t-1\tSELECT COUNT(*) FROM t"])
    write("same", ["SELECT COUNT( * ) > 0 FROM T ;"])
    score("--metrics", "code", "--notation", "sql", hypotheses="gen", references=("same",))
    assert "T- lines" not in caplog.text


def test_trees_that_match_in_other_blanks_are_a_warning(folder, caplog):
    write("forms", ['{"a": 1, "b": [1, 2]}', '{"a": 2}'])
    write("outputs", ['{"a":1,"b":[1,2]}', '{"a":3}'])
    result = score("--metrics", "exact", "tree", "--notation", "json", hypotheses="outputs", references=("forms",))
    assert (result["metrics"]["exact_match"], result["metrics"]["tree_match"]) == (0, 50)
    assert (
        "1 of 2 hypotheses are the tree of the reference but not its text" in caplog.text
        and "Read tree_match" in caplog.text
    )


def test_faults_are_named(folder, caplog):
    write("short", SENTENCES[:2])
    assert "short has 2 lines, the references are 4" in refused(caplog, hypotheses="short")
    assert "src2" in refused(caplog, "--sources", "src2")
    assert "nowhere: there is no such file" in refused(caplog, hypotheses="nowhere")
    assert "nowhere: there is no such file" in refused(caplog, "--baseline", "nowhere")
    assert "short has 2 lines, ref has 4" in refused(caplog, references=["ref", "short"])
    assert "short has 2 lines, the hypotheses are 4" in refused(caplog, "--sources", "short")
    assert "not for brackets" in refused(caplog, "--metrics", "brackets", references=["ref", "ref"])
    assert "ref:1" in refused(caplog, "--metrics", "brackets")
    assert "ref:1" in refused(caplog, "--metrics", "tree")
    assert "ref:1: the line is not a class" in refused(caplog, "--metrics", "classes")
    assert "is not a number" in refused(caplog, "--metrics", "numbers")
    assert "the folder none does not exist" in refused(caplog, "--output", "none/scores.json")


def test_names_and_help(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert "HYPOTHESES" in listed and "structural" in listed and "tree-fairseq score NAME --run DIR" in listed
    assert main(["structual"]) == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    main(["code", "--help"])
    assert "--run" in capsys.readouterr().out


PAGE = Path(__file__).parents[2] / "docs" / "scoring.md"
COMMANDS = [
    shlex.split(block.replace("\\\n", " "))
    for block in re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
]


def test_commands_of_the_documentation_run(folder, capsys):
    trees = (SAMPLE / "sample.gld").read_text().splitlines()[:4]
    for name, lines in {
        "hypotheses.txt": SENTENCES,
        "stock.txt": Path("base").read_text().splitlines(),
        "generate-test.txt": [f"S-{n}\tx\nH-{n}\t-1\t{text}\nD-{n}\t-1\t{text}" for n, text in enumerate(SENTENCES)],
        "test.de": SENTENCES,
        "test.en": SOURCES,
        "test.trees": trees,
        "forms.txt": ["and(b,a)"],
        "test.lf": ["and(a,b)"],
        "parses.txt": trees,
        "gold.txt": trees,
        "classes.txt": ["pos"],
        "test.tsv": ["good\tpos"],
        **dict.fromkeys(("test.cs", "train.cs"), ["int f(){return 1;}"]),
        **dict.fromkeys(("test.sql", "train.sql", "queries.txt"), ["SELECT 1"]),
        **dict.fromkeys(("runs/stock/generate-test.txt", "runs/translated/generate-test.txt"), ["H-0\t-1\tint x;"]),
        "runs/answered/generate-test.txt": ["H-0\t-1\tSELECT 2"],
        **{f"{name}-{seed}.txt": SENTENCES for name in ("tree", "stock") for seed in (1, 2, 3)},
    }.items():
        write(name, lines)
    sqlite3.connect("geo.sqlite").close()
    assert len(COMMANDS) == 9
    for command in COMMANDS:
        assert command[:2] == ["tree-fairseq", "score"] and main(command[2:]) == 0
        assert "sentences" in capsys.readouterr().out
    assert Path("scores.json").exists()
