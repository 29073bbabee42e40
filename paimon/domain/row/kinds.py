"""Row kinds: insert, the two sides of an update, delete.

Invariant: files hold the numbers, users write the short texts.
Source: `RowKind`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow_arrays import from_numpy, make_array


class RowKind(IntEnum):
    """What a record does to its row: insert it, state its value before or after an update, or delete it."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def text(self) -> str:
        """Short text: ``+I``, ``-U``, ``+U`` or ``-D``."""
        return KIND_TEXTS[self]


KIND_TEXTS = ("+I", "-U", "+U", "-D")
"""Short texts by number."""
RETRACTS = make_array([RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value], pa.int8())
"""The kinds that retract a row."""


def repeat_kind(kind: RowKind, count: int) -> pa.Int8Array:
    """Return the row kind of rows that all have the same one."""
    return from_numpy(np.full(count, kind, np.int8))


def parse_row_kinds(texts: pa.ChunkedArray, column: str) -> pa.Int8Array:
    """Parse a column of row kinds such as ``"+I"`` to the numbers of `RowKind`; refuse nulls and other texts."""
    if not _is_text(texts.type):
        raise InvalidRequest(
            f"Row kind column {column!r} has the type {texts.type}, not text",
            subject=column,
            hint=f"cast it to text, with the values {', '.join(KIND_TEXTS)}",
        )
    found = pc.index_in(texts.cast(pa.string()), pa.array(KIND_TEXTS))
    if found.null_count:
        raise _unknown_kind_error(column, texts.filter(pc.is_null(found))[0].as_py())
    whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return whole.cast(pa.int8())


def _unknown_kind_error(column: str, value: str | None) -> InvalidRequest:
    return InvalidRequest(
        f"Row kind column {column!r} contains {value!r}, which is not a row kind",
        subject=column,
        hint=f"use one of {', '.join(KIND_TEXTS)}",
    )


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    return data_type in (pa.string(), pa.large_string(), pa.string_view())
