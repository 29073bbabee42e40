"""What the table of verbs consists of: a verb, its parameters, the columns of its result, and its command.

These values are data. The terminal, CALL and `Table.call` read them, bind text to the parameters, and call the function
of the verb with one argument for each parameter, in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa
from attrs import Factory, field, frozen

from paimon.domain.predicate.expression import Predicate
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.maintain import Maintain
from paimon.operations.analyze import Analyzed
from paimon.operations.compact.compact import CompactResult
from paimon.operations.refs.clone_table import ClonedTable
from paimon.operations.rescale.rescale import RescaleResult
from paimon.operations.table_context import TableContext
from paimon.operations.write.migrate_files import MigratedTable
from paimon.references import Branches, Consumers, Tags


class VerbTable(Protocol):
    """What verbs need of `paimon.table.Table`; see there."""

    @property
    def name(self) -> str:
        """``database.table``."""

    @property
    def context(self) -> TableContext:
        """The engine, which decides where the work runs, and the definition of the table."""

    @property
    def tags(self) -> Tags:
        """The tags."""

    @property
    def branches(self) -> Branches:
        """The branches."""

    @property
    def consumers(self) -> Consumers:
        """The consumers."""

    @property
    def maintain(self) -> Maintain:
        """Methods for expiry, orphan files, checks and rollback."""

    def snapshot(self) -> Snapshot | None:
        """Return the latest snapshot."""

    def with_options(self, options: Mapping[str, object]) -> Self:
        """Return the same table with dynamic options."""

    def compact(
        self,
        full: bool = False,
        where: str | Predicate | None = None,
        *,
        order_strategy: str = "none",
        order_by: Sequence[str] | str | None = None,
        dry_run: bool = False,
    ) -> CompactResult:
        """Merge files."""

    def rescale(self, buckets: int, where: str | Predicate | None = None, *, dry_run: bool = False) -> RescaleResult:
        """Change the number of buckets."""

    def drop_partitions(self, *partitions: Mapping[str, object]) -> tuple[int, ...]:
        """Drop partitions."""

    def analyze(self, columns: Sequence[str] | None = None) -> Analyzed:
        """Compute statistics."""


class VerbCatalog(Protocol):
    """What verbs need of `paimon.catalog.Catalog`; see there."""

    def maintain(
        self, database: str | None = None, *, full: bool = False, orphans: bool = False, dry_run: bool = False
    ) -> pa.Table:
        """Do the maintenance that is due."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all tables."""

    def tables(self, database: str | None = None) -> list[str]:
        """Return the names of the tables of a database; without one, ``database.table`` for all tables."""

    def table(self, name: str) -> VerbTable:
        """Open a table."""

    def clone_table(
        self,
        source: str,
        target: str,
        *,
        where: str | Predicate | None = None,
        warehouse: Any = None,
        snapshot: int | None = None,
        tag: str | None = None,
        dry_run: bool = False,
    ) -> ClonedTable:
        """Copy a table with its files."""

    def migrate_table(
        self,
        source: str,
        target: str,
        *,
        format: str | None = None,
        options: Mapping[str, object] | None = None,
        delete_origin: bool = False,
        partition_types: str | None = None,
        dry_run: bool = False,
    ) -> MigratedTable:
        """Make a table of files."""

    def repair_table(self, name: str) -> VerbTable:
        """Register a table whose files exist."""


