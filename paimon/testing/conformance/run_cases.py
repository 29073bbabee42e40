"""Run the cases of each feature with an implementation and this library, and search the smallest wrong one.

Invariant: a result depends on the seed and the number of examples alone, unless the time ends first.
"""

# A cell of the table is a feature and who writes:
#
#     feature             read ours   write   in turns
#     engine:first-row    right       wrong   not run
#
#   read ours   this library writes; the implementation reads
#   write       the implementation writes; this library and the implementation read
#   in turns    both write one table, alternately; both read
#
# Hypothesis draws the cases of a cell, and makes a wrong one smaller. Cells share the time: each may use its part of
# what is left, so that a fast cell leaves more to the others. When the time of a cell ends, further cases count as
# right, and those that have run keep their outcome. Hypothesis then ends by itself.

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from shutil import rmtree

import pyarrow as pa
from attrs import define, evolve, field, frozen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as use_seed
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from paimon.domain.merge.merge_reference import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.row.values import to_values
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import NESTED_TYPES, DataField
from paimon.testing.conformance.cases import AddColumn, Case, Compact, Delete, Shape, Step, Write, cases, sort_maps
from paimon.testing.conformance.implementation import Implementation, Refused, TableUnderTest, describe_error
from paimon.testing.conformance.own import PaimonForPython, open_table
from paimon.testing.interleaving import catch_outcome
from paimon.testing.model import Row as NamedRow
from paimon.testing.strategies.tables import Row, to_arrow_table

OWN_NAME = "paimon"
WRITERS = ("read ours", "write", "in turns")
_LEAST_SECONDS = 0.5
_SHRINK_CASES = 50
_SHRINK_SECONDS = 2.0


@frozen
class Mismatch:
    """A case whose rows are wrong: the steps with who did each, what is expected, and what each reader returned."""

    schema: TableSchema
    steps: tuple[tuple[str, Step], ...]
    snapshot: int | None
    expected: tuple[Row, ...]
    # rows, or the text of an error
    reads: Mapping[str, tuple[Row, ...] | str]
    # whether `expected` has only the rows that are missing, and `reads` those that should not be there
    only_differences: bool = False


@frozen
class Result:
    """The outcome of one cell: ``right``, ``wrong``, ``refused``, ``stopped`` or ``not run``."""

    feature: str
    writer: str
    status: str
    examples: int = 0
    # examples that the implementation refused, and what it said of the last one
    refused: int = 0
    reason: str = ""
    mismatch: Mismatch | None = None


@frozen
class _Failed(Exception):
    """Ends a case with an error, with the text that the implementation raised."""

    reads: Mapping[str, str]


@define
class _End:
    """When a cell runs no further case: after some time, and after a wrong case, when it had its chance to shrink."""

    seconds: float
    cases: float = float("inf")

    def has_come(self, count: int) -> bool:
        """Return whether a cell that ran so many cases ends."""
        return count >= self.cases or time.monotonic() > self.seconds

    def allow_shrinking(self, count: int) -> None:
        """Limit the cases from the first wrong one on, and extend the time for them."""
        if self.cases == float("inf"):
            self.cases = count + _SHRINK_CASES
            self.seconds = max(self.seconds, time.monotonic() + _SHRINK_SECONDS)


Cell = Callable[[float], Result]
"""Runs a cell, which may take so many seconds."""


class _Wrong(Exception):
    """A wrong case, which Hypothesis makes smaller."""


class _Stopped(KeyboardInterrupt):
    """Stops a run inside a cell, with what is known of the cell."""

    def __init__(self, reason: KeyboardInterrupt, result: Result) -> None:
        super().__init__()
        self.reason = reason
        self.result = result


