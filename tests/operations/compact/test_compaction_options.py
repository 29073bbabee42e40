"""Options of compaction: each value decides which files a compaction takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.tables import create_table

import paimon
from paimon.domain.errors import Unsupported
from paimon.domain.manifest.entries import ManifestEntry
from paimon.operations.metadata.manifests import find_deletion_files, read_data_manifests, read_live_entries

COLUMNS = "k INT NOT NULL, v STRING"


def create_table_with_options(home: Path, options: dict[str, str], **more: Any) -> paimon.Table:
    return create_table(home, COLUMNS, options=options, **more)


def read_files(table: paimon.Table) -> list[ManifestEntry]:
    """Return the live files, the newest first."""
    entries = read_live_entries(table.context, read_data_manifests(table.context, table.snapshots()[-1]))
    return sorted(entries, key=lambda entry: -entry.file.max_sequence_number)


def file_names(table: paimon.Table) -> set[str]:
    return {entry.file.file_name for entry in read_files(table)}


def write_rows(table: paimon.Table, *steps: int) -> None:
    for step in steps:
        table.write([{"k": step, "v": f"text {step}"}])


@pytest.mark.parametrize(("threshold", "levels"), [("1 gb", [0, 0, 5]), ("1 b", [5])])
def test_new_data_of_a_size_starts_a_full_compaction(tmp_path: Path, threshold: str, levels: list[int]) -> None:
    options = {"bucket": "1", "compaction.incremental-size-threshold": threshold}
    table = create_table_with_options(
        tmp_path, options | {"compaction.max-size-amplification-percent": "10000"}, primary_keys=["k"]
    )
    write_rows(table, 1)
    table.compact(full=True)
    write_rows(table, 2, 3)
    assert [entry.file.level for entry in read_files(table)] == levels
    assert table.scan().count() == 3


@pytest.mark.parametrize(
    ("keys", "layout"), [(["k"], {"bucket": "1"}), ([], {"bucket": "1", "bucket-key": "k"}), ([], {"bucket": "-1"})]
)
def test_files_that_could_stay_are_rewritten_if_configured(
    tmp_path: Path, keys: list[str], layout: dict[str, str]
) -> None:
    table = create_table_with_options(tmp_path, {**layout, "write-only": "true"}, primary_keys=keys)
    write_rows(table, 1, 2, 3)
    table = table.with_options({"write-only": "false"})
    table.compact(full=True)
    before = file_names(table)
    table.compact(full=True)
    assert file_names(table) == before
    rewriting = table.with_options({"compaction.force-rewrite-all-files": "true"})
    rewriting.compact(full=True)
    assert len(before) == 1 and not before & file_names(table)
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("options", [{}, {"bucket": "1", "bucket-key": "k"}])
def test_fewer_small_files_than_configured_are_left(tmp_path: Path, options: dict[str, str]) -> None:
    table = create_table_with_options(tmp_path, {**options, "write-only": "true"})
    write_rows(table, 1, 2, 3)
    before = file_names(table)
    for least, count in (("4", 3), ("3", 1)):
        table.with_options({"write-only": "false", "compaction.min.file-num": least}).compact()
        assert len(file_names(table)) == count
        assert bool(before & file_names(table)) is (count == 3)
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize(("ratio", "is_rewritten"), [("0.5", False), ("0.2", True)])
def test_a_large_file_is_rewritten_at_a_share_of_deleted_rows(tmp_path: Path, ratio: str, is_rewritten: bool) -> None:
    table = create_table_with_options(
        tmp_path, {"deletion-vectors.enabled": "true", "compaction.delete-ratio-threshold": ratio}
    )
    table.write([{"k": k, "v": f"text {k}"} for k in range(1_000)])
    table.delete("k < 300")
    before = file_names(table)
    table.with_options({"target-file-size": "1 kb"}).compact()
    assert bool(before & file_names(table)) is not is_rewritten
    assert bool(find_deletion_files(table.context, table.snapshots()[-1])) is not is_rewritten
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == list(range(300, 1_000))


@pytest.mark.parametrize("limit", ["100000", "2"])
def test_the_limit_of_files_does_not_change_the_rows(tmp_path: Path, limit: str) -> None:
    table = create_table_with_options(tmp_path, {"compaction.file-num-limit": limit})
    write_rows(table, *range(6))
    table.compact()
    assert len(file_names(table)) == 1


@pytest.mark.parametrize("options", [{}, {"clustering.columns": "v"}])
def test_columns_to_cluster_by_change_no_order(tmp_path: Path, options: dict[str, str]) -> None:
    table = create_table_with_options(tmp_path, options)
    table.write([{"k": k, "v": v} for k, v in enumerate("cab")])
    write_rows(table, 3)
    table.compact(full=True)
    assert table.scan().to_arrow()["v"].to_pylist() == ["c", "a", "b", "text 3"]


def test_a_keyed_table_with_row_tracking_is_read_and_never_compacted(tmp_path: Path) -> None:
    """Nothing declares such a table. A compaction would lose the row ids."""
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "clustering.columns": "v", "owner": "x"}
    table = create_table_with_options(tmp_path, options, primary_keys=["k"])
    write_rows(table, 1)
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"owner" : "x"', '"row-tracking.enabled" : "true"'))
    clustered = paimon.open_table(table.location)
    assert clustered.scan().to_arrow()["k"].to_pylist() == [1]
    with pytest.raises(Unsupported, match="row-tracking") as refused:
        clustered.compact(full=True)
    assert refused.value.hint and len(clustered.snapshots()) == 2
    with pytest.warns(RuntimeWarning, match="not compacted by this writer"):
        write_rows(clustered, 2)
    assert [entry.file.level for entry in read_files(clustered)] == [0, 5]
