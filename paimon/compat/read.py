"""Read builders by the names of pypaimon.

Source: `pypaimon.read.read_builder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paimon.compat.catalog_exception import state_errors
from paimon.compat.data_types import DataField
from paimon.compat.explain import ExplainResult, explain_plan
from paimon.compat.predicate import Predicate, PredicateBuilder
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.schema import from_paimon_fields
from paimon.compat.table_read import TableRead
from paimon.compat.table_scan import TableScan, to_paimon_builder
from paimon.domain.types.arrow import fields_from_arrow

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable


class ReadBuilder(PeerClass):
    """What to read; made by `FileStoreTable.new_read_builder`. Each method changes the builder and returns it."""

    def __init__(self, table: FileStoreTable) -> None:
        self.table = table
        self._predicate: Predicate | None = None
        self._partition_filter: Predicate | None = None
        self._columns: dict[str, str] | None = None
        self._limit: int | None = None

    def with_filter(self, predicate: Predicate | None) -> ReadBuilder:
        """Read the rows where a predicate is true; it replaces an earlier one."""
        self._predicate = predicate
        return self

    def with_partition_filter(self, partition_filter: Predicate | Mapping[str, Any] | None) -> ReadBuilder:
        """Read the partitions where a predicate is true, or whose columns have these values."""
        if isinstance(partition_filter, Mapping):
            build = PredicateBuilder(self.table.fields)
            parts = [build.is_null(k) if v is None else build.equal(k, v) for k, v in partition_filter.items()]
            partition_filter = build.and_predicates(parts)
        self._partition_filter = partition_filter
        return self

    def with_projection(self, projection: Sequence[str] | Mapping[str, str] | None) -> ReadBuilder:
        """Read these columns, in this order; ``"a.b"`` is a field of a row, and becomes the column ``a_b``."""
        if isinstance(projection, Mapping):
            refuse("a projection of expressions", "compute them in SQL: Catalog.sql of the package paimon")
        self._columns = None if projection is None else name_columns(projection, self.table)
        return self

    def with_read_type(self, read_type: Sequence[DataField]) -> ReadBuilder:
        """Read the columns of these fields."""
        self._columns = {column.name: column.name for column in read_type}
        return self

    def with_limit(self, limit: int | None) -> ReadBuilder:
        """Read at most so many rows."""
        self._limit = limit
        return self

    def new_scan(self) -> TableScan:
        """Return the object that plans splits."""
        return TableScan(self.table, self._filter(), self._limit, self._partition_filter)

    def new_read(self) -> TableRead:
        """Return the object that reads splits."""
        with state_errors():
            return TableRead(self.table, self._filter(), self._columns, limit=self._limit)

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns that are read."""
        return PredicateBuilder(self.read_type())

    def read_type(self) -> list[DataField]:
        """Return the columns that are read."""
        if self._columns is None:
            return self.table.fields
        schema = to_paimon_builder(self.table, columns=self._columns).new_read().arrow_schema
        fields = from_paimon_fields(fields_from_arrow(schema))
        ids = {column.name: column.id for column in self.table.fields}
        for column, name in zip(fields, self._columns, strict=True):
            column.name, column.id = name, ids.get(name, column.id)
        return fields

    def explain(self, verbose: bool = False) -> ExplainResult:
        """Return what would be read, and what is pruned at each step."""
        planned = to_paimon_builder(self.table, self._filter(), self._partition_filter).new_scan().plan().planned
        projection = None if self._columns is None else list(self._columns)
        return explain_plan(self.table, planned, self._filter(), (projection, self._limit), verbose)

    def _filter(self) -> Predicate | None:
        """Return the predicate, with fields of rows by their paths."""
        if self._predicate is None or self._columns is None:
            return self._predicate
        return self._predicate.with_names(self._columns)


def name_columns(projection: Sequence[str], table: FileStoreTable) -> dict[str, str]:
    """Return the path of each column of a projection by the name that pypaimon gives it in results."""
    names: dict[str, str] = {}
    top_level = set(table.field_names)
    for path in projection:
        name = path if path in top_level else path.replace(".", "_")
        names[name if name not in names else path] = path
    return names
