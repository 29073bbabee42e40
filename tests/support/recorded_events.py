"""Recorded events of change data capture, and the rows that their source table has after each event.

Each recording is a file of events, a line each with the key and the value of a message, and a description of the table.
The events have the members that the documentation of Debezium, Canal and Maxwell shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import frozen

import paimon

FOLDER = Path(__file__).resolve().parents[1] / "data" / "change_events"
Row = Mapping[str, str]


@frozen
class Recording:
    """A recorded stream of events.

    Parameters
    ----------
    format : str
        The format of the events.
    source : str
        The name of the source table.
    columns : str
        The columns with which its table is created.
    primary_keys : list of str
        Its primary key.
    types : mapping of str to str
        The columns that the events add, in their order.
    rejected : list of (int, str)
        The positions of the events that cannot be read, with their reasons.
    ignored : int
        The number of events that change no row.
    states : list of list of Row
        The rows of the source after each event.
    """

    name: str
    format: str
    source: str
    columns: str
    primary_keys: Sequence[str]
    types: Mapping[str, str]
    rejected: Sequence[tuple[int, str]]
    ignored: int
    states: Sequence[Sequence[Row]]

    @classmethod
    def load(cls, name: str) -> Recording:
        """Return the recording of a name."""
        described = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
        rejected = [(position, reason) for position, reason in described.pop("rejected")]
        return cls(name=name, rejected=rejected, **described)

    @property
    def path(self) -> Path:
        """The file with the events."""
        return FOLDER / f"{self.name}.events"

    def read_events(self) -> pa.Table:
        """Return the events as Kafka has them."""
        lines = [line.split("\t") for line in self.path.read_text("utf-8").splitlines()]
        keys, values = ([None if text == "null" else text for text in column] for column in zip(*lines, strict=True))
        count = len(lines)
        named = {"topic": pa.array([self.source] * count), "partition": pa.array([0] * count, pa.int32())}
        texts = {"key": pa.array(keys, pa.string()), "value": pa.array(values, pa.string())}
        return pa.table({**texts, **named, "offset": pa.array(range(count), pa.int64())})

    def create_table(self, catalog: paimon.Catalog) -> paimon.Table:
        """Create the table."""
        return catalog.create_table(
            f"db.{self.name}", self.columns, primary_keys=self.primary_keys, options={"bucket": 2}
        )

    def show_states(self) -> list[list[Row]]:
        """Return the rows of the source after each event, without nulls and with all values as texts."""
        return [[{name: str(value) for name, value in row.items()} for row in rows] for rows in self.states]


RECORDINGS = [Recording.load(path.stem) for path in sorted(FOLDER.glob("*.events"))]


def show_rows(table: paimon.Table) -> list[Row]:
    """Return the rows of a table in the order of its key, without nulls and with all values as texts."""
    rows = table.scan().to_arrow().sort_by(table.table_schema.primary_keys[0]).to_pylist()
    return [{name: _show(value) for name, value in row.items() if value is not None} for row in rows]


def _show(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
