"""Behaviour of a single committer: commit kinds, counts, overwrites, conflicts, and what does not change."""

from __future__ import annotations

import pytest
from attrs import evolve
from support.commit_tables import (
    as_another_process,
    create,
    data_file,
    engine_on,
    live_names,
    memory_table,
    message,
    partition,
    table_at,
)

from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import CommitConflict, CommitUncertain, CorruptTable, InvalidRequest
from paimon.domain.manifest.entries import DeletionVectorRange, FileKind, FileSource, IndexManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.commit import commit
from paimon.operations.commit.history import is_committed
from paimon.operations.commit.prepared_files import abort
from paimon.operations.metadata.snapshots import latest_snapshot, load_snapshot
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.interleaving import Interleaving, SimulatedClock
from paimon.testing.memory_files import MemoryFiles


def put(
    engine: Engine, table: TableDefinition, *messages: CommitMessage, user: str = "u", **request: object
) -> CommitResult:
    return commit(TableContext(engine, table), CommitRequest(messages, user, **request))  # type: ignore[arg-type]


def newest(engine: Engine, table: TableDefinition) -> Snapshot:
    found = latest_snapshot(TableContext(engine, table))
    assert found is not None
    return found


def test_appends_add_up() -> None:
    engine, table = memory_table()
    first = put(engine, table, message(table, ["a", "b"]), properties={"k": "v"}, watermark=7)
    second = put(engine, table, message(table, ["c"]), watermark=5)
    assert (first.snapshot_ids, first.added_rows, first.added_files) == ((1,), 20, 2)
    assert second.snapshot_ids == (2,)
    one, two = load_snapshot(TableContext(engine, table), 1), newest(engine, table)
    assert one.commit_kind is CommitKind.APPEND
    assert (one.properties, two.properties) == ({"k": "v"}, {})
    assert (one.delta_record_count, two.total_record_count, two.watermark) == (20, 30, 7)
    assert (one.next_row_id, one.operation) == (0, "WRITE")
    assert one.uuid != two.uuid
    assert engine.files.read(table.paths.latest_hint) == b"2"
    assert live_names(engine, table) == ["a", "b", "c"]


def test_an_empty_commit_is_skipped_or_published_as_requested() -> None:
    engine, table = memory_table()
    assert put(engine, table).snapshot_ids == ()
    assert put(engine, table, ignore_empty=False, commit_identifier=3).snapshot_ids == (1,)
    changed = evolve(table, options=TableOptions.of({"snapshot.ignore-empty-commit": "false"}))
    assert put(engine, changed).snapshot_ids == (2,)


def test_compaction_is_a_second_snapshot_of_the_same_identifier() -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a"]), commit_identifier=1)
    compact = CompactIncrement(compact_before=(data_file("a"), data_file("b")), compact_after=(data_file("ab", 5),))
    result = put(engine, table, message(table, ["b"], compact=compact), commit_identifier=2)
    kinds = [load_snapshot(TableContext(engine, table), i) for i in result.snapshot_ids]
    assert [(s.commit_kind, s.commit_identifier) for s in kinds] == [(CommitKind.APPEND, 2), (CommitKind.COMPACT, 2)]
    assert kinds[1].delta_record_count == -10
    assert live_names(engine, table) == ["ab@5"]


def test_an_upgrade_is_the_same_file_on_another_level() -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a"]))
    upgrade = CompactIncrement(compact_before=(data_file("a"),), compact_after=(data_file("a", 5),))
    put(engine, table, message(table, compact=upgrade))
    assert live_names(engine, table) == ["a@5"]


def test_an_identifier_is_committed_once() -> None:
    engine, table = memory_table()
    put(engine, table, message(table, ["a"]), commit_identifier=5)
    again = put(engine, table, message(table, ["b"]), commit_identifier=5)
    with pytest.raises(InvalidRequest, match="must be larger than 5"):
        put(engine, table, message(table, ["c"]), commit_identifier=4)
    other = put(engine, table, message(table, ["d"]), commit_identifier=5, user="v")
    assert again.already_committed
    assert other.snapshot_ids == (2,)
    assert live_names(engine, table) == ["a", "d"]
    assert is_committed(TableContext(engine, table), "u", 5) and not is_committed(TableContext(engine, table), "u", 6)


