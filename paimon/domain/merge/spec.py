"""What a merge must know of a table: its key, the order of records of one key, and the engine.

Law: two merges with equal specs of equal rows in equal grouping answer equal rows. Tables handed to a merge hold the
columns by their table names, plus `_SEQUENCE_NUMBER` and `_VALUE_KIND` (and `_LEVEL` where `lookup`).
Source: `CoreOptions`, `MergeFunctionFactory`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from attrs import evolve, field, frozen

from paimon.domain.merge.aggregate.rule import LAST_NON_NULL_VALUE, LAST_VALUE, PRIMARY_KEY, Aggregate, function_of
from paimon.domain.merge.sequence_groups import SequenceGroup, sequence_groups
from paimon.domain.merge.sort_keys import wholly_ordered
from paimon.domain.options.table_options import ROW_KIND_FLAG, TableOptions
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField, DoubleType, FloatType

_FLOATS = (FloatType, DoubleType)
AGGREGATING = ("aggregation", "partial-update")
"""The engines whose columns have aggregate functions."""


@frozen(hash=False)
class MergeSpec:
    """How rows of one key become one row.

    Parameters
    ----------
    key_fields : tuple of DataField
        The trimmed primary key, in key order.
    value_fields : tuple of DataField
        The other columns of the table.
    sequence_fields : tuple of str
        User sequence columns, which order the records of a key before `_SEQUENCE_NUMBER` does. Nulls always lose.
    sequence_descending : bool
        True where the smallest user sequence wins.
    retracts_first : bool
        True where of equal user sequences a retract comes before an add, whichever arrived first.
    engine : str
        Name of the merge engine.
    ignore_delete : bool
        Skip -D and -U records that meet others of their key.
    lookup : bool
        Of one key only records of level 0 (or less) and the one of the smallest level above take part.
    options : TableOptions
        The table's options, for engines that have their own.
    ordered_floats : frozenset of str
        Floating sequence columns that are ordered as keys are, NaN last and -0.0 before 0.0; in others NaN equals
        everything, and the zeros are one.
    partition_keys : tuple of str
        The value columns that belong to the primary key: nothing is aggregated in them, nor taken back.
    """

    key_fields: tuple[DataField, ...]
    value_fields: tuple[DataField, ...] = ()
    sequence_fields: tuple[str, ...] = ()
    sequence_descending: bool = False
    retracts_first: bool = False
    engine: str = "deduplicate"
    ignore_delete: bool = False
    lookup: bool = False
    options: TableOptions = field(factory=TableOptions)
    partition_keys: tuple[str, ...] = ()
    ordered_floats: frozenset[str] = frozenset()

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the key columns."""
        return tuple(f.name for f in self.key_fields)

    def buffered(self, bucket: DataField) -> MergeSpec:
        """The spec of a write buffer, with a column for the bucket before the key: no level is known there."""
        by_name = {f.name: f for f in self.fields}
        ordered = wholly_ordered(self.key_fields, [by_name[name] for name in self.sequence_fields])
        # Dropped deletes never come.
        keys = (bucket, *self.key_fields)
        return evolve(self, key_fields=keys, lookup=False, ignore_delete=False, ordered_floats=ordered)

    @property
    def may_meet_nans(self) -> bool:
        """Whether a NaN may stand among user sequences: then it matters how sorted runs are merged."""
        return any(f.name in self.sequence_fields and isinstance(f.type, _FLOATS) for f in self.fields)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """All columns: the key, then the others."""
        return (*self.key_fields, *self.value_fields)

    def columns_needed(self, wanted: Collection[str]) -> frozenset[str]:
        """The columns that a merge must see to make those wanted."""
        deciding = [g for g in self.sequence_groups if g.removes or {*g.members, *g.sequence} & {*wanted}]
        return frozenset({*wanted, *self.key_names, *self.sequence_fields, *(n for g in deciding for n in g.sequence)})

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """How each value column is aggregated, for the engines that do."""
        return tuple(Aggregate.of(f, self._function_of(f.name), self.options) for f in self.value_fields)

    def _function_of(self, column: str) -> str:
        groups = self.sequence_groups
        if column in self.sequence_fields and self.engine == "aggregation":
            return LAST_VALUE
        if any(column in group.sequence for group in groups):
            return LAST_VALUE
        if column in self.partition_keys:
            return PRIMARY_KEY
        plain = LAST_VALUE if any(column in group.members for group in groups) else LAST_NON_NULL_VALUE
        return function_of(column, self.options) or plain

    @property
    def sequence_groups(self) -> tuple[SequenceGroup, ...]:
        """The sequence groups of the partial-update engine."""
        return sequence_groups(self.options) if self.engine == "partial-update" else ()

    def is_aggregated(self, column: str) -> bool:
        """Whether a function other than that of plain columns was chosen for a column."""
        return function_of(column, self.options) is not None

    @property
    def removes_on_delete(self) -> bool:
        """Whether a -D ends what the engine merged before."""
        if self.engine == "partial-update":
            return self.options.partial_update_remove_record_on_delete
        return self.options.aggregation_remove_record_on_delete

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions) -> MergeSpec:
        """The spec of a primary-key table."""
        keys = schema.trimmed_primary_keys
        return cls(
            key_fields=schema.key_fields,
            value_fields=tuple(f for f in schema.fields if f.name not in keys),
            sequence_fields=options.sequence_fields,
            sequence_descending=options.sequence_descending,
            retracts_first=bool(options.sequence_fields) and ROW_KIND_FLAG in options.sequence_auto_padding,
            engine=options.merge_engine,
            ignore_delete=options.ignore_delete,
            lookup=options.needs_lookup and options.merge_engine != "first-row",
            options=options,
            partition_keys=schema.partition_keys,
        )
