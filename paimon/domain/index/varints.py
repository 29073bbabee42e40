"""Numbers in base 128 (varints), and byte strings of several parts, as arrays.

A varint has 7 bits of a number in each byte, the lowest first; the high bit marks that another byte follows. A column
of byte strings is their bytes, one after the other, and the length of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Lengths: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64]
MOST_BYTES = 9
"""A varint of a number that is not negative has at most 63 bits."""
_LIMITS = np.array([1 << (7 * count) for count in range(1, MOST_BYTES)], np.int64)


def encode_varints(numbers: Numbers) -> tuple[Bytes, Lengths]:
    """Encode numbers, none of which is negative."""
    lengths: Lengths = (np.searchsorted(_LIMITS, numbers, side="right") + 1).astype(np.int64)
    starts = start_of_each(lengths)
    encoded = np.empty(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        more = np.where(lengths[longer] > place + 1, 0x80, 0)
        encoded[starts[longer] + place] = ((numbers[longer] >> (7 * place)) & 0x7F) | more
    return encoded, lengths


def decode_varints(data: Bytes) -> Numbers:
    """Decode all numbers of a byte string; raise ValueError if the last one is not complete."""
    ends = np.flatnonzero(data < 0x80)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        raise ValueError("a varint is not complete")
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - starts + 1
    if lengths.max(initial=0) > MOST_BYTES:
        raise ValueError("a varint has more than 63 bits")
    numbers = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        numbers[longer] |= (data[starts[longer] + place].astype(np.int64) & 0x7F) << (7 * place)
    return numbers


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts at a position, and the position after it; raise ValueError if it is not there."""
    number = 0
    for place in range(MOST_BYTES):
        if at + place >= len(data):
            break
        number |= (data[at + place] & 0x7F) << (7 * place)
        if data[at + place] < 0x80:
            return number, at + place + 1
    raise ValueError("a varint is not complete")


def start_of_each(lengths: Lengths) -> Lengths:
    """Return where each byte string starts."""
    starts = np.zeros(len(lengths), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return starts


def join_parts(parts: Sequence[tuple[Bytes, Lengths]]) -> tuple[Bytes, Lengths]:
    """Return the strings that consist of a string of each part, in the order of the parts."""
    total: Lengths = np.sum([lengths for _, lengths in parts], axis=0, dtype=np.int64)
    joined = np.empty(int(total.sum()), np.uint8)
    places = start_of_each(total)
    for data, lengths in parts:
        joined[list_places(places, lengths)] = data
        places = places + lengths
    return joined, total


def list_places(starts: Lengths, lengths: Lengths) -> Numbers:
    """Return the positions of several ranges of bytes, one range after the other."""
    places: Numbers = np.arange(int(lengths.sum())) + np.repeat(starts - start_of_each(lengths), lengths)
    return places


def sum_groups(lengths: Lengths, starts: Lengths) -> Lengths:
    """Return the sums of groups of lengths that follow each other; `starts` has the first place of each group."""
    sums: Lengths = np.add.reduceat(lengths, starts) if len(starts) else np.zeros(0, np.int64)
    return sums