def three_partitions() -> tuple[Engine, TableDefinition]:
    engine, table = memory_table(partitioned=True)
    put(engine, table, *(message(table, [f"f{p}"], part=p) for p in (1, 2, 3)))
    return engine, table


@pytest.mark.parametrize(
    ("spec", "dynamic", "written", "left"),
    [
        ({"p": 1}, False, [(1, "new")], ["f2", "f3", "new"]),
        ({"p": "1"}, False, [], ["f2", "f3"]),
        ({}, False, [(2, "new")], ["new"]),
        ({}, False, [], []),
        (None, True, [(2, "new"), (3, "also")], ["also", "f1", "new"]),
        ({"p": 9}, False, [(9, "new")], ["f1", "f2", "f3", "new"]),
    ],
)
def test_overwrite(
    spec: dict[str, object] | None, dynamic: bool, written: list[tuple[int, str]], left: list[str]
) -> None:
    engine, table = three_partitions()
    messages = [message(table, [name], part=p) for p, name in written]
    put(engine, table, *messages, overwrite=spec, dynamic_overwrite=dynamic)
    assert live_names(engine, table) == left
    snapshot = newest(engine, table)
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    assert snapshot.total_record_count == 10 * len(left)


def test_a_dynamic_overwrite_without_rows_creates_no_snapshot() -> None:
    engine, table = three_partitions()
    assert put(engine, table, dynamic_overwrite=True).snapshot_ids == ()


def test_an_overwrite_refuses_rows_of_another_partition() -> None:
    engine, table = three_partitions()
    with pytest.raises(InvalidRequest, match="new"):
        put(engine, table, message(table, ["new"], part=2), overwrite={"p": 1})
    with pytest.raises(InvalidRequest, match="q"):
        put(engine, table, overwrite={"q": 1})
    assert newest(engine, table).id == 1


def test_an_overwrite_takes_index_files_of_its_partitions_along() -> None:
    engine, table = memory_table(partitioned=True, keyed=True, options={"bucket": "1"})
    for p in (1, 2):
        index = IndexManifestEntry(FileKind.ADD, partition(p), 0, "HASH", f"index-{p}", 4, 1)
        data = DataIncrement(new_files=(data_file(f"f{p}"),), new_index_files=(index,))
        put(engine, table, message(table, part=p, data=data))
    put(engine, table, message(table, ["plain"], part=3))
    put(engine, table, overwrite={"p": 1})
    base = CommitBase(TableContext(engine, table), newest(engine, table))
    assert [e.file_name for e in base.index_files] == ["index-2"]
    assert newest(engine, table).operation == "OVERWRITE"


def test_a_change_of_deletion_vectors_is_an_overwrite_and_replaces_the_index_file() -> None:
    engine, table = memory_table(options={"bucket": "-1"})
    put(engine, table, message(table, ["a"]))
    previous: tuple[IndexManifestEntry, ...] = ()
    for name in ("index-1", "index-2"):
        vector = (DeletionVectorRange("a", 1, 22, 1),)
        entry = IndexManifestEntry(FileKind.ADD, partition(None), 0, "DELETION_VECTORS", name, 30, 1, vector)
        engine.files.replace(table.paths.index(name), b"vectors")
        data = DataIncrement(new_index_files=(entry,), deleted_index_files=previous)
        put(engine, table, message(table, data=data))
        previous = (entry,)
    base = CommitBase(TableContext(engine, table), newest(engine, table))
    assert [(e.file_name, e.kind) for e in base.index_files] == [("index-2", FileKind.ADD)]
    assert newest(engine, table).commit_kind is CommitKind.OVERWRITE
    engine.files.replace(table.paths.index("index-3"), b"vectors")
    with pytest.raises(CommitConflict, match="two deletion vectors"):
        put(engine, table, message(table, data=DataIncrement(new_index_files=(evolve(entry, file_name="index-3"),))))


