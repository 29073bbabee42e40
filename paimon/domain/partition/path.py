"""The directory of a partition.

Law: a path is made from values and never read back: data is found by manifests alone. Null, empty and blank values
share the default directory; what a file system could misread is escaped as ``%XX``.
Source: `PartitionPathUtils`, `InternalRowPartitionComputer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.partition.text import legacy_text, plain_text
from paimon.domain.types.data_types import DataField
from paimon.domain.whitespace import is_blank

_ESCAPED = frozenset('"#%\'*/:=?\\\x7f{}[]^') | {chr(code) for code in range(0x20)}


def partition_path(
    values: Sequence[Any], fields: Sequence[DataField], default_name: str, legacy_name: bool = True
) -> str:
    """The path below the table, such as ``"day=19000/region=eu"``; empty for a table without partitions.

    Parameters
    ----------
    values : sequence
        Internal values, parallel to `fields`.
    default_name : str
        `partition.default-name`, for null and blank values.
    legacy_name : bool
        `partition.legacy-name`: dates as day numbers, times as milliseconds, timestamps with a ``T``.
    """
    parts = []
    for value, column in zip(values, fields, strict=True):
        render = legacy_text if legacy_name else plain_text
        text = default_name if value is None else render(value, column.type)
        parts.append(f"{escape(column.name)}={escape(default_name if is_blank(text) else text)}")
    return "/".join(parts)


def escape(text: str) -> str:
    """The text with what is special in paths as ``%XX``."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def unescape(text: str) -> str:
    """The inverse of `escape`; a ``%`` that is followed by no number stays."""
    first, *rest = text.split("%")
    return first + "".join(_unescaped(part) for part in rest)


def _unescaped(part: str) -> str:
    digits = part[:2]
    if len(digits) == 2 and all(c in "0123456789abcdefABCDEF" for c in digits):
        return chr(int(digits, 16)) + part[2:]
    return "%" + part
