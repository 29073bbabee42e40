"""Check the types and stripes of an ORC file before Arrow decodes them, and return what a stripe takes in memory.

Arrow crashes the process if a type does not exist or is nested without limit. It allocates dictionaries and columns
of any size that a stripe states.

Invariant: a damaged file raises an error. It never crashes the process, and never takes minutes.
"""

# The memory of a stripe is bounded from the lengths that it stores, before Arrow decodes it:
#
#                                in all                       in one row
#     each top-level column      8 bytes a row                8 bytes
#     list or map                8 bytes an element           8 bytes an element, on average
#     text                       its length                   the longest text for each value
#     text in a dictionary       the longest entry a value    the longest entry for each value
#
# A column inside of lists has more values than the stripe has rows: at most the largest sum of lengths of a list before
# it, because a type follows the type that contains it. One row counts with the longest text, because a batch of few
# rows may have no other.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.guards.orc_lengths import check_lengths
from paimon.adapters.formats.guards.orc_tail import OrcTail, decompress_section, unpack_numbers
from paimon.adapters.formats.protobuf import Malformed, Part, decode, int_field

_TYPE_KIND, _TYPE_SUBTYPES, _TYPE_NAMES, _TYPE_PRECISION, _TYPE_SCALE = 1, 2, 3, 5, 6
_DECIMAL_KIND, _STRUCT_KIND, _LAST_KIND = 14, 12, 18
_SUBTYPE_COUNTS = {10: 1, 11: 2}
"""The number of nested types of a list and of a map."""
_MAX_PRECISION = 38
_STRIPE_OFFSET, _STRIPE_INDEX_BYTES, _STRIPE_DATA_BYTES, _STRIPE_FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5
_STREAMS, _ENCODINGS = 1, 2
_STREAM_KIND, _STREAM_COLUMN, _STREAM_BYTES = 1, 2, 3
_LENGTH_KIND = 2
"""The kind of a stream of lengths."""
_ENCODING_KIND, _DICTIONARY_SIZE = 1, 2
_DICTIONARIES = (1, 3)
"""The dictionary encodings: any row may repeat the longest entry."""
_FIRST_RLE_V2 = 2
"""The smallest encoding whose lengths are runs of RLEv2."""
_MOST_ENTRIES_PER_BYTE = 256
_MAX_NESTING = 200
_NO_KINDS: Mapping[int, int] = MappingProxyType({})
_CELL_BYTES = 8
_SLACK_BYTES = 1 << 30
_MAX_RATIO = 400
"""Beyond a gigabyte, a stripe may not decode to more than this multiple of its stored bytes."""
MOST_BYTES = 512 * 1024 * 1024
_WHOLE_SHARE, _BATCH_SHARE = 2, 8
"""The shares of the budget up to which a stripe is decoded as a whole, and for one batch: Arrow holds some at once."""


