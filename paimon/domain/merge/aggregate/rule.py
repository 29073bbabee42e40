"""How one column is aggregated: the function and its options.

Invariant: only the options of the column decide. Every spelling of a function means the same function.

Source: `CoreOptions`, `FieldAggregatorFactory`.
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


@frozen
class Aggregate:
    """The aggregate of a column.

    Parameters
    ----------
    column : DataField
        The aggregated column.
    function : str
        Name of the function.
    ignore_retract : bool
        Whether -U and -D records do not change the value.
    distinct : bool
        `listagg`, `collect`: whether each element occurs once.
    delimiter : str
        `listagg`: the text between elements.
    nested_key, nested_sequence : tuple of str
        `nested_update`, `nested_partial_update`: the fields that identify a row, and that order rows of one key.
    null_keys : str
        What happens to rows with a null in their nested key: ``merge``, ``ignore`` or ``error``.
    count_limit : int, optional
        `nested_update`: the maximal number of rows.
    time_field : str, optional
        `merge_map_with_keytime`: the field that orders values with one key; by default the last field.
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
        """Return the aggregate that the options of a table define for a column.

        Parameters
        ----------
        column : DataField
            The column.
        function : str
            Name of the function, in any of its spellings.
        options : TableOptions
            The options of the table.

        Returns
        -------
        Aggregate
            Its options are parsed but not checked; see `check_aggregates`.
        """

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
