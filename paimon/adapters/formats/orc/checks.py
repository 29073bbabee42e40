"""What must hold of an ORC file before Arrow sees it.

Law: a damaged file is an error, never the end of the process nor a minute of work: Arrow aborts over types that do
not exist or nest without end, makes dictionaries and columns of any size that a stripe claims, and believes lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.orc.heavy import StripeWeight
from paimon.adapters.formats.orc.lengths import check_lengths
from paimon.adapters.formats.orc.protobuf import Malformed, Part, decode, number
from paimon.adapters.formats.orc.tail import OrcTail, packed, unframe

_TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES, _TYPE_PRECISION, _TYPE_SCALE = 1, 2, 3, 5, 6
_DECIMAL_KIND, _STRUCT_KIND, _LAST_KIND = 14, 12, 18
_PARTS = {10: 1, 11: 2}
"""How many parts a list and a map have."""
_MAX_PRECISION = 38
_STRIPE_OFFSET, _STRIPE_INDEX_BYTES, _STRIPE_DATA_BYTES, _STRIPE_FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5
_STREAMS, _ENCODINGS, _DICTIONARY_SIZE = 1, 2, 2
_STREAM_KIND, _STREAM_COLUMN, _STREAM_BYTES, _LENGTHS = 1, 2, 3, 2
_ENCODING_KIND, _SECOND_VERSION = 1, 2
_DICTIONARIES = (1, 3)
"""The encodings by a dictionary, whose entries may stand in any row."""
_MOST_ENTRIES_PER_BYTE = 256
_MAX_NESTING = 200
_NOTHING: Mapping[int, int] = MappingProxyType({})
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


@frozen
class Stream:
    """A part of a stripe; `at` is its place in the file."""

    column: int
    at: int
    size: int
    holds_lengths: bool


def check_stripe(
    source: pa.NativeFile,
    stripe: int,
    told: Sequence[Part],
    compression: int,
    columns: int,
    kinds: Mapping[int, int] = _NOTHING,
) -> StripeWeight:
    """Check that what a stripe claims may fit into it: rows, dictionaries, strings, lists and maps.

    Parameters
    ----------
    source : pyarrow.NativeFile
        The file.
    stripe : int
        Which of its stripes.
    told : sequence of Part
        What the footer says of it.
    compression : int
        The number of the codec.
    columns : int
        How many columns are to be read.
    kinds : mapping of int to int
        The kinds of these and of all columns within them, by number.

    Returns
    -------
    StripeWeight
        What the columns take in memory at most.

    Raises
    ------
    Malformed
        The stripe claims more.
    """
    data_bytes, rows = number(told, _STRIPE_DATA_BYTES), number(told, _STRIPE_ROWS)
    most = _SLACK_BYTES + _MAX_RATIO * data_bytes
    if rows * columns * _CELL_BYTES > most:
        raise Malformed(f"stripe {stripe} has {rows} rows in {data_bytes} bytes")
    encodings, streams = stripe_streams(source, told, compression)
    entries = max(rows, data_bytes * _MOST_ENTRIES_PER_BYTE)
    if any(number(encoding, _DICTIONARY_SIZE) > entries for encoding in encodings):
        raise Malformed(f"stripe {stripe} has a dictionary that is larger than the stripe")
    values, decoded, row = max(rows, 1), rows * columns * _CELL_BYTES, float(columns * _CELL_BYTES)
    for stream in sorted(streams, key=lambda s: s.column):  # lists before what is in them
        if stream.holds_lengths and stream.column in kinds and stream.column < len(encodings):
            source.seek(stream.at)
            data = unframe(bytes(source.read(stream.size)), compression)
            encoding = number(encodings[stream.column], _ENCODING_KIND)
            is_list = kinds[stream.column] in _PARTS
            each = _CELL_BYTES if is_list else 1
            lengths = check_lengths(data, most // each, second_version=encoding >= _SECOND_VERSION)
            if is_list:
                values = max(values, lengths.total)
            total = lengths.longest * values if encoding in _DICTIONARIES else lengths.total * each
            decoded += total
            row += total / max(rows, 1) if is_list else lengths.longest * values / max(rows, 1)
    return StripeWeight(decoded, row)


def stripe_streams(
    source: pa.NativeFile, told: Sequence[Part], compression: int
) -> tuple[list[list[Part]], list[Stream]]:
    """The encodings of all columns, and the streams, of a stripe; Malformed where it leaves the file."""
    start = number(told, _STRIPE_OFFSET)
    end = start + number(told, _STRIPE_INDEX_BYTES) + number(told, _STRIPE_DATA_BYTES)
    footer_bytes = number(told, _STRIPE_FOOTER_BYTES)
    if end + footer_bytes > source.size():
        raise Malformed("a stripe ends after the file")
    source.seek(end)
    footer = decode(unframe(bytes(source.read(footer_bytes)), compression))
    streams = []
    for part in footer:
        if part.number == _STREAMS:
            parts = decode(part.as_bytes)
            size, kind = number(parts, _STREAM_BYTES), number(parts, _STREAM_KIND)
            streams.append(Stream(number(parts, _STREAM_COLUMN), start, size, kind == _LENGTHS))
            start += size
    if start > end:
        raise Malformed("a column ends after its stripe")
    return [decode(part.as_bytes) for part in footer if part.number == _ENCODINGS], streams