def test_a_plain_append_inherits_index_manifest_and_statistics() -> None:
    engine, table = memory_table(keyed=True)
    index = IndexManifestEntry(FileKind.ADD, partition(None), 0, "HASH", "index-1", 4, 1)
    put(engine, table, message(table, data=DataIncrement(new_files=(data_file("a"),), new_index_files=(index,))))
    before = newest(engine, table)
    put(engine, table, message(table, ["b"]))
    assert before.index_manifest is not None
    assert newest(engine, table).index_manifest == before.index_manifest


def compaction(table: TableDefinition, before: list[str], after: str, low: int = 0, high: int = 9) -> CommitMessage:
    files = tuple(data_file(name) for name in before)
    return message(table, compact=CompactIncrement(files, (data_file(after, 5, low, high),)))


@pytest.mark.parametrize(
    ("second", "names"),
    [
        (["a"], ("a",)),  # another writer compacted it
        (["b", "gone"], ("gone",)),
    ],
)
def test_two_compactions_of_one_file_conflict(second: list[str], names: tuple[str, ...]) -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a", "b"]))
    put(engine, table, compaction(table, ["a"], "x"))
    manifests = set(_paths(engine))
    with pytest.raises(CommitConflict) as conflict:
        put(engine, table, compaction(table, second, "y", 20, 30))
    assert conflict.value.files == names
    assert newest(engine, table).id == 2
    assert set(_paths(engine)) == manifests


def _paths(engine: Engine) -> list[str]:
    assert isinstance(engine.files, MemoryFiles)
    return list(engine.files.contents)


def test_overlapping_keys_of_one_level_conflict() -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a", "b"]))
    put(engine, table, compaction(table, ["a"], "x", 0, 9))
    with pytest.raises(CommitConflict, match="overlap"):
        put(engine, table, compaction(table, ["b"], "y", 9, 12))
    put(engine, table, compaction(table, ["b"], "y", 10, 12))
    assert live_names(engine, table) == ["x@5", "y@5"]


def test_another_number_of_buckets_needs_an_overwrite() -> None:
    engine, table = memory_table(keyed=True)
    put(engine, table, message(table, ["a"], total_buckets=2))
    wrong = message(table, ["b"], total_buckets=4)
    with pytest.raises(CommitConflict, match="buckets"):
        put(engine, table, wrong, check_conflicts=True)
    put(engine, table, wrong, overwrite={})
    assert live_names(engine, table) == ["b"]


def test_duplicates_are_refused_or_dropped() -> None:
    engine, table = memory_table()
    put(engine, table, message(table, ["a"]))
    with pytest.raises(CommitConflict) as conflict:
        put(engine, table, message(table, ["a"]), check_conflicts=True)
    assert conflict.value.files == ("a",)
    dropping = evolve(table, options=TableOptions.of({"commit.discard-duplicate-files": "true"}))
    done = put(engine, dropping, message(table, ["a", "b"]))
    assert (done.added_files, done.added_rows) == (1, 10)
    assert live_names(engine, table) == ["a", "b"]
    assert newest(engine, table).total_record_count == 20
    put(engine, dropping, message(table, ["a", "b"]))
    assert (newest(engine, table).id, newest(engine, table).delta_record_count) == (3, 0)


def test_files_are_checked_after_deduplication() -> None:
    engine, table = memory_table(keyed=True, options={"commit.discard-duplicate-files": "true"})
    put(engine, table, message(table, ["a"], total_buckets=2))
    with pytest.raises(CommitConflict, match="buckets"):
        put(engine, table, message(table, ["b"], total_buckets=4))


def test_a_lost_compaction_does_not_take_the_write_along() -> None:
    engine, table = memory_table(keyed=True)
    compact = CompactIncrement((data_file("gone"),), (data_file("x", 5),))
    result = put(engine, table, message(table, ["a"], compact=compact))
    assert result.snapshot_ids == (1,)
    assert result.lost_compaction is not None and result.lost_compaction.files == ("gone",)
    assert live_names(engine, table) == ["a"]


