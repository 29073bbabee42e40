"""Which types the values of a column may become when its type changes.

Law: an implicit cast loses nothing that SQL cares about, an explicit one may; what neither table allows cannot become each other.
The casts themselves live with the columns. Source: `DataTypeCasts`, `CastExecutors`.
"""

from __future__ import annotations

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_INTEGERS = dt.INTEGER_TYPES


def casts_implicitly(source: DataType, target: DataType) -> bool:
    """Whether every value of the one type is one of the other, or nearly (FLOAT of a large number)."""
    return False


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether values of the one type can be turned into the other at all."""
    return False
