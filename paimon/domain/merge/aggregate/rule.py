"""What the aggregate functions and the merge engines share: how a column is aggregated, and what a record does to it.

Invariant: the options of the column decide, and the default function of the table. Every spelling of a function means
the same function. An engine assigns one action to each record and column; a function needs no other knowledge of the
engine.

Source: `CoreOptions`, `FieldAggregatorFactory`, `FieldAggregator` and its callers.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.options.known_options import canonical_function
from paimon.domain.options.parse import parse_bool, parse_int, parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.types.data_types import DataField

LAST_VALUE = "last_value"
LAST_NON_NULL_VALUE = "last_non_null_value"
PRIMARY_KEY = "primary-key"

SKIP = 0
"""The record does not change the value."""
ADD = 1
"""`agg`: the record is newer than the value."""
ADD_OLDER = 2
"""`aggReversed`: the record is older than what its sequence group holds."""
RETRACT = 3
"""`retract`: the record takes its value back."""
SET = 4
"""The value of the record replaces the value; no function is called."""
CLEAR = 5
"""The value becomes null."""


@frozen
class Aggregate:
    """The aggregate function of a column, with its options."""

    column: DataField
    function: str
    # whether -U and -D records leave the value unchanged
    ignore_retract: bool = False
    # `listagg`, `collect`: whether each element occurs once
    distinct: bool = False
    # `listagg`: the text between elements
    delimiter: str = ","
    # `nested_update`, `nested_partial_update`: the fields that identify a nested row
    nested_key: tuple[str, ...] = ()
    # the fields that order nested rows with the same key
    nested_sequence: tuple[str, ...] = ()
    # how nested rows with a null in their key are treated: `merge`, `ignore` or `error`
    null_keys: str = "merge"
    # `nested_update`: the maximum number of nested rows; None for no limit
    count_limit: int | None = None
    # `merge_map_with_keytime`: the field that orders values with one key; None for the last field
    time_field: str | None = None

    @classmethod
    def of(cls, column: DataField, function: str, options: TableOptions) -> Aggregate:
        """Return a column's aggregate by the options, in any spelling; `check_aggregates` checks it."""

        def read_text(ending: str) -> str | None:
            """Return the text of an option of the column."""
            return options.values.get(f"fields.{column.name}.{ending}")

        def read_flag(ending: str) -> bool:
            """Return an option of the column that is true or false."""
            return parse_bool(read_text(ending) or "false", f"fields.{column.name}.{ending}")

        limit, delimiter = read_text("count-limit"), read_text("list-agg-delimiter")
        return cls(
            column=column,
            function=canonical_function(function),
            ignore_retract=read_flag("ignore-retract"),
            distinct=read_flag("distinct"),
            delimiter="," if delimiter is None else delimiter,
            nested_key=parse_list(read_text("nested-key") or ""),
            nested_sequence=parse_list(read_text("nested-sequence-field") or ""),
            null_keys=read_text("nested-key-null-strategy") or "merge",
            count_limit=None if limit is None else parse_int(limit, f"fields.{column.name}.count-limit"),
            time_field=read_text("ts-field"),
        )


def function_of(column: str, options: TableOptions) -> str | None:
    """Return the name of a column's function: its own or the default one; None where no option sets one."""
    own = options.values.get(f"fields.{column}.aggregate-function")
    return options.default_aggregate_function if own is None else own