def test_a_missing_manifest_is_named_and_no_snapshot_is_published() -> None:
    engine, table = memory_table(partitioned=True)
    put(engine, table, message(table, ["a"], part=1))
    base = CommitBase(TableContext(engine, table), newest(engine, table))
    (manifest,) = base.manifests
    engine.files.delete([table.paths.manifest(manifest.file_name)])
    before = set(_paths(engine))
    for request in ({"overwrite": {"p": 1}}, {"check_conflicts": True}):
        with pytest.raises(CorruptTable, match=manifest.file_name):
            put(as_another_process(engine), table, message(table, ["b"], part=1), **request)
    engine.files.delete([table.paths.manifest(newest(engine, table).delta_manifest_list)])
    with pytest.raises(CorruptTable, match="manifest-list"):
        put(as_another_process(engine), table, message(table, ["b"], part=1))
    assert set(_paths(engine)) == before - {table.paths.manifest(newest(engine, table).delta_manifest_list)}


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ""])
def test_messages_cannot_name_files_elsewhere(name: str) -> None:
    engine, table = memory_table()
    with pytest.raises(InvalidRequest):
        put(engine, table, message(table, [name]))
    for place in ("/etc", table.location + "/../x"):
        with pytest.raises(InvalidRequest):
            put(engine, table, evolve(message(table, ["a"]), bucket_path=place))
    with pytest.raises(InvalidRequest):
        put(engine, table, message(table, [evolve(data_file("a"), external_path="/etc/a")]))


def test_a_hint_that_cannot_be_written_is_no_failure() -> None:
    memory = MemoryFiles()
    engine = engine_on(FaultyFiles(memory, lambda op, path: Fault.FAIL_BEFORE if op == "replace" else None))
    table = table_at("/lake/t")
    create(engine, table)
    assert put(engine, table, message(table, ["a"])).snapshot_ids == (1,)
    assert put(engine, table, message(table, ["b"])).snapshot_ids == (2,)


@pytest.mark.parametrize("fault", [Fault.REPLY_EXISTS, Fault.REPLY_UNKNOWN, Fault.FAIL_AFTER])
def test_a_lost_acknowledgement_never_doubles(fault: Fault) -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t")

    def plan_fault(operation: str, path: str) -> Fault | None:
        return fault if operation == "put_if_absent" and "/snapshot-" in path else None

    engine = engine_on(FaultyFiles(memory, plan_fault))
    create(engine, table)
    for i in range(5):
        assert put(engine, table, message(table, [f"f{i}"])).snapshot_ids == (i + 1,)
    assert live_names(engine_on(memory), table) == [f"f{i}" for i in range(5)]


@pytest.mark.parametrize("expired", [(1, 2), (1, 2, 3)], ids=["the next exists", "the next has expired"])
def test_a_put_behind_the_head_is_withdrawn_and_repeated(expired: tuple[int, ...]) -> None:
    """Another writer published snapshot n+1, which expired while this writer stalled. The put of n+1 succeeds."""
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, message(table, ["base"]))
    stalled: list[str] = []

    def stall(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and not stalled:
            stalled.append(path)
            for name in ("x", "y", "z"):
                put(faultless, table, message(table, [name]))
            memory.delete([table.paths.snapshot(i) for i in expired])
        return None

    done = put(engine_on(FaultyFiles(memory, stall)), table, message(table, ["late"]), user="slow")
    assert stalled == [table.paths.snapshot(2)]
    assert done.snapshot_ids == (5,)
    assert live_names(faultless, table) == ["base", "late", "x", "y", "z"]
    assert memory.status(table.paths.snapshot(2)) is None


@pytest.mark.parametrize("gone", [1, 2, 3])
@pytest.mark.parametrize("others", [1, 4])
def test_a_published_commit_stays_committed_while_others_merge_its_manifest_and_expire_it(
    others: int, gone: int
) -> None:
    """Between the put and the check of its base, the base expires, and so may the snapshot itself."""
    memory = MemoryFiles()
    table = table_at("/lake/t", options={"manifest.merge-min-count": "2"})
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, message(table, ["base"]))
    stalled: list[str] = []

    def stall(operation: str, path: str) -> Fault | None:
        won = table.paths.snapshot(2) in memory.contents
        if operation == "read" and path == table.paths.snapshot(1) and won and not stalled:
            stalled.append(path)
            for i in range(others):
                put(faultless, table, message(table, [f"other{i}"]))
            memory.delete([table.paths.snapshot(i) for i in range(1, min(gone, others + 1) + 1)])
        return None

    done = put(engine_on(FaultyFiles(memory, stall)), table, message(table, ["late"]), user="slow")
    assert stalled
    assert done.snapshot_ids == (2,)
    assert live_names(faultless, table) == ["base", "late", *(f"other{i}" for i in range(others))]


