"""Compute delays by carrier and month, and print them as a table in the terminal.

Invariant: the table and the plot show the same numbers, because both call `compute_mean_delays`.
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


def compute_mean_delays(flights: pa.Table) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Compute mean arrival delays.

    Parameters
    ----------
    flights : pyarrow.Table
        The columns `carrier`, `month`, `flight` and `arr_delay` (minutes).

    Returns
    -------
    carriers : list of str
        Codes of carriers, by number of flights, descending.
    mean : numpy.ndarray of float64, shape (carriers, 12)
        Minutes; NaN where no flight arrived.
    counts : dict of str to int
        Number of flights by carrier.
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
    """Print mean arrival delays by carrier and month: blue is early, yellow is late, inverse is very late.

    Parameters
    ----------
    console : rich.console.Console
        The terminal; its width limits the names of carriers.
    flights : pyarrow.Table
        The columns that `compute_mean_delays` takes.
    airlines : mapping of str to str
        Names of carriers by their codes.
    """
    carriers, mean, counts = compute_mean_delays(flights)
    grid = Grid(
        title="Mean arrival delay in minutes, New York 2013", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    room = max(2, min(28, console.width - 72))  # what the months leave over
    grid.add_column("carrier"[:room], no_wrap=True)
    for heading in ("flights", *MONTHS):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row, carrier in enumerate(carriers):
        name = f"{carrier} {airlines.get(carrier, '')}"[:room]
        grid.add_row(name, f"{counts[carrier]:,}", *(_format_minutes(value) for value in mean[row]))
    console.print(grid)


def _format_minutes(minutes: float) -> Text:
    if np.isnan(minutes):
        return Text("·", style="dim")
    late = "default" if minutes < 10 else "yellow" if minutes < 20 else "bold yellow reverse"
    return Text(f"{round(minutes)}", style="blue" if minutes < 0 else late)
