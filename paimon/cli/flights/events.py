"""The change stream: what an airport would have told, in the order in which it arrived.

A flight is scheduled, departs and arrives, or is cancelled. Each event holds the whole row as known then, and a
version that says which state is newer; one event in twelve arrives late, some so late that newer ones of the same
flight came commits before. Some flights are announced by mistake and withdrawn: a delete.

Law: the stream is a pure function of the flights and of one seed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEYS = ["month", "time_hour", "carrier", "flight"]
SCHEDULED, DEPARTED, ARRIVED, WITHDRAWN = 0, 1, 2, 3
_DAY = 86_400


def change_stream(flights: pa.Table, seed: int = 13) -> pa.Table:
    """Events in arrival order: the table's columns, `version`, and `op` (row kind)."""
    draw = np.random.default_rng(seed)
    ghosts = _ghosts(flights, draw)
    operated = flights.filter(pc.invert(flights["cancelled"]))
    events = [
        _event(flights, SCHEDULED, "scheduled", "+I", ahead=21 * _DAY),
        _event(operated, DEPARTED, "departed", "+U", delays=("dep_delay",)),
        _event(operated, ARRIVED, "arrived", "+U", delays=("dep_delay", "arr_delay"), ahead=-3 * 3600),
        _event(flights.filter(flights["cancelled"]), ARRIVED, "cancelled", "+U"),
        _event(ghosts, SCHEDULED, "scheduled", "+I", ahead=21 * _DAY),
        _event(ghosts, WITHDRAWN, "withdrawn", "-D", ahead=14 * _DAY),
    ]
    stream = pa.concat_tables(events)
    arrival = stream["happened"].cast(pa.int64()).to_numpy() + _lateness(stream.num_rows, draw)
    return stream.take(pa.array(np.argsort(arrival, kind="stable"))).drop_columns(["happened"])


def commits(stream: pa.Table, count: int) -> list[pa.Table]:
    """The stream cut into commits of about equal size."""
    bounds = np.linspace(0, stream.num_rows, count + 1).astype(int)
    return [stream.slice(a, b - a) for a, b in pairwise(bounds)]


def count_late(stream: list[pa.Table]) -> list[int]:
    """Count the events of each commit that come behind newer ones of the same flight, which an earlier commit held."""
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


def _event(
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
    columns["happened"] = pc.subtract(flights["scheduled"], pa.scalar(ahead, pa.duration("s")))
    return pa.table(columns)


def _ghosts(flights: pa.Table, draw: np.random.Generator) -> pa.Table:
    # Flights of the same hours with numbers that no real flight has.
    chosen = flights.take(pa.array(np.sort(draw.choice(flights.num_rows, flights.num_rows // 200, replace=False))))
    number = pc.add(chosen["flight"], pa.scalar(100_000, pa.int32()))
    return chosen.set_column(chosen.column_names.index("flight"), "flight", number)


def _lateness(rows: int, draw: np.random.Generator) -> np.ndarray:
    late = draw.random(rows) < 1 / 12
    return np.where(late, draw.integers(_DAY, 60 * _DAY, rows), draw.integers(0, 600, rows))