@frozen(eq=False)
class Runner:
    """Runs cases on new tables of one warehouse."""

    name: str
    theirs: Implementation
    warehouse: str
    numbers: Iterator[int]
    ours: PaimonForPython = field(factory=PaimonForPython)
    keeps_tables: bool = False

    def run_case(self, case: Case, writer: str) -> Mismatch | None:
        """Run one case; None if all reads are right. It raises `Refused` as the implementation does.

        The table is deleted, unless the runner keeps tables: thousands of cases would fill a folder in memory.
        """
        table = self._describe(case)
        try:
            return self._run_steps(case, writer, table)
        finally:
            if not self.keeps_tables:
                rmtree(table.location, ignore_errors=True)

    def _run_steps(self, case: Case, writer: str, table: TableUnderTest) -> Mismatch | None:
        expected, done = ExpectedRows(case), list[tuple[str, Step]]()
        states: list[tuple[int | None, tuple[Row, ...]]] = []
        try:
            self._create(table, writer)
            for number, step in enumerate(case.steps):
                actor = self._choose_actor(step, number, writer)
                done.append((actor, step))
                expected.apply(step)
                table = self._do(actor, table, case, step)
                if case.reads_each:
                    states.append((_find_newest_snapshot(table), tuple(expected.rows())))
            states.append((None, tuple(expected.rows())))
            for snapshot, rows in states:
                reads = self._read(table, case, snapshot)
                if any(to_multiset(read) != to_multiset(rows) for read in reads.values()):
                    return Mismatch(case.schema, tuple(done), snapshot, rows, reads)
        except _Failed as failure:
            return Mismatch(case.schema, tuple(done), None, tuple(expected.rows()), failure.reads)
        return None

    def _describe(self, case: Case) -> TableUnderTest:
        schema, width = case.schema, case.columns_at_first
        name, columns = f"t{next(self.numbers)}", arrow_schema(schema.fields[:width])
        return TableUnderTest(
            self.warehouse, "kit", name, columns, schema.primary_keys, schema.partition_keys, schema.options
        )

    def _create(self, table: TableUnderTest, writer: str) -> None:
        creates = writer != "read ours" and "create" in self.theirs.capabilities.features
        self._attempt(self.name if creates else OWN_NAME, "create", lambda actor: actor.create(table))

    def _choose_actor(self, step: Step, number: int, writer: str) -> str:
        is_ours = writer == "read ours" or (writer == "in turns" and number % 2 == 0)
        if isinstance(step, AddColumn) or (isinstance(step, Compact) and step.by_kit):
            is_ours = True
        needed = {Compact: "compact", Delete: "delete"}.get(type(step), "write")
        return OWN_NAME if is_ours or needed not in self.theirs.capabilities.features else self.name

    def _do(self, actor: str, table: TableUnderTest, case: Case, step: Step) -> TableUnderTest:
        """Do a step, and return the table as it is then."""
        match step:
            case Write(rows=rows):
                data = to_arrow_table(case.schema.fields[: len(table.schema)], rows)
                self._attempt(actor, "write", lambda who: who.write(table, data))
            case Compact():
                self._attempt(actor, "compact", lambda who: who.compact(table))
            case Delete(value=value):
                self._attempt(actor, "delete", lambda who: who.delete(table, "k", value))
            case AddColumn():
                open_table(table).add_column(case.schema.names[-1], case.schema.fields[-1].type)
                return evolve(table, schema=arrow_schema(case.schema.fields))
        return table

    def _read(self, table: TableUnderTest, case: Case, snapshot: int | None) -> dict[str, tuple[Row, ...] | str]:
        reads: dict[str, tuple[Row, ...] | str] = {}
        for name in (OWN_NAME, self.name):
            try:
                found = self._attempt(name, "read", lambda who: who.read(table, snapshot))
                reads[name] = tuple(to_rows(found, case.schema.fields))
            except _Failed as failure:
                reads[name] = failure.reads[name]
            except (LookupError, ValueError, ArithmeticError, pa.ArrowException, AttributeError, TypeError) as error:
                reads[name] = f"not rows of the table: {describe_error(error)}"
        return reads

    def _attempt(self, name: str, what: str, act: Callable[..., pa.Table]) -> pa.Table:
        """Return what a call returns; an error of the call fails the case."""
        implementation = self.ours if name == OWN_NAME else self.theirs
        outcome = catch_outcome(lambda: act(implementation))
        if isinstance(outcome, Refused | NotImplementedError) and name != OWN_NAME:
            raise Refused(f"{what}: {str(outcome)[:200]}")
        if isinstance(outcome, BaseException):
            text = describe_error(outcome).replace(f"{self.warehouse}/kit.db/", "")
            raise _Failed({name: f"{what}: {text}"})
        return outcome


