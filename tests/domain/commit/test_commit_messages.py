"""Commit messages are encoded and decoded unchanged; any other bytes give a message or a typed error."""

from __future__ import annotations

import json
import types
import typing
from enum import IntEnum
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.message_codec import decode, encode
from paimon.domain.errors import CorruptTable, PaimonError, Unsupported
from paimon.domain.manifest.entries import DataFileMeta


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotated type: what the codec must carry."""
    if typing.get_origin(kind) is types.UnionType:
        return st.none() | values_of(next(a for a in typing.get_args(kind) if a is not type(None)))
    if typing.get_origin(kind) is tuple:
        return st.lists(values_of(typing.get_args(kind)[0]), max_size=2).map(tuple)
    if attrs.has(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{a.name: values_of(hints[a.name]) for a in attrs.fields(kind)})
    if issubclass(kind, IntEnum):
        return st.sampled_from(kind)
    return {bool: st.booleans(), int: st.integers(), str: st.text(max_size=5), bytes: st.binary(max_size=5)}[kind]


messages = st.lists(values_of(CommitMessage), max_size=2)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda s: st.lists(s, max_size=3), max_leaves=6
)


@settings(max_examples=50)
@given(messages)
def test_what_is_encoded_is_decoded(given_messages: list[CommitMessage]) -> None:
    assert decode(encode(given_messages)) == tuple(given_messages)


@settings(max_examples=100)
@given(values_of(DataFileMeta), st.data())
def test_a_changed_value_is_a_message_or_corrupt(file: DataFileMeta, data: st.DataObject) -> None:
    sent = CommitMessage(b"", 0, 1, "/t/bucket-0", attrs.evolve(CommitMessage(b"", 0, 1, "").data, new_files=(file,)))
    body = json.loads(encode([sent]))
    node, position = body["messages"], 0
    while isinstance(node[position], list) and node[position] and data.draw(st.booleans()):
        node = node[position]
        position = data.draw(st.integers(0, len(node) - 1))
    node[position] = data.draw(json_values)
    try:
        (back,) = decode(json.dumps(body).encode())
    except CorruptTable as error:
        assert error.path == "commit message"
    else:
        assert decode(encode([back])) == (back,)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b"null", b'{"format":"paimon-commit-messages","version":1}', b"[" * 100_000],
)
def test_invalid_messages_are_refused(data: bytes) -> None:
    with pytest.raises(PaimonError):
        decode(data)


def test_a_newer_version_is_unsupported() -> None:
    body = json.loads(encode([]))
    with pytest.raises(Unsupported):
        decode(json.dumps({**body, "version": body["version"] + 1}).encode())
