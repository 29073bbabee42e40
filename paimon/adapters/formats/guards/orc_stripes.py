"""Check the types, stripes and lengths of an ORC file before Arrow decodes them.

Arrow crashes the process if a type does not exist or is nested without limit. It allocates dictionaries and columns
of any size that a stripe states. Its decoders check negative lengths of dictionaries only. Runs of lengths are checked
by their headers, which limit their values. Only a run whose bound is too large is decoded.

Invariant: a damaged file raises an error. It never crashes the process, and never takes minutes. No accepted length is
negative, and the sum of the lengths is at most what the caller allows, so ORC's decoders stay inside their buffers.
Source: ORC specification v1, "Run Length Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.adapters.formats.guards.orc_tail import OrcTail, decompress_section, unpack_numbers
from paimon.adapters.formats.protobuf import Malformed, Part, decode, int_field, read_varint
from paimon.adapters.formats.varints import decode_zigzag

# Lengths are stored as runs of RLEv2, of which the first two bits of a run are the kind:
#
#     kind            header                            bound without decoding
#     short repeat    bytes of the value, count - 3     exact: it has one value
#     direct          width, count                      each value has `width` bits
#     patched base    width, count, base, patch width   each value is the base and `width + patch width` bits
#     delta           width, count, first, step         each change has `width` bits
#
# A reader of runs takes (data, at, exact) and returns the smallest value, the largest, the sum, and the end of the run;
# without `exact`, bounds of them. Files of the first version have two kinds of runs, which are always decoded.


_SHORT, _DIRECT, _PATCHED, _DELTA = range(4)
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits per value, by the five width bits of a run's header."""
_SHORTEST = 3
_LONGER_THAN_A_BYTE = 8
"""A smaller first byte begins a short repeat of a one-byte value. A stream may have thousands of them."""
_MAX_REPEATS, _MIN_REPEATS = 1024, 16
"""How many short repeats are added up together, at most and at least."""


@frozen
class Lengths:
    """The sum of the lengths of a stream and the longest length, or upper bounds of both."""

    total: int = 0
    longest: int = 0


def check_lengths(data: bytes, most: int, *, second_version: bool = True) -> Lengths:
    """Return a stream's sum of lengths and the longest; Malformed if negative or more than `most` in sum."""
    if not second_version:
        found = _read_first_version(data)
        if found.total > most:
            raise Malformed(f"the sum of lengths is more than {most}")
        return found
    bound = _sum_runs(data, most, exact=False)
    if bound is not None and bound.total <= most:
        return bound
    exact = _sum_runs(data, most, exact=True)
    if exact is None or exact.total > most:
        raise Malformed(f"lengths are negative, or their sum is more than {most}")
    return exact


def _sum_runs(data: bytes, most: int, *, exact: bool) -> Lengths | None:
    """Return the sum of all values, or a bound of it; None if a value is, or without `exact` may be, negative."""
    at = total = longest = 0
    try:
        while at < len(data):
            kind = data[at] >> 6
            if kind == _DIRECT and not exact:  # nearly all runs are of this kind
                width = _WIDTHS[data[at] >> 1 & 31]
                count = ((data[at] & 1) << 8 | data[at + 1]) + 1
                at += 2 + (count * width + 7 >> 3)
                total += count << width
                longest = max(longest, (1 << width) - 1)
            elif data[at] < _LONGER_THAN_A_BYTE:
                values, greatest, at = _read_short_repeats(data, at)
                total, longest = total + values, max(longest, greatest)
            else:
                least, greatest, values, at = _RUNS[kind](data, at, exact)
                if least < 0:
                    return None
                total, longest = total + values, max(longest, greatest)
            if total > most:
                return Lengths(total, longest)
    except IndexError:
        at = len(data) + 1
    if at > len(data):
        raise Malformed("a run of lengths is longer than its stream")
    return Lengths(total, longest)


