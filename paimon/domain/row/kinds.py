"""Row kinds: insert, the two sides of an update, delete.

Law: files hold the numbers, people write the short texts. Source: `RowKind`.
"""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest
from paimon.domain.types.arrow_arrays import make_array


class RowKind(IntEnum):
    """What a record says of its row."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def text(self) -> str:
        """The short text."""
        return KIND_TEXTS[self]


KIND_TEXTS = ("+I", "-U", "+U", "-D")
"""Short texts by number."""
RETRACTS = make_array([RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value], pa.int8())
"""The kinds that take a row away."""


def kinds_of(texts: pa.ChunkedArray, column: str) -> pa.Int8Array:
    """The kinds that a text column gives; InvalidRequest where one is missing or unknown."""
    if not _is_text(texts.type):
        raise InvalidRequest(f"column {column!r} holds row kinds but is {texts.type}, not text", subject=column)
    found = pc.index_in(texts, pa.array(KIND_TEXTS, texts.type))
    if found.null_count:
        wrong = texts.filter(pc.is_null(found))[0].as_py()
        raise InvalidRequest(
            f"column {column!r} holds {wrong!r}, which is no row kind", subject=column,
            hint=f"known are {', '.join(KIND_TEXTS)}",
        )  # fmt: skip
    whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return whole.cast(pa.int8())


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    return data_type in (pa.string(), pa.large_string(), pa.string_view())
