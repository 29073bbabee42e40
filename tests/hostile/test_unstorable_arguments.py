"""Arguments that cannot be stored or are meaningless: each gives a typed error, and no file of the table is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products

import paimon
from paimon import col
from paimon.domain.errors import InvalidRequest, PaimonError, StorageError
from paimon.domain.schema.changes import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SetColumnComment,
    SetColumnDefault,
    SetComment,
    SetOption,
)
from paimon.domain.types.data_types import DataField, IntType

ROW = {"k": 2, "v": "x", "p": "a"}
Call = Callable[[paimon.Catalog, paimon.Table, Any], Any]

PATHS: dict[str, Call] = {
    "connect": lambda c, t, x: paimon.connect(f"{c.warehouse}/{x}").databases(),
    "create in": lambda c, t, x: paimon.connect(f"{c.warehouse}/{x}").create_database("d"),
    "open_table": lambda c, t, x: paimon.open_table(f"{c.warehouse}/{x}"),
    "allowed_roots": lambda c, t, x: paimon.open_table(t.location, allowed_roots=[f"/{x}"]),
    "location of data": lambda c, t, x: t.engine.files.read(f"{t.location}/{x}"),
    "replace": lambda c, t, x: t.engine.files.replace(f"{t.location}/{x}", b""),
    "put": lambda c, t, x: t.engine.files.put_if_absent(f"{t.location}/{x}", b""),
    "status": lambda c, t, x: t.engine.files.status(f"{t.location}/{x}"),
    "list": lambda c, t, x: t.engine.files.list(f"{t.location}/{x}"),
    "delete": lambda c, t, x: t.engine.files.delete([f"{t.location}/{x}"]),
}
NAMES: dict[str, Call] = {
    "create_database": lambda c, t, x: c.create_database(x),
    "tables": lambda c, t, x: c.tables(x),
    "table": lambda c, t, x: c.table(f"d.{x}"),
    "create_table": lambda c, t, x: c.create_table(f"d.{x}", "k INT"),
    "rename_table": lambda c, t, x: c.rename_table("d.t", f"d.{x}"),
    "tag": lambda c, t, x: t.tags.create(x),
    "scan tag": lambda c, t, x: t.scan(tag=x).to_arrow(),
    "branch": lambda c, t, x: t.branches.create(x),
    "open branch": lambda c, t, x: paimon.open_table(t.location, {"branch": x}),
    "consumer": lambda c, t, x: t.consumers.reset(x, 1),
    "follow": lambda c, t, x: t.follow(consumer_id=x, until=1).close(),
    "system table": lambda c, t, x: t.system_table(x),
}
TEXTS: dict[str, Call] = {
    "commit user": lambda c, t, x: t.write([ROW], commit_user=x),
    "stream user": lambda c, t, x: t.new_stream_write_builder(x).new_commit().commit(1, []),
    "user prefix": lambda c, t, x: t.with_options({"commit.user-prefix": x}).write([ROW]),
    "property": lambda c, t, x: t.write([ROW], properties={x: "v"}),
    "property value": lambda c, t, x: t.write([ROW], properties={"k": x}),
    "property of a delete": lambda c, t, x: t.delete("k = 1", properties={"k": x}),
    "property of an overwrite": lambda c, t, x: t.overwrite([ROW], properties={"k": x}),
    "column": lambda c, t, x: c.create_table("d.n", [DataField(0, x, IntType())]),
    "field": lambda c, t, x: t.alter(AddColumn(x, IntType())),
    "renamed": lambda c, t, x: t.alter(RenameColumn("v", x)),
    "comment": lambda c, t, x: c.create_table("d.n", "k INT", comment=x),
    "set comment": lambda c, t, x: t.alter(SetComment(x)),
    "description": lambda c, t, x: t.alter(SetColumnComment("v", x)),
    "default": lambda c, t, x: t.alter(SetColumnDefault("v", x)),
    "option": lambda c, t, x: c.create_table("d.n", "k INT", options={"owner": x}),
    "unknown option": lambda c, t, x: c.create_table("d.n", "k INT", options={x: "v"}, allow_unknown_options=True),
    "set option": lambda c, t, x: t.alter(SetOption("owner", x)),
    "default partition": lambda c, t, x: t.with_options({"partition.default-name": x}),
    "value": lambda c, t, x: t.write([{**ROW, "v": x}]),
    "column of values": lambda c, t, x: t.write({**{k: [v] for k, v in ROW.items()}, "v": [x]}),
    "row kind": lambda c, t, x: t.write([{**ROW, "op": x}], kind_column="op"),
    "name of a value": lambda c, t, x: t.write([{**ROW, x: 1}]),
    "merged column": lambda c, t, x: t.write([{**ROW, x: 1}], merge_schema=True),
    "partition": lambda c, t, x: t.write([{**ROW, "p": x}]),
    "partition spec": lambda c, t, x: t.overwrite([ROW], partition={"p": x}),
    "partition column": lambda c, t, x: t.overwrite([ROW], partition={x: "a"}),
    "dropped partition": lambda c, t, x: t.drop_partitions({"p": x}),
    "where": lambda c, t, x: t.scan(where=col("v") == x).to_arrow(),
    "where partition": lambda c, t, x: t.scan(where=col("p") == x).to_arrow(),
    "where in": lambda c, t, x: t.scan(where=col("v").isin([x])).to_arrow(),
    "where like": lambda c, t, x: t.scan(where=col("v").like(f"{x}%")).to_arrow(),
    "where text": lambda c, t, x: t.scan(where=f"v = '{x}'").to_arrow(),
    "where system": lambda c, t, x: t.system_table("files").scan(where=f"file_path = '{x}'").to_arrow(),
    "delete": lambda c, t, x: t.delete(f"v = '{x}'"),
    "update": lambda c, t, x: t.update({"v": f"'{x}'"}, "k = 1"),
    "compact": lambda c, t, x: t.compact(where=f"p = '{x}'"),
    "unknown column": lambda c, t, x: t.scan(columns=[x]).to_arrow(),
}
SENSELESS: dict[str, Call] = {
    "connect": lambda c, t, x: paimon.connect(x),
    "open_table": lambda c, t, x: paimon.open_table(x),
    "options": lambda c, t, x: paimon.open_table(t.location, x),
    "with_options": lambda c, t, x: t.with_options(x),
    "create_table": lambda c, t, x: c.create_table(x, "k INT"),
    "schema": lambda c, t, x: c.create_table("d.n", x),
    "primary_keys": lambda c, t, x: c.create_table("d.n", "k INT", primary_keys=x, options={"bucket": 1}),
    "comment": lambda c, t, x: c.create_table("d.n", "k INT", comment=x),
    "set comment": lambda c, t, x: t.alter(SetComment(x)),
    "description": lambda c, t, x: t.alter(SetColumnComment("v", x)),
    "default": lambda c, t, x: t.alter(SetColumnDefault("v", x)),
    "set option": lambda c, t, x: t.alter(SetOption("owner", x)),
    "option name": lambda c, t, x: t.alter(SetOption(x, "v")),
    "field": lambda c, t, x: t.alter(AddColumn(x, IntType())),
    "type": lambda c, t, x: t.alter(AddColumn("n", x)),
    "dropped": lambda c, t, x: t.alter(DropColumn(x)),
    "tag": lambda c, t, x: t.tags.create(x),
    "branch": lambda c, t, x: t.branches.create(x),
    "branch gone": lambda c, t, x: t.branches.delete(x),
    "consumer": lambda c, t, x: t.consumers.reset(x, 1),
    "system table": lambda c, t, x: t.system_table(x),
    "columns": lambda c, t, x: t.scan(columns=x).to_arrow(),
    "col": lambda c, t, x: t.scan(where=col(x) == 1).to_arrow(),
    "isin": lambda c, t, x: t.scan(where=col("k").isin(x)).to_arrow(),
    "where": lambda c, t, x: t.scan(where=x).to_arrow() if x is not None else t.delete(x),
    "commit user": lambda c, t, x: t.write([ROW], commit_user=x) if x else t.delete(x),
    "identifier": lambda c, t, x: t.write([ROW], identifier=x),
    "stream identifier": lambda c, t, x: t.new_stream_write_builder("u").new_commit().commit(x, []),
    "filter": lambda c, t, x: t.new_stream_write_builder("u").new_commit().filter_committed([x]),
    "property": lambda c, t, x: t.write([ROW], properties={"k": x}),
    "properties": lambda c, t, x: t.write([ROW], properties=x),
    "kind column": lambda c, t, x: t.write([ROW], kind_column=x),
    "partition": lambda c, t, x: t.drop_partitions(x),
    "update": lambda c, t, x: t.update(x, "k = 1"),
}


UNSTORABLE = ("a\0b", "\ud800", "a\udfffb")


def name_value(value: object) -> str:
    return value if isinstance(value, str) else type(value).__name__


@pytest.fixture
def table(catalog: paimon.Catalog) -> paimon.Table:
    made = catalog.create_table("d.t", "k INT, v STRING, p STRING", partition_keys=["p"])
    made.write([{"k": 1, "v": "x", "p": "a"}])
    return made


def check_tables_can_be_read(catalog: paimon.Catalog) -> None:
    """Every table of the catalog can be opened and read, with all its snapshots."""
    for name in catalog.tables("d"):
        table = catalog.table(f"d.{name}")
        table.scan().to_arrow()
        table.snapshots()


@pytest.mark.parametrize(("way", "text"), mark_products(PATHS, UNSTORABLE), ids=ascii)
def test_paths_that_no_file_system_has(catalog: paimon.Catalog, table: paimon.Table, way: str, text: str) -> None:
    with pytest.raises((InvalidRequest, StorageError)) as caught:
        PATHS[way](catalog, table, text)
    str(caught.value).encode()
    check_tables_can_be_read(catalog)


@pytest.mark.parametrize(("way", "text"), mark_products(NAMES, UNSTORABLE), ids=ascii)
def test_names_that_are_no_names(catalog: paimon.Catalog, table: paimon.Table, way: str, text: str) -> None:
    with pytest.raises(InvalidRequest if way != "system table" else PaimonError):
        NAMES[way](catalog, table, text)
    check_tables_can_be_read(catalog)


@pytest.mark.parametrize("way", TEXTS)
def test_text_that_is_not_unicode(catalog: paimon.Catalog, table: paimon.Table, way: str) -> None:
    before = table.snapshots()
    with pytest.raises(InvalidRequest) as caught:
        TEXTS[way](catalog, table, "a\udfffb")
    str(caught.value).encode()
    assert catalog.table("d.t").snapshots() == before
    check_tables_can_be_read(catalog)


@pytest.mark.parametrize(("way", "value"), mark_products(SENSELESS, [5, b"x", [1], {"a": 1}, object()]), ids=name_value)
def test_values_of_another_kind(catalog: paimon.Catalog, table: paimon.Table, way: str, value: Any) -> None:
    try:
        SENSELESS[way](catalog, table, value)
    except PaimonError as error:
        assert isinstance(error, InvalidRequest) or way in ("branch gone", "dropped", "open_table")
    check_tables_can_be_read(catalog)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 1.5, True, "7"], ids=repr)
@pytest.mark.parametrize(("argument", "name"), [("identifier", "Commit identifier"), ("watermark", "Watermark")])
def test_numbers_that_no_snapshot_can_hold(
    catalog: paimon.Catalog, table: paimon.Table, argument: str, name: str, value: Any
) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} must be an integer"):
        table.write([ROW], commit_user="job", **{argument: value})
    assert len(table.snapshots()) == 1
    check_tables_can_be_read(catalog)


def test_a_limit_beyond_all_rows_is_no_limit(table: paimon.Table) -> None:
    assert table.scan(limit=2**70).to_arrow().num_rows == 1


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    way=st.sampled_from([*PATHS.items(), *NAMES.items(), *TEXTS.items()]),
    text=st.text(st.characters(codec=None, categories=None), max_size=4),
)
def test_any_text_is_accepted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, way: tuple[str, Call], text: str
) -> None:
    catalog = paimon.connect(tmp_path_factory.mktemp("t"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v STRING, p STRING", partition_keys=["p"])
    table.write([{"k": 1, "v": "x", "p": "a"}])
    try:
        way[1](catalog, table, text)
    except PaimonError as error:
        str(error).encode()
    check_tables_can_be_read(catalog)


# The column of row kinds


@pytest.mark.parametrize("name", ["nope", "", " "])
def test_a_column_of_row_kinds_must_exist(catalog: paimon.Catalog, name: str) -> None:
    options: dict[str, object] = {"bucket": 1}
    with pytest.raises(InvalidRequest, match=r"rowkind\.field"):
        wrong = {**options, "rowkind.field": name}
        catalog.create_table("d.n", "k INT, op STRING", primary_keys=["k"], options=wrong)
    table = catalog.create_table("d.n", "k INT, op STRING", primary_keys=["k"], options=options)
    with pytest.raises(InvalidRequest, match=r"rowkind\.field"):
        table.alter(SetOption("rowkind.field", name))
    with pytest.raises(InvalidRequest, match=r"rowkind\.field"):
        table.with_options({"rowkind.field": name})
    with pytest.raises(InvalidRequest, match=r"rowkind\.field"):
        paimon.open_table(table.location, {"rowkind.field": name})


@pytest.mark.parametrize("option", ["sequence.field", "record-level.time-field", "bucket-key"])
def test_dynamic_options_name_columns_that_exist(catalog: paimon.Catalog, option: str) -> None:
    table = catalog.create_table("d.n", "k INT, v INT", primary_keys=["k"], options={"bucket": 1})
    with pytest.raises(InvalidRequest, match=f"{option}.*nope"):
        table.with_options({option: "nope"})


def test_a_missing_column_of_row_kinds_is_named(catalog: paimon.Catalog) -> None:
    options = {"bucket": 1, "rowkind.field": "op"}
    table = catalog.create_table("d.n", "k INT, op STRING", primary_keys=["k"], options=options)
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"rowkind.field" : "op"', '"rowkind.field" : "gone"'))
    with pytest.raises(InvalidRequest, match=r"rowkind\.field.*gone"):
        catalog.table("d.n").write([{"k": 1, "op": "+I"}])