def _find_newest_snapshot(table: TableUnderTest) -> int | None:
    snapshot = open_table(table).snapshot()
    return None if snapshot is None else snapshot.id


def to_rows(table: pa.Table, fields: Sequence[DataField]) -> Iterator[Row]:
    """Return the rows as internal values, with sorted maps."""
    schema = arrow_schema(fields)
    columns = [to_values(table[f.name].cast(schema.field(f.name).type), f.type) for f in fields]
    sorted_columns = (
        map(partial(sort_maps, data_type=f.type), values) if isinstance(f.type, NESTED_TYPES) else values
        for f, values in zip(fields, columns, strict=True)
    )
    return zip(*sorted_columns, strict=True)


def to_multiset(rows: tuple[Row, ...] | str) -> Counter[str] | str:
    """Count rows by their text, in which NaN equals NaN, and -0.0 differs from 0.0."""
    return rows if isinstance(rows, str) else Counter(map(repr, rows))


def run_feature(
    runner: Runner, feature: str, shapes: st.SearchStrategy[Shape], writer: str, limits: tuple[int, int, float]
) -> Result:
    """Run drawn cases of one cell.

    Parameters
    ----------
    runner : Runner
        The implementation.
    feature : str
        The name of the feature.
    shapes : SearchStrategy
        Draws the shapes of the feature's tables.
    writer : str
        One of `WRITERS`.
    limits : tuple of int, int, float
        The number of examples, the seed, and the seconds.

    Returns
    -------
    Result
        Wrong if an example is wrong, else refused if one is refused; not run if no example can be drawn.

    Raises
    ------
    KeyboardInterrupt
        The run is stopped. `run_cells` gets what is known of the cell, such as a wrong example.
    """
    examples, seed_number, seconds = limits
    outcomes: dict[str, Mismatch | Refused | None] = {}
    end = _End(time.monotonic() + seconds)

    @use_seed(seed_number)
    @settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        # the phase that explains failures traces every line of the case, and runs it again
        report_multiple_bugs=False, print_blob=False, phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(cases(shapes, runner.theirs.capabilities, 2 if writer == WRITERS[2] else 1))
    def run(case: Case) -> None:
        text = repr(case)
        if text not in outcomes:
            if outcomes and end.has_come(len(outcomes)):
                return
            outcomes[text] = _run_or_refuse(runner, case, writer)
        if isinstance(outcomes[text], Mismatch):
            end.allow_shrinking(len(outcomes))
            _report_wrong_case()

    try:
        with suppress(_Wrong, HypothesisException):
            run()
    except KeyboardInterrupt as stop:
        found = _summarize(feature, writer, outcomes)
        raise _Stopped(stop, found if found.status == "wrong" else evolve(found, status="stopped")) from stop
    return _summarize(feature, writer, outcomes)


def _report_wrong_case() -> None:
    raise _Wrong


def _run_or_refuse(runner: Runner, case: Case, writer: str) -> Mismatch | Refused | None:
    try:
        return runner.run_case(case, writer)
    except Refused as refusal:
        return refusal


