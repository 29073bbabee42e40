"""Tables whose rows this library would store in another form than Java: every write to them is refused by name."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.golden_tables import golden_directory

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.schema.changes import AddColumn, SetOption
from paimon.domain.types.data_types import IntType
from paimon.operations.write.writer import TableWriter

EVOLVING = {"row-tracking.enabled": True, "data-evolution.enabled": True}
ROWS = [{"id": 1, "pic": b"x"}]


def batch_builder(table: paimon.Table) -> None:
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(ROWS)
        writer.prepare_commit()


def stream_builder(table: paimon.Table) -> None:
    with table.new_stream_write_builder("u").new_write() as writer:
        writer.write(ROWS)
        writer.prepare_commit(1)


WRITES: dict[str, Callable[[paimon.Table], Any]] = {
    "write": lambda table: table.write(ROWS),
    "merge_schema": lambda table: table.write(ROWS, merge_schema=True),
    "overwrite": lambda table: table.overwrite(ROWS, partition={}),
    "batch builder": batch_builder,
    "stream builder": stream_builder,
    "compact": lambda table: table.compact(full=True),
}


def data_files(table: paimon.Table) -> list[Path]:
    return [p for p in Path(table.location).rglob("*") if p.is_file() and p.parent.name.startswith("bucket-")]


@pytest.mark.parametrize("way", [way for way in WRITES if way != "compact"])
def test_no_rows_with_blob_descriptors_are_written(catalog: paimon.Catalog, way: str) -> None:
    options = {**EVOLVING, "blob-descriptor-field": "pic"}
    table = catalog.create_table("d.t", "id INT, pic BLOB", options=options)
    with pytest.raises(Unsupported, match="descriptors in column 'pic'"):
        WRITES[way](table)
    assert table.snapshots() == [] and data_files(table) == []


def test_a_blob_inside_a_row_is_refused_too(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "id INT, r ROW<pic BLOB>", options=EVOLVING)
    with pytest.raises(Unsupported, match="nested BLOB values or descriptors in column 'r'"):
        table.write([{"id": 1, "r": {"pic": b"x"}}])


FOREIGN = ("format-table", "object-table", "lance-table", "iceberg-table")


@pytest.mark.parametrize("kind", [*FOREIGN, "materialized-table", "Format-Table"])
def test_tables_of_other_types_are_not_created(catalog: paimon.Catalog, kind: str) -> None:
    with pytest.raises(Unsupported, match=f"type '{kind.lower()}'"):
        catalog.create_table("d.t", "id INT", options={"type": kind})
    assert catalog.tables("d") == []
    defaults = evolve(catalog, options={"table-default.type": kind})
    with pytest.raises(Unsupported, match=f"type '{kind.lower()}'"):
        defaults.create_table("d.t", "id INT")
    table = catalog.create_table("d.t", "id INT")
    with pytest.raises(Unsupported, match=f"type '{kind.lower()}'"):
        table.alter(SetOption("type", kind))
    assert table.alter(SetOption("type", "table")).write([{"id": 1}]).rows == 1


@pytest.mark.parametrize("kind", [*FOREIGN, "table-of-tomorrow"])
def test_tables_of_other_types_are_neither_opened_nor_written(catalog: paimon.Catalog, kind: str) -> None:
    table = catalog.create_table("d.t", "id INT", options={"type": "table"})
    table.write([{"id": 1}])
    pickled = pickle.dumps(evolve(table.definition, options=table.definition.options.with_values({"type": kind})))
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"type" : "table"', f'"type" : "{kind}"'))
    ways: list[Callable[[], Any]] = [
        lambda: catalog.table("d.t"),
        lambda: paimon.open_table(table.location),
        lambda: paimon.open_table(f"{table.location}$files"),
        lambda: TableWriter(table.context.with_table(pickle.loads(pickled)), "u"),
        lambda: paimon.open_table(table.location, {"branch": "main"}),
    ]
    with pytest.raises(paimon.TableReplaced):
        table.alter(SetOption("num-levels", "3"))
    for way in ways:
        with pytest.raises(Unsupported, match=f"type '{kind}'"):
            way()


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_handle_does_not_become_of_another_type(catalog: paimon.Catalog, kind: str) -> None:
    table = catalog.create_table("d.t", "id INT")
    with pytest.raises(Unsupported, match=f"type '{kind}'"):
        table.with_options({"type": kind})
    with pytest.raises(Unsupported, match=f"type '{kind}'"):
        paimon.open_table(table.location, {"type": kind})


def test_a_materialized_table_of_flink_is_read_and_written(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "id INT", options={"type": "table"})
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"type" : "table"', '"type" : "materialized-table"'))
    opened = catalog.table("d.t").alter(SetOption("num-levels", "3"))
    opened.write([{"id": 1}])
    assert opened.scan().to_arrow().to_pylist() == [{"id": 1}]


def test_descriptors_are_not_read_as_values(tmp_path: Path) -> None:
    table = paimon.open_table(golden_directory() / "data_evolution" / "table")
    assert isinstance(table, paimon.Table)
    with pytest.raises(InvalidRequest, match="'blob-descriptor-field' cannot change for one handle"):
        table.with_options({"blob-descriptor-field": "b"})
    options = table.definition.options.with_values({"blob-descriptor-field": "b"})
    described = evolve(table, context=table.context.with_table(evolve(table.definition, options=options)))
    with pytest.raises(Unsupported, match="column 'b' through BLOB descriptors"):
        described.scan().to_arrow()
    assert described.scan(columns=["id"]).count() == table.scan().count()


# Floating primary keys


@pytest.mark.parametrize("ddl", ["k DOUBLE, v INT", "k FLOAT NOT NULL, v INT", "a INT, k DOUBLE, v INT"])
def test_floating_primary_keys_are_refused(catalog: paimon.Catalog, ddl: str) -> None:
    keys = [name for name in ("a", "k") if f"{name} " in ddl.split("v ")[0]]
    with pytest.raises(InvalidRequest, match=r"'k' is of type (DOUBLE|FLOAT)\..*primary-key\.allow-floating"):
        catalog.create_table("d.t", ddl, primary_keys=keys, options={"bucket": 1})
    with pytest.raises(InvalidRequest, match="'k' is of type"):
        catalog.create_table("d.t", ddl, options={"bucket": 1, "primary-key": ",".join(keys)})
    assert catalog.tables("d") == []


def test_floating_primary_keys_are_allowed_by_an_option(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "primary-key.allow-floating": True}
    table = catalog.create_table("d.t", "a INT, k DOUBLE, v INT", primary_keys=["a", "k"], options=options)
    keys = [float("nan"), -0.0, 0.0, 1.5]
    for step in range(2):
        table.write([{"a": 1, "k": k, "v": 10 * step + n} for n, k in enumerate(keys)])
    table.compact(full=True)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [10, 11, 12, 13]


def test_existing_tables_with_floating_keys_are_accepted(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "primary-key.allow-floating": True}
    made = catalog.create_table("d.t", "k FLOAT, v INT", primary_keys=["k"], options=options)
    schema = Path(made.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"primary-key.allow-floating"', '"owner"'))
    table = catalog.table("d.t").alter(SetOption("num-levels", "3"), AddColumn("w", IntType()))
    table.write([{"k": 1.5, "v": 1, "w": 2}])
    assert table.scan().to_arrow().to_pylist() == [{"k": 1.5, "v": 1, "w": 2}]


def test_floating_columns_outside_of_primary_keys_are_not_refused(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("d.t", "p DOUBLE, v INT", partition_keys=["p"])
    table.write([{"p": 1.5, "v": 1}])
    assert table.scan(where="p = 1.5").count() == 1
