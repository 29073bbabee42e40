"""Records that are hard to merge, on every path: a write, a read of several runs, a compaction.

Each is merged correctly, or refused by an error that names column and option. A refused write creates no
snapshot, and a refusal after the write leaves the table unchanged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_lists import mark_nightly, mark_products
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest, PaimonError

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "by sequence": {"sequence.field": "s"},
    "partial-update": {"merge-engine": "partial-update"},
    "groups": {"merge-engine": "partial-update", "fields.s.sequence-group": "v,t"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "max"},
}


def create_write_only_table(home: Path | str, ddl: str, keys: tuple[str, ...] = ("k",), **options: str) -> paimon.Table:
    given = {"bucket": "1", "write-only": "true", **{k.replace("__", "."): v for k, v in options.items()}}
    return create_table(home, ddl, "d.t", primary_keys=list(keys), options=given)


def files(table: paimon.Table) -> set[str]:
    return {p.name for p in Path(table.location).rglob("*") if p.is_file() and "schema" not in p.parts}


def check_refused(table: paimon.Table, rows: list[dict[str, Any]], *named: str) -> None:
    """The last row is refused with this message, with the others and alone; the table stays as it was."""
    for given in (rows, rows[-1:]):
        before, count = files(table), len(table.snapshots())
        with pytest.raises(InvalidRequest) as caught:
            table.write(given, kind_column="op")
        for word in named:
            assert word in str(caught.value)
        assert len(table.snapshots()) == count and files(table) == before
        table.write(rows[:-1], kind_column="op")
    assert table.scan().to_arrow().num_rows == 1
    table.compact(full=True)
    assert table.scan().to_arrow().num_rows == 1


BEYOND: dict[str, tuple[Any, Any, Any, Any]] = {
    "TINYINT": (100, 44, 44, 44),
    "SMALLINT": (32_767, 32_765, 32_765, 32_765),
    "INT": (2**31 - 1, 2**31 - 3, 2**31 - 3, 2**31 - 3),
    "BIGINT": (2**63 - 1, 2**63 - 3, 2**63 - 3, 2**63 - 3),
    "DECIMAL(5, 2)": (Decimal("999.99"), Decimal("2999.97"), Decimal("2999.97"), None),
    "DECIMAL(10, 2)": (Decimal("99999999.99"), Decimal("299999999.97"), Decimal("299999999.97"), None),
    "DECIMAL(9, 2)": (Decimal("9999999.99"), Decimal("29999999.97"), Decimal("-12949672.99"), None),
    "DECIMAL(38, 2)": (*[Decimal("9" * 36 + ".99")] * 4,),
    "DECIMAL(19, 0)": (Decimal(10**19 - 1), Decimal(10**19 - 1), Decimal(10**19 - 1), Decimal(10**19 - 1)),
    "DECIMAL(18, 0)": (Decimal(4 * 10**17), Decimal(12 * 10**17), Decimal(12 * 10**17), None),
}
"""A value, three of it summed while a scan reads them, and the sum in Parquet files, and in ORC and Avro files.

