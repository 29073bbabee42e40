"""Options of commits: each value shows in a manifest, in a snapshot, or in the row ids of new files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.tables import create_table

import paimon
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.stats.simple_stats import EMPTY_STATS
from paimon.operations.metadata.manifests import read_data_manifests, read_delta_list, read_live_entries, read_manifest


def create_table_with_options(
    home: Path, options: dict[str, str], columns: str = "k INT, v STRING", **more: Any
) -> paimon.Table:
    return create_table(home, columns, options=options, **more)


def read_changes(table: paimon.Table) -> list[ManifestEntry]:
    """Return the entries of the last commit."""
    manifests = read_delta_list(table.context, table.snapshots()[-1])
    return [entry for manifest in manifests for entry in read_manifest(table.context, manifest.file_name)]


@pytest.mark.parametrize(
    ("options", "codec"),
    [
        ({}, b"zstandard"),
        ({"manifest.compression": "snappy"}, b"snappy"),
        ({"manifest.compression": "none"}, b"null"),
    ],
)
def test_an_option_chooses_the_codec_of_manifests(tmp_path: Path, options: dict[str, str], codec: bytes) -> None:
    table = create_table_with_options(tmp_path, options)
    table.write([{"k": 1, "v": "a"}])
    files = list(Path(table.location, "manifest").iterdir())
    assert len(files) == 3
    assert all(b"avro.codec" + bytes([2 * len(codec)]) + codec in file.read_bytes() for file in files)
    assert table.scan().count() == 1


@pytest.mark.parametrize("value", ["false", "true"])
def test_an_option_leaves_the_statistics_of_deleted_files_out(tmp_path: Path, value: str) -> None:
    table = create_table_with_options(tmp_path, {"manifest.delete-file-drop-stats": value})
    table.write([{"k": 1, "v": "a"}])
    table.overwrite([{"k": 2, "v": "b"}])
    stats = {entry.kind: entry.file.value_stats for entry in read_changes(table)}
    assert stats[FileKind.ADD] != EMPTY_STATS
    assert (stats[FileKind.DELETE] == EMPTY_STATS) is (value == "true")
    assert table.scan().to_arrow()["k"].to_pylist() == [2]


def test_an_option_prefixes_the_users_of_commits(tmp_path: Path) -> None:
    table = create_table_with_options(tmp_path, {"commit.user-prefix": "nightly"})
    table.write([{"k": 1, "v": "a"}])
    table.with_options({"commit.user-prefix": "hourly"}).write([{"k": 2, "v": "a"}])
    table.with_options({"commit.user-prefix": ""}).write([{"k": 3, "v": "a"}])
    assert [user[:-36] for user in (s.commit_user for s in table.snapshots())] == ["nightly_", "hourly_", ""]


@pytest.mark.parametrize(
    ("value", "first_ids"), [("true", {"a": [0, 1], "b": [2, 3]}), ("false", {"a": [0, 2], "b": [1, 3]})]
)
def test_row_ids_may_be_given_partition_by_partition(
    tmp_path: Path, value: str, first_ids: dict[str, list[int]]
) -> None:
    options = {"row-tracking.enabled": "true", "row-tracking.partition-group-on-commit": value}
    table = create_table_with_options(tmp_path, options, "k INT, p STRING", partition_keys=["p"])
    builder = table.new_batch_write_builder()
    messages = []
    for k in (1, 2):
        with builder.new_write() as writer:
            writer.write([{"k": k, "p": "a"}, {"k": k, "p": "b"}])
            messages += writer.prepare_commit()
    builder.new_commit().commit(messages)
    entries = read_live_entries(table.context, read_data_manifests(table.context, table.snapshots()[-1]))
    found: dict[bytes, list[int]] = {}
    for entry in sorted(entries, key=lambda entry: entry.file.first_row_id or 0):
        found.setdefault(entry.partition, []).append(entry.file.first_row_id or 0)
    assert sorted(found.values()) == sorted(first_ids.values())


@pytest.mark.parametrize("value", ["false", "true"])
def test_the_committer_decides_about_commits_without_rows(tmp_path: Path, value: str) -> None:
    """`commit.force-create-snapshot` has no effect: a stream always creates the snapshot, a batch never does."""
    table = create_table_with_options(tmp_path, {"commit.force-create-snapshot": value})
    table.write([])
    assert table.snapshots() == []
    table.new_stream_write_builder("u").new_commit().commit(1, [])
    assert [snapshot.id for snapshot in table.snapshots()] == [1]
