"""Encode commit messages as bytes, to send them from writers to the committer.

The encoding is versioned JSON. Each value is checked against its type, so decoding bytes from any source is safe.

Invariant: `decode(encode(messages)) == messages`.
Source: `CommitMessageSerializer`; the encoding is our own.
"""

from __future__ import annotations

import base64
import json
import types
import typing
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import Any

import attrs

from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CorruptTable, Unsupported

_VERSION = 5
_FORMAT = "paimon-commit-messages"
_SOURCE = "commit message"


def encode(messages: Sequence[CommitMessage]) -> bytes:
    """Return the messages as bytes."""
    body = {"format": _FORMAT, "version": _VERSION, "messages": [_to_plain(m) for m in messages]}
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> tuple[CommitMessage, ...]:
    """Decode commit messages: CorruptTable if they are none, Unsupported for another version."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptTable(_SOURCE, f"is not JSON: {error}") from error
    if not isinstance(body, dict) or body.get("format") != _FORMAT or not isinstance(body.get("messages"), list):
        raise CorruptTable(_SOURCE, "is not a list of commit messages")
    if body.get("version") != _VERSION:
        raise Unsupported(
            f"commit messages of version {body.get('version')!r}",
            hint=f"use the same release for writers and committers; version {_VERSION} is supported",
        )
    return tuple(_decode_value(m, CommitMessage, "message") for m in body["messages"])


def _to_plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple):
        return [_to_plain(v) for v in value]
    if attrs.has(type(value)):
        return [_to_plain(getattr(value, a.name)) for a in attrs.fields(type(value))]
    return int(value) if isinstance(value, IntEnum) else value


@cache
def _type_hints(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((a.name, hints[a.name]) for a in attrs.fields(kind))


def _decode_value(value: Any, kind: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        (inner,) = (a for a in typing.get_args(kind) if a is not type(None))
        return None if value is None else _decode_value(value, inner, where)
    if origin is tuple:
        element = typing.get_args(kind)[0]
        return tuple(_decode_value(v, element, where) for v in _check_list(value, where))
    if attrs.has(kind):
        return _decode_object(value, kind, where)
    if kind is bytes:
        return _decode_bytes(value, where)
    wanted = int if issubclass(kind, IntEnum) else kind
    if type(value) is not wanted:
        raise CorruptTable(_SOURCE, f"{where} is {type(value).__name__} instead of {wanted.__name__}")
    try:
        return kind(value)
    except ValueError as error:
        raise CorruptTable(_SOURCE, f"{where} has the invalid value {value!r}") from error


def _decode_object(value: Any, kind: type, where: str) -> Any:
    members = _type_hints(kind)
    values = _check_list(value, where)
    if len(values) != len(members):
        raise CorruptTable(_SOURCE, f"{where} has {len(values)} parts instead of {len(members)}")
    return kind(*(_decode_value(v, t, f"{where}.{n}") for v, (n, t) in zip(values, members, strict=True)))


def _check_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise CorruptTable(_SOURCE, f"{where} is {type(value).__name__} instead of a list")
    return value


def _decode_bytes(value: Any, where: str) -> bytes:
    if not isinstance(value, str):
        raise CorruptTable(_SOURCE, f"{where} is {type(value).__name__} instead of bytes")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise CorruptTable(_SOURCE, f"{where} is not valid base64") from error