@frozen
class StripeMemory:
    """The largest memory that a decoded stripe, and one of its rows, can take."""

    # columns of all rows
    decoded_bytes: int = 0
    row_bytes: float = 0.0

    def can_decode_whole(self, most_bytes: int) -> bool:
        """Return whether the stripe may be decoded as a whole with a memory budget of `most_bytes`."""
        return self.decoded_bytes * _WHOLE_SHARE <= most_bytes

    def count_fitting_rows(self, most_bytes: int) -> int:
        """Return how many rows fit into a batch with a memory budget of `most_bytes`, at least one."""
        return max(1, int(most_bytes // _BATCH_SHARE / max(self.row_bytes, 1.0)))


def check_types(tail: OrcTail) -> None:
    """Check that the column types of a file form a tree of limited depth, and that its row counts agree."""
    types = tail.types
    if not types or int_field(types[0], _TYPE_KIND) != _STRUCT_KIND:
        raise Malformed("the root type is not a struct")
    following = 1
    depths = [0] * len(types)
    for column, parts in enumerate(types):
        subtypes = _read_subtypes(column, parts)
        if any(not column < n < len(types) for n in subtypes) or sorted(set(subtypes)) != subtypes:
            raise Malformed(f"column {column} has nested types that do not exist")
        if depths[column] >= _MAX_NESTING:
            raise Malformed(f"the types are nested deeper than {_MAX_NESTING} levels")
        for part in subtypes:
            depths[part] = depths[column] + 1
        following += len(subtypes)
    if following != len(types):
        raise Malformed("the types are not a tree")
    if sum(tail.stripe_rows) != tail.rows:
        raise Malformed("the row counts of the stripes do not add up to that of the file")


def _read_subtypes(column: int, parts: Sequence[Part]) -> list[int]:
    """Return the columns nested in a column, whose own type must exist."""
    kind = int_field(parts, _TYPE_KIND)
    subtypes = [n for p in parts if p.number == _TYPE_SUBTYPES for n in unpack_numbers(p)]
    wanted = _SUBTYPE_COUNTS.get(kind, len(subtypes) if kind == _STRUCT_KIND else 0)
    names = sum(p.number == _TYPE_NAMES for p in parts)
    if kind > _LAST_KIND or len(subtypes) != wanted or (kind == _STRUCT_KIND and names != wanted):
        raise Malformed(f"column {column} has a type that does not exist")
    precision, scale = int_field(parts, _TYPE_PRECISION, _MAX_PRECISION), int_field(parts, _TYPE_SCALE)
    if kind == _DECIMAL_KIND and not scale <= precision <= _MAX_PRECISION:
        raise Malformed(f"column {column} has a decimal type that does not exist")
    return subtypes


@frozen
class Stream:
    """A stream of a stripe: its column number, its offset in the file, its bytes, and whether it holds lengths."""

    column: int
    at: int
    size: int
    has_lengths: bool


def check_stripe(
    source: pa.NativeFile,
    stripe: int,
    information: Sequence[Part],
    compression: int,
    columns: int,
    kinds: Mapping[int, int] = _NO_KINDS,
) -> StripeMemory:
    """Check that what a stripe states fits into its bytes: rows, dictionaries, strings, lists and maps.

    Moves the position of `source`. `information` is the StripeInformation message in the footer. `columns` top-level
    columns are read; `kinds` has the type kinds of these and of their nested columns, by column number.
    """
    data_bytes, rows = int_field(information, _STRIPE_DATA_BYTES), int_field(information, _STRIPE_ROWS)
    most = _SLACK_BYTES + _MAX_RATIO * data_bytes
    if rows * columns * _CELL_BYTES > most:
        raise Malformed(f"stripe {stripe} has {rows} rows in {data_bytes} bytes")
    encodings, streams = read_stripe_streams(source, information, compression)
    entries = max(rows, data_bytes * _MOST_ENTRIES_PER_BYTE)
    if any(int_field(encoding, _DICTIONARY_SIZE) > entries for encoding in encodings):
        raise Malformed(f"stripe {stripe} has a dictionary that is larger than the stripe")
    values = max(rows, 1)  # of any column so far
    decoded_bytes, row_bytes = rows * columns * _CELL_BYTES, float(columns * _CELL_BYTES)
    for stream in sorted(streams, key=lambda s: s.column):  # lists before their elements
        if stream.has_lengths and stream.column in kinds and stream.column < len(encodings):
            source.seek(stream.at)
            data = decompress_section(bytes(source.read(stream.size)), compression)
            encoding = int_field(encodings[stream.column], _ENCODING_KIND)
            is_list = kinds[stream.column] in _SUBTYPE_COUNTS
            each = _CELL_BYTES if is_list else 1
            lengths = check_lengths(data, most // each, second_version=encoding >= _FIRST_RLE_V2)
            if is_list:
                values = max(values, lengths.total)
            total = lengths.longest * values if encoding in _DICTIONARIES else lengths.total * each
            decoded_bytes += total
            row_bytes += (total if is_list else lengths.longest * values) / max(rows, 1)
    return StripeMemory(decoded_bytes, row_bytes)


def read_stripe_streams(
    source: pa.NativeFile, information: Sequence[Part], compression: int
) -> tuple[list[list[Part]], list[Stream]]:
    """Return each column's encoding and the streams of a stripe, in order; Malformed if they lie outside."""
    start = int_field(information, _STRIPE_OFFSET)
    end = start + int_field(information, _STRIPE_INDEX_BYTES) + int_field(information, _STRIPE_DATA_BYTES)
    footer_bytes = int_field(information, _STRIPE_FOOTER_BYTES)
    if end + footer_bytes > source.size():
        raise Malformed("a stripe ends behind the end of the file")
    source.seek(end)
    footer = decode(decompress_section(bytes(source.read(footer_bytes)), compression))
    streams = []
    for part in footer:
        if part.number == _STREAMS:
            parts = decode(part.as_bytes)
            size, kind = int_field(parts, _STREAM_BYTES), int_field(parts, _STREAM_KIND)
            streams.append(Stream(int_field(parts, _STREAM_COLUMN), start, size, kind == _LENGTH_KIND))
            start += size
    if start > end:
        raise Malformed("a stream ends behind the end of its stripe")
    return [decode(part.as_bytes) for part in footer if part.number == _ENCODINGS], streams
