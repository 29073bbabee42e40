"""How one column is aggregated: the function and its options.

Law: a column's own options only; older names of functions mean the newer ones. Source: `CoreOptions`,
`FieldAggregatorFactory`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.options.parse import parse_bool, parse_int, parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.types.data_types import DataField

OLDER_NAMES = {"first_not_null_value": "first_non_null_value", "nested-update": "nested_update"}
LAST_VALUE = "last_value"
LAST_NON_NULL_VALUE = "last_non_null_value"
PRIMARY_KEY = "primary-key"


@frozen
class Aggregate:
    """The aggregate of a column.

    Parameters
    ----------
    column : DataField
        The column.
    function : str
        Name of the function.
    ignore_retract : bool
        -U and -D records leave the value alone.
    distinct : bool
        `listagg`, `collect`: each element once.
    delimiter : str
        `listagg`: what stands between elements.
    nested_key, nested_sequence : tuple of str
        `nested_update`, `nested_partial_update`: the fields that identify a row, and those that order rows of one key.
    null_keys : str
        What becomes of rows with a null in their nested key: ``merge``, ``ignore`` or ``error``.
    count_limit : int, optional
        `nested_update`: how many rows are kept.
    time_field : str, optional
        `merge_map_with_keytime`: the field that orders values of one key; the last one by default.
    """

    column: DataField
    function: str
    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_sequence: tuple[str, ...] = ()
    null_keys: str = "merge"
    count_limit: int | None = None
    time_field: str | None = None

    @classmethod
    def of(cls, column: DataField, function: str, options: TableOptions) -> Aggregate:
        """The aggregate that a table's options say for a column."""
        def text(ending: str) -> str | None:
            return options.values.get(f"fields.{column.name}.{ending}")

        def flag(ending: str) -> bool:
            return parse_bool(text(ending) or "false", f"fields.{column.name}.{ending}")

        limit, delimiter = text("count-limit"), text("list-agg-delimiter")
        return cls(
            column=column,
            function=OLDER_NAMES.get(function, function),
            ignore_retract=flag("ignore-retract"),
            distinct=flag("distinct"),
            delimiter="," if delimiter is None else delimiter,
            nested_key=parse_list(text("nested-key") or ""),
            nested_sequence=parse_list(text("nested-sequence-field") or ""),
            null_keys=text("nested-key-null-strategy") or "merge",
            count_limit=None if limit is None else parse_int(limit, f"fields.{column.name}.count-limit"),
            time_field=text("ts-field"),
        )


def function_of(column: str, options: TableOptions) -> str | None:
    """The name of the function that the options give a column, its own or the default one; None where there is none."""
    own = options.values.get(f"fields.{column}.aggregate-function")
    return options.default_aggregate_function if own is None else own
