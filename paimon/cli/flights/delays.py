"""Delays by carrier and month, as numbers and as a table in the terminal.

Invariant: the table and the plot show the same numbers: both come from `mean_delays`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def mean_delays(flights: pa.Table) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Compute mean arrival delays.

    Parameters
    ----------
    flights : pyarrow.Table
        The columns `carrier`, `month`, `flight` and `arr_delay` (minutes).

    Returns
    -------
    carriers : list of str
        By number of flights, descending.
    mean : numpy.ndarray
        Minutes, a row for each carrier and a column for each month; NaN where none flew.
    counts : dict
        Flights by carrier.
    """
    grouped = flights.group_by(["carrier", "month"]).aggregate([("arr_delay", "mean"), ("flight", "count")])
    totals = flights.group_by("carrier").aggregate([("flight", "count")]).sort_by([("flight_count", "descending")])
    carriers = totals["carrier"].to_pylist()
    counts = dict(zip(carriers, totals["flight_count"].to_pylist(), strict=True))
    mean = np.full((len(carriers), 12), np.nan)
    rows = pc.index_in(grouped["carrier"], pa.array(carriers)).to_numpy()
    mean[rows, grouped["month"].to_numpy() - 1] = grouped["arr_delay_mean"].to_numpy(zero_copy_only=False)
    return carriers, mean, counts


def print_delays(console: Console, flights: pa.Table, airlines: Mapping[str, str]) -> None:
    """Print mean arrival delays by carrier and month: blue early, yellow late, inverse very late."""
    carriers, mean, counts = mean_delays(flights)
    grid = Grid(
        title="Mean arrival delay in minutes, New York 2013", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    room = max(2, min(28, console.width - 72))  # what the months leave over
    grid.add_column("carrier"[:room], no_wrap=True)
    for heading in ("flights", *MONTHS):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row, carrier in enumerate(carriers):
        name = f"{carrier} {airlines.get(carrier, '')}"[:room]
        grid.add_row(name, f"{counts[carrier]:,}", *(_cell(value) for value in mean[row]))
    console.print(grid)


def _cell(minutes: float) -> Text:
    if np.isnan(minutes):
        return Text("·", style="dim")
    late = "default" if minutes < 10 else "yellow" if minutes < 20 else "bold yellow reverse"
    return Text(f"{round(minutes)}", style="blue" if minutes < 0 else late)
