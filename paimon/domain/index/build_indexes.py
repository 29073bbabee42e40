"""Build the file indexes of one data file while its rows are written.

Invariant: the indexes describe exactly the added rows, in their order. All indexes of a column but bloom filters are
built from one numbering of its keys. No Python step is taken for a row.
Source: `DataFileIndexWriter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.index.bit_sliced_index import encode_bit_sliced_index
from paimon.domain.index.bitmap_index import encode_bitmap_index
from paimon.domain.index.bloom_filter import BloomFilterBuilder, BloomSize
from paimon.domain.index.container import ColumnIndex, order_computed_columns, order_computed_names, order_put_names
from paimon.domain.index.index_keys import KeyForm, NumberedRows, RowNumberer
from paimon.domain.index.range_bitmap import encode_range_bitmap
from paimon.domain.schema.declared_indexes import DeclaredIndex, value_type
from paimon.domain.types.arrow_arrays import make_scalar
from paimon.domain.types.data_types import DataField

BLOOM_FILTER = "bloom-filter"


class IndexBuilder:
    """The indexes of one data file; closed once."""

    def __init__(self, declared: Sequence[DeclaredIndex], fields: Sequence[DataField]) -> None:
        by_name = {f.name: f for f in fields}
        self._declared = _sort_as_java(declared)
        self._forms = {index.name: KeyForm.of(value_type(index, by_name[index.column])) for index in declared}
        self._filters = {
            index.name: BloomFilterBuilder(
                self._forms[index.name], BloomSize.of(index.items, index.false_positive_rate)
            )
            for index in declared
            if index.kind == BLOOM_FILTER
        }
        self._numberers = {
            index.name: RowNumberer(self._forms[index.name]) for index in declared if index.kind != BLOOM_FILTER
        }
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Add rows, whose columns have canonical Arrow types."""
        self._rows += table.num_rows
        for index in {index.name: index for index in self._declared}.values():
            takers = [t for t in (self._filters.get(index.name), self._numberers.get(index.name)) if t is not None]
            for chunk in table[index.column].chunks:
                values = chunk if index.map_key is None else _look_up(chunk, index.map_key)
                for taker in takers:
                    taker.add(values)

    def close(self) -> list[ColumnIndex]:
        """Return the indexes, in the order in which Java adds them to the container."""
        rows = {name: numberer.close() for name, numberer in self._numberers.items()}
        indexes = [(index.name, index.kind, self._encode(index, rows)) for index in self._declared]
        # Without bytes, only the index of a map key says something.
        return [index for index in indexes if index[2] is not None or not self._rows]

    def _encode(self, index: DeclaredIndex, numbered: Mapping[str, NumberedRows]) -> bytes | None:
        """Return the bytes of an index; None if it cannot contain the values, or has no rows of a map key."""
        if index.map_key is not None and not self._rows:
            return None
        if index.kind == BLOOM_FILTER:
            return self._filters[index.name].close()
        form, rows = self._forms[index.name], numbered[index.name]
        if index.kind == "bitmap":
            return encode_bitmap_index(rows.group(), form, index.version, index.block_bytes)
        if index.kind == "bsi":
            return encode_bit_sliced_index(rows)
        return encode_range_bitmap(rows, form, index.chunk_bytes(form.data_type))


def _sort_as_java(declared: Sequence[DeclaredIndex]) -> tuple[DeclaredIndex, ...]:
    """Return the indexes in the order in which Java adds them to the container, by kind and then by column."""
    columns = list(dict.fromkeys((index.column, index.map_key) for index in declared))
    by_column = [i for n in order_computed_columns(columns) for i in declared if (i.column, i.map_key) == columns[n]]
    ordered: list[DeclaredIndex] = []
    for kind in order_computed_names([index.kind for index in by_column]):
        own = [index for index in by_column if index.kind == kind]
        for column in order_put_names(list(dict.fromkeys(index.column for index in own))):
            keys = {index.map_key or "": index for index in own if index.column == column}
            ordered += [keys[key] for key in order_put_names(list(keys))]
    return tuple(ordered)


def _look_up(maps: pa.Array, key: str) -> pa.Array:
    """Return the value of a key in each map; null where the map is null or lacks the key."""
    return pc.map_lookup(maps, make_scalar(key, maps.type.key_type), "first")
