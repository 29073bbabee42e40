"""write(merge_schema=True): new columns are added together with the rows that need them, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.case_lists import mark_products

import paimon
from paimon.domain.errors import CommitConflict, PaimonError, Unsupported
from paimon.domain.schema.changes import AddColumn, DropColumn, SetOption
from paimon.domain.types.type_text import format_type
from paimon.operations.evolve import plan_merged_schema
from paimon.table import Table

COLUMNS = "id BIGINT NOT NULL, day STRING, amount DECIMAL(5, 2), small TINYINT, must INT NOT NULL"
GOOD = {"id": 1, "day": "a", "amount": "1.50", "small": 3, "must": 1}


@pytest.fixture
def appended(catalog: paimon.Catalog) -> Table:
    return catalog.create_table("d.appended", COLUMNS)


@pytest.fixture
def keyed(catalog: paimon.Catalog) -> Table:
    return catalog.create_table("d.keyed", COLUMNS, primary_keys=["id"], options={"bucket": 2})


def newest(table: Table) -> Table:
    opened = paimon.open_table(table.location)
    assert isinstance(opened, Table)
    return opened


def files_of(table: Table) -> list[Path]:
    return sorted(Path(table.location).glob("**/data-*"))


@pytest.mark.parametrize("kind", ["appended", "keyed"])
def test_twice_on_one_handle(kind: str, request: pytest.FixtureRequest) -> None:
    table: Table = request.getfixturevalue(kind)
    for number in (1, 2, 3):
        table.write([{**GOOD, "id": number, "extra": f"x{number}"}], merge_schema=True)
    table.write([{**GOOD, "id": 4, "extra": "x4", "other": 1.5}], merge_schema=True)
    table.write([{**GOOD, "id": 5, "other": 2.5}], merge_schema=True)
    rows = sorted(newest(table).scan(columns=["id", "extra", "other"]).to_arrow().to_pylist(), key=lambda r: r["id"])
    assert [(r["id"], r["extra"], r["other"]) for r in rows] == [
        (1, "x1", None), (2, "x2", None), (3, "x3", None), (4, "x4", 1.5), (5, None, 2.5),
    ]  # fmt: skip
    assert newest(table).table_schema.id == 2


def test_a_column_that_another_writer_added_takes_its_type(appended: Table) -> None:
    newest(appended).alter(AddColumn("at", "DATE"))
    appended.write([{**GOOD, "at": "2026-01-01"}], merge_schema=True)
    assert newest(appended).scan(columns=["at"]).to_arrow()["at"].to_pylist()[0].isoformat() == "2026-01-01"


def test_dynamic_options_stay(appended: Table) -> None:
    table = appended.with_options({"file.format": "orc"})
    table.write([{**GOOD, "extra": 1}], merge_schema=True)
    assert [f.suffix for f in files_of(table)] == [".orc"]


def two_batches() -> Iterator[pa.Table]:
    good = pa.table({"id": [1], "must": [1], "extra": ["x"]})
    yield good
    yield good.set_column(0, "id", pa.array(["no number"]))


def read_then_fail() -> Iterator[pa.Table]:
    yield pa.table({"id": [1], "must": [1], "extra": ["x"]})
    raise OSError("the source broke off")


def batch_reader() -> pa.RecordBatchReader:
    schema = pa.schema([("id", pa.int64()), ("must", pa.int32()), ("extra", pa.string())])
    batches = [pa.record_batch([[1], [1], ["x"]], schema), pa.record_batch([[2], [None], ["y"]], schema)]
    return pa.RecordBatchReader.from_batches(schema, batches)


REFUSED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "another type": (lambda: [{**GOOD, "id": "no number", "extra": 1}], {}),
    "Arrow of another type": (lambda: pa.table({"id": ["x"], "must": [1], "extra": [1]}), {}),
    "a value too large": (lambda: [{**GOOD, "small": 300, "extra": 1}], {}),
    "a decimal too large": (lambda: [{**GOOD, "amount": "123456.00", "extra": 1}], {}),
    "null where NOT NULL": (lambda: [{**GOOD, "must": None, "extra": 1}], {}),
    "a missing column that is NOT NULL": (lambda: [{"id": 1, "extra": 1}], {}),
    "a null key": (lambda: [{**GOOD, "id": None, "extra": 1}], {}),
    "a kind column that is missing": (lambda: [{**GOOD, "extra": 1}], {"kind_column": "op"}),
    "an unknown kind": (lambda: [{**GOOD, "op": "upsert", "extra": 1}], {"kind_column": "op"}),
    "a null kind": (lambda: [{**GOOD, "op": None, "extra": 1}], {"kind_column": "op"}),
    "a later batch of an iterator": (two_batches, {}),
    "a later batch with more columns": (
        lambda: [pa.table({"id": [1], "must": [1], "extra": [1]}), pa.table({"id": [1], "must": [1], "late": [1]})],
        {},
    ),
    "a later batch of a reader": (batch_reader, {}),
    "a source that breaks off": (read_then_fail, {}),
    "a column that no type fits": (lambda: pa.table({"id": [1], "must": [1], "extra": pa.nulls(1)}), {}),
    "one good and one bad new column": (
        lambda: pa.table({"id": [1], "must": [1], "extra": [1], "bad": pa.nulls(1)}), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), mark_products(REFUSED, ["appended", "keyed"]))
def test_a_refused_write_adds_no_columns(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    table: Table = request.getfixturevalue(kind)
    data, options = REFUSED[name]
    with pytest.raises((PaimonError, OSError)):
        table.write(data(), merge_schema=True, **options)
    assert newest(table).table_schema == table.table_schema
    assert files_of(table) == [] and table.snapshot() is None


def test_deletes_of_an_append_table_add_no_columns(appended: Table) -> None:
    with pytest.raises(PaimonError, match="no primary key"):
        appended.write([{**GOOD, "op": "-D", "extra": 1}], kind_column="op", merge_schema=True)
    assert newest(appended).table_schema == appended.table_schema


def test_rows_that_cannot_be_merged_add_no_columns(catalog: paimon.Catalog) -> None:
    """Errors that are raised only when the buffer is merged: a sum that is null in a column that is NOT NULL."""
    options = {"bucket": 1, "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    columns = "id INT NOT NULL, v DECIMAL(38, 0) NOT NULL"
    table = catalog.create_table("d.sums", columns, primary_keys=["id"], options=options)
    rows = [{"id": 1, "v": "9" * 38, "extra": "a"}, {"id": 1, "v": "9" * 38, "extra": "b"}]
    with pytest.raises(PaimonError, match=r"'v'|v is NOT NULL"):
        table.write(rows, merge_schema=True)
    assert newest(table).table_schema == table.table_schema


def test_a_table_that_refuses_commits_gets_no_new_columns(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.notified", COLUMNS, options={"commit.callbacks": "org.example.Notify"})
    with pytest.raises(Unsupported, match="Notify"):
        table.write([{**GOOD, "extra": 1}], merge_schema=True)
    assert newest(table).table_schema == table.table_schema
    assert files_of(table) == []


def test_the_kind_column_is_not_added(keyed: Table) -> None:
    keyed.write([{**GOOD, "op": "+I", "extra": 1}], kind_column="op", merge_schema=True)
    keyed.write([{**GOOD, "op": "-D", "extra": 1}], kind_column="op", merge_schema=True)
    assert newest(keyed).table_schema.names == (*keyed.table_schema.names, "extra")
    assert newest(keyed).scan().count() == 0


def test_writes_without_rows_and_new_columns_have_no_effect(appended: Table) -> None:
    appended.write([GOOD], merge_schema=True)
    appended.write([], merge_schema=True)
    assert newest(appended).table_schema == appended.table_schema
    assert len(appended.snapshots()) == 1


class Racing:
    """Rows that change the table's schema, as another process would, when they are read for the first time."""

    def __init__(self, race: Callable[[], Any], once: bool = True) -> None:
        self._race: Callable[[], Any] | None = race
        self._once = once

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[pa.Table]:
        race = self._race
        self._race = None if self._once else race
        yield pa.table({"id": [1], "must": [1], "extra": ["x"]})
        if race is not None:
            race()


