"""Find the length of the longest string of a Parquet dictionary, which a batch may hold once per row.

Invariant: the dictionary page becomes the data page of a small Parquet file with one column, which Arrow decodes. The
lengths are therefore those that Arrow finds, not those that a page states.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon.adapters.formats.guards.parquet_bytes import MAGIC, Stored
from paimon.adapters.formats.guards.parquet_pages import DictionaryPage
from paimon.adapters.formats.thrift import BINARY, I32, I64, LIST, STRUCT, ThriftList, ThriftStruct, encode

_BYTE_ARRAY, _REQUIRED, _DATA_PAGE, _PLAIN, _RLE = 6, 0, 0, 0, 3
_CODECS = (0, 1, 2, 4, 5, 6, 7)
"""The codecs that Arrow reads. For any other number, pyarrow ends the process when it looks up the name."""
_GROUPS, _COLUMNS, _META, _CODEC = 4, 1, 3, 4
_LENGTH_BYTES = 4
"""The length before each string."""


def measure_longest_values(stored: Stored, dictionaries: Sequence[DictionaryPage], codec: int) -> list[int]:
    """Return the length in bytes of the longest string of each dictionary, 0 for an empty one.

    All dictionaries are of strings and have the same codec, given by its number in the footer.
    """
    if any(d.values * _LENGTH_BYTES > d.size for d in dictionaries):
        raise ValueError("a dictionary has more strings than bytes for their lengths")
    held = [d for d in dictionaries if d.values]
    if not held:
        return [0] * len(dictionaries)
    column = pq.ParquetFile(pa.BufferReader(_build_file(stored, held, codec))).read().column(0)
    lengths = np.concatenate([pc.binary_length(piece).to_numpy() for piece in column.chunks])
    starts = np.cumsum([0] + [d.values for d in held[:-1]])
    longest = iter(np.maximum.reduceat(lengths, starts).tolist())
    return [next(longest) if d.values else 0 for d in dictionaries]


def read_codec(stored: Stored, group: int, column: int) -> int:
    """Return the number of the codec of a leaf column in a row group, as stored in the footer."""
    try:
        number = stored.footer.get(_GROUPS).values[group].get(_COLUMNS).values[column].get(_META).get(_CODEC)
    except (AttributeError, IndexError) as error:
        raise ValueError(f"the footer has no codec for column {column}") from error
    if number not in _CODECS:
        raise ValueError(f"column {column} is compressed with codec {number}, which does not exist")
    return int(number)


def _build_file(stored: Stored, dictionaries: Sequence[DictionaryPage], codec: int) -> bytes:
    """Return a Parquet file whose only column holds the values of the dictionaries."""
    pages = b"".join(_data_page_header(d) + stored.read_at(d.packed, d.start) for d in dictionaries)
    values, size = sum(d.values for d in dictionaries), sum(d.size for d in dictionaries)
    meta = _struct(
        {
            1: (I32, _BYTE_ARRAY),
            2: (LIST, ThriftList(I32, [_PLAIN])),
            3: (LIST, ThriftList(BINARY, [b"v"])),
            4: (I32, codec),
            5: (I64, values),
            6: (I64, size),
            7: (I64, len(pages)),
            9: (I64, len(MAGIC)),
        }
    )
    chunk = _struct({2: (I64, len(MAGIC)), 3: (STRUCT, meta)})
    group = _struct({1: (LIST, ThriftList(STRUCT, [chunk])), 2: (I64, size), 3: (I64, values)})
    footer = encode(_file_metadata(group, values))
    return MAGIC + pages + footer + struct.pack("<I", len(footer)) + MAGIC


def _file_metadata(group: ThriftStruct, values: int) -> ThriftStruct:
    """Return the footer of a file with one row group and one required column of byte arrays."""
    root = _struct({4: (BINARY, b"r"), 5: (I32, 1)})
    leaf = _struct({1: (I32, _BYTE_ARRAY), 3: (I32, _REQUIRED), 4: (BINARY, b"v")})
    schema, groups = ThriftList(STRUCT, [root, leaf]), ThriftList(STRUCT, [group])
    return _struct({1: (I32, 1), 2: (LIST, schema), 3: (I64, values), 4: (LIST, groups)})


def _data_page_header(dictionary: DictionaryPage) -> bytes:
    inner = _struct({1: (I32, dictionary.values), 2: (I32, _PLAIN), 3: (I32, _RLE), 4: (I32, _RLE)})
    sizes = {1: (I32, _DATA_PAGE), 2: (I32, dictionary.size), 3: (I32, dictionary.packed)}
    return encode(_struct({**sizes, 5: (STRUCT, inner)}))


def _struct(members: dict[int, tuple[int, object]]) -> ThriftStruct:
    return ThriftStruct(dict(members))
