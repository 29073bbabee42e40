"""Recognize the description of a column chunk in a Parquet footer that has the usual layout and agrees with the schema.

Invariant: what is recognized is sound. What is not recognized may be sound, and is decoded member by member, which
takes ten times as long.
Source: the layouts of Arrow and parquet-java.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import product

from attrs import field, frozen

from paimon.adapters.formats.thrift import BINARY, I32, I64, STRUCT, encode_list

BYTE_ARRAY = 6
CODECS = range(8)
_MOST_ENTRIES = 6
"""The longest list that the patterns match."""
_MOST_BOUND_BYTES = 64
_Found = tuple[bytes | None, ...]
_UsualLengths = tuple[frozenset[_Found] | None, frozenset[_Found]]
"""The lengths that bounds may have, None for any, and those of the size statistics."""


@frozen
class ChunkShape:
    """What the schema states of the chunks of a leaf column."""

    # number of the physical type
    physical: int
    # bytes of a bound; None for strings
    width: int | None
    # names on the path of the column, with dots between them
    name: str
    # number of repetition levels
    repetitions: int
    # number of definition levels
    definitions: int
    _type: bytes = field(init=False)
    _path: bytes = field(init=False)
    _lengths: _UsualLengths = field(init=False)

    @_type.default
    def _encode_type(self) -> bytes:
        return bytes((self.physical << 1,))

    @_path.default
    def _encode_path(self) -> bytes:
        return encode_list(BINARY, self.name.encode().split(b"."))

    @_lengths.default
    def _find_lengths(self) -> _UsualLengths:
        return _find_usual_lengths(self.physical, self.width, self.repetitions, self.definitions)

    def match(self, footer: bytes, at: int) -> int:
        """Return the end of the column chunk at an offset of a footer; 0 if it is not recognized."""
        beginning, rest = _patterns()
        start = beginning.match(footer, at)
        if start is None or start[1] != self._type:
            return 0
        at = start.end()
        if not footer.startswith(self._path, at):
            return 0
        end = rest.match(footer, at + len(self._path))
        if end is None:
            return 0
        found = end.groups()
        lengths = found[1], found[3], found[4], found[5]
        bounds, sizes = self._lengths
        if found[6:] not in sizes or (bounds is not None and lengths not in bounds):
            return 0
        return end.end()


@lru_cache(1024)
def _find_usual_lengths(
    physical: int, width: int | None, repetitions: int, definitions: int
) -> tuple[frozenset[_Found] | None, frozenset[_Found]]:
    """Return the groups that a match may have for bounds and for size statistics; None for any bounds."""
    bounds = None
    if width is not None:
        size = bytes((min(width, 255),))
        bounds = frozenset({(None,) * 4, (None, None, size, size), (size, size, None, None)})
    sizes: set[_Found] = {(None,) * 5, (b"\x16", None, None, None, None)}
    for reps, defs in product(_histogram_heads(repetitions), _histogram_heads(definitions)):
        sizes |= {(b"\x16", reps, defs, None, None), (None, None, None, reps, defs)}
    return bounds, frozenset(found for found in sizes if found[0] is None or physical == BYTE_ARRAY)


def _histogram_heads(levels: int) -> list[bytes | None]:
    """Return how a histogram of levels may begin: it is missing, empty or complete."""
    return [None, bytes((I64,)), *((bytes((levels << 4 | I64,)),) if levels <= _MOST_ENTRIES else ())]


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a column chunk before and after its path.

    The group of the first one is the physical type. The second one has groups for the deprecated bounds, each with its
    length, and for the lengths of other bounds. Five groups describe the size statistics: whether they have the bytes
    of strings, and the lengths of the histograms.
    """
    # Thrift: a member begins with a byte: how far its number is from that of the member before (high 4 bits), and its
    # wire type (low 4 bits). \x15 is the next member, an i32; \x26 is two further, an i64; \x00 ends a struct.
    number = rb"[\x80-\xff]*+[\x00-\x7f]"
    i32, i64 = rb"\x15" + number, rb"\x16" + number
    lengths = (8, 4, *range(4), *range(5, 8), *range(9, _MOST_BOUND_BYTES + 1))
    bound = rb"(?=(.))(?:%b)" % b"|".join(re.escape(bytes((n,))) + b".{%d}" % n for n in lengths)
    gap, exact = rb"(?:\x28|\x16%b\x18)" % number, rb"(?:[\x11\x12]{2})?"
    deprecated = rb"\x18(?P<max>%b)\x18(?P<min>%b)\x16%b" % (bound, bound, number)
    statistics = rb"(?:%b(?:%b(?P=max)\x18(?P=min)%b)?|" % (
        deprecated,
        gap,
        exact,
    ) + rb"\x36%b(?:%b%b\x18%b%b)?)\x00" % (number, gap, bound, bound, exact)
    levels = rb"(?=(.))" + _match_list(I64, number)
    sizes = rb"(?:(\x16)%b(?:(?:\x29|\x19%b\x19)%b)?|(?:\x39|\x29%b\x19)%b)?\x00" % (number, *[levels] * 4)
    rest = (
        rb"\x15[\x00\x02\x04\x06\x08\x0a\x0c\x0e]%b\x26%b(?:\x26%b\x1c|\x3c)" % (i64 * 3, number, number)
        + statistics
        + rb"\x19%b(?:\x3c%b)?\x00" % (_match_list(STRUCT, i32 * 3 + rb"\x00"), sizes)
        + rb"(?:%b%b){0,2}\x00" % (i64, i32)
    )
    beginning = rb"\x26%b\x1c\x15(.)\x19%b\x19" % (number, _match_list(I32, number))
    return re.compile(beginning, re.DOTALL), re.compile(rest, re.DOTALL)


def _match_list(kind: int, element: bytes) -> bytes:
    """Return the pattern of a list of a few elements of a wire type."""
    heads = ((n, re.escape(bytes((n << 4 | kind,)))) for n in range(_MOST_ENTRIES + 1))
    return b"(?:%b)" % b"|".join(head + b"(?:%b){%d}" % (element, n) for n, head in heads)
