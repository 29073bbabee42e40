"""Hypothesis strategies for everything that the format knows: types, values, tables, schemas and histories.

Invariant: drawn data is valid. A test that needs invalid data changes it.
"""

from importlib.util import find_spec

from paimon.domain.extras import missing_extra

if find_spec("hypothesis") is None:
    raise missing_extra(__name__, "hypothesis")

from paimon.testing.strategies.histories import CompactStep, Step, WriteStep, histories, keyed_rows
from paimon.testing.strategies.merging import MergingTable, merging_tables
from paimon.testing.strategies.schemas import append_schemas, primary_key_schemas, schemas
from paimon.testing.strategies.tables import arrow_tables, rows, to_arrow_table
from paimon.testing.strategies.types import atomic_types, column_names, data_types, fields_of, key_types, types_named
from paimon.testing.strategies.values import values_of

__all__ = [
    "CompactStep",
    "MergingTable",
    "Step",
    "WriteStep",
    "append_schemas",
    "arrow_tables",
    "atomic_types",
    "column_names",
    "data_types",
    "fields_of",
    "histories",
    "key_types",
    "keyed_rows",
    "merging_tables",
    "primary_key_schemas",
    "rows",
    "schemas",
    "to_arrow_table",
    "types_named",
    "values_of",
]
