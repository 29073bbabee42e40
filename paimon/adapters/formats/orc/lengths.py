"""The lengths of strings, lists and maps in an ORC stripe, looked at before Arrow trusts them.

Law: no length is negative, and together they are no more than the caller allows; what passes here never lets ORC's
decoders read outside of their buffers, nor ask for memory that they do not get. Runs are judged by their heads, which
bound their values; only a run whose bound is too wide is decoded.
Source: ORC specification v1, "Run Length Encoding"; the decoders check negative lengths of dictionaries only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from paimon.adapters.formats.orc.protobuf import Malformed, signed, varint

_SHORT, _DIRECT, _PATCHED, _DELTA = range(4)
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""How many bits five bits of a head stand for."""
_SHORTEST = 3
_LONGER_THAN_A_BYTE = 8
"""Below this a head says: a short repeat of a value of one byte. Such runs come by the thousand."""
_AT_ONCE, _WORTH_LOOKING = 1024, 16


@frozen
class Lengths:
    """What the lengths of a stream add up to, and the longest of them; both at most, where runs tell bounds only."""

    total: int = 0
    longest: int = 0


def check_lengths(data: bytes, most: int, *, second_version: bool = True) -> Lengths:
    """Check that the lengths of a stream are not negative and add up to at most `most`.

    Parameters
    ----------
    data : bytes
        A LENGTH stream, decompressed.
    most : int
        The largest sum.
    second_version : bool
        Whether runs are encoded as RLEv2, which all but very old files have.

    Returns
    -------
    Lengths
        Their sum and the longest of them.

    Raises
    ------
    Malformed
        They are negative, or more.
    """
    if not second_version:
        found = _first_version(data)
        if found.total > most:
            raise Malformed(f"lengths add up to more than {most}")
        return found
    loose = _summed(data, most, exact=False)
    if loose is not None and loose.total <= most:
        return loose
    exact = _summed(data, most, exact=True)
    if exact is None or exact.total > most:
        raise Malformed(f"lengths are negative, or add up to more than {most}")
    return exact


def _summed(data: bytes, most: int, *, exact: bool) -> Lengths | None:
    """The sum of all values, or a bound of it; None where one is, or without `exact` may be, negative."""
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
                values, greatest, at = _short_ones(data, at)
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
        raise Malformed("a run of lengths ends after its stream")
    return Lengths(total, longest)


def _short_ones(data: bytes, at: int) -> tuple[int, int, int]:
    """The sum of short repeats of one byte each that follow each other, the greatest value, and where they end."""
    value, later = data[at + 1], at + 2 * _WORTH_LOOKING
    if later >= len(data) or data[later] >= _LONGER_THAN_A_BYTE:
        return value * (data[at] + _SHORTEST), value, at + 2
    pairs = np.frombuffer(data, np.uint8, min((len(data) - at) // 2, _AT_ONCE) * 2, at).reshape(-1, 2)
    others = np.flatnonzero(pairs[:, 0] >= _LONGER_THAN_A_BYTE)
    runs = pairs[: others[0]] if len(others) else pairs
    total = int(((runs[:, 0].astype(np.int64) + _SHORTEST) * runs[:, 1]).sum())
    return total, int(runs[:, 1].max(initial=0)), at + 2 * len(runs)


def _short(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    """Like all readers of runs: the least value, the greatest, the sum, and where the run ends."""
    size = (data[at] >> 3 & 7) + 1
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return value, value, value * ((data[at] & 7) + _SHORTEST), at + 1 + size


def _direct(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
    return _bounds(_unpacked(data, at + 2, count, width), at + 2 + _bytes(count * width))


def _patched(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
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
    entries_at = values_at + _bytes(count * width)
    end = entries_at + _bytes(patches * entry_width)
    if not exact:
        greatest = max(base, 0) + (1 << width + patch_width)
        return base, greatest, count * greatest, end
    values = _unpacked(data, values_at, count, width)
    place = 0
    for entry in _unpacked(data, entries_at, patches, entry_width):
        place += entry >> patch_width
        patch = entry & (1 << patch_width) - 1
        if patch and place < count:
            values[place] |= patch << width
    return _bounds([base + value for value in values], end)


def _delta(data: bytes, at: int, exact: bool) -> tuple[int, int, int, int]:
    code, count = data[at] >> 1 & 31, _count(data, at)
    width = _WIDTHS[code] if code else 0
    first, place = varint(data, at + 2)
    step, place = varint(data, place)
    step = signed(step)
    rest = max(count - 2, 0)
    end = place + _bytes(rest * width)
    if not width:
        last = first + step * (count - 1)
        return min(first, last), max(first, last), first * count + step * count * (count - 1) // 2, end
    furthest = first + step + (-rest if step < 0 else rest) * ((1 << width) - 1)
    if not exact:
        greatest = max(first, furthest)
        return min(first, furthest), greatest, count * greatest, end
    values = [first, first + step]
    for change in _unpacked(data, place, rest, width):
        values.append(values[-1] - change if step < 0 else values[-1] + change)
    return _bounds(values[:count], end)


_RUNS = (_short, _direct, _patched, _delta)


def _first_version(data: bytes) -> Lengths:
    at = total = longest = 0
    while at < len(data):
        head, at = data[at], at + 1
        if head < 128:
            if at >= len(data):
                raise Malformed("a run of lengths ends after its stream")
            step = data[at] - 256 * (data[at] > 127)
            first, at = varint(data, at + 1)
            count = head + _SHORTEST
            if first + step * (count - 1) < 0:
                raise Malformed("a length is negative")
            total += first * count + step * count * (count - 1) // 2
            longest = max(longest, first, first + step * (count - 1))
        else:
            for _ in range(256 - head):
                value, at = varint(data, at)
                total, longest = total + value, max(longest, value)
    return Lengths(total, longest)


def _count(data: bytes, at: int) -> int:
    return ((data[at] & 1) << 8 | data[at + 1]) + 1


def _bytes(bits: int) -> int:
    return bits + 7 >> 3


def _bounds(values: Sequence[int], end: int) -> tuple[int, int, int, int]:
    return min(values), max(values), sum(values), end


def _unpacked(data: bytes, at: int, count: int, width: int) -> list[int]:
    """Numbers of so many bits each, the highest bit first; at most 512 of them."""
    size = _bytes(count * width)
    held = data[at : at + size]
    if len(held) != size:
        raise Malformed("a run of lengths ends after its stream")
    bits = int.from_bytes(held, "big") >> 8 * size - count * width
    mask = (1 << width) - 1
    return [bits >> width * (count - 1 - i) & mask for i in range(count)]
