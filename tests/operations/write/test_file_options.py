"""Options of files and of the write buffer: each value shows in a name, a directory, a number of files, or bytes."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyorc
import pytest
from support.tables import create_table

import paimon
from paimon.domain.deletion.vector import MAGIC_32, MAGIC_64


def create_table_with_options(
    home: Path, options: dict[str, str], columns: str = "k INT NOT NULL, v STRING", **more: Any
) -> Any:
    return create_table(home, columns, options=options, **more)


def file_names(table: paimon.Table, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(table.location)) for path in Path(table.location).glob(pattern))


def index_files(table: paimon.Table) -> list[str]:
    return [name for name in file_names(table, "*/index-*") if not name.startswith("manifest/")]


@pytest.mark.parametrize(
    ("options", "directory"), [({}, "p=__DEFAULT_PARTITION__"), ({"partition.default-name": "nothing"}, "p=nothing")]
)
def test_an_option_names_the_directory_of_null_partitions(
    tmp_path: Path, options: dict[str, str], directory: str
) -> None:
    table = create_table_with_options(tmp_path, options, "k INT, p STRING", partition_keys=["p"])
    table.write([{"k": 1, "p": None}, {"k": 2, "p": "a"}])
    assert file_names(table, "p=*") == sorted(["p=a", directory])
    assert table.scan(where="p IS NULL").to_arrow().to_pylist() == [{"k": 1, "p": None}]
    table.overwrite([{"k": 3, "p": None}], partition={"p": directory.removeprefix("p=")})
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("format_name", ["parquet", "avro"])
def test_a_higher_level_of_zstd_makes_smaller_files(tmp_path: Path, format_name: str) -> None:
    chance = np.random.default_rng(3)
    rows = pa.table({
        "k": pa.array(range(20_000), pa.int32()),
        "v": [f"user-{n % 97}@example{n}.org" for n in chance.integers(0, 9_000_000, 20_000)],
    })  # fmt: skip
    sizes = []
    for level in ("1", "19"):
        options = {"file.format": format_name, "file.compression.zstd-level": level}
        table = create_table_with_options(tmp_path / level, options)
        table.write(rows)
        assert table.scan().to_arrow().to_pydict() == rows.to_pydict()
        (name,) = file_names(table, "bucket-0/data-*")
        sizes.append(Path(table.location, name).stat().st_size)
    assert sizes[1] < 0.9 * sizes[0]


def test_orc_files_have_two_levels_of_zstd(tmp_path: Path) -> None:
    sizes = []
    for level in ("1", "2", "19"):
        options = {"file.format": "orc", "file.compression.zstd-level": level}
        table = create_table_with_options(tmp_path / level, options)
        table.write([{"k": n, "v": f"user-{n * 7919 % 1009}@example.org"} for n in range(20_000)])
        assert table.scan().count() == 20_000
        (name,) = file_names(table, "bucket-0/data-*")
        sizes.append(Path(table.location, name).stat().st_size)
    assert sizes[0] != sizes[1] == sizes[2]


def test_the_codec_of_changelog_files_leaves_data_files_the_choice(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "k": pa.array(range(20_000), pa.int32()),
            "v": np.random.default_rng(3).bytes(16 * 20_000).hex(" ", 16).split(),
        }
    )
    codecs = {}
    for codec in (None, "zstd"):
        options = {"bucket": "1", "changelog-producer": "input", "file.format": "parquet"}
        options |= {} if codec is None else {"changelog-file.compression": codec}
        table = create_table_with_options(tmp_path / str(codec), options, primary_keys=["k"])
        table.write(rows)
        for kind in ("data", "changelog"):
            (name,) = file_names(table, f"bucket-0/{kind}-*")
            group = pq.read_metadata(Path(table.location, name)).row_group(0)
            codecs[codec, kind] = {group.column(i).compression for i in range(group.num_columns)}
    assert codecs[None, "data"] == codecs[None, "changelog"] == codecs["zstd", "data"] == {"ZSTD", "UNCOMPRESSED"}
    assert codecs["zstd", "changelog"] == {"ZSTD"}


@pytest.mark.parametrize(
    ("value", "codec", "ending"),
    [("false", "zstd", ".parquet"), ("true", "zstd", ".zst.parquet"), ("true", "gzip", ".gz.parquet")],
)
def test_an_option_puts_the_codec_into_file_names(tmp_path: Path, value: str, codec: str, ending: str) -> None:
    table = create_table_with_options(tmp_path, {"file.suffix.include.compression": value, "file.compression": codec})
    table.write([{"k": 1, "v": "a"}])
    (name,) = file_names(table, "bucket-0/data-*")
    assert name[name.index(".") :] == ending
    assert table.scan().count() == 1


@pytest.mark.parametrize(("value", "directory"), [("false", "index"), ("true", "bucket-0")])
def test_an_option_moves_index_files_to_the_data_files(tmp_path: Path, value: str, directory: str) -> None:
    options = {"bucket": "1", "bucket-key": "k", "deletion-vectors.enabled": "true"}
    table = create_table_with_options(tmp_path, options | {"index-file-in-data-file-dir": value})
    table.write([{"k": k, "v": "a"} for k in range(4)])
    table.delete("k = 2")
    (name,) = index_files(table)
    assert Path(name).parent.name == directory
    assert table.scan().to_arrow()["k"].to_pylist() == [0, 1, 3]
    assert table.maintain.check().faults == ()
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    assert name not in index_files(table) and table.maintain.check().faults == ()
    assert table.scan().to_arrow()["k"].to_pylist() == [0, 1, 3]


@pytest.mark.parametrize(("value", "present", "absent"), [("false", MAGIC_32, MAGIC_64), ("true", MAGIC_64, MAGIC_32)])
def test_an_option_chooses_the_width_of_deletion_vectors(
    tmp_path: Path, value: str, present: bytes, absent: bytes
) -> None:
    table = create_table_with_options(
        tmp_path, {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": value}
    )
    table.write([{"k": k, "v": "a"} for k in range(4)])
    table.delete("k = 2")
    (name,) = file_names(table, "index/index-*")
    content = Path(table.location, name).read_bytes()
    assert present in content and absent not in content
    assert table.scan().to_arrow()["k"].to_pylist() == [0, 1, 3]


@pytest.mark.parametrize("value", ["true", "false"])
def test_orc_files_hold_the_instant_in_every_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """The same as Java with 'false'. With 'true', Java would shift the times by the time zone of its process."""
    options = {"file.format": "orc", "orc.timestamp-ltz.legacy.type": value}
    moment = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    try:
        with monkeypatch.context() as zone:
            zone.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            table = create_table_with_options(tmp_path, options, "t TIMESTAMP_LTZ(3)")
            table.write([{"t": moment}])
            assert table.scan().to_arrow()["t"].to_pylist() == [moment]
    finally:
        time.tzset()
    (name,) = file_names(table, "bucket-0/data-*")
    with Path(table.location, name).open("rb") as file:
        assert str(pyorc.Reader(file).schema) == "struct<t:timestamp with local time zone>"
    assert orc.read_table(Path(table.location, name))["t"].to_pylist()[0].to_pydatetime() == moment


def count_flushed_files(home: Path, **options: str) -> int:
    """Write 40 batches with a small buffer, and return the number of files of the one commit."""
    given = {"bucket": "1", "write-only": "true", "write-buffer-size": "8 kb", **options}
    table = create_table_with_options(home, given, primary_keys=["k"])
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        for step in range(40):
            writer.write([{"k": k, "v": f"{step} {k}"} for k in range(100)])
        builder.new_commit().commit(writer.prepare_commit())
    assert table.scan().to_arrow()["v"].to_pylist() == [f"39 {k}" for k in range(100)]
    return len(file_names(table, "bucket-0/data-*"))


def test_a_buffer_that_cannot_spill_writes_more_files(tmp_path: Path) -> None:
    assert count_flushed_files(tmp_path / "a", **{"write-buffer-spillable": "true"}) == 1
    assert count_flushed_files(tmp_path / "b", **{"write-buffer-spillable": "false"}) > 2


def test_a_buffer_with_less_disk_writes_more_files(tmp_path: Path) -> None:
    limits = ("1 gb", "8 kb", "0 b")
    files = [
        count_flushed_files(tmp_path / str(number), **{"write-buffer-spill.max-disk-size": limit})
        for number, limit in enumerate(limits)
    ]
    assert files[0] == 1
    assert files[0] < files[1] < files[2]