In this order, Parquet has decimals of 9 and of 18 digits by day: it stores 32 and 64 bits of their sums."""


FORMATS = ("parquet", "orc", "avro")


@pytest.mark.parametrize(
    ("kind", "file_format", "engine"),
    mark_products(
        BEYOND,
        FORMATS,
        ["aggregation", "partial-update"],
        always=["TINYINT", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(38, 2)"],
    ),
)
def test_sums_that_leave_their_type_are_javas(tmp_path: Path, kind: str, file_format: str, engine: str) -> None:
    """Integers wrap, decimals keep 64 bits where the file does, and a null starts anew; nothing is ever refused."""
    table = create_write_only_table(tmp_path, f"k INT NOT NULL, s INT, v {kind}", **{
        "merge-engine": engine, "fields__v__aggregate-function": "sum", "file__format": file_format,
        **({"fields.s.sequence-group": "v"} if engine == "partial-update" else {}),
    })  # fmt: skip
    value, read, in_parquet, in_others = BEYOND[kind]
    for s in range(3):
        table.write([{"k": 1, "s": s, "v": value}])
    table.write([{"k": 3, "s": s, "v": value} for s in range(3)])
    stored = in_parquet if file_format == "parquet" else in_others
    assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [read, stored]
    table.write([{"k": 2, "s": 1, "v": value}])
    table.compact(full=True)
    assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [stored, value, stored]
    assert table.maintain.check(deep=True).is_whole


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("TINYINT", (100, 3), 44),
        ("BIGINT", (2**63 - 1, 2), -2),
        ("DECIMAL(5, 2)", (Decimal("999.99"), Decimal("2.00")), None),
        ("DECIMAL(5, 2)", (Decimal("0.15"), Decimal("0.10")), Decimal("0.02")),
        ("DECIMAL(38, 0)", (Decimal(10**37), Decimal(10)), None),
    ],
)
def test_products_that_leave_their_type_are_javas(
    tmp_path: Path, kind: str, values: tuple[Any, Any], expected: Any
) -> None:
    table = create_write_only_table(
        tmp_path,
        f"k INT NOT NULL, v {kind}",
        **{"merge-engine": "aggregation", "fields__v__aggregate-function": "product"},
    )
    for value in values:
        table.write([{"k": 1, "v": value}])
    table.write([{"k": 2, "v": value} for value in values])
    for _ in range(2):
        assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [expected, expected]
        table.compact(full=True)


@pytest.mark.parametrize(
    ("changelog", "engine"),
    mark_products(
        [{}, {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}],
        ["aggregation", "partial-update"],
    ),
)
def test_an_overflow_never_blocks_a_bucket(tmp_path: Path, engine: str, changelog: dict[str, str]) -> None:
    """A sum over two commits, each in the range of its type; the writer's own compaction meets it."""
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s INT, v INT", **changelog, **{
        "merge-engine": engine, "fields__v__aggregate-function": "sum", "write-only": "false",
        "num-sorted-run.compaction-trigger": "1", "compaction.size-ratio": "1000",
        **({"fields.s.sequence-group": "v"} if engine == "partial-update" else {}),
    })  # fmt: skip
    table.write([{"k": 1, "s": 1, "v": 2**31 - 1}])
    table.write([{"k": 1, "s": 2, "v": 1}, {"k": 2, "s": 2, "v": 1}])
    assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [-(2**31), 1]


def test_a_query_sees_the_digits_that_a_scan_sees(tmp_path: Path) -> None:
    """The engine stores a DECIMAL of few digits in 16 or 32 bits, which such a sum does not fit."""
    options = {"merge-engine": "aggregation", "fields__v__aggregate-function": "sum"}
    table = create_write_only_table(tmp_path, "k INT NOT NULL, v DECIMAL(4, 2)", **options)
    for _ in range(12):
        table.write([{"k": 1, "v": Decimal("99.99")}, {"k": 2, "v": Decimal("-99.99")}])
    catalog = paimon.connect(tmp_path)
    for _ in range(2):
        assert table.scan().to_arrow()["v"].to_pylist() == [Decimal("1199.88"), Decimal("-1199.88")]
        assert catalog.sql("SELECT v FROM d.t ORDER BY k").to_arrow()["v"].to_pylist() == [
            Decimal("1199.88"),
            Decimal("-1199.88"),
        ]
        assert table.scan(where="abs(v) > 1000").count() == 2
        table.compact(full=True)


