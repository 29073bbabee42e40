"""Record-level expiry: columns compared with values, and files compared with their records."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.lsm.record_expiry import RecordExpiry, is_expired
from paimon.domain.lsm.record_expiry_columnar import mask_expired
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.values import to_array
from paimon.domain.schema.declare import declare_schema
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.collect import collect_column_stats
from paimon.domain.stats.simple_stats import to_simple_stats
from paimon.domain.types.data_types import BigIntType, DataType, IntType, LocalZonedTimestampType, TimestampType
from paimon.domain.types.ddl import parse_columns

NOW_MILLIS = 1_800_000_000_500
OPTIONS = {"bucket": "1", "record-level.time-field": "t", "record-level.expire-time": "1 d"}
BEFORE = 1_800_000_000 - 86_400

EDGES = [BEFORE - 1, BEFORE, BEFORE + 1, 0, -1, -2]
TYPES: list[tuple[DataType, list[int]]] = [
    (IntType(), EDGES),
    (BigIntType(), [*EDGES, 10**12 - 1, 10**12, *(e * 1000 + d for e in EDGES[:3] for d in (-1, 0, 999))]),
    *(
        (kind, [e * 10**9 + d * 10**step for e in EDGES for d in (-1, 0, 1, 999)])
        for kind, step in [
            (TimestampType(precision=0), 9), (TimestampType(precision=3), 6), (TimestampType(precision=6), 3),
            (TimestampType(precision=9), 0), (LocalZonedTimestampType(precision=6), 3),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "edges"), TYPES)
@given(data=st.data())
def test_columns_equal_values(kind: DataType, edges: list[int], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.none() | st.sampled_from(edges), max_size=8))
    before = data.draw(st.sampled_from([BEFORE, 0, -1]))
    assert mask_expired(to_array(times, kind), before).tolist() == [is_expired(t, kind, before) for t in times]


def table(kind: str) -> TableSchema:
    return declare_schema(parse_columns(f"k INT NOT NULL, a STRING, t {kind}"), ("k",), (), OPTIONS, None, 0)


def make_file(schema: TableSchema, times: list[Any], names: tuple[str, ...] | None) -> DataFileMeta:
    """A file of these times with statistics of `names` (None: all columns)."""
    values = {"k": list(range(len(times))), "a": [None] * len(times), "t": times}
    fields = [f for f in schema.fields if names is None or f.name in names]
    stats = [collect_column_stats(to_array(values[f.name], f.type), f.type) for f in fields]
    made = to_simple_stats(stats, [f.type for f in fields])
    return DataFileMeta("data-1.parquet", 1, len(times), value_stats=made, level=5, value_stats_cols=names)


@given(st.lists(st.none() | st.sampled_from(EDGES), min_size=1, max_size=5), st.booleans())
def test_a_file_holds_expired_records_where_its_oldest_one_is(times: list[Any], dense: bool) -> None:
    schema = table("INT")
    expiry = RecordExpiry.of(schema, TableOptions.of(schema.options), NOW_MILLIS)
    assert expiry is not None and expiry.before_seconds == BEFORE
    file = make_file(schema, times, ("k", "t") if dense else None)
    assert expiry.may_hold_expired_records(file, schema) == any(is_expired(t, IntType(), BEFORE) for t in times)
    assert not expiry.may_hold_expired_records(make_file(schema, times, ("k",)), schema)


def test_a_file_of_an_older_schema_is_checked_with_the_current_type() -> None:
    old, new = table("INT"), table("BIGINT")
    renamed = evolve(new, fields=tuple(evolve(f, name="at") if f.name == "t" else f for f in new.fields))
    options = TableOptions.of({**OPTIONS, "record-level.time-field": "at"})
    expiry = RecordExpiry.of(renamed, options, NOW_MILLIS)
    assert expiry is not None
    assert expiry.may_hold_expired_records(make_file(old, [BEFORE - 1], None), old)
    assert not expiry.may_hold_expired_records(make_file(old, [BEFORE], None), old)


def test_an_expiry_needs_a_time() -> None:
    schema = table("INT")
    assert RecordExpiry.of(schema, TableOptions.of({}), NOW_MILLIS) is None
    with pytest.raises(InvalidRequest, match="time-field"):
        RecordExpiry.of(schema, TableOptions.of({"record-level.expire-time": "1 d"}), NOW_MILLIS)