def test_a_put_behind_the_head_that_cannot_be_verified_is_uncertain() -> None:
    """The snapshots that decide the commit status cannot be read. No file is removed, and the status is unknown."""
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, message(table, ["base"]))
    late: list[str] = []

    def stall(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and not late:
            late.append(path)
            for name in ("x", "y"):
                put(faultless, table, message(table, [name]))
            memory.delete([table.paths.snapshot(i) for i in (1, 2)])
        return Fault.FAIL_BEFORE if late and path == table.paths.snapshot(3) else None

    with pytest.raises(CommitUncertain) as uncertain:
        put(engine_on(FaultyFiles(memory, stall)), table, message(table, ["late"]), user="slow")
    assert uncertain.value.commit_user == "slow"
    assert memory.status(table.paths.snapshot(2)) is not None
    assert live_names(faultless, table) == ["base", "x", "y"]


def test_a_base_that_expired_behind_us_is_no_reason_to_doubt() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, message(table, ["base"]))

    def expire(operation: str, path: str) -> Fault | None:
        if operation == "read" and path == table.paths.snapshot(1) and table.paths.snapshot(2) in memory.contents:
            memory.delete([path])
        return None

    assert put(engine_on(FaultyFiles(memory, expire)), table, message(table, ["next"])).snapshot_ids == (2,)


def test_the_cost_of_an_append_does_not_grow_with_history() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t", options={"manifest.merge-min-count": "1000"})
    operations: list[tuple[str, str]] = []

    def note(operation: str, path: str) -> Fault | None:
        operations.append((operation, path.rsplit("/", 1)[-1]))
        return None

    create(engine_on(memory), table)
    costs = []
    for i in range(40):
        operations.clear()
        put(engine_on(FaultyFiles(memory, note)), table, message(table, [f"f{i}"]))
        costs.append(len(operations))
        if i:
            assert ("list", "snapshot") not in operations
            assert not [p for op, p in operations if op == "read" and p.startswith("manifest-") and "list" not in p]
    assert len(set(costs[1:])) == 1, costs


def test_abort_deletes_only_files_that_no_snapshot_references() -> None:
    engine, table = memory_table()
    committed, gone = message(table, ["kept"]), message(table, [evolve(data_file("gone"), extra_files=("gone.index",))])
    for name in ("kept", "gone", "gone.index"):
        engine.files.replace(f"{table.location}/bucket-0/{name}", b"")
    put(engine, table, committed)
    assert abort(TableContext(engine, table), [committed, gone], "u") == (
        f"{table.location}/bucket-0/gone",
        f"{table.location}/bucket-0/gone.index",
    )
    put(engine, table, message(table, ["x"]), commit_identifier=4)
    assert abort(TableContext(engine, table), [message(table, ["y"])], "u", commit_identifier=4) == ()
    assert engine.files.status(f"{table.location}/bucket-0/kept") is not None