NOT_MERGED: dict[str, tuple[str, Any, dict[str, str]]] = {
    "rbm32": ("BYTES", b"xx", {}),
    "rbm64": ("BYTES", b"xx", {}),
    "hll_sketch": ("BYTES", b"xx", {}),
    "theta_sketch": ("BYTES", b"xx", {}),
    "nested_update": (
        "ARRAY<ROW<a INT, b INT>>", [{"a": None, "b": 1}],
        {"fields.v.nested-key": "a", "fields.v.nested-key-null-strategy": "error"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "bucket"), mark_products(NOT_MERGED, ["1", "-1", "-2"]))
def test_values_that_no_merge_takes_are_refused_alone(tmp_path: Path, function: str, bucket: str) -> None:
    kind, bad, more = NOT_MERGED[function]
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": function, "bucket": bucket, **more}
    table = create_write_only_table(tmp_path, f"k INT NOT NULL, v {kind}", **options)
    with pytest.raises(InvalidRequest, match="'v'"):
        table.write([{"k": 1, "v": bad}])
    assert table.snapshot() is None


def test_the_retract_of_a_zero_is_refused_alone(tmp_path: Path) -> None:
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "product"}
    table = create_write_only_table(tmp_path, "k INT NOT NULL, v INT", **options)
    rows = [{"k": 1, "v": 6, "op": "+I"}, {"k": 1, "v": 2, "op": "-D"}, {"k": 1, "v": 0, "op": "-D"}]
    check_refused(table, rows, "retract a 0", "ignore-retract")


def test_texts_of_limited_length_are_not_joined(tmp_path: Path) -> None:
    """Java creates such a table, and refuses to write to it."""
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg"}
    table = create_write_only_table(tmp_path, "k INT NOT NULL, v STRING", **options)
    schema = Path(table.location) / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"STRING"', '"VARCHAR(5)"'))
    with pytest.raises(InvalidRequest, match="listagg"):
        paimon.open_table(table.location).write([{"k": 1, "v": "a"}])


def test_functions_that_java_lacks_are_refused_and_kept(tmp_path: Path) -> None:
    named = {"merge-engine": "aggregation", "fields.v.aggregate-function": "count"}
    with pytest.raises(InvalidRequest, match="Java"):
        create_write_only_table(tmp_path, "k INT NOT NULL, v INT", **named)
    table = create_write_only_table(
        tmp_path, "k INT NOT NULL, v INT", **{**named, "fields.v.aggregate-function": "sum"}
    )
    with pytest.raises(InvalidRequest, match="Java"):
        table.alter("SET ('fields.v.aggregate-function' = 'count')")
    schema = Path(table.location) / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"sum"', '"count"'))
    older = paimon.connect(tmp_path).table("d.t")
    older.write([{"k": 1, "v": 5}, {"k": 1, "v": 6}])
    older.alter("SET ('snapshot.num-retained.max' = '20')")
    assert older.scan().to_arrow()["v"].to_pylist() == [2]


def test_floats_never_leave_their_type(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path,
        "k INT NOT NULL, v DOUBLE",
        **{
            "merge-engine": "aggregation",
            "fields__v__aggregate-function": "sum",
        },
    )
    for _ in range(2):
        table.write([{"k": 1, "v": 1e308}, {"k": 2, "v": math.inf}, {"k": 2, "v": -math.inf}])
    assert [row["v"] for row in table.scan(where="k = 1").to_arrow().to_pylist()] == [math.inf]
    assert math.isnan(table.scan(where="k = 2").to_arrow()["v"][0].as_py())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"merge-engine": "first-row"}, "ignore-delete"),
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "max"}, "fields.v.ignore-retract"),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "first_value"}, "fields.v.ignore-retract"),
    ],
)
@pytest.mark.parametrize("kind", ["-U", "-D"])
def test_retracts_are_refused_where_no_option_accepts_them(
    tmp_path: Path, options: dict[str, str], named: str, kind: str
) -> None:
    table = create_write_only_table(tmp_path, "k INT NOT NULL, v INT", **options)
    rows = [{"k": 1, "v": 1, "op": "+I"}, {"k": 1, "v": 1, "op": kind}]
    if options["merge-engine"] == "first-row":  # level 0 is not read
        with pytest.raises(InvalidRequest, match=named):
            table.write(rows, kind_column="op")
        assert table.snapshot() is None
        return
    check_refused(table, rows, named)


def test_a_row_without_a_needed_value_is_refused(tmp_path: Path) -> None:
    table = create_write_only_table(tmp_path, "k INT NOT NULL, v INT NOT NULL", **{"merge-engine": "partial-update"})
    with pytest.raises(InvalidRequest, match="'v'"):
        table.write([{"k": 1, "v": None}])
    assert table.snapshot() is None


