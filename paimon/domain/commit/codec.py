"""Commit messages as bytes, for the way from writers to the committer.

Law: `decode(encode(messages)) == messages`; the form is versioned JSON whose every value is checked against the type
it must have, so bytes from anywhere are safe to decode. Never a pickle. Source: `CommitMessageSerializer` (own
encoding).
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

_VERSION = 1
_FORMAT = "paimon-commit-messages"
_WHERE = "commit message"


def encode(messages: Sequence[CommitMessage]) -> bytes:
    """The messages as bytes."""
    body = {"format": _FORMAT, "version": _VERSION, "messages": [_plain(m) for m in messages]}
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> tuple[CommitMessage, ...]:
    """The messages that `encode` was given.

    Raises
    ------
    CorruptTable
        The bytes are no commit messages.
    Unsupported
        They are of a newer version.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptTable(_WHERE, f"is no JSON: {error}") from error
    if not isinstance(body, dict) or body.get("format") != _FORMAT or not isinstance(body.get("messages"), list):
        raise CorruptTable(_WHERE, "is no list of commit messages")
    if body.get("version") != _VERSION:
        raise Unsupported(f"commit messages of version {body.get('version')!r}", hint=f"known is {_VERSION}")
    return tuple(_typed(m, CommitMessage, "message") for m in body["messages"])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if attrs.has(type(value)):
        return [_plain(getattr(value, a.name)) for a in attrs.fields(type(value))]
    return int(value) if isinstance(value, IntEnum) else value


@cache
def _hints(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((a.name, hints[a.name]) for a in attrs.fields(kind))


def _typed(value: Any, kind: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        (inner,) = (a for a in typing.get_args(kind) if a is not type(None))
        return None if value is None else _typed(value, inner, where)
    if origin is tuple:
        element = typing.get_args(kind)[0]
        return tuple(_typed(v, element, where) for v in _listed(value, where))
    if attrs.has(kind):
        return _made(value, kind, where)
    if kind is bytes:
        return _bytes(value, where)
    wanted = int if issubclass(kind, IntEnum) else kind
    if type(value) is not wanted:
        raise CorruptTable(_WHERE, f"{where} holds {type(value).__name__} where {wanted.__name__} belongs")
    try:
        return kind(value)
    except ValueError as error:
        raise CorruptTable(_WHERE, f"{where} holds {value!r}") from error


def _made(value: Any, kind: type, where: str) -> Any:
    members = _hints(kind)
    values = _listed(value, where)
    if len(values) != len(members):
        raise CorruptTable(_WHERE, f"{where} has {len(values)} parts where {len(members)} belong")
    return kind(*(_typed(v, t, f"{where}.{n}") for v, (n, t) in zip(values, members, strict=True)))


def _listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise CorruptTable(_WHERE, f"{where} holds {type(value).__name__} where a list belongs")
    return value


def _bytes(value: Any, where: str) -> bytes:
    if not isinstance(value, str):
        raise CorruptTable(_WHERE, f"{where} holds {type(value).__name__} where bytes belong")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise CorruptTable(_WHERE, f"{where} holds no base64") from error
