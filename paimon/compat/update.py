"""Updates and deletes by the names of pypaimon, through the methods of this library's tables.

pypaimon prepares messages that a commit publishes. Here the messages say what to change, and the commit computes and
publishes it in one step.

Source: `pypaimon.write.table_update`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import define

from paimon.compat.predicate import Predicate, PredicateBuilder, to_paimon_predicate
from paimon.compat.refused import PeerClass, refuse

if TYPE_CHECKING:
    import paimon
    from paimon.compat.table import FileStoreTable


@define
class PendingChange:
    """A change of rows that a commit makes.

    Parameters
    ----------
    run : callable
        Makes the change of a table, with the properties of the snapshot.
    """

    run: Callable[[paimon.Table, Mapping[str, str] | None], object]

    def is_empty(self) -> bool:
        """Return False: whether rows change is known after the commit."""
        return False


def run_pending_changes(
    table: paimon.Table,
    changes: Sequence[PendingChange],
    messages: Sequence[object],
    properties: Mapping[str, str] | None,
) -> None:
    """Make one change of rows.

    Parameters
    ----------
    table : paimon.Table
        The table, with the callbacks of the commit.
    changes : sequence of PendingChange
        One change.
    messages : sequence
        Other messages of the same commit; none are possible.
    properties : mapping, optional
        Texts to store in the snapshot.

    Raises
    ------
    NotImplementedError
        The commit has other messages, too.
    """
    if len(changes) > 1 or messages:
        refuse("one commit of several updates, or of an update and rows", "commit each of them")
    changes[0].run(table, properties)


class TableUpdate(PeerClass):
    """Update and delete rows; made by `WriteBuilder.new_update`.

    Parameters
    ----------
    table : FileStoreTable
        The table.
    commit_user : str
        The name of the job.
    """

    def __init__(self, table: FileStoreTable, commit_user: str) -> None:
        self.table = table
        self.commit_user = commit_user
        self.update_cols: list[str] | None = None

    def new_predicate_builder(self) -> PredicateBuilder:
        """Return the builder of predicates on the columns of the table."""
        return PredicateBuilder(self.table.fields)

    def with_update_type(self, update_cols: Sequence[str]) -> TableUpdate:
        """Update these columns alone.

        Raises
        ------
        ValueError
            There is no such column.
        """
        unknown = [name for name in update_cols if name not in self.table.field_names]
        if unknown:
            raise ValueError(f"Column {unknown[0]} is not in table schema.")
        self.update_cols = list(dict.fromkeys(update_cols))
        return self

    def with_read_projection(self, projection: Sequence[str]) -> TableUpdate:
        """Accept the columns that functions among the assignments read: such functions are refused."""
        return self

    def update_by_predicate(
        self,
        predicate: Predicate | None,
        assignments: Mapping[str, Any],
        read_columns: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return the message that sets columns of the rows where a predicate is true.

        Parameters
        ----------
        predicate : Predicate, optional
            The rows; None for all.
        assignments : mapping
            The new value of each column.
        read_columns : sequence of str, optional
            Columns that functions among the values read; such functions are refused.

        Returns
        -------
        list
            The message to commit.

        Raises
        ------
        NotImplementedError
            A value is a function.
        """
        functions = [name for name, value in assignments.items() if callable(value)]
        if functions:
            refuse(f"a function for column {functions[0]}", "pass SQL text to Table.update of the package paimon")
        values = {name: _as_sql_value(value) for name, value in assignments.items()}
        where = _where(predicate)

        return [PendingChange(lambda table, properties: table.update(values, where, properties=properties))]

    def delete_by_predicate(self, predicate: Predicate | None) -> list[Any]:
        """Return the message that deletes the rows where a predicate is true."""
        where = _where(predicate)

        return [PendingChange(lambda table, properties: table.delete(where, properties=properties))]

    def upsert_by_arrow_with_key(self, table: pa.Table, upsert_keys: Sequence[str]) -> list[Any]:
        """Return the message that updates the rows with the same keys, and inserts the others.

        Parameters
        ----------
        table : pyarrow.Table
            The new rows.
        upsert_keys : sequence of str
            The columns that identify a row.

        Returns
        -------
        list
            The message to commit.

        Raises
        ------
        ValueError
            A key is not a column of the table or of the rows.
        """
        for key in upsert_keys:
            if key not in self.table.field_names or key not in table.column_names:
                raise ValueError(f"Upsert key {key!r} is not a column of the table and of the rows.")
        updated = [n for n in (self.update_cols or table.column_names) if n not in upsert_keys]

        def run(target: paimon.Table, properties: Mapping[str, str] | None) -> None:
            merge = target.merge(table, on=list(upsert_keys))
            if updated:
                merge = merge.when_matched_update({name: f'source."{name}"' for name in updated})
            merge.when_not_matched_insert_all().execute(properties=properties)

        return [PendingChange(run)]

    def upsert_by_key(self, rows: Any, upsert_keys: Sequence[str]) -> list[Any]:
        """Return the message that updates or inserts rows.

        Parameters
        ----------
        rows : iterable
            Rows with names of columns.
        upsert_keys : sequence of str
            As in `upsert_by_arrow_with_key`.

        Returns
        -------
        list
            The message to commit.
        """
        given = [row.to_dict() if hasattr(row, "to_dict") else dict(row) for row in rows]
        return self.upsert_by_arrow_with_key(pa.Table.from_pylist(given), upsert_keys)

    def update_by_arrow_with_row_id(self, table: pa.Table) -> list[Any]:
        """Refuse to update rows by their row ids.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("update_by_arrow_with_row_id", "call upsert_by_arrow_with_key, or Table.merge of the package paimon")

    def delete_by_row_id(self, row_ids: Sequence[int]) -> list[Any]:
        """Refuse to delete rows by their row ids.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("delete_by_row_id", "call delete_by_predicate")

    def new_shard_updator(self, shard_num: int, total_shard_count: int) -> Any:
        """Refuse to rewrite columns shard by shard.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("new_shard_updator", "call Table.update of the package paimon")

    def merge_into(self, source: Any, *, on: Any, **clauses: Any) -> list[Any]:
        """Refuse clauses of a merge in the form of pypaimon.

        Raises
        ------
        NotImplementedError
            Always.
        """
        refuse("merge_into", "call Table.merge of the package paimon, with its clauses when_matched_update and others")


def _where(predicate: Predicate | None) -> Any:
    return "TRUE" if predicate is None else to_paimon_predicate(predicate)


def _as_sql_value(value: object) -> object:
    """Return a value as `paimon.Table.update` takes it: texts are SQL there."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return value.as_py() if isinstance(value, pa.Scalar) else value