def _summarize(feature: str, writer: str, outcomes: Mapping[str, Mismatch | Refused | None]) -> Result:
    wrong = [(len(text), text, found) for text, found in outcomes.items() if isinstance(found, Mismatch)]
    refusals = [str(found) for found in outcomes.values() if isinstance(found, Refused)]
    status = "wrong" if wrong else "refused" if refusals else "right" if outcomes else "not run"
    mismatch = min(wrong, key=lambda found: found[:2])[2] if wrong else None
    return Result(feature, writer, status, len(outcomes), len(refusals), refusals[-1] if refusals else "", mismatch)


def list_cells(
    runner: Runner, features: Mapping[str, st.SearchStrategy[Shape]], examples: int, seed: int
) -> dict[tuple[str, str], Cell]:
    """Return the cells of some features; without the capability to write, they are only read.

    Parameters
    ----------
    runner : Runner
        The implementation.
    features : mapping
        The shapes of each feature's tables by its name.
    examples, seed : int
        Those of each cell.

    Returns
    -------
    dict
        The cells by feature and writer.
    """
    writers = WRITERS if "write" in runner.theirs.capabilities.features else WRITERS[:1]

    def make_cell(feature: str, writer: str) -> Cell:
        return lambda seconds: run_feature(runner, feature, features[feature], writer, (examples, seed, seconds))

    return {(feature, writer): make_cell(feature, writer) for feature in features for writer in writers}


def run_cells(
    cells: Mapping[tuple[str, str], Cell],
    seconds: float,
    report: Callable[[Result], None],
    stop_clock: Callable[[], object],
) -> KeyboardInterrupt | None:
    """Run cells one after the other, and report the result of each.

    Parameters
    ----------
    cells : mapping
        The cells by feature and writer.
    seconds : float
        The seconds of all cells. Those that have not begun by then are ``not run``.
    report : callable
        Receives each result when it is known.
    stop_clock : callable
        Called when the run is stopped, so that it is not stopped again.

    Returns
    -------
    KeyboardInterrupt or None
        What stopped the run: the cell of that moment is reported as ``stopped``, and the next ones as ``not run``.
    """
    end, left, stop = time.monotonic() + seconds, len(cells), None
    for (feature, writer), run in cells.items():
        rest, result = end - time.monotonic(), Result(feature, writer, "not run")
        try:
            if rest > 0 and stop is None:
                result = run(max(_LEAST_SECONDS, rest / left))
        except KeyboardInterrupt as error:
            stop_clock()
            stop, result = error, evolve(result, status="stopped")
            if isinstance(error, _Stopped):
                stop, result = error.reason, error.result
        left -= 1
        report(result)
    return stop


class ExpectedRows:
    """The rows of the table of a case, step by step."""

    def __init__(self, case: Case) -> None:
        self._schema = case.schema
        self._width = case.columns_at_first
        self._rows: list[NamedRow] = []
        # Merges of a case have all records of a key, and no levels.
        self._spec = evolve(MergeSpec.of(case.schema, TableOptions.of(case.schema.options)), lookup=False)

    def apply(self, step: Step) -> None:
        """Apply a step; a compaction changes no row."""
        if isinstance(step, Write):
            missing = dict.fromkeys(self._schema.names)
            names = self._schema.names[: self._width]
            self._rows += [missing | dict(zip(names, row, strict=True)) for row in step.rows]
        elif isinstance(step, Delete):
            self._rows = [row for row in self._rows if row["k"] != step.value]
        elif isinstance(step, AddColumn):
            self._width = len(self._schema.fields)

    def rows(self) -> list[Row]:
        """Return the visible rows, as internal values in the order of the columns."""
        rows = self._rows
        if self._schema.primary_keys:
            partitions: dict[str, list[Record]] = {}
            for sequence, row in enumerate(rows):
                record = Record(row, sequence, KIND_TEXTS.index(row.get("op", "+I")))
                partitions.setdefault(repr(row.get("p")), []).append(record)
            rows = [r.values for found in partitions.values() for r in merge(found, self._spec) if r.is_add]
        return [tuple(row[name] for name in self._schema.names[: self._width]) for row in rows]
