"""Round the numbers of rows to the columns of a table, as INSERT of SQL casts them.

Invariant: FLOAT and DECIMAL columns lose digits only. A number that is too large is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.assignment.evaluate_columnar import fit_values
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DecimalType, FloatType


def _by_name(fields: Sequence[DataField]) -> dict[str, DataField]:
    return {f.name: f for f in fields if isinstance(f.type, FloatType | DecimalType)}


@frozen(eq=False)
class RoundNumbers:
    """Rounds the numbers of batches; a picklable value that tasks call.

    Parameters
    ----------
    fields : sequence of DataField
        The columns of the table.
    """

    fields: dict[str, DataField] = field(converter=_by_name)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows of each batch.

        Raises
        ------
        InvalidRequest
            A number does not fit its column.
        """
        for batch in batches:
            yield self.round_rows(pa.Table.from_batches([batch]))

    def round_rows(self, rows: pa.Table) -> pa.Table:
        """Return rows whose numbers have the types of the table where they would lose digits."""
        for position, name in enumerate(rows.schema.names):
            column = self.fields.get(name)
            if column is not None and _loses_digits(rows.schema.field(position).type, column):
                chunks = [fit_values(chunk, column) for chunk in rows.column(position).chunks]
                rows = rows.set_column(position, name, pa.chunked_array(chunks, arrow_type(column.type)))
        return rows


def _loses_digits(given: pa.DataType, column: DataField) -> bool:
    if isinstance(column.type, FloatType):
        return bool(pa.types.is_float64(given) or pa.types.is_decimal(given))
    assert isinstance(column.type, DecimalType)
    return bool(pa.types.is_decimal(given)) and given.scale > column.type.scale