@pytest.mark.parametrize(
    "race", [(AddColumn("theirs", "INT"),), (SetOption("snapshot.num-retained.max", "99"),), (DropColumn("day"),)]
)
def test_a_concurrent_schema_change_of_another_writer(keyed: Table, race: tuple[Any, ...]) -> None:
    other = newest(keyed)
    keyed.write(Racing(lambda: other.alter(*race)), merge_schema=True, missing_columns="null")
    assert newest(keyed).scan(columns=["id", "extra"]).to_arrow().to_pylist() == [{"id": 1, "extra": "x"}]
    assert newest(keyed).table_schema.names == other.alter(*race[:0]).table_schema.names
    assert len(files_of(keyed)) == 1


def test_the_same_column_added_concurrently_by_another_writer(keyed: Table) -> None:
    other = newest(keyed)
    keyed.write(Racing(lambda: other.alter(AddColumn("extra", "STRING"))), merge_schema=True, missing_columns="null")
    assert newest(keyed).table_schema.id == 1
    assert newest(keyed).scan(columns=["id", "extra"]).to_arrow().to_pylist() == [{"id": 1, "extra": "x"}]


def test_a_source_that_cannot_be_read_twice_fails_completely(keyed: Table) -> None:
    other = newest(keyed)
    with pytest.raises(CommitConflict, match="schema"):
        rows = iter(Racing(lambda: other.alter(AddColumn("theirs", "INT"))))
        keyed.write(rows, merge_schema=True, missing_columns="null")
    assert newest(keyed).table_schema.names == (*keyed.table_schema.names, "theirs")
    assert files_of(keyed) == []


