"""Tables with deletion vectors written by us as Java wrote them: after every snapshot the same rows, the same files on
the same levels, and the same vectors, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.canonical_rows import rows_of, types_of
from support.case_lists import mark_nightly
from support.golden_input import KIND
from support.golden_replay import Replay, number_steps
from support.golden_tables import golden_directory, sql

import paimon
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.data_files.deletion_vectors import read_bucket_vectors
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.table_context import TableContext
from paimon.table import Table

HOME = golden_directory()
CASES = [
    "dv_append", "dv_append_bitmap64", "dv_append_compacted", "dv_containers_run", "dv_pk", "dv_pk_avro_part",
    "dv_pk_writeonly_l0", "idx_pk_dv_bitmap",
]  # fmt: skip
OTHER_SIZES = ["cl_churn_lookup_dv", "pk_seq_fields_dv_lookup"]
"""Cases in ORC, where the bytes of files decide what is compacted, and Java's files are of other sizes."""


class VectorReplay(Replay):
    """A replay whose writers compact, as Java's did, and which deletes."""

    def table(self, options: Mapping[str, Any] | None = None) -> Table:
        text = {k: str(v) for k, v in (options or {}).items()}
        table = paimon.open_table(self.directory, text)
        assert isinstance(table, Table)
        return table

    def run(self) -> VectorReplay:
        self.create()
        for number, step in number_steps(json.loads((self.case / "case.json").read_text("utf8"))["steps"]):
            match step["op"]:
                case "delete":
                    self.table().delete(sql(step["where"]))
                case "compact":
                    self.table().compact()
                case "write":
                    self.write(step, number)
                case "dropPartitions":
                    self.drop(step, number)
                case other:
                    raise AssertionError(other)
        return self


def rows_at(table: Table, snapshot: Snapshot) -> list[str]:
    return sorted(rows_of(table.scan(snapshot=snapshot.id).to_arrow(), types_of(table.table_schema.fields)))


def vectors_at(table: Table, snapshot: Snapshot) -> list[Any]:
    """Of each bucket, the files by level with their vectors as they are stored."""
    engine, definition = table.engine, table.definition
    held = read_bucket_vectors(TableContext(engine, definition), snapshot)
    found = []
    for entry in read_live_entries(
        TableContext(engine, definition), read_data_manifests(TableContext(engine, definition), snapshot)
    ):
        key = entry.partition, entry.bucket
        place = held[key].files(definition).get(entry.file.file_name) if key in held else None
        stored = Path(place.path).read_bytes()[place.range.offset :][: place.range.length] if place else b""
        found.append((entry.partition.hex(), entry.bucket, entry.file.level, entry.file.row_count, stored.hex()))
    return sorted(found)


def index_files_at(table: Table, snapshot: Snapshot) -> list[Any]:
    """The index files: bucket, size, number of vectors."""
    held = read_bucket_vectors(table.context, snapshot)
    return sorted((e.partition.hex(), e.bucket, e.file_size, e.row_count) for v in held.values() for e in v.current)


@pytest.mark.parametrize(
    "case", mark_nightly([*CASES, *OTHER_SIZES], always=["dv_append_bitmap64", "dv_pk", OTHER_SIZES[0]])
)
def test_a_replay_writes_what_java_wrote(case: str, tmp_path: Path) -> None:
    ours = VectorReplay(HOME / case, tmp_path / "t").run().table()
    java = paimon.open_table(str(HOME / case / "table"))
    assert isinstance(java, Table)
    made = [(s.id, s.commit_kind) for s in ours.snapshots()]
    assert made == [(s.id, s.commit_kind) for s in java.snapshots()]
    for mine, theirs in zip(ours.snapshots(), java.snapshots(), strict=True):
        assert rows_at(ours, mine) == rows_at(java, theirs), f"rows of snapshot {mine.id}"
        if case in OTHER_SIZES:
            continue
        assert vectors_at(ours, mine) == vectors_at(java, theirs), f"vectors of snapshot {mine.id}"
        assert index_files_at(ours, mine) == index_files_at(java, theirs), f"index files of snapshot {mine.id}"
    assert KIND not in ours.table_schema.names
