"""The methods of a table that change selected rows: delete, update and merge. `paimon.table.Table` has them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from paimon.builders.direct_writes import WriteResult, delete_where, update_where
from paimon.domain.predicate.expression import Predicate
from paimon.table_handle import TableHandle

if TYPE_CHECKING:
    from paimon.builders.merge_builder import MergeBuilder


@frozen(eq=False, repr=False)
class RowLevelTable(TableHandle):
    """A table whose single rows can be changed."""

    def delete(self, where: str | Predicate, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Delete the rows where `where` is true, in one commit; `rows` of the result counts them.

        Append tables mark the rows in deletion vectors (`deletion-vectors.enabled`) or write their files again;
        primary-key tables get a delete for each row. A CommitConflict means that the same files changed; try again.
        """
        return delete_where(self.context, where, properties)

    def update(
        self, set: Mapping[str, Any], where: str | Predicate, *, properties: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Set columns of the rows where `where` is true, in one commit.

        Parameters
        ----------
        set : mapping
            By column: SQL text over the row before the update (``"amount * 2"``, ``"'a text'"``, ``"upper(name)"``),
            or a Python value that is not text. Columns of the primary key and of the partition cannot be set.
        where : str or Predicate
            The rows to change, as in `scan`.
        properties : mapping
            Text to store in the snapshot.

        Returns
        -------
        WriteResult
            Its `rows` counts the rows that were changed.

        Raises
        ------
        InvalidRequest, CommitConflict
            Nothing was updated: a value does not fit its column; the same files changed since.
        """
        return update_where(self.context, set, where, properties)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Predicate,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
    ) -> MergeBuilder:
        """Merge rows of a source into this table: update, delete and insert in one commit.

        Add clauses to the result, then call `execute`.

        Parameters
        ----------
        source : object
            Rows in any form that `write` takes, for instance an Arrow table, a data frame, or `other.scan()`. Rows
            above half of the memory budget are spilled to local disk. Rows of this table itself are read again after
            other users changed it: pass its scan, a query of `Catalog.sql`, or a function that returns rows. A reader
            of such rows cannot be read again, so it is refused then.
        on : str, sequence of str or Predicate
            When a row of the source matches a row of this table: SQL text (``"target.id = source.id"``), or the names
            of columns that both sides have.
        source_alias, target_alias : str
            The names of the sides in SQL text. A column that only one side has needs no such name.

        Returns
        -------
        MergeBuilder
            A merge without clauses.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://table-merge")
        >>> catalog.create_database("shop")
        >>> stock = catalog.create_table("shop.stock", "item STRING NOT NULL, pieces INT", primary_keys=["item"])
        >>> stock.write([{"item": "pen", "pieces": 5}]).rows
        1
        >>> delivered = [{"item": "pen", "pieces": 3}, {"item": "ink", "pieces": 8}]
        >>> merge = stock.merge(delivered, on="item")
        >>> merge = merge.when_matched_update({"pieces": "target.pieces + source.pieces"})
        >>> result = merge.when_not_matched_insert_all().execute()
        >>> result.updated, result.inserted, result.deleted
        (1, 1, 0)
        >>> sorted((row["item"], row["pieces"]) for row in stock.scan().to_arrow().to_pylist())
        [('ink', 8), ('pen', 8)]
        """
        from paimon.builders.merge_builder import MergeBuilder  # loaded when rows are merged
        from paimon.operations.row_level.merge import MergeRequest

        return MergeBuilder(self.context, source, MergeRequest(on, target_alias, source_alias))
