"""Schema changes equal those of Java 1.4.2 for 141 lists of changes; invariants hold for any list."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from support.case_lists import check_each

from paimon.domain.errors import AlreadyExists, InvalidRequest, NotFound, PaimonError, Unsupported
from paimon.domain.options.validate import check_options
from paimon.domain.schema import changes as ch
from paimon.domain.schema.changes import Position, SchemaChange, apply_changes
from paimon.domain.schema.table_schema import TableSchema, schema_from_json, schema_to_json
from paimon.domain.schema.validate import check_schema
from paimon.domain.types.casting import can_cast, can_cast_implicitly
from paimon.domain.types.data_types import NESTED_TYPES, DataType
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.field_ids import all_fields
from paimon.domain.types.type_text import parse_type, type_from_json
from paimon.testing.strategies import column_names, data_types, schemas

DATA = Path(__file__).parents[2] / "data" / "schema_rules"
BASES = {base: schema_from_json((DATA / f"schema-{base}").read_bytes(), base) for base in ("pk", "app")}
CASES = {c["name"]: c for c in map(json.loads, (DATA / "altered_by_java.jsonl").read_text("utf-8").splitlines())}
CASTS = json.loads((DATA / "casts_of_java.json").read_text("utf-8"))

STRICTER = {
    "add_mapkey", "add_in_int", "el_rename", "el_drop", "set_target-file-size=x", "default_type", "explicit_off",
}  # fmt: skip
"""Changes that Java accepts without any effect, or that break the table later."""
NEWLY_FIXED = {
    "set_dynamic-bucket.initial-buckets=3", "set_primary-key.nullable=true",
    "set_partition.default-name=x", "set_partition.legacy-name=false",
}  # fmt: skip
"""Options that 2.x no longer lets change once there are snapshots, and options that directories depend on."""
WIDER = {
    "set_bucket-key=k", "set_merge-engine=aggregation", "be_same", "rm_primary-key", "move_nested", "nullconv",
    "rename_seq_group",
}  # fmt: skip
"""Options set to what they are, moves inside rows, names in options that follow, and options that count at once."""
OTHER_RESULT = {"add_before_part", "clu"}
"""Here the option counts at once; there it follows the new name."""


def _type(value: Any) -> DataType:
    return type_from_json(_number_fields(value), "case")


def _number_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = [{"id": 0, **f, "type": _number_fields(f["type"])} for f in value.get("fields", [])]
    parts = {k: _number_fields(v) for k, v in value.items() if k in ("element", "key", "value")}
    return {**value, **parts, **({"fields": fields} if "fields" in value else {})}


def _change(c: dict[str, Any]) -> SchemaChange:
    path = tuple(c.get("path") or (c.get("name"),))
    given = [k for k in ("before", "after", "first", "last") if k in c]
    places = [Position(k, c[k] if isinstance(c[k], str) else None) for k in given]
    make: dict[str, Any] = {
        "addColumn": lambda: ch.AddColumn(path, _type(c["type"]), c.get("description"), *places),
        "renameColumn": lambda: ch.RenameColumn(path, c["to"]),
        "dropColumn": lambda: ch.DropColumn(path),
        "updateType": lambda: ch.SetColumnType(path, _type(c["type"]), c.get("keepNullability", False)),
        "updateNullability": lambda: ch.SetColumnNullability(path, c["nullable"]),
        "updateComment": lambda: ch.SetColumnComment(path, str(c["comment"] or "null")),
        "updateDefault": lambda: ch.SetColumnDefault(path, c["default"]),
        "move": lambda: ch.MoveColumn(path, *places),
        "setOption": lambda: ch.SetOption(c["key"], c["value"]),
        "removeOption": lambda: ch.RemoveOption(c["key"]),
        "tableComment": lambda: ch.SetComment(c["comment"]),
    }
    made: SchemaChange = make[c["change"]]()
    return made


NOT_FOLLOWED = {"set_path=/x"}
"""Options that only Java follows. Where Java has set them, changes treat them as Java does."""


@pytest.mark.parametrize("has_snapshots", [False, True])
def test_java_and_we_agree(has_snapshots: bool) -> None:
    check_each(CASES, partial(check_agreement, has_snapshots=has_snapshots))


def check_agreement(name: str, has_snapshots: bool) -> None:
    case = CASES[name]
    changes = [_change(c) for c in case["changes"]]
    given = {c.key: c.value for c in changes if isinstance(c, ch.SetOption)}
    if name in NOT_FOLLOWED:
        with pytest.raises(Unsupported, match="option"):
            check_options(given, allow_unknown=True)

    def apply_case() -> TableSchema:
        if name not in NOT_FOLLOWED:
            check_options(given, allow_unknown=True)
        return apply_changes(BASES[case["base"]], changes, has_snapshots)

    refused = not case["accepted"][has_snapshots] or name in STRICTER or (has_snapshots and name in NEWLY_FIXED)
    if name in WIDER:
        apply_case()
    elif refused:
        with pytest.raises((InvalidRequest, NotFound, AlreadyExists)):
            apply_case()
    elif name not in OTHER_RESULT:
        expected = json.dumps({**case["schema"], "version": 3, "id": 0, "timeMillis": 0}).encode()
        assert evolve(apply_case(), time_millis=0) == schema_from_json(expected, "schema-1")


@pytest.mark.parametrize("source", CASTS["allowed"])
def test_casts_are_those_of_java(source: str) -> None:
    for target in CASTS["allowed"]:
        allowed = can_cast(parse_type(source), parse_type(target))
        assert allowed == (target in CASTS["allowed"][source] or source == target), target


@pytest.mark.parametrize(("source", "target", "allowed"), CASTS["further"])
def test_casts_between_lengths_and_nested_types(source: str, target: str, allowed: bool) -> None:
    assert can_cast(parse_type(source), parse_type(target)) == allowed


@given(data_types(), data_types())
def test_implicit_casts_are_casts(source: DataType, target: DataType) -> None:
    assert can_cast(source, target) or not can_cast_implicitly(source, target)
    assert can_cast_implicitly(source, source.with_nullable(not source.nullable))


_names = column_names() | st.sampled_from(["element", "key", "value", "_KEY_x"])


@st.composite
def _changes(draw: st.DrawFn, schema: TableSchema) -> SchemaChange:
    """Changes near to this schema: many fit, many do not."""
    name = draw(st.sampled_from(schema.names) | _names)
    path = (name, *draw(st.lists(_names, max_size=1)))
    position = draw(st.sampled_from([Position.first(), Position.last(), Position.after(schema.names[0])]))
    key, value = draw(st.sampled_from([("bucket", "3"), ("bucket", "-1"), ("file.format", "orc"), ("x.y", "z")]))
    new_type = draw(data_types(max_depth=1))
    possible: list[SchemaChange] = [
        ch.AddColumn(path, new_type, "text", position),
        ch.RenameColumn(path, draw(_names)),
        ch.DropColumn(path),
        ch.SetColumnType(path, new_type),
        ch.SetColumnNullability(path, draw(st.booleans())),
        ch.SetColumnComment(path, "text"),
        ch.SetColumnDefault(path, draw(st.none() | st.just("1"))),
        ch.MoveColumn(path, position),
        ch.SetOption(key, value),
        ch.RemoveOption(key),
        ch.SetComment("text"),
    ]
    return draw(st.sampled_from(possible))


@given(schemas(max_depth=2), st.booleans(), st.data())
def test_any_list_of_changes_preserves_the_invariants(
    schema: TableSchema, has_snapshots: bool, data: st.DataObject
) -> None:
    """Valid schemas become valid ones or are refused. Ids are never reused, and the remaining columns do not change."""
    seen = {f.id: f.type for f in all_fields(schema.fields)}
    for _ in range(data.draw(st.integers(1, 6))):
        before = schema
        try:
            schema = apply_changes(schema, [data.draw(_changes(schema))], has_snapshots)
        except PaimonError:
            continue
        check_schema(schema)
        assert schema_from_json(schema_to_json(schema), "f") == schema
        ids = [f.id for f in all_fields(schema.fields)]
        assert len(set(ids)) == len(ids) and max(ids) <= schema.highest_field_id
        fresh = set(ids) - {f.id for f in all_fields(before.fields)}
        assert all(i > before.highest_field_id for i in fresh)
        assert _key_ids(schema) == _key_ids(before)
        for column in all_fields(schema.fields):
            if not isinstance(column.type, NESTED_TYPES) and column.id in seen:
                assert can_cast(seen[column.id], column.type)
        seen |= {f.id: f.type for f in all_fields(schema.fields)}


def _key_ids(schema: TableSchema) -> list[int]:
    return [schema.field_of(k).id for k in (*schema.primary_keys, *schema.partition_keys)]


def test_a_list_of_changes_is_all_or_nothing() -> None:
    schema = BASES["app"]
    with pytest.raises(NotFound, match="Did you mean"):
        apply_changes(schema, [ch.AddColumn("z", "INT"), ch.DropColumn("sek")], False)
    assert apply_changes(schema, [ch.SetComment(schema.comment)], True) is schema


def test_options_follow_a_new_name() -> None:
    options = {
        "bucket": "1", "bucket-key": "b,a", "sequence.field": "c", "fields.a,d.sequence-group": "a,b",
        "fields.a.stats-mode": "full", "file-index.bloom-filter.columns": "a,m[a]",
        "file-index.bloom-filter.a.fpp": "0.1", "partition.default-name": "a",
    }  # fmt: skip
    schema = TableSchema(0, parse_columns("a INT, b INT, c INT, d INT, m MAP<STRING, INT>"), 4, options=options)
    renamed = apply_changes(schema, [ch.RenameColumn("a", "z")], True)
    assert renamed.options == {
        "bucket": "1", "bucket-key": "b,z", "sequence.field": "c", "fields.z,d.sequence-group": "z,b",
        "fields.z.stats-mode": "full", "file-index.bloom-filter.columns": "z,m[a]",
        "file-index.bloom-filter.z.fpp": "0.1", "partition.default-name": "a",
    }  # fmt: skip


def test_dropping_the_primary_key() -> None:
    fields = parse_columns("p STRING NOT NULL, k INT NOT NULL, v INT")
    schema = TableSchema(0, fields, 2, ("p",), ("p", "k"), {"bucket": "2"})
    dropped = apply_changes(schema, [ch.DropPrimaryKey()], False)
    assert dropped.primary_keys == () and dropped.bucket_keys == ("k",)
    with pytest.raises(InvalidRequest, match="primary key"):
        apply_changes(schema, [ch.DropPrimaryKey()], True)


def test_a_change_of_an_older_schema_is_of_the_newest_version() -> None:
    old = evolve(BASES["app"], version=1, options={"file.format": "orc"})
    assert apply_changes(old, [ch.SetComment("x")], True).version == 3
