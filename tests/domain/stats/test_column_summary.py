"""Summaries of columns: merged parts equal the whole, counts are exact until the memory is used up, then near."""

from __future__ import annotations

import datetime as dates
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable
from paimon.domain.json_text import STATISTICS_FILE, dump_json, load_object
from paimon.domain.stats.column_summary import ColumnSummary, can_be_summarized
from paimon.domain.stats.table_statistics import ColumnStatistics, TableStatistics, share_bytes
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType

MANY = 1 << 20
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    dt.IntType(): st.integers(-(2**31), 2**31 - 1),
    dt.VarCharType(): st.text(max_size=9),
    dt.VarBinaryType(dt.MAX_LENGTH): st.binary(max_size=9),
    dt.DecimalType(20, 2): st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-2)),
}


def summarize(data_type: DataType, *batches: list[Any], exact_bytes: int = MANY) -> ColumnSummary:
    summary = ColumnSummary(data_type, exact_bytes)
    for batch in batches:
        summary.add(pa.array(batch, arrow_type(data_type)))
    return summary


@given(data=st.data(), data_type=st.sampled_from(list(VALUES)), exact_bytes=st.sampled_from([0, 40, MANY]))
@settings(max_examples=60)
def test_merged_summaries_equal_that_of_the_whole(data: st.DataObject, data_type: DataType, exact_bytes: int) -> None:
    batches = data.draw(st.lists(st.lists(st.none() | VALUES[data_type], max_size=8), min_size=1, max_size=5))
    cut = data.draw(st.integers(0, len(batches)))
    merged = summarize(data_type, *batches[:cut], exact_bytes=exact_bytes)
    merged.merge(pickle.loads(pickle.dumps(summarize(data_type, *batches[cut:], exact_bytes=exact_bytes))))
    values = [value for batch in batches for value in batch if value is not None]
    found = merged.to_statistics(DataField(3, "c", data_type))

    assert found.column_id == 3
    assert found.null_count == sum(map(len, batches)) - len(values)
    # two values may share a register
    assert found.distinct_count == pytest.approx(len(set(values)), abs=0 if merged.is_exact else 2)
    if isinstance(data_type, (dt.IntType, dt.DecimalType)):
        ends = (str(min(values)), str(max(values))) if values else (None, None)
        assert (found.smallest, found.largest) == ends
    else:
        lengths = [len(value) for value in values]
        assert (found.smallest, found.largest) == (None, None)
        assert found.largest_length == max(lengths, default=None)
        assert found.average_length == (-(-sum(lengths) // len(lengths)) if lengths else None)


@pytest.mark.parametrize("count", [100, 40_000, 700_000])
def test_an_estimate_is_near(count: int) -> None:
    summary = ColumnSummary(dt.BigIntType(), exact_bytes=100)
    for start in range(0, count, 65_536):
        numbers = pa.array(np.arange(start, min(count, start + 65_536)) * 7_919)
        summary.add(numbers)
        summary.add(numbers)
    assert not summary.is_exact
    assert summary.count_distinct() == pytest.approx(count, rel=0.03)


def test_a_count_is_exact_while_the_values_fit() -> None:
    summary = summarize(dt.IntType(), *[list(range(1000))] * 20, exact_bytes=5000)
    assert (summary.is_exact, summary.count_distinct()) == (True, 1000)
    summary.add(pa.array(range(5000), pa.int32()))
    assert not summary.is_exact


@pytest.mark.parametrize(
    ("data_type", "value", "text", "length"),
    [
        (dt.BooleanType(), True, "true", 1),
        (dt.DateType(), dates.date(2020, 1, 2), "18263", 4),
        (dt.TimestampType(3), dates.datetime(2020, 1, 2, 3, 4, 5, 120_000), "2020-01-02 03:04:05.120", 8),
        (dt.TimestampType(0), dates.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05", 8),
        (dt.DoubleType(), 1e10, "1.0E10", 8),
        (dt.DecimalType(20, 2), Decimal("-1.50"), "-1.50", 16),
        (dt.DecimalType(9, 2), Decimal("0.00"), "0.00", 8),
    ],
)
def test_bounds_are_texts_as_java_stores_them(data_type: DataType, value: Any, text: str, length: int) -> None:
    found = summarize(data_type, [None, value]).to_statistics(DataField(0, "c", data_type))
    assert found == ColumnStatistics(0, 1, text, text, 1, length, length)


def test_nested_types_have_no_summary() -> None:
    assert not can_be_summarized(dt.ArrayType(dt.IntType()))
    assert not can_be_summarized(dt.VariantType())
    assert can_be_summarized(dt.LocalZonedTimestampType(6))


def test_statistics_are_stored_as_java_writes_them() -> None:
    columns = {"id": ColumnStatistics(0, 50, "0", "49", 0), "s": ColumnStatistics(1, 2, None, None, 8, 9, 27)}
    statistics = TableStatistics(1, 0, 50, 500, columns)
    text = dump_json(statistics.to_json())
    assert text.decode().splitlines()[:7] == [
        "{", '  "snapshotId" : 1,', '  "schemaId" : 0,', '  "mergedRecordCount" : 50,', '  "mergedRecordSize" : 500,',
        '  "colStats" : {', '    "id" : {',
    ]  # fmt: skip
    assert b'"min" : "0"' in text
    assert b"null" not in text.replace(b"nullCount", b"")
    assert TableStatistics.of(load_object(text, "stat-1", STATISTICS_FILE)) == statistics


@pytest.mark.parametrize(
    "text", ['{"snapshotId": 1}', '{"snapshotId": 1, "schemaId": 0, "colStats": {"a": {"nullCount": "x"}}}',
             '{"snapshotId": 1, "schemaId": 0, "colStats": [1]}']
)  # fmt: skip
def test_a_damaged_file_is_named(text: str) -> None:
    with pytest.raises(CorruptTable, match="stat-1"):
        TableStatistics.of(load_object(text.encode(), "stat-1", STATISTICS_FILE))


def test_bytes_are_shared_by_rows() -> None:
    assert (share_bytes(1000, 50, 25), share_bytes(0, 0, 0)) == (500, 0)
