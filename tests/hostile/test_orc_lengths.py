"""Lengths in ORC files are checked before ORC's decoders use them; a negative length would end the process."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from paimon.adapters.formats.guards.orc_stripes import check_lengths, read_stripe_streams
from paimon.adapters.formats.guards.orc_tail import read_tail
from paimon.adapters.formats.orc import OrcFormat
from paimon.adapters.formats.protobuf import Malformed
from paimon.domain.errors import CorruptTable
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest

SHAPES: dict[str, Callable[[int, int], int]] = {
    "one": lambda i, by: by,
    "few": lambda i, by: by if i % 7 < 4 else 1,
    "rising": lambda i, by: i * by,
    "falling": lambda i, by: 3000 - i * by,
    "mixed": lambda i, by: (i * 7919) % (by * 31 + 1),
    "outliers": lambda i, by: 5000 + i if i % 40 == by else i % 3,
    "bent": lambda i, by: i * by + i % 3,
    "bent down": lambda i, by: 4000 - i * by - i % 2,
}


def write_orc_file(lengths: list[int]) -> bytes:
    """An ORC file of one column of lists, not compressed."""
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.nulls(offsets[-1], pa.bool_()))
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": column}), sink, compression="uncompressed")
    return sink.getvalue()


def lengths_of(file: bytes) -> tuple[int, bytes]:
    """The position of the length stream, and the stream."""
    tail = read_tail(pa.BufferReader(file))
    _, streams = read_stripe_streams(pa.BufferReader(file), tail.stripes[0], tail.compression)
    [(at, size)] = [(s.at, s.size) for s in streams if s.has_lengths]
    return at, file[at : at + size]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(SHAPES)), st.integers(0, 5), st.integers(1, 600)), min_size=1, max_size=4)
)
def test_all_kinds_of_runs_are_summed_to_the_unit(parts: list[tuple[str, int, int]]) -> None:
    lengths = [SHAPES[name](i, by) for name, by, count in parts for i in range(count)]
    _, stream = lengths_of(write_orc_file(lengths))
    check_lengths(stream, sum(lengths))
    if sum(lengths):
        with pytest.raises(Malformed, match="more than"):
            check_lengths(stream, sum(lengths) - 1)


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def test_runs_of_the_first_version_are_summed_too() -> None:
    run = bytes([7, 3]) + varint(500)
    falling = bytes([7, 256 - 3]) + varint(500)
    literals = bytes([256 - 3]) + varint(9) + varint(70_000) + varint(0)
    total = sum(500 + 3 * i for i in range(10)) + sum(500 - 3 * i for i in range(10)) + 70_009
    check_lengths(run + falling + literals, total, second_version=False)
    with pytest.raises(Malformed):
        check_lengths(run + falling + literals, total - 1, second_version=False)
    for bad in (bytes([7, 256 - 60]) + varint(500), bytes([7]), bytes([255])):
        with pytest.raises(Malformed):
            check_lengths(bad, 2**62, second_version=False)


NEGATIVE = {
    "a repeated value of 64 bits": b"\x38" + b"\xff" * 8,
    "values of 64 bits": b"\x7e\x00" + b"\xff" * 8,
    "steps below zero": b"\xc0\x02\x05\x09",
    "a negative base": b"\x80\x00\x00\x01\x85\x00\x00",
    "values that fall below zero": b"\xc4\x03\x05\x01\xff",
}
CUT = {"of values": b"\x5e\x10\x01", "of patches": b"\x80\x00\x00", "of steps": b"\xc0\x02\x85", "in its head": b"\x40"}


@pytest.mark.parametrize("data", NEGATIVE.values(), ids=NEGATIVE)
def test_negative_lengths_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="negative"):
        check_lengths(data, 2**40)


@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
def test_runs_that_end_early_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        check_lengths(data, 2**40)


@pytest.mark.parametrize(
    "run", [NEGATIVE["steps below zero"], b"\x38" + b"\x00\x00\x7f" + b"\xff" * 5], ids=["negative", "huge"]
)
@pytest.mark.parametrize("columns", ["a ARRAY<BOOLEAN>", "a STRING", "a MAP<INT, INT>", "a BYTES", "a ROW<b STRING>"])
def test_a_file_with_such_lengths_is_refused(columns: str, run: bytes) -> None:
    fields = parse_columns(columns)
    values = {
        "a ARRAY<BOOLEAN>": pa.array([[True] * i for i in (3, 1, 4) * 9]),
        "a STRING": pa.array(["x" * i for i in (3, 1, 4) * 9]),
        "a MAP<INT, INT>": pa.array(
            [[(j, j) for j in range(i)] for i in (3, 1, 4) * 9], pa.map_(pa.int32(), pa.int32())
        ),
        "a BYTES": pa.array([b"x" * i for i in (3, 1, 4) * 9]),
        "a ROW<b STRING>": pa.array([{"b": "x" * i} for i in (3, 1, 4) * 9]),
    }[columns]
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": values}), sink, compression="uncompressed", dictionary_key_size_threshold=0.0)
    file = sink.getvalue()
    at, stream = lengths_of(file)
    assert len(stream) > len(run)
    damaged = file[:at] + run + file[at + len(run) :]
    assert sum(b.num_rows for b in OrcFormat().read(pa.BufferReader(file), ReadRequest("f-1", fields))) == 27
    with pytest.raises(CorruptTable, match="f-1"):
        list(OrcFormat().read(pa.BufferReader(damaged), ReadRequest("f-1", fields)))
