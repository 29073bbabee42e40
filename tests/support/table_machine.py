"""The table state machine: a table in memory, all operations on it, and its model.

The model (`paimon.testing.model`) has the written rows and their files. After each commit files,
rows and changes of the table are compared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from paimon import Table
from paimon.adapters.formats.on_demand import FormatsOnDemand
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.row.values import to_values
from paimon.domain.schema.changes import AddColumn
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataField, IntType
from paimon.operations.commit.base import CommitBase
from paimon.operations.evolve import TableDeclaration, create_table, load_at_newest_schema
from paimon.operations.table_context import TableContext
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.model import ModelFile, ModelWriter, PartitionBucket, Row, TableModel
from paimon.testing.strategies import MergingTable, merging_tables, to_arrow_table
from paimon.testing.strategies.histories import DELETE, UPDATE_AFTER
from paimon.testing.strategies.predicates import predicates
from support.commit_tables import engine_on

KEYS, PARTITIONS = range(5), "ab"
SMALL = st.none() | st.integers(-2, 3)
TEXTS = st.none() | st.sampled_from(["", "x", "yz"])
VALUES = {"s": SMALL, "g": SMALL, "a": SMALL, "b": SMALL, "t": TEXTS}
KEY = {"k": st.sampled_from(KEYS), "p": st.sampled_from(PARTITIONS)}
NEW_COLUMNS = ("n", "m")
NEWEST = {"compaction.max-size-amplification-percent": "9999", "compaction.size-ratio": "-100"}
"""Options with which a trigger of n does not compact the n - 1 oldest runs of any size."""
COMPACTIONS: list[dict[str, str] | None] = [
    {},
    None,
    *(NEWEST | {"num-sorted-run.compaction-trigger": str(n)} for n in (2, 3, 4)),
]
"""Options of a compaction; None: a full one."""
BATCHES = st.lists(st.lists(st.tuples(st.fixed_dictionaries(KEY | VALUES), st.integers(0, 9)), max_size=5), max_size=3)
"""What goes into one flush, cut into batches: rows, each with a number that chooses its kind."""
OFTEN = (*["write"] * 7, "widen", "overwrite", "overwrite all")

Kinded = tuple[dict[str, Any], int]


@frozen(eq=False)
class State:
    """The table at one snapshot: its schema and rows, the model's files, and the state after the changes."""

    schema: TableSchema
    rows: list[Row]
    files: dict[PartitionBucket, dict[str, ModelFile]]
    changed: dict[tuple[Any, ...], Row]

    @property
    def sorted_rows(self) -> list[str]:
        """The rows that a scan returns."""
        return sorted(repr(tuple(row[name] for name in self.schema.names)) for row in self.rows)


def names_and_levels(files: Mapping[str, ModelFile]) -> set[tuple[str, int]]:
    return {(name, file.meta.level) for name, file in files.items()}


