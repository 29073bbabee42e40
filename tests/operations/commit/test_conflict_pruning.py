"""Conflict checks that read only the files that may conflict find the same conflicts as checks of all files."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.commit_tables import data_file, memory_table, message

from paimon.domain.commit.conflicts.files import check_conflicts
from paimon.domain.commit.entries import Change, append_change, compact_change
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.base import CommitBase
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext

FILE = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([0, 0, 1, 5]), st.integers(0, 40)).map(
    lambda f: data_file(f[0], f[1], f[2], f[2] + 3)
)
PLACE = st.tuples(st.sampled_from([1, 2]), st.integers(0, 1), st.sampled_from([2, 2, 2, 4]))


def at(table: TableDefinition, place: tuple[int, int, int], **parts: object) -> CommitMessage:
    part, bucket, total = place
    return message(table, part=part, bucket=bucket, total_buckets=total, **parts)  # type: ignore[arg-type]


def conflict(live: list[ManifestEntry], change: Change, table: TableDefinition) -> str | None:
    try:
        check_conflicts(live, change, [f.type for f in table.schema.key_fields])
    except CommitConflict as error:
        return error.message
    return None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(PLACE, FILE), max_size=6, unique_by=lambda f: (f[1].file_name, f[1].level)),
    st.lists(st.tuples(PLACE, st.lists(FILE, max_size=2), st.lists(FILE, max_size=2)), max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_same_conflicts(
    base: list[tuple[tuple[int, int, int], DataFileMeta]],
    steps: list[tuple[tuple[int, int, int], list[DataFileMeta], list[DataFileMeta]]],
    keyed: bool,
    compacts: bool,
) -> None:
    engine, table = memory_table(partitioned=True, keyed=keyed)
    commit(TableContext(engine, table), CommitRequest([at(table, place, files=[file]) for place, file in base], "u"))
    if compacts:
        change = compact_change([at(table, p, compact=CompactIncrement(gone, new)) for p, gone, new in steps])
    else:
        change = append_change([at(table, p, files=new) for p, _, new in steps])
    state = CommitBase(TableContext(engine, table), latest_snapshot(TableContext(engine, table)))
    everything = state.read_live_files(change.partitions.__contains__)
    assert conflict(state.read_live_files_near(change), change, table) == conflict(everything, change, table)
