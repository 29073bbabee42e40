"""Options for files have the same effect as in Java: levels, formats, statistics, thin mode, changelog files.

Both sides write the same rows with the same options and compact. The file metadata in the manifests are equal, and so
are the physical columns, formats and codecs of the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from support.canonical_rows import rows_of, text
from support.case_lists import mark_nightly
from support.java_paimon import JavaPaimon

import paimon
from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import type_to_json
from paimon.operations.metadata.manifests import (
    read_data_manifests,
    read_live_entries,
    read_manifest,
    read_manifest_list,
)
from paimon.operations.metadata.snapshots import latest_snapshot, snapshots

pytestmark = pytest.mark.interop

DDL = "k INT NOT NULL, p STRING NOT NULL, v STRING, n BIGINT, a ARRAY<INT>, d DOUBLE"
CASES: dict[str, dict[str, str]] = {
    "thin": {"data-file.thin-mode": "true"},
    "thin in orc": {"data-file.thin-mode": "true", "file.format": "orc"},
    "thin in avro": {"data-file.thin-mode": "true", "file.format": "avro"},
    "formats by level": {"file.format.per.level": "0:avro,5:orc", "file.compression.per.level": "0:null,5:zlib"},
    "codecs by level": {"file.compression.per.level": "0:snappy,5:gzip", "file.suffix.include.compression": "true"},
    "statistics by level": {"metadata.stats-mode.per.level": "0:none,5:full"},
    "statistics by level and column": {
        "metadata.stats-mode.per.level": "0:counts",
        "fields.v.stats-mode": "truncate(2)", "fields.n.stats-mode": "none",
    },
    "statistics of some columns": {"metadata.stats-keep-first-n-columns": "3", "metadata.stats-dense-store": "false"},
    "changelog as avro": {"changelog-producer": "input", "changelog-file.format": "avro"},
    "changelog with a codec": {
        "changelog-producer": "input", "changelog-file.compression": "snappy", "changelog-file.prefix": "changes-",
    },
    "changelog without statistics": {"changelog-producer": "input", "changelog-file.stats-mode": "none"},
    "thin changelog": {"changelog-producer": "input", "data-file.thin-mode": "true", "file.format": "orc"},
    "changelog of a full compaction": {
        "changelog-producer": "full-compaction", "changelog-file.format": "orc", "changelog-file.prefix": "changes-",
    },
    "changelog of a lookup": {
        "changelog-producer": "lookup", "changelog-file.format": "avro", "changelog-file.stats-mode": "counts",
        "data-file.thin-mode": "true",
    },
}  # fmt: skip


def rows(step: int) -> list[dict[str, Any]]:
    """Rows of two partitions, some of them repeatedly."""
    return [
        {
            "k": k, "p": "ab"[k % 2], "v": None if k == 3 else f"value {k} of {step}", "n": k * 10**10 + step,
            "a": [k, None], "d": k + 0.25, "_ROW_KIND": "-D" if (k + step) % 7 == 0 else "+I",
        }
        for k in range(step, step + 10)
    ]  # fmt: skip


def describe_file(table: paimon.Table, entry: ManifestEntry) -> dict[str, Any]:
    """The properties of a file that must be equal, in its manifest and on disk."""
    file = entry.file
    paths = list(Path(table.location).rglob(file.file_name))
    assert len(paths) == 1
    keys, values = file.key_stats, file.value_stats
    return {
        "place": (entry.partition.hex(), entry.bucket, file.level, str(file.file_source), file.file_name.split("-")[0]),
        "rows": (file.row_count, file.delete_row_count, file.min_sequence_number, file.max_sequence_number),
        "keys": (file.min_key.hex(), file.max_key.hex()),
        "key stats": (keys.min_values.hex(), keys.max_values.hex(), keys.null_counts),
        "stats": (values.min_values.hex(), values.max_values.hex(), values.null_counts, file.value_stats_cols),
        "physical": physical(paths[0]),
    }


def physical(path: Path) -> tuple[Any, ...]:
    """Suffix, codec and columns."""
    suffix = path.name.partition(".")[2]
    if suffix.endswith("parquet"):
        meta = pq.read_metadata(path)
        codecs = {meta.row_group(0).column(c).compression for c in range(meta.num_columns)}
        return suffix, sorted(codecs), pq.read_schema(path).names
    if suffix.endswith("orc"):
        found = orc.ORCFile(path)
        return suffix, found.compression, found.schema.names
    return suffix, path.read_bytes()[:4]


def files(table: paimon.Table) -> tuple[list[str], list[str]]:
    """The live files, and the changelog files of all snapshots."""
    context = table.context
    snapshot = latest_snapshot(context)
    assert snapshot is not None
    live = read_live_entries(context, read_data_manifests(context, snapshot))
    lists = [s.changelog_manifest_list for s in snapshots(context) if s.changelog_manifest_list]
    manifests = [m.file_name for name in lists for m in read_manifest_list(context, name)]
    changelog = [entry for name in manifests for entry in read_manifest(context, name)]
    return sorted(str(describe_file(table, e)) for e in live), sorted(str(describe_file(table, e)) for e in changelog)


@pytest.mark.parametrize("case", mark_nightly(CASES, always=["thin in orc", "formats by level", "codecs by level",
    "statistics by level and column", "changelog as avro", "thin changelog", "changelog of a lookup"]))  # fmt: skip
def test_both_write_the_same_files(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    options = {"bucket": "1", "write-only": "true", **CASES[case]}
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", DDL, primary_keys=["p", "k"], partition_keys=["p"], options=options)
    types = {f.name: type_to_json(f.type) for f in parse_columns(DDL)}
    theirs_at = tmp_path / "theirs"
    java.create(theirs_at, types, primary_keys=["p", "k"], partition_keys=["p"], options=options)
    theirs = paimon.open_table(theirs_at)
    assert isinstance(theirs, paimon.Table)
    for step in range(3):
        table.write(rows(step), kind_column="_ROW_KIND")
        java.write(theirs_at, rows(step), identifier=step)
    assert files(table) == files(theirs)
    table.compact(full=True)
    java.write(theirs_at, [], identifier=9, compact=True, options={"write-only": "false"})
    assert files(table) == files(theirs)
    assert any(files(table)[1]) == ("changelog-producer" in options)


INTEGERS = {
    "id": "BIGINT NOT NULL", "tiny": "TINYINT", "small": "SMALLINT", "n": "INT", "big": "BIGINT", "day": "DATE",
    "at": "TIME(3)", "ms": "TIMESTAMP(3)", "us": "TIMESTAMP(6)", "zoned": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "price": "DECIMAL(9, 2)", "sum": "DECIMAL(18, 3)",
}  # fmt: skip


@pytest.mark.parametrize("keys", [[], ["id"]])
def test_java_reads_integers_that_are_stored_as_differences(java: JavaPaimon, tmp_path: Path, keys: list[str]) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    ddl = ", ".join(f"{name} {kind}" for name, kind in INTEGERS.items())
    table = catalog.create_table("d.t", ddl, primary_keys=keys, options={"bucket": "1" if keys else "-1"})
    ids = pa.array(range(8_000), pa.int64())
    steps = pc.if_else(pc.equal(pc.bit_wise_and(ids, 15), 15), None, pc.multiply(ids, 41))
    schema = table.scan().to_arrow().schema
    columns = [ids, *(_to_column(steps, field.type) for field in list(schema)[1:])]
    table.write(pa.table(columns, schema=schema))
    files = [pq.read_metadata(path).row_group(0) for path in Path(table.location).rglob("*.parquet")]
    leaves = [group.column(leaf) for group in files for leaf in range(group.num_columns)]
    differences = {leaf.path_in_schema for leaf in leaves if "DELTA_BINARY_PACKED" in leaf.encodings}
    assert {"id", "n", "big", "ms", "us", "zoned", "sum"} <= differences
    types = {f.name: f.type for f in parse_columns(ddl)}
    theirs = sorted(map(text, java.read(Path(table.location))))
    assert theirs == rows_of(table.scan().to_arrow(), types)


def _to_column(steps: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return numbers as values of a type that stores integers; small ones for the smallest types."""
    if pa.types.is_decimal(kind):
        return steps.cast(pa.decimal128(38, 0)).cast(kind)
    if pa.types.is_integer(kind):
        return (pc.bit_wise_and(steps, 127) if kind.bit_width < 32 else steps).cast(kind)
    is_day_or_time = pa.types.is_date(kind) or pa.types.is_time(kind)
    return steps.cast(pa.int32() if is_day_or_time else pa.int64()).cast(kind)