class TableMachine(RuleBasedStateMachine):
    """One table in memory, and its model."""

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        self.begin(data.draw(merging_tables()))

    def begin(self, made: MergingTable) -> None:
        self.made = made
        engine = engine_on(MemoryFiles())
        engine = evolve(engine, formats=FormatsOnDemand(0))
        schema, paths = made.schema, TablePaths("/lake/t")
        schema = create_table(
            engine,
            paths,
            TableDeclaration(schema.fields, schema.primary_keys, schema.partition_keys, schema.options),
        )
        definition = TableDefinition("db.t", paths, schema, TableOptions.of(schema.options))
        self.table = Table(TableContext(engine, definition))
        self.model = TableModel(definition)
        self.states: dict[int, State] = {}
        self.tagged: dict[str, tuple[int, State]] = {}
        self.changed: dict[tuple[Any, ...], Row] = {}

    # --- operations that change the table

    @rule(flushes=st.lists(BATCHES, min_size=1, max_size=2), then=st.none() | st.tuples(st.sampled_from(COMPACTIONS)))
    def write(self, flushes: list[list[list[Kinded]]], then: tuple[dict[str, str] | None] | None) -> None:
        builder = self.table.new_batch_write_builder()
        uncompacted = self.copy_model()
        modelled = [ModelWriter(self.model), ModelWriter(uncompacted)]
        messages = []
        with builder.new_write() as writer:
            for batches in flushes:
                for batch in batches:
                    rows, kinds = self.rows_of(batch)
                    writer.write(self.arrow(rows, kinds), "op")
                    for model_writer in modelled:
                        model_writer.write(rows, kinds)
                prepared = writer.prepare_commit()
                modelled[0].flush(prepared)
                modelled[1].flush([evolve(m, compact=CompactIncrement()) for m in prepared])
                messages += prepared
        if builder.new_commit().commit(messages).snapshot_ids:
            self.undo_replaced_compactions(uncompacted)
            self.check()
        if then is not None:
            self.compact(*then, None)

    def copy_model(self) -> TableModel:
        """Return an independent model with the same files."""
        copy = TableModel(self.model.table)
        copy.files = {bucket: dict(files) for bucket, files in self.model.files.items()}
        return copy

    def undo_replaced_compactions(self, uncompacted: TableModel) -> None:
        """Undo the compactions that the commit did not publish.

        A commit that must make rows visible replaces a compaction of the writer that does not compact all of them. The
        new compaction merges the written files at once, and with it the order of equal sequences may change.
        """
        live = {(entry.file.file_name, entry.file.level) for entry in self.live()}
        for bucket, files in uncompacted.files.items():
            compacted = names_and_levels(self.model.files.get(bucket, {})) - names_and_levels(files)
            if not compacted <= live:
                self.model.files[bucket] = files

    @rule(options=st.sampled_from(COMPACTIONS), where=st.sampled_from([None, *PARTITIONS]))
    def compact(self, options: dict[str, str] | None, where: str | None) -> None:
        selected = f"p = '{where}'" if where and self.table.partition_keys else None
        table = self.table.with_options(options or {})
        if table.compact(full=options is None, where=selected).snapshot_ids:
            self.check()

    @rule(batch=st.lists(st.fixed_dictionaries(KEY | VALUES), max_size=5), what=st.sampled_from(OFTEN))
    def write_small_batch(self, batch: list[dict[str, Any]], what: str) -> None:
        """A small write, and sometimes a rarer operation."""
        if what == "widen":
            self.widen()
        elif what == "write":
            self.write([[[(row, number) for number, row in enumerate(batch)]]], None)
        else:
            self.overwrite(batch, what == "overwrite all")

    @rule(buckets=st.integers(1, 4))
    def rescale(self, buckets: int) -> None:
        """All partitions get another number of buckets. If compactions write changelog, a compaction runs before."""
        if self.table.definition.options.changelog_producer in ("lookup", "full-compaction"):
            self.compact(None, None)
        done = self.table.rescale(buckets)
        self.table = Table(load_at_newest_schema(self.table.context))
        if done.snapshot_ids:
            self.model.apply_rescale(self.table.definition, self.live())
            self.check()
        else:
            self.model.apply_schema_change(self.table.definition)

    def widen(self) -> None:
        name = next((n for n in NEW_COLUMNS if n not in self.table.table_schema.names), None)
        if name is not None:
            self.table = self.table.alter(AddColumn(name, IntType()))
            self.model.apply_schema_change(self.table.definition)

    def overwrite(self, batch: list[dict[str, Any]], whole: bool) -> None:
        rows, kinds = self.rows_of([(row, 0) for row in batch])
        builder = self.table.new_batch_write_builder().overwrite({} if whole else None)
        modelled = ModelWriter(self.model, is_overwrite=True)
        with builder.new_write() as writer:
            writer.write(to_arrow_table(self.fields, [self.in_order(row) for row in rows]))
            modelled.write(rows, kinds)
            messages = writer.prepare_commit()
        if not builder.new_commit().commit(messages).snapshot_ids:
            return
        partitioned = bool(self.table.partition_keys)
        self.model.remove_partitions({m.partition for m in messages} if partitioned and not whole else None)
        modelled.flush(messages)
        self.check()

    @precondition(lambda self: self.changes_rows)
    @rule(key=KEY["k"], value=SMALL)
    def change_rows(self, key: int, value: int | None) -> None:
        """The rows of a key are deleted (no value), or updated: that is, written with their kind."""
        rows = [dict(row) for row in self.model.rows() if row["k"] == key]  # also level 0, even if reads skip it
        where = f"k = {key}"
        done = self.table.delete(where) if value is None else self.table.update({"a": value}, where)
        assert done.rows == len(rows)
        if rows:
            modelled = ModelWriter(self.model)
            changed = [row if value is None else row | {"a": value} for row in rows]
            modelled.write(changed, [DELETE if value is None else UPDATE_AFTER] * len(rows))
            modelled.flush(self.new_files())
            self.check()

    @property
    def changes_rows(self) -> bool:
        """Whether the model can follow row changes: the newest record wins, and no compaction runs."""
        options = self.table.definition.options
        return options.merge_engine == "deduplicate" and options.write_only and not options.ignore_delete

    def new_files(self) -> list[CommitMessage]:
        """The files that the model does not have yet, as the messages of a writer."""
        found: dict[PartitionBucket, list[DataFileMeta]] = {}
        for entry in self.live():
            place = entry.partition, entry.bucket
            if entry.file.file_name not in self.model.files.get(place, {}):
                found.setdefault(place, []).append(entry.file)
        return [CommitMessage(*place, 0, "", DataIncrement(files)) for place, files in found.items()]

    @precondition(lambda self: self.states)
    @rule(data=st.data(), what=st.sampled_from(["tag", "tag", "expire", "expire", "roll back", "check"]))
    def maintain_table(self, data: st.DataObject, what: str) -> None:
        snapshot = data.draw(st.sampled_from(sorted(self.states)))
        if what == "tag":
            self.table.tags.create(f"t{snapshot}", snapshot, exist_ok=True)
            self.tagged[f"t{snapshot}"] = snapshot, self.states[snapshot]
        elif what == "expire":
            self.table.maintain.expire_snapshots(retain_min=1, retain_max=snapshot)
            left = {s.id for s in self.table.snapshots()}
            self.states = {number: state for number, state in self.states.items() if number in left}
        elif what == "roll back":
            self.roll_back(snapshot)
        else:
            report = self.table.maintain.check(deep=True)
            assert report.is_whole, str(report)

    def roll_back(self, snapshot: int) -> None:
        self.table.maintain.rollback_to(snapshot)
        state = self.states[snapshot]
        self.states = {number: other for number, other in self.states.items() if number <= snapshot}
        self.tagged = {name: (at, other) for name, (at, other) in self.tagged.items() if at <= snapshot}
        self.model.files = {place: dict(found) for place, found in state.files.items()}
        self.model.apply_schema_change(self.table.definition)
        self.changed = dict(state.changed)
        self.rescale(self.table.definition.options.bucket)  # the option stays, and the files have an older number
        assert self.sorted_rows(self.table.scan().to_arrow()) == self.sorted(self.model.visible_rows())

    # --- reads

    @rule(data=st.data(), limit=st.integers(0, 6))
    def check_scan(self, data: st.DataObject, limit: int) -> None:
        rows = self.model.visible_rows()
        names = data.draw(st.lists(st.sampled_from(self.table.table_schema.names), min_size=1, unique=True))
        predicate = data.draw(predicates(self.fields, rows=[self.in_order(row) for row in rows]))
        wanted = sorted(repr(tuple(r[n] for n in names)) for r in rows if matches(predicate, r))
        found = self.table.scan(columns=names, where=predicate)
        assert found.to_arrow().column_names == names
        assert self.sorted_rows(found.to_arrow()) == wanted
        assert self.table.scan(where=predicate).count() == len(wanted)
        some = self.sorted_rows(self.table.scan(columns=names, where=predicate, limit=limit).to_arrow())
        assert len(some) == min(limit, len(wanted)) and not Counter(some) - Counter(wanted)

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def check_time_travel(self, data: st.DataObject) -> None:
        snapshot = data.draw(st.sampled_from(sorted(self.states)))
        assert self.sorted_rows(self.table.scan(snapshot=snapshot).to_arrow()) == self.states[snapshot].sorted_rows
        for name, (_, state) in self.tagged.items():
            assert self.sorted_rows(self.table.scan(tag=name).to_arrow()) == state.sorted_rows

    # How they are compared.

    def check(self) -> None:
        """Check the table after a commit: its files, rows and changes agree with the model."""
        before = max(self.states, default=0)
        new = [s for s in self.table.snapshots() if s.id > before]
        assert new
        self.model.apply_live_files(self.live())
        rows = self.model.visible_rows()
        assert self.sorted_rows(self.table.scan().to_arrow()) == self.sorted(rows)
        if any(s.commit_kind is CommitKind.OVERWRITE for s in new):
            self.changed = {self.key(row): row for row in self.model.reported_rows()}
        else:
            self.check_changes(before, new[-1].id)
        files = {place: dict(found) for place, found in self.model.files.items()}
        self.states[new[-1].id] = State(self.table.table_schema, rows, files, dict(self.changed))

    def check_changes(self, after: int, through: int) -> None:
        """State before and changes make the state after."""
        found = self.table.changes(after=after, through=through).to_arrow()
        kinds = found["_row_kind"].to_pylist()
        for kind, *values in zip(kinds, *self.values(found.drop_columns(["_snapshot_id", "_row_kind"])), strict=True):
            row = dict(zip(self.table.table_schema.names, values, strict=True))
            if kind in ("+I", "+U"):
                self.changed[self.key(row)] = row
            else:
                self.changed.pop(self.key(row), None)
        if self.made.has_exact_changes:
            assert self.sorted(self.changed.values()) == self.sorted(self.model.reported_rows())

    @property
    def fields(self) -> tuple[DataField, ...]:
        return self.table.table_schema.fields

    def live(self) -> list[ManifestEntry]:
        return CommitBase(self.table.context, self.table.snapshot()).read_live_files(lambda _: True)

    def rows_of(self, batch: Sequence[Kinded]) -> tuple[list[Row], list[int]]:
        """Rows with the current columns, and row kinds that the table accepts."""
        missing = dict.fromkeys(self.table.table_schema.names)
        rows = [{name: row.get(name) for name in missing} for row, _ in batch]
        return rows, [self.made.kinds[number % len(self.made.kinds)] for _, number in batch]

    def arrow(self, rows: Sequence[Row], kinds: Sequence[int]) -> pa.Table:
        data = to_arrow_table(self.fields, [self.in_order(row) for row in rows])
        return data.append_column("op", pa.array([KIND_TEXTS[kind] for kind in kinds], pa.string()))

    def key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.table.primary_keys)

    def in_order(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(f.name) for f in self.fields)

    def sorted(self, rows: Iterable[Row]) -> list[str]:
        return sorted(repr(self.in_order(row)) for row in rows)

    def values(self, found: pa.Table) -> list[list[Any]]:
        types: Mapping[str, DataField] = {f.name: f for f in self.fields}
        return [to_values(found[name], types[name].type) for name in found.column_names]

    def sorted_rows(self, found: pa.Table) -> list[str]:
        return sorted(map(repr, zip(*self.values(found), strict=True)))
