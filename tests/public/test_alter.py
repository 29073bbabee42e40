"""Table.alter with SQL text, methods and values: each form leads to the same schema."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paimon
from paimon import Position
from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from paimon.domain.schema.parse_changes import parse_schema_changes
from paimon.domain.types.type_text import format_field
from paimon.table import Table

COLUMNS = "id INT NOT NULL, amount INT, note STRING, place ROW<city STRING, zip INT>"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options={"bucket": "2", "bucket-key": "id", "file.format": "orc"})
    table.write([{"id": 1, "amount": 5, "note": "a", "place": {"city": "Rome", "zip": 7}}])
    return table


Ways = tuple[str, Callable[[Table], Table], paimon.SchemaChange]
SAME: list[Ways] = [
    ("ADD COLUMN x INT", lambda t: t.add_column("x", "INT"), paimon.AddColumn("x", "INT")),
    (
        "add column x decimal(10, 2) comment 'it''s x' first",
        lambda t: t.add_column("x", "DECIMAL(10, 2)", comment="it's x", first=True),
        paimon.AddColumn("x", "DECIMAL(10, 2)", "it's x", Position.first()),
    ),
    (
        "ADD COLUMNS (`a.b` MAP<STRING, ARRAY<INT>> AFTER id)",
        lambda t: t.add_column("a.b", "MAP<STRING, ARRAY<INT>>", after="id"),
        paimon.AddColumn("a.b", "MAP<STRING, ARRAY<INT>>", None, Position.after("id")),
    ),
    (
        "ADD COLUMN place.street STRING BEFORE zip;",
        lambda t: t.add_column("place.street", "STRING", before="zip"),
        paimon.AddColumn(("place", "street"), "STRING", None, Position.before("zip")),
    ),
    (
        "RENAME COLUMN amount TO `an amount`",
        lambda t: t.rename_column("amount", "an amount"),
        paimon.RenameColumn("amount", "an amount"),
    ),
    ("ADD (x INT)", lambda t: t.add_column("x", "INT"), paimon.AddColumn("x", "INT")),
    (
        "ADD x INT AFTER id",
        lambda t: t.add_column("x", "INT", after="id"),
        paimon.AddColumn("x", "INT", None, Position.after("id")),
    ),
    ("RENAME amount TO total", lambda t: t.rename_column("amount", "total"), paimon.RenameColumn("amount", "total")),
    ("DROP (note)", lambda t: t.drop_column("note"), paimon.DropColumn("note")),
    ("DROP note", lambda t: t.drop_column("note"), paimon.DropColumn("note")),
    (
        "MODIFY amount DECIMAL(20, 2)",
        lambda t: t.alter_column_type("amount", "DECIMAL(20, 2)"),
        paimon.SetColumnType("amount", "DECIMAL(20, 2)"),
    ),
    (
        "MODIFY (note STRING COMMENT 'a note' FIRST)",
        lambda t: t.alter_column_comment("note", "a note").move_column("note", first=True),
        None,
    ),
    ("DROP COLUMN note", lambda t: t.drop_column("note"), paimon.DropColumn("note")),
    ("DROP COLUMN place.zip", lambda t: t.drop_column("place.zip"), paimon.DropColumn(("place", "zip"))),
    ("DROP COLUMN place.zip", lambda t: t.drop_column(("place", "zip")), paimon.DropColumn(("place", "zip"))),
    (
        "ALTER COLUMN amount TYPE BIGINT",
        lambda t: t.alter_column_type("amount", "BIGINT"),
        paimon.SetColumnType("amount", "BIGINT"),
    ),
    (
        "ALTER COLUMN id SET DATA TYPE BIGINT",
        lambda t: t.alter_column_type("id", "BIGINT"),
        paimon.SetColumnType("id", "BIGINT"),
    ),
    (
        "ALTER COLUMN id DROP NOT NULL",
        lambda t: t.alter_column_nullability("id", True),
        paimon.SetColumnNullability("id", True),
    ),
    (
        "ALTER COLUMN note COMMENT 'a note'",
        lambda t: t.alter_column_comment("note", "a note"),
        paimon.SetColumnComment("note", "a note"),
    ),
    (
        "ALTER COLUMN amount SET DEFAULT 7",
        lambda t: t.alter_column_default("amount", 7),
        paimon.SetColumnDefault("amount", "7"),
    ),
    (
        "ALTER COLUMN amount AFTER note",
        lambda t: t.move_column("amount", after="note"),
        paimon.MoveColumn("amount", Position.after("note")),
    ),
    (
        "ALTER COLUMN id LAST",
        lambda t: t.move_column("id"),
        paimon.MoveColumn("id", Position.last()),
    ),
    (
        "SET ('snapshot.num-retained.max' = '20')",
        lambda t: t.set_options({"snapshot.num-retained.max": 20}),
        paimon.SetOption("snapshot.num-retained.max", "20"),
    ),
    (
        "SET TBLPROPERTIES ('write-only' = TRUE)",
        lambda t: t.set_options({"write-only": True}),
        paimon.SetOption("write-only", "true"),
    ),
    ("RESET ('file.format')", lambda t: t.reset_options("file.format"), paimon.RemoveOption("file.format")),
    (
        "UNSET TBLPROPERTIES ('file.format')",
        lambda t: t.reset_options("file.format"),
        paimon.RemoveOption("file.format"),
    ),
    ("COMMENT 'about t'", lambda t: t.set_comment("about t"), paimon.SetComment("about t")),
]


@pytest.mark.parametrize(("text", "verb", "change"), SAME, ids=[text for text, *_ in SAME])
def test_text_verb_and_value_make_the_same_schema(tmp_path: Path, text: str, verb: Any, change: Any) -> None:
    made = []
    for name, asked in (("a", lambda t: t.alter(text)), ("b", verb), ("c", lambda t: t.alter(change or text))):
        catalog = paimon.connect(tmp_path / name)
        catalog.create_database("d")
        table = catalog.create_table("d.t", COLUMNS, options={"bucket": 2, "bucket-key": "id", "file.format": "orc"})
        changed = asked(table)
        assert isinstance(changed, Table)
        assert changed.table_schema == paimon.open_table(table.location).table_schema != table.table_schema
        schema = changed.table_schema
        made.append(
            ([*map(format_field, schema.fields)], [f.id for f in schema.fields], schema.options, schema.comment)
        )
    assert made[0] == made[1] == made[2]


def test_several_clauses_are_one_version(table: Table) -> None:
    changed = table.alter(
        "ADD COLUMNS a INT, b STRING COMMENT 'b'", "DROP COLUMNS (note, place)", paimon.SetComment("c")
    )
    assert (changed.table_schema.id, changed.schema.names) == (1, ["id", "amount", "a", "b"])
    with pytest.raises(NotFound, match="'nothing'"):
        changed.alter("ADD COLUMN c INT", "DROP COLUMN nothing")
    assert paimon.open_table(table.location).table_schema == changed.table_schema


def test_stored_rows_are_read_through_the_changes(table: Table) -> None:
    changed = table.rename_column("amount", "price").alter_column_type("price", "BIGINT").add_column("x", "DATE")
    changed = changed.drop_column("note").add_column("note", "INT").move_column("x", first=True)
    assert changed.scan().to_arrow().to_pylist() == [
        {"x": None, "id": 1, "price": 5, "place": {"city": "Rome", "zip": 7}, "note": None}
    ]
    changed = changed.alter_column_default("note", 9)
    changed.write([{"id": 2}])
    assert changed.scan(columns=["note"], where="id = 2").to_arrow().to_pylist() == [{"note": 9}]
    assert changed.alter_column_default("note", None).table_schema.field_of("note").default_value is None


def test_nullability_changes_only_if_named(table: Table) -> None:
    assert not table.alter_column_type("id", "BIGINT").schema.field("id").nullable
    table = table.set_options({"alter-column-null-to-not-null.disabled": False})
    assert not table.alter("ALTER COLUMN amount TYPE BIGINT NOT NULL").schema.field("amount").nullable
    assert not table.alter("ALTER COLUMN note SET NOT NULL").schema.field("note").nullable


def test_dynamic_options_stay_on_the_handle(table: Table) -> None:
    changed = table.with_options({"write-only": True}).add_column("x", "INT")
    assert changed.options["write-only"] == "true"
    assert "write-only" not in changed.table_schema.options


UNREADABLE = {
    "": "expected a clause",
    "ADD x": "a type is missing at its end",
    "MODIFY amount": "a type is missing at its end",
    "CHANGE amount": "expected a clause",
    "ALTER TABLE d.t ADD COLUMN x INT": "not part of the text",
    "ADD COLUMN x": "a type is missing at its end",
    "ADD COLUMN x INTT": "Did you mean",
    "ADD COLUMN x INT DEFAULT 5": "cannot have a DEFAULT",
    "ADD COLUMN x INT, DROP COLUMN note": "COLUMN",
    "ADD COLUMN x INT FIRST LAST": "expected the end",
    "RENAME COLUMN amount": "expected 'TO'",
    "RENAME TO u": "rename_table",
    "ALTER COLUMN amount BIGINT": "expected a change of the column",
    "ALTER COLUMN amount SET DEFAULT now()": "expected a value",
    "SET ('bucket' '4')": "expected '='",
    "SET (bucket = 4)": "single quotes",
    "RESET": "expected",
    "COMMENT about": "single quotes",
    "DROP COLUMN note; DROP COLUMN amount": "expected the end",
    "ADD COLUMN `x INT": "unexpected character",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_other_texts_are_refused_completely(table: Table, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        table.alter(text)
    assert UNREADABLE[text] in str(caught.value)
    assert paimon.open_table(table.location).table_schema == table.table_schema


def test_changes_that_cannot_be_are_refused(table: Table) -> None:
    for wrong, error in (
        (lambda: table.add_column("x", "INT NOT NULL"), InvalidRequest),
        (lambda: table.add_column("x", "INT", first=True, after="id"), InvalidRequest),
        (lambda: table.add_column("note", "INT"), AlreadyExists),
        (lambda: table.drop_column("nothing"), NotFound),
        (lambda: table.alter_column_type("place", "INT"), (InvalidRequest, Unsupported)),
        (lambda: table.set_options({"snapshot.num-retianed.max": 20}), InvalidRequest),
        (lambda: table.alter("SET ('snapshot.num-retianed.max' = '20')"), InvalidRequest),
        (lambda: table.set_options({"snapshot.num-retained.max": None}), InvalidRequest),
        (lambda: table.set_options({"bucket": -1}), InvalidRequest),
        (lambda: table.alter([paimon.DropColumn("note")]), InvalidRequest),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            wrong()
    assert paimon.open_table(table.location).table_schema == table.table_schema
    assert table.set_options({"of.another": 1}, allow_unknown_options=True).options["of.another"] == "1"


def test_keys_that_become_unique_within_a_partition_only_are_warned_of(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    with pytest.warns(paimon.PaimonWarning):
        table = catalog.create_table(
            "d.t", "id INT NOT NULL, day STRING", primary_keys=["id"], partition_keys=["day"], options={"bucket": 1}
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.set_options({"bucket": 2})  # set at table creation


def test_every_change_can_be_imported() -> None:
    for change in parse_schema_changes("ADD COLUMNS a INT, b INT"):
        assert type(change) is paimon.AddColumn
    kinds = {kind.__name__ for kind in paimon.SchemaChange.__args__}  # type: ignore[attr-defined]
    assert kinds <= set(paimon.__all__)


def test_options_of_a_handle_decide_its_changes_of_columns(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT, p STRING, n BIGINT", partition_keys=["p"])
    with pytest.raises(paimon.InvalidRequest, match="cannot become"):
        table.with_options({"disable-explicit-type-casting": "true"}).alter_column_type("n", "STRING")
    with pytest.raises(paimon.InvalidRequest, match="cannot become NOT NULL"):
        table.alter_column_nullability("n", False)
    free = table.with_options({"alter-column-null-to-not-null.disabled": "false"})
    assert not free.alter_column_nullability("n", False).table_schema.fields_by_name["n"].type.nullable
    before = table.with_options({"add-column-before-partition": "true"}).add_column("x", "INT")
    assert before.table_schema.names == ("id", "x", "p", "n")
    assert catalog.table("d.t").table_schema.options == table.table_schema.options  # dynamic options are not stored
    strict = table.alter("SET ('disable-explicit-type-casting' = 'true')")
    changed = strict.with_options({"disable-explicit-type-casting": "false"}).alter_column_type("id", "STRING")
    assert changed.table_schema.options["disable-explicit-type-casting"] == "true"


@pytest.mark.parametrize(
    ("wanted", "fits", "too_large"),
    [
        ("INT", 7, 1 << 40),
        ("FLOAT", math.nan, 0.1),
        ("VARCHAR(2)", "é", "long"),
        ("ROW<a INT>", {"a": 1}, {"a": 1 << 40}),
    ],
)
def test_a_handle_from_before_a_change_reads_values_that_its_type_holds(
    tmp_path: Path, wanted: str, fits: object, too_large: object
) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    older = catalog.create_table("d.t", f"id INT, x {wanted}")
    column, wider = (
        ("x.a" if "ROW" in wanted else "x"),
        {"FLOAT": "DOUBLE", "VARCHAR(2)": "STRING"}.get(wanted, "BIGINT"),
    )
    newer = catalog.table("d.t").alter(f"ALTER COLUMN {column} TYPE {wider}")
    newer.write([{"id": 1, "x": fits}, {"id": 2, "x": None}])
    assert str(older.scan().to_arrow()["x"].to_pylist()) == str([fits, None])
    newer.write([{"id": 3, "x": too_large}])
    with pytest.raises(InvalidRequest, match=r"Column 'x' has values that .* does not hold.* Open the table again"):
        older.scan().to_arrow()
    with pytest.raises(paimon.PaimonError):
        older.compact(full=True)
    assert {"id": 3, "x": too_large} in newer.scan().to_arrow().to_pylist()
