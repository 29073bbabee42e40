"""Which table declarations are valid, compared with the decisions of Java 1.4.2 about 350 declarations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.case_lists import check_each

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.merge.aggregate.check import check_function_names
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options
from paimon.domain.schema.declare import declare_schema
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.schema.validate import check_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import type_from_json
from paimon.testing.strategies import schemas

DECISIONS = Path(__file__).parents[2] / "data" / "schema_rules" / "created_by_java.jsonl"
CASES = {case["name"]: case for case in map(json.loads, DECISIONS.read_text("utf-8").splitlines())}

STRICTER = {
    "no_fields", "pk_variant", "part_variant", "bkey_variant", "rowkind_int", "ff_csv", "ff_level_bogus", "mem_bad",
    "bool_bad", "dur_bad", "default_bad", "fi_missing", "fi_bogus", "fi_nested", "bf_mod_str",
    "bf_mod_two", "bf_bogus", "bf_hive_ts", "ccols_missing", "cincr",
    "type_fmt", "mf_bogus", "ff_changelog_bogus", "avro_level",
    "stats_bogus", "stats_trunc0", "fstats_bogus", "fdefault_bad", "fdefault_pk",
    "rle_notime", "pk_float", "pk_double", "blobf", "ext_fs",
}  # fmt: skip
"""What Java makes, though writing to it fails; defaults on reads, of which 1.4.2 no longer knows; floating primary
keys, which it merges wrongly (see `docs/decisions/floating-keys.md`); and `blob-field` of a text column."""
WIDER = {"bkey_spaces", "bucket_blank", "fn_nested-update", "de_dv", "vector"}
"""Blanks and names of functions that are stored as Java knows them, and tables of newer versions."""

NOT_FOLLOWED = {"sn_order"}
"""Options that only Java follows: see the effects of options."""


def _parse_field(value: dict[str, Any]) -> DataField:
    return DataField(
        0, value["name"], type_from_json(_number_fields(value["type"]), "x"), None, value.get("defaultValue")
    )


def _number_fields(value: Any) -> Any:
    """The type with ids for nested fields, which declarations do not have."""
    if not isinstance(value, dict):
        return value
    fields = [{"id": 0, **f, "type": _number_fields(f["type"])} for f in value.get("fields", [])]
    parts = {k: _number_fields(v) for k, v in value.items() if k in ("element", "key", "value")}
    return {**value, **parts, **({"fields": fields} if "fields" in value else {})}


def _declare_schema(case: dict[str, Any]) -> TableSchema:
    options = case.get("options", {})
    check_options(options, allow_unknown=True)
    fields = [_parse_field(f) for f in case["fields"]]
    schema = declare_schema(fields, case.get("primaryKeys", ()), case.get("partitionKeys", ()), options, None, 0)
    check_function_names(schema, TableOptions.of(schema.options))
    return schema


def test_java_and_we_agree() -> None:
    check_each(CASES, check_agreement)


def check_agreement(name: str) -> None:
    case = CASES[name]
    if name in NOT_FOLLOWED:
        with pytest.raises(Unsupported, match="option"):
            _declare_schema(case)
        return
    accepted = (case["accepted"] and name not in STRICTER) or name in WIDER
    if accepted:
        _declare_schema(case)
        return
    with pytest.raises((InvalidRequest, Unsupported)) as caught:
        _declare_schema(case)
    assert "\n" not in str(caught.value)


@given(schemas())
def test_drawn_schemas_are_accepted(schema: TableSchema) -> None:
    check_schema(schema)


def test_a_declaration_is_normalised() -> None:
    schema = declare_schema(
        parse_columns("a INT, r ROW<x INT, y ARRAY<ROW<z INT>>>, b STRING, c INT"), (), (),
        {"primary-key": "b, a", "partition": "b", "bucket": " 2 ", "bucket-key": " a ", "target-file-size": "1 mb",
         "fields.c.aggregate-function": "nested-update"},
        "text", 7,
    )  # fmt: skip
    assert (schema.primary_keys, schema.partition_keys) == (("b", "a"), ("b",))
    assert schema.trimmed_primary_keys == schema.bucket_keys == ("a",)
    assert [f.type.nullable for f in schema.fields] == [False, True, False, True]
    assert [f.id for f in schema.fields] == [0, 1, 5, 6] and schema.highest_field_id == 6
    assert schema.options == {
        "bucket": "2", "bucket-key": "a", "target-file-size": "1 mb", "fields.c.aggregate-function": "nested_update",
    }  # fmt: skip
    assert (schema.comment, schema.time_millis, schema.version, schema.id) == ("text", 7, 3, 0)


def test_an_option_makes_keys_nullable() -> None:
    schema = declare_schema(
        parse_columns("a INT NOT NULL"), ("a",), (), {"bucket": "1", "primary-key.nullable": "true"}, None, 0
    )
    assert schema.fields[0].type.nullable


@pytest.mark.parametrize(
    ("columns", "keys", "options", "subject", "word"),
    [
        ("a INT, A INT", ("b",), {}, "b", "Did you mean|Known are"),
        ("a INT", ("a", "a"), {"bucket": "1"}, "a", "twice"),
        ("_KEY_a INT", (), {}, "_KEY_a", "reserved"),
        ("a INT, b INT", (), {"bucket": "2"}, "bucket", "bucket-key"),
        ("a INT, b INT", (), {"bucket": "2", "bucket-key": "aa"}, "bucket-key", "Did you mean 'a'"),
        ("a INT, v INT", ("a",), {"bucket": "1", "sequence.field": "w"}, "sequence.field", "'w'"),
        ("aB INT, c INT", (), {"bucket": "2", "bucket-key": "AB"}, "bucket-key", "Did you mean 'aB'"),
        ("a INT DEFAULT 'x'", (), {}, "a", "Default 'x'"),
    ],
)
def test_refusals_name_their_subject(
    columns: str, keys: tuple[str, ...], options: dict[str, str], subject: str, word: str
) -> None:
    with pytest.raises(InvalidRequest, match=word) as caught:
        declare_schema(parse_columns(columns), keys, (), options, None, 0)
    assert caught.value.subject == subject


def test_a_key_may_lack_a_partition_column() -> None:
    columns = parse_columns("a INT, p INT")
    assert declare_schema(columns, ("a",), ("p",), {}, None, 0).primary_keys == ("a",)
    assert declare_schema(columns, ("a", "p"), ("p",), {}, None, 0).primary_keys == ("a", "p")
