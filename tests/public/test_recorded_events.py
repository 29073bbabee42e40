"""`paimon.cdc` on recorded events: the table equals its source after each event, and after all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_events import RECORDINGS, Recording, show_rows

import paimon
from paimon.domain.types.type_text import format_type


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_recorded_events_give_the_source_table(recording: Recording, tmp_path: Path) -> None:
    events, states = recording.read_events(), recording.show_states()
    for step in (1, events.num_rows):
        catalog = paimon.connect(tmp_path / str(step))
        catalog.create_database("db")
        table = recording.create_table(catalog)
        known = set(table.table_schema.fields_by_name)
        letters = catalog.create_table("db.letters", paimon.DEAD_LETTER_SCHEMA)
        done = []
        for start in range(0, events.num_rows, step):
            part = events.slice(start, step)
            done.append(paimon.cdc(part, table, recording.format, dead_letters=letters, merge_schema=True))
            table = catalog.table(table.name)
            assert show_rows(table) == states[start + step - 1], start
        assert sum(result.events for result in done) == events.num_rows
        assert sum(result.rejected for result in done) == len(recording.rejected)
        assert sum(result.ignored for result in done) == recording.ignored
        found = letters.scan(columns=["offset", "reason"]).to_arrow().sort_by("offset").to_pylist()
        assert [(row["offset"], row["reason"]) for row in found] == recording.rejected
        added = {f.name: format_type(f.type) for f in table.table_schema.fields if f.name not in known}
        assert added == recording.types
