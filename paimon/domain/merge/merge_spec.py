"""What a merge must know of a table: its key, the order of the records of one key, and the engine.

A table to merge has its columns by their names, `_SEQUENCE_NUMBER` and `_VALUE_KIND`, and `_LEVEL` where `lookup`.

Invariant: two merges with equal specs of equal rows in the same order return equal rows. A column is in at most one
sequence group. A group is ordered by all its sequence fields together, nulls first.

Source: `CoreOptions`, `MergeFunctionFactory`, `PartialUpdateMergeFunction.Factory`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from attrs import evolve, field, frozen

from paimon.domain.columns.java_float_order import FLOAT_TYPES, SequenceOrder, find_totally_ordered_floats
from paimon.domain.merge.aggregate.rule import LAST_NON_NULL_VALUE, LAST_VALUE, PRIMARY_KEY, Aggregate, function_of
from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import ROW_KIND_FLAG, TableOptions
from paimon.domain.schema.rules.merge import field_options
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField, DataType, DecimalType

_INT_DIGITS = 9


@frozen(hash=False)
class MergeSpec:
    """How the records of one key become one row."""

    # the trimmed primary key, in key order
    key_fields: tuple[DataField, ...]
    # the other columns of the table
    value_fields: tuple[DataField, ...] = ()
    # the user sequence, compared before `_SEQUENCE_NUMBER`; nulls always lose
    sequence_fields: tuple[str, ...] = ()
    # whether the smallest user sequence wins
    sequence_descending: bool = False
    # whether a retract precedes an add with an equal user sequence, whichever was written first
    retracts_first: bool = False
    engine: str = "deduplicate"
    # whether -D and -U records are left out if their key has other records
    ignore_delete: bool = False
    # whether only records of level 0 (or less) and the record of the smallest higher level are visible
    lookup: bool = False
    options: TableOptions = field(factory=TableOptions)
    # the value columns that belong to the primary key; they are neither aggregated nor retracted
    partition_keys: tuple[str, ...] = ()
    # floating sequence fields in the total order; the others are in the operator order
    ordered_floats: frozenset[str] = frozenset()

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(f.name for f in self.key_fields)

    @property
    def sorted_key_types(self) -> list[DataType]:
        """The types of the key by which the rows of each file are ordered; empty if files have another order."""
        return [] if self.is_clustered else [f.type for f in self.key_fields]

    @property
    def is_clustered(self) -> bool:
        """Whether files above level 0 are ordered by other columns than the key, and hold each live key once."""
        return self.options.pk_clustering_override

    def for_write_buffer(self, bucket: DataField) -> MergeSpec:
        """Return the spec for a write buffer, which has a bucket column in front of the key, and no levels."""
        by_name = {f.name: f for f in self.fields}
        ordered = find_totally_ordered_floats(self.key_fields, [by_name[name] for name in self.sequence_fields])
        # Dropped deletes never come.
        keys = (bucket, *self.key_fields)
        return evolve(self, key_fields=keys, lookup=False, ignore_delete=False, ordered_floats=ordered)

    @property
    def sequence_order(self) -> SequenceOrder:
        """How user sequences order the records of one key."""
        return SequenceOrder(self.sequence_fields, self.sequence_descending, self.retracts_first, self.ordered_floats)

    @property
    def may_meet_nans(self) -> bool:
        """Whether a user sequence may hold a NaN, so that the order of sorted runs matters."""
        return any(f.name in self.sequence_fields and isinstance(f.type, FLOAT_TYPES) for f in self.fields)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """All columns: the key, then the others."""
        return (*self.key_fields, *self.value_fields)

    def columns_needed(self, wanted: Collection[str]) -> frozenset[str]:
        """Return the columns that a merge must read to compute the wanted ones."""
        deciding = [g for g in self.sequence_groups if g.removes or {*g.members, *g.sequence} & {*wanted}]
        return frozenset({*wanted, *self.key_names, *self.sequence_fields, *(n for g in deciding for n in g.sequence)})

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregate of each value column, for the engines that have them."""
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
        """The sequence groups of the partial-update engine; none for other engines."""
        return parse_sequence_groups(self.options) if self.engine == "partial-update" else ()

    def is_aggregated(self, column: str) -> bool:
        """Return whether an option gives a column an aggregate function."""
        return function_of(column, self.options) is not None

    @property
    def removes_on_delete(self) -> bool:
        """Whether a -D replaces what the engine merged before."""
        if self.engine == "partial-update":
            return self.options.partial_update_remove_record_on_delete
        return self.options.aggregation_remove_record_on_delete

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions) -> MergeSpec:
        """Return the spec of a primary-key table."""
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


def find_summed_decimals(schema: TableSchema, options: TableOptions) -> frozenset[str]:
    """Return the columns of DECIMAL with up to 9 digits that may hold sums with more, which take 64 bits."""
    if not schema.primary_keys or options.merge_engine not in ("aggregation", "partial-update"):
        return frozenset()
    decimals = (a.column for a in MergeSpec.of(schema, options).aggregates if a.function == "sum")
    return frozenset(f.name for f in decimals if isinstance(f.type, DecimalType) and f.type.precision <= _INT_DIGITS)


@frozen
class SequenceGroup:
    """A sequence group: columns of a partial-update table that have a sequence of their own."""

    sequence: tuple[str, ...]
    # the columns of the group that are not sequence fields
    members: tuple[str, ...]
    # whether a -D in order removes the complete row
    removes: bool = False


def parse_sequence_groups(options: TableOptions) -> tuple[SequenceGroup, ...]:
    """Return the groups that the options define."""
    removing = {*options.partial_update_remove_record_on_sequence_group}
    return tuple(
        SequenceGroup(sequence, parse_list(value), bool(removing & {*sequence}))
        for _, sequence, value in field_options(options, "sequence-group")
    )
