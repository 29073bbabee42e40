"""Something worth looking at: a table in the terminal and a plot of delays by carrier and month.

Law: the table and the plot show the same numbers: both come from `delays`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

mpl.use("Agg")

import matplotlib.pyplot as plt

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def delays(flights: pa.Table) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Carriers by traffic, mean arrival delay in minutes (carrier x month, NaN where none flew), flights by carrier."""
    grouped = flights.group_by(["carrier", "month"]).aggregate([("arr_delay", "mean"), ("flight", "count")])
    totals = flights.group_by("carrier").aggregate([("flight", "count")]).sort_by([("flight_count", "descending")])
    carriers = totals["carrier"].to_pylist()
    counts = dict(zip(carriers, totals["flight_count"].to_pylist(), strict=True))
    mean = np.full((len(carriers), 12), np.nan)
    rows = pc.index_in(grouped["carrier"], pa.array(carriers)).to_numpy()
    mean[rows, grouped["month"].to_numpy() - 1] = grouped["arr_delay_mean"].to_numpy(zero_copy_only=False)
    return carriers, mean, counts


def show(console: Console, flights: pa.Table, airlines: dict[str, str]) -> None:
    """Print mean arrival delays by carrier and month; the redder, the later."""
    carriers, mean, counts = delays(flights)
    grid = Grid(
        title="Mean arrival delay in minutes, New York 2013", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    room = max(2, min(28, console.width - 72))  # what the months leave over
    grid.add_column("carrier"[:room], no_wrap=True)
    for heading in ("flights", *_MONTHS):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row, carrier in enumerate(carriers):
        name = f"{carrier} {airlines.get(carrier, '')}"[:room]
        grid.add_row(name, f"{counts[carrier]:,}", *(_cell(value) for value in mean[row]))
    console.print(grid)


def _cell(minutes: float) -> Text:
    if np.isnan(minutes):
        return Text("·", style="dim")
    style = "green" if minutes < 0 else "default" if minutes < 10 else "yellow" if minutes < 20 else "bold red"
    return Text(f"{round(minutes)}", style=style)


def plot(flights: pa.Table, airlines: dict[str, str], path: Path) -> None:
    """Draw the same as a heat map file."""
    carriers, mean, counts = delays(flights)
    figure, axes = plt.subplots(figsize=(10, 6), layout="constrained")
    image = axes.imshow(mean, cmap="RdYlGn_r", vmin=-20, vmax=40, aspect="auto")
    axes.set_xticks(range(12), _MONTHS)
    axes.set_yticks(range(len(carriers)), [f"{airlines.get(c, c)} ({counts[c]:,})" for c in carriers])
    for (row, column), value in np.ndenumerate(mean):
        if not np.isnan(value):
            axes.text(column, row, f"{round(value)}", ha="center", va="center", fontsize=8)
    axes.set_title("Mean arrival delay by carrier and month, flights from New York 2013")
    figure.colorbar(image, label="minutes")
    figure.savefig(path, dpi=120)
    plt.close(figure)
