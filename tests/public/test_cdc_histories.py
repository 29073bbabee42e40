"""`paimon.cdc`: tables equal their sources after every prefix of drawn histories, in every format."""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_nightly
from support.source_histories import WRITERS, EventWriter, Row, histories, replay

import paimon

Event = tuple[str | None, str]


def create_tables(folder: str, writer: EventWriter, names: Sequence[str], **options: object) -> dict[str, paimon.Table]:
    """Create an empty table with the key and a version for each source table."""
    catalog = paimon.connect(folder)
    catalog.create_database("shop")
    ddl = f"{writer.key_column} BIGINT NOT NULL, version BIGINT"
    given = {"primary_keys": [writer.key_column], "options": {"bucket": 2, **options}}
    return {f"{writer.prefix}{name}": catalog.create_table(f"shop.{name}", ddl, **given) for name in names}


def capture(events: Sequence[Event], writer: EventWriter, tables: dict[str, paimon.Table]) -> None:
    keys, values = zip(*events, strict=True)
    frame = pa.table({"key": pa.array(keys, pa.string()), "value": pa.array(values, pa.string())})
    target = tables if writer.format != "json" else next(iter(tables.values()))
    metadata = {"version": writer.position}
    done = paimon.cdc(frame, target, writer.format, merge_schema=True, metadata=metadata)
    assert (done.events, done.rejected, done.ignored) == (len(events), 0, 0)


def read_rows(table: paimon.Table, writer: EventWriter) -> list[Row]:
    newest = paimon.open_table(table.location)
    rows = newest.scan().to_arrow().sort_by(writer.key_column).to_pylist()
    rows = [{"id": row.pop(writer.key_column), **row} for row in rows]
    return [{n: v for n, v in row.items() if v is not None and n != "version"} for row in rows]


@pytest.mark.parametrize("name", mark_nightly(WRITERS, always=["mysql", "mongodb", "canal"]))
@settings(max_examples=4)
@given(data=st.data())
def test_tables_equal_their_sources_after_every_prefix(name: str, data: st.DataObject) -> None:
    """Also if batches are doubled: the events of a key come again in their order."""
    writer = WRITERS[name]
    names = ["orders"] if name == "plain" else ["orders", "items"]
    history = data.draw(histories(names, writer.moves_keys))
    with TemporaryDirectory() as folder:
        tables = create_tables(folder, writer, names)
        done = 0
        while done < len(history):
            count = data.draw(st.integers(1, len(history) - done))
            changes = history[done : done + count]
            events = [e for position, change in enumerate(changes, done) for e in writer.write(change, position)]
            for _ in range(data.draw(st.integers(1, 2))):
                capture(events, writer, tables)
            done += count
            for source, table in tables.items():
                assert read_rows(table, writer) == replay(history[:done], source.removeprefix(writer.prefix))


@pytest.mark.parametrize("name", mark_nightly(WRITERS, always=["postgresql", "maxwell"]))
@settings(max_examples=4)
@given(data=st.data())
def test_a_sequence_orders_late_and_doubled_events(name: str, data: st.DataObject) -> None:
    writer = WRITERS[name]
    names = ["orders"] if name == "plain" else ["orders", "items"]
    history = data.draw(histories(names, writer.moves_keys))
    events = [event for position, change in enumerate(history) for event in writer.write(change, position)]
    shuffled = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=3))))
    half = data.draw(st.integers(1, len(shuffled)))
    with TemporaryDirectory() as folder:
        tables = create_tables(folder, writer, names, **{"sequence.field": "version"})
        for part in filter(None, (shuffled[:half], shuffled[half:])):
            capture(part, writer, tables)
        for source, table in tables.items():
            assert read_rows(table, writer) == replay(history, source.removeprefix(writer.prefix))