def always_beaten(options: dict[str, str]) -> tuple[Engine, TableDefinition, MemoryFiles]:
    """An engine whose every put fails: another commit publishes the id just before."""
    memory = MemoryFiles()
    table = table_at("/lake/t", options=options)
    faultless = engine_on(memory)
    create(faultless, table)
    beaten = iter(range(10**6))

    def publish_first(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and "/snapshot-" in path:
            put(faultless, table, message(table, [f"other{next(beaten)}"]), user="other")
        return None

    return engine_on(FaultyFiles(memory, publish_first), SimulatedClock(Interleaving())), table, memory


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({"commit.max-retries": "3", "commit.max-retry-wait": "1 ms"}, 4),
        ({"commit.timeout": "9 ms"}, 2),
        ({"commit.max-retries": "0"}, 1),
    ],
)
def test_too_many_lost_races_are_a_conflict_that_leaves_no_files(options: dict[str, str], lost: int) -> None:
    engine, table, memory = always_beaten(options)
    with pytest.raises(CommitConflict, match=f"{lost} concurrent"):
        put(engine, table, message(table, ["mine"]))
    faultless = engine_on(memory)
    assert live_names(faultless, table) == [f"other{i}" for i in range(lost)]
    manifests = [p for p in memory.contents if "/manifest/" in p]
    assert len(manifests) == 3 * lost  # a manifest and two lists of each commit of the other


def test_a_retry_writes_its_delta_once() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    made: list[str] = []

    def publish_first(operation: str, path: str) -> Fault | None:
        if operation == "create" and "/manifest/manifest-" in path:
            made.append("list" if "manifest-list" in path else "manifest")
        if operation == "put_if_absent" and len(made) < 8:
            put(faultless, table, message(table, [f"other{len(made)}"]), user="other")
        return None

    result = put(engine_on(FaultyFiles(memory, publish_first)), table, message(table, ["mine"]))
    assert result.retries > 0
    assert made.count("manifest") == 1
    assert made.count("list") == 1 + (result.retries + 1)  # the base list is written again


def test_an_attempt_with_an_expired_base_leaves_no_files_for_the_next_attempt() -> None:
    memory = MemoryFiles()
    table = table_at("/lake/t")
    faultless = engine_on(memory)
    create(faultless, table)
    put(faultless, table, message(table, ["base"]))
    first = newest(faultless, table)
    gone = [table.paths.manifest(n) for n in (first.base_manifest_list, first.delta_manifest_list)]
    expired: list[str] = []

    def expire(operation: str, path: str) -> Fault | None:
        if operation == "read" and path in gone and not expired:
            expired.append(path)
            put(faultless, table, message(table, ["other"]))
            memory.delete([table.paths.snapshot(1), *gone])
        return None

    assert put(engine_on(FaultyFiles(memory, expire)), table, message(table, ["mine"])).snapshot_ids == (3,)
    assert expired
    assert live_names(engine_on(memory), table) == ["base", "mine", "other"]


def test_a_branch_has_its_own_snapshots_and_shares_manifests() -> None:
    engine, table = memory_table()
    put(engine, table, message(table, ["a"]))
    branch = evolve(table, paths=evolve(table.paths, branch="b"))
    create(engine, branch)
    put(engine, branch, message(table, ["b"]))
    assert live_names(engine, table) == ["a"]
    assert live_names(engine, branch) == ["b"]
    assert engine.files.status("/lake/t/branch/branch-b/snapshot/snapshot-1") is not None
    assert len([p for p in _paths(engine) if p.startswith("/lake/t/manifest/")]) == 6


def test_rows_of_row_tracking_tables_get_ids() -> None:
    engine, table = memory_table(options={"row-tracking.enabled": "true"})
    files = [evolve(data_file(n), file_source=FileSource.APPEND) for n in ("a", "b")]
    put(engine, table, message(table, files[:1]))
    put(engine, table, message(table, files[1:]))
    live = CommitBase(TableContext(engine, table), newest(engine, table)).read_live_files(lambda _: True)
    row_ids = {e.file.file_name: (e.file.first_row_id, e.file.max_sequence_number) for e in live}
    assert row_ids == {"a": (0, 1), "b": (10, 2)}
    assert newest(engine, table).next_row_id == 20