@pytest.mark.parametrize("engine", ["by sequence", "groups"])
def test_a_null_sequence_loses(tmp_path: Path, engine: str) -> None:
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s INT, v INT, t STRING", **ENGINES[engine])
    table.write([{"k": 1, "s": 1, "v": 1, "t": "first"}, {"k": 2, "s": None, "v": 5, "t": "singleton"}])
    table.write([{"k": 1, "s": None, "v": 9, "t": "late"}, {"k": 2, "s": None, "v": 6, "t": "again"}])
    singleton = {"by sequence": (None, 6, "again"), "groups": (None, None, None)}[engine]
    for _ in range(2):
        found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
        assert found[0] == (1, 1, 1, "first")
        assert found[1] == (2, *singleton)
        table.compact(full=True)


EDGES = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5]


@pytest.mark.parametrize(("data_format", "kind"), mark_products(["parquet", "orc", "avro"], ["FLOAT", "DOUBLE"]))
def test_floats_are_keys(tmp_path: Path, kind: str, data_format: str) -> None:
    """-0.0 and 0.0 are two keys, all NaN are one."""
    floating = {"primary-key.allow-floating": "true"}
    table = create_write_only_table(tmp_path, f"k {kind} NOT NULL, v INT", file__format=data_format, **floating)
    for step in range(3):
        table.write([{"k": k, "v": 10 * step + i} for i, k in enumerate(EDGES)])
    table.write([{"k": 1.5, "v": None, "op": "-D"}, {"k": math.nan, "v": 99, "op": "+U"}], kind_column="op")
    expected = [("-inf", 24), ("-0.0", 21), ("0.0", 22), ("inf", 23), ("nan", 99)]
    for _ in range(2):
        found = table.scan().to_arrow().to_pylist()
        assert [(repr(row["k"]), row["v"]) for row in found] == expected
        assert [row["v"] for row in table.scan(where="k < 0").to_arrow().to_pylist()] == [24, 21]
        table.compact(full=True)


def test_floats_are_orders(tmp_path: Path) -> None:
    """Infinities are ordered, zeros are equal, and no earlier value wins over a NaN."""
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s DOUBLE, v STRING", sequence__field="s")
    for k, (first, second) in enumerate([(-math.inf, math.inf), (math.inf, 1.0), (0.0, -0.0), (1.0, math.nan)]):
        table.write([{"k": k, "s": first, "v": "first"}])
        table.write([{"k": k, "s": second, "v": "second"}])
    for _ in range(2):
        assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == ["second", "first", "second", "second"]
        table.compact(full=True)


@pytest.mark.parametrize(("key", "buffer"), mark_products(["INT", "STRING"], ["256 mb", "1 b"]))
def test_floats_order_the_rows_of_one_flush(tmp_path: Path, key: str, buffer: str) -> None:
    """As sort keys, the values have the order of keys. After a text, NaN equals the previous value."""
    table = create_write_only_table(
        tmp_path,
        f"k {key} NOT NULL, s DOUBLE, v STRING",
        **{
            "sequence__field": "s",
            "write-buffer-size": buffer,
            "write-buffer-spillable": "true",
        },
    )
    pairs = [(1.0, math.nan), (math.nan, 1.0), (0.0, -0.0), (-0.0, 0.0), (math.inf, math.nan), (None, math.nan)]
    keys = [k if key == "INT" else f"{k}" for k in range(len(pairs))]
    table.write([
        {"k": k, "s": pair[step], "v": ("first", "second")[step]}
        for step in (0, 1) for k, pair in zip(keys, pairs, strict=True)
    ])  # fmt: skip
    found = [row["v"] for row in table.scan().to_arrow().to_pylist()]
    assert (
        found
        == {
            "INT": ["second", "first", "first", "second", "second", "second"],
            "STRING": ["second", "second", "second", "second", "second", "second"],
        }[key]
    )


SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.int32()), ("v", pa.int64()), ("t", pa.string())])


