"""Rewrite the tail of an ORC file: set column types that Arrow's writer cannot state, and join two files.

Invariant: stripes and fields that this module does not know stay as they are.
Source: ORC specification v1, "File Tail".
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from paimon.adapters.formats.guards.orc_tail import (
    FOOTER_LENGTH,
    METADATA_LENGTH,
    NO_COMPRESSION,
    ROWS,
    STATISTICS,
    STRIPES,
    TYPE_KIND,
    TYPES,
    OrcTail,
)
from paimon.adapters.formats.protobuf import BYTES, VARINT, Part, decode, encode, int_field

ORC_HEADER = b"ORC"
VARCHAR_KIND, CHAR_KIND = 16, 17
_BLOCK_SIZE = 3
_CONTENT_LENGTH = 2
_STRIPE_OFFSET = 1
_STATISTICS_VALUES, _STATISTICS_NULL = 1, 10
_TYPE_LENGTH = 4


def encode_tail(tail: OrcTail) -> bytes:
    """Encode a tail as the end of a file."""
    footer = encode(tail.footer)
    if tail.compression != NO_COMPRESSION:
        footer = _frame(footer, int_field(tail.postscript, _BLOCK_SIZE))
    lengths = {FOOTER_LENGTH: len(footer), METADATA_LENGTH: len(tail.metadata)}
    script = encode(evolve(p, value=lengths.get(p.number, p.value)) for p in tail.postscript)
    return tail.metadata + footer + script + bytes([len(script)])


def set_string_types(tail: OrcTail, lengths: Mapping[int, tuple[int, int]]) -> OrcTail:
    """Return the tail with CHAR and VARCHAR columns; `lengths` has (type kind, characters) by column number."""
    column = -1
    footer = []
    for part in tail.footer:
        column += part.number == TYPES
        if part.number == TYPES and column in lengths:
            kind, length = lengths[column]
            kept = [p for p in decode(part.as_bytes) if p.number not in (TYPE_KIND, _TYPE_LENGTH)]
            head = [Part(TYPE_KIND, VARINT, kind), Part(_TYPE_LENGTH, VARINT, length)]
            part = Part(TYPES, BYTES, encode(sorted(head + kept, key=_by_number)))
        footer.append(part)
    return evolve(tail, footer=tuple(footer))


def join_tails(first: OrcTail, second: OrcTail, shift: int) -> OrcTail:
    """Join the tails of two files, of which the second file's stripes were appended to those of the first.

    Both files have the same column kinds and codec. The stripes of the second file have moved by `shift` bytes. Bounds
    of the stripes are kept, those of the whole file are not.
    """
    stripes = [evolve(p, value=_shift_stripe(p.as_bytes, shift)) for p in second.footer if p.number == STRIPES]
    pairs = zip(first.statistics, second.statistics, strict=True)
    statistics = [Part(STATISTICS, BYTES, _add_counts(a, b)) for a, b in pairs]
    totals = {n: int_field(first.footer, n) + int_field(second.footer, n) for n in (_CONTENT_LENGTH, ROWS)}
    kept = [evolve(p, value=totals.get(p.number, p.value)) for p in first.footer if p.number != STATISTICS]
    footer = sorted([*kept, *stripes, *statistics], key=_by_number)
    return evolve(first, footer=tuple(footer), metadata=first.metadata + second.metadata)


def _frame(data: bytes, block_bytes: int) -> bytes:
    """Store data as uncompressed chunks: a footer is too small to be worth compressing again."""
    most = min(block_bytes or 1 << 18, (1 << 23) - 1)
    chunks = [data[at : at + most] for at in range(0, len(data), most)]
    return b"".join((len(c) << 1 | 1).to_bytes(3, "little") + c for c in chunks)


def _shift_stripe(stripe: bytes, shift: int) -> bytes:
    return encode(evolve(p, value=p.as_int + shift) if p.number == _STRIPE_OFFSET else p for p in decode(stripe))


def _add_counts(first: bytes, second: bytes) -> bytes:
    """Add up the value counts, and combine "has null", of two parts of a column."""
    parts = decode(first), decode(second)
    values = sum(int_field(p, _STATISTICS_VALUES) for p in parts)
    null = max(int_field(p, _STATISTICS_NULL, 1) for p in parts)
    return encode([Part(_STATISTICS_VALUES, VARINT, values), Part(_STATISTICS_NULL, VARINT, null)])


def _by_number(part: Part) -> int:
    return part.number
