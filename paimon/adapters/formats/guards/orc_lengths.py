"""Check the lengths of strings, lists and maps in an ORC stripe before Arrow's decoder uses them.

ORC's decoders check negative lengths of dictionaries only. This module checks runs by their headers, which limit their
values. Only a run whose bound is too large is decoded.

Invariant: no accepted length is negative, and the sum of the lengths is at most what the caller allows. With accepted
lengths, ORC's decoders do not read outside of their buffers.
Source: ORC specification v1, "Run Length Encoding".
"""

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

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from paimon.adapters.formats.protobuf import Malformed, read_varint
from paimon.adapters.formats.varints import decode_zigzag

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
