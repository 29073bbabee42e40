"""A filter that is given to an engine returns the rows of golden tables that the engine finds in a whole scan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from support.case_lists import check_each
from support.golden_tables import GoldenRead, golden_directory, golden_reads
from support.known_differences import find_missing_feature

import paimon

LATEST = [read for read in golden_reads(golden_directory()) if read.name == "latest" and not find_missing_feature(read)]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge,
}  # fmt: skip
ZEROS = (0.0, -0.0, float("nan"))


def list_literals(column: pa.ChunkedArray) -> list[pa.Scalar]:
    """Return the first and the last value of a column; of floating-point columns also zeros and NaN."""
    values = [value for value in pc.unique(column) if value.is_valid]
    more = [pa.scalar(value, column.type) for value in ZEROS] if pa.types.is_floating(column.type) else []
    return [*values[:1], *values[1:][-1:], *more]


def list_filters(rows: pa.Table) -> Iterator[tuple[pc.Expression, pl.Expr, str, list[pa.Scalar]]]:
    """Yield filters of each column that is not nested: for pyarrow, for Polars, and as SQL with its parameters."""
    for field in rows.schema:
        if pa.types.is_nested(field.type) or isinstance(field.type, pa.BaseExtensionType):
            continue
        arrow, polars, sql = pc.field(field.name), pl.col(field.name), f'"{field.name}"'
        yield arrow.is_null(), polars.is_null(), f"{sql} IS NULL", []
        for value in list_literals(rows[field.name]):
            stored = pl.Series(values=pl.from_arrow(pa.array([value], field.type)))
            for sign, compare in COMPARISONS.items():
                yield compare(arrow, value), compare(polars, pl.lit(stored)), f"{sql} {sign} ?", [value]
            one_of = pa.array([value], field.type)
            yield arrow.isin(one_of), polars.is_in(stored.implode()), f"{sql} IN (?)", [value]


def to_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def check_filters(read: GoldenRead, connection: duckdb.DuckDBPyConnection) -> None:
    table = paimon.open_table(read.table)
    whole, dataset = table.scan().to_arrow(), table.to_dataset()
    memory, frame = ds.dataset(whole), pl.from_arrow(whole)
    assert isinstance(frame, pl.DataFrame)
    connection.register("pushed", dataset)
    connection.register("after", whole)
    types = dict(connection.sql("SELECT column_name, column_type FROM (DESCRIBE after)").fetchall())
    for arrow, polars, sql, values in list_filters(whole):
        expected = to_rows(memory.to_table(filter=arrow))
        assert to_rows(dataset.to_table(filter=arrow)) == expected, arrow
        parts = [part.to_table(filter=arrow) for part in dataset.get_fragments(filter=arrow)]
        assert to_rows(pa.concat_tables([whole.schema.empty_table(), *parts])) == expected, arrow
        expected = to_rows(frame.filter(polars).to_arrow())
        assert to_rows(table.lazy().filter(polars).collect().to_arrow()) == expected, polars
        if not any(pa.types.is_timestamp(value.type) and value.type.unit == "ns" for value in values):
            kind = types[sql.split('"')[1]]
            text = sql.replace("?", f"CAST(? AS {kind})")
            found = [
                connection.sql(
                    f"SELECT * FROM {name} WHERE {text}", params=[v.as_py() for v in values]
                ).to_arrow_table()
                for name in ("pushed", "after")
            ]
            assert to_rows(found[0]) == to_rows(found[1]), (sql, values)


def check_tables(reads: list[GoldenRead]) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        check_each(reads, lambda read: check_filters(read, connection))


def test_filters_of_engines_keep_their_meaning() -> None:
    check_tables([read for read in LATEST if read.case == "dv_pk"])


@pytest.mark.nightly
@pytest.mark.slow("thousands of filters")
@pytest.mark.parametrize("part", range(8))
def test_filters_of_engines_keep_their_meaning_on_all_tables(part: int) -> None:
    check_tables(list(islice(LATEST, part, None, 8)))
