"""A user's table as the columns of a table, in its order and its canonical types.

Law: nothing is lost and nothing guessed: columns go by name, values stay what they are, missing nullable columns are
null (or their default), and whatever does not fit is one InvalidRequest that shows both schemas where they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from paimon.domain.columns.accept import accepts
from paimon.domain.columns.convert import converted
from paimon.domain.columns.fill import filled
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.row.values import literal
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField
from paimon.domain.types.text import format_type


def conform(table: pa.Table, fields: Sequence[DataField], what: str) -> pa.Table:
    """The table's data as these columns.

    Parameters
    ----------
    table : pa.Table
        Columns by name, in any order, of any type that `accept.accepts`.
    fields : sequence of DataField
        The columns wanted.
    what : str
        What the data goes to, for messages (``"table shop.orders"``).

    Raises
    ------
    InvalidRequest
        For unknown, missing and repeated columns, wrong types, nulls under NOT NULL, values that do not fit.
    """
    _check_names(table.schema.names, fields, what)
    if not _fits(table.schema, fields):
        raise _mismatch(table.schema, fields, what)
    given = dict(zip(table.schema.names, table.columns, strict=True))
    columns = [_column(given.get(field.name), table.num_rows, field) for field in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def _check_names(names: Sequence[str], fields: Sequence[DataField], what: str) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InvalidRequest(f"the data for {what} has column {repeated[0]!r} more than once", subject=repeated[0])


def _fits(schema: pa.Schema, fields: Sequence[DataField]) -> bool:
    known = {field.name: field for field in fields}
    given = set(schema.names)
    return (
        given <= set(known)
        and all(_may_lack(field) for field in fields if field.name not in given)
        and all(accepts(known[f.name].type, f.type) for f in schema)
    )


def _may_lack(field: DataField) -> bool:
    return field.type.nullable or field.default_value is not None


def _column(given: pa.ChunkedArray | None, rows: int, field: DataField) -> pa.ChunkedArray:
    target = arrow_type(field.type)
    if given is None:
        filled = _with_default(pa.nulls(rows, target), field)
        return pa.chunked_array([converted(filled, field.type, field.name)], target)
    relaxed = field.type.with_nullable(field.default_value is not None or field.type.nullable)
    made = (_with_default(converted(chunk, relaxed, field.name), field) for chunk in given.chunks)
    return pa.chunked_array(list(made), target)


def _with_default(array: pa.Array, field: DataField) -> pa.Array:
    """Nulls replaced by the column's default, as Java does when it writes."""
    if field.default_value is None:
        return array
    return filled(array, literal(field.default_value, field.type), field.type)


def _mismatch(schema: pa.Schema, fields: Sequence[DataField], what: str) -> InvalidRequest:
    """One line for each column that differs: the table's side, the data's side, and what is wrong."""
    given = {field.name: field.type for field in schema}
    known = {field.name: field for field in fields}
    lines, first = [], ""
    for field in fields:
        wanted = f"{field.name} {format_type(field.type)}"
        if field.name not in given and not _may_lack(field):
            lines.append((wanted, "(missing)", "NOT NULL needs a value"))
        elif field.name in given and not accepts(field.type, given[field.name]):
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
        f"the data does not fit {what}:\n{_aligned([('table', 'data', ''), *lines])}\n", subject=first,
        hint="rename, drop or cast these columns",
    )


def _aligned(lines: Iterable[tuple[str, str, str]]) -> str:
    rows = list(lines)
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    texts = (f"  {a:<{widths[0]}} | {b:<{widths[1]}} | {c}".rstrip(" |") for a, b, c in rows)
    return "\n".join(texts)