class Type(Enum):
    """The type of a parameter."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    TIME = "time"  # a timestamp as text, epoch milliseconds, or an age such as '7 d'
    NAMES = "names"  # separated by commas
    PARTITIONS = "partitions"  # such as a=1,b=2;a=2

    @property
    def label(self) -> str:
        """How CALL names the type."""
        return "text" if self in (Type.NAMES, Type.PARTITIONS) else self.value


@frozen
class Flag:
    """An argument of the terminal, as far as it differs from its parameter."""

    # spellings, separated by blanks; by default the name of the parameter
    names: str | None = None
    # the sign of the value in usage texts; None for a switch
    metavar: str | None = None
    # by default the help of the parameter
    help: str | None = None
    is_positional: bool = False
    # what a switch stands for
    value: object = True
    # the argument without the flag; None means the default of the parameter
    otherwise: object = None


@frozen
class Parameter:
    """A parameter of a verb: an argument of its function, of CALL, and of the terminal."""

    # the name that the public method has
    name: str
    type: Type
    # what it means
    help: str
    # None, or False for BOOLEAN, unless it is given
    default: object = field(default=Factory(lambda self: False if self.type is Type.BOOLEAN else None, takes_self=True))
    # whether it has no default
    required: bool = False
    # name in Flink's CALL, where it differs
    java: str | None = None
    # second name in CALL, which Spark has
    spark: str | None = None
    in_call: bool = True
    # None if the terminal lacks it
    flag: Flag | None = None
    # whether the method of the verb has it
    in_method: bool = True

    @property
    def call_name(self) -> str:
        """The name in CALL."""
        return self.java or self.name


@frozen
class Column:
    """A column of a result."""

    name: str
    type: pa.DataType
    # heading in the terminal, by default the name with blanks
    title: str | None = None
    in_call: bool = True
    in_terminal: bool = True

    @property
    def heading(self) -> str:
        """The heading in the terminal."""
        return self.title or self.name.replace("_", " ")


class Confirmation(Enum):
    """Whether the terminal asks for a confirmation."""

    NEVER = "never"
    ON_TERMINAL = "on a terminal"  # scripts are not asked
    ALWAYS = "always"  # scripts need --yes


@frozen
class Command:
    """How the terminal offers a verb."""

    # such as `tag create`
    words: str
    # what follows the words in an example that runs
    example: str
    # by default the help of the verb
    help: str | None = None
    # more paragraphs of the help text
    more_help: str = ""
    # heading of the drawn table, with `{table}` and names of parameters in braces
    heading: str | None = None
    # parameters of which exactly one is given
    exactly_one: tuple[str, ...] = ()
    confirmation: Confirmation = Confirmation.NEVER
    # returns the question for the table or catalog, and the arguments by parameter; None if there is none
    question: Callable[[Any, Mapping[str, Any]], str | None] | None = None
    has_progress: bool = False
    # whether it takes --option KEY=VALUE
    takes_options: bool = True
    # formats of --output besides a table and JSON
    outputs: tuple[str, ...] = ()


@frozen
class CommandGroup:
    """A command of the terminal whose subcommands are verbs."""

    name: str
    help: str
    example: str


Rows = Sequence[Mapping[str, object]]
"""The rows of a result, each with the values of all columns."""
R = TypeVar("R")
Kept = TypeVar("Kept", bound=Rows | pa.Table)


def keep_rows(rows: Kept) -> Kept:
    """Return the result of a function that returns rows."""
    return rows


@frozen
class Verb(Generic[R]):
    """An action on a table, or on a catalog: the only declaration of its parameters and its result."""

    # name of the procedure
    name: str
    # what it does
    help: str
    # takes the table (or catalog), then a value for each parameter
    run: Callable[..., R]
    # converts the result of `run` to rows with `columns`; Arrow rows stay as they are
    to_rows: Callable[[R], Rows | pa.Table]
    parameters: tuple[Parameter, ...] = ()
    columns: tuple[Column, ...] = ()
    # None if the terminal lacks it
    command: Command | None = None
    in_call: bool = True
    of_catalog: bool = False
    # the public method that does the same: `Class.method`
    method: str | None = None
    # the function of `paimon.spark` that does the same with tasks
    spark: str | None = None

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of CALL, after the table."""
        return tuple(parameter for parameter in self.parameters if parameter.in_call)

    def to_arrow(self, result: R) -> pa.Table:
        """Convert the result to the rows that CALL returns."""
        rows = self.to_rows(result)
        if isinstance(rows, pa.Table):
            return rows
        columns = [column for column in self.columns if column.in_call]
        return pa.table({c.name: pa.array([row[c.name] for row in rows], c.type) for c in columns})

    def to_records(self, result: R) -> list[dict[str, object]]:
        """Convert the result to the records that the terminal prints."""
        rows = self.to_rows(result)
        listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
        return [{c.heading: row[c.name] for c in self.columns if c.in_terminal} for row in listed]
