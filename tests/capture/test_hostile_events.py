"""Events of any shape: none makes the conversion of a batch fail, and each is counted once."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.capture.convert_events import convert_events, split_events
from paimon.capture.event_formats import JSON_FORMATS, EventFormat, Routes, TargetTable
from paimon.capture.json_index import index_objects
from paimon.capture.survey_events import survey_events
from paimon.domain.schema.declare import declare_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type

_TYPES = {
    "id": "INT NOT NULL", "at": "TIMESTAMP(3)", "tags": "ARRAY<INT>", "place": "ROW<zip STRING, n DECIMAL(4, 1)>",
    "sizes": "MAP<STRING, INT>", "raw": "BYTES", "note": "STRING",
}  # fmt: skip
_FIELDS = [DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(_TYPES.items())]
ROUTES = Routes((TargetTable("db.t", declare_schema(_FIELDS, ["id"], [], {}, None, 0)),))
_NAMES = [
    *_TYPES, "op", "before", "after", "source", "schema", "payload", "db", "table", "collection", "connector", "type",
    "data", "old", "database", "mysqlType", "isDdl", "fields", "field", "name", "parameters", "scale", "value", "$date",
    "$oid", "$binary", "base64", "_id", "zip", "n",
]  # fmt: skip
_WORDS = ["c", "u", "d", "INSERT", "UPDATE", "delete", "mongodb", "id", "after", "{}", '{"_id":1}', "²", "1" * 5000, ""]
words = st.sampled_from(_WORDS) | st.text(max_size=3)
leaves = st.none() | st.booleans() | st.integers(-3, 10**40) | st.floats(allow_nan=False) | words
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=5),
    max_leaves=25,
)
envelopes = st.dictionaries(st.sampled_from(_NAMES), values, min_size=2, max_size=8)


@pytest.mark.parametrize("format_name", JSON_FORMATS)
@settings(max_examples=40)
@given(data=st.data())
def test_no_event_makes_a_batch_fail(format_name: str, data: st.DataObject) -> None:
    events = [json.dumps(e).encode("utf-8", "replace") for e in data.draw(st.lists(envelopes, max_size=6))]
    keys = data.draw(st.lists(st.none() | envelopes.map(json.dumps), min_size=len(events), max_size=len(events)))
    table = pa.table({"key": pa.array(keys, pa.string()), "value": pa.array(events, pa.binary())})
    event_format = EventFormat(format_name, metadata={"note": "source.db"})
    made = convert_events(table, event_format, ROUTES, 0)
    survey_events(table, event_format)
    assert made.counts.events == len(events)
    assert made.counts.rejected + made.counts.ignored <= len(events)


@pytest.mark.parametrize(
    "text",
    [
        b'{"op":"c","after":{"id":1,"note":"\xff"}}',
        b'{"op":"c","after":{"id":1,"note":"\\ud800"}}',
        b'{"op":"c","after":{"id":1}}\x00',
        b'{"op":"c","after":{"id":1}',
        b'},{"op":"c","after":{"id":1}}',
        b'{"op":"c","after":{"id":1}}{"op":"c","after":{"id":9}}',
        b'{"op":"c","after":{"id":NaN}}',
        b"{" * 100_000 + b"}" * 100_000,
        b'{"schema":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b',"payload":{"op":"q"}}',
        b"[" * 100_000,
        b"\xef\xbb\xbf{}",
    ],
    ids=range(11),
)
def test_a_damaged_event_is_rejected_alone(text: bytes) -> None:
    good = b'{"op":"c","after":{"id":7,"note":"a\\"}{\\\\"},"source":{}}'
    events = pa.table({"value": pa.array([good, text, text, good], pa.binary())})
    made = convert_events(events, EventFormat("debezium-json"), ROUTES, 0)
    assert made.rejected["position"].to_pylist() == [1, 2]
    assert made.rows[0]["id"].to_pylist() == [7, 7] and made.rows[0]["note"].to_pylist() == ['a"}{\\'] * 2


def test_white_space_and_repeated_names_are_read_as_json_says() -> None:
    text = '\n{ "a" :\t{ "b" : [ 1 , { "c" : " x " } ] } , "a" : { "b" : [ ] , "d":null } }\r\n'
    index, good = index_objects(pa.array([text.strip(), text.strip()]))
    assert good.all()
    last = index.members(index.members(index.roots).find("a"))
    assert index.texts(last.find("b")).to_pylist() == ["[ ]", "[ ]"]
    assert [len(part) for part in index.elements(last.find("b"))] == [0, 0]


def test_large_batches_are_divided() -> None:
    text: Any = json.dumps({"op": "c", "after": {"id": 1, "note": "x" * 10_000}})
    events = pa.table({"value": [text] * 3000})
    parts = list(split_events(events))
    assert len(parts) > 2 and sum(part.num_rows for part in parts) == 3000
    assert max(part.nbytes for part in parts) < 9_000_000
