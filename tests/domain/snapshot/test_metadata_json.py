"""Schema, snapshot and tag files: the bytes of Java are reproduced, and damaged files are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.json_text import dump_json, load_object
from paimon.domain.schema.table_schema import schema_from_json, schema_to_json
from paimon.domain.snapshot.snapshot import (
    CommitKind,
    Snapshot,
    Tag,
    parse_hint,
    snapshot_from_json,
    snapshot_to_json,
    tag_from_json,
    tag_to_json,
)
from paimon.testing.strategies import schemas

DATA = Path(__file__).parents[2] / "data" / "metadata"
FILES = {path.name: path.read_bytes() for path in sorted(DATA.iterdir())}
SCHEMAS = [name for name in FILES if name.startswith("schema-")]
TAGS = [name for name in FILES if name.startswith("tag-")]
OLD = ("schema-version1", "snapshot-of-0.7")

_long = st.integers(-(2**63), 2**63 - 1)
_count = st.integers(0, 2**63 - 1)
_text = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _text | st.decimals(allow_nan=False, allow_infinity=False, places=3),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(_text, v, max_size=3),
    max_leaves=6,
)
_local_times = st.datetimes().map(lambda t: t.isoformat(timespec="seconds")) | st.just("2026-01-02T03:04:05.000000007")
_snapshots = st.builds(
    Snapshot,
    id=st.integers(1, 2**40),
    schema_id=st.integers(0, 99),
    base_manifest_list=_text,
    delta_manifest_list=_text,
    commit_user=_text,
    commit_identifier=_long,
    commit_kind=st.sampled_from(CommitKind),
    time_millis=_long,
    total_record_count=st.none() | _count,
    delta_record_count=st.none() | _long,
    changelog_record_count=st.none() | _count,
    base_manifest_list_size=st.none() | st.integers(0, 2**40),
    changelog_manifest_list=st.none() | _text,
    index_manifest=st.none() | _text,
    watermark=st.none() | _long,
    statistics=st.none() | _text,
    properties=st.dictionaries(_text, _text, max_size=2),
    next_row_id=st.none() | _count,
    uuid=st.none() | _text,
    operation=st.none() | _text,
    unknown=st.dictionaries(_text.map("x".__add__), _json, max_size=2),
)


def _read(name: str, data: bytes) -> object:
    if name in SCHEMAS:
        return schema_from_json(data, name)
    return tag_from_json("t", data, name) if name in TAGS else snapshot_from_json(data, name)


@pytest.mark.parametrize("name", [n for n in FILES if n not in OLD])
def test_files_of_java_are_written_back_byte_for_byte(name: str) -> None:
    value = _read(name, FILES[name])
    write: Callable[[Any], bytes] = (
        schema_to_json if name in SCHEMAS else tag_to_json if name in TAGS else snapshot_to_json
    )
    assert write(value) == FILES[name]


@given(schemas(max_depth=2), st.none() | _text, st.dictionaries(_text.map("x".__add__), _json, max_size=2))
def test_schemas_are_read_back(schema: Any, comment: str | None, unknown: dict[str, Any]) -> None:
    full = evolve(schema, comment=comment, unknown=unknown)
    assert schema_from_json(schema_to_json(full), "schema-0") == full


@given(st.dictionaries(_text.map("x".__add__), _json, max_size=3))
def test_unknown_members_of_fields_are_written_back(unknown: dict[str, Any]) -> None:
    document = json.loads(FILES["schema-nested"])
    document["fields"][4]["type"]["fields"][0] |= unknown
    data = dump_json(document)
    assert schema_to_json(schema_from_json(data, "schema-0")) == data


@given(_snapshots)
def test_snapshots_are_read_back(snapshot: Snapshot) -> None:
    assert snapshot_from_json(snapshot_to_json(snapshot), "snapshot-1") == snapshot


@given(
    _snapshots,
    st.none() | _local_times,
    st.none() | st.integers(0, 10**9).map(float),
)
def test_tags_are_read_back(snapshot: Snapshot, created: str | None, retained: float | None) -> None:
    tag = Tag("t", snapshot, created, retained)
    assert tag_from_json("t", tag_to_json(tag), "tag-t") == tag


@given(st.dictionaries(_text, _json, max_size=4))
def test_printed_json_means_the_same(value: dict[str, Any]) -> None:
    printed = dump_json(value)
    assert load_object(printed, "f").values == value
    assert json.loads(printed, parse_float=Decimal) == value


def test_control_characters_are_escaped_as_by_jackson() -> None:
    assert dump_json({"a": '\x1f\n\\u001f\x7fé"'}) == '{\n  "a" : "\\u001F\\n\\\\u001f\x7fé\\""\n}'.encode()


def test_versions_one_and_two_get_default_fields() -> None:
    schema = schema_from_json(FILES["schema-version1"], "schema-0")
    assert (schema.version, schema.options["file.format"], schema.options["bucket"]) == (1, "orc", "2")
    without = FILES["schema-version1"].replace(b'"bucket" : "2",', b"")
    assert schema_from_json(without, "schema-0").options["bucket"] == "1"


def test_old_snapshots_preserve_unknown_fields() -> None:
    snapshot = snapshot_from_json(FILES["snapshot-of-0.7"], "snapshot-1")
    assert snapshot.unknown == {"logOffsets": {}} and snapshot.watermark is None
    assert snapshot_from_json(snapshot_to_json(snapshot), "snapshot-1") == snapshot


@pytest.mark.parametrize("name", ["schema-flat", "snapshot-index", "tag-plain"])
def test_newer_versions_are_refused_by_name(name: str) -> None:
    data = FILES[name].replace(b'"version" : 3', b'"version" : 4')
    with pytest.raises(Unsupported, match=f"version 4 in {name}"):
        _read(name, data)


@given(st.sampled_from(sorted(FILES)), st.data())
def test_a_mutated_member_is_refused_or_harmless(name: str, data: st.DataObject) -> None:
    """Any member, at any depth, replaced by any value or left out: a value, or an error that names the file."""
    document = json.loads(FILES[name], parse_float=Decimal)
    spots = list(_spots(document))
    container, key = data.draw(st.sampled_from(spots))
    if data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(_json | st.sampled_from([-1, 2**31, 2**63, -(2**70), 10**400, "", [], {}, True]))
    _value_or_named_error(name, dump_json(document))


def _spots(value: Any) -> Any:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _spots(value[key])


@given(st.sampled_from(sorted(FILES)), st.data())
def test_mutated_bytes_are_refused_or_harmless(name: str, data: st.DataObject) -> None:
    content = bytearray(FILES[name])
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] = data.draw(st.integers(0, 255))
    _value_or_named_error(name, bytes(content))


def _value_or_named_error(name: str, content: bytes) -> None:
    try:
        _read(name, content)
    except CorruptTable as error:
        assert error.path == name
    except Unsupported as error:
        assert name in error.feature


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{", b"\xff\xfe{}", b'{"version": NaN}', b"[" * 100_000, b'{"id": ' + b"9" * 5000 + b"}",
     b'{"a": "\\ud800"}', b'{"a": 1e999999999999999999999}'],
)  # fmt: skip
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptTable, match=r"^schema-9"):
        schema_from_json(data, "schema-9")
    with pytest.raises(CorruptTable, match=r"^snapshot-9"):
        snapshot_from_json(data, "snapshot-9")


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"12", 12), (b" 7\n", 7), (b"-8", None), (b"0", None), (b"", None), (b"1x", None), (b"\xff", None),
     (b"9" * 40, None), ("٣".encode(), None)],
)  # fmt: skip
def test_hints(data: bytes, expected: int | None) -> None:
    assert parse_hint(data) == expected
