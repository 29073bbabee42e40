"""A state machine of tables without a fixed number of buckets: dynamic, cross-partition and postponed buckets.

Its model knows rows, not files: merging is associative in the drawn tables, so the grouping of files does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve, field, frozen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from paimon import InvalidRequest, Table, Unsupported
from paimon.adapters.formats.on_demand import FormatsOnDemand
from paimon.domain.merge.merge_reference import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import DELETE, Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.operations.table_context import TableContext
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import fields_of
from support.commit_tables import engine_on

Row = Mapping[str, Any]
Kinded = tuple[Row, int]

NAMES = ("k", "p", "s", "a", "b")
FIELDS = fields_of(
    [IntType(nullable=False), VarCharType(1, nullable=False), IntType(), IntType(), IntType()], list(NAMES)
)
SMALL = st.none() | st.integers(-2, 3)
ROWS = st.fixed_dictionaries({"k": st.integers(0, 5), "p": st.sampled_from("ab"), "s": SMALL, "a": SMALL, "b": SMALL})
BATCH = st.lists(st.tuples(ROWS, st.integers(0, 9)), max_size=6)
UNIQUE = st.lists(ROWS, max_size=4, unique_by=lambda row: row["k"])
ADDS, ALL_KINDS = (0, 2), (0, 0, 2, 3, 1)

MODES: Mapping[str, Mapping[str, str]] = {
    "dynamic": {"bucket": "-1"},
    "cross-partition": {"bucket": "-1"},
    "postponed": {"bucket": "-2", "file.format": "avro"},
}
ENGINES: tuple[tuple[dict[str, str], tuple[int, ...]], ...] = (
    ({}, ALL_KINDS),
    ({}, ALL_KINDS),
    ({"sequence.field": "s"}, ADDS),
    ({"merge-engine": "first-row"}, ADDS),
    ({"merge-engine": "partial-update"}, ADDS),
    ({"merge-engine": "aggregation", "fields.a.aggregate-function": "sum",
      "fields.b.aggregate-function": "first_non_null_value", "fields.s.aggregate-function": "max"}, ADDS),
)  # fmt: skip
"""Merge engines whose results do not depend on which rows are merged first, and their row kinds."""
FEATURES: tuple[dict[str, str], ...] = (
    {"write-only": "true"},
    {},
    {"changelog-producer": "input"},
    {"changelog-producer": "lookup"},
    {"deletion-vectors.enabled": "true"},
)


@frozen
class BucketModeTable:
    """A drawn table: its mode, options and row kinds."""

    mode: str
    options: Mapping[str, str]
    kinds: tuple[int, ...]

    @property
    def is_cross(self) -> bool:
        return self.mode == "cross-partition"

    @property
    def is_postponed(self) -> bool:
        return self.mode == "postponed"

    @property
    def keys(self) -> tuple[str, ...]:
        return ("k",) if self.is_cross else ("p", "k")

    @property
    def changes_rows(self) -> bool:
        """Whether deletes and updates are allowed, and the newest row of a key wins."""
        return self.kinds == ALL_KINDS

    @property
    def has_exact_changes(self) -> bool:
        """Whether the commits themselves contain all changes."""
        producer = self.options.get("changelog-producer", "none")
        late = producer == "lookup" or "deletion-vectors.enabled" in self.options
        # A key that leaves a partition and comes back in one batch may change its bucket; buckets have no order.
        unordered = self.is_cross and producer == "input"
        return self.changes_rows and not self.is_postponed and not late and not unordered


@st.composite
def late_tables(draw: st.DrawFn, mode: str) -> BucketModeTable:
    allowed = [e for e in ENGINES if mode != "cross-partition" or "sequence.field" not in e[0]]
    engine, kinds = draw(st.sampled_from(allowed))
    features = [f for f in FEATURES if engine.get("merge-engine") != "first-row" or f in ({}, FEATURES[3])]
    options = {
        "file.format": draw(st.sampled_from(["avro", "parquet"])),
        "num-sorted-run.compaction-trigger": draw(st.sampled_from(["1", "2", "4"])),
        "write-buffer-size": draw(st.sampled_from(["1 b", "256 mb"])),
        "dynamic-bucket.target-row-num": draw(st.sampled_from(["1", "2", "3"])),
        "postpone.default-bucket-num": draw(st.sampled_from(["1", "2", "3"])),
    }
    return BucketModeTable(mode, options | draw(st.sampled_from(features)) | engine | dict(MODES[mode]), kinds)


@frozen(eq=False)
class Rows:
    """The rows that reads show, the postponed rows, and the state to which the changes lead."""

    shown: tuple[Row, ...] = ()
    postponed: tuple[Kinded, ...] = ()
    changed: Mapping[tuple[Any, ...], Row] = field(factory=dict)


def create_late_table(made: BucketModeTable) -> Table:
    engine = evolve(engine_on(MemoryFiles()), formats=FormatsOnDemand(0))
    paths = TablePaths("/lake/t")
    schema = create_table(engine, paths, TableDeclaration(FIELDS, made.keys, ("p",), made.options))
    return Table(TableContext(engine, TableDefinition("db.t", paths, schema, TableOptions.of(schema.options))))


def in_order(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in NAMES)


def sort_rows(rows: Iterable[Row]) -> list[str]:
    return sorted(repr(in_order(row)) for row in rows)


def to_arrow(rows: Sequence[Row]) -> pa.Table:
    types = [pa.int32(), pa.string(), pa.int32(), pa.int32(), pa.int32()]
    return pa.table({n: pa.array([row[n] for row in rows], t) for n, t in zip(NAMES, types, strict=True)})


def with_kinds(batch: Sequence[Kinded]) -> pa.Table:
    rows = to_arrow([row for row, _ in batch])
    return rows.append_column("op", pa.array([KIND_TEXTS[kind] for _, kind in batch], pa.string()))


class BucketModeMachine(RuleBasedStateMachine):
    """One table in memory, and the rows that it must show; subclasses choose the mode."""

    mode: str

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        self.begin(data.draw(late_tables(self.mode)))

    def begin(self, made: BucketModeTable) -> None:
        self.made = made
        self.table = create_late_table(made)
        self.spec = MergeSpec.of(self.table.table_schema, self.table.definition.options)
        self.rows = Rows()
        self.states: dict[int, Rows] = {}
        self.tagged: dict[str, Rows] = {}

    # --- the model

    def merge_rows(self, shown: Sequence[Row], batch: Sequence[Kinded]) -> tuple[Row, ...]:
        """Merge rows into the shown ones. In a cross-partition table a key has one partition."""
        places = {row["k"]: row["p"] for row in shown}
        records: dict[str, list[Record]] = {}
        for number, (row, kind) in enumerate([*((row, 0) for row in shown), *batch]):
            values = dict(row)
            if self.made.is_cross and not self.made.changes_rows:  # the key stays where it is
                values["p"] = places.setdefault(row["k"], row["p"])
            group = "" if self.made.is_cross else values["p"]
            records.setdefault(group, []).append(Record(values, number, kind))
        spec = evolve(self.spec, lookup=False)
        return tuple(r.values for found in records.values() for r in merge(found, spec) if r.is_add)

    def add(self, batch: Sequence[Kinded]) -> None:
        """Add written rows to the model."""
        if self.made.is_postponed:
            self.rows = evolve(self.rows, postponed=(*self.rows.postponed, *batch))
        else:
            self.rows = evolve(self.rows, shown=self.merge_rows(self.rows.shown, batch))

    # --- operations that change the table

    def kinds_of(self, batch: Sequence[Kinded]) -> list[Kinded]:
        return [(row, self.made.kinds[number % len(self.made.kinds)]) for row, number in batch]

    @rule(batch=BATCH)
    def write(self, batch: list[Kinded]) -> None:
        batch = self.kinds_of(batch)
        if self.table.write(with_kinds(batch), kind_column="op").snapshot_ids:
            self.add(batch)
            self.check()

    @rule(batches=st.lists(BATCH, min_size=2, max_size=3))
    def stream(self, batches: list[list[Kinded]]) -> None:
        """A stream keeps its index from one commit to the next."""
        builder = self.table.new_stream_write_builder()
        commit = builder.new_commit()
        with builder.new_write() as writer:
            for number, batch in enumerate(map(self.kinds_of, batches), start=1):
                writer.write(with_kinds(batch), "op")
                if commit.commit(number, writer.prepare_commit(number)).snapshot_ids:
                    self.add(batch)
                    self.check()

    @rule(full=st.booleans(), where=st.sampled_from([None, "a", "b"]))
    def compact(self, full: bool, where: str | None) -> None:
        full = full or (self.made.is_postponed and self.hides_level_0)
        self.table.compact(full=full, where=where and f"p = '{where}'")
        moved = [(row, kind) for row, kind in self.rows.postponed if where in (None, row["p"])]
        left = [(row, kind) for row, kind in self.rows.postponed if where not in (None, row["p"])]
        self.rows = evolve(self.rows, shown=self.merge_rows(self.rows.shown, moved), postponed=tuple(left))
        self.check()

    @property
    def hides_level_0(self) -> bool:
        return "deletion-vectors.enabled" in self.made.options or self.made.options.get("merge-engine") == "first-row"

    @precondition(lambda self: self.made.changes_rows)
    @rule(key=st.integers(0, 5), value=SMALL, deletes=st.booleans())
    def change_rows(self, key: int, value: int | None, deletes: bool) -> None:
        """Delete or update the shown rows of a key."""
        found = [row for row in self.rows.shown if row["k"] == key]
        where = f"k = {key}"
        done = self.table.delete(where) if deletes else self.table.update({"a": value}, where)
        assert done.rows == len(found)
        if found:
            self.add([(row, DELETE) if deletes else (dict(row) | {"a": value}, 2) for row in found])
            self.check()

    @precondition(lambda self: self.made.changes_rows)
    @rule(rows=UNIQUE)
    def merge_into(self, rows: list[Row]) -> None:
        """Update the column a of the keys that exist, and insert the other rows."""
        keys = self.made.keys
        if self.made.is_postponed:
            with pytest.raises(Unsupported):
                self.table.merge(to_arrow(rows), on=list(keys)).when_not_matched_insert_all().execute()
            return
        existing = {tuple(row[n] for n in keys): row for row in self.rows.shown}
        merged = self.table.merge(to_arrow(rows), on=list(keys))
        merged.when_matched_update({"a": "source.a"}).when_not_matched_insert_all().execute()
        batch = []
        for row in rows:
            old = existing.get(tuple(row[n] for n in keys))
            batch.append((row, 0) if old is None else (dict(old) | {"a": row["a"]}, 2))
        if rows:
            self.add(batch)
            self.check()

    @rule(rows=UNIQUE, whole=st.booleans())
    def overwrite(self, rows: list[Row], whole: bool) -> None:
        replaced = set("ab") if whole else {row["p"] for row in rows}
        left = tuple(row for row in self.rows.shown if row["p"] not in replaced)
        if self.made.is_cross and {row["k"] for row in left} & {row["k"] for row in rows}:
            with pytest.raises(InvalidRequest):
                self.table.overwrite(to_arrow(rows))
            return
        if not self.table.overwrite(to_arrow(rows), {} if whole else None).snapshot_ids:
            return
        pending = tuple((row, kind) for row, kind in self.rows.postponed if row["p"] not in replaced)
        self.rows = evolve(self.rows, shown=left, postponed=pending)
        self.add([(row, 0) for row in rows])
        self.check()

    @precondition(lambda self: self.states)
    @rule(partition=st.sampled_from("ab"))
    def drop_partition(self, partition: str) -> None:
        if self.table.drop_partitions({"p": partition}):
            shown = tuple(row for row in self.rows.shown if row["p"] != partition)
            pending = tuple((row, kind) for row, kind in self.rows.postponed if row["p"] != partition)
            self.rows = evolve(self.rows, shown=shown, postponed=pending)
            self.check()

    @precondition(lambda self: self.states)
    @rule(buckets=st.integers(1, 3))
    def rescale(self, buckets: int) -> None:
        """These tables have no fixed number of buckets to change."""
        with pytest.raises(Unsupported if self.made.is_postponed else InvalidRequest):
            self.table.rescale(buckets)

    @rule()
    def reopen(self) -> None:
        self.table = Table(evolve(self.table.context))

    @precondition(lambda self: self.states)
    @rule(data=st.data(), what=st.sampled_from(["tag", "expire", "roll back", "check", "check"]))
    def maintain_table(self, data: st.DataObject, what: str) -> None:
        snapshot = data.draw(st.sampled_from(sorted(self.states)))
        if what == "tag":
            self.table.tags.create(f"t{snapshot}", snapshot, exist_ok=True)
            self.tagged[f"t{snapshot}"] = self.states[snapshot]
        elif what == "expire" and not self.rows.postponed:  # the order of expired commits is that of file times
            self.table.maintain.expire_snapshots(retain_min=1, retain_max=snapshot)
            left = {s.id for s in self.table.snapshots()}
            self.states = {number: state for number, state in self.states.items() if number in left}
        elif what == "roll back":
            self.table.maintain.rollback_to(snapshot)
            self.rows = self.states[snapshot]
            self.states = {number: state for number, state in self.states.items() if number <= snapshot}
            self.tagged = {name: state for name, state in self.tagged.items() if int(name[1:]) <= snapshot}
            assert self.read() == sort_rows(self.rows.shown)
        elif what == "check":
            report = self.table.maintain.check(deep=True)
            assert report.is_whole, str(report)

    # --- reads

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def check_time_travel(self, data: st.DataObject) -> None:
        snapshot = data.draw(st.sampled_from(sorted(self.states)))
        assert self.read(snapshot=snapshot) == sort_rows(self.states[snapshot].shown)
        for name, state in self.tagged.items():
            assert self.read(tag=name) == sort_rows(state.shown)

    @precondition(lambda self: self.states)
    @rule(key=st.integers(0, 5), partition=st.sampled_from("ab"))
    def check_key(self, key: int, partition: str) -> None:
        """Predicates over the key select buckets."""
        rows = [row for row in self.rows.shown if row["k"] == key]
        assert self.read(where=f"k = {key}") == sort_rows(rows)
        rows = [row for row in rows if row["p"] == partition]
        assert self.read(where=f"k = {key} AND p = '{partition}'") == sort_rows(rows)

    def read(self, **how: Any) -> list[str]:
        return sort_rows(self.table.scan(**how).to_arrow().to_pylist())

    def check(self) -> None:
        """Check the table after a commit: its rows, the places of its keys, and its changes."""
        before = max(self.states, default=0)
        new = [s for s in self.table.snapshots() if s.id > before]
        assert self.read() == sort_rows(self.rows.shown)
        if not new:
            return
        self.check_places()
        if any(s.commit_kind is CommitKind.OVERWRITE for s in new):
            changed = {(row["p"], row["k"]): row for row in self.rows.shown}
        else:
            changed = self.apply_changes(before, new[-1].id)
        if self.made.has_exact_changes:
            assert sort_rows(changed.values()) == sort_rows(self.rows.shown)
        self.rows = evolve(self.rows, changed=changed)
        self.states[new[-1].id] = self.rows

    def check_places(self) -> None:
        """Each key is in one bucket, and in one partition where the primary key lacks the partition."""
        read = self.table.new_read_builder()
        places: list[tuple[Any, ...]] = []
        for (partition, bucket), keys in self.read_buckets(read).items():
            target = int(self.made.options["dynamic-bucket.target-row-num"])
            assert self.made.is_postponed or len(keys) <= target, f"bucket {bucket} has {keys}"
            places += [key if self.made.is_cross else (partition, *key) for key in keys]
        twice = [key for key, count in Counter(places).items() if count > 1]
        assert not twice, f"these keys are in several buckets: {twice}"

    def read_buckets(self, read: Any) -> dict[tuple[bytes, int], list[tuple[Any, ...]]]:
        """Return the keys of the visible rows of each bucket."""
        keys: dict[tuple[bytes, int], list[tuple[Any, ...]]] = {}
        for split in read.new_scan().plan().splits():
            rows = read.new_read().to_arrow([split]).to_pylist()
            keys.setdefault((split.partition, split.bucket), []).extend((row["k"],) for row in rows)
        return keys

    def apply_changes(self, after: int, through: int) -> dict[tuple[Any, ...], Row]:
        """State before and changes make the state after."""
        changed = dict(self.rows.changed)
        if self.made.has_exact_changes:
            rows = self.table.changes(after=after, through=through).to_arrow().to_pylist()
            if self.made.is_cross:  # the -D row of a moved key precedes its row in another bucket
                rows.sort(key=lambda row: (row["_snapshot_id"], row["_row_kind"] in ("+I", "+U")))
            for row in rows:
                place = row["p"], row["k"]
                if row["_row_kind"] in ("+I", "+U"):
                    changed[place] = row
                else:
                    changed.pop(place, None)
        return changed


class DynamicMachine(BucketModeMachine):
    mode = "dynamic"


class CrossPartitionMachine(BucketModeMachine):
    mode = "cross-partition"


class PostponedMachine(BucketModeMachine):
    mode = "postponed"


MACHINES = (DynamicMachine, CrossPartitionMachine, PostponedMachine)
