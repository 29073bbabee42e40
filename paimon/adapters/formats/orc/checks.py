"""What must hold of an ORC file before Arrow sees it.

Law: a damaged file is an error, never the end of the process nor a minute of work: Arrow aborts over types that do
not exist or nest without end, and makes dictionaries and columns of any size that a stripe claims.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.adapters.formats.orc.protobuf import Malformed, Part, decode, number
from paimon.adapters.formats.orc.tail import OrcTail, packed, unframe

_TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES, _TYPE_PRECISION, _TYPE_SCALE = 1, 2, 3, 5, 6
_DECIMAL_KIND, _STRUCT_KIND, _LAST_KIND = 14, 12, 18
_PARTS = {10: 1, 11: 2}
"""How many parts a list and a map have."""
_MAX_PRECISION = 38
_STRIPE_OFFSET, _STRIPE_INDEX_BYTES, _STRIPE_DATA_BYTES, _STRIPE_FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5
_ENCODINGS, _DICTIONARY_SIZE = 2, 2
_MOST_ENTRIES_PER_BYTE = 256
_MAX_NESTING = 200
_CELL_BYTES = 8
_SLACK_BYTES = 1 << 30
_MAX_RATIO = 400
"""A stripe is decoded as a whole: beyond a gigabyte it may not grow more than this."""


def check_types(tail: OrcTail) -> None:
    """Malformed, unless types are a tree of types that exist: Arrow ends the whole process over some that are not."""
    types = tail.types
    if not types or number(types[0], _TYPE_KIND) != _STRUCT_KIND:
        raise Malformed("the root is no struct")
    following = 1
    depths = [0] * len(types)
    for column, parts in enumerate(types):
        kind = number(parts, _TYPE_KIND)
        subtypes = [n for p in parts if p.number == _TYPE_SUBTYPES for n in packed(p)]
        wanted = _PARTS.get(kind, len(subtypes) if kind == _STRUCT_KIND else 0)
        names = sum(p.number == _TYPE_NAMES for p in parts)
        if kind > _LAST_KIND or len(subtypes) != wanted or (kind == _STRUCT_KIND and names != wanted):
            raise Malformed(f"column {column} has a type that does not exist")
        if any(not column < n < len(types) for n in subtypes) or sorted(set(subtypes)) != subtypes:
            raise Malformed(f"column {column} has parts that do not exist")
        if depths[column] >= _MAX_NESTING:
            raise Malformed(f"the types nest deeper than {_MAX_NESTING} levels")
        for part in subtypes:
            depths[part] = depths[column] + 1
        following += len(subtypes)
        precision, scale = number(parts, _TYPE_PRECISION, _MAX_PRECISION), number(parts, _TYPE_SCALE)
        if kind == _DECIMAL_KIND and not scale <= precision <= _MAX_PRECISION:
            raise Malformed(f"column {column} has a decimal type that does not exist")
    if following != len(types):
        raise Malformed("the types are no tree")
    if sum(tail.stripe_rows) != tail.rows:
        raise Malformed("the stripes have more or fewer rows than the file")


def check_stripe(source: pa.NativeFile, stripe: int, told: Sequence[Part], compression: int, columns: int) -> None:
    """Malformed, unless what a stripe claims may fit into it: dictionaries, and the rows of the columns to be read."""
    data_bytes, footer_bytes = number(told, _STRIPE_DATA_BYTES), number(told, _STRIPE_FOOTER_BYTES)
    start = number(told, _STRIPE_OFFSET) + number(told, _STRIPE_INDEX_BYTES) + data_bytes
    if start + footer_bytes > source.size():
        raise Malformed(f"stripe {stripe} ends after the file")
    if number(told, _STRIPE_ROWS) * columns * _CELL_BYTES > _SLACK_BYTES + _MAX_RATIO * data_bytes:
        raise Malformed(f"stripe {stripe} has {number(told, _STRIPE_ROWS)} rows in {data_bytes} bytes")
    source.seek(start)
    footer = decode(unframe(bytes(source.read(footer_bytes)), compression))
    most = max(number(told, _STRIPE_ROWS), data_bytes * _MOST_ENTRIES_PER_BYTE)
    for part in footer:
        if part.number == _ENCODINGS and number(decode(part.as_bytes), _DICTIONARY_SIZE) > most:
            raise Malformed(f"stripe {stripe} has a dictionary that is larger than the stripe")
