"""A merge-on-read equals the reference merge of all written rows, for any windows, columns and filters."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.merge.merge_reference import merge as reference_merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.types.data_types import BigIntType, DataField, IntType, VarCharType

KINDS = ("+I", "-U", "+U", "-D")
ROW = st.fixed_dictionaries(
    {
        "k": st.integers(0, 12),
        "name": st.sampled_from(["a", "b", "", "ü"]),
        "s": st.none() | st.integers(-2, 2),
        "v": st.none() | st.text("xyz", max_size=3),
        "op": st.sampled_from(KINDS[:1] * 5 + KINDS),
    }
)
HISTORY = st.lists(st.lists(ROW, min_size=1, max_size=20), min_size=1, max_size=5)
OPTIONS: list[dict[str, str]] = [
    {},
    {"sequence.field": "s"},
    {"ignore-delete": "true", "sequence.field": "s"},
    {"changelog-producer": "input", "file.format": "avro"},
    {"file.format": "orc"},
]
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("s", pa.int32()),
        pa.field("v", pa.string()),
    ]
)
FIELDS = (
    DataField(0, "k", BigIntType()),
    DataField(1, "name", VarCharType()),
    DataField(2, "s", IntType()),
    DataField(3, "v", VarCharType()),
)


def merge_by_reference(history: list[list[dict[str, Any]]], options: dict[str, str]) -> list[dict[str, Any]]:
    """The remaining rows: each commit merged as it was flushed, then all of them together."""
    spec = MergeSpec(FIELDS[:2], FIELDS[2:], tuple(filter(None, [options.get("sequence.field")])))
    ignores = "ignore-delete" in options
    number = 0
    stored: list[Record] = []
    for rows in history:
        records = []
        for row in rows:
            kind = KINDS.index(row["op"])
            if kind in (0, 2) or not ignores:
                records.append(Record({n: row[n] for n in ("k", "name", "s", "v")}, number, kind))
            number += 1
        stored += reference_merge(records, spec)
    return [dict(r.values) for r in reference_merge(stored, spec) if r.is_add]


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["k"], row["name"]))


@settings(max_examples=12, deadline=None)
@given(options=st.sampled_from(OPTIONS), history=HISTORY, buckets=st.integers(1, 2), least=st.integers(0, 12))
def test_a_read_equals_the_reference_merge(
    options: dict[str, str], history: list[list[dict[str, Any]]], buckets: int, least: int
) -> None:
    with tempfile.TemporaryDirectory() as home:
        catalog = paimon.connect(home)
        catalog.create_database("db")
        table = catalog.create_table(
            "db.t",
            SCHEMA,
            primary_keys=["k", "name"],
            options={"bucket": str(buckets), "write-only": "true", **options},
        )
        for rows in history:
            table.write(pa.Table.from_pylist(rows, SCHEMA.append(pa.field("op", pa.string()))), kind_column="op")
        whole = merge_by_reference(history, options)
        assert by_key(table.scan().to_arrow().to_pylist()) == by_key(whole)
        small = paimon.connect(home, memory_budget="1 b").table("db.t")
        assert isinstance(small, paimon.Table)
        assert by_key(small.scan().to_arrow().to_pylist()) == by_key(whole)
        filtered = table.scan(columns=["v"], where=f"k >= {least} AND v <> 'x'").to_arrow().to_pylist()
        left = [{"v": row["v"]} for row in whole if row["k"] >= least and row["v"] not in (None, "x")]
        assert sorted(filtered, key=str) == sorted(left, key=str)
        assert table.scan(limit=3).to_arrow().num_rows == min(3, len(whole))
        assert table.scan(columns=[]).to_arrow().num_rows == len(whole)