def _read_short_repeats(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the sum of a sequence of short repeats of one byte each, the largest value, and its end."""
    value, later = data[at + 1], at + 2 * _MIN_REPEATS
    if later >= len(data) or data[later] >= _LONGER_THAN_A_BYTE:
        return value * (data[at] + _SHORTEST), value, at + 2
    pairs = np.frombuffer(data, np.uint8, min((len(data) - at) // 2, _MAX_REPEATS) * 2, at).reshape(-1, 2)
    others = np.flatnonzero(pairs[:, 0] >= _LONGER_THAN_A_BYTE)
    runs = pairs[: others[0]] if len(others) else pairs
    total = int(((runs[:, 0].astype(np.int64) + _SHORTEST) * runs[:, 1]).sum())
    return total, int(runs[:, 1].max(initial=0)), at + 2 * len(runs)


def _read_short_repeat(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    size = (data[at] >> 3 & 7) + 1
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return value, value, value * ((data[at] & 7) + _SHORTEST), at + 1 + size


def _read_direct_run(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _run_length(data, at)
    return _summarize(_unpack_bits(data, at + 2, count, width), at + 2 + _bytes_for(count * width))


def _read_patched_run(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _run_length(data, at)
    third, fourth = data[at + 2], data[at + 3]
    base_size, patch_width, patches = (third >> 5) + 1, _WIDTHS[third & 31], fourth & 31
    entry_width = next((w for w in _WIDTHS if w >= patch_width + (fourth >> 5) + 1), 0)
    if not patches or not entry_width:
        raise Malformed("a run of lengths has patches that do not exist")
    base_at = at + 4
    base = int.from_bytes(data[base_at : base_at + base_size], "big")
    sign = 1 << 8 * base_size - 1
    base = sign - base if base & sign else base
    values_at = base_at + base_size
    entries_at = values_at + _bytes_for(count * width)
    end = entries_at + _bytes_for(patches * entry_width)
    if not exact:
        greatest = max(base, 0) + (1 << width + patch_width)
        return base, greatest, count * greatest, end
    values = _unpack_bits(data, values_at, count, width)
    place = 0
    for entry in _unpack_bits(data, entries_at, patches, entry_width):
        place += entry >> patch_width
        patch = entry & (1 << patch_width) - 1
        if patch and place < count:
            values[place] |= patch << width
    return _summarize([base + value for value in values], end)


def _read_delta_run(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    code, count = data[at] >> 1 & 31, _run_length(data, at)
    width = _WIDTHS[code] if code else 0
    first, place = read_varint(data, at + 2)
    step, place = read_varint(data, place)
    step = decode_zigzag(step)
    rest = max(count - 2, 0)
    end = place + _bytes_for(rest * width)
    if not width:
        last = first + step * (count - 1)
        return min(first, last), max(first, last), first * count + step * count * (count - 1) // 2, end
    furthest = first + step + (-rest if step < 0 else rest) * ((1 << width) - 1)
    if not exact:
        greatest = max(first, furthest)
        return min(first, furthest), greatest, count * greatest, end
    values = [first, first + step]
    for change in _unpack_bits(data, place, rest, width):
        values.append(values[-1] - change if step < 0 else values[-1] + change)
    return _summarize(values[:count], end)


_RUNS = (_read_short_repeat, _read_direct_run, _read_patched_run, _read_delta_run)


def _read_first_version(data: bytes) -> Lengths:
    at = total = longest = 0
    while at < len(data):
        head, at = data[at], at + 1
        if head < 128:
            if at >= len(data):
                raise Malformed("a run of lengths is longer than its stream")
            step = data[at] - 256 * (data[at] > 127)
            first, at = read_varint(data, at + 1)
            count = head + _SHORTEST
            if first + step * (count - 1) < 0:
                raise Malformed("a length is negative")
            total += first * count + step * count * (count - 1) // 2
            longest = max(longest, first, first + step * (count - 1))
        else:
            for _ in range(256 - head):
                value, at = read_varint(data, at)
                total, longest = total + value, max(longest, value)
    return Lengths(total, longest)


def _run_length(data: bytes, at: int) -> int:
    return ((data[at] & 1) << 8 | data[at + 1]) + 1


def _bytes_for(bits: int) -> int:
    return bits + 7 >> 3


def _summarize(values: Sequence[int], end: int) -> tuple[int, int, int, int]:
    return min(values), max(values), sum(values), end


def _unpack_bits(data: bytes, at: int, count: int, width: int) -> list[int]:
    """Return `count` numbers of `width` bits each, the highest bit first; at most 512 numbers."""
    size = _bytes_for(count * width)
    held = data[at : at + size]
    if len(held) != size:
        raise Malformed("a run of lengths is longer than its stream")
    bits = int.from_bytes(held, "big") >> 8 * size - count * width
    mask = (1 << width) - 1
    return [bits >> width * (count - 1 - i) & mask for i in range(count)]


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
