"""What a plan asks of its base, and that the same change is planned anew on each base."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

import pytest
from attrs import define, evolve, field
from support.commit_tables import data_file, message, table_at

from paimon.domain.commit.entries import Change, append_change, compact_change
from paimon.domain.commit.message import CommitMessage, CompactIncrement
from paimon.domain.commit.plan_change import Intent, SafeSnapshot, plan_change
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import CommitConflict
from paimon.domain.manifest.entries import DataFileMeta, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.manifest.type_fit import UnsafeCast
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot


@define
class FixedBase:
    """A base without storage; `asked` are the parts that a plan asked for."""

    live: list[ManifestEntry] = field(factory=list)
    snapshot: Snapshot | None = None
    schema_id: int = 0
    asked: list[str] = field(factory=list)

    @property
    def index_files(self) -> tuple[IndexManifestEntry, ...]:
        self.asked.append("index_files")
        return ()

    def read_live_files(self, is_wanted: Callable[[bytes], bool]) -> list[ManifestEntry]:
        self.asked.append("live_files")
        return [entry for entry in self.live if is_wanted(entry.partition)]

    def read_live_files_near(self, change: Change) -> list[ManifestEntry]:
        self.asked.append("live_files_near")
        return self.live

    def read_bucket_options(self) -> tuple[int, ...]:
        self.asked.append("bucket_options")
        return (-1,)

    def find_unsafe_cast(self, files: Iterable[DataFileMeta]) -> UnsafeCast | None:
        raise AssertionError

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        raise AssertionError

    def read_delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        raise AssertionError

    def read_index_changes(self, snapshot: Snapshot) -> Sequence[IndexManifestEntry]:
        raise AssertionError

    def read_added_since(self, snapshot_id: int, partitions: Container[bytes]) -> Iterable[ManifestEntry]:
        raise AssertionError


TABLE = table_at("/lake/t")


def intend(change: Change, request: CommitRequest, table: TableDefinition = TABLE) -> Intent:
    return Intent(table, request, change, SafeSnapshot())


def request_of(*messages: CommitMessage) -> CommitRequest:
    return CommitRequest(messages, "user")


def test_an_append_asks_only_for_the_numbers_of_buckets() -> None:
    written = message(TABLE, ["a"])
    base = FixedBase()
    change = plan_change(intend(append_change([written]), request_of(written)), base)
    assert [(e.kind, e.file.file_name) for e in change.entries] == [(FileKind.ADD, "a")]
    assert base.asked == ["bucket_options"]


def test_an_overwrite_deletes_the_live_files_of_each_base() -> None:
    written = message(TABLE, ["b"])
    intent = intend(append_change([written]), evolve(request_of(written), overwrite={}))
    for names in (["a"], ["a", "c"]):
        live = append_change([message(TABLE, names)]).entries
        change = plan_change(intent, FixedBase(list(live)))
        assert change.kind is CommitKind.OVERWRITE
        assert [e.file.file_name for e in change.entries if e.kind is FileKind.DELETE] == names


def test_a_compaction_fits_a_base_with_its_files_and_no_other() -> None:
    compacted = message(TABLE, compact=CompactIncrement((data_file("a"), data_file("b")), (data_file("d"),)))
    intent = intend(compact_change([compacted]), request_of(compacted))
    live = append_change([message(TABLE, ["a", "b", "c"])]).entries
    assert plan_change(intent, FixedBase(list(live))).kind is CommitKind.COMPACT
    with pytest.raises(CommitConflict, match="no longer in the table"):
        plan_change(intent, FixedBase([e for e in live if e.file.file_name != "a"]))
