"""User data as the columns of a table, in its order and its canonical types.

Invariant: nothing is lost or guessed. Columns are matched by name, values do not change, and missing nullable columns
are null or have their default. Data that does not fit is one InvalidRequest that shows both schemas where they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.columns.accept import can_accept
from paimon.domain.columns.convert import convert_array
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type


def conform_to_fields(table: pa.Table, fields: Sequence[DataField], what: str) -> pa.Table:
    """Convert data to canonical columns, one for each field in order; columns of `table` are matched by name.

    `what` is the target of the data in errors, such as "table shop.orders". Unknown, missing and repeated columns,
    wrong types, and nulls under NOT NULL are refused.
    """
    check_fit(table.schema, fields, what)
    given = dict(zip(table.schema.names, table.columns, strict=True))
    columns = [_column(given.get(field.name), table.num_rows, field) for field in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def check_fit(schema: pa.Schema, fields: Sequence[DataField], what: str) -> None:
    """Refuse unknown and repeated columns, missing ones that need a value, and wrong types."""
    _check_names(schema.names, what)
    if not _fits(schema, fields):
        raise _mismatch(schema, fields, what)


def _check_names(names: Sequence[str], what: str) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InvalidRequest(
            f"The data for {what} has column {repeated[0]!r} more than once",
            subject=repeated[0],
            hint="rename or drop one of them",
        )


def _fits(schema: pa.Schema, fields: Sequence[DataField]) -> bool:
    known = {field.name: field for field in fields}
    given = set(schema.names)
    return (
        given <= set(known)
        and all(_may_lack(field) for field in fields if field.name not in given)
        and all(can_accept(known[f.name].type, f.type) for f in schema)
    )


def _may_lack(field: DataField) -> bool:
    return field.type.nullable or field.default_value is not None


def _column(given: pa.ChunkedArray | None, rows: int, field: DataField) -> pa.ChunkedArray:
    target = arrow_type(field.type)
    if given is None:
        filled = _with_default(pa.nulls(rows, target), field)
        return pa.chunked_array([convert_array(filled, field.type, field.name)], target)
    relaxed = field.type.with_nullable(field.default_value is not None or field.type.nullable)
    made = (_with_default(convert_array(chunk, relaxed, field.name), field) for chunk in given.chunks)
    return pa.chunked_array(list(made), target)


def _with_default(array: pa.Array, field: DataField) -> pa.Array:
    """Replace nulls by the column's default, as Java does when it writes."""
    if field.default_value is None:
        return array
    return fill_nulls(array, parse_literal(field.default_value, field.type), field.type)


def _mismatch(schema: pa.Schema, fields: Sequence[DataField], what: str) -> InvalidRequest:
    """Build the error with one line for each column that differs: the table's side, the data's side, the problem."""
    given = {field.name: field.type for field in schema}
    known = {field.name: field for field in fields}
    lines, first = [], ""
    for field in fields:
        wanted = f"{field.name} {format_type(field.type)}"
        if field.name not in given and not _may_lack(field):
            lines.append((wanted, "(missing)", "NOT NULL needs a value"))
        elif field.name in given and not can_accept(field.type, given[field.name]):
            lines.append((wanted, f"{field.name} {given[field.name]}", "another type"))
        else:
            continue
        first = first or field.name
    for name in given:
        if name not in known:
            hint = did_you_mean(name, [k for k in known if k not in given] or known) or ""
            lines.append(("(no such column)", f"{name} {given[name]}", hint))
            first = first or name
    return InvalidRequest(
        f"The data does not fit {what}:\n{_align_lines([('table', 'data', ''), *lines])}\n",
        subject=first,
        hint="rename, drop or cast these columns",
    )


def _align_lines(lines: Iterable[tuple[str, str, str]]) -> str:
    rows = list(lines)
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    texts = (f"  {a:<{widths[0]}} | {b:<{widths[1]}} | {c}".rstrip(" |") for a, b, c in rows)
    return "\n".join(texts)


def fill_nulls(array: pa.Array, default: Any, data_type: DataType) -> pa.Array:
    """Replace the nulls of a canonical array by a default; an array without nulls is returned itself."""
    if array.null_count == 0:
        return array
    return pc.if_else(array.is_null(), to_array([default], data_type)[0], array)
