"""The tour: every cell of the notebook runs, with fewer sentences and updates than a reader has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fork_server import programs

nbclient = pytest.importorskip("nbclient", reason="the notebook needs nbclient: pip install tree-fairseq[dev]")
nbformat = pytest.importorskip("nbformat", reason="the notebook needs nbformat: pip install tree-fairseq[dev]")

TOUR = Path(__file__).resolve().parent.parent / "examples" / "notebook" / "tour.ipynb"


def outputs_of(cell) -> str:
    texts = []
    for output in cell.get("outputs", []):
        texts += [output.get("text", ""), *map(str, output.get("data", {}).values())]
    return "\n".join(texts)


def test_the_notebook_is_stored_without_outputs():
    """Outputs would have paths of somebody's machine, and change with every run."""
    for cell in nbformat.read(TOUR, as_version=4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


@pytest.mark.filterwarnings("ignore")  # of Jupyter's libraries
def test_every_cell_runs(tmp_path):
    notebook = nbformat.read(TOUR, as_version=4)
    # After its first cell, which finds the programs: those of the fork server need no time to import torch and fairseq.
    first = [cell.cell_type for cell in notebook.cells].index("code")
    line = f"os.environ['PATH'] = os.pathsep.join([{str(programs())!r}, os.environ['PATH']])"
    notebook.cells.insert(first + 1, nbformat.v4.new_code_cell(line))
    # One process that parses imports Stanza once.
    smaller = (
        ("--train 3000 --valid 100 --test 100", "--train 400 --valid 20 --test 20"),
        ("--workers 2", "--workers 1"),
        ("--max-update 120", "--max-update 12"),
        ("--sentences 20", "--sentences 4"),
    )
    for full, small in smaller:
        (cell,) = [cell for cell in notebook.cells if full in cell.source]
        cell.source = cell.source.replace(full, small)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(TOUR.parent)}})
    client.execute()
    shown = [outputs_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    for text in ("<svg", "noun phrases: ['the man', 'the garden']", "telescope", "tree.json", '"loss"', "MB", "IFrame"):
        assert any(text in output for output in shown), text
    assert not any("Traceback" in output or "rror:" in output for output in shown)
