"""Tables of scores for the screen: systems side by side, and parts of the test set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.scoring.breakdowns import COUNT

# Metrics that are printed for parts of the test set; the JSON file has all of them.
_IN_PARTS = frozenset(
    "bleu chrf ter exact_match tree_match tree_match_unordered bracket_f1 unlabelled_bracket_f1 complete_match "
    "class_accuracy class_macro_f1 class_matthews pearson rouge1 rouge2 rougeL".split()
)


def tables(result: dict) -> str:
    """Formats the result: metrics and differences, signatures, parts of the test set."""
    baselines, names = list(result["baselines"]), list(result["metrics"])
    system, *others = _short_names([result["hypotheses"], *baselines])
    rows = [["", system]]
    for other in others:
        rows[0] += [other, "difference", "p"]
    found = {(row["metric"], row["baseline"]): row for row in result["differences"]}
    for name in names:
        rows.append([name, f"{result['metrics'][name]:.2f}"])
        for path in baselines:
            row = found[name, path]
            p_value = f"{row['p_value']:.4f}" if "p_value" in row else ""
            rows[-1] += [f"{result['baselines'][path][name]:.2f}", f"{row['difference']:+.2f}", p_value]
    parts = [f"{result[COUNT]} sentences", *aligned(rows)]
    if "bracket_sentences" in result:
        parts.append(
            "brackets of {valid} sentences; {error} errors, {skipped} skipped".format(**result["bracket_sentences"])
        )
    tests = dict.fromkeys(row["signature"] for row in result["differences"] if "signature" in row)
    parts += [f"{name}: {text}" for name, text in result["signatures"].items()]
    parts += [f"test: {text}" for text in tests]
    names = [name for name in names if name in _IN_PARTS]
    for title, key in (("words", "by_length"), ("depth", "by_depth")):
        if key in result:
            rows = [[title, COUNT, *names]]
            for row in result[key]:
                bounds = f"{row['from']}-{row['to'] if row['to'] is not None else ''}"
                rows.append([bounds, str(row[COUNT]), *(f"{row[name]:.2f}" for name in names)])
            parts += ["", *aligned(rows)]
    return "\n".join(parts) + "\n"


def _short_names(paths: Sequence[str]) -> list[str]:
    """The last parts of paths, as many as tell them apart."""
    split = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, split))):
        names = ["/".join(parts[-count:]) for parts in split]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
