"""`commit.strict-mode.last-safe-snapshot`: which commits since the safe snapshot refuse a commit, rule by rule."""

from __future__ import annotations

import pytest
from attrs import evolve
from support.commit_tables import data_file, engine_on, live_names, memory_table, message, partition

from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.commit.plan_change import SafeSnapshot
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DeletionVectorRange, FileKind, IndexManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.commit import commit
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles


def put(
    engine: Engine, table: TableDefinition, *messages: CommitMessage, user: str = "u", safe: SafeSnapshot | None = None,
    **request: object,
) -> CommitResult:  # fmt: skip
    return commit(TableContext(engine, table), CommitRequest(messages, user, **request), safe)  # type: ignore[arg-type]


def strict(table: TableDefinition, safe: int) -> TableDefinition:
    return evolve(table, options=TableOptions.of({"commit.strict-mode.last-safe-snapshot": str(safe)}))


def three_partitions(**options: str) -> tuple[Engine, TableDefinition]:
    engine, table = memory_table(partitioned=True, options=options)
    put(engine, table, *(message(table, [f"f{p}"], part=p) for p in (1, 2, 3)))
    return engine, table


def vector(engine: Engine, table: TableDefinition, name: str, file: str, part: int) -> CommitMessage:
    """One row of a file marked as deleted."""
    engine.files.replace(table.paths.index(name), b"vectors")
    marked = (DeletionVectorRange(file, 1, 22, 1),)
    entry = IndexManifestEntry(FileKind.ADD, partition(part), 0, "DELETION_VECTORS", name, 30, 1, marked)
    return message(table, part=part, data=DataIncrement(new_index_files=(entry,)))


def test_it_checks_the_commits_of_others_since_the_safe_snapshot() -> None:
    engine, table = three_partitions()
    put(engine, table, overwrite={"p": 1}, user="other")
    put(engine, table, message(table, ["more"], part=3), user="other")
    with pytest.raises(CommitConflict, match=r"Snapshot 2 \(OVERWRITE\) of user 'other'") as refused:
        put(engine, strict(table, 1), message(table, ["a"], part=1))
    assert refused.value.files == ("f1",)
    with pytest.raises(CommitConflict, match="Snapshot 3"):
        put(engine, strict(table, 1), overwrite={"p": 3})
    put(engine, strict(table, 1), message(table, ["b"], part=2))
    put(engine, strict(table, 2), message(table, ["a"], part=1))


def test_own_snapshots_and_plain_appends_cause_no_conflict() -> None:
    engine, table = three_partitions()
    put(engine, table, overwrite={"p": 1})
    put(engine, table, message(table, ["more"], part=1), user="other")
    put(engine, strict(table, 1), message(table, ["a"], part=1))
    assert live_names(engine, table) == ["a", "f2", "f3", "more"]


def test_a_compaction_of_others_refuses_an_append() -> None:
    engine, table = memory_table(partitioned=True, keyed=True)
    put(engine, table, message(table, ["f1"], part=1), message(table, ["f2"], part=2))
    upgraded = CompactIncrement((data_file("f1"),), (data_file("f1", 5),))
    put(engine, table, message(table, part=1, compact=upgraded), user="other")
    with pytest.raises(CommitConflict, match="COMPACT"):
        put(engine, strict(table, 1), message(table, ["a"], part=1))
    put(engine, strict(table, 1), message(table, ["a"], part=2))


def test_rows_that_others_marked_as_deleted_count_as_an_overwrite() -> None:
    """Such a snapshot has an empty delta. Only its index manifest shows the change."""
    engine, table = three_partitions(bucket="-1")
    put(engine, table, vector(engine, table, "index-1", "f1", 1), user="other")
    with pytest.raises(CommitConflict, match="Snapshot 2") as refused:
        put(engine, strict(table, 1), message(table, ["a"], part=1))
    assert refused.value.files == ("index-1",)
    put(engine, strict(table, 1), message(table, ["b"], part=2))


def test_older_vectors_are_no_conflict() -> None:
    engine, table = three_partitions(bucket="-1")
    put(engine, table, vector(engine, table, "index-1", "f1", 1), user="other")
    put(engine, table, overwrite={"p": 3}, user="other")
    put(engine, strict(table, 2), message(table, ["a"], part=1))


def test_others_rows_without_a_bucket_do_not_refuse_an_overwrite() -> None:
    engine, table = three_partitions()
    put(engine, table, message(table, ["postponed"], part=3, bucket=-2), user="other")
    put(engine, strict(table, 1), overwrite={"p": 3})


def test_expired_snapshots_cannot_be_checked() -> None:
    engine, table = three_partitions()
    for name in ("a", "b"):
        put(engine, table, message(table, [name], part=2), user="other")
    engine.files.delete([table.paths.snapshot(1), table.paths.snapshot(2)])
    with pytest.raises(CommitConflict, match="Snapshot 2 has expired"):
        put(engine, strict(table, 1), message(table, ["c"], part=1))
    put(engine, strict(table, 3), message(table, ["c"], part=1))


def test_a_reused_committer_checks_each_snapshot_once() -> None:
    engine, table = three_partitions()
    safe = SafeSnapshot()
    put(engine, strict(table, 1), message(table, ["a"], part=1), safe=safe)
    put(engine, table, overwrite={"p": 2}, user="other")
    put(engine, strict(table, 1), message(table, ["b"], part=1), safe=safe)
    engine.files.delete([table.paths.snapshot(i) for i in (1, 2, 3)])
    put(engine, strict(table, 1), message(table, ["c"], part=2), safe=safe)  # the previous commit checked snapshot 3
    put(engine, table, overwrite={"p": 2}, user="other")
    with pytest.raises(CommitConflict, match="Snapshot 6"):
        put(engine, strict(table, 1), message(table, ["d"], part=2), safe=safe)


def test_minus_one_spares_the_first_commit() -> None:
    engine, table = three_partitions()
    put(engine, table, overwrite={"p": 1}, user="other")
    safe = SafeSnapshot()
    put(engine, strict(table, -1), message(table, ["a"], part=1), safe=safe)
    put(engine, table, overwrite={"p": 1}, user="other")
    with pytest.raises(CommitConflict, match="Snapshot 4"):
        put(engine, strict(table, -1), message(table, ["b"], part=1), safe=safe)


def test_commits_between_two_attempts_are_checked() -> None:
    memory = MemoryFiles()
    engine, table = engine_on(memory), memory_table(partitioned=True)[1]
    put(engine, table, message(table, ["f1"], part=1))

    def publish_first(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path == table.paths.snapshot(2) and path not in memory.contents:
            put(engine, table, overwrite={"p": 1}, user="other")
        return None

    with pytest.raises(CommitConflict, match=r"Snapshot 2 \(OVERWRITE\)"):
        put(engine_on(FaultyFiles(memory, publish_first)), strict(table, 1), message(table, ["a"], part=1))


def test_without_the_option_no_snapshot_is_read() -> None:
    memory = MemoryFiles()
    table = memory_table(partitioned=True)[1]
    for i in range(5):
        put(engine_on(memory), table, message(table, [f"f{i}"], part=1), user="other")
    read: list[str] = []

    def note(operation: str, path: str) -> Fault | None:
        if operation == "read" and "/snapshot-" in path:
            read.append(path)
        return None

    put(engine_on(FaultyFiles(memory, note)), table, message(table, ["a"], part=1))
    known = {table.paths.snapshot(5), table.paths.snapshot(6)}
    assert set(read) <= known
