"""The source phrases that each target token attends to; figure 5 of Patel & Flanigan (2023) shows one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tree_fairseq.drawing.figure_files import as_written, new_figure, shortened
from tree_fairseq.support.python_versions import import_library

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TOKENS = 40  # a longer sentence is cut
_TURNED_FROM = 12  # more source tokens than these are written at an angle
_BAR = 0.8  # a bar fills this part of its lane
_GAP = 0.6  # the space between two target tokens, in lanes
# Sizes in inches.
_COLUMN = 0.34
_TURNED_COLUMN = 0.26
_LANE = 0.075
_BESIDE, _AROUND = 2.6, 1.6  # the space for labels and colours beside the bars, and for titles above them


class AttendedPhrase(NamedTuple):
    """The source tokens ``[start, end)``, and the share of a target token's attention that they receive."""

    start: int
    end: int
    weight: float


def draw_phrase_map(
    source: Sequence[str], target: Sequence[str], attended: Sequence[Sequence[AttendedPhrase]], title: str | None = None
) -> Figure:
    """Draws, for each target token, a bar under every phrase that it attends to; darker bars have greater weights.

    Source tokens are columns and target tokens are rows. ``attended`` has the phrases of each target token, by
    decreasing weight. The scale of colours goes up to the greatest weight in the picture. Of a long sentence the first
    40 tokens are shown, and a note says how many are not. Raises MissingLibraryError without matplotlib.
    """
    columns, rows = source[:_MOST_TOKENS], target[:_MOST_TOKENS]
    shown = [[phrase for phrase in phrases if phrase.start < len(columns)] for phrases in attended[: len(rows)]]
    lanes = [max(len(phrases), 2) + _GAP for phrases in shown]
    is_turned = len(columns) > _TURNED_FROM
    longest = max((len(shortened(token)) for token in columns), default=0)
    column = _TURNED_COLUMN if is_turned else max(_COLUMN, 0.09 * longest + 0.1)
    figure = new_figure(
        max(5.0, len(columns) * column + _BESIDE),
        max(2.2, sum(lanes) * _LANE + _AROUND + (0.08 * longest if is_turned else 0)),
    )
    axes = figure.add_subplot()
    colours = import_library("matplotlib", "figures", "a picture of attention").colormaps["Blues"]
    normalize = import_library("matplotlib.colors", "figures", "a picture of attention").Normalize
    greatest = max((phrase.weight for phrases in shown for phrase in phrases), default=1.0)
    scale = normalize(0, greatest or 1.0)
    top, middles = 0.0, []
    for phrases, height in zip(shown, lanes):
        middles.append(top + height / 2)
        for lane, phrase in enumerate(phrases):
            left, width = phrase.start + 0.05, min(phrase.end, len(columns)) - phrase.start - 0.1
            y = top + _GAP / 2 + lane + 0.5
            axes.barh(
                y, width, _BAR, left=left, color=colours(scale(phrase.weight)), edgecolor="#9fb3c8", linewidth=0.4
            )
        top += height
        axes.axhline(top, color="#e4e7eb", linewidth=0.8)
    axes.set_xlim(0, max(len(columns), 1))
    axes.set_ylim(top or 1, 0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    turned = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"} if is_turned else {}
    axes.set_xticks([place + 0.5 for place in range(len(columns))], list(map(shortened, columns)), **turned)
    axes.set_yticks(middles, list(map(shortened, rows)))
    axes.tick_params(length=0)
    labels = [axes.set_xlabel("source tokens"), axes.set_ylabel("target tokens")]
    as_written([*labels, *axes.get_xticklabels(), *axes.get_yticklabels()])
    mappable = import_library("matplotlib.cm", "figures", "a picture of attention").ScalarMappable(scale, colours)
    figure.colorbar(mappable, ax=axes, label="share of the token's attention", aspect=30, shrink=0.9)
    if title is not None:
        as_written([figure.suptitle(shortened(title, 90), fontsize=12)])
    if note := _note(source, columns, target, rows):
        as_written([figure.supxlabel(note, fontsize=9, color="#616e7c")])
    return figure


def _note(source: Sequence[str], columns: Sequence[str], target: Sequence[str], rows: Sequence[str]) -> str:
    """Returns a sentence about the tokens that are not shown, if there are any."""
    hidden = ((len(source) - len(columns), "source"), (len(target) - len(rows), "target"))
    parts = [f"{count} more {side} token{'s' if count > 1 else ''}" for count, side in hidden if count]
    return f"not shown: {' and '.join(parts)}" if parts else ""
