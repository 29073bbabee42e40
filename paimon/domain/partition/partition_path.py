"""The directory of a partition.

Invariant: a path is built from values and never parsed: data is found through manifests only. Null, empty and blank
values share the default directory. Characters that a file system could misread are escaped as ``%XX``.
Source: `PartitionPathUtils`, `InternalRowPartitionComputer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paimon.domain.partition.partition_text import format_legacy_text, format_plain_text
from paimon.domain.types.data_types import DataField
from paimon.domain.whitespace import is_blank

_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^") | {chr(code) for code in range(0x20)}


def format_partition_path(
    values: Sequence[Any], fields: Sequence[DataField], default_name: str, legacy_name: bool = True
) -> str:
    """Build the path of a partition below the table, such as ``"day=19000/region=eu"``; empty without partitions.

    `values` are internal values, parallel to `fields`. `default_name` represents null and blank values. With
    `legacy_name`, dates are day numbers, times are milliseconds, and timestamps have a ``T``.
    """
    parts = []
    for value, column in zip(values, fields, strict=True):
        render = format_legacy_text if legacy_name else format_plain_text
        text = default_name if value is None else render(value, column.type)
        parts.append(f"{escape(column.name)}={escape(default_name if is_blank(text) else text)}")
    return "/".join(parts)


def escape(text: str) -> str:
    """Escape the characters that are special in paths as ``%XX``.

    >>> escape("a/b=c")
    'a%2Fb%3Dc'
    """
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)
