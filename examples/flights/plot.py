"""Draw the plot of the flights pipeline: the stored records, the rows that a reader sees, and the delays.

Invariant: readers who cannot distinguish red from green see all differences. Categories have colours of Okabe and Ito;
values with two directions go from blue to orange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa

from flights.delays import MONTHS, compute_mean_delays
from flights.states import TableState

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

ORANGE, SKY, BLUE, VERMILION, GREY = "#e69f00", "#56b4e9", "#0072b2", "#d55e00", "#b8bec4"
INK, MUTED, LINE = "#22262a", "#6a7178", "#d9dde1"
STATUS_COLOURS = {"arrived": BLUE, "cancelled": VERMILION, "departed": SKY, "scheduled": GREY}
EARLY_TO_LATE = LinearSegmentedColormap.from_list(
    "early to late", ["#08519c", "#6baed6", "#f7f7f7", "#fdae61", "#b35806"]
)
_MOST_MINUTES = 40
_STYLE = {
    "font.size": 10, "axes.edgecolor": LINE, "axes.labelcolor": MUTED, "text.color": INK, "xtick.color": INK,
    "ytick.color": MUTED, "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
    "axes.titlesize": 12, "axes.titleweight": "bold",
}  # fmt: skip


def choose_level_colour(level: int, top: int) -> str:
    """Return orange for level 0, blue for the top level, and light blue for the levels between."""
    return ORANGE if level == 0 else BLUE if level == top else SKY


def draw(states: Sequence[TableState], flights: pa.Table, airlines: Mapping[str, str], path: Path) -> None:
    """Draw the plot as a PNG file.

    Parameters
    ----------
    states : sequence of TableState
        The state of the table after each commit.
    flights : pyarrow.Table
        The columns `carrier`, `month`, `flight` and `arr_delay` of the result.
    airlines : mapping of str to str
        Names of carriers by their codes.
    path : Path
        The PNG file, which is replaced.
    """
    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=(15, 8.4), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1, 1.12])
        _draw_levels(figure.add_subplot(grid[0, 0]), states)
        _draw_statuses(figure.add_subplot(grid[1, 0]), states)
        _draw_delays(figure, figure.add_subplot(grid[:, 1]), flights, airlines)
        figure.get_layout_engine().set(w_pad=0.14, h_pad=0.12, wspace=0.03, hspace=0.05)
        figure.suptitle(f"{flights.num_rows:,} flights from New York, 2013: a change stream in a primary-key table",
                        x=0.012, ha="left", fontsize=15, fontweight="bold")  # fmt: skip
        figure.savefig(path, dpi=130, facecolor="white")
        plt.close(figure)


def _draw_levels(axes: Any, states: Sequence[TableState]) -> None:
    """Draw the stored records by level, with the number of sorted runs above each bar."""
    levels = sorted({level for state in states for level in state.records_by_level})
    parts = {
        f"level {level}": ([s.records_by_level.get(level, 0) for s in states], choose_level_colour(level, max(levels)))
        for level in levels
    }
    _draw_bars(axes, states, parts)
    for place, state in enumerate(states):
        total = sum(state.records_by_level.values())
        axes.annotate(f"{state.run_count} runs", (place, total), (0, 4), textcoords="offset points", ha="center",
                      fontsize=9, color=MUTED)  # fmt: skip
    _set_titles(axes, "Stored: records by level of the LSM tree",
                "each commit adds sorted runs to level 0; compaction leaves one per bucket")  # fmt: skip


def _draw_statuses(axes: Any, states: Sequence[TableState]) -> None:
    """Draw the rows by status, with the number of late events of each commit above its bar."""
    parts = {
        status: ([state.rows_by_status.get(status, 0) for state in states], colour)
        for status, colour in STATUS_COLOURS.items()
    }
    _draw_bars(axes, states, parts)
    for place, state in enumerate(states):
        if state.late_count:
            total = sum(state.rows_by_status.values())
            axes.annotate(f"{state.late_count:,} late", (place, total), (0, 4), textcoords="offset points",
                          ha="center", fontsize=9, color=MUTED)  # fmt: skip
    _set_titles(axes, "Read: flights by status, at each snapshot",
                "late: events older than a stored event of their flight; they change nothing")  # fmt: skip


def _draw_bars(axes: Any, states: Sequence[TableState], parts: Mapping[str, tuple[list[int], str]]) -> None:
    bottom = np.zeros(len(states))
    places = np.arange(len(states))
    for name, (heights, colour) in parts.items():
        axes.bar(places, heights, 0.68, bottom=bottom, color=colour, label=name, edgecolor="white", linewidth=0.6)
        bottom += heights
    axes.set_xticks(places, [state.label for state in states])
    axes.set_xlabel("after commit", loc="left")
    axes.tick_params(length=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f} k" if value else "0")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=LINE, linewidth=0.7)
    axes.set_ylim(0, 1.2 * max(sum(state.records_by_level.values()) for state in states))
    axes.legend(loc="upper left", frameon=False, ncols=len(parts), handlelength=1, handleheight=1, columnspacing=1.2)


def _set_titles(axes: Any, title: str, explanation: str) -> None:
    axes.set_title(title, pad=24)
    axes.annotate(explanation, (0, 1), (0, 9), xycoords="axes fraction", textcoords="offset points", fontsize=9.5,
                  color=MUTED)  # fmt: skip


def _draw_delays(figure: Any, axes: Any, flights: pa.Table, airlines: Mapping[str, str]) -> None:
    """Draw mean delays by carrier and month; blue is early, orange is late."""
    carriers, mean, counts = compute_mean_delays(flights)
    image = axes.imshow(mean, cmap=EARLY_TO_LATE, vmin=-_MOST_MINUTES, vmax=_MOST_MINUTES, aspect="auto")
    axes.set_xticks(range(12), MONTHS)
    axes.set_yticks(range(len(carriers)), [f"{airlines.get(c, c)}  {counts[c]:,}" for c in carriers], color=INK)
    for (row, column), value in np.ndenumerate(mean):
        if not np.isnan(value):
            strong = abs(value) > 0.72 * _MOST_MINUTES
            axes.text(column, row, f"{value:.0f}".replace("-0", "0") if abs(value) < 0.5 else f"{value:.0f}",
                      ha="center", va="center", fontsize=9, color="white" if strong else INK)  # fmt: skip
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    _set_titles(axes, "Result: mean arrival delay in minutes",
                "by carrier (number of flights) and month; blue is early, orange is late")  # fmt: skip
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.5, aspect=40, pad=0.02,
                          ticks=[-_MOST_MINUTES, 0, _MOST_MINUTES])  # fmt: skip
    bar.ax.set_xticklabels([f"{_MOST_MINUTES} or more early", "on time", f"{_MOST_MINUTES} or more late"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
