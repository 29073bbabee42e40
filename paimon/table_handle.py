"""What a handle of a table shows: its names, schema, options, snapshots, references and system tables.

The methods that read, write, change and maintain the table are in `paimon.table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa
from attrs import evolve, frozen

from paimon.display.notebook import NotebookDisplay, read_or_explain, table_text
from paimon.domain.options.setting import option_text
from paimon.domain.options.validate import check_options
from paimon.domain.schema.change_options import check_dynamic_changes
from paimon.domain.schema.rules.merge import check_dynamic_columns
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_checks import check_mapping
from paimon.domain.types.arrow import arrow_schema
from paimon.maintain import Maintain
from paimon.operations.commit.callbacks import with_callbacks
from paimon.operations.metadata.snapshots import latest_snapshot, snapshots
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import CommitCallback
from paimon.ports.engine import Engine
from paimon.references import Branches, Consumers, Tags
from paimon.system_table import SystemTable, open_system_table

if TYPE_CHECKING:
    from paimon.procedures.table_procedures import ProcedureTable


@frozen(eq=False, repr=False)
class TableHandle(NotebookDisplay):
    """An immutable handle of one table on one branch, with its effective options."""

    context: TableContext

    @property
    def engine(self) -> Engine:
        """The ports through which this handle reads and writes."""
        return self.context.engine

    @property
    def definition(self) -> TableDefinition:
        """The table at this handle's schema version, with its effective options."""
        return self.context.table

    @property
    def name(self) -> str:
        """``database.table``, or the table's directory name where it was opened by path."""
        return self.context.table.table_name

    @property
    def location(self) -> str:
        """The root directory or URL."""
        return self.context.table.location

    @property
    def table_schema(self) -> TableSchema:
        """The schema in Paimon's terms: fields with ids, keys, options."""
        return self.context.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return arrow_schema(self.context.schema.fields)

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: another name of `arrow_schema`."""
        return self.arrow_schema

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Names of the primary-key columns; empty for an append table."""
        return self.context.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self.context.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """Effective options: those of the schema, overridden by the dynamic options of this handle."""
        return self.context.options.values

    def snapshots(self) -> list[Snapshot]:
        """Return all live snapshots, oldest first."""
        return list(snapshots(self.context))

    def snapshot(self) -> Snapshot | None:
        """Return the latest snapshot; None for a table without one."""
        return latest_snapshot(self.context)

    def with_options(self, options: Mapping[str, object], *, allow_unknown_options: bool = False) -> Self:
        """Return the same table with these dynamic options on top, for the new handle alone.

        Parameters
        ----------
        options : mapping
            Values by option. None removes an option: the new handle has its default.
        allow_unknown_options : bool
            Accept options that this library does not know; they have no effect.

        Returns
        -------
        Table
            The new handle.
        """
        given = check_mapping(options, "options")
        text = {key: option_text(value) for key, value in given.items() if value is not None}
        check_options(text, allow_unknown_options)
        combined = self.context.options.without(given.keys() - text.keys()).with_values(text)
        check_table_type(combined, self.name)
        check_dynamic_columns(self.context.schema, text)
        check_dynamic_changes(self.context.schema, combined)
        return self._with_context(self.context.with_table(evolve(self.context.table, options=combined)))

    def with_engine(self, engine: Engine) -> Self:
        """Return the same table with other ports, for instance another observer or executor."""
        return self._with_context(self.context.with_engine(engine))

    def with_callbacks(self, *callbacks: CommitCallback | Mapping[str, CommitCallback]) -> Self:
        """Return the same table, whose commits also call these callables with a `CommitEvent`.

        A callback runs after the commit, in the process that commits, and does not travel with the table. What it
        raises becomes a RuntimeWarning. It may be called again for a commit that was made before.

        Parameters
        ----------
        *callbacks : callable or mapping of str to callable
            Names are needed where the option `commit.callbacks` lists them (as names of Java classes): such a table
            refuses commits unless each name is bound.
        """
        return self.with_engine(with_callbacks(self.context.engine, callbacks))

    def _with_context(self, context: TableContext) -> Self:
        return evolve(self, context=context)

    def __repr__(self) -> str:
        return table_text(self.context.table)

    def _repr_html_(self) -> str:
        from paimon.display.cards import table_card

        return table_card(self.context.table, read_or_explain(self.snapshot))

    def system_table(self, name: str) -> SystemTable:
        """Return a system table, such as ``"files"`` or ``"snapshots"``."""
        return open_system_table(self.context, name)

    def call(self, procedure: str, /, *arguments: object, **named: object) -> pa.Table:
        """Run a procedure on this table, as ``CALL sys.…`` does; ``CALL sys.help()`` lists the procedures.

        Parameters
        ----------
        procedure : str
            Its name, such as ``"sys.compact"``.
        *arguments : object
            Values in the order of the parameters after the table.
        **named : object
            Values by the name of the parameter.

        Returns
        -------
        pyarrow.Table
            What the procedure did.

        Raises
        ------
        NotFound
            There is no such procedure.
        InvalidRequest
            An argument is not valid.

        Examples
        --------
        >>> import paimon
        >>> catalog = paimon.connect("memory://table-call")
        >>> catalog.create_database("shop")
        >>> orders = catalog.create_table("shop.orders", "id BIGINT")
        >>> snapshot_ids = orders.write([{"id": 1}]).snapshot_ids
        >>> orders.call("sys.create_tag", "first").to_pylist()
        [{'tag': 'first', 'snapshot': 1}]
        """
        from paimon.procedures.registry import call_procedure

        table = cast("ProcedureTable", self)  # the methods are those of the subclass
        return call_procedure(table, procedure, arguments, named)

    @property
    def tags(self) -> Tags:
        """The tags by name, with methods that create, replace, rename and delete them."""
        return Tags(self.context)

    @property
    def branches(self) -> Branches:
        """The branches other than main, with methods that create, delete and fast-forward them."""
        return Branches(self.context)

    @property
    def consumers(self) -> Consumers:
        """The consumers by name, with methods that reset and delete them."""
        return Consumers(self.context)

    @property
    def maintain(self) -> Maintain:
        """Methods for expiry, orphan files, checks and rollback."""
        return Maintain(self.context)