def batches(rows: list[tuple[Any, ...]], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches, with empty ones between them."""
    for start in range(0, len(rows), size):
        yield pa.RecordBatch.from_arrays([pa.array([], f.type) for f in SCHEMA], schema=SCHEMA)
        cut = zip(*rows[start : start + size], strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(cut, SCHEMA, strict=True)], schema=SCHEMA)


@pytest.mark.parametrize(
    ("engine", "buffer"),
    mark_products(ENGINES, ["256 mb", "1 kb"], always=["deduplicate", "partial-update", "aggregation"]),
)
def test_ten_thousand_versions_of_one_key_split_over_batches(tmp_path: Path, engine: str, buffer: str) -> None:
    """Through one flush (spilled if the buffer is small), through four runs, and through a compaction."""
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s INT, v BIGINT, t STRING", **ENGINES[engine],
                    **{"write-buffer-size": buffer, "read__batch-size": "16"})  # fmt: skip
    versions = [(7, i, (i * 7919) % 10_007, f"t{i}" if i % 3 else None) for i in range(10_000)]
    others = [(k, 0, k, "x") for k in (6, 8)]
    last = versions[-1][2] if engine != "aggregation" else max(v for _, _, v, _ in versions)
    text = versions[-1][3] if engine in ("deduplicate", "by sequence", "groups") else "t9998"
    for start in range(0, 10_000, 2_500):
        rows = [*versions[start : start + 2_500], *others]
        table.write(pa.RecordBatchReader.from_batches(SCHEMA, batches(rows, 700)))
    for _ in range(2):
        found = table.scan().to_arrow().to_pylist()
        assert [(row["k"], row["v"], row["t"]) for row in found] == [(6, 6, "x"), (7, last, text), (8, 8, "x")]
        table.compact(full=True)


def test_empty_batches_write_no_files(tmp_path: Path) -> None:
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s INT, v BIGINT, t STRING")
    table.write(pa.RecordBatchReader.from_batches(SCHEMA, [next(batches([(1, 1, 1, "")], 1))] * 3))
    assert table.scan().count() == 0
    assert not list(Path(table.location).rglob("data-*"))


@pytest.mark.parametrize(
    "engine", mark_nightly(["deduplicate", "partial-update", "aggregation"], always=["partial-update"])
)
def test_one_value_of_fifty_megabytes(tmp_path: Path, engine: str) -> None:
    table = create_write_only_table(tmp_path, "k INT NOT NULL, s INT, v BIGINT, t STRING", **ENGINES[engine],
                    **{"write-buffer-size": "1 mb", "target-file-size": "1 mb"})  # fmt: skip
    large = "x" * 50_000_000
    started = time.process_time()
    table.write([{"k": k, "s": 1, "v": k, "t": "small"} for k in range(100)])
    table.write([{"k": 50, "s": 2, "v": 0, "t": large}, {"k": 51, "s": 2, "v": 1000, "t": None}])
    for _ in range(2):
        found = table.scan(where="k IN (50, 51)").to_arrow().to_pylist()
        assert found[0]["t"] == large
        assert found[1]["t"] == (None if engine == "deduplicate" else "small")
        assert table.scan().count() == 100
        table.compact(full=True)
    assert time.process_time() - started < 60


def test_a_broken_stream_leaves_no_files(tmp_path: Path) -> None:
    table = create_write_only_table(
        tmp_path, "k INT NOT NULL, s INT, v BIGINT, t STRING", **{"write-buffer-size": "1 kb"}
    )

    def read_then_fail() -> Iterator[pa.RecordBatch]:
        yield from batches([(i, i, i, "x" * 100) for i in range(1_000)], 100)
        yield pa.RecordBatch.from_arrays(
            [pa.array([None], pa.int32()), *(pa.nulls(1, f.type) for f in list(SCHEMA)[1:])], schema=SCHEMA
        )

    before = files(table)
    with pytest.raises(PaimonError, match="'k'"):
        table.write(pa.RecordBatchReader.from_batches(SCHEMA, read_then_fail()))
    assert table.snapshot() is None and files(table) == before
