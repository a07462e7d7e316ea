"""JSON files of runs that the repository publishes, and the tables that are made of them."""

from __future__ import annotations

import json

import pytest

from tests.recipes.commands import EXAMPLES, library

RUNS = library("published_runs")
REFERENCES = ["Ein Mann schläft im Garten .", "Zwei Hunde laufen über die Wiese .", "Eine Frau liest ein Buch ."] * 4
PUBLISHED = sorted(path.parent for path in EXAMPLES.glob("*/results/differences.json"))


def run(place, seed: int, wrong: int, nll: float = 4.5):
    """The folder of a run that translated some sentences wrongly."""
    place.mkdir(parents=True)
    log = [f"{{'common': {{'seed': {seed}, 'cpu': True}}}}"]
    for epoch, loss, updates in ((1, 6.5, 300), (2, nll, 900)):
        log.append(
            f"epoch {epoch} | valid on 'valid' subset | loss 9 | nll_loss {loss} | bsz 4 | num_updates {updates}"
        )
    (place / "train.log").write_text("\n".join(log), encoding="utf-8")
    lines = [text if number >= wrong else "Etwas anderes steht hier" for number, text in enumerate(REFERENCES)]
    # In the order of batches, not of sentences.
    order = [*range(1, len(lines)), 0]
    text = "".join(f"H-{number}\t-0.5\t{lines[number]}\n" for number in order)
    (place / "generate-test.txt").write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def words(tmp_path):
    (tmp_path / "words/raw").mkdir(parents=True)
    (tmp_path / "words/raw/test.de").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    return tmp_path / "words"


def collect(tmp_path, words, seeds, capsys):
    folders = {
        name: [str(run(tmp_path / name / str(seed), seed, wrong + seed, 4 + seed / 8)) for seed in seeds]
        for name, wrong in (("stock", 4), ("trees", 0))
    }
    command = ["collect", "--results", str(tmp_path / "results"), "--words", str(words), "--target-lang", "de"]
    for name, own in folders.items():
        command += ["--system", name, f"run.sh --arch {name}", *own]
    assert RUNS.main(command) == 0
    return capsys.readouterr().out


def test_a_table_comes_from_the_files_of_runs(tmp_path, words, capsys):
    printed = collect(tmp_path, words, (1, 2, 3), capsys)
    kept = json.loads((tmp_path / "results/trees-seed2.json").read_text(encoding="utf-8"))
    assert kept["command"] == "run.sh --arch trees -- --seed 2" and kept["updates"] == 900
    assert kept["validation_nll"] == 4.25 and "tok:13a" in kept["signature"] and 0 < kept["sacrebleu"] < 100
    (difference,) = json.loads((tmp_path / "results/differences.json").read_text(encoding="utf-8"))
    assert difference["seeds"] == [1, 2, 3] and difference["difference"] > 0
    assert (difference["system"], difference["baseline"]) == ("trees", "stock")
    header, _, stock, trees = printed.splitlines()
    assert header == "| model | seeds | validation nll | sacreBLEU 2016 | less stock, p |"
    assert stock.startswith("| stock | 1, 2, 3 | 4.250 |") and stock.endswith("|  |")
    assert trees.startswith("| trees | 1, 2, 3 | 4.250 |") and trees.endswith(
        f"+{difference['difference']:.2f}, {difference['p_value']:.3f} |"
    )
    assert RUNS.main(["table", "--results", str(tmp_path / "results")]) == 0
    assert capsys.readouterr().out == printed


def test_fewer_than_three_seeds_get_no_p_value(tmp_path, words, capsys):
    assert collect(tmp_path, words, (1, 2), capsys).splitlines()[-1].endswith(", – (2 of 3 seeds) |")


def test_a_run_that_did_not_end_is_refused(tmp_path, words, capsys):
    place = run(tmp_path / "run", 1, 0)
    (place / "train.log").write_text("begin training\n", encoding="utf-8")
    command = ["collect", "--results", str(tmp_path / "results"), "--words", str(words), "--target-lang", "de"]
    assert RUNS.main([*command, "--system", "stock", "run.sh", str(place)]) == 1
    assert "train it to the end" in capsys.readouterr().err and not (tmp_path / "results").exists()


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.parent.name)
def test_readmes_have_the_tables_of_the_published_runs(folder):
    assert RUNS.table(folder) in (folder.parent / "README.md").read_text(encoding="utf-8"), (
        f"python examples/lib/published_runs.py table --results {folder.relative_to(EXAMPLES.parent)}"
    )
