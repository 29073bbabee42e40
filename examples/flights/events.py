"""Make a change stream from the flights, in the order in which an airport would receive the events.

A flight is scheduled, departs and arrives, or is cancelled. Each event holds the whole row as known at its time, and a
version: the higher version is the newer state. One event in twelve arrives late, some of them commits after newer
events of the same flight. Some flights are announced by mistake and withdrawn, which is a delete.

Invariant: the stream is a pure function of the flights and of one seed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEYS = ["month", "time_hour", "carrier", "flight"]
SCHEDULED, DEPARTED, ARRIVED, WITHDRAWN = 0, 1, 2, 3
_DAY = 86_400


def make_change_stream(flights: pa.Table, seed: int = 13) -> pa.Table:
    """Make the events of all flights.

    Parameters
    ----------
    flights : pyarrow.Table
        All flights, as `source.read_flights` returns them.
    seed : int
        Seed of the random delays and of the withdrawn flights.

    Returns
    -------
    pyarrow.Table
        Events in order of arrival: the columns of the table, `version` (int64) and `op` (row kind).
    """
    random = np.random.default_rng(seed)
    withdrawn = _choose_withdrawn(flights, random)
    operated = flights.filter(pc.invert(flights["cancelled"]))
    events = [
        _make_events(flights, SCHEDULED, "scheduled", "+I", ahead=21 * _DAY),
        _make_events(operated, DEPARTED, "departed", "+U", delays=("dep_delay",)),
        _make_events(operated, ARRIVED, "arrived", "+U", delays=("dep_delay", "arr_delay"), ahead=-3 * 3600),
        _make_events(flights.filter(flights["cancelled"]), ARRIVED, "cancelled", "+U"),
        _make_events(withdrawn, SCHEDULED, "scheduled", "+I", ahead=21 * _DAY),
        _make_events(withdrawn, WITHDRAWN, "withdrawn", "-D", ahead=14 * _DAY),
    ]
    stream = pa.concat_tables(events)
    arrival = stream["event_time"].cast(pa.int64()).to_numpy() + _draw_lateness(stream.num_rows, random)
    return stream.take(pa.array(np.argsort(arrival, kind="stable"))).drop_columns(["event_time"])


def split_into_commits(stream: pa.Table, count: int) -> list[pa.Table]:
    """Split the stream into a number of commits of about equal size."""
    bounds = np.linspace(0, stream.num_rows, count + 1).astype(int)
    return [stream.slice(a, b - a) for a, b in pairwise(bounds)]


def count_late(stream: list[pa.Table]) -> list[int]:
    """Count the late events of each commit.

    Parameters
    ----------
    stream : list of pyarrow.Table
        The events of each commit.

    Returns
    -------
    list of int
        For each commit, the events that are older than an event of the same flight in an earlier commit.
    """
    whole = pa.concat_tables(stream)
    rows = whole.select(KEYS).append_column("row", pa.array(np.arange(whole.num_rows)))
    numbered = rows.group_by(KEYS, use_threads=False).aggregate([("row", "list")])["row_list"].combine_chunks()
    flights = np.empty(whole.num_rows, np.int64)
    flights[numbered.flatten().to_numpy()] = pc.list_parent_indices(numbered).to_numpy()
    versions = whole["version"].to_numpy()
    newest = np.full(len(numbered), -1)
    counts, start = [], 0
    for part in stream:
        rows_here = slice(start, start + part.num_rows)
        counts.append(int((versions[rows_here] < newest[flights[rows_here]]).sum()))
        np.maximum.at(newest, flights[rows_here], versions[rows_here])
        start += part.num_rows
    return counts


def _make_events(
    flights: pa.Table, version: int, status: str, kind: str, delays: tuple[str, ...] = (), ahead: int = 0
) -> pa.Table:
    rows = flights.num_rows
    unknown = pa.nulls(rows, pa.int32())
    columns = {name: flights[name] for name in [*KEYS, "origin", "dest", "tailnum", "scheduled"]}
    columns["status"] = pa.array(np.full(rows, status))
    for name in ("dep_delay", "arr_delay"):
        columns[name] = flights[name] if name in delays else unknown
    columns["version"] = pa.array(np.full(rows, version), pa.int64())
    columns["op"] = pa.array(np.full(rows, kind))
    columns["event_time"] = pc.subtract(flights["scheduled"], pa.scalar(ahead, pa.duration("s")))
    return pa.table(columns)


def _choose_withdrawn(flights: pa.Table, random: np.random.Generator) -> pa.Table:
    # Withdrawn flights have hours of real flights, and numbers that no real flight has.
    chosen = flights.take(pa.array(np.sort(random.choice(flights.num_rows, flights.num_rows // 200, replace=False))))
    number = pc.add(chosen["flight"], pa.scalar(100_000, pa.int32()))
    return chosen.set_column(chosen.column_names.index("flight"), "flight", number)


def _draw_lateness(rows: int, random: np.random.Generator) -> np.ndarray:
    late = random.random(rows) < 1 / 12
    return np.where(late, random.integers(_DAY, 60 * _DAY, rows), random.integers(0, 600, rows))
