"""Plan a query: find its tables, push columns, conditions and limits into their scans, and write the engine's SQL.

Invariant: all scans of one table in one query read the same snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import define, evolve, field, frozen
from sqlglot import exp

from paimon.domain.columns.decimal_overflow import widen_decimals
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import InvalidRequest, NotFound, Unsupported, suggest_or
from paimon.domain.extras import MissingExtra
from paimon.domain.markup import format_count
from paimon.domain.merge.merge_spec import find_summed_decimals
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.field_paths import hint_single_quotes, suggest_column
from paimon.domain.scan.engine_files import EngineFiles
from paimon.domain.types.data_types import DataField
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.read.engine_files import find_engine_files, open_engine_files
from paimon.operations.read.time_travel import PinnedTable
from paimon.operations.row_level.numbered_rows import NumberedRows, plan_numbered_rows
from paimon.operations.write.input_rows import to_arrow_tables
from paimon.ports.queries import QuerySource, SourceFiles
from paimon.ports.row_files import FileRows
from paimon.results import SnapshotRead, find_reads
from paimon.scan import Scan, estimate_scan
from paimon.sql.parse.parse_query import FILE_FORMATS
from paimon.sql.parse.query_tree import QueryTree, order_joins
from paimon.sql.parse.statements import Query, TableName
from paimon.sql.plan.count_from_metadata import plan_count, replace_max_partitions
from paimon.sql.plan.pushdown_predicates import find_needs
from paimon.sql.session import Session, TablePlace
from paimon.system_table import SystemScan, SystemTable

if TYPE_CHECKING:
    from paimon.table import Table

Frames = Mapping[str, Any]
"""Data frames and Arrow tables that a query reads by name."""
_DEEPEST_VIEWS = 50
_MOST_CONSTANTS = 1_000


@frozen(eq=False)
class PlannedQuery:
    """A query that is ready to run."""

    sql: str
    # What the query reads, by the table names in `sql`
    sources: Mapping[str, QuerySource]
    # For EXPLAIN: each function returns what is read of one table
    describe: tuple[Callable[[], str], ...]
    # All columns of its tables, for error hints
    names: tuple[str, ...] = ()
    # The tables whose newest snapshot is read
    reads: tuple[SnapshotRead, ...] = ()
    # As the user wrote it, for error hints
    text: str = ""


@frozen(eq=False)
class _Relation:
    """A table of a query, before columns and conditions are known."""

    label: str
    columns: tuple[str, ...]
    fields: tuple[DataField, ...] = ()
    """The columns that a scan can filter by; empty where it takes no conditions."""
    table: Table | None = None
    scan: Callable[[Sequence[str], Predicate | None, int | None], Scan | SystemScan | NumberedRows] | None = None
    frame: pa.Table | None = None
    adopted: QuerySource | None = None
    files: FileRows | None = None
    origin: Table | SystemTable | None = None
    reads: tuple[SnapshotRead, ...] = ()


@frozen(eq=False)
class NumberedTable:
    """A frame that means an append table whose rows are read with their numbers."""

    table: Table
    number_name: str


@frozen(eq=False)
class ScanOrigin:
    """What a source reads of a table; the query evaluates the condition and the limit again."""

    # Has the dynamic options of the statement
    table: Table | SystemTable
    # Pinned to its snapshot
    scan: Scan | SystemScan
    columns: tuple[str, ...]
    # True for every row that the query needs
    where: Predicate | None = None
    # Number of rows that the query needs at most
    limit: int | None = None
    # Whether the engine may get merged rows instead of files
    merges: bool = False


def plan_query(session: Session, query: Query, frames: Frames) -> PlannedQuery:
    """Plan a query: its scans are pinned to snapshots, and no rows are read.

    `frames` has tabular data by name, which hides tables of the same name.
    """
    tree, names = query.indexed, query.tables
    if session.views:
        root, names = expand_views(session, query, frames)
        tree = QueryTree(root)
    tree = replace_max_partitions(session, tree)
    resolver = _Resolver(session, frames)
    relations = {own: resolver.resolve(name) for own, name in names.items()}
    counted = plan_count(tree, {own: r.table for own, r in relations.items() if r.table is not None})
    reads = [read for relation in relations.values() for read in relation.reads]
    if counted is not None:
        return PlannedQuery(counted.sql, counted.sources, (lambda: counted.note,), reads=tuple(reads))
    return evolve(_push_down(session, tree, relations), reads=tuple(reads), text=query.text)


def _push_down(session: Session, tree: QueryTree, relations: Mapping[str, _Relation]) -> PlannedQuery:
    known = {own: relation.columns for own, relation in relations.items()}
    fields = {own: relation.fields for own, relation in relations.items() if relation.fields}
    columns, predicates, limit = tree.plan_once(
        (known, fields), partial(find_needs, tree, known, fields, partial(_evaluate, session))
    )
    sources: dict[str, QuerySource] = {}
    describe: list[Callable[[], str]] = []
    reads_files = query_engine(session).reads_files
    for own, relation in relations.items():
        sources[own], note = _open_source(
            relation, columns.get(own, relation.columns), predicates.get(own), limit, reads_files
        )
        describe.append(note)
    names = tuple(column for relation in relations.values() for column in relation.columns)
    sql = order_joins(tree, lambda own: _estimate_rows(sources.get(own))) if reads_files else tree.sql
    return PlannedQuery(sql, sources, tuple(describe), names)


def _estimate_rows(source: QuerySource | None) -> int | None:
    """Return about how many rows a source has; None if the engine reads its files, and finds out itself."""
    if source is None:
        return None
    if isinstance(source.origin, pa.Table):
        return int(source.origin.num_rows)
    origin = source.origin if isinstance(source.origin, ScanOrigin) else None
    scan = None if origin is None or (source.open_files is not None and not origin.merges) else origin.scan
    return estimate_scan(scan).rows if isinstance(scan, Scan) else None


def _open_source(
    relation: _Relation, columns: Sequence[str], predicate: Predicate | None, limit: int | None, reads_files: bool
) -> tuple[QuerySource, Callable[[], str]]:
    """Return the source of a relation, and a function that describes what is read."""
    if relation.frame is not None:
        rows = relation.frame.select(list(columns))
        return QuerySource(rows.schema, rows.to_reader, rows), lambda: f"frame {relation.label}: {rows.num_rows} rows"
    if relation.files is not None:
        rows, wanted = relation.files, tuple(columns)
        schema = pa.schema([rows.schema.field(column) for column in wanted])
        note = f"files {', '.join(rows.names)}\n  columns: {', '.join(wanted)}"
        return QuerySource(schema, partial(rows.to_reader, wanted)), lambda: note
    if relation.adopted is not None:
        return relation.adopted, lambda: f"frame {relation.label}\n  columns: {', '.join(columns)}"
    assert relation.scan is not None and relation.origin is not None
    scan = relation.scan(columns, predicate, limit)
    if isinstance(scan, NumberedRows):
        numbered = scan
        return (
            QuerySource(scan.arrow_schema, scan.to_batches, scan),
            lambda: f"table {relation.label}\n{numbered.explain()}",
        )
    if not isinstance(scan, Scan):
        system = f"system table {relation.label}\n  columns: {', '.join(columns)}"
        return QuerySource(scan.arrow_schema, scan.to_batches), lambda: system
    context, read = scan.context, scan.read_plan
    selected = EngineFiles((), ())
    share: Callable[[bool], SourceFiles] | None = None
    schema, open_rows = scan.arrow_schema, scan.to_batches
    summed = find_summed_decimals(context.schema, context.options) if reads_files else frozenset()
    if not summed.isdisjoint(schema.names):
        schema = widen_decimals(schema, summed)
        open_rows = partial(_read_widened, scan, schema)
    elif reads_files:
        selected = find_engine_files(context, scan.plan().splits, read)
        if selected.files or selected.merged:
            share = partial(open_engine_files, context, selected, read)
    merges = bool(selected.merged)
    origin = ScanOrigin(relation.origin, scan, tuple(columns), predicate, limit, merges)
    source = QuerySource(schema, open_rows, origin, share)
    return source, partial(_describe_scan, scan, limit, selected)


def _scan_changes(table: Table, columns: Sequence[str], predicate: Predicate | None, limit: int | None) -> Scan:
    return table.scan(columns, predicate, limit).without_retracts()


def _read_widened(scan: Scan, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read a scan with some of its decimals in a wider type, which stores the same numbers."""

    def _widen(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = zip(batch.columns, schema.types, strict=True)
        return pa.RecordBatch.from_arrays([c if c.type == kind else c.view(kind) for c, kind in columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(_widen, scan.to_batches()))


def _describe_scan(scan: Scan, limit: int | None, selected: EngineFiles) -> str:
    lines = [scan.explain()]
    if selected.files:
        count = format_count(scan.plan().file_count, "file")
        lines.append(f"  the query engine itself reads {len(selected.files)} of {count}")
    if selected.merged:
        count = format_count(sum(len(split.files) for split in selected.merged), "file")
        lines.append(f"  the query engine reads the newest rows of {count} itself, if most rows are the newest")
    if limit is not None:
        lines.append(f"  limit:   {limit}")
    return "\n".join(lines)


def _evaluate(session: Session, expressions: Sequence[str]) -> list[Any]:
    """Compute constant expressions; an expression that fails has no value, and the query reports why.

    The embedded engine computes them also for a session with another engine. Without it, they have no values.
    """
    key = ", ".join(expressions)
    if key not in session.constants:
        if len(session.constants) >= _MOST_CONSTANTS:
            session.constants.clear()
        session.constants[key] = _compute(session, key, len(expressions))
    return list(session.constants[key])


def _compute(session: Session, expressions: str, count: int) -> tuple[Any, ...]:
    engine = session.engine.queries
    try:
        if engine is None:
            return (None,) * count
        rows = engine.run(f"SELECT {expressions}", {}).read_all()
        return tuple(column[0].as_py() for column in rows.columns)
    except (InvalidRequest, MissingExtra, OverflowError):  # the last for times that Python lacks
        return (None,) * count


def describe_query(session: Session, planned: PlannedQuery) -> pa.Schema:
    """Return the columns of a planned query; no row is read."""
    try:
        return query_engine(session).describe(planned.sql, planned.sources)
    except InvalidRequest as error:
        if not error.message.startswith("Column ") or error.subject is None:
            raise
        # Columns that the query does not read are not known to the engine.
        hint = suggest_column(error.subject, planned.names) or error.hint
        hint = hint_single_quotes(error.subject, planned.text, hint)
        raise InvalidRequest(error.message, subject=error.subject, hint=hint) from error


def query_engine(session: Session) -> Any:
    """Return the query engine of the session, or that of the current catalog."""
    engine = session.queries or session.engine.queries
    if engine is None:
        raise Unsupported("SQL queries of this engine", hint="set the field queries of the Engine")
    return engine


@define
class _Resolver:
    """A state machine: it opens each table of a query once."""

    session: Session
    frames: Frames
    pinned: dict[object, PinnedTable] = field(factory=dict)
    converted: dict[str, pa.Table] = field(factory=dict)
    resolved: dict[TableName, _Relation] = field(factory=dict)

    def resolve(self, name: TableName) -> _Relation:
        """Open the table, system table or data frame that a name means."""
        if name not in self.resolved:
            self.resolved[name] = self._resolve(name)
        return self.resolved[name]

    def _resolve(self, name: TableName) -> _Relation:
        frame = find_frame(self.frames, name)
        if frame is not None:
            return self._resolve_frame(frame)
        if name.function is not None and name.function in FILE_FORMATS:
            return self._resolve_files(name, name.function)
        view = self._resolve_engine_view(name)
        if view is not None:
            return view
        try:
            opened = self.session.open(name)
        except NotFound as error:
            raise self._explain_missing(name, error) from error
        if isinstance(opened, SystemTable):
            return self._resolve_system_table(name, opened)
        first = opened.scan()
        fields = first.fields
        pin = self.pinned.setdefault(_to_key(opened), first.pinned)
        plain = not any(option.startswith("incremental") for option in opened.options)
        names = first.read_plan.columns
        _check_names(name.text, names)

        # An incremental read finds its range itself.
        shared = self._share_memory(opened)
        scan = partial(_scan_pinned, shared, pin) if plain else partial(_scan_changes, shared)
        table = opened if plain else None
        reads = tuple(evolve(read, state=ReadState.of(pin.snapshot)) for read in find_reads(first).reads)
        return _Relation(name.text, names, fields, table, scan, origin=opened, reads=reads)

    def _share_memory(self, table: Table) -> Table:
        """Return a table whose scans leave half of the memory budget to a query engine in this process."""
        if not query_engine(self.session).reads_files:
            return table
        memory = table.engine.memory
        return table.with_engine(evolve(table.engine, memory=evolve(memory, bytes=memory.bytes // 2)))

    def _resolve_system_table(self, name: TableName, opened: SystemTable) -> _Relation:
        scan = opened.scan()
        fields = scan.fields if isinstance(scan, Scan) and opened.system_name != "binlog" else ()
        reads = find_reads(scan).reads
        names = tuple(scan.arrow_schema.names)
        return _Relation(name.text, names, fields, None, opened.scan, origin=opened, reads=reads)

    def _resolve_numbered(self, frame: NumberedTable) -> _Relation:
        table = frame.table
        pin = PinnedTable(table.definition, latest_snapshot(table.context))
        # Rows are changed in the newest snapshot, also where options select another one for reads.
        if not any(option.startswith("scan.") for option in table.options):
            pin = self.pinned.setdefault(_to_key(table), pin)
        fields = table.table_schema.fields
        names = [column.name for column in fields]
        _check_names(table.name, names)
        scan = partial(_number_rows, frame, pin)
        return _Relation(table.name, (*names, frame.number_name), fields, scan=scan, origin=table)

    def _resolve_frame(self, name: str) -> _Relation:
        if isinstance(self.frames[name], NumberedTable):
            return self._resolve_numbered(self.frames[name])
        adopted = query_engine(self.session).adopt(self.frames[name])
        if adopted is not None:
            _check_names(name, adopted.schema.names)
            return _Relation(name, tuple(adopted.schema.names), adopted=adopted)
        if name not in self.converted:
            self.converted[name] = pa.concat_tables(
                to_arrow_tables(self.frames[name], ()), promote_options="permissive"
            )
        rows = self.converted[name]
        _check_names(name, rows.column_names)
        return _Relation(name, tuple(rows.column_names), frame=rows, reads=find_reads(self.frames[name]).reads)

    def _resolve_files(self, name: TableName, function: str) -> _Relation:
        files = self.session.open_row_files(function)
        rows = files.open(name.arguments, FILE_FORMATS[function], roots=self.session.allowed_files)
        names = tuple(rows.schema.names)
        _check_names(function, names)
        return _Relation(function, names, files=rows)

    def _resolve_engine_view(self, name: TableName) -> _Relation | None:
        """Return the view of the query engine's session that a name means; refuse the name if it is a table, too."""
        found = query_engine(self.session).find_view(name.parts) if name.function is None else None
        if found is None:
            return None
        place = self.session.locate(name.parts)
        if _is_table(place):
            message = f"{name.text!r} is the name of table {place.name!r} and of a temporary view of the query engine."
            raise InvalidRequest(
                message, subject=name.text, hint="write database.table for the table, or pass the view as a data frame"
            )
        _refuse_options("Temporary view", name)
        _check_names(name.text, found.schema.names)
        return _Relation(name.text, tuple(found.schema.names), adopted=found)

    def _explain_missing(self, name: TableName, error: NotFound) -> NotFound:
        if error.kind != "table" or len(name.parts) > 1:
            return error
        known = [*self.frames, *self.session.views, *self._table_names()]
        return NotFound("table", name.text, hint=suggest_or(name.text, known, error.hint))

    def _table_names(self) -> list[str]:
        return self.session.catalog().tables(self.session.database)


def _scan_pinned(
    table: Table, pinned: PinnedTable, columns: Sequence[str], where: Predicate | None, limit: int | None
) -> Scan:
    return Scan(table.context, columns=columns, where=where, limit=limit, pinned=pinned)


def _number_rows(
    frame: NumberedTable, pinned: PinnedTable, columns: Sequence[str], where: Predicate | None, limit: int | None
) -> NumberedRows:
    wanted = [column for column in columns if column != frame.number_name]
    return plan_numbered_rows(frame.table.context, pinned.snapshot, wanted, where, frame.number_name)


def _to_key(table: Table) -> object:
    """Return what scans of one state of a table have in common."""
    return table.location, table.definition.branch, tuple(sorted(table.options.items()))


def _check_names(label: str, names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            pair = f"{seen[name.lower()]!r} and {name!r}"
            raise Unsupported(
                f"queries of {label!r}, whose columns {pair} differ in case only", hint="read it with Table.scan"
            )
        seen[name.lower()] = name


def find_frame(frames: Frames, name: TableName) -> str | None:
    """Return the name of the frame that a table name means; None where it is a table.

    Refuses time travel and options for a frame.
    """
    if len(name.parts) > 1 or name.parts[0] not in frames or name.function is not None:
        return None
    _refuse_options("Data frame", name)
    return name.parts[0]


def _refuse_options(kind: str, name: TableName) -> None:
    if name.options:
        raise InvalidRequest(
            f"{kind} {name.text!r} cannot be read with time travel or options.",
            subject=name.text,
            hint="only tables have snapshots and options: leave out the clause",
        )


def _is_table(place: TablePlace) -> bool:
    try:
        place.catalog.table(place.name)
    except (NotFound, InvalidRequest):
        return False
    return True


def expand_views(
    session: Session, query: Query, frames: Frames, depth: int = 0
) -> tuple[exp.Expression, dict[str, TableName]]:
    """Replace views by their queries; return a new tree, and its tables by name.

    `frames` hide views of the same name. `depth` counts the enclosing views; deep nesting is refused.
    """
    if depth > _DEEPEST_VIEWS:
        raise InvalidRequest(
            f"Views are nested deeper than {_DEEPEST_VIEWS} levels.",
            subject="view",
            hint="write the query of an inner view in place of its name",
        )
    tree, names = query.tree.copy(), dict(query.tables)
    wrapped = exp.Subquery(this=tree)
    numbers = count()
    for node in list(tree.find_all(exp.Table)):
        name = names.get(node.name)
        view = None if name is None or find_frame(frames, name) else session.views.get(name.text.lower())
        if name is None or view is None or name.function is not None:
            continue
        if name.options:
            raise InvalidRequest(
                f"View {name.text!r} cannot be read with time travel or options.",
                subject=name.text,
                hint="write the clause after the tables in the query of the view",
            )
        inner, inner_names = expand_views(session, view.query, {}, depth + 1)
        prefix = f"{node.name}_{next(numbers)}"
        for table in inner.find_all(exp.Table):
            if table.name in inner_names:
                table.set("this", exp.to_identifier(prefix + table.name, quoted=True))
        names |= {prefix + own: inner_name for own, inner_name in inner_names.items()}
        names.pop(node.name)
        columns = [exp.to_identifier(column, quoted=True) for column in view.columns]
        alias = exp.TableAlias(this=exp.to_identifier(node.alias, quoted=True), columns=columns)
        node.replace(exp.Subquery(this=inner, alias=alias))
    return wrapped.this, names


def qualify_query(session: Session, query: Query) -> Query:
    """Return a query whose tables have full names, for a view; names of views stay."""
    names = {own: name if _is_view(session, name) else session.qualify(name) for own, name in query.tables.items()}
    return evolve(query, tables=names)


def _is_view(session: Session, name: TableName) -> bool:
    return session.find_view(name.parts) is not None or query_engine(session).find_view(name.parts) is not None