@pytest.mark.parametrize(
    "options",
    [
        {"full-compaction.delta-commits": "1"},
        {"changelog-producer": "lookup"},
        {"deletion-vectors.enabled": "true"},
        {"merge-engine": "partial-update"},
    ],
    ids=str,
)
def test_compaction_after_the_write_reads_the_new_columns(catalog: paimon.Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("d.t", COLUMNS, primary_keys=["id"], options={"bucket": 1, **options})
    table.write([{**GOOD, "id": 1}, {**GOOD, "id": 2}])
    for number in range(1, 6):
        table.write([{**GOOD, f"extra{number}": number}], merge_schema=True)
    columns = ["id", *(f"extra{number}" for number in range(1, 6))]
    rows = {row["id"]: list(row.values())[1:] for row in newest(table).scan(columns=columns).to_arrow().to_pylist()}
    merges = options.get("merge-engine") == "partial-update"
    assert rows == {1: [1, 2, 3, 4, 5] if merges else [None, None, None, None, 5], 2: [None] * 5}
    assert newest(table).maintain.check().is_whole


@pytest.mark.parametrize(
    ("options", "mode", "wanted"),
    [
        ({}, "cast", ["STRING", "BIGINT"]),
        ({}, "widen", ["INT", "BIGINT"]),
        ({}, True, ["INT", "INT"]),
        ({"sequence.field": "a"}, "cast", ["INT", "BIGINT"]),
        ({"merge-engine": "aggregation", "fields.a.aggregate-function": "max"}, "cast", ["INT", "BIGINT"]),
    ],
)
def test_columns_get_wider_types_but_keys_and_ordering_columns_stay(
    tmp_path: Path, options: dict[str, str], mode: bool | str, wanted: list[str]
) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table(
        "d.t", "id INT NOT NULL, a INT, b INT", primary_keys=["id"], options={"bucket": 1, **options}
    )
    given = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.int64())])
    planned = plan_merged_schema(table.context, given, mode)
    assert [format_type(f.type) for f in planned.schema.fields] == ["INT NOT NULL", *wanted]
